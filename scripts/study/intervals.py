"""Interval estimates by the bootstrap over seeds.

Scores are arrays (n, k): n seeds, k settings. Settings share their seeds, so their errors are
correlated: a seed is resampled with its scores in all settings. Intervals hold for other seeds in
the same settings. All but :func:`crossed_mean` are 95% percentile intervals. With few seeds these
are too narrow (Hesterberg 2015): their distance from the estimate is multiplied by t / z
sqrt(n / (n - 1)), with the quantiles t of Student's and z of the normal distribution. The interval
of a mean is then close to Student's, from three seeds on. A single seed has no interval: NaN.

Scores of an agent with several trainings are dependent if they are of the same training. Then
``groups`` has the number of the training of each seed, whole trainings are resampled, and n is
their number (Davison and Hinkley 1997, section 3.8).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray, IntArray

LEVEL = 0.95


ENDS = ("", ", low", ", high")
"""Suffixes of the metrics for an estimate, and for the low and high end of its interval."""


class Interval(NamedTuple):
    """An estimate, and the ends of its 95% interval; NaN where undefined."""

    estimate: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half of the length of the interval."""
        return (self.high - self.low) / 2.0

    def rows(self, id: str, setting: str, policy: str, metric: str) -> list[Row]:
        """Return rows of the estimate and the two ends; ``ENDS`` are added to the metric."""
        return [
            Row(id, setting, policy, 0, metric + end, value)
            for end, value in zip(ENDS, self, strict=True)
        ]


def median_of(values: ArrayLike, level: float = LEVEL) -> Interval:
    """Return the median of values, and its interval between two of the values; NaN is ignored.

    SciPy's ``quantile_test`` gives the interval (Conover 1999, section 3.2), for any continuous
    distribution. Fewer than 6 values have no interval of 95%.
    """
    from scipy.stats import quantile_test

    numbers = np.ravel(np.asarray(values, np.float64))
    numbers = numbers[~np.isnan(numbers)]
    if numbers.size == 0:
        return Interval(np.nan, np.nan, np.nan)
    test: Any = quantile_test(numbers, p=0.5)
    low, high = test.confidence_interval(level)
    return Interval(float(np.median(numbers)), float(low), float(high))


