r"""Change profiles: divergences of later copies of a page from a base version, and their bounds.

Olston and Pandey (2008), section 4.1. A profile starts at a refresh, whose copy is its base
version, and has one observation (time, divergence) for each later refresh of the page. There are at
most h profiles at a time. Here a refresh starts a profile if there are fewer than h, and a profile
with its full ``length`` of observations is retired at the refresh that would add one more. (The
paper stores "up to h" profiles and reports 4 to 12 observations per profile, even for h = 1.)

Base versions are stored as sketches: the hashes of all fragments, or the smallest hashes.

Bounds on divergence and utility (section 4.3 and figure 7) only assume that divergence does not
fall. Then, between two observations, the upper bound is the later one (an immediate jump) and the
lower bound the earlier one. If observations fall nevertheless, the bounds are the larger and the
smaller one.

The bounds of several profiles are averaged at every age, over the profiles that extend to it. Past
the last observation of the longest profile the upper bound is 1 and the lower one that observation.

With s the time since the reference time, U(s) = s D(s) - int_0^s D grows with D(s) under a given
upper bound on D before s, as D <= D(s) there. So

    U_min = s D_low(s) - int_0^s min(D_up, D_low(s)),      U_max = s D_up(s) - int_0^s D_low.

If the divergence at s was observed, D_low(s) = D_up(s), and these are the paper's
s D(s) - A_max and s D(s) - A_min.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.copies import Sketches
from crawl_envs.types.copies import divergence as sketch_divergence

HashArray = NDArray[np.uint32]

SAME_AGE = 1e-9
"""Relative difference up to which two ages count as equal."""
MAX_DIVERGENCE = 1.0
"""The greatest divergence, D_max."""
GROWTH = 1.25
"""Capacity of a new place for a sketch that outgrew its place, relative to its size."""


HASH_BYTES, OBSERVATION_BYTES = 4, 8
"""Bytes of a hash, and of an observation (two numbers of 4 bytes), as in section 5.2."""


class Footprint(NamedTuple):
    """Memory of an estimator in bytes per page, on average (section 5.2).

    Attributes:
        stored: bytes of the stored arrays.
        counted: bytes by the paper's rule: 4 per hash in use, 8 per observation.
    """

    stored: float
    counted: float


class ProfileArrays(NamedTuple):
    """Arrays of profiles: m pages with h profiles of k observations.

    Attributes:
        base: time of the base version, NaN if there is no profile, (m, h).
        filled: number of observations, (m, h) int64.
        age: time of each observation less that of the base version, (m, h, k).
        divergence: divergence from the base version, (m, h, k).
        place: start of the sketch of the base version in the store of hashes, (m, h) int64.
        capacity: number of hashes reserved there, (m, h) int64.
        size: number of hashes stored there, (m, h) int64.
    """

    base: FloatArray
    filled: IntArray
    age: FloatArray
    divergence: FloatArray
    place: IntArray
    capacity: IntArray
    size: IntArray


class ChangeProfiles:
    """Change profiles of all pages: divergences of later copies from stored base versions.

    Args:
        num_pages: m.
        histories: profiles of each page, h >= 1.
        length: observations of each profile, >= 1.
        sketch_size: number of smallest hashes kept of a base version, >= 1; None for all.
    """

    def __init__(
        self, num_pages: int, histories: int, length: int, sketch_size: int | None = None
    ) -> None:
        shape, full = (num_pages, histories), (num_pages, histories, length)
        self.sketch_size = sketch_size or 0
        counts = [np.zeros(shape, np.int64) for _ in range(4)]
        self.arrays = ProfileArrays(
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
        """Return the profiles of all pages at the first, or a later, decision of an episode.

        Profiles start from the copies of time 0, for pages that exist since then and were never
        crawled. If a copy has more fragments than the longest sketch has hashes, all sketches are
        truncated, stored ones included.

        ``sketches`` describes all pages at time 0; the class documents the other arguments.
        """
        longest = int(np.diff(sketches.start).max())
        if tracker.copies is not None and np.any(tracker.copies.size > longest):
            sketch_size = longest if sketch_size is None else min(sketch_size, longest)
        profiles = cls(tracker.elapsed.size, histories, length, sketch_size)
        first = at_first_copy(tracker)
        pages = np.flatnonzero(first)
        profiles._take(pages, np.zeros(pages.size), *_of_rows(*sketches, first))
        return profiles

    def learn(self, log: CrawlLog) -> IntArray:
        """Add the crawls of a step to the profiles, and return the crawled pages, in order."""
        assert log.sketch is not None
        self._take(log.page, log.time, log.sketch.start, log.sketch.hashes)
        return log.page

    def _take(self, page: IntArray, time: FloatArray, start: IntArray, hashes: HashArray) -> None:
        wanted = int(self._used[0] + np.ceil(GROWTH * hashes.size) + page.size)
        if wanted > self._hashes.size:
            grown = np.empty(max(wanted, 2 * self._hashes.size), np.uint32)
            grown[: self._used[0]] = self._hashes[: self._used[0]]
            self._hashes = grown
        add_refreshes(
            page, time, start, hashes, self.sketch_size, self.arrays, self._hashes, self._used
        )

    def footprint(self) -> Footprint:
        """Return the bytes of memory per page: stored, and counted by the rule of the paper."""
        pages = self.arrays.base.shape[0]
        stored = sum(array.nbytes for array in self.arrays) + HASH_BYTES * int(self._used[0])
        used = ~np.isnan(self.arrays.base)
        counted = HASH_BYTES * int(self.arrays.size[used].sum())
        counted += OBSERVATION_BYTES * int(self.arrays.filled[used].sum())
        return Footprint(stored / pages, counted / pages)


def at_first_copy(tracker: Tracker) -> BoolArray:
    """Return which pages exist and still have the copy of time 0, a mask (m,)."""
    since_start = tracker.elapsed >= tracker.time * (1.0 - SAME_AGE)
    return (tracker.changed < 0) & tracker.alive & since_start


def _of_rows(start: IntArray, hashes: HashArray, wanted: BoolArray) -> tuple[IntArray, HashArray]:
    """Return the sketches of the rows marked in ``wanted``: their starts and their hashes."""
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
    profiles: ProfileArrays,
    store: HashArray,
    used: IntArray,
) -> None:
    """Add refreshes of pages to their profiles, (n,) in order of time.

    ``store`` has capacity for all sketches of the refreshes. A ``sketch_size`` of 0 means all
    hashes.
    """
    base, filled, age, divergence, place, capacity, size = profiles
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
            if capacity[i, vacant] < fresh.size:
                place[i, vacant] = used[0]
                outgrown = capacity[i, vacant] > 0
                capacity[i, vacant] = int(fresh.size * GROWTH) if outgrown else fresh.size
                used[0] += capacity[i, vacant]
            where = place[i, vacant]
            store[where : where + fresh.size] = fresh
            size[i, vacant] = fresh.size


@inlined()
def combine(
    profiles: ProfileArrays, page: int, ages: FloatArray, values: FloatArray, counts: FloatArray
) -> int:
    """Write the mean divergence of a page's profiles by age, and return the number of ages.

    ``counts``, the number of observations averaged in each value, is overwritten too.
    """
    total = 0
    for slot in range(profiles.base.shape[1]):
        if np.isnan(profiles.base[page, slot]):
            continue
        place = 0
        for k in range(profiles.filled[page, slot]):
            age, value = profiles.age[page, slot, k], profiles.divergence[page, slot, k]
            while place < total and ages[place] < age * (1.0 - SAME_AGE):
                place += 1
            if place < total and ages[place] <= age * (1.0 + SAME_AGE):
                values[place] += value
                counts[place] += 1.0
                continue
            for row in range(total, place, -1):
                ages[row] = ages[row - 1]
                values[row] = values[row - 1]
                counts[row] = counts[row - 1]
            ages[place], values[place], counts[place] = age, value, 1.0
            total += 1
    for k in range(total):
        values[k] /= counts[k]
    return total


@inlined()
def step_bounds(profiles: ProfileArrays, page: int, age: float) -> tuple[float, float]:
    """Return a lower and an upper bound on the divergence at ``age``, averaged over profiles.

    At the age of an observation both equal this observation.
    """
    low = high = last = reach = 0.0
    number = 0
    for slot in range(profiles.base.shape[1]):
        many = profiles.filled[page, slot]
        if np.isnan(profiles.base[page, slot]) or many == 0:
            continue
        ages, values = profiles.age[page, slot], profiles.divergence[page, slot]
        if ages[many - 1] > reach:
            reach, last = ages[many - 1], values[many - 1]
        if ages[many - 1] < age * (1.0 - SAME_AGE):
            continue
        k = 0
        while ages[k] < age * (1.0 - SAME_AGE):
            k += 1
        number += 1
        if ages[k] <= age * (1.0 + SAME_AGE):
            low += values[k]
            high += values[k]
        else:
            before = values[k - 1] if k > 0 else 0.0
            low += min(before, values[k])
            high += max(before, values[k])
    if number == 0:
        return last, MAX_DIVERGENCE
    return low / number, high / number


@inlined()
def breaks(profiles: ProfileArrays, page: int, elapsed: float) -> FloatArray:
    """Return ascending ages from 0 to ``elapsed`` between which divergence bounds are constant."""
    ages = np.empty(2 + profiles.age.shape[1] * profiles.age.shape[2])
    ages[0], ages[1] = 0.0, elapsed
    number = 2
    for slot in range(profiles.base.shape[1]):
        if np.isnan(profiles.base[page, slot]):
            continue
        for k in range(profiles.filled[page, slot]):
            if profiles.age[page, slot, k] < elapsed:
                ages[number] = profiles.age[page, slot, k]
                number += 1
    return np.sort(ages[:number])


@inlined()
def bounds_of_page(
    profiles: ProfileArrays, page: int, elapsed: float
) -> tuple[float, float, float, float]:
    """Return bounds of a page's divergence area and utility: A_min, A_max, U_min and U_max.

    They hold ``elapsed`` after the time of reference.
    """
    low, high = step_bounds(profiles, page, elapsed)
    ages = breaks(profiles, page, elapsed)
    low_area = high_area = cut_area = 0.0
    for k in range(ages.size - 1):
        width = ages[k + 1] - ages[k]
        if width <= SAME_AGE * ages[k + 1]:
            continue
        lower, upper = step_bounds(profiles, page, 0.5 * (ages[k] + ages[k + 1]))
        low_area += width * lower
        high_area += width * upper
        cut_area += width * min(upper, low)
    return low_area, high_area, elapsed * low - cut_area, elapsed * high - low_area
