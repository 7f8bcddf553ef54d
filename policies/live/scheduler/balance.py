"""Share a bandwidth among shards so that all of them crawl at the same value.

At the optimum all pages are crawled at one crawl value, the multiplier. A shard with a larger
share b crawls at a smaller value v, which falls by b^-p with p from about 0.5 to 2. An exchange
multiplies each share by the root of its value over the mean of all, so that the distance of ln v
from the mean is multiplied by 1 - p / 2.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray, IntArray

FARTHEST = 2.0
"""Largest factor by which an exchange multiplies or divides a shard's share of the bandwidth."""

MIN_SHARE = 1e-3
"""Least share of a shard, as a fraction of 1 / N; a shard without pages may get some later."""


class Balance:
    """The shares of N shards, and the values at which they crawled since the last exchange.

    Attributes:
        shares: shares of the bandwidth, (N,), of sum 1.
    """

    def __init__(self, shares: FloatArray) -> None:
        self.shares: FloatArray = shares / shares.sum()
        self._totals, self._counts, self._credit = np.zeros((3, shares.size))

    def note(self, shard: int, value: float, count: int) -> None:
        """Note that a shard crawled ``count`` pages at a crawl value, > 0."""
        self._totals[shard] += count * np.log(value)
        self._counts[shard] += count

    def forget(self) -> None:
        """Forget the crawl values noted since the last exchange."""
        self._totals[:] = self._counts[:] = 0.0

    def split(self, count: int, shards: IntArray) -> IntArray:
        """Divide ``count`` fetches among some shards by their shares; return whole numbers, (n,).

        Later calls make up for what rounding took from or gave to a shard.
        """
        exact = count * self.shares[shards] / self.shares[shards].sum()
        counts: IntArray = np.floor(exact).astype(np.int64)
        self._credit[shards] += exact - counts
        first = np.argsort(-self._credit[shards], kind="stable")[: count - counts.sum()]
        counts[first] += 1
        self._credit[shards[first]] -= 1.0
        return counts

    def exchange(self, empty: IntArray) -> None:
        """Move bandwidth to the shards that crawled at larger values, and forget the values.

        Args:
            empty: shards without pages, whose shares decrease. Other shards that did not crawl
                keep theirs.
        """
        active = np.flatnonzero(self._counts > 0.0)
        if active.size:
            log_value = self._totals[active] / self._counts[active]
            factor = np.exp(0.5 * (log_value - log_value.mean()))
            part = self.shares[active] * np.clip(factor, 1.0 / FARTHEST, FARTHEST)
            self.shares[active] = part * (self.shares[active].sum() / part.sum())
        self.shares[empty] /= FARTHEST
        shares = np.maximum(self.shares, MIN_SHARE / self.shares.size)
        self.shares = shares / shares.sum()
        self.forget()
