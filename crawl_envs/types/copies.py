"""What a tracker knows of the copies that it holds, and what is true of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
HashArray: TypeAlias = NDArray[np.uint32]


class Sketches(NamedTuple):
    """The sketches of n versions of pages, one after the other.

    Attributes:
        start: that of version i is ``hashes[start[i]:start[i + 1]]``, (n + 1,) int64.
        hashes: of the version's fragments, the smallest or all, distinct and ascending within each
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
        """Put sketches together, in order."""
        start = np.concatenate(([0], np.cumsum([row.size for row in rows], dtype=np.int64)))
        return cls(start.astype(np.int64), np.concatenate([np.empty(0, np.uint32), *rows]))


class Copies(NamedTuple):
    """What the crawls of each page have told about its content; h base versions are kept.

    The base versions of a page are the last h copies that it was crawled for before the one that is
    held, the latest first; the first copy of all is the one that is known from the start.

    Attributes:
        size: fragments in the held copy, (m,) int64.
        divergence: of the held copy from each base version, in [0, 1], NaN where there is none;
            (h, m).
        age: by how much the base version is older than the held copy, NaN likewise; (h, m).
    """

    size: IntArray
    divergence: FloatArray
    age: FloatArray


class TrueDivergence(NamedTuple):
    """How far the held copies have come from the truth: hidden from trackers, for oracles.

    Attributes:
        divergence: of the live page from the held copy now, in [0, 1], (m,).
        area: its integral over time since the last crawl, (m,).
        changed: whether the page was updated since, (m,) bool.
        first_change: time from the last crawl to the first update since, NaN where none, (m,).
    """

    divergence: FloatArray
    area: FloatArray
    changed: NDArray[np.bool_]
    first_change: FloatArray
