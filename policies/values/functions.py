r"""Crawl values: what one crawl of a page is worth now, given the state the tracker observes.

Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals",
sections 4, 5.1 and appendix A. The discrete policy crawls the page of largest value (Algorithm 1);
the optimal continuous policy crawls a page when its value reaches the multiplier (Theorem 1).

==============================  ===================================================
symbol in the paper             argument
==============================  ===================================================
mu, or mu~ = mu / sum(mu)       ``importance``, >= 0, as given
Delta                           ``change_rate``, >= 0, per unit time
lambda                          ``recall``, in [0, 1]
nu                              ``false_signal_rate``, >= 0, per unit time
tau_ELAP                        ``elapsed``, >= 0, time since the last crawl
n_CIS                           ``signals``, integer >= 0, received since then
iota, tau_EFF = tau + beta n    ``effective_elapsed``, >= 0, may be infinite
j                               ``terms``, integer >= 1
alpha = (1 - lambda) Delta      rate of changes without a signal
gamma = lambda Delta + nu       rate of all signals
beta = ln(gamma / nu) / alpha   the time that one signal is worth
R^i_exp(x)                      1 - exp(-x) sum_{j<=i} x^j / j!, P(Poisson(x) > i)
==============================  ===================================================

All arguments are scalars or arrays that broadcast; results are float64 of the broadcast shape,
finite, non-negative, at most mu / Delta but for :func:`harmonic`, and non-decreasing in time and
signals. Invalid input gives a ValueError that names the argument, the value and what was expected.

Limits, for every function: a page that never changes (Delta = 0) or has no importance is worth 0.
No signals (gamma = 0) gives :func:`greedy`. Without false signals (nu = 0) beta is infinite, and a
single signal makes the value mu / Delta. If every change is signalled (lambda = 1), alpha = 0 and
beta is infinite, but the value depends on the number of signals: use
:func:`greedy_ncis_observed`, which takes time and signals apart and is exact everywhere. Where the
quotient mu / Delta exceeds 2**1017, that number stands for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int64, types
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import VALUE, compiled, ready
from policies.values import kernels as kernel
from policies.values import tables
from policies.values.tables import HIGH_PRECISION, HIGH_RECALL, Reading, check_nonnegative


@compiled(types.void(VALUE, float64[:, ::1], int64[::1], float64[::1], float64[::1], float64[::1]))
def fill(value: Any, table: Any, page: Any, elapsed: Any, signals: Any, out: Any) -> None:
    """``out[k] = value(table, page[k], elapsed[k], signals[k])``."""
    for k in range(out.shape[0]):
        out[k] = value(table, page[k], elapsed[k], signals[k])


def _evaluate(
    value: Any, table: FloatArray, pages: tuple[ArrayLike, ...], elapsed: Any, signals: ArrayLike
) -> FloatArray:
    """The kernel at every point of the broadcast of state and page parameters."""
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


def _counts(signals: ArrayLike) -> Any:
    """``signals`` as float64, or ValueError where they are no counts."""
    array = check_nonnegative("signals", signals)
    if np.any(array != np.floor(array)) or np.any(array >= 2.0**62):
        raise ValueError(f"signals must be integers >= 0 and below 2**62, got {signals!r}")
    return array


def greedy(elapsed: ArrayLike, *, importance: ArrayLike, change_rate: ArrayLike) -> FloatArray:
    """Value of a page without signals, V_GREEDY (section 5.1).

    V = (mu / Delta) R^1_exp(Delta t) = (mu / Delta) (1 - exp(-Delta t) (1 + Delta t)).

    Args:
        elapsed: time since the last crawl, >= 0.
        importance: mu, >= 0.
        change_rate: Delta, >= 0.

    Raises:
        ValueError: an argument is negative, NaN or (elapsed apart) infinite.
    """
    table = tables.greedy_table(importance, change_rate)
    time = check_nonnegative("elapsed", elapsed, finite=False)
    return _evaluate(kernel.greedy_value, table, (importance, change_rate), time, 0.0)


def harmonic(
    elapsed: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    signals: ArrayLike = 0,
    complete: ArrayLike = False,
) -> FloatArray:
    """Value of a page under the harmonic penalty H(n) of n changes that no crawl has found.

    V = mu (t - (1 - exp(-Delta t)) / Delta) for a page whose changes show at crawls only, mu n /
    Delta for one with complete observation, of which n changes were signalled: that is E[T] D(T) -
    E[integral of D over T] of the cycle T that ends now (Olston and Pandey 2008, eq. 4), with D =
    mu E[H(N)] (Kolobov et al. 2019, eq. 2). Past 2**1017, mu t and mu n / Delta stay there.

    Arguments and errors are those of :func:`greedy`, with ``elapsed`` finite and ``signals``, which
    count where ``complete`` is True, integers >= 0.
    """
    table = tables.harmonic_table(importance, change_rate, complete)
    pages = (importance, change_rate, complete)
    time = check_nonnegative("elapsed", elapsed)
    return _evaluate(kernel.harmonic_value, table, pages, time, _counts(signals))


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
    """Value of a policy that takes every signal for a change, V_GREEDY_CIS (section 5.1).

    Before a signal V = mu (R^0_exp((alpha + gamma) t) / (alpha + gamma) - exp(-alpha t)
    R^0_exp(gamma t) / gamma); after a signal V = mu / Delta. Where false signals exist, the paper
    can be read in three ways:

    * ``"I1"`` believes nu = 0, thus gamma = lambda Delta;
    * ``"I2"`` (the formula as printed) has the true gamma = lambda Delta + nu;
    * ``"I3"`` is I2 with its own limit after a signal, mu / (Delta + nu).

    Args:
        elapsed: time since the last crawl, >= 0 and finite.
        signals: signals received since then, integers >= 0.
        importance: mu, >= 0.
        change_rate: Delta, >= 0.
        recall: lambda, in [0, 1].
        false_signal_rate: nu, >= 0.
        reading: ``"I1"``, ``"I2"`` or ``"I3"``.

    Raises:
        ValueError: an argument is outside its range, or the reading is unknown.
    """
    pages = (importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_cis_table(*pages, reading=reading)
    time = check_nonnegative("elapsed", elapsed)
    return _evaluate(kernel.greedy_cis_value, table, pages, time, _counts(signals))


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
    """GREEDY-CIS+ (section 6.7): :func:`greedy_cis` for pages of high quality, else :func:`greedy`.

    A page is of high quality if its precision lambda Delta / gamma exceeds ``precision_above`` and
    its recall exceeds ``recall_above``. Other arguments and errors are those of
    :func:`greedy_cis`.
    """
    pages = (importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_cis_plus_table(
        *pages, reading=reading, precision_above=precision_above, recall_above=recall_above
    )
    time = check_nonnegative("elapsed", elapsed)
    return _evaluate(kernel.greedy_cis_value, table, pages, time, _counts(signals))


def greedy_ncis(
    effective_elapsed: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Value of a page with noisy signals, V_GREEDY_NCIS (Theorem 1, section 5.1).

    V = mu sum_{i=0}^{floor(iota/beta)} [nu^i / (Delta + nu)^(i+1) R^i_exp((alpha + gamma) x_i)
    - exp(-alpha iota) / gamma R^i_exp(gamma x_i)] = mu (w - exp(-alpha iota) psi), x_i = iota -
    i beta.

    At an infinite effective elapsed time V is mu / Delta, its limit; with lambda = 1 that is the
    limit of many signals, and :func:`greedy_ncis_observed` tells their number apart.

    Args:
        effective_elapsed: iota, >= 0, may be infinite.
        importance: mu, >= 0.
        change_rate: Delta, >= 0.
        recall: lambda, in [0, 1].
        false_signal_rate: nu, >= 0.

    Raises:
        ValueError: an argument is outside its range.
    """
    pages = (importance, change_rate, recall, false_signal_rate)
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
    """:func:`greedy_ncis` at iota = elapsed + beta signals, exact where beta is infinite.

    With lambda = 1 and nu > 0 the value is (mu / gamma) sum_{i<n} ((nu/gamma)^i - (nu/gamma)^n)
    after n signals, whatever the time; with lambda = 1 and nu = 0 it is 0 before a signal and
    mu / Delta after.

    Args:
        elapsed: time since the last crawl, >= 0 and finite.
        signals: signals received since then, integers >= 0.
        importance: mu, >= 0.
        change_rate: Delta, >= 0.
        recall: lambda, in [0, 1].
        false_signal_rate: nu, >= 0.

    Raises:
        ValueError: an argument is outside its range.
    """
    pages = (importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_ncis_table(*pages)
    time = check_nonnegative("elapsed", elapsed)
    return _evaluate(kernel.greedy_ncis_value, table, pages, time, _counts(signals))


def greedy_ncis_approx(
    effective_elapsed: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    terms: int,
) -> FloatArray:
    """The first ``terms`` summands of :func:`greedy_ncis`, V_G_NCIS_APPROX_J (appendix A.1).

    With recall 0 and false signals, beta is 0 and these are the first of endlessly many summands;
    the policy :class:`policies.GreedyNCISApprox` takes such a page as one without signals.

    Args:
        effective_elapsed: iota, >= 0, may be infinite.
        importance: mu, >= 0.
        change_rate: Delta, >= 0.
        recall: lambda, in [0, 1].
        false_signal_rate: nu, >= 0.
        terms: j, integer >= 1.

    Raises:
        ValueError: an argument is outside its range.
    """
    pages = (importance, change_rate, recall, false_signal_rate)
    table = tables.greedy_ncis_approx_table(*pages, terms=terms)
    iota = check_nonnegative("effective_elapsed", effective_elapsed, finite=False)
    return _effective(kernel.greedy_ncis_approx_value, table, pages, iota)


def _effective(
    value: Any, table: FloatArray, pages: tuple[ArrayLike, ...], iota: FloatArray
) -> FloatArray:
    """The kernel at an effective elapsed time: as if it had passed without a signal.

    An infinite time is told as both much time and many signals, so that it saturates every page.
    """
    last = 2.0**62
    endless = np.isinf(iota)
    return _evaluate(
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
    """The effective elapsed time tau_EFF = elapsed + beta signals (section 3).

    Infinite after a signal where beta is: without false signals, or with recall 1. Where signals
    are pure noise (recall 0) they count nothing.

    Args:
        elapsed: time since the last crawl, >= 0.
        signals: signals received since then, integers >= 0.
        change_rate: Delta, >= 0.
        recall: lambda, in [0, 1].
        false_signal_rate: nu, >= 0.

    Raises:
        ValueError: an argument is outside its range.
    """
    beta = tables.signal_time(change_rate, recall, false_signal_rate)
    count = _counts(signals)
    time = check_nonnegative("elapsed", elapsed, finite=False)
    with np.errstate(invalid="ignore"):
        return np.asarray(time + np.where(count > 0, beta * count, 0.0))


def cycle_length(
    effective_elapsed: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Mean time between crawls when crawling at effective elapsed time iota: psi (Lemma 4).

    psi = (1/gamma) sum_{i=0}^{floor(iota/beta)} R^i_exp(gamma (iota - i beta)); the crawl rate is
    f = 1 / psi. Without signals psi = iota. At an infinite iota psi is infinite, unless nu = 0:
    then a signal ends the cycle, and psi is 1 / gamma.

    Args:
        effective_elapsed: iota, >= 0, may be infinite.
        change_rate: Delta, >= 0.
        recall: lambda, in [0, 1].
        false_signal_rate: nu, >= 0.

    Raises:
        ValueError: an argument is outside its range.
    """
    pages = (change_rate, recall, false_signal_rate)
    table = tables.cycle_length_table(*pages)
    iota = check_nonnegative("effective_elapsed", effective_elapsed, finite=False)
    length = _evaluate(kernel.cycle_length_value, table, pages, iota, 0.0)
    return np.where(np.isinf(iota) & (np.asarray(false_signal_rate) > 0.0), math.inf, length)


def cycle_freshness(
    effective_elapsed: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Mean time that a page is fresh between crawls at effective elapsed time iota: w (Lemma 4).

    w = sum_{i=0}^{floor(iota/beta)} nu^i / (Delta + nu)^(i+1) R^i_exp((alpha + gamma)(iota - i
    beta)), evaluated as V / mu + exp(-alpha iota) psi, a sum of positive numbers. The page's
    freshness is w / psi.

    Args:
        effective_elapsed: iota, >= 0, may be infinite.
        change_rate: Delta, >= 0.
        recall: lambda, in [0, 1].
        false_signal_rate: nu, >= 0.

    Raises:
        ValueError: an argument is outside its range.
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
