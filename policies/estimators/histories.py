"""Histories of crawls: a store that follows a crawl, and crawls that are given at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import LARGEST, floats, whole
from crawl_envs.types.compiling import compiled

SHORTEST = 1e-30
"""Shortest interval: times of the supported domain may be closer than its smallest number."""
FEWEST_ROWS = 8
"""First number of rows of a page where every crawl is kept."""


class Histories(NamedTuple):
    """Crawls of m pages, those of page i in rows begin[i] .. end[i] - 1.

    Attributes:
        intervals: time between a crawl and the page's crawl before, (n,).
        changed: whether the page had changed, (n,) bool.
        begin: first row of each page, (m,) int64.
        end: row after the last of each page, (m,) int64.
    """

    intervals: FloatArray
    changed: BoolArray
    begin: IntArray
    end: IntArray


class CrawlHistories:
    """The last crawls of every page: a ring of rows per page, with named columns.

    Args:
        num_pages: m.
        size: rows per page, >= 1: the next crawl replaces the oldest. None to keep every crawl;
            a page's rows then move to a place of twice the size where they are full.
        columns: dtype of each column; ``(dtype, shape)`` where an entry is an array.

    Attributes:
        columns: all rows of each column, (n, ...).
        begin: first row of each page, (m,) int64.
        capacity: rows of each page, (m,) int64.
        count: crawls appended of each page, (m,) int64.
    """

    def __init__(self, num_pages: int, size: int | None, **columns: DTypeLike) -> None:
        self.size = size
        self.begin: IntArray = np.zeros(0, np.int64)
        self.capacity: IntArray = np.zeros(0, np.int64)
        self.count: IntArray = np.zeros(0, np.int64)
        self.columns: dict[str, NDArray[Any]] = {
            name: np.zeros((0, *np.dtype(kind).shape), np.dtype(kind).base)
            for name, kind in columns.items()
        }
        self._used = 0
        self.add_pages(num_pages)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (*self.columns.values(), self.begin, self.capacity, self.count)
        return sum(array.nbytes for array in arrays)

    @property
    def held(self) -> IntArray:
        """Number of rows in use of each page, (m,)."""
        return np.minimum(self.count, self.capacity)

    def add_pages(self, number: int) -> None:
        """Add pages without crawls after the others."""
        pages = np.arange(self.begin.size, self.begin.size + number)
        empty = np.zeros(number, np.int64)
        self.begin, self.capacity, self.count = (
            np.concatenate((array, empty)) for array in (self.begin, self.capacity, self.count)
        )
        if self.size is not None:
            self._reserve(pages, np.full(number, self.size))

    def append(self, page: IntArray, **values: ArrayLike) -> None:
        """Add crawls, those of a page in the order made.

        Args:
            page: page of each crawl, (n,).
            values: entries of each column, (n, ...), or one for all.
        """
        if self.size is None:
            wanted = self.count + np.bincount(page, minlength=self.count.size)
            full = np.flatnonzero(wanted > self.capacity)
            if full.size:
                twice = np.maximum(2 * self.capacity[full], FEWEST_ROWS)
                self._move(full, np.maximum(twice, wanted[full]))
        rows = _next_rows(np.asarray(page, np.int64), self.begin, self.capacity, self.count)
        for name, column in self.columns.items():
            column[rows] = values[name]

    def add(self, page: int, **values: ArrayLike) -> None:
        """Add one crawl of a page, where ``size`` is given: faster than :meth:`append`."""
        row = self.begin[page] + self.count[page] % self.capacity[page]
        self.count[page] += 1
        for name, column in self.columns.items():
            column[row] = values[name]

    def of_page(self, page: int, *names: str) -> list[NDArray[Any]]:
        """Return columns of a page's crawls, (n, ...) each, in the order of rows; views."""
        begin = self.begin[page]
        end = begin + min(self.count[page], self.capacity[page])
        return [self.columns[name][begin:end] for name in names]

    def intervals(self, pages: IntArray | None = None) -> Histories:
        """Return the columns ``elapsed`` and ``changed`` of some pages, or of all; views."""
        begin, held = self.begin, self.held
        if pages is not None:
            begin, held = begin[pages], held[pages]
        return Histories(self.columns["elapsed"], self.columns["changed"], begin, begin + held)

    def forget(self, since: float) -> None:
        """Delete the crawls whose ``time`` is not after ``since``, where every crawl is kept.

        Raises:
            ValueError: the store has a size per page.
        """
        if self.size is not None:
            raise ValueError(f"size must be None to forget crawls by time, got {self.size}")
        rows, places = _kept_rows(self.columns["time"], since, self.begin, self.count)
        for column in self.columns.values():
            column[places] = column[rows]

    def _rows(self, pages: IntArray) -> IntArray:
        """Return the rows in use of pages, page by page."""
        held = self.held[pages]
        first = self.begin[pages] - (np.cumsum(held) - held)
        rows: IntArray = np.arange(held.sum()) + np.repeat(first, held)
        return rows

    def _move(self, pages: IntArray, capacity: IntArray) -> None:
        """Move the rows of pages to larger places."""
        rows = self._rows(pages)
        self._reserve(pages, capacity)
        places = self._rows(pages)
        for column in self.columns.values():
            column[places] = column[rows]

    def _reserve(self, pages: IntArray, capacity: IntArray) -> None:
        """Give pages new places of these capacities, after all others."""
        self.capacity[pages] = capacity
        self.begin[pages] = self._used + np.cumsum(capacity) - capacity
        self._used += int(capacity.sum())
        for name, column in self.columns.items():
            if len(column) < self._used:
                more = max(self._used, 0 if self.size else 2 * len(column)) - len(column)
                empty = np.zeros((more, *column.shape[1:]), column.dtype)
                self.columns[name] = np.concatenate((column, empty))


