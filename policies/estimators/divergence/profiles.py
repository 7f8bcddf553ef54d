"""Change profiles of pages: how far later copies were from base versions that are kept.

Olston and Pandey (2008), section 4.1. A profile begins at a refresh, whose copy is its base
version, and has one observation (time, divergence) for each later refresh of the page. Up to h
profiles are held at a time. Here a refresh begins a profile if fewer than h are held, and a profile
that has its full ``length`` of observations is retired at the refresh that would add one more. (The
paper holds "up to h" profiles and reports 4 to 12 observations of each, even for h = 1.)

Of base versions the sketches are kept: hashes of fragments, all or the smallest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import whole
from crawl_envs.types.compiling import compiled
from crawl_envs.types.copies import Sketches
from crawl_envs.worlds.fragments.sketches import divergence as sketch_divergence
from policies.estimators.divergence.counts import HASH_BYTES, OBSERVATION_BYTES, Footprint

HashArray = NDArray[np.uint32]

SAME_AGE = 1e-9
"""Ages that differ by less, relatively, are one age."""
ROOMIER = 1.25
"""A base that outgrows its place gets a place that is so much larger than it."""


class HeldProfiles(NamedTuple):
    """The profiles of m pages, h of each, of k observations.

    Attributes:
        base: time of the base version, NaN where no profile is held, (m, h).
        filled: observations, (m, h) int64.
        age: of each observation, its time less that of the base version, (m, h, k).
        divergence: from the base version, (m, h, k).
        place: where the sketch of the base version stands in the store of hashes, (m, h) int64.
        room: hashes that have room there, (m, h) int64.
        size: hashes that stand there, (m, h) int64.
    """

    base: FloatArray
    filled: IntArray
    age: FloatArray
    divergence: FloatArray
    place: IntArray
    room: IntArray
    size: IntArray


class ChangeProfiles:
    """The change profiles of all pages of an episode.

    Args:
        num_pages: m.
        histories: profiles of each page, h >= 1.
        length: observations of each profile, >= 1.
        sketch_size: smallest hashes that are kept of a base version, >= 1; None for all.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self, num_pages: int, histories: int, length: int, sketch_size: int | None = None
    ) -> None:
        shape = (whole("num_pages", num_pages, 1), whole("histories", histories, 1))
        full = (*shape, whole("length", length, 1))
        self.sketch_size = 0 if sketch_size is None else whole("sketch_size", sketch_size, 1)
        counts = [np.zeros(shape, np.int64) for _ in range(4)]
        self.kept = HeldProfiles(
            np.full(shape, np.nan), counts[0], np.zeros(full), np.zeros(full), *counts[1:]
        )
        self._hashes: HashArray = np.empty(0, np.uint32)
        self._used = np.zeros(1, np.int64)

    @classmethod
    def of_episode(
        cls,
        tracker: Tracker,
        sketches: Sketches,
        histories: int,
        length: int,
        sketch_size: int | None = None,
    ) -> ChangeProfiles:
        """Profiles of all pages at the first decision of an episode, or where it is joined.

        Where a copy has more fragments than the longest sketch of all has hashes, sketches are cut
        off, and so are those that are kept.

        Args:
            tracker: of that decision.
            sketches: of all pages at time 0.
            histories: see the class, as the rest.
            length: see there.
            sketch_size: see there.
        """
        longest = int(np.diff(sketches.start).max())
        if tracker.copies is not None and np.any(tracker.copies.size > longest):
            sketch_size = longest if sketch_size is None else min(sketch_size, longest)
        profiles = cls(tracker.elapsed.size, histories, length, sketch_size)
        profiles.start_episode(tracker, sketches.start, sketches.hashes)
        return profiles

    def start_episode(self, tracker: Tracker, start: IntArray, hashes: HashArray) -> None:
        """Begin profiles of the pages whose copies are those of time 0.

        Args:
            tracker: of the first decision that is known; only of pages that were never crawled,
                and exist since time 0, is the copy held that of time 0.
            start: where the sketch of each page at time 0 begins, (m + 1,).
            hashes: those sketches.
        """
        first = (tracker.changed < 0) & tracker.alive
        first &= tracker.elapsed >= tracker.time * (1.0 - SAME_AGE)
        pages = np.flatnonzero(first)
        self._take(pages, np.zeros(pages.size), *_of_rows(start, hashes, first))

    def refresh(self, page: int, time: float, hashes: HashArray) -> None:
        """Take in one refresh of a page, at a time, and the sketch of what it found."""
        start = np.array([0, hashes.size], np.int64)
        self._take(np.array([page]), np.array([time]), start, hashes)

    def learn(self, log: CrawlLog) -> IntArray:
        """Take in the refreshes of a step; probes are none. Returns their pages, in order."""
        if log.sketch is None:
            raise ValueError("env must be one of pages with fragments, got crawls without sketches")
        pages = log.page[~log.probe]
        sketches = _of_rows(log.sketch.start, log.sketch.hashes, ~log.probe)
        self._take(pages, log.time[~log.probe], *sketches)
        return pages

    def _take(self, page: IntArray, time: FloatArray, start: IntArray, hashes: HashArray) -> None:
        wanted = int(self._used[0] + np.ceil(ROOMIER * hashes.size) + page.size)
        if wanted > self._hashes.size:
            grown = np.empty(max(wanted, 2 * self._hashes.size), np.uint32)
            grown[: self._used[0]] = self._hashes[: self._used[0]]
            self._hashes = grown
        add_refreshes(
            page, time, start, hashes, self.sketch_size, self.kept, self._hashes, self._used
        )

    def combined(self, page: int) -> tuple[FloatArray, FloatArray]:
        """Ages and divergences of a page's combined profile (section 4.2, step 1), by age."""
        most = self.kept.age[page].size
        ages, values, counts = np.empty(most), np.empty(most), np.empty(most)
        count = combine(self.kept, page, ages, values, counts)
        return ages[:count].copy(), values[:count].copy()

    def footprint(self) -> Footprint:
        """Bytes per page; see :class:`policies.longevity.refreshing.Footprint`."""
        pages = self.kept.base.shape[0]
        stored = sum(array.nbytes for array in self.kept) + HASH_BYTES * int(self._used[0])
        held = ~np.isnan(self.kept.base)
        counted = HASH_BYTES * int(self.kept.size[held].sum())
        counted += OBSERVATION_BYTES * int(self.kept.filled[held].sum())
        return Footprint(stored / pages, counted / pages)


