"""Counts of the crawls of each page, and if needed their history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray
from crawl_envs.types.arguments import whole


class CrawlCounts:
    """Counts of crawls and detected changes per page, and the time covered.

    Args:
        num_pages: m.
        histories: whether to store every crawl as well.

    Attributes:
        crawls: number of crawls, (m,) int64.
        changes: crawls that found a change, (m,) int64.
        time: total time between crawls, (m,).

    Raises:
        ValueError: the number of pages is below 1.
    """

    def __init__(self, num_pages: int, *, histories: bool) -> None:
        whole("num_pages", num_pages, 1)
        self.crawls: IntArray = np.zeros(num_pages, np.int64)
        self.changes: IntArray = np.zeros(num_pages, np.int64)
        self.time: FloatArray = np.zeros(num_pages)
        self._kept = histories
        self._elapsed: FloatArray = np.empty((num_pages, 4 if histories else 0))
        self._changed: BoolArray = np.empty(self._elapsed.shape, np.bool_)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.crawls, self.changes, self.time, self._elapsed, self._changed)
        return sum(array.nbytes for array in arrays)

    def add(self, log: CrawlLog) -> IntArray:
        """Add the crawls of a step after positive times, without probes; return their pages."""
        real_ones = np.flatnonzero(~log.probe & (log.elapsed > 0.0))
        pages, elapsed, changed = (
            log.page[real_ones],
            log.elapsed[real_ones],
            log.changed[real_ones],
        )
        if self._kept:
            for page, wait, has_changed in zip(pages, elapsed, changed, strict=True):
                self._keep(page, wait, has_changed)
                self.crawls[page] += 1
        else:
            np.add.at(self.crawls, pages, 1)
        np.add.at(self.changes, pages, changed)
        np.add.at(self.time, pages, elapsed)
        return pages

    def _keep(self, page: int, elapsed: float, changed: bool) -> None:
        row = self.crawls[page]
        if row == self._elapsed.shape[1]:
            self._elapsed = np.concatenate((self._elapsed, np.empty_like(self._elapsed)), axis=1)
            self._changed = np.concatenate((self._changed, np.empty_like(self._changed)), axis=1)
        self._elapsed[page, row] = elapsed
        self._changed[page, row] = changed

    def histories(self, pages: IntArray) -> tuple[FloatArray, BoolArray, IntArray]:
        """Return all crawls of some pages, (n,): waits, whether changed, start of each page.

        The first two are (k,), concatenated over pages, and the last is (n + 1,).
        """
        counts = self.crawls[pages]
        held = np.arange(self._elapsed.shape[1]) < counts[:, None]
        start = np.concatenate(([0], np.cumsum(counts)))
        return self._elapsed[pages][held], self._changed[pages][held], start


HASH_BYTES, OBSERVATION_BYTES = 4, 8
"""Bytes of a hash, and of an observation (two numbers of 4 bytes), as in section 5.2."""


class Footprint(NamedTuple):
    """Bytes of state per page, on average (section 5.2).

    Attributes:
        stored: bytes of the stored arrays.
        counted: bytes as counted in the paper: 4 per hash in use, 8 per observation.
    """

    stored: float
    counted: float
