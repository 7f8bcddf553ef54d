"""Versions of pages: what a page says at a time, from the spells of its fragments.

The version of a page at time t is what the events before t have made of it: it has the spells with
``birth < t <= death``. Kernels are given the spells of many lanes, (R, n), a row of them, and the
first of a page's spells there and the one after its last.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.sim.state import Records
from crawl_envs.sim.streams import GOLDEN, mixed
from crawl_envs.types.compiling import compiled
from crawl_envs.types.copies import HashArray
from crawl_envs.worlds.fragments.sketches import LOW, mixed32
from crawl_envs.worlds.fragments.sketches import divergence as sketched_divergence

SPELL = np.dtype(
    [
        ("birth", np.float64),
        ("death", np.float64),
        ("key", np.uint64),
        ("size", np.int32),
        ("earlier", np.int32),
    ],
    align=True,
)


@compiled(forceinline=True)
def there(spells: Records, row: int, spell: int, time: float) -> bool:
    """Return whether the fragments of a spell were there just before a time that is not later.

    They were where the spell, or an earlier one of the same fragments, lasted then.
    """
    while spell >= 0 and spells[row, spell].birth >= time:
        spell = spells[row, spell].earlier
    return spell >= 0 and time <= spells[row, spell].death


@compiled()
def size_at(spells: Records, row: int, first: int, last: int, time: float) -> int:
    """Return how many fragments the version of a page at a time has; its spells first .. last-1."""
    size = 0
    for spell in range(first, last):
        if spells[row, spell].birth >= time:
            break
        if time <= spells[row, spell].death:
            size += spells[row, spell].size
    return size


@compiled()
def common_at(
    spells: Records, row: int, first: int, last: int, earlier: float, later: float
) -> int:
    """Return how many fragments the versions of a page at two times have in common."""
    common = 0
    for spell in range(first, last):
        if spells[row, spell].birth >= later:
            break
        if later <= spells[row, spell].death and there(spells, row, spell, earlier):
            common += spells[row, spell].size
    return common


@compiled(forceinline=True)
def jaccard(live: int, held: int, common: int) -> float:
    """Return the fragment staleness of two sets (Olston and Pandey 2008, eq. 3); 0 of empty ones.

    Args:
        live: size of the one.
        held: size of the other.
        common: how much they have in common.
    """
    union = live + held - common
    return (union - common) / union if union > 0 else 0.0


@compiled(forceinline=True)
def hash_of(key: np.uint64, number: int) -> np.uint32:
    """Return the hash of a fragment of a spell: of those with its key, the one of a number.

    The first has the lower half of the key as its word, as recorded fragments have, so that the
    hash is that of :func:`crawl_envs.worlds.fragments.sketches.sketch_of`.
    """
    word = key
    if number > 0:
        word = mixed(key + GOLDEN * np.uint64(number)) >> np.uint64(32)
    return mixed32(int(word & LOW))


@compiled()
def insert(hashes: HashArray, count: int, hashed: np.uint32) -> int:
    """Put a hash in its place among the ``count`` smallest so far, distinct and ascending.

    Where there is no more room the largest is left out. Returns how many there are then.
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


@compiled()
def smallest_at(
    spells: Records, row: int, first: int, last: int, time: float, size: int
) -> HashArray:
    """Return the ``size`` smallest hashes of a version's fragments, ascending."""
    size = min(size, size_at(spells, row, first, last, time))
    hashes, count = np.empty(size, np.uint32), 0
    for spell in range(first, last):
        if spells[row, spell].birth >= time:
            break
        if time <= spells[row, spell].death:
            key = spells[row, spell].key
            for number in range(spells[row, spell].size):
                hashed = hash_of(key, number)
                if count < size or hashed < hashes[size - 1]:
                    count = insert(hashes, count, hashed)
    return hashes[:count]


@compiled()
def hashes_at(
    spells: Records, row: int, first: int, last: int, time: float, size: int
) -> HashArray:
    """Return the hashes of a version's fragments, ascending: the smallest ``size``, 0 for all."""
    if size > 0:
        return smallest_at(spells, row, first, last, time, size)
    hashes = np.empty(size_at(spells, row, first, last, time), np.uint32)
    count = 0
    for spell in range(first, last):
        if spells[row, spell].birth >= time:
            break
        if time <= spells[row, spell].death:
            key = spells[row, spell].key
            for number in range(spells[row, spell].size):
                hashes[count] = hash_of(key, number)
                count += 1
    hashes.sort()
    distinct = min(count, 1)
    for number in range(1, count):
        if hashes[number] != hashes[distinct - 1]:
            hashes[distinct] = hashes[number]
            distinct += 1
    return hashes[:distinct]


@compiled()
def divergence_between(
    spells: Records, row: int, first: int, last: int, earlier: float, later: float, size: int
) -> float:
    """Return how far apart two versions of a page are, by sketches where these keep ``size``."""
    if size > 0:
        old = hashes_at(spells, row, first, last, earlier, size)
        new = hashes_at(spells, row, first, last, later, size)
        return sketched_divergence(old, new, size)
    live = size_at(spells, row, first, last, later)
    held = size_at(spells, row, first, last, earlier)
    return jaccard(live, held, common_at(spells, row, first, last, earlier, later))
