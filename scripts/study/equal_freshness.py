"""Crawls that a policy needs for a given freshness, between the budgets that it was played at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.evaluation import Row


def crawls_at(freshness: float, crawls: ArrayLike, curve: ArrayLike) -> float:
    """Return the least crawls with which a policy has a freshness.

    Between two budgets freshness is taken to be linear in the logarithm of the crawls, and where it
    falls with the crawls, its largest value so far. Nothing is extrapolated.

    Args:
        freshness: the freshness.
        crawls: crawls in any unit, rising, (k,).
        curve: freshness of the policy with these crawls, (k,).

    Returns:
        The crawls; 0 if the fewest are fresher, infinity if the most are not as fresh.
    """
    given, rising = np.asarray(crawls, float), np.maximum.accumulate(np.asarray(curve, float))
    above = int(np.searchsorted(rising, freshness))
    if above == given.size:
        return math.inf
    if above == 0:
        return float(given[0]) if freshness == rising[0] else 0.0
    low, high = (math.log(bound) for bound in given[above - 1 : above + 1])
    part = (freshness - rising[above - 1]) / (rising[above] - rising[above - 1])
    return math.exp(low + part * (high - low))


ENDS = (", at least", ", at most")
"""What the metrics of the ends of a :class:`Saved` add to its name."""


class Saved(NamedTuple):
    """A share of crawls, from ``least`` to ``most``: the same number if it is known."""

    least: float
    most: float

    def rows(self, id: str, setting: str, policy: str, metric: str) -> list[Row]:
        """Return the ends in percent as rows, with ``ENDS`` after the metric."""
        return [
            Row(id, setting, policy, 0, metric + end, 100.0 * value)
            for end, value in zip(ENDS, self, strict=True)
        ]


def saved(freshness: float, spent: float, crawls: Sequence[float], curve: ArrayLike) -> Saved:
    """Return the share of ``spent`` crawls that a policy saves at a freshness.

    Args:
        freshness: what ``spent`` crawls give another policy.
        spent: its crawls, > 0.
        crawls: crawls that the policy was played with, rising, (k,).
        curve: its freshness with these, (k,).

    Returns:
        The share, negative if more crawls are needed. If its fewest crawls are fresher, from what
        they save to 1; if its most are not as fresh, from minus infinity to what they save.
    """
    needed = crawls_at(freshness, crawls, curve)
    fewest, most = 1.0 - crawls[0] / spent, 1.0 - crawls[-1] / spent
    if needed == 0.0:
        return Saved(fewest, 1.0)
    if math.isinf(needed):
        return Saved(-math.inf, most)
    return Saved(1.0 - needed / spent, 1.0 - needed / spent)


def median_saved(shares: Sequence[Saved]) -> Saved:
    """Return the range of the median of shares within their ranges."""
    least, most = np.median(shares, axis=0)
    return Saved(float(least), float(most))
