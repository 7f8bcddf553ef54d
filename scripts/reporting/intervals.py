"""Interval estimates by the bootstrap, as recommended by Agarwal et al. (2021), with their library.

Scores are arrays (n, k): n seeds, k settings. Seeds are resampled within each setting (the
stratified bootstrap), so that intervals are about other seeds in the same settings, not about
other settings. All are 95% percentile intervals.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray

LEVEL = 0.95


class Median(NamedTuple):
    """A sample median and an interval of the population median; NaN if undefined."""

    value: float
    low: float
    high: float


def median_of(values: ArrayLike, level: float = LEVEL) -> Median:
    """Return the median of values and an interval between two of them; NaN is ignored.

    The number X of n independent values below the population median is binomial (n, 1/2), for any
    continuous distribution. The r-th smallest and r-th largest value enclose the median with
    probability ``1 - 2 P(X < r)``; r is the largest for which this is at least ``level``. (Bland
    2015 rounds a normal approximation.) Fewer than 6 values have no interval of 95%.
    """
    from scipy.stats import binom

    given = np.ravel(np.asarray(values, np.float64))
    ordered = np.sort(given[~np.isnan(given)])
    count = ordered.size
    if count == 0:
        return Median(np.nan, np.nan, np.nan)
    below = binom.cdf(np.arange(count // 2 + 1), count, 0.5)
    rank = int(np.searchsorted(below, 0.5 * (1.0 - level), side="right"))
    middle = float(np.median(ordered))
    if rank == 0:
        return Median(middle, np.nan, np.nan)
    return Median(middle, float(ordered[rank - 1]), float(ordered[count - rank]))


def signed_rank(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of pairs; 1 if all are equal.

    Equal pairs and pairs with a NaN are ignored. Pairs are assumed to be independent.
    """
    from scipy.stats import wilcoxon

    apart = np.ravel(np.asarray(first, np.float64) - np.asarray(second, np.float64))
    apart = apart[~np.isnan(apart) & (apart != 0.0)]
    return float(wilcoxon(apart).pvalue) if apart.size else 1.0


REPETITIONS = 2000
"""Number of bootstrap samples."""

Aggregate = Callable[..., FloatArray]


class Interval(NamedTuple):
    """An estimate, and the ends of its 95% interval."""

    estimate: float
    low: float
    high: float


def mean(scores: FloatArray) -> Interval:
    """Return the mean over settings of the means over seeds, of scores (n, k)."""
    return _interval([_scores(scores)], lambda drawn: np.array([drawn.mean()]))


def interquartile_mean(scores: FloatArray) -> Interval:
    """Return the mean of the middle half of all scores (n, k), pooled over settings."""

    def middle(drawn: FloatArray) -> FloatArray:
        cut = drawn.size // 4
        return np.array([np.sort(drawn, axis=None)[cut : drawn.size - cut].mean()])

    return _interval([_scores(scores)], middle)


def probability_of_improvement(first: FloatArray, second: FloatArray) -> Interval:
    """Return the probability that the first scores higher than the second; ties count half.

    All pairs of seeds in the same setting are compared, and the mean is taken over the settings.
    Use :func:`share_improved` where seeds are paired.

    Args:
        first: scores (n, k).
        second: scores (n', k).

    Raises:
        ValueError: arrays of other shapes, or different numbers of settings.
    """
    first, second = _scores(first), _scores(second)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"numbers of settings must be equal, got {first.shape}, {second.shape}")

    def improved(above: FloatArray, below: FloatArray) -> FloatArray:
        larger, equal = above[:, None] > below, above[:, None] == below
        return np.array([(larger + 0.5 * equal).mean()])

    return _interval([first, second], improved)


def share_improved(differences: FloatArray) -> Interval:
    """Return the share of paired differences (n, k) above 0; ties count half."""
    return mean(np.heaviside(_scores(differences), 0.5))


class Profile(NamedTuple):
    """Shares of scores, and the ends of their 95% intervals, each (levels,)."""

    share: FloatArray
    low: FloatArray
    high: FloatArray


def profile(scores: FloatArray, levels: FloatArray) -> Profile:
    """Return the share of all scores (n, k) above each level: the performance profile."""
    given = {"": _scores(scores)}
    with _seeded():
        shares, intervals = _library().create_performance_profile(given, levels, reps=REPETITIONS)
    return Profile(shares[""], *intervals[""])


def _scores(scores: FloatArray) -> FloatArray:
    scores = np.asarray(scores, float)
    if scores.ndim != 2 or 0 in scores.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"scores must be finite numbers (seeds, settings), got an array {scores.shape}"
        )
    return scores


def _interval(scores: list[FloatArray], aggregate: Aggregate) -> Interval:
    """Bootstrap an aggregate of one number, deterministically."""
    library: Any = _library()
    given = {"": scores[0] if len(scores) == 1 else scores}
    with _seeded():
        estimates, intervals = library.get_interval_estimates(given, aggregate, reps=REPETITIONS)
    low, high = np.ravel(intervals[""])
    return Interval(float(estimates[""][0]), float(low), float(high))


def _library() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from its dependencies
        from rliable import library
    return library


@contextmanager
def _seeded() -> Iterator[None]:
    """Seed NumPy's global generator for the block: the library accepts no other."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
