"""Optimal rates of pages that send no signals, crawled at even intervals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import page_arrays, quantity
from policies.solvers.allocation import Allocation, checked_floor, normalised
from policies.solvers.crawl_cost import columns_and_cost, in_crawls
from policies.solvers.multiplier import BLOCK, allocate
from policies.values.lambert import fast_interval, pieces


def binary_periodic(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    cost: ArrayLike | None = None,
    floor: ArrayLike = 0.0,
) -> Allocation:
    """Return crawl rates that maximise freshness for pages crawled at even intervals.

    Maximises ``sum mu~/Delta xi (1 - exp(-Delta/xi))`` over ``xi >= 0`` with ``sum c xi = R``. For
    c = 1 this is eq. 5 of Busa-Fekete et al., eq. 6 of Azar et al. For a multiplier Lambda, the
    interval x = Delta/xi (in changes) solves ``1 - (1 + x) e^-x = Lambda c Delta / mu~``, a Lambert
    function per page.
    Pages that never change are always fresh and get no crawl.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: cost of all crawls per unit time, > 0.
        cost: c, the cost of a crawl of each page, > 0, shape (m,), or a scalar; None for 1.
        floor: least crawl rate of each page, >= 0, shape (m,), or a scalar.

    Returns:
        Rates that spend the bandwidth (all zero when no page of any importance changes), with
        the importance-weighted freshness in [0, 1] as objective.

    Raises:
        ValueError: an argument is negative or not finite, a cost is 0, all importance is zero,
            shapes disagree, the floors cost more than the bandwidth.
    """
    weight, change, costs = columns_and_cost(cost, importance=importance, change_rate=change_rate)
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    floors, weight = checked_floor(floor, costs, bandwidth), normalised(weight)
    change, spend, at_floor = change * costs, floors * costs, np.zeros(weight.size, np.bool_)
    allocation = solve_periodic(weight, change, bandwidth)
    while (below := ~at_floor & (allocation.rates < spend)).any():
        at_floor |= below  # for good: less bandwidth is left to the others, so their rates fall
        available = bandwidth - float(spend[at_floor].sum())
        weights = np.where(at_floor | (available <= bandwidth * 1e-12), 0.0, weight)
        allocation = solve_periodic(weights, change, available)
    rates = np.where(at_floor, spend, allocation.rates)
    allocation = replace(allocation, rates=rates, objective=_share_fresh(weight, change, rates))
    return in_crawls(allocation, costs, floors)


def solve_periodic(weight: FloatArray, change_rate: FloatArray, bandwidth: float) -> Allocation:
    """Return what :func:`binary_periodic` does, for checked arrays (m,), weights of sum 1."""
    useful = (weight > 0.0) & (change_rate > 0.0)
    rates = np.zeros(len(weight))
    multiplier, iterations, converged = 0.0, 0, True
    if useful.any():
        changing = _select(change_rate, useful)
        scale = np.sqrt(2.0 * changing / _select(weight, useful))
        spent = np.empty(len(scale))
        optimum = allocate(_crawls, (changing, scale), bandwidth, _first_guess, spent)
        rates[useful] = spent * (bandwidth / spent.sum())
        multiplier, iterations = optimum.point**-2.0, optimum.iterations
        converged = bool(abs(rates.sum() / bandwidth - 1.0) <= 1e-9)
    return Allocation(
        rates=rates,
        probabilities=None,
        multiplier=multiplier,
        objective=_share_fresh(weight, change_rate, rates),
        iterations=iterations,
        converged=converged,
    )


def periodic_freshness(importance: ArrayLike, change_rate: ArrayLike, rates: ArrayLike) -> float:
    """Return the importance-weighted freshness, in [0, 1], of pages crawled at even intervals.

    Arguments have shape (m,) or are scalars, all >= 0. A page without crawls is stale, unless it
    never changes. Eq. 5 of Busa-Fekete et al. Raises ValueError as :func:`binary_periodic` does.
    """
    importance, change_rate, rates = page_arrays(
        importance=importance, change_rate=change_rate, rates=rates
    )
    return _share_fresh(normalised(importance), change_rate, rates)


def _share_fresh(weight: FloatArray, change_rate: FloatArray, rates: FloatArray) -> float:
    return min(float(_freshness(weight, change_rate, rates)), 1.0)


def _select(array: FloatArray, mask: BoolArray) -> FloatArray:
    return array if mask.all() else np.ascontiguousarray(array[mask])


def _first_guess(change_rate: FloatArray, scale: FloatArray, bandwidth: float) -> float:
    """Return a first 1/sqrt(Lambda), from intervals x = s + s^2/3: exact for ample bandwidth."""
    return float((bandwidth + change_rate.sum() / 3.0) / np.sum(change_rate / scale))


def _crawls(
    change_rate: FloatArray, scale: FloatArray, point: float, rates: FloatArray
) -> tuple[float, float]:
    """Return the sum of crawl rates, and its slope in ln ``point``, at Lambda = point^-2."""
    return _pass(change_rate, scale, 1.0 / point, pieces(), rates)


@compiled()
def _pass(
    change_rate: FloatArray, scale: FloatArray, root: float, table: FloatArray, rates: FloatArray
) -> tuple[float, float]:
    """Return the sum of crawl rates, and minus its derivative by ln ``root``, root = sqrt(Lambda).

    A page of scale sqrt(2 Delta/mu~) has s = scale * root, so that s^2/2 = Lambda Delta/mu~. The
    rates are filled in unless the array is empty.
    """
    total = slope = 0.0
    for begin in range(0, scale.size, BLOCK):
        part = steep = 0.0
        for i in range(begin, min(begin + BLOCK, scale.size)):
            s = scale[i] * root
            price = 0.5 * s * s
            rate = 0.0
            if price < 1.0:
                x = fast_interval(s, table)
                rate = change_rate[i] / x
                part += rate
                steep += rate * s * s * (1.0 + x) / ((1.0 - price) * x * x)
            if rates.size > 0:
                rates[i] = rate
        total += part
        slope += steep
    return total, slope


@compiled()
def _freshness(weight: FloatArray, change_rate: FloatArray, rates: FloatArray) -> float:
    total = 0.0
    for i in range(weight.size):
        if change_rate[i] == 0.0:
            total += weight[i]
        elif rates[i] > 0.0:
            x = change_rate[i] / rates[i]
            total += weight[i] * (-math.expm1(-x) / x if x > 0.0 else 1.0)
    return total
