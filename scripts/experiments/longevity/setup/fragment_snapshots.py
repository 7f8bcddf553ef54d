"""What snapshots of pages show of their fragments, measured as in Olston and Pandey (2008).

A snapshot sees the version of every page at its time: fragments that come and go between two
snapshots are never seen, and nothing is known of what is there in the first or the last one but
that it may have been there before, or stay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.instances.longevity import RegionPages, longevity_set
from crawl_envs.sim.streams import generator, roots
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.worlds.fragments.contents import Contents


def drawn_set(name: str, num_pages: int, days: float, seed: int) -> tuple[RegionPages, Contents]:
    """Return pages of the set of a name, and what they say up to some day, at least.

    They are those of an environment that is reset with that seed.

    Args:
        name: ``quality`` or ``random``.
        num_pages: m.
        days: > 0.
        seed: >= 0.
    """
    own = roots(seed)
    instance = longevity_set(name, num_pages)(generator(own.instance, 0))
    return instance, instance.draw(generator(own.tape, 0), days)[1]


SNAPSHOTS, INTERVAL = 30, 2.0
"""The paper's: 30 snapshots, one every second day (section 3.1)."""


class Runs(NamedTuple):
    """Stretches of contiguous snapshots with the same fragments, one row for each.

    Attributes:
        num_pages: m.
        snapshots: number of snapshots, S.
        page: (n,) int64.
        begin: first snapshot of the stretch, (n,) int64.
        end: the snapshot after its last, (n,) int64.
        size: fragments, (n,) int64.
        whole: whether they are in neither the first nor the last snapshot, (n,) bool.
    """

    num_pages: int
    snapshots: int
    page: IntArray
    begin: IntArray
    end: IntArray
    size: IntArray
    whole: BoolArray


def snapshot_times(snapshots: int = SNAPSHOTS, interval: float = INTERVAL) -> FloatArray:
    """Return the times of snapshots, the first at 0: (S,)."""
    return interval * np.arange(float(snapshots))


def runs_of(contents: Contents, times: FloatArray) -> Runs:
    """Return in which snapshots the fragments of pages are.

    A fragment that left and came back between two snapshots was there all the time.

    Args:
        contents: what m pages say.
        times: when snapshots are taken, rising, (S,).

    Raises:
        ValueError: there are fewer than two, or they do not rise.
    """
    if times.ndim != 1 or times.size < 2 or not np.all(np.diff(times) > 0.0):
        raise ValueError(f"times must be 2 or more, and rise, got {times}")
    begin = np.searchsorted(times, contents.birth, side="right")
    end = np.searchsorted(times, contents.death, side="right")
    page = contents.page
    order = np.lexsort((begin, contents.key, page))
    order = order[begin[order] < end[order]]
    page, key, begin, end = page[order], contents.key[order], begin[order], end[order]
    same = np.zeros(page.size, np.bool_)
    same[1:] = (page[1:] == page[:-1]) & (key[1:] == key[:-1])
    joined = same.copy()
    joined[1:] &= begin[1:] == end[:-1]
    first = np.flatnonzero(~joined)
    last = np.append(first[1:], page.size)[: first.size] - 1
    fragment = np.cumsum(~same) - 1
    outside = np.zeros(int(fragment[-1]) + 1 if page.size else 0, np.bool_)
    outside[fragment[(begin == 0) | (end == times.size)]] = True
    return Runs(
        contents.num_pages,
        times.size,
        page[first],
        begin[first],
        end[last],
        contents.size[order][first],
        ~outside[fragment[first]],
    )


def changed(runs: Runs) -> BoolArray:
    """Return which snapshots differ from the one before, (m, S); the first does not."""
    found = np.zeros((runs.num_pages, runs.snapshots + 1), np.bool_)
    found[runs.page, runs.begin] = True
    found[runs.page, runs.end] = True
    found[:, 0] = False
    return found[:, :-1]


def change_frequency(runs: Runs) -> FloatArray:
    """Share of the snapshots that differ from the one before (section 3.2), (m,) in [0, 1]."""
    frequency: FloatArray = changed(runs)[:, 1:].mean(axis=1)
    return frequency


def longevity(runs: Runs) -> FloatArray:
    """Mean number of contiguous snapshots in which a fragment is (section 3.2), (m,).

    Of those in neither the first nor the last snapshot; NaN where a page has none.
    """
    page, size = runs.page[runs.whole], runs.size[runs.whole].astype(np.float64)
    lived = size * (runs.end - runs.begin)[runs.whole]
    total = np.bincount(page, lived, runs.num_pages)
    count = np.bincount(page, size, runs.num_pages)
    mean = np.full(runs.num_pages, np.nan)
    np.divide(total, count, out=mean, where=count > 0.0)
    return mean


def correlation(first: FloatArray, second: FloatArray) -> float:
    """Pearson's coefficient of the pages on which both are known; NaN below three of these.

    NaN also where one of them is the same on all.
    """
    known = ~np.isnan(first) & ~np.isnan(second)
    one, other = first[known], second[known]
    if one.size < 3 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


class Lifetimes(NamedTuple):
    """How long fragments live, one row for each stretch between the first and last snapshot.

    Attributes:
        page: (n,) int64.
        lived: snapshots, (n,) int64.
        items: K, snapshots that differ from the one before from its birth, not included, to its
            death: the update events that it survives (section 3.3), and the one that ends it;
            >= 1, (n,) int64.
        size: fragments, (n,) int64.
    """

    page: IntArray
    lived: IntArray
    items: IntArray
    size: IntArray


def lifetimes(runs: Runs) -> Lifetimes:
    """Return how long fragments live, of those whose births and deaths are both seen."""
    updates = np.cumsum(changed(runs), axis=1)
    kept = runs.whole
    page, begin, end = runs.page[kept], runs.begin[kept], runs.end[kept]
    items: IntArray = updates[page, end] - updates[page, begin]
    return Lifetimes(page, end - begin, items, runs.size[kept])


def dominant_items(found: Lifetimes, num_pages: int) -> IntArray:
    """Return the most common K of each page's fragments, the least of several; 0 where none."""
    most = int(found.items.max(initial=0)) + 1
    place = found.page * most + found.items
    count = np.bincount(place, found.size.astype(np.float64), num_pages * most)
    dominant: IntArray = np.argmax(count.reshape(num_pages, most), axis=1)
    return dominant
