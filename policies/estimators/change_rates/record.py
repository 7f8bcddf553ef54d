"""A compact, growing record of crawls, grouped by page on request."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from policies.estimators.change_rates.page_histories import Histories, check_intervals
from policies.estimators.histories import column, numbers, rows_of_pages, truths

Scalar = TypeVar("Scalar", bound=np.generic)

INITIAL_CAPACITY = 1024


class CrawlRecord:
    """A growing table of crawls of m pages: 13 bytes per crawl, 21 with times.

    Crawls of a page are in the order made; pages may be in any order.

    Args:
        num_pages: m.
        timed: whether the time of each crawl is kept.
    """

    def __init__(self, num_pages: int, *, timed: bool) -> None:
        self.num_pages, self.timed = num_pages, timed
        self.size = 0
        self._page: NDArray[np.int32] = np.zeros(INITIAL_CAPACITY, np.int32)
        self._elapsed: FloatArray = np.zeros(INITIAL_CAPACITY)
        self._changed: BoolArray = np.zeros(INITIAL_CAPACITY, np.bool_)
        self._time: FloatArray = np.zeros(INITIAL_CAPACITY if timed else 0)

    def append(
        self,
        page: ArrayLike,
        elapsed: ArrayLike,
        changed: ArrayLike,
        time: ArrayLike | None = None,
    ) -> int:
        """Add crawls; return their number.

        Args:
            page: (n,) int.
            elapsed: time since the page's crawl before, >= 0; (n,).
            changed: whether the page had changed, (n,) bool.
            time: time of each crawl, (n,), or one time for all; required if ``timed``.

        Raises:
            ValueError: a number is negative or not finite, shapes disagree, a page is out of
                range, a page had changed in no time, or a required time is missing.
        """
        lengths = np.atleast_1d(numbers("elapsed", elapsed))
        if lengths.ndim != 1:
            raise ValueError(f"elapsed must have shape (n,), got {lengths.shape}")
        count = len(lengths)
        flags = truths("changed", np.atleast_1d(changed), count) > 0.0
        pages, _ = rows_of_pages(np.atleast_1d(page), self.num_pages, count)
        check_intervals("elapsed", lengths, flags)
        times = self._times(time, count)
        rows = slice(self.size, self.size + count)
        self._grow(self.size + count)
        self._page[rows], self._elapsed[rows], self._changed[rows] = pages, lengths, flags
        if self.timed:
            self._time[rows] = times
        self.size += count
        return count

    def by_page(self, since: float = -math.inf, last: int = 0) -> Histories:
        """Return the crawls of each page after ``since``, in order, at most ``last`` per page.

        The other crawls are deleted: later calls cannot return them.

        Args:
            since: requires times; -inf for all crawls.
            last: 0 for all crawls.
        """
        whole = slice(0, self.size)
        if since > -math.inf:
            self._keep(self._time[whole] > since)
            whole = slice(0, self.size)
        page, offsets = self._page[whole], np.zeros(self.num_pages + 1, np.int64)
        np.cumsum(np.bincount(page, minlength=self.num_pages), out=offsets[1:])
        if last > 0 and (np.diff(offsets) > last).any():
            self._keep(_latest(page, np.diff(offsets), last))
            return self.by_page()
        intervals, changed = _scatter(page, self._elapsed[whole], self._changed[whole], offsets)
        return Histories(intervals, changed, offsets)

    def _keep(self, kept: BoolArray) -> None:
        """Delete all crawls except those ``kept``, (size,)."""
        if kept.all():
            return
        count = int(kept.sum())
        for array in self._columns():
            array[:count] = array[: self.size][kept]
        self.size = count

    def _columns(self) -> list[NDArray[Any]]:
        kept: list[NDArray[Any]] = [self._page, self._elapsed, self._changed]
        return [*kept, self._time] if self.timed else kept

    def _times(self, time: ArrayLike | None, count: int) -> FloatArray:
        if time is None:
            if self.timed:
                raise ValueError("time must be given where a window of time is kept, got None")
            return np.zeros(0)
        if np.ndim(time) == 0:
            return np.full(count, numbers("time", time))
        return column("time", time, count)

    def _grow(self, size: int) -> None:
        if size <= len(self._page):
            return
        capacity = max(size, 2 * len(self._page))

        self._page = _longer(self._page, capacity)
        self._elapsed = _longer(self._elapsed, capacity)
        self._changed = _longer(self._changed, capacity)
        if self.timed:
            self._time = _longer(self._time, capacity)


def _longer(array: NDArray[Scalar], capacity: int) -> NDArray[Scalar]:
    """Return the array with zeros appended."""
    grown = np.zeros(capacity, array.dtype)
    grown[: len(array)] = array
    return grown


@compiled()
def _scatter(
    page: NDArray[np.int32], elapsed: FloatArray, changed: BoolArray, offsets: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Return intervals and changes grouped by page, in the order given."""
    intervals, flags = np.empty(len(page)), np.empty(len(page), np.bool_)
    place = offsets[:-1].copy()
    for k in range(len(page)):
        row = place[page[k]]
        intervals[row], flags[row] = elapsed[k], changed[k]
        place[page[k]] = row + 1
    return intervals, flags


@compiled()
def _latest(page: NDArray[np.int32], count: IntArray, last: int) -> BoolArray:
    """Return which crawls are among the last of their page."""
    kept = np.empty(len(page), np.bool_)
    ahead = count.copy()
    for k in range(len(page)):
        kept[k] = ahead[page[k]] <= last
        ahead[page[k]] -= 1
    return kept
