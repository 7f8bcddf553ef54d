"""Versions of pages: the fragments of a page at a time, found from spells of fragments.

A spell is a set of fragments that come and go together. The version of a page at time t includes
the events before t: it has the spells with ``birth < t <= death``. Arguments of kernels are a
lane's spells, (n,), and the range of a page's spells, from ``first`` to before ``last``.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.compiled.array_tables import Records
from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.sim.streams import GOLDEN, mixed
from crawl_envs.types.copies import LOW, HashArray, mixed32


@inlined(forceinline=True)
def was_present(spells: Records, spell: int, time: float) -> bool:
    """Return whether the fragments of a spell were on their page just before a past time.

    They were if this spell, or an earlier one of the same fragments, includes the time.
    """
    while spell >= 0 and spells[spell].birth >= time:
        spell = spells[spell].earlier
    return spell >= 0 and time <= spells[spell].death


@inlined()
def size_at(spells: Records, first: int, last: int, time: float) -> int:
    """Return the number of fragments of a page, spells ``first`` to ``last`` - 1, at a time."""
    size = 0
    for spell in range(first, last):
        if spells[spell].birth >= time:
            break
        if time <= spells[spell].death:
            size += spells[spell].size
    return size


@inlined(forceinline=True)
def jaccard(live: int, stored: int, common: int) -> float:
    """Return the fragment staleness (Jaccard distance) of a ``live`` and a ``stored`` set.

    The arguments are the sizes of the sets and of their intersection. See eq. 3 of Olston and
    Pandey 2008; the result is 0 if both sets are empty.
    """
    union = live + stored - common
    return (union - common) / union if union > 0 else 0.0


@inlined(forceinline=True)
def hash_of(key: np.uint64, number: int) -> np.uint32:
    """Return the hash of the fragment numbered ``number`` in a spell whose key is ``key``.

    The word of the first is the lower half of the key, as for recorded fragments, so that the hash
    is that of :func:`crawl_envs.types.copies.sketch_of`.
    """
    word = key
    if number > 0:
        word = mixed(key + GOLDEN * np.uint64(number)) >> np.uint64(32)
    return mixed32(int(word & LOW))


@inlined()
def insert(hashes: HashArray, count: int, hashed: np.uint32) -> int:
    """Insert a hash into an ascending array of the ``count`` smallest distinct hashes so far.

    A full array loses its largest hash. Returns the new count.
    """
    place = count
    while place > 0 and hashes[place - 1] > hashed:
        place -= 1
    if place > 0 and hashes[place - 1] == hashed:
        return count
    count = min(count + 1, hashes.size)
    for position in range(count - 1, place, -1):
        hashes[position] = hashes[position - 1]
    if place < count:
        hashes[place] = hashed
    return count


@inlined()
def smallest_at(spells: Records, first: int, last: int, time: float, size: int) -> HashArray:
    """Return the ``size`` smallest fragment hashes of a page's version at a time, ascending."""
    size = min(size, size_at(spells, first, last, time))
    hashes, count = np.empty(size, np.uint32), 0
    for spell in range(first, last):
        if spells[spell].birth >= time:
            break
        if time <= spells[spell].death:
            key = spells[spell].key
            for number in range(spells[spell].size):
                hashed = hash_of(key, number)
                if count < size or hashed < hashes[size - 1]:
                    count = insert(hashes, count, hashed)
    return hashes[:count]


@compiled()
def all_at(spells: Records, first: int, last: int, time: float) -> HashArray:
    """Return the hashes of all fragments of a page's version at a time, unsorted, with repeats."""
    hashes = np.empty(size_at(spells, first, last, time), np.uint32)
    count = 0
    for spell in range(first, last):
        if spells[spell].birth >= time:
            break
        if time <= spells[spell].death:
            for number in range(spells[spell].size):
                hashes[count] = hash_of(spells[spell].key, number)
                count += 1
    return hashes


def sketch_at(spells: Records, first: int, last: int, time: float, size: int | None) -> HashArray:
    """Return a page's sketch at a time: its ``size`` smallest hashes, None for all, ascending."""
    return np.unique(all_at(spells, first, last, time))[:size]
