"""The pages above the top bar in the order of their values, for many choices at one time."""

from __future__ import annotations

from typing import Any

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import inlined
from crawl_envs.types.lazy_argmax import LazyArgmax, value_at


@inlined(forceinline=True)
def is_before(values: FloatArray, pages: IntArray, one: int, other: int) -> bool:
    """Return whether one place is of a larger value, or of a lower page of the same value."""
    return bool(
        values[one] > values[other] or (values[one] == values[other] and pages[one] < pages[other])
    )


@inlined()
def sift_down(values: FloatArray, pages: IntArray, place: int, size: int) -> None:
    """Restore the order of a heap below a place."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and is_before(values, pages, child + 1, child):
            child += 1
        if not is_before(values, pages, child, place):
            break
        values[place], values[child] = values[child], values[place]
        pages[place], pages[child] = pages[child], pages[place]
        place = child


@inlined()
def rank(lazy: LazyArgmax, value: Any, now: float, values: FloatArray, pages: IntArray) -> int:
    """Write a heap of the pages above the top bar, the best first, and return its size."""
    size = 0
    for place in range(lazy.search[0].top):
        current = value_at(lazy, value, lazy.members[place], now)
        if current >= lazy.search[0].top_bar and size < pages.shape[0]:
            values[size], pages[size] = current, lazy.members[place]
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sift_down(values, pages, place, size)
    return size


@inlined()
def pop_best(values: FloatArray, pages: IntArray, size: int) -> int:
    """Remove the first page of a heap of ``size`` pages, and return it."""
    page = pages[0]
    values[0], pages[0] = values[size - 1], pages[size - 1]
    sift_down(values, pages, 0, size - 1)
    return int(page)