def signed_rank(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of pairs; 1 if all are equal.

    Equal pairs and pairs with a NaN are ignored. Pairs are assumed to be independent.
    """
    from scipy.stats import wilcoxon

    differences = np.ravel(np.asarray(first, np.float64) - np.asarray(second, np.float64))
    differences = differences[~np.isnan(differences) & (differences != 0.0)]
    return float(wilcoxon(differences).pvalue) if differences.size else 1.0


REPETITIONS = 2_000
"""Number of bootstrap samples."""
PAIRED_REPETITIONS = 20_000
"""Number of bootstrap samples of paired differences, whose sign decides ties."""


def mean(
    scores: FloatArray, repetitions: int = REPETITIONS, groups: tuple[int, ...] = ()
) -> Interval:
    """Return the mean of scores (n seeds, k settings), with an interval over seeds or groups."""
    by_seed = _scores(scores).mean(axis=1)
    drawn = by_seed[_seeds(by_seed.size, repetitions=repetitions, groups=groups)].mean(axis=1)
    return _interval(by_seed.mean(), drawn, len({*groups}) or by_seed.size)


def crossed_mean(scores: ArrayLike) -> Interval:
    """Return the mean of scores (n sites, k trainings), with an interval over both.

    The variance is the sum of those of the means of n rows and of k columns, with the degrees of
    freedom of Satterthwaite (1946). It is too large by that of the interaction over n k. One row
    or column adds nothing; a single score has no interval. Coverage is lower, .82 to .92, for 8
    sites of skewed scores, and for two trainings that differ about as much as sites do.
    """
    from scipy.stats import t

    table = _scores(np.asarray(scores, np.float64))
    means = [table.mean(axis=axis) for axis in (1, 0) if table.shape[1 - axis] > 1]
    variances = np.array([part.var(ddof=1) / part.size for part in means])
    variance, estimate = variances.sum(), float(table.mean())
    if not means or variance == 0.0:
        return Interval(estimate, *(estimate if means else np.nan,) * 2)
    degrees = variance**2 / sum(variances**2 / [part.size - 1 for part in means])
    half = float(t.ppf(0.5 * (1.0 + LEVEL), degrees) * np.sqrt(variance))
    return Interval(estimate, estimate - half, estimate + half)


def interquartile_mean(scores: FloatArray, groups: tuple[int, ...] = ()) -> Interval:
    """Return the mean of the middle half of all scores (n seeds, k settings), and its interval."""
    scores = _scores(scores)
    drawn = _middle(scores[_seeds(len(scores), groups=groups)])
    return _interval(_middle(scores), drawn, len({*groups}) or len(scores))


def interquartile_lead(
    first: FloatArray, second: FloatArray, groups: tuple[int, ...] = ()
) -> Interval:
    """Return the first interquartile mean minus the second, of scores (n, k) on the same seeds."""
    first, second = _scores(first), _scores(second)
    drawn = _seeds(len(first), groups=groups)
    lead = _middle(first[drawn]) - _middle(second[drawn])
    return _interval(_middle(first) - _middle(second), lead, len({*groups}) or len(first))


def _middle(scores: FloatArray) -> FloatArray:
    """Return the mean of the middle half of scores (..., n, k), pooled over the last two axes."""
    pooled = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    cut = pooled.shape[-1] // 4
    averages: FloatArray = pooled[..., cut : pooled.shape[-1] - cut].mean(axis=-1)
    return averages


def probability_of_improvement(first: FloatArray, second: FloatArray) -> Interval:
    """Return the probability that the first policy scores higher; ties count half.

    All pairs of seeds in the same setting are compared, and the mean is taken over the settings.
    If seeds are paired, use :func:`share_improved`.

    Args:
        first: scores (n, k).
        second: scores (n', k).

    Raises:
        ValueError: arrays of other shapes, or different numbers of settings.
    """
    first, second = _scores(first), _scores(second)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"numbers of settings must be equal, got {first.shape}, {second.shape}")
    above = np.heaviside(first[:, None] - second, 0.5).mean(axis=2)
    first_seeds, second_seeds = _seeds(len(first)), _seeds(len(second), stream=1)
    drawn = above[first_seeds[:, :, None], second_seeds[:, None, :]].mean(axis=(1, 2))
    return _share(_interval(above.mean(), drawn, min(above.shape)))


def share_improved(differences: FloatArray) -> Interval:
    """Return the share of paired differences (n, k) above 0, and its interval; ties count half."""
    return _share(mean(np.heaviside(_scores(differences), 0.5)))


def _share(interval: Interval) -> Interval:
    """Return an interval with its estimate and ends clipped to [0, 1]."""
    return Interval(*np.clip(interval, 0.0, 1.0).tolist())


def _scores(scores: FloatArray) -> FloatArray:
    scores = np.asarray(scores, float)
    if scores.ndim != 2 or 0 in scores.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"scores must be finite numbers (seeds, settings), got an array {scores.shape}"
        )
    return scores


@cache
def _seeds(
    count: int, stream: int = 0, repetitions: int = REPETITIONS, groups: tuple[int, ...] = ()
) -> IntArray:
    """Return the seed indices of each bootstrap sample, (repetitions, count); always the same.

    In a sample each group is replaced by a group that is drawn, seed by seed. A smaller group
    begins again after its last seed, and a larger one loses its last seeds.
    """
    group = np.unique(groups or range(count), return_inverse=True)[1]
    sizes, order = np.bincount(group), np.argsort(group, kind="stable")
    start, place = np.cumsum(sizes) - sizes, np.empty(count, np.int64)
    place[order] = np.arange(count) - start[group[order]]
    rng = np.random.default_rng([count, stream])
    drawn = rng.integers(0, sizes.size, (repetitions, sizes.size))[:, group]
    return np.ascontiguousarray(order[start[drawn] + place % sizes[drawn]])


def _interval(estimate: FloatArray | float, drawn: FloatArray, count: int) -> Interval:
    low, high = _ends(estimate, drawn, count)
    return Interval(float(estimate), float(low), float(high))


def _ends(estimate: FloatArray | float, drawn: FloatArray, count: int) -> FloatArray:
    """Return the low and high ends of intervals from bootstrap samples, (2, ...).

    ``drawn`` has the statistic of each sample of ``count`` seeds, (repetitions, ...).
    """
    from scipy.stats import norm, t

    if count == 1:
        return np.full((2, *drawn.shape[1:]), np.nan)
    tails = np.array([0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL)])
    wider = t.ppf(tails[1], count - 1) / norm.ppf(tails[1]) * np.sqrt(count / (count - 1))
    ends: FloatArray = estimate + wider * (np.quantile(drawn, tails, axis=0) - estimate)
    return ends
