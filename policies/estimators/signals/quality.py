"""Change rates and signal quality from the parameters of the likelihood, with errors.

=======================  ==========================================================================
here                     in Busa-Fekete et al.
=======================  ==========================================================================
``unsignalled_rate``     alpha = (1 - recall) Delta, changes without a signal per unit time
``evidence``             alpha beta = ln(gamma / nu), evidence of one signal for staleness
``signal_rate``          gamma, counted
=======================  ==========================================================================

Given the results of crawls, the number of signals has no information on alpha and b, so the error
of gamma is independent of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators.histories import (
    NO_PRIOR,
    Crawls,
    GammaPrior,
    history,
    numbers,
    page_sums,
    rows_of_pages,
    truths,
)
from policies.estimators.signals.newton import Fit, fit_pages


@dataclass(frozen=True, eq=False)
class SignalFit:
    """Estimates of unsignalled changes and of signals, for m pages.

    A stderr is nan on a bound (0 or inf), where the estimate's distribution is not normal.
    Entries of one source have shape (m,), of several (S, m).

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
        state: of each component, see :mod:`policies.estimators.signals.likelihood`; (m, 1 + S).
        log_likelihood: (m,), without the prior.
        iterations: Newton steps, (m,).
        converged: (m,) bool.
    """

    unsignalled_rate: FloatArray
    evidence: FloatArray
    signal_rate: FloatArray
    unsignalled_rate_stderr: FloatArray
    evidence_stderr: FloatArray
    signal_rate_stderr: FloatArray
    covariance: FloatArray
    state: NDArray[np.int8]
    log_likelihood: FloatArray
    iterations: IntArray
    converged: BoolArray

    def quality(self) -> SignalQuality:
        """Return change rate, recall, precision and false signals, with standard errors."""
        return signal_quality(
            self.unsignalled_rate,
            self.evidence,
            self.signal_rate,
            covariance=self.covariance,
            signal_rate_stderr=self.signal_rate_stderr,
        )


@dataclass(frozen=True, eq=False)
class SignalQuality:
    """Change rates, and the quality of signals, with standard errors by the delta method.

    ``change_rate`` is (m,); the others are (m,) for one source, (S, m) for several. Precision is
    nan where there are no signals. Errors are nan if unknown or not normal.
    """

    change_rate: FloatArray
    recall: FloatArray
    precision: FloatArray
    false_signal_rate: FloatArray
    change_rate_stderr: FloatArray
    recall_stderr: FloatArray
    precision_stderr: FloatArray
    false_signal_rate_stderr: FloatArray


@dataclass(frozen=True, eq=False)
class ChangeRateFit:
    """Change rates of m pages; fields as in :class:`SignalFit`, each of shape (m,)."""

    change_rate: FloatArray
    stderr: FloatArray
    log_likelihood: FloatArray
    iterations: IntArray
    converged: BoolArray


@dataclass(frozen=True, eq=False)
class NaiveQuality:
    """Shares of intervals, (m,) or (S, m); nan where the denominator is 0."""

    precision: FloatArray
    recall: FloatArray


def signal_quality_mle(
    elapsed: ArrayLike,
    signals: ArrayLike,
    changed: ArrayLike,
    *,
    page: ArrayLike | None = None,
    num_pages: int | None = None,
    weights: ArrayLike | None = None,
    prior: GammaPrior | None = None,
) -> SignalFit:
    """Fit the probability that a page has changed at a crawl, for every page.

    The model is P(no change) = exp(-(alpha tau + sum_s b_s n_s)) (Busa-Fekete et al., eq. 1 and
    Appendix E; several sources: each change is signalled by one of them at most). The likelihood
    is convex; its maximum over alpha, b >= 0 is exact to rounding.

    Args:
        elapsed: time between a crawl and the page's crawl before, >= 0; (n,).
        signals: signals received meanwhile, (n,), or (S, n) of S sources.
        changed: whether the page had changed, (n,) bool.
        page: the page of each crawl, (n,) int; None for one page.
        num_pages: m; None for the largest page plus 1. A page without crawls gets nan.
        weights: multiplicity of each crawl, >= 0; (n,): forgetting, or repeated crawls. Standard
            errors treat them as repetitions.
        prior: Gamma prior of (alpha, b_1, .., b_S), see :func:`empirical_bayes`; None for the MLE.

    Raises:
        ValueError: numbers are negative or not finite, shapes disagree, a page is out of range,
            or a page had changed in no time and without a signal.
    """
    crawls = history(elapsed, signals, changed, page, num_pages, weights)
    return as_signal_fit(crawls, fit(crawls, prior), np.asarray(signals).ndim == 1)


def change_rate_mle(
    intervals: ArrayLike,
    changed: ArrayLike,
    *,
    page: ArrayLike | None = None,
    num_pages: int | None = None,
    weights: ArrayLike | None = None,
    prior: GammaPrior | None = None,
) -> ChangeRateFit:
    """Fit change rates to crawls at uneven intervals, without signals.

    The maximum of the likelihood solves sum over changed of tau / (exp(Delta tau) - 1) = sum over
    unchanged of tau. Arguments and errors as in :func:`signal_quality_mle`; ``intervals`` is its
    ``elapsed``. The rate is 0 without changes, inf if the page had changed at every crawl and there
    is no prior. Without weights, :func:`policies.estimators.fit_change_rates` is much faster.
    """
    crawls = history(intervals, None, changed, page, num_pages, weights)
    result = fit(crawls, prior)
    return ChangeRateFit(
        change_rate=result.theta[:, 0],
        stderr=np.sqrt(result.covariance[:, 0, 0]),
        log_likelihood=result.log_likelihood,
        iterations=result.iterations,
        converged=result.converged,
    )


def naive_signal_quality(
    signals: ArrayLike,
    changed: ArrayLike,
    *,
    page: ArrayLike | None = None,
    num_pages: int | None = None,
) -> NaiveQuality:
    """Count intervals between crawls, as the biased estimator of Appendix E does.

    Precision is the share with a change among the intervals with a signal (the paper prints the
    numerator twice), recall the share with a signal among those with a change. Long intervals
    have both for unrelated reasons. Arguments as in :func:`signal_quality_mle`.
    """
    counts = numbers("signals", signals)
    length = counts.shape[-1] if counts.ndim else 0
    if counts.ndim not in (1, 2):
        raise ValueError(f"signals must have shape (n,) or (S, n), got {counts.shape}")
    flags = truths("changed", changed, length)
    pages, m = rows_of_pages(page, num_pages, length)
    rows = (counts.reshape(-1, length) > 0.0).astype(np.float64)

    def count(values: FloatArray) -> FloatArray:
        return np.array([np.bincount(pages, row, minlength=m) for row in values])

    with np.errstate(invalid="ignore"):
        precision = count(rows * flags) / count(rows)
        recall = count(rows * flags) / count(flags[None])
    return NaiveQuality(*(_flat(array, counts.ndim == 1) for array in (precision, recall)))


def signal_quality(
    unsignalled_rate: ArrayLike,
    evidence: ArrayLike,
    signal_rate: ArrayLike,
    *,
    covariance: ArrayLike | None = None,
    signal_rate_stderr: ArrayLike | None = None,
) -> SignalQuality:
    """Return change rate, recall, precision and false signals from alpha, b and gamma.

    nu_s = gamma_s e^-b_s; true signals come at gamma_s - nu_s; Delta = alpha + their sum; recall_s
    is their share of Delta, precision_s = 1 - e^-b_s (Busa-Fekete et al., section 3).

    Args:
        unsignalled_rate: alpha >= 0, (m,).
        evidence: b = ln(gamma / nu) >= 0, inf allowed, (m,), or (S, m) of several sources; nan
            (no signal observed) counts as no true signal.
        signal_rate: gamma >= 0, of the shape of ``evidence``.
        covariance: of (alpha, b_1, .., b_S), (m, 1 + S, 1 + S).
        signal_rate_stderr: of the shape of ``evidence``; None for a known rate.

    Raises:
        ValueError: shapes disagree, or a number is negative.
    """
    alpha, b = np.asarray(unsignalled_rate, float), np.asarray(evidence, float)
    gamma = np.asarray(signal_rate, float)
    error = np.asarray(0.0 * gamma if signal_rate_stderr is None else signal_rate_stderr, float)
    _check_quality(alpha, b, gamma, error)
    m, sources = len(alpha), b.size // max(len(alpha), 1)
    shape = (m, 1 + sources, 1 + sources)
    theta = np.asarray(np.full(shape, np.nan) if covariance is None else covariance, float)
    if theta.shape != shape:
        raise ValueError(f"covariance must have shape {shape}, got {theta.shape}")
    spread = np.zeros((m, 1 + 2 * sources, 1 + 2 * sources))
    spread[:, : 1 + sources, : 1 + sources] = theta
    for s, row in enumerate(error.reshape(sources, m)):
        spread[:, 1 + sources + s, 1 + sources + s] = row**2
    return _with_errors(
        alpha, b.reshape(sources, m), gamma.reshape(sources, m), spread, b.ndim == 1
    )


def _check_quality(
    alpha: FloatArray, b: FloatArray, gamma: FloatArray, gamma_error: FloatArray
) -> None:
    if alpha.ndim != 1 or b.ndim not in (1, 2) or b.shape[-1] != len(alpha):
        raise ValueError(
            "evidence must have shape (m,) or (S, m), and unsignalled_rate (m,), "
            f"got {b.shape} and {alpha.shape}"
        )
    for name, array in (("signal_rate", gamma), ("signal_rate_stderr", gamma_error)):
        if array.shape != b.shape:
            raise ValueError(f"{name} must have shape {b.shape} as evidence has, got {array.shape}")
    for name, array in (
        ("unsignalled_rate", alpha),
        ("evidence", b),
        ("signal_rate", gamma),
        ("signal_rate_stderr", gamma_error),
    ):
        if np.any(array < 0.0):
            raise ValueError(f"{name} must be >= 0, got {array[array < 0.0][0]}")


def _with_errors(
    alpha: FloatArray, b: FloatArray, gamma: FloatArray, spread: FloatArray, single: bool
) -> SignalQuality:
    """Return the quality; ``spread`` is the covariance of (alpha, b_1, .., gamma_1, ..)."""
    sources, m = b.shape
    precision = np.where(gamma == 0.0, np.nan, -np.expm1(-b))
    share = np.nan_to_num(precision)
    false, true = gamma * (1.0 - share), gamma * share
    change = alpha + true.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = np.where(true > 0.0, true / change, np.where(change > 0.0, 0.0, np.nan))
    bound = np.isinf(b) & (gamma > 0.0)
    # derivatives by alpha, b and gamma; those of a source by its own b and gamma first
    by_b, by_gamma = np.where(bound, np.nan, false), share
    by_all = np.concatenate([np.ones((1, m)), by_b, by_gamma])
    errors: dict[str, list[FloatArray]] = {"recall": [], "precision": [], "false": []}
    for s in range(sources):
        own = np.zeros((3, 1 + 2 * sources, m))
        own[0, 1 + s], own[0, 1 + sources + s] = by_b[s], by_gamma[s]
        with np.errstate(invalid="ignore", divide="ignore"):
            own[0] = (own[0] - recall[s] * by_all) / change
        own[1, 1 + s] = np.where(bound[s], np.nan, 1.0 - precision[s])
        own[2, 1 + s], own[2, 1 + sources + s] = -by_b[s], 1.0 - share[s]
        for name, slope in zip(errors, own, strict=True):
            errors[name].append(_error(slope, spread))
    recall_error, precision_error, false_error = (np.array(rows) for rows in errors.values())
    return SignalQuality(
        change_rate=change,
        recall=_flat(recall, single),
        precision=_flat(precision, single),
        false_signal_rate=_flat(false, single),
        change_rate_stderr=_error(by_all, spread),
        recall_stderr=_flat(recall_error, single),
        precision_stderr=_flat(precision_error, single),
        false_signal_rate_stderr=_flat(false_error, single),
    )


def _error(slope: FloatArray, spread: FloatArray) -> FloatArray:
    """Return standard errors; terms with slope 0 are 0 even if their spread is unknown."""
    terms = slope.T[:, :, None] * spread * slope.T[:, None, :]
    flat = slope.T == 0.0
    terms[flat[:, :, None] | flat[:, None, :]] = 0.0
    return np.asarray(np.sqrt(terms.sum(axis=(1, 2))))


def _flat(rows: FloatArray, single: bool) -> FloatArray:
    return rows[0] if single else rows


def fit(crawls: Crawls, prior: GammaPrior | None, start: FloatArray | None = None) -> Fit:
    """Fit (alpha, b_1, .., b_S) of every page; ValueError where the prior does not fit."""
    m, d = len(crawls.offsets) - 1, crawls.design.shape[1]
    shape, rate = (NO_PRIOR if prior is None else prior).broadcast_to(m, d)
    return fit_pages(crawls, shape, rate, np.zeros((m, d)) if start is None else start)


def as_signal_fit(crawls: Crawls, result: Fit, single: bool) -> SignalFit:
    """Return the estimates, and the rates of signals, as a :class:`SignalFit`."""
    totals = page_sums(crawls, crawls.design)
    time, counts = totals[:, :1], totals[:, 1:]
    squares = page_sums(crawls, crawls.design[:, 1:] * crawls.weight[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        rate, rate_error = counts / time, np.sqrt(squares) / time
        rate_error[counts == 0.0] = np.nan
        error = np.sqrt(np.diagonal(result.covariance, axis1=1, axis2=2))
    return SignalFit(
        unsignalled_rate=result.theta[:, 0].copy(),
        evidence=_flat(result.theta[:, 1:].T.copy(), single),
        signal_rate=_flat(rate.T.copy(), single),
        unsignalled_rate_stderr=error[:, 0].copy(),
        evidence_stderr=_flat(error[:, 1:].T.copy(), single),
        signal_rate_stderr=_flat(rate_error.T.copy(), single),
        covariance=result.covariance,
        state=result.state,
        log_likelihood=result.log_likelihood,
        iterations=result.iterations,
        converged=result.converged,
    )
