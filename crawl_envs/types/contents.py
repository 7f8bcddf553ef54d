"""Contents of pages: regions of static, churn or scroll content, and the spells of fragments.

Contents do not depend on crawls. The content of a copy follows from its page and time, so that no
copy is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

MAX_FRAGMENTS = 2**31 - 1
"""Largest number of fragments of a page, counted exactly."""


def _rows(name: str, value: ArrayLike, kinds: str, minimum: int) -> NDArray[Any]:
    """Return an argument as array of finite numbers, (m, G); raise ValueError otherwise."""
    array = np.asarray(value)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in kinds:
        raise ValueError(
            f"{name} must have a row per page and a column per region, shape (m, G), got "
            f"dtype {array.dtype} and shape {array.shape}"
        )
    if not np.all(np.isfinite(array) & (array >= minimum)):
        raise ValueError(f"{name} must be finite and >= {minimum}, got {array.min()}")
    return array


@dataclass(frozen=True, eq=False, init=False)
class Regions:
    """The model of section 3.3 of Olston and Pandey (2008): independent regions of m pages.

    A region has K items of c fragments each. Updates are Poisson; each appends an item and evicts
    the one appended K updates before. So K = 1 is *churn*, where an update replaces everything,
    K > 1 is *scroll*, and a region of rate 0 is *static*. Rows are pages; pages with fewer than G
    regions are padded with regions of no fragments, whose
    rate is 0. The arrays are read-only.

    Args:
        items: K, items in the region, integers >= 1, (m, G).
        size: c, fragments per item, integers >= 0, (m, G).
        rate: updates per unit time, >= 0, (m, G); 0 where the region is static.

    Raises:
        ValueError: shapes disagree, a number is outside its range, or a page has no fragment or
            more than MAX_FRAGMENTS.
    """

    items: IntArray
    size: IntArray
    rate: FloatArray

    def __init__(self, items: ArrayLike, size: ArrayLike, rate: ArrayLike) -> None:
        arrays = {
            "items": _rows("items", items, "iu", 1).astype(np.int64),
            "size": _rows("size", size, "iu", 0).astype(np.int64),
            "rate": _rows("rate", rate, "iuf", 0).astype(np.float64),
        }
        for name, array in arrays.items():
            if array.shape != arrays["rate"].shape:
                expected = arrays["rate"].shape
                raise ValueError(f"{name} must have the shape {expected}, got {array.shape}")
        total = (arrays["items"].astype(np.float64) * arrays["size"]).sum(axis=1)
        outside = (total < 1) | (total > MAX_FRAGMENTS)
        if outside.any():
            page = int(np.argmax(outside))
            raise ValueError(
                f"a page must have 1 to {MAX_FRAGMENTS} fragments, got {total[page]:.0f} for "
                f"page {page}"
            )
        arrays["rate"][arrays["size"] == 0] = 0.0
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return int(self.rate.shape[0])

    @property
    def fragments(self) -> IntArray:
        """Number of fragments of each page at any time, n, (m,)."""
        total: IntArray = (self.items * self.size).sum(axis=1)
        return total

    @property
    def change_rate(self) -> FloatArray:
        """Rate of the updates of all regions of each page, (m,)."""
        total: FloatArray = self.rate.sum(axis=1)
        return total


@dataclass(frozen=True, eq=False)
class Contents:
    """The fragments of m pages, and the times at which they are present.

    A *spell* is a set of fragments of one page that appear together and disappear together. The
    version of a page at time t includes the events before t: it has the spells with
    ``birth < t <= death``. Spells of one page with the same key have the same fragments.

    Attributes:
        start: spells of page i are the rows ``start[i]`` to ``start[i + 1] - 1``, in order of
            birth, (m + 1,) int64.
        birth: start of the spell, -inf for initial fragments, (n,) float64.
        death: end of the spell, later than the birth, inf for none, (n,) float64.
        size: number of fragments in the spell, >= 1, (n,) int64.
        key: origin of the hashes of the fragments, (n,) uint64.
        earlier: row of the previous spell of the same page and key, -1 for none, (n,) int64.
    """

    start: IntArray
    birth: FloatArray
    death: FloatArray
    size: IntArray
    key: KeyArray
    earlier: IntArray

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return int(self.start.size) - 1

    @property
    def page(self) -> IntArray:
        """Page of each spell, (n,)."""
        return np.repeat(np.arange(self.num_pages), np.diff(self.start))

    def sizes(self, time: float) -> IntArray:
        """Return the number of fragments of each page in its version at a time, (m,)."""
        present = (self.birth < time) & (time <= self.death)
        return np.bincount(self.page, self.size * present, self.num_pages).astype(np.int64)

    @classmethod
    def of_spells(
        cls,
        num_pages: int,
        page: ArrayLike,
        birth: ArrayLike,
        death: ArrayLike,
        size: ArrayLike = 1,
        key: ArrayLike | None = None,
    ) -> Contents:
        """Build contents from spells in any order; spells of length 0 are dropped.

        Args:
            num_pages: number of pages, m.
            page: page of each spell, in [0, m), (n,).
            birth: start of each spell, -inf for initial fragments, (n,).
            death: end of each spell, inf for none, (n,).
            size: number of fragments in each spell, >= 1, (n,) or one for all.
            key: identity of the fragments, integers >= 0, (n,); None for all different.

        Raises:
            ValueError: shapes disagree, a page does not exist, a death comes before its birth or
                is -inf, a size is below 1, spells of one page and key overlap or differ in size.
        """
        pages = np.asarray(page, np.int64)
        count = pages.shape[0] if pages.ndim == 1 else -1
        births, deaths = np.asarray(birth, np.float64), np.asarray(death, np.float64)
        sizes = np.broadcast_to(np.asarray(size, np.int64), pages.shape)
        keys = np.asarray(np.arange(max(count, 0)) if key is None else key, np.uint64)
        for name, array in (("birth", births), ("death", deaths), ("key", keys)):
            if array.shape != (count,):
                raise ValueError(f"{name} must have the shape of page, got {array.shape}")
        if np.any((pages < 0) | (pages >= num_pages)):
            raise ValueError(f"page must lie in [0, {num_pages}), got {pages.min()}..{pages.max()}")
        wrong = ~(deaths >= births) | np.isneginf(deaths) | np.isposinf(births) | (sizes < 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"a spell must have 1 fragment or more and not end before its birth, got size "
                f"{sizes[row]}, birth {births[row]}, death {deaths[row]} in row {row}"
            )
        lasting = births < deaths
        order = np.lexsort((keys, births, pages))
        order = order[lasting[order]]
        pages, births, deaths = pages[order], births[order], deaths[order]
        sizes, keys = sizes[order], keys[order]
        start = np.searchsorted(pages, np.arange(num_pages + 1))
        return cls(start, births, deaths, sizes, keys, _earlier(pages, births, deaths, sizes, keys))


def _earlier(
    page: IntArray, birth: FloatArray, death: FloatArray, size: IntArray, key: KeyArray
) -> IntArray:
    """Return the row of each spell's previous spell of equal page and key, -1 for none, (n,)."""
    order = np.lexsort((birth, key, page))
    before, after = order[:-1], order[1:]
    repeats = (page[before] == page[after]) & (key[before] == key[after])
    before, after = before[repeats], after[repeats]
    wrong = (death[before] > birth[after]) | (size[before] != size[after])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"spells of one page and key must not overlap and have one size, got a birth at "
            f"{birth[after[row]]} before a death at {death[before[row]]} on page "
            f"{page[before[row]]}"
        )
    earlier = np.full(page.size, -1, np.int64)
    earlier[after] = before
    return earlier