def _of_rows(start: IntArray, hashes: HashArray, wanted: BoolArray) -> tuple[IntArray, HashArray]:
    """The sketches of the wanted rows: where each begins, and their hashes."""
    sizes = np.diff(start)
    within = np.concatenate(([0], np.cumsum(sizes[wanted])))
    return within, hashes[np.repeat(wanted, sizes)]


@compiled()
def add_refreshes(
    page: IntArray,
    time: FloatArray,
    start: IntArray,
    hashes: HashArray,
    sketch_size: int,
    kept: HeldProfiles,
    store: HashArray,
    used: IntArray,
) -> None:
    """Take in refreshes, (n,), in order; ``store`` has room for all their sketches.

    A ``sketch_size`` of 0 stands for all hashes.
    """
    base, filled, age, divergence, place, room, size = kept
    for k in range(page.size):
        i = page[k]
        fresh = hashes[start[k] : start[k + 1]]
        if sketch_size > 0:
            fresh = fresh[:sketch_size]
        vacant = -1
        for slot in range(base.shape[1]):
            if filled[i, slot] == age.shape[2]:
                base[i, slot] = np.nan
                filled[i, slot] = 0
            if np.isnan(base[i, slot]):
                if vacant < 0:
                    vacant = slot
            elif time[k] > base[i, slot]:
                where, many = place[i, slot], filled[i, slot]
                old = store[where : where + size[i, slot]]
                age[i, slot, many] = time[k] - base[i, slot]
                divergence[i, slot, many] = sketch_divergence(old, fresh, sketch_size)
                filled[i, slot] = many + 1
        if vacant >= 0:
            base[i, vacant] = time[k]
            if room[i, vacant] < fresh.size:
                place[i, vacant] = used[0]
                roomy = room[i, vacant] > 0
                room[i, vacant] = int(fresh.size * ROOMIER) if roomy else fresh.size
                used[0] += room[i, vacant]
            where = place[i, vacant]
            store[where : where + fresh.size] = fresh
            size[i, vacant] = fresh.size


@compiled()
def combine(
    kept: HeldProfiles, page: int, ages: FloatArray, values: FloatArray, counts: FloatArray
) -> int:
    """Write the combined profile of a page by age, equal ages averaged; returns its length.

    ``counts`` is overwritten too: how many observations stand behind each value.
    """
    total = 0
    for slot in range(kept.base.shape[1]):
        if np.isnan(kept.base[page, slot]):
            continue
        at = 0
        for k in range(kept.filled[page, slot]):
            age, value = kept.age[page, slot, k], kept.divergence[page, slot, k]
            while at < total and ages[at] < age * (1.0 - SAME_AGE):
                at += 1
            if at < total and ages[at] <= age * (1.0 + SAME_AGE):
                values[at] += value
                counts[at] += 1.0
                continue
            for other in range(total, at, -1):
                ages[other] = ages[other - 1]
                values[other] = values[other - 1]
                counts[other] = counts[other - 1]
            ages[at], values[at], counts[at] = age, value, 1.0
            total += 1
    for k in range(total):
        values[k] /= counts[k]
    return total
