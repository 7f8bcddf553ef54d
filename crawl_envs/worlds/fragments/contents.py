"""What pages say over time, as the spells in which their fragments are there.

Nothing here depends on crawls: what a copy says follows from the page and the time at which it was
made, so that no copy is ever stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray

KeyArray = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Contents:
    """The fragments of m pages, and when each is there.

    A *spell* is a set of fragments of one page that appear together and disappear together. The
    version of a page at time t is what the events before t have made of it: it has the spells with
    ``birth < t <= death``. Spells of one page with the same key are the same fragments, come back.

    Attributes:
        start: spells of page i are the rows ``start[i]`` to ``start[i + 1] - 1``, in order of
            birth, (m + 1,) int64.
        birth: -inf for what was there at first, (n,) float64.
        death: later than the birth, inf for what stays, (n,) float64.
        size: fragments in the spell, >= 1, (n,) int64.
        key: from which the hashes of the fragments are derived, (n,) uint64.
        earlier: row of the spell before of the same page and key, -1 where none, (n,) int64.
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
        """Build contents of spells in any order; those of no length are left out.

        Args:
            num_pages: number of pages, m.
            page: page of each spell, in [0, m), (n,).
            birth: (n,), -inf for what was there at first.
            death: (n,), inf for what stays.
            size: fragments in the spell, >= 1, (n,) or one for all.
            key: which fragments they are, whole numbers >= 0, (n,); None for all different.

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
                f"a spell must have 1 fragment or more and end after its birth, got size "
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
    """Return the spell before of the same page and key, -1 where none, (n,)."""
    order = np.lexsort((birth, key, page))
    before, after = order[:-1], order[1:]
    again = (page[before] == page[after]) & (key[before] == key[after])
    before, after = before[again], after[again]
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
