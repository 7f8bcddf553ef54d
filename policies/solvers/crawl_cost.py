"""Pages whose crawls differ in cost, solved as pages whose crawls all cost 1.

Freshness and penalties depend on ratios of rates. A page of cost c is therefore solved as a page
whose changes and signals come c times as fast; its crawl rate is then what it spends per unit of
time. In crawls, rates are divided by c, and times between crawls multiplied by c.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import LARGEST, SMALLEST, floats, page_arrays
from policies.solvers.allocation import Allocation


def columns_and_cost(cost: ArrayLike | None, **columns: ArrayLike) -> tuple[FloatArray, ...]:
    """Return the given columns and the cost of a crawl (1 for None), as arrays of one shape (m,).

    Raises:
        ValueError: a cost is outside the supported domain, which is positive, shapes disagree, or
            :func:`page_arrays` rejects a column.
    """
    arrays = {name: floats(name, column) for name, column in columns.items()}
    costs = floats("cost", 1.0 if cost is None else cost)
    invalid = ~((costs >= SMALLEST) & (costs <= LARGEST))
    if invalid.any():
        raise ValueError(
            f"cost must lie in [{SMALLEST:g}, {LARGEST:g}], got {costs[invalid][0]}; "
            "try another unit"
        )
    num_pages = max((array.size for array in arrays.values() if array.ndim), default=costs.size)
    if costs.shape not in ((), (num_pages,)):
        raise ValueError(
            f"cost must be a scalar or have shape ({num_pages},), got shape {costs.shape}"
        )
    return page_arrays(**arrays, cost=costs)


def in_crawls(
    allocation: Allocation, cost: FloatArray | None, floor: FloatArray | float = 0.0
) -> Allocation:
    """Return a solution in crawls per unit time, given one whose rates are spending per unit time.

    Rates are divided by ``cost``, (m,), and are at least ``floor`` in spite of rounding.
    Thresholds are multiplied by ``cost``. A cost of None is 1.
    """
    if cost is None:
        return allocation
    times = allocation.thresholds
    return replace(
        allocation,
        rates=np.maximum(allocation.rates / cost, floor),
        thresholds=None if times is None else times * cost,
    )
