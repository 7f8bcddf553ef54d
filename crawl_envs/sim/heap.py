"""Heaps: of signals under way by arrival, and an indexed heap of pages by due time.

Pages with an infinite due time are not in the indexed heap.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.sim.state import Records
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled


@compiled()
def push_pending(heap: Records, size: int, time: float, code: int) -> None:
    """Add a signal to a heap of ``size`` signals under way, ordered by time of arrival.

    Raises:
        RuntimeError: the heap is full.
    """
    if size == heap.shape[0]:
        raise RuntimeError("there are more signals under way than the heap can hold")
    hole = size
    while hole > 0:
        parent = (hole - 1) // 2
        if heap[parent].time <= time:
            break
        heap[hole].time, heap[hole].code = heap[parent].time, heap[parent].code
        hole = parent
    heap[hole].time, heap[hole].code = time, code


@compiled()
def pop_pending(heap: Records, size: int) -> None:
    """Remove the first signal, ``heap[0]``, from a heap of ``size`` events."""
    last = size - 1
    time, code = heap[last].time, heap[last].code
    hole = 0
    while 2 * hole + 1 < last:
        child = 2 * hole + 1
        if child + 1 < last and heap[child + 1].time < heap[child].time:
            child += 1
        if time <= heap[child].time:
            break
        heap[hole].time, heap[hole].code = heap[child].time, heap[child].code
        hole = child
    heap[hole].time, heap[hole].code = time, code


class IndexedHeap(NamedTuple):
    """Pages ordered by due time; the lowest page is first among equal times.

    Attributes:
        due: due time of each page, inf for never, (m,).
        pages: the heap; the first page is at place 0, (m,).
        place: place of each page in the heap, -1 if it is not in it, (m,).
        size: number of pages in the heap, (1,).
    """

    due: FloatArray
    pages: IntArray
    place: IntArray
    size: IntArray


def empty_heap(num_pages: int) -> IndexedHeap:
    """Return a heap for ``num_pages`` pages, none of them due."""
    return IndexedHeap(
        due=np.full(num_pages, np.inf),
        pages=np.zeros(num_pages, np.int64),
        place=np.full(num_pages, -1),
        size=np.zeros(1, np.int64),
    )


@compiled(forceinline=True)
def comes_before(due: FloatArray, one: int, other: int) -> bool:
    """Return whether a page is due before another one."""
    return bool(due[one] < due[other] or (due[one] == due[other] and one < other))


@compiled(forceinline=True)
def put(heap: IndexedHeap, page: int, hole: int) -> None:
    """Put a page at a place of the heap."""
    heap.pages[hole] = page
    heap.place[page] = hole


@compiled(forceinline=True)
def sift(heap: IndexedHeap, page: int, hole: int) -> None:
    """Fill a hole of the heap with a page, after moving the hole to the right place."""
    due, pages, size = heap.due, heap.pages, heap.size[0]
    while hole > 0 and comes_before(due, page, pages[(hole - 1) // 2]):
        put(heap, pages[(hole - 1) // 2], hole)
        hole = (hole - 1) // 2
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and comes_before(due, pages[child + 1], pages[child]):
            child += 1
        if not comes_before(due, pages[child], page):
            break
        put(heap, pages[child], hole)
        hole = child
    put(heap, page, hole)


@compiled(forceinline=True)
def set_due(heap: IndexedHeap, page: int, time: float) -> None:
    """Set the due time of a page, which may be infinite."""
    heap.due[page] = time
    hole = heap.place[page]
    if math.isinf(time):
        if hole < 0:
            return
        heap.place[page] = -1
        heap.size[0] -= 1
        if hole < heap.size[0]:
            sift(heap, heap.pages[heap.size[0]], hole)
        return
    if hole < 0:
        hole = heap.size[0]
        heap.size[0] += 1
    sift(heap, page, hole)


@compiled(forceinline=True)
def first_due(heap: IndexedHeap) -> float:
    """Return the due time of the first page, inf if there is none."""
    return float(heap.due[heap.pages[0]]) if heap.size[0] > 0 else math.inf
