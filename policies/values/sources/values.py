r"""Crawl values of pages with several sources of signals.

Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals", with
the extension that its footnote 2 calls straightforward: every change is signalled by at most one
source, by source s with probability lambda_s, and source s sends false signals at rate nu_s. With

    alpha = (1 - sum lambda_s) Delta,  gamma_s = lambda_s Delta + nu_s,  Gamma = sum gamma_s,
    b_s = ln(gamma_s / nu_s),  beta_s = b_s / alpha,  iota = elapsed + sum beta_s n_s,

Theorem 1 holds with sums over all n in N^S with n . beta <= iota,

    psi(iota) = sum |n|! prod (gamma_s^n_s / n_s!) Gamma^(-|n|-1)
                R^|n|_exp(Gamma (iota - n . beta)),
    w(iota) = sum |n|! prod (nu_s^n_s / n_s!) (alpha + Gamma)^(-|n|-1)
              R^|n|_exp((alpha + Gamma) (iota - n . beta)),
    V(iota) = mu (w - exp(-alpha iota) psi).

All functions take arrays with sources on the first axis of ``signals``, ``recall`` and
``false_signal_rate``; the other axes broadcast as in :mod:`policies.values`, and results have that
shape. Values lie in [0, mu / Delta]. Limits: a source without recall adds nothing; after one signal
of a source without false signals the value is mu / Delta; sources of equal b equal one source with
summed rates; one source gives the functions of :mod:`policies.values`; without changes the value
is 0.

Accuracy: errors are below 1e-11 of mu / Delta where the value is smooth. Strong signals of
different strength cause kinks, which are smoothed if there are too many: over 1,000 pages with
recalls from Beta(1/4, 1/4), shared by two sources, 90% of the errors were below 4e-9, 99% below
8e-6 and all below 3e-5; as alpha tends to 0 they reach 2e-4.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import ready
from crawl_envs.types.evidence import signal_evidence
from policies.values import functions as values
from policies.values.functions import fill
from policies.values.sources import kernels as kernel
from policies.values.sources import tables
from policies.values.tables import check_nonnegative

STATIC = 1e-90
"""Change rate, as a share of the noise, that stands for 0 in the cycles of static pages."""


def effective_elapsed_sources(
    elapsed: ArrayLike,
    signals: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the effective elapsed time iota = elapsed + sum beta_s n_s.

    Arguments and errors as for :func:`greedy_ncis_sources`, but ``elapsed`` may be infinite.
    Infinite after a signal if beta is infinite: from a source without false signals, or if every
    change is signalled.
    """
    time = check_nonnegative("elapsed", elapsed, finite=False)
    known = tables.checked(0.0, change_rate, recall, false_signal_rate)
    counts = _counts(signals, recall)
    shape = _page_shape(change_rate, recall, false_signal_rate)
    b = signal_evidence(*known[1:]).reshape(-1, *shape)
    alpha = (np.maximum(0.0, 1.0 - known[2].sum(axis=0)) * known[1]).reshape(shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = _evidence(counts, b)
        return np.asarray(time + np.where(evidence > 0.0, evidence / alpha, 0.0))


def greedy_ncis_sources(
    elapsed: ArrayLike,
    signals: ArrayLike,
    *,
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the value of a page with several sources of noisy signals (Theorem 1, extended).

    Args:
        elapsed: time since the last crawl, >= 0 and finite.
        signals: n_s, signals received since then, integers >= 0, shape (S, ...).
        importance: mu, >= 0.
        change_rate: Delta, >= 0, per unit time.
        recall: lambda_s, in [0, 1] with a sum of at most 1, shape (S, ...).
        false_signal_rate: nu_s, >= 0, per unit time, shape (S, ...).

    Raises:
        ValueError: an argument is outside its range, or shapes do not agree.
    """
    time = check_nonnegative("elapsed", elapsed)
    table = tables.greedy_ncis_sources_table(importance, change_rate, recall, false_signal_rate)
    counts = _counts(signals, recall)
    shape = _page_shape(change_rate, recall, false_signal_rate, importance)
    start = kernel.EVIDENCES
    b = table[:, start : start + len(counts)].T.reshape(-1, *shape)
    return _evaluated(kernel.greedy_ncis_sources_value, table, shape, (time, _evidence(counts, b)))


def cycle_length_sources(
    effective_elapsed: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return psi, the mean time between crawls at effective elapsed time iota, as above.

    At an infinite iota psi is infinite, unless some source has no false signals: then psi is at
    most the mean time between its signals. If every change is signalled, iota counts time only, and
    psi = (1 - exp(-Gamma iota)) / Gamma.

    Args:
        effective_elapsed: iota, >= 0, may be infinite.
        change_rate: Delta, >= 0, per unit time.
        recall: lambda_s, in [0, 1] with a sum of at most 1, shape (S, ...).
        false_signal_rate: nu_s, >= 0, per unit time, shape (S, ...).

    Raises:
        ValueError: an argument is outside its range, or shapes do not agree.
    """
    iota = check_nonnegative("effective_elapsed", effective_elapsed, finite=False)
    _, delta, lam, nu = tables.checked(0.0, change_rate, recall, false_signal_rate)
    shape = _page_shape(change_rate, recall, false_signal_rate)
    best = lam.argmax(axis=0)[None]
    alone = values.cycle_length(
        iota,
        change_rate=delta.reshape(shape),
        recall=np.take_along_axis(lam, best, axis=0).reshape(shape),
        false_signal_rate=np.take_along_axis(nu, best, axis=0).reshape(shape),
    )
    single = (np.count_nonzero(lam, axis=0) <= 1).reshape(shape)
    return np.where(single, alone, _length_of_several(iota, (delta, lam, nu), shape))


def _length_of_several(
    iota: FloatArray, known: tuple[FloatArray, FloatArray, FloatArray], shape: tuple[int, ...]
) -> FloatArray:
    """Return the cycle length of pages with several sources, from checked flat parameters."""
    delta, lam, nu = known
    delta = np.where(delta > 0.0, delta, STATIC * np.where(nu > 0.0, nu, 1.0).min(axis=0))
    alpha = np.maximum(0.0, 1.0 - lam.sum(axis=0)) * delta
    with np.errstate(invalid="ignore", over="ignore"):
        level = alpha.reshape(shape) * iota
    finite = level[np.isfinite(level)]
    table = tables.cycle_length_sources_table(
        delta, lam, nu, highest=float(finite.max(initial=0.0))
    )
    scaled = _evaluated(kernel.cycle_length_sources_value, table, shape, (level, 0.0))
    gamma = (lam * delta + np.where(lam > 0.0, nu, 0.0)).sum(axis=0).reshape(shape)
    perfect = np.where(nu == 0.0, lam * delta, 0.0).sum(axis=0).reshape(shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        jumpless = np.where(gamma > 0.0, -np.expm1(-gamma * iota) / gamma, iota)
        last = 1.0 / perfect
        length = np.where(alpha.reshape(shape) > 0.0, scaled / delta.reshape(shape), jumpless)
    return np.where(np.isinf(iota), last, length)


def cycle_freshness_sources(
    effective_elapsed: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return w, the mean fresh time between crawls at effective elapsed time iota, as above.

    Evaluated as V / mu + exp(-alpha iota) psi, a sum of positive numbers; the page's freshness is
    w / psi. Arguments and errors as for :func:`cycle_length_sources`.
    """
    pages = {
        "change_rate": change_rate,
        "recall": recall,
        "false_signal_rate": false_signal_rate,
    }
    length = cycle_length_sources(effective_elapsed, **pages)
    _, delta, lam, nu = tables.checked(0.0, **pages)
    table = tables.greedy_ncis_sources_table(1.0, delta, lam, nu)
    shape = _page_shape(change_rate, recall, false_signal_rate)
    alpha = (np.maximum(0.0, 1.0 - lam.sum(axis=0)) * delta).reshape(shape)
    iota = np.asarray(effective_elapsed, dtype=np.float64)
    state = np.where(np.isinf(iota), 0.0, iota), np.where(np.isinf(iota), math.inf, 0.0)
    value = _evaluated(kernel.greedy_ncis_sources_value, table, shape, state)
    with np.errstate(invalid="ignore"):
        fresh = np.where(np.isinf(iota), 1.0 * (delta.reshape(shape) == 0.0), np.exp(-alpha * iota))
        return np.asarray(value + np.where(fresh > 0.0, fresh * length, 0.0))


def _page_shape(
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    importance: ArrayLike = 0.0,
) -> tuple[int, ...]:
    """Return the broadcast shape of the page parameters, without the axis of sources."""
    return np.broadcast_shapes(
        np.shape(importance),
        np.shape(change_rate),
        np.shape(recall)[1:],
        np.shape(false_signal_rate)[1:],
    )


def _counts(signals: ArrayLike, recall: ArrayLike) -> FloatArray:
    """Return ``signals`` as floats with sources first; ValueError unless they are counts."""
    counts = check_nonnegative("signals", signals)
    if np.any(counts != np.floor(counts)):
        raise ValueError(f"signals must be integers >= 0, got {signals!r}")
    if counts.ndim == 0 or counts.shape[:1] != np.shape(recall)[:1]:
        raise ValueError(
            f"signals must have as many sources on their first axis as recall "
            f"{np.shape(recall)}, got shape {counts.shape}"
        )
    return counts


def _evidence(counts: FloatArray, b: FloatArray) -> FloatArray:
    """Return the sum of b_s n_s; a source without signals adds 0 even if b is infinite."""
    total = np.zeros(np.broadcast_shapes(counts.shape[1:], b.shape[1:]))
    for count, each in zip(counts, b, strict=True):
        with np.errstate(invalid="ignore"):
            total = total + np.where(count > 0.0, count * each, 0.0)
    return total


def _evaluated(
    value: object,
    table: FloatArray,
    shape: tuple[int, ...],
    state: tuple[ArrayLike, ArrayLike],
) -> FloatArray:
    """Evaluate the kernel at every point of the broadcast of state and pages."""
    rows = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    try:
        spread = np.broadcast_arrays(rows, *(np.asarray(part, dtype=np.float64) for part in state))
    except ValueError:
        raise ValueError(
            f"the state {np.shape(state[0])}, {np.shape(state[1])} and the page parameters "
            f"{shape} must broadcast"
        ) from None
    page, time, signals = (np.array(array).ravel() for array in spread)
    out = np.empty(page.shape)
    ready(fill)(ready(value), table, page, time, signals, out)
    return out.reshape(spread[0].shape)
