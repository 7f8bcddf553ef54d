"""Arrays of pages with and without complete observation, checked and summed in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import LARGEST, SMALLEST, floats, page_arrays
from crawl_envs.types.compiling import compiled

FINITE = int(np.float64(np.finfo(np.float64).max).view(np.int64))
"""Bits of the largest float; for floats >= 0 the bits, as integers, have the same order."""

BLOCK = 4096
"""Pages per partial sum; sums of partial sums have smaller rounding errors."""


class PageTotals(NamedTuple):
    """Pages and their totals.

    ``importance``, ``change_rate`` and ``complete`` (every change is signalled) have shape (m,) and
    are contiguous. ``largest`` is the largest importance, > 0, ``fastest`` the largest change rate,
    and ``least`` the least of both. Among pages that change and have importance, ``signalled`` is
    the sum of the change rates of those with complete observation, ``unobserved`` the number of the
    others.
    """

    importance: FloatArray
    change_rate: FloatArray
    complete: BoolArray
    least: float
    largest: float
    fastest: float
    signalled: float
    unobserved: int


def page_totals(
    importance: ArrayLike, change_rate: ArrayLike, complete: ArrayLike | None
) -> PageTotals:
    """Check and sum the arrays of pages; scalars apply to every page, ``complete=None`` to none.

    Raises:
        ValueError: an argument is negative, not finite, outside the supported domain or no number,
            all importance is zero, shapes disagree, or ``complete`` is not boolean.
    """
    weight, change = floats("importance", importance), floats("change_rate", change_rate)
    if not (_plain(weight) and _plain(change) and weight.shape == change.shape):
        weight, change = page_arrays(importance=weight, change_rate=change)
    mask = page_mask(complete, len(weight))
    sound, ends, signalled, unobserved = _page_totals(weight, change, mask)
    least, smallest, largest, fastest = ends.view(np.float64).tolist()
    if not sound or smallest < SMALLEST or max(largest, fastest) > LARGEST:
        page_arrays(importance=weight, change_rate=change)  # names the argument; accepts -0
    if not largest > 0.0:
        raise ValueError("importance must be positive for at least one page, got all zeros")
    return PageTotals(weight, change, mask, least, largest, fastest, signalled, unobserved)


def page_mask(complete: ArrayLike | None, num_pages: int) -> BoolArray:
    """Return ``complete`` as a contiguous bool array (m,); ValueError unless boolean or None."""
    if complete is None:
        return np.zeros(num_pages, np.bool_)
    mask = np.asarray(complete)
    if mask.dtype != np.bool_ or mask.shape not in ((), (num_pages,)):
        raise ValueError(
            f"complete must be boolean, a scalar or of shape ({num_pages},), got {mask.dtype} of "
            f"shape {mask.shape}"
        )
    return np.require(np.broadcast_to(mask, (num_pages,)), requirements=["C", "W"])


def _plain(column: FloatArray) -> bool:
    """Return whether a column needs no copy; if so, its values are checked on the way."""
    flags = column.flags
    return (
        column.ndim == 1
        and column.size > 0
        and flags.c_contiguous
        and flags.writeable
        and flags.aligned
    )


@compiled()
def _page_totals(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray
) -> tuple[bool, IntArray, float, int]:
    """Return whether all is finite and >= 0 (not -0), and the figures of :class:`PageTotals`.

    Least, least above 0, largest and fastest are given by their bits.
    """
    least, smallest, largest, fastest = FINITE, FINITE, 0, 0
    signalled = unobserved = 0.0
    for begin in range(0, complete.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        weights, rates = importance[part], change_rate[part]
        low, small, weight, rate = _range(weights.view(np.int64), rates.view(np.int64))
        least, smallest = min(least, low), min(smallest, small)
        largest = max(largest, weight)
        fastest = max(fastest, rate)
        change, count = _changing(weights, rates, complete[part])
        signalled += change
        unobserved += count
    sound = (least >= 0) & (largest <= FINITE) & (fastest <= FINITE)
    return sound, np.array([least, smallest, largest, fastest]), signalled, int(unobserved)


@compiled()
def _range(weights: IntArray, rates: IntArray) -> tuple[int, int, int, int]:
    """Return the bits of the least of both, the least above 0, the largest weight and rate."""
    least, smallest, largest, fastest = FINITE, FINITE, 0, 0
    for i in range(weights.size):
        weight, rate = weights[i], rates[i]
        least = weight if weight < least else least
        least = rate if rate < least else least
        smallest = weight if 0 < weight < smallest else smallest
        smallest = rate if 0 < rate < smallest else smallest
        largest = weight if weight > largest else largest
        fastest = rate if rate > fastest else fastest
    return least, smallest, largest, fastest


@compiled(fastmath={"reassoc", "nsz"})
def _changing(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray
) -> tuple[float, float]:
    """Return the summed change rates with complete observation, and the number of others."""
    total = count = 0.0
    for i in range(importance.size):
        rate = change_rate[i] if importance[i] > 0.0 else 0.0
        signalled = rate if complete[i] else 0.0
        total += signalled
        count += 1.0 if rate > signalled else 0.0
    return total, count
