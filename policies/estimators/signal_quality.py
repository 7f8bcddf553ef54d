"""Change rates and signal quality with standard errors, from the results of crawls with signals.

=======================  ==========================================================================
here                     in Busa-Fekete et al.
=======================  ==========================================================================
``unsignalled_rate``     alpha = (1 - recall) Delta, changes without a signal per unit time
``evidence``             alpha beta = ln(gamma / nu), evidence of one signal for staleness
``signal_rate``          gamma, counted
=======================  ==========================================================================

The number of signals has no information on alpha and b beyond the results of crawls, so the error
of gamma is independent of theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import amounts, check_domain
from policies.estimators.histories import rows_of_pages, truths
from policies.estimators.signal_likelihood import Crawls, Fit, fit_pages


class SignalFit(NamedTuple):
    """Estimates for m pages: rates of unsignalled changes and of signals, evidence of a signal.

    A stderr is nan on a bound (0 or inf), where the estimate's distribution is not normal. Entries
    of one source have shape (m,), of several (S, m).

    Attributes:
        unsignalled_rate: alpha, per unit time; inf if the page had changed at every crawl, nan
            without crawls. (m,).
        evidence: b = ln(gamma / nu) >= 0; inf if no signal was observed to be false, nan without
            signals. 1 - exp(-b) is the precision.
        signal_rate: gamma, signals over time; nan without any time.
        unsignalled_rate_stderr: standard error, from the second derivatives of the likelihood.
        evidence_stderr: standard error.
        signal_rate_stderr: standard error of a Poisson count, nan without signals.
        covariance: of (alpha, b_1, .., b_S), (m, 1 + S, 1 + S), nan on a bound.
        log_likelihood: (m,), without the prior.
        converged: (m,) bool.
    """

    unsignalled_rate: FloatArray
    evidence: FloatArray
    signal_rate: FloatArray
    unsignalled_rate_stderr: FloatArray
    evidence_stderr: FloatArray
    signal_rate_stderr: FloatArray
    covariance: FloatArray
    log_likelihood: FloatArray
    converged: BoolArray

    def quality(self) -> SignalQuality:
        """Return change rate, recall, precision and false signals of pages, with standard errors.

        With the false signals nu_s = gamma_s e^-b_s of source s, its true signals come at gamma_s -
        nu_s. Delta is alpha plus the rates of true signals of all sources, and recall_s the share
        of source s in Delta. precision_s = 1 - e^-b_s (Busa-Fekete et al., section 3).
        """
        alpha, single, m = self.unsignalled_rate, self.evidence.ndim == 1, self.covariance.shape[0]
        b, gamma, gamma_error = (
            array.reshape(-1, m)
            for array in (self.evidence, self.signal_rate, self.signal_rate_stderr)
        )
        precision = np.where(gamma == 0.0, np.nan, -np.expm1(-b))
        share = np.nan_to_num(precision)
        false, true = gamma * (1.0 - share), gamma * share
        change = alpha + true.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            recall = np.where(true > 0.0, true / change, np.where(change > 0.0, 0.0, np.nan))
            slopes = _slopes(b, gamma, share, recall, change)
        size = 1 + len(b)
        spread = np.zeros((size + len(b), size + len(b), m))
        spread[:size, :size] = self.covariance.transpose(1, 2, 0)
        diagonal = np.arange(size, size + len(b))
        spread[diagonal, diagonal] = gamma_error**2
        unknown = np.isnan(np.diagonal(spread).T)  # entire rows and columns are nan
        spread[np.isnan(spread)] = 0.0
        squares = (np.einsum("kim,ijm->kjm", slopes, spread) * slopes).sum(axis=1)
        errors = np.where(((slopes != 0.0) & unknown).any(axis=1), np.nan, np.sqrt(squares))
        values = recall, precision, false, *np.split(errors[1:], 3)
        recall, precision, false, *rest = (_flat(rows, single) for rows in values)
        return SignalQuality(change, recall, precision, false, errors[0], *rest)


class SignalQuality(NamedTuple):
    """Change rates of pages and the quality of their signals, with standard errors (delta method).

    ``change_rate`` and its error have shape (m,). All other fields have shape (m,) for one source,
    (S, m) for several. Precision is nan where there are no signals. Errors are nan if unknown or
    not normal.
    """

    change_rate: FloatArray
    recall: FloatArray
    precision: FloatArray
    false_signal_rate: FloatArray
    change_rate_stderr: FloatArray
    recall_stderr: FloatArray
    precision_stderr: FloatArray
    false_signal_rate_stderr: FloatArray


class NaiveQuality(NamedTuple):
    """Precision and recall as shares of intervals, (m,) or (S, m); nan where none can count."""

    precision: FloatArray
    recall: FloatArray


def signal_quality_mle(
    elapsed: ArrayLike,
    signals: ArrayLike,
    changed: ArrayLike,
    *,
    page: ArrayLike | None = None,
    num_pages: int | None = None,
) -> SignalFit:
    """Estimate the rate of unsignalled changes and the evidence of a signal, for every page.

    They maximise the likelihood of the crawls' results, with P(no change) = exp(-(alpha tau + sum_s
    b_s n_s)) (Busa-Fekete et al., eq. 1 and Appendix E; at most one of several sources signals a
    change). The likelihood is convex; its maximum over alpha, b >= 0 is exact to rounding.

    Args:
        elapsed: time between a crawl and the page's crawl before, 0 or in [1e-12, 1e12]; (n,).
        signals: signals received meanwhile, (n,), or (S, n) of S sources.
        changed: whether the page had changed, (n,) bool.
        page: the page of each crawl, (n,) int; None for one page.
        num_pages: m; None for the largest page plus 1. A page without crawls gets nan.

    Raises:
        ValueError: numbers are negative or outside the domain, shapes disagree, a page is out of
            range, or a page had changed in no time and without a signal.
    """
    crawls = crawls_of_pages(elapsed, signals, changed, page, num_pages)
    none = np.zeros((len(crawls.offsets) - 1, crawls.design.shape[1]))
    result = fit_pages(crawls, none, none, none)
    return as_signal_fit(crawls, result, np.ndim(signals) == 1)


def crawls_of_pages(
    elapsed: ArrayLike,
    signals: ArrayLike | None,
    changed: ArrayLike,
    page: ArrayLike | None,
    num_pages: int | None,
) -> Crawls:
    """Return crawls, checked and grouped by page; :func:`signal_quality_mle` explains arguments."""
    time = amounts("elapsed", elapsed)
    if time.ndim != 1:
        raise ValueError(f"elapsed must have shape (n,), got {time.shape}")
    check_domain("elapsed", time)
    n = len(time)
    counts = np.zeros((0, n)) if signals is None else amounts("signals", signals)
    if counts.ndim not in (1, 2) or counts.shape[-1] != n:
        raise ValueError(f"signals must have shape ({n},) or (S, {n}), got {counts.shape}")
    check_domain("signals", counts)
    flags = truths("changed", changed, (n,))
    pages, m = rows_of_pages(page, num_pages, n)
    design = np.vstack([time, np.atleast_2d(counts)]).T
    if np.any(flags & ~design.any(axis=1)):
        raise ValueError("changed must be False where elapsed and signals are 0, got True")
    offsets = np.zeros(m + 1, np.int64)
    np.cumsum(np.bincount(pages, minlength=m), out=offsets[1:])
    order = np.argsort(pages, kind="stable")
    return Crawls(np.ascontiguousarray(design[order]), flags[order], offsets)


def naive_signal_quality(
    signals: ArrayLike,
    changed: ArrayLike,
    *,
    page: ArrayLike | None = None,
    num_pages: int | None = None,
) -> NaiveQuality:
    """Return precision and recall as shares of intervals between crawls, a biased estimate.

    This is the estimator of Appendix E. Precision is the share with a change among the intervals
    with a signal (the paper prints the numerator twice). Recall is the share with a signal among
    the intervals with a change. Long intervals have both for unrelated reasons. Arguments as in
    :func:`signal_quality_mle`.
    """
    counts = amounts("signals", signals)
    if counts.ndim not in (1, 2):
        raise ValueError(f"signals must have shape (n,) or (S, n), got {counts.shape}")
    length = counts.shape[-1]
    flags = truths("changed", changed, (length,))
    pages, m = rows_of_pages(page, num_pages, length)
    rows = np.atleast_2d(counts) > 0.0

    def count(values: BoolArray) -> FloatArray:
        return np.array([np.bincount(pages, row, minlength=m) for row in values])

    with np.errstate(invalid="ignore"):
        precision = count(rows & flags) / count(rows)
        recall = count(rows & flags) / count(flags[None])
    return NaiveQuality(*(_flat(array, counts.ndim == 1) for array in (precision, recall)))


def as_signal_fit(crawls: Crawls, result: Fit, single: bool) -> SignalFit:
    """Return a fit's estimates and the observed rates of signals, as a :class:`SignalFit`."""
    m = len(crawls.offsets) - 1
    page = np.repeat(np.arange(m), np.diff(crawls.offsets))
    time, *counts = (np.bincount(page, x, minlength=m) for x in crawls.design.T)
    number = np.array(counts).reshape(-1, m)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = number / time
        rate_error = np.where(number > 0.0, np.sqrt(number) / time, np.nan)
        error = np.sqrt(np.diagonal(result.covariance, axis1=1, axis2=2)).T
    return SignalFit(
        unsignalled_rate=result.theta[:, 0].copy(),
        evidence=_flat(result.theta[:, 1:].T.copy(), single),
        signal_rate=_flat(rate, single),
        unsignalled_rate_stderr=error[0],
        evidence_stderr=_flat(error[1:], single),
        signal_rate_stderr=_flat(rate_error, single),
        covariance=result.covariance,
        log_likelihood=result.log_likelihood,
        converged=result.converged,
    )


