"""Histories of crawls: a store that grows with every crawl, and checks of complete histories."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import LARGEST, floats, whole

SHORTEST = 1e-30
"""Shortest interval: times of the supported domain may be closer than its smallest number."""
MAX_CRAWLS = 4096
"""Rows per page where an estimator uses every crawl."""
FIRST_WIDTH = 32
"""First number of rows per page, or ``size`` if that is smaller."""

MAX_PAGES = 100_000_000
"""Largest number of pages of a history."""


class Histories(NamedTuple):
    """Crawl results of m pages in common arrays; page i has the rows begin[i] .. end[i] - 1.

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
    """The last crawls of every page: a ring buffer per page, with named columns.

    Crawl k of a page, from 0, is in row k modulo ``size``. Arrays start with fewer rows per page,
    and are doubled when a page needs more.

    Args:
        num_pages: m.
        size: largest number of rows per page, >= 1: the next crawl replaces the oldest.
        columns: dtype of each column; ``(dtype, shape)`` where an entry is an array.

    Attributes:
        columns: the rows of each column, (m, rows, ...).
        count: crawls appended of each page, (m,) int64.
    """

    def __init__(self, num_pages: int, size: int, **columns: DTypeLike) -> None:
        self.size, self._width = size, min(size, FIRST_WIDTH)
        self.count: IntArray = np.zeros(num_pages, np.int64)
        self.columns: dict[str, NDArray[Any]] = {
            name: np.zeros((num_pages, self._width, *np.dtype(kind).shape), np.dtype(kind).base)
            for name, kind in columns.items()
        }

    @property
    def nbytes(self) -> int:
        """Bytes of memory of all columns and counts."""
        return self.count.nbytes + sum(column.nbytes for column in self.columns.values())

    @property
    def num_rows(self) -> IntArray:
        """Number of rows in use of each page, (m,)."""
        return np.minimum(self.count, self.size)

    def append(self, page: IntArray, **values: ArrayLike) -> None:
        """Add crawls to the histories of their pages; crawls of one page come in order of time.

        Args:
            page: page of each crawl, (n,).
            values: entries of each column, (n, ...), or one for all.
        """
        row = _next_rows(page, self.count, self.size)
        if row.max(initial=0) >= self._width:
            self._widen(min(max(2 * self._width, int(row.max()) + 1), self.size))
        for name, column in self.columns.items():
            column[page, row] = values[name]

    def of_page(self, page: int, *names: str) -> list[NDArray[Any]]:
        """Return views of named columns of a page's crawls, (n, ...) each, in the order of rows."""
        num_rows = min(self.count[page], self.size)
        return [self.columns[name][page, :num_rows] for name in names]

    def intervals(self, pages: IntArray | None = None, since: float | None = None) -> Histories:
        """Return all crawls, or those of some pages, by columns ``elapsed`` and ``changed``.

        Args:
            pages: some pages, in this order; None for all.
            since: crawls with a ``time`` up to this count as unchanged after no time, which has no
                effect; None to use all crawls.
        """
        elapsed, changed = self.columns["elapsed"], self.columns["changed"]
        if since is not None:
            recent = self.columns["time"] > since
            elapsed, changed = np.where(recent, elapsed, 0.0), changed & recent
        index = np.arange(self.count.size) if pages is None else pages
        begin = index * self._width
        end = begin + self.num_rows[index]
        return Histories(elapsed.reshape(-1), changed.reshape(-1), begin, end)

    def _widen(self, width: int) -> None:
        """Give every page more rows, up to ``size`` rows; only then are rows used again."""
        for name, column in self.columns.items():
            wide = np.zeros((len(column), width, *column.shape[2:]), column.dtype)
            wide[:, : self._width] = column
            self.columns[name] = wide
        self._width = width


@compiled()
def _next_rows(page: IntArray, count: IntArray, size: int) -> IntArray:
    """Return the row that each new crawl is written to, (n,), and add the crawls to ``count``."""
    rows = np.empty(page.size, np.int64)
    for k in range(page.size):
        rows[k] = count[page[k]] % size
        count[page[k]] += 1
    return rows


def page_histories(
    intervals: ArrayLike, changed: ArrayLike, offsets: ArrayLike | None = None
) -> Histories:
    """Return checked crawls grouped by page; :func:`.fit_change_rates` explains arguments."""
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
    lengths, flags = lengths.reshape(-1), flags.reshape(-1)
    fault = _first_fault(lengths, flags)
    if fault >= 0 and lengths[fault] == 0.0:
        raise ValueError(f"changed must be False where intervals is 0, got True at {fault}")
    if fault >= 0:
        raise ValueError(
            f"intervals must be 0 or in [{SHORTEST:g}, {LARGEST:g}], got {lengths[fault]} at "
            f"{fault}; another unit of time may do"
        )
    return Histories(lengths, flags, ends[:-1], ends[1:])


@compiled()
def _first_fault(intervals: FloatArray, changed: BoolArray) -> int:
    """Return the position of the first invalid interval, or -1 if all are valid."""
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
    """Return truth values, or numbers 0 and 1, as a bool array; ValueError unless of ``shape``."""
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


def rows_of_pages(
    page: ArrayLike | None, num_pages: int | None, length: int
) -> tuple[IntArray, int]:
    """Return the page of each crawl, (n,) int64, and the number of pages.

    Raises:
        ValueError: a page is not a whole number in 0 .. m - 1.
    """
    array = np.zeros(length, np.int64) if page is None else np.asarray(page)
    if array.shape != (length,) or (array.dtype.kind not in "iu" and length):
        raise ValueError(
            f"page must be {length} whole numbers, got dtype {array.dtype}, shape {array.shape}"
        )
    if num_pages is None:
        num_pages = int(array.max(initial=0)) + 1
    num_pages = whole("num_pages (or the largest page + 1)", num_pages, 1, MAX_PAGES)
    if length and (array.min() < 0 or array.max() >= num_pages):
        raise ValueError(f"page must lie in [0, {num_pages - 1}], got {array.min()}..{array.max()}")
    return array.astype(np.int64), num_pages
