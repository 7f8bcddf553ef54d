"""Sketches of fragment sets: estimates of the divergence of two versions from a few hashes.

A sketch is the set of the s smallest hashes of a version's fragments (Broder, Glassman, Manasse and
Zweig 1997; section 5.2 of Olston and Pandey 2008), or of all of them. MinHash libraries use many
hash functions, or Python code; these are the papers' bottom-s sets under one hash function,
compared by compiled code that other kernels call for each of millions of pages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import whole
from crawl_envs.types.compiling import compiled
from crawl_envs.types.copies import HashArray, Sketches

LOW = np.uint64(0xFFFFFFFF)
OFFSET = np.uint64(0x9E3779B9)
MIX_1 = np.uint64(0x7FEB352D)
MIX_2 = np.uint64(0x846CA68B)


# Kernels


@compiled(forceinline=True)
def mixed32(word: int) -> np.uint32:
    """Return a hash of 32 bits, one to one (the finaliser "lowbias32" of Wellons 2018).

    The fragments of the smallest hashes are then effectively random, even if fragments are
    numbered consecutively or sampled by a modulus.
    """
    bits = (np.uint64(word) + OFFSET) & LOW
    bits = ((bits ^ (bits >> np.uint64(16))) * MIX_1) & LOW
    bits = ((bits ^ (bits >> np.uint64(15))) * MIX_2) & LOW
    return np.uint32(bits ^ (bits >> np.uint64(16)))


@compiled()
def mix_all(words: HashArray) -> HashArray:
    """Return the hash of every word, (n,)."""
    hashes = np.empty(words.size, np.uint32)
    for row in range(words.size):
        hashes[row] = mixed32(words[row])
    return hashes


@compiled()
def similarity(first: HashArray, second: HashArray, size: int) -> float:
    """Estimate the Jaccard similarity of two sets without bias, from their sketches (Broder 1997).

    The estimate is the share of common hashes among the ``size`` smallest of the union. If neither
    sketch is truncated, because both sets have fewer fragments, it is exact.

    Args:
        first: one sketch, ascending, of ``size`` hashes or more unless it is the whole set.
        second: the other sketch.
        size: number of hashes in a sketch, s; 0 for all.

    Returns:
        A number in [0, 1]; 1 if both are empty.
    """
    most = first.size + second.size
    limit = size if 0 < size <= max(first.size, second.size) else most
    one, other, common, union = 0, 0, 0, 0
    while union < limit and one < first.size and other < second.size:
        union += 1
        if first[one] == second[other]:
            common += 1
            one += 1
            other += 1
        elif first[one] < second[other]:
            one += 1
        else:
            other += 1
    union = min(limit, union + first.size - one + second.size - other)
    return common / union if union > 0 else 1.0


@compiled()
def divergence(first: HashArray, second: HashArray, size: int) -> float:
    """Estimate the fragment staleness (eq. 3) of two sets: 1 - :func:`similarity`, 0 of empty."""
    return 1.0 - similarity(first, second, size)


@compiled()
def row_divergences(
    start: IntArray,
    hashes: HashArray,
    other_start: IntArray,
    other_hashes: HashArray,
    size: int,
    divergences: FloatArray,
) -> None:
    """Write the divergences of pairs of sketches, row by row."""
    for row in range(divergences.size):
        first = hashes[start[row] : start[row + 1]]
        second = other_hashes[other_start[row] : other_start[row + 1]]
        divergences[row] = divergence(first, second, size)


# Functions that check their arguments


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
            f"hashes must be whole numbers in [0, 2**32), shape (n,), got dtype {words.dtype}, "
            f"shape {words.shape}{_range(words)}"
        )
    count = _size(size)
    mixed = np.unique(mix_all(np.ascontiguousarray(words, np.uint32)))
    return mixed[:count].copy() if count else mixed


def sketch_similarity(first: ArrayLike, second: ArrayLike, size: int | None) -> float:
    """Estimate the Jaccard similarity of two sets from their sketches; see :func:`similarity`.

    Args:
        first: one sketch.
        second: the other sketch.
        size: largest number of hashes in both sketches, >= 1; None for all. It is required, since
            two sketches of equal length may be whole sets or truncated.

    Raises:
        ValueError: a sketch is not ascending hashes, or the size is below 1.
    """
    return float(similarity(_sketch("first", first), _sketch("second", second), _size(size)))


def sketch_divergence(first: ArrayLike, second: ArrayLike, size: int | None) -> float:
    """Estimate the fragment staleness of two sets from their sketches, in [0, 1]; 0 if empty.

    Arguments as for :func:`sketch_similarity`.

    Raises:
        ValueError: a sketch is not ascending hashes, or the size is below 1.
    """
    return float(divergence(_sketch("first", first), _sketch("second", second), _size(size)))


def divergences(first: Sketches, second: Sketches, size: int | None) -> FloatArray:
    """Estimate the fragment staleness of n pairs of sets from their sketches, row by row, (n,).

    Raises:
        ValueError: the numbers of sketches differ, or the size is below 1.
    """
    if first.number != second.number:
        raise ValueError(f"second must hold {first.number} sketches, got {second.number}")
    estimates = np.empty(first.number)
    row_divergences(first.start, first.hashes, second.start, second.hashes, _size(size), estimates)
    return estimates


def _size(size: int | None) -> int:
    """Return a size as an argument of kernels: 0 for all."""
    return 0 if size is None else whole("size", size, 1)


def _sketch(name: str, hashes: ArrayLike) -> HashArray:
    """Return a sketch as an argument of kernels, or raise ValueError."""
    array = np.asarray(hashes)
    fits = array.ndim == 1 and array.dtype == np.uint32
    if not fits or np.any(array[1:] <= array[:-1]):
        raise ValueError(
            f"{name} must be a sketch, ascending uint32 hashes of shape (n,), got dtype "
            f"{array.dtype}, shape {array.shape}{_range(array)}"
        )
    return np.ascontiguousarray(array)


def _range(array: NDArray[np.generic]) -> str:
    """Return the range of an array of numbers as text, empty if there is none."""
    if array.size == 0 or array.dtype.kind not in "iuf":
        return ""
    return f", from {array.min()} to {array.max()}"
