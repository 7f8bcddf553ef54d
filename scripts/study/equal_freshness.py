"""Interpolate how many crawls a policy needs for a freshness, between simulated budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.evaluation import Row


def crawls_at(freshness: float, crawls: ArrayLike, curve: ArrayLike) -> float:
    """Return the fewest crawls with which a policy reaches a freshness.

    Freshness is interpolated linearly in the logarithm of the crawls. If it falls with more
    crawls, the largest value at fewer crawls is used. Nothing is extrapolated.

    Args:
        freshness: the freshness to reach.
        crawls: crawls in any unit, rising, (k,).
        curve: freshness of the policy with these crawls, (k,).

    Returns:
        The crawls; 0 if the smallest budget is fresher, infinity if the largest is less fresh.
    """
    budgets, rising = np.asarray(crawls, float), np.maximum.accumulate(np.asarray(curve, float))
    above = int(np.searchsorted(rising, freshness))
    if above == budgets.size:
        return math.inf
    if above == 0:
        return float(budgets[0]) if freshness == rising[0] else 0.0
    low, high = (math.log(bound) for bound in budgets[above - 1 : above + 1])
    part = (freshness - rising[above - 1]) / (rising[above] - rising[above - 1])
    return math.exp(low + part * (high - low))


ENDS = (", at least", ", at most")
"""Suffixes of the metrics for the low and high end of a :class:`Saved`."""


class Saved(NamedTuple):
    """Lower and upper bound of a share of saved crawls; they are equal if the share is known."""

    low: float
    high: float

    def rows(self, id: str, setting: str, policy: str, metric: str) -> list[Row]:
        """Return two rows, of the lower and upper bound in percent; ``ENDS`` follow the metric."""
        return [
            Row(id, setting, policy, 0, metric + end, 100.0 * value)
            for end, value in zip(ENDS, self, strict=True)
        ]


def saved(freshness: float, spent: float, crawls: Sequence[float], curve: ArrayLike) -> Saved:
    """Return the share of ``spent`` crawls that a policy saves at a freshness.

    Args:
        freshness: freshness of a baseline with ``spent`` crawls.
        spent: crawls of the baseline, > 0.
        crawls: crawls that the policy was simulated with, rising, (k,).
        curve: freshness of the policy with each number of crawls, (k,).

    Returns:
        The share, negative if more crawls are needed. The range ends at 1 if the smallest budget
        exceeds the freshness, and begins at minus infinity if the largest does not reach it.
    """
    needed = crawls_at(freshness, crawls, curve)
    lowest, highest = 1.0 - crawls[0] / spent, 1.0 - crawls[-1] / spent
    if needed == 0.0:
        return Saved(lowest, 1.0)
    if math.isinf(needed):
        return Saved(-math.inf, highest)
    return Saved(1.0 - needed / spent, 1.0 - needed / spent)


def median_saved(shares: Sequence[Saved]) -> Saved:
    """Return the lowest and highest possible median of shares that are known by bounds."""
    low, high = np.median(shares, axis=0)
    return Saved(float(low), float(high))
