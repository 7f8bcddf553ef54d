r"""Change rates by moment matching: the expected number of changes equals the observed one.

For crawls after intervals w_n with observations o_n = 1 (changed) or 0, the rate xi solves

    sum_n (1 - exp(-xi w_n)) = sum_n o_n

(Upadhyay, Busa-Fekete, Kotlowski, Pal and Szorenyi 2020, "Learning to Crawl"). For equal intervals
this is the maximum of the likelihood, -ln(1 - mean o) / w. The equation is solved in the form
ln(sum exp(-xi w_n)) = ln(n - sum o): the left side is convex in xi and linear for equal
intervals, so Newton's method increases to the root from any point below it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import amounts, quantity, real
from policies.estimators.change_rates import LARGEST, RateFit, exp_minus_one
from policies.estimators.histories import Histories, page_histories

MAX_ITERATIONS = 200
SETTLED = 1e-8
"""A relative step after which the next would be below rounding."""


def match_moments(
    intervals: ArrayLike,
    changed: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    smoothing: float = 0.0,
) -> RateFit:
    """Estimate the change rate of every page by moment matching, from crawls at uneven intervals.

    Arguments and errors as in :func:`.fit_change_rates`. Without ``smoothing`` the rate is 0 if no
    crawl detected a change, inf if all did, nan without crawls. With ``smoothing`` it is positive
    and finite. ``stderr`` is the standard error of a root of an estimating equation, as moments are
    no likelihood: sqrt(sum e^-x (1 - e^-x)) / sum w e^-x with x = rate w. It is nan where the rate
    is 0 or inf.
    """
    crawls = page_histories(intervals, changed, offsets)
    return match_histories(crawls, quantity("smoothing", smoothing))


def moment_error_bound(
    intervals: ArrayLike, *, max_rate: float, failure_probability: float
) -> FloatArray:
    """Return a bound of the error of moment matching, valid with a given failure probability.

    ``|estimate - rate|`` <= sqrt(n ln(2 / delta) / 2) / sum_n w_n exp(-max_rate w_n). By
    Hoeffding's inequality the number of changes at crawls is within the numerator of its mean. This
    mean has at least the denominator as its slope in the rate (Upadhyay et al. 2020).

    Args:
        intervals: w_n >= 0, (..., n): the bound is of the last axis, n >= 1.
        max_rate: >= both the rate and the estimate, >= 0; otherwise the bound is invalid.
        failure_probability: delta, in (0, 1).

    Returns:
        The bound in changes per unit time, (...); inf where all intervals are 0.

    Raises:
        ValueError: an argument is out of its range.
    """
    lengths = np.atleast_1d(amounts("intervals", intervals))
    max_rate = real("max_rate", max_rate, least=0.0)
    delta = real("failure_probability", failure_probability, above=0.0)
    if delta >= 1.0:
        raise ValueError(f"failure_probability must be below 1, got {delta}")
    slope = np.sum(lengths * np.exp(-max_rate * lengths), axis=-1)
    with np.errstate(divide="ignore"):
        return np.asarray(math.sqrt(lengths.shape[-1] * math.log(2.0 / delta) / 2.0) / slope)


def match_histories(crawls: Histories, smoothing: float) -> RateFit:
    """Estimate change rates like :func:`match_moments`, for crawls that were checked before."""
    return RateFit(*_match_pages(crawls, smoothing))


@compiled()
def _match_pages(
    crawls: Histories, smoothing: float
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Return change rates, standard errors, numbers of evaluations and convergence, (m,) each."""
    m = len(crawls.begin)
    change_rate, stderr = np.empty(m), np.full(m, np.nan)
    iterations, converged = np.zeros(m, np.int64), np.ones(m, np.bool_)
    for i in range(m):
        rows = crawls.begin[i], crawls.end[i]
        hits, misses = split(crawls.intervals, crawls.changed, *rows, smoothing)
        changes, size = hits.size, hits.size + misses.size
        if changes == 0 or changes == size:
            change_rate[i] = np.nan if size == 0 else (0.0 if changes == 0 else np.inf)
            continue
        rate = -math.log1p(-changes / size) * size / (hits.sum() + misses.sum())  # below the root
        done = False
        while not done and iterations[i] < MAX_ITERATIONS:
            excess, fresh, slope, _ = _moments(hits, misses, rate)
            step = math.log1p(excess / misses.size) * fresh / slope
            rate += step
            iterations[i] += 1
            done = abs(step) <= SETTLED * rate
        converged[i], change_rate[i] = done, rate
        _, _, slope, variance = _moments(hits, misses, rate)
        stderr[i] = math.sqrt(variance) / slope
    return change_rate, stderr, iterations, converged


@inlined()
def split(
    intervals: FloatArray, changed: BoolArray, begin: int, end: int, smoothing: float
) -> tuple[FloatArray, FloatArray]:
    """Return a page's intervals with and without a change, imaginary ones included, all > 0."""
    hits, misses = np.full(end - begin + 1, smoothing), np.full(end - begin + 1, smoothing)
    changes = unchanged = 1 if smoothing > 0.0 else 0
    for k in range(begin, end):  # without branches; intervals of length 0 are never changed
        hits[changes] = misses[unchanged] = intervals[k]
        changes += changed[k]
        unchanged += (intervals[k] > 0.0) & (not changed[k])
    return hits[:changes], misses[:unchanged]


@inlined()
def _moments(
    hits: FloatArray, misses: FloatArray, rate: float
) -> tuple[float, float, float, float]:
    """Return four sums over a page's intervals w, with x = rate w.

    The first is the sum of e^-x less the number of unchanged intervals. The others are the sums of
    e^-x, of w e^-x and of e^-x (1 - e^-x). The first is computed as the sum of e^-x over changed
    intervals less that of 1 - e^-x over unchanged ones. This cancels less if intervals differ by
    many orders of magnitude.
    """
    _, above, slope, variance = _sums(hits, rate)
    below, fresh, other_slope, other_variance = _sums(misses, rate)
    return above - below, above + fresh, slope + other_slope, variance + other_variance


@inlined(fastmath={"contract", "nsz", "reassoc"})
def _sums(lengths: FloatArray, rate: float) -> tuple[float, float, float, float]:
    """Return the sums over ``lengths`` w of 1 - e^-x, e^-x, w e^-x, e^-x (1 - e^-x), x = rate w."""
    stale = fresh = slope = variance = 0.0
    for k in range(lengths.size):
        odds = exp_minus_one(min(lengths[k] * rate, LARGEST))  # of a change
        unchanged = 1.0 / (1.0 + odds)
        changed = odds * unchanged
        stale += changed
        fresh += unchanged
        slope += lengths[k] * unchanged
        variance += changed * unchanged
    return stale, fresh, slope, variance
