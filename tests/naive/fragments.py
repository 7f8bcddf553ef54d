"""The slow, obvious twin of pages with fragments: Python sets, compared as sets.

Regions are lists of items that are appended and evicted.
"""

from __future__ import annotations

import itertools
import math

from tests.naive.pages import GOLDEN, WORD, Stream, splitmix


def updates(seed, rate, recall, horizon):
    """Times of a region's updates up to the horizon, and whether each is signalled."""
    if rate == 0.0:
        return []
    stream, time, made = Stream(seed, 0), 0.0, []
    while True:
        time += -math.log(stream.uniform()) / rate
        if time > horizon:
            return made
        made.append((time, stream.uniform() <= recall))


def lowbias(word):
    """Wellons's finaliser of 32 bits, of a word moved on by a constant."""
    low = 2**32 - 1
    bits = (word + 0x9E3779B9) & low
    bits = ((bits ^ bits >> 16) * 0x7FEB352D) & low
    bits = ((bits ^ bits >> 15) * 0x846CA68B) & low
    return bits ^ bits >> 16


def hash_of(key, number):
    """The hash of a fragment, 32 bits: fragment ``number`` of those with this key."""
    word = splitmix(key + GOLDEN * number & WORD) >> 32 if number else key & 2**32 - 1
    return lowbias(word)


def item(seed, number, size):
    """The fragments of an item of a region, as hashes."""
    key = splitmix(seed + GOLDEN * (number + 1) & WORD)
    return [hash_of(key, fragment) for fragment in range(size)]


class Region:
    """A region as a list of items, the oldest first."""

    def __init__(self, items, size, seed, static):
        if static:
            items, size = 1, items * size
        self.size, self.seed, self.made = size, seed, items
        self.items = [item(seed, number, size) for number in range(items)]

    def update(self):
        self.items = [*self.items[1:], item(self.seed, self.made, self.size)]
        self.made += 1

    def fragments(self):
        return {fragment for held in self.items for fragment in held}


def histories(regions, seeds, recall, horizon):
    """The versions of every page: lists of (time from which it holds, set of fragments)."""
    pages = []
    for page in range(regions.num_pages):
        kept, events = [], []
        for number in range(regions.rate.shape[1]):
            size, rate = int(regions.size[page, number]), float(regions.rate[page, number])
            if size == 0:
                continue
            seed = int(seeds[page, number])
            kept.append(Region(int(regions.items[page, number]), size, seed, rate == 0.0))
            times = updates(seed, rate, recall[page], horizon)
            events += [(time, kept[-1]) for time, _ in times]
        versions = [(-math.inf, set().union(*(region.fragments() for region in kept)))]
        for time, region in sorted(events, key=lambda event: event[0]):
            region.update()
            versions.append((time, set().union(*(region.fragments() for region in kept))))
        pages.append(versions)
    return pages


def versions_of(contents):
    """The versions of every page of contents, from their spells, one spell at a time."""
    pages = []
    for page in range(contents.num_pages):
        rows = range(contents.start[page], contents.start[page + 1])
        times = {float(contents.birth[row]) for row in rows}
        times |= {float(contents.death[row]) for row in rows}
        versions = []
        for time in sorted({-math.inf} | {time for time in times if time < math.inf}):
            there = [row for row in rows if contents.birth[row] <= time < contents.death[row]]
            versions.append(
                (
                    time,
                    {
                        (int(contents.key[row]), number)
                        for row in there
                        for number in range(contents.size[row])
                    },
                )
            )
        pages.append(versions)
    return pages


def version_at(versions, time):
    """Return the fragments of a page after the events before a time."""
    return [fragments for since, fragments in versions if since < time][-1]


def distance(one, other):
    """Jaccard distance of two sets, 0 where both are empty."""
    return (len(one | other) - len(one & other)) / len(one | other) if one | other else 0.0


def mean_divergence(versions, held, start, end):
    """Integral from start to end of the distance of a page from a held set."""
    times = [start, *(time for time, _ in versions if start < time < end), end]
    total = 0.0
    for begin, finish in itertools.pairwise(times):
        middle = 0.5 * (begin + finish)
        total += (finish - begin) * distance(version_at(versions, middle), held)
    return total
