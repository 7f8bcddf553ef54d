"""An indexed heap: entries 0 to n - 1 ordered by due time, pages for instance.

Entries with an infinite due time are not in the heap.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled import FloatArray, IntArray
from crawl_envs.compiled.compiling import compiled, inlined


class IndexedHeap(NamedTuple):
    """The arrays of a heap of entries ordered by due time, equal times by lowest number."""

    due: FloatArray  # due time of each entry, inf for never, (n,)
    entries: IntArray  # the heap in the first ``size[0]`` places, the first entry at place 0, (n,)
    place: IntArray  # place of each entry in the heap, -1 if it is not in it, (n,)
    size: IntArray  # number of entries in the heap, (1,)


@compiled()
def empty_heap(length: int) -> IndexedHeap:
    """Return a heap with room for the entries 0 to ``length`` - 1, none of which has a due time."""
    never, outside = np.full(length, np.inf), np.full(length, -1)
    return IndexedHeap(never, np.arange(length), outside, np.zeros(1, np.int64))


@inlined(forceinline=True)
def comes_before(due: FloatArray, first: int, second: int) -> bool:
    """Return whether entry ``first`` is due before entry ``second``; equal times go by number."""
    return bool(due[first] < due[second] or (due[first] == due[second] and first < second))


@inlined(forceinline=True)
def put(heap: IndexedHeap, entry: int, hole: int) -> None:
    """Put an entry at a place of the heap, and note the place."""
    heap.entries[hole] = entry
    heap.place[entry] = hole


@inlined(forceinline=True)
def sift(heap: IndexedHeap, entry: int, hole: int) -> None:
    """Put an entry into the heap: move ``hole`` up or down to the right place, and fill it."""
    due, entries, size = heap.due, heap.entries, heap.size[0]
    while hole > 0 and comes_before(due, entry, entries[(hole - 1) // 2]):
        put(heap, entries[(hole - 1) // 2], hole)
        hole = (hole - 1) // 2
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and comes_before(due, entries[child + 1], entries[child]):
            child += 1
        if not comes_before(due, entries[child], entry):
            break
        put(heap, entries[child], hole)
        hole = child
    put(heap, entry, hole)


@inlined(forceinline=True)
def set_due(heap: IndexedHeap, entry: int, time: float) -> None:
    """Set the due time of an entry; an infinite time removes the entry from the heap."""
    heap.due[entry] = time
    hole = heap.place[entry]
    if math.isinf(time):
        if hole < 0:
            return
        heap.place[entry] = -1
        heap.size[0] -= 1
        last = heap.entries[heap.size[0]]
        heap.entries[heap.size[0]] = entry
        if hole < heap.size[0]:
            sift(heap, last, hole)
        return
    if hole < 0:
        hole = heap.size[0]
        heap.size[0] += 1
    sift(heap, entry, hole)


@inlined(forceinline=True)
def first_due(heap: IndexedHeap) -> float:
    """Return the due time of the entry that is due first, or inf if the heap is empty."""
    return float(heap.due[heap.entries[0]]) if heap.size[0] > 0 else math.inf