@compiled()
def _next_rows(page: IntArray, begin: IntArray, capacity: IntArray, count: IntArray) -> IntArray:
    """Return the row of each new crawl, and count them."""
    rows = np.empty(page.size, np.int64)
    for k in range(page.size):
        i = page[k]
        rows[k] = begin[i] + count[i] % capacity[i]
        count[i] += 1
    return rows


@compiled()
def _kept_rows(
    time: FloatArray, since: float, begin: IntArray, count: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the rows of crawls after ``since``, where they belong, and change the counts."""
    rows = np.empty(count.sum(), np.int64)
    places, total = np.empty_like(rows), 0
    for i in range(count.size):
        place = begin[i]
        for row in range(begin[i], begin[i] + count[i]):
            if time[row] > since:
                rows[total], places[total] = row, place
                total += 1
                place += 1
        count[i] = place - begin[i]
    return rows[:total], places[:total]


def page_histories(
    intervals: ArrayLike, changed: ArrayLike, offsets: ArrayLike | None = None
) -> Histories:
    """Check crawls grouped by page; arguments and errors as in :func:`.fit_change_rates`."""
    lengths = np.ascontiguousarray(floats("intervals", intervals))
    if lengths.ndim not in (1, 2) or (lengths.ndim == 2 and offsets is not None):
        expected = "(n,)" if offsets is not None else "(n,) or (m, k)"
        raise ValueError(f"intervals must have shape {expected}, got {lengths.shape}")
    flags = truths("changed", changed, lengths.shape)
    if offsets is None:
        m, k = lengths.shape if lengths.ndim == 2 else (1, lengths.size)
        ends: IntArray = np.arange(m + 1) * np.int64(k)
    else:
        ends = _checked_offsets(offsets, lengths.size)
    check_intervals("intervals", lengths.reshape(-1), flags.reshape(-1))
    return Histories(lengths.reshape(-1), flags.reshape(-1), ends[:-1], ends[1:])


def check_intervals(name: str, intervals: FloatArray, changed: BoolArray) -> None:
    """Raise ValueError for an interval outside the domain, or 0 and changed; both (n,)."""
    fault = _first_fault(intervals, changed)
    if fault < 0:
        return
    if intervals[fault] == 0.0:
        raise ValueError(f"changed must be False where {name} is 0, got True at {fault}")
    raise ValueError(
        f"{name} must be 0 or in [{SHORTEST:g}, {LARGEST:g}], got {intervals[fault]} at {fault}; "
        "another unit of time may do"
    )


@compiled()
def _first_fault(intervals: FloatArray, changed: BoolArray) -> int:
    """Return the first invalid interval, or -1."""
    for k in range(len(intervals)):
        value = intervals[k]
        if (value == 0.0 and changed[k]) or not (value == 0.0 or SHORTEST <= value <= LARGEST):
            return k
    return -1


def _checked_offsets(offsets: ArrayLike, length: int) -> IntArray:
    ends = np.asarray(offsets)
    if ends.ndim != 1 or len(ends) < 2 or ends.dtype.kind not in "iu":
        raise ValueError(
            f"offsets must be m + 1 >= 2 whole numbers, got dtype {ends.dtype}, shape {ends.shape}"
        )
    ends = np.ascontiguousarray(ends, dtype=np.int64)
    if ends[0] != 0 or ends[-1] != length or np.any(np.diff(ends) < 0):
        raise ValueError(f"offsets must rise from 0 to {length}, the number of crawls, got {ends}")
    return ends


def truths(name: str, values: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """Return truth values, or numbers 0 and 1, of a shape; ValueError unless they are."""
    array = np.ascontiguousarray(values)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.dtype == np.bool_:
        return array
    array = floats(name, array, flags=True)
    wrong = (array != 0.0) & (array != 1.0)
    if wrong.any():
        raise ValueError(f"{name} must be True or False, got {array[wrong][0]}")
    return array.astype(np.bool_)


def numbers(name: str, values: ArrayLike) -> FloatArray:
    """Return float64 numbers; ValueError unless they are finite and >= 0."""
    array = floats(name, values)
    sound = np.isfinite(array) & (array >= 0.0)
    if not sound.all():
        raise ValueError(f"{name} must be finite and >= 0, got {array[~sound].flat[0]}")
    return array


def rows_of_pages(
    page: ArrayLike | None, num_pages: int | None, length: int
) -> tuple[IntArray, int]:
    """Return the page of each crawl, (n,) int64, and the number of pages.

    Raises:
        ValueError: a page is not a whole number in 0 .. m - 1.
    """
    given = np.zeros(length, np.int64) if page is None else np.asarray(page)
    if given.shape != (length,) or (given.dtype.kind not in "iu" and length):
        raise ValueError(
            f"page must be {length} whole numbers, got dtype {given.dtype}, shape {given.shape}"
        )
    if num_pages is None:
        num_pages = int(given.max(initial=0)) + 1
    num_pages = whole("num_pages", num_pages, 1)
    if length and (given.min() < 0 or given.max() >= num_pages):
        raise ValueError(f"page must lie in [0, {num_pages - 1}], got {given.min()}..{given.max()}")
    return given.astype(np.int64), num_pages