def _slopes(
    b: FloatArray, gamma: FloatArray, share: FloatArray, recall: FloatArray, change: FloatArray
) -> FloatArray:
    """Return the derivatives of Delta, recalls, precisions and nu by (alpha, b_1, .., gamma_1, ..).

    Shape (1 + 3 S, 1 + 2 S, m); nan by a b that is infinite.
    """
    sources, m = b.shape
    bound = np.isinf(b) & (gamma > 0.0)
    by_b = np.where(bound, np.nan, gamma * (1.0 - share))  # of a source's true signals
    of_true, of_precision, of_false = np.zeros((3, sources, 1 + 2 * sources, m))
    for s in range(sources):
        of_true[s, 1 + s], of_true[s, 1 + sources + s] = by_b[s], share[s]
        of_precision[s, 1 + s] = np.where(bound[s], np.nan, 1.0 - share[s])
        of_false[s, 1 + s], of_false[s, 1 + sources + s] = -by_b[s], 1.0 - share[s]
    of_change = of_true.sum(axis=0)
    of_change[0] = 1.0
    of_recall = (of_true - recall[:, None] * of_change) / change
    return np.concatenate([of_change[None], of_recall, of_precision, of_false])


def _flat(rows: FloatArray, single: bool) -> FloatArray:
    return rows[0] if single else rows
