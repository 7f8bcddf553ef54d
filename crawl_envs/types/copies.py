"""Held copies of pages: sketches of their fragments, known data, and their true divergence.

A sketch is the set of the s smallest hashes of a version's fragments (Broder, Glassman, Manasse and
Zweig 1997; section 5.2 of Olston and Pandey 2008), or of all of them. MinHash libraries use many
hash functions, or Python code; these are the papers' bottom-s sets under one hash function,
compared by compiled code that other kernels call for each of millions of pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types.arguments import whole

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
HashArray: TypeAlias = NDArray[np.uint32]

LOW = np.uint64(0xFFFFFFFF)
OFFSET = np.uint64(0x9E3779B9)
MIX_1 = np.uint64(0x7FEB352D)
MIX_2 = np.uint64(0x846CA68B)


class Sketches(NamedTuple):
    """Concatenated sketches of n versions of pages.

    Attributes:
        start: offsets; version i is ``hashes[start[i]:start[i + 1]]``, (n + 1,) int64.
        hashes: hashes of fragments, the smallest or all, distinct and ascending within each
            version, (total,) uint32.
    """

    start: IntArray
    hashes: HashArray

    def row(self, version: int) -> HashArray:
        """Return the sketch of version number ``number`` as a view of the hashes."""
        return self.hashes[self.start[version] : self.start[version + 1]]

    @classmethod
    def of_rows(cls, rows: Sequence[HashArray]) -> Sketches:
        """Build the Sketches of n versions from their single sketches, in order."""
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
        age: time from the base version to the held copy, NaN if there is none; (h, m).
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


@inlined(forceinline=True)
def mixed32(word: int) -> np.uint32:
    """Return the 32-bit hash of a fragment by a bijection, "lowbias32" of Wellons (2018).

    The fragments of the smallest hashes are then effectively random, even if fragments are numbered
    consecutively or sampled by a modulus.
    """
    bits = (np.uint64(word) + OFFSET) & LOW
    bits = ((bits ^ (bits >> np.uint64(16))) * MIX_1) & LOW
    bits = ((bits ^ (bits >> np.uint64(15))) * MIX_2) & LOW
    return np.uint32(bits ^ (bits >> np.uint64(16)))


@compiled()
def mix_all(words: HashArray) -> HashArray:
    """Return the hash of every fragment of an array by :func:`mixed32`, (n,)."""
    hashes = np.empty(words.size, np.uint32)
    for row in range(words.size):
        hashes[row] = mixed32(words[row])
    return hashes


@compiled()
def divergence(first: HashArray, second: HashArray, size: int) -> float:
    """Estimate the fragment staleness (eq. 3) of two sets of fragments from their sketches.

    It is 1 minus the share of common hashes among the ``size`` smallest of the union, which has no
    bias (Broder 1997). If neither sketch is truncated, because both sets have fewer fragments, it
    is exact.

    Args:
        first: one sketch, ascending, of ``size`` hashes or more unless it is the whole set.
        second: the other sketch.
        size: number of hashes in a sketch, s; 0 for all.

    Returns:
        A number in [0, 1]; 0 if both are empty.
    """
    total = first.size + second.size
    limit = size if 0 < size <= max(first.size, second.size) else total
    row, column, common, union = 0, 0, 0, 0
    while union < limit and row < first.size and column < second.size:
        union += 1
        if first[row] == second[column]:
            common += 1
            row += 1
            column += 1
        elif first[row] < second[column]:
            row += 1
        else:
            column += 1
    union = min(limit, union + first.size - row + second.size - column)
    return 1.0 - common / union if union > 0 else 0.0


def sketch_of(hashes: ArrayLike, size: int | None = None) -> HashArray:
    """Return the sketch of a set of fragments.

    Args:
        hashes: the fragments, integers in [0, 2**32), in any order, repeated or not, (n,).
        size: number of hashes to keep, s >= 1; None for all.

    Returns:
        The smallest ``size`` of their mixed hashes, distinct and ascending, uint32.

    Raises:
        ValueError: the fragments are not such numbers, or the size is below 1.
    """
    words = np.asarray(hashes)
    if words.size == 0 and words.ndim == 1:
        words = words.astype(np.uint32)
    fits = words.ndim == 1 and words.dtype.kind in "iu"
    if not fits or np.any(words < 0) or np.any(words > LOW):
        raise ValueError(
            "hashes must be whole numbers in [0, 2**32), shape (n,), got dtype "
            f"{words.dtype}, shape {words.shape}: {words}"
        )
    if size is not None:
        whole("size", size, 1)
    return np.unique(mix_all(np.ascontiguousarray(words, np.uint32)))[:size]
