"""Known data on the held copies of pages, and their true divergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
HashArray: TypeAlias = NDArray[np.uint32]


class Sketches(NamedTuple):
    """Concatenated sketches of n versions of pages.

    Attributes:
        start: offsets; version i is ``hashes[start[i]:start[i + 1]]``, (n + 1,) int64.
        hashes: hashes of fragments, the smallest or all, distinct and ascending within each
            version, (total,) uint32.
    """

    start: IntArray
    hashes: HashArray

    @property
    def number(self) -> int:
        """Number of sketches, n."""
        return int(self.start.size) - 1

    def row(self, version: int) -> HashArray:
        """Return the sketch of one version, a view."""
        return self.hashes[self.start[version] : self.start[version + 1]]

    @classmethod
    def of_rows(cls, rows: Sequence[HashArray]) -> Sketches:
        """Concatenate sketches in order."""
        start = np.concatenate(([0], np.cumsum([row.size for row in rows], dtype=np.int64)))
        return cls(start.astype(np.int64), np.concatenate([np.empty(0, np.uint32), *rows]))


class Copies(NamedTuple):
    """Known data on the held copies and on h base versions of each page.

    The base versions of a page are the h crawled copies before the held one, the latest first; the
    first copy is the content at time 0.

    Attributes:
        size: number of fragments of the held copy, (m,) int64.
        divergence: distance of the held copy from each base version, in [0, 1], NaN if there is
            none; (h, m).
        age: time from the base version to the held copy, NaN likewise; (h, m).
    """

    size: IntArray
    divergence: FloatArray
    age: FloatArray


class TrueDivergence(NamedTuple):
    """True divergence of live pages from held copies, hidden from trackers; for oracles.

    Attributes:
        divergence: current distance of the live page from the held copy, in [0, 1], (m,).
        area: integral of the divergence over time since the last crawl, (m,).
        changed: whether the page was updated since the last crawl, (m,) bool.
        first_change: time from the last crawl to the first update, NaN if none, (m,).
    """

    divergence: FloatArray
    area: FloatArray
    changed: NDArray[np.bool_]
    first_change: FloatArray
