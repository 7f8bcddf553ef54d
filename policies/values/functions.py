r"""Crawl values: what one crawl of a page is worth now, by the time and signals since the last one.

Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals",
sections 4, 5.1 and appendix A. The discrete policy crawls the page of largest value (Algorithm 1);
the optimal continuous policy crawls a page when its value reaches the multiplier (Theorem 1).

==============================  ===================================================
symbol in the paper             argument
==============================  ===================================================
mu, or mu~ = mu / sum(mu)       ``importance``, >= 0, used as is
Delta                           ``change_rate``, >= 0, per unit time
lambda                          ``recall``, in [0, 1]
nu                              ``false_signal_rate``, >= 0, per unit time
tau_ELAP                        ``elapsed``, >= 0, time since the last crawl
n_CIS                           ``signals``, integer >= 0, received since then
iota, tau_EFF = tau + beta n    ``effective_elapsed``, >= 0, may be infinite
j                               ``terms``, integer >= 1
alpha = (1 - lambda) Delta      rate of changes without a signal
gamma = lambda Delta + nu       rate of all signals
beta = ln(gamma / nu) / alpha   effective time added by one signal
R^i_exp(x)                      1 - exp(-x) sum_{j<=i} x^j / j!, P(Poisson(x) > i)
==============================  ===================================================

All arguments are scalars or arrays that broadcast. Results are float64 of the broadcast shape,
finite, non-negative, at most mu / Delta (except :func:`harmonic`), and non-decreasing in time and
signals. Elapsed time, rates and importance are 0 or in [1e-12, 1e12]. Other input raises a
ValueError with the argument, the value and the expected range.

Limits, for every function: the value is 0 if the page never changes (Delta = 0) or has no
importance. Without signals (gamma = 0) it equals :func:`greedy`. Without false signals (nu = 0)
beta is infinite, and the value after one signal is mu / Delta. If every change is signalled
(lambda = 1), alpha = 0 and beta is infinite, but the value depends on the number of signals: use
:func:`greedy_ncis_observed`, which takes time and signals separately and is exact everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int64, types
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import VALUE, compiled, ready
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import check_domain, floats
from policies.values import kernels as kernel
from policies.values import tables
from policies.values.tables import (
    HIGH_PRECISION,
    HIGH_RECALL,
    PARAMETERS,
    Reading,
    check_nonnegative,
)


@compiled(types.void(VALUE, float64[:, ::1], int64[::1], float64[::1], float64[::1], float64[::1]))
def fill(value: Any, table: Any, page: Any, elapsed: Any, signals: Any, out: Any) -> None:
    """Set ``out[k] = value(table, page[k], elapsed[k], signals[k])``, a crawl value, for all k."""
    for k in range(out.shape[0]):
        out[k] = value(table, page[k], elapsed[k], signals[k])


def evaluate(
    value: Any, table: FloatArray, pages: tuple[ArrayLike, ...], elapsed: Any, signals: ArrayLike
) -> FloatArray:
    """Return the values that a kernel gives for all states and pages, in their broadcast shape."""
    shape = np.broadcast_shapes(*(np.shape(parameter) for parameter in pages))
    rows = np.arange(len(table), dtype=np.int64).reshape(shape)
    try:
        spread = np.broadcast_arrays(rows, elapsed, signals)
    except ValueError:
        raise ValueError(
            f"elapsed {np.shape(elapsed)}, signals {np.shape(signals)} and the page parameters "
            f"{shape} must broadcast"
        ) from None
    page, time, count = (np.array(array).ravel() for array in spread)
    out = np.empty(page.shape)
    ready(fill)(ready(value), table, page, time, count, out)
    return out.reshape(spread[0].shape)


def _checked(*parameters: ArrayLike) -> Any:
    """Return the given page parameters unchanged; raise ValueError if one is out of its range."""
    for name, value in zip(PARAMETERS, parameters, strict=False):
        if name != "recall":
            check_domain(name, floats(name, value))
    return parameters


def _times(name: str, times: ArrayLike, *, finite: bool = True) -> FloatArray:
    """Return times as float64; ValueError unless >= 0, in the domain and, if ``finite``, finite."""
    array = check_nonnegative(name, times, finite=finite)
    check_domain(name, np.where(np.isinf(array), 0.0, array))
    return array


def _counts(signals: ArrayLike) -> Any:
    """Return numbers of signals as float64; ValueError unless they are integers in [0, 2**62)."""
    array = check_nonnegative("signals", signals)
    if np.any(array != np.floor(array)) or np.any(array >= 2.0**62):
        raise ValueError(f"signals must be integers >= 0 and below 2**62, got {signals!r}")
    return array


def greedy(elapsed: ArrayLike, *, importance: ArrayLike, change_rate: ArrayLike) -> FloatArray:
    """Return the crawl value V_GREEDY of pages whose changes send no signal (section 5.1).

    V = (mu / Delta) R^1_exp(Delta t) = (mu / Delta) (1 - exp(-Delta t) (1 + Delta t)).
    """
    pages = _checked(importance, change_rate)
    table = tables.greedy_table(*pages)
    time = _times("elapsed", elapsed, finite=False)
    return evaluate(kernel.greedy_value, table, pages, time, 0.0)


def harmonic(
    elapsed: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    signals: ArrayLike = 0,
    complete: ArrayLike = False,
) -> FloatArray:
    """Return the crawl value if n changes since the last crawl cost the harmonic number H(n).

    V = mu (t - (1 - exp(-Delta t)) / Delta) for a page whose changes are seen at crawls only. V =
    mu n / Delta for a page with complete observation, where n signals show all changes. Both equal
    E[T] D(T) - E[integral of D over T] for the cycle T that ends now (Olston and Pandey 2008, eq.
    4), with D = mu E[H(N)] (Kolobov et al. 2019, eq. 2).

    ``signals`` are used where ``complete`` is True.
    """
    table = tables.harmonic_table(importance, change_rate, complete)
    pages = (*_checked(importance, change_rate), complete)
    time = _times("elapsed", elapsed)
    return evaluate(kernel.harmonic_value, table, pages, time, _counts(signals))


def greedy_cis(
    elapsed: ArrayLike,
    signals: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    reading: Reading = "I2",
) -> FloatArray:
    """Return the crawl value V_GREEDY_CIS, which treats every signal as a change (section 5.1).

    Before a signal V = mu (R^0_exp((alpha + gamma) t) / (alpha + gamma) - exp(-alpha t)
    R^0_exp(gamma t) / gamma); after a signal V = mu / Delta. With false signals the paper has three
    readings:

    * ``"I1"`` assumes nu = 0, so gamma = lambda Delta;
    * ``"I2"`` (the formula as printed) uses the true gamma = lambda Delta + nu;
    * ``"I3"`` is I2 with another limit after a signal, mu / (Delta + nu).
    """
    pages = _checked(importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_cis_table(*pages, reading=reading)
    time = _times("elapsed", elapsed)
    return evaluate(kernel.greedy_cis_value, table, pages, time, _counts(signals))


def greedy_cis_plus(
    elapsed: ArrayLike,
    signals: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    reading: Reading = "I2",
    precision_above: float = HIGH_PRECISION,
    recall_above: float = HIGH_RECALL,
) -> FloatArray:
    """Return the GREEDY-CIS+ value: GREEDY-CIS for pages with good signals, GREEDY for the rest.

    Signals are good if the page's precision lambda Delta / gamma exceeds ``precision_above`` and
    its recall exceeds ``recall_above`` (section 6.7). The other arguments and the errors are
    documented in :func:`greedy_cis`.
    """
    pages = _checked(importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_cis_plus_table(
        *pages, reading=reading, precision_above=precision_above, recall_above=recall_above
    )
    time = _times("elapsed", elapsed)
    return evaluate(kernel.greedy_cis_value, table, pages, time, _counts(signals))


def greedy_ncis(
    effective_elapsed: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the value V_GREEDY_NCIS of a page with noisy signals (Theorem 1, section 5.1).

    V = mu sum_{i=0}^{floor(iota/beta)} [nu^i / (Delta + nu)^(i+1) R^i_exp((alpha + gamma) x_i) -
    exp(-alpha iota) / gamma R^i_exp(gamma x_i)] = mu (w - exp(-alpha iota) psi), x_i = iota - i
    beta.

    At an infinite effective elapsed time V is its limit mu / Delta. With lambda = 1 this is the
    limit of many signals; for a given number of signals use :func:`greedy_ncis_observed`.
    """
    pages = _checked(importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_ncis_table(*pages)
    iota = check_nonnegative("effective_elapsed", effective_elapsed, finite=False)
    return _effective(kernel.greedy_ncis_value, table, pages, iota)


def greedy_ncis_observed(
    elapsed: ArrayLike,
    signals: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the GREEDY-NCIS value after a time and a number of signals, exact for every page.

    It equals :func:`greedy_ncis` at iota = elapsed + beta signals where beta is finite. With lambda
    = 1 and nu > 0 it is (mu / gamma) sum_{i<n} ((nu/gamma)^i - (nu/gamma)^n) after n signals, at
    any time. With lambda = 1 and nu = 0 it is 0 before a signal and mu / Delta after.
    """
    pages = _checked(importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_ncis_table(*pages)
    time = _times("elapsed", elapsed)
    return evaluate(kernel.greedy_ncis_value, table, pages, time, _counts(signals))


def greedy_ncis_approx(
    effective_elapsed: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    terms: int,
) -> FloatArray:
    """Return V_G_NCIS_APPROX_J: the first ``terms`` summands of V_GREEDY_NCIS (appendix A.1).

    With recall 0 and false signals, beta is 0 and the number of summands is infinite. The policy
    :class:`policies.GreedyNCISApprox` treats such a page as a page without signals.
    """
    pages = _checked(importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_ncis_approx_table(*pages, terms=terms)
    iota = check_nonnegative("effective_elapsed", effective_elapsed, finite=False)
    return _effective(kernel.greedy_ncis_approx_value, table, pages, iota)


def _effective(
    value: Any, table: FloatArray, pages: tuple[ArrayLike, ...], iota: FloatArray
) -> FloatArray:
    """Return the values that a kernel gives at effective elapsed times ``iota``.

    The kernel receives a finite iota as elapsed time without signals. It receives an infinite iota
    as a large time and many signals, so that every page reaches the limit of its value.
    """
    last = 2.0**62
    endless = np.isinf(iota)
    return evaluate(
        value,
        table,
        pages,
        np.where(endless, np.finfo(np.float64).max, iota),
        np.where(endless, last, 0.0),
    )


def effective_elapsed(
    elapsed: ArrayLike,
    signals: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the effective elapsed time tau_EFF = elapsed + beta signals (section 3).

    It is infinite after a signal if beta is infinite: without false signals, or with recall 1.
    Signals that are pure noise (recall 0) add nothing.
    """
    _checked(0.0, change_rate, recall, false_signal_rate)
    beta = tables.signal_time(change_rate, recall, false_signal_rate)
    count = _counts(signals)
    time = _times("elapsed", elapsed, finite=False)
    with np.errstate(invalid="ignore"):
        return np.asarray(time + np.where(count > 0, beta * count, 0.0))


def cycle_length(
    effective_elapsed: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return psi, the mean time from a crawl to effective elapsed time iota (Lemma 4).

    psi = (1/gamma) sum_{i=0}^{floor(iota/beta)} R^i_exp(gamma (iota - i beta)); the crawl rate is f
    = 1 / psi. Without signals psi = iota. At an infinite iota psi is infinite, except that nu = 0
    gives 1 / gamma, because every signal ends the cycle.
    """
    pages = _checked(0.0, change_rate, recall, false_signal_rate)[1:]
    table = tables.cycle_length_table(*pages)
    iota = check_nonnegative("effective_elapsed", effective_elapsed, finite=False)
    length = evaluate(kernel.cycle_length_value, table, pages, iota, 0.0)
    return np.where(np.isinf(iota) & (np.asarray(false_signal_rate) > 0.0), math.inf, length)


def cycle_freshness(
    effective_elapsed: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return w, the mean fresh time between crawls at effective elapsed time iota (Lemma 4).

    w = sum_{i=0}^{floor(iota/beta)} nu^i / (Delta + nu)^(i+1) R^i_exp((alpha + gamma)(iota - i
    beta)), evaluated as V / mu + exp(-alpha iota) psi, a sum of positive numbers. The page's
    freshness is w / psi.
    """
    pages = {
        "change_rate": change_rate,
        "recall": recall,
        "false_signal_rate": false_signal_rate,
    }
    length = cycle_length(effective_elapsed, **pages)
    value = greedy_ncis(effective_elapsed, importance=1.0, **pages)
    alpha = (1.0 - np.asarray(recall, dtype=np.float64)) * np.asarray(change_rate)
    with np.errstate(invalid="ignore"):
        iota = np.asarray(effective_elapsed, dtype=np.float64)
        fresh = np.where(
            np.isinf(iota) & (np.asarray(change_rate) > 0.0), 0.0, np.exp(-alpha * iota)
        )
        return np.asarray(value + np.where(fresh > 0.0, fresh * length, 0.0))
