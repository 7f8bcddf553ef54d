"""Parameters of pages with and without complete observation, checked and summed in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import LARGEST, SMALLEST, floats, page_arrays
from policies.solvers.crawl_cost import columns_and_cost
from policies.solvers.multiplier import BLOCK, Crawls, allocate

LOW, HIGH = (int(np.float64(end).view(np.int64)) for end in (SMALLEST, LARGEST))
"""Bits of the ends of the supported domain; bits of floats >= 0, as integers, have their order."""


class PageTotals(NamedTuple):
    """Parameters of pages, checked, and their totals.

    ``importance``, ``change_rate`` and ``complete`` (every change is signalled) have shape (m,) and
    are contiguous. ``total`` is the sum of importance, > 0, and ``blind`` its sum over pages
    without complete observation. Only pages that change and have importance count for the next two.
    ``signalled`` is the sum of change rates with complete observation, and ``unobserved`` the
    number of pages without it. Change rates are multiplied by ``cost``, (m,), unless it is None;
    see :mod:`policies.solvers.crawl_cost`.
    """

    importance: FloatArray
    change_rate: FloatArray
    complete: BoolArray
    total: float
    blind: float
    signalled: float
    unobserved: int
    cost: FloatArray | None


def page_totals(
    importance: ArrayLike,
    change_rate: ArrayLike,
    complete: ArrayLike | None,
    cost: ArrayLike | None = None,
) -> PageTotals:
    """Return checked parameters of pages with their totals; a scalar applies to every page.

    ``complete=None`` means that no page has complete observation.

    Raises:
        ValueError: an argument is negative, not finite, outside the supported domain or no number,
            all importance is zero, shapes disagree, or ``complete`` is not boolean.
    """
    weight, change = floats("importance", importance), floats("change_rate", change_rate)
    costs = None
    if cost is not None:
        weight, change, costs = columns_and_cost(cost, importance=weight, change_rate=change)
        change = change * costs
    elif not (_plain(weight) and _plain(change) and weight.shape == change.shape):
        weight, change = page_arrays(importance=weight, change_rate=change)
    mask = page_mask(complete, len(weight))
    inside, total, blind, signalled, unobserved = _page_totals(weight, change, mask)
    if costs is None and not inside:
        page_arrays(importance=weight, change_rate=change)  # names the argument; accepts -0
    if not total > 0.0:
        raise ValueError("importance must be positive for at least one page, got all zeros")
    return PageTotals(weight, change, mask, total, blind, signalled, int(unobserved), costs)


def spend(
    pages: PageTotals, bandwidth: float, crawls: Crawls, rates: FloatArray
) -> tuple[float, int, bool]:
    """Fill in optimal crawl rates, given ``crawls``, which computes rates from 1/lambda.

    Returns lambda, the number of passes, and whether the bandwidth is spent. It also counts as
    spent if all pages have complete observation and the bandwidth exceeds their signals.
    """
    if pages.unobserved == 0 and pages.signalled <= bandwidth:
        np.multiply(pages.change_rate, pages.importance > 0.0, out=rates)
        return 0.0, 0, True

    def guess(importance: FloatArray, _: FloatArray, complete: BoolArray, budget: float) -> float:
        return float(budget / importance.sum())

    optimum = allocate(crawls, pages[:3], bandwidth, guess, rates)
    return 1.0 / optimum.point, optimum.iterations, optimum.converged


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
    """Return whether a column can be used without a copy; its values are checked elsewhere."""
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
) -> tuple[bool, float, float, float, float]:
    """Return whether all numbers are in the domain (and not -0), and four totals of the pages."""
    outside = 0
    total = blind = signalled = unobserved = 0.0
    for begin in range(0, complete.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        weights, rates = importance[part], change_rate[part]
        outside += _outside(weights.view(np.int64)) + _outside(rates.view(np.int64))
        weight, unseen, change, count = _sums(weights, rates, complete[part])
        total += weight
        blind += unseen
        signalled += change
        unobserved += count
    return outside == 0, total, blind, signalled, unobserved


@inlined()
def _outside(bits: IntArray) -> int:
    """Return how many floats >= 0, given as their bits, are outside the domain and not 0."""
    count = 0
    for i in range(bits.size):
        count += (bits[i] != 0) & ((bits[i] < LOW) | (bits[i] > HIGH))
    return count


@compiled(fastmath={"reassoc", "nsz"})
def _sums(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray
) -> tuple[float, float, float, float]:
    """Return the totals ``total``, ``blind``, ``signalled``, ``unobserved`` of some pages."""
    total = blind = signalled = unobserved = 0.0
    for i in range(importance.size):
        rate = change_rate[i] if importance[i] > 0.0 else 0.0
        observed = rate if complete[i] else 0.0
        total += importance[i]
        blind += 0.0 if complete[i] else importance[i]
        signalled += observed
        unobserved += 1.0 if rate > observed else 0.0
    return total, blind, signalled, unobserved
