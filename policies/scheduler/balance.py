"""Shares of a bandwidth among shards, exchanged until all shards crawl at the same value.

At the optimum all pages are crawled at one crawl value, the multiplier. A shard with a larger
share crawls at a smaller value v; near a share b, ln v falls by a slope times ln b. The shares at
which all values are equal then follow from one equation, and slopes are secants of the last two
exchanges. The slope is 1 at first, which is that of a value in proportion to the age of a copy.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray, IntArray
from policies.solvers.multiplier import root

SLOPES = 0.25, 4.0
"""Least and largest slope."""

FARTHEST = 2.0
"""Most by which a share is multiplied or divided in an exchange."""

DAMPING = 0.7
"""Share of the way to the new shares, in logarithms."""

MOVED = 0.05
"""Change of ln b from which a secant is worth more than the slope before it."""

LEAST = 1e-3
"""Least share of a shard, of an equal one: a shard may get pages later."""


class Balance:
    """The shares of N shards, and the values at which they crawled since the last exchange.

    Attributes:
        shares: shares of the bandwidth, (N,), of sum 1.
    """

    def __init__(self, shares: FloatArray) -> None:
        self.shares = shares / shares.sum()
        self._slopes, self._before = np.ones(shares.size), np.full((2, shares.size), np.nan)
        self._totals, self._counts = np.zeros(shares.size), np.zeros(shares.size)
        self._credit = np.zeros(shares.size)

    def note(self, shard: int, value: float, count: int) -> None:
        """Take note of the value, >= 0, at which a shard crawled a number of pages."""
        self._totals[shard] += count * value
        self._counts[shard] += count

    def forget(self) -> None:
        """Forget the values so far."""
        self._totals[:] = self._counts[:] = 0.0

    def split(self, count: int, asked: IntArray) -> IntArray:
        """Return whole numbers of sum ``count`` by the shares of some shards, (len(asked),).

        What was rounded is made up for in later calls.
        """
        exact = count * self.shares[asked] / self.shares[asked].sum()
        counts: IntArray = np.floor(exact).astype(np.int64)
        self._credit[asked] += exact - counts
        first = np.argsort(-self._credit[asked], kind="stable")[: count - counts.sum()]
        counts[first] += 1
        self._credit[asked[first]] -= 1.0
        return counts

    def exchange(self, empty: IntArray) -> None:
        """Exchange shares by the values noted, and forget these.

        Args:
            empty: shards without pages, whose shares decrease. Other shards that did not crawl
                keep theirs.
        """
        seen = np.flatnonzero(self._counts > 0.0)
        log_share = np.log(self.shares)
        if seen.size > 1:
            value = self._totals[seen] / self._counts[seen]
            log_value = np.log(np.maximum(value, max(value.max() * 1e-6, 1e-300)))
            self._learn_slopes(seen, log_share[seen], log_value)
            step = equal_values(log_share[seen], log_value, self._slopes[seen])
            most = np.log(FARTHEST)
            log_share[seen] += DAMPING * np.clip(step, -most, most)
        log_share[empty] -= np.log(FARTHEST)
        shares = np.maximum(np.exp(log_share), LEAST / log_share.size)
        self.shares = shares / shares.sum()
        self.forget()

    def _learn_slopes(self, seen: IntArray, log_share: FloatArray, log_value: FloatArray) -> None:
        """Take the secants of shards whose shares have changed."""
        share, value = self._before[:, seen]
        moved = np.abs(log_share - share) > MOVED
        secant = (value - log_value)[moved] / (log_share - share)[moved]
        self._slopes[seen[moved]] = np.clip(secant, *SLOPES)
        self._before[:, seen] = log_share, log_value


def equal_values(log_share: FloatArray, log_value: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the changes of ln b by which all values are equal, and the sum of b is the same."""
    shares = np.exp(log_share) / np.exp(log_share).sum()
    relative = log_value - log_value.mean()

    def spend(at: float, rates: FloatArray) -> tuple[float, float]:
        spent = shares * np.exp((relative + np.log(at)) / slopes)
        return float(spent.sum()), float((spent / slopes).sum())

    changes: FloatArray = (relative + np.log(root(spend, 1.0).at)) / slopes
    return changes
