"""Medians with intervals, and the test of paired values of Han et al. 2020, section 5."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

LEVEL = 0.95


class Median(NamedTuple):
    """A median and an interval around that of the population; NaN where there is none."""

    value: float
    low: float
    high: float


def median_of(values: ArrayLike, level: float = LEVEL) -> Median:
    """Return the median of values and an interval between two of them; NaN is left out.

    The number of n independent values below the median of the population is binomial (n, 1/2),
    whatever their law. With X so distributed, the r-th smallest and the r-th largest enclose that
    median with probability ``1 - 2 P(X < r)``: r is the largest for which this is at least
    ``level``. (Bland 2015 rounds a normal approximation of the same.) Fewer than 6 values have no
    interval of 95%.
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
    """Return the two-sided p-value of Wilcoxon's signed-rank test of pairs; 1 where all are equal.

    Pairs that are equal, or of which one is NaN, are left out. It supposes that pairs are
    independent of each other.
    """
    from scipy.stats import wilcoxon

    apart = np.ravel(np.asarray(first, np.float64) - np.asarray(second, np.float64))
    apart = apart[~np.isnan(apart) & (apart != 0.0)]
    return float(wilcoxon(apart).pvalue) if apart.size else 1.0
