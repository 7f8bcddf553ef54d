"""Signals under way: a heap of events in an array, the first to arrive at its top."""

from __future__ import annotations

from crawl_envs.kernels import compiled
from crawl_envs.sim.state import Records


@compiled()
def push_pending(heap: Records, size: int, time: float, code: int) -> None:
    """Add a signal under way to a heap of ``size`` events, ordered by time of arrival.

    Raises:
        RuntimeError: the heap is full.
    """
    if size == heap.shape[0]:
        raise RuntimeError("more signals are under way than was provided for")
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
    """Remove the signal that arrives first, ``heap[0]``, from a heap of ``size`` events."""
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
