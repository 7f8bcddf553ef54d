"""Optimal rates of pages that send no signals, crawled at even intervals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import page_arrays
from crawl_envs.types.compiling import compiled
from policies.solvers.allocation import Allocation, normalised, positive
from policies.values.lambert import NEVER, fast_interval, pieces

BUDGET_TOLERANCE = 1e-11
MAX_ITERATIONS = 200
SAMPLED_ABOVE = 200_000
SAMPLE = 20_000


def binary_periodic(importance: ArrayLike, change_rate: ArrayLike, bandwidth: float) -> Allocation:
    """Return crawl rates that maximise freshness for pages crawled at even intervals.

    Maximises ``sum mu~/Delta xi (1 - exp(-Delta/xi))`` over ``xi >= 0`` with ``sum xi = R``: eq. 5
    of Busa-Fekete et al., eq. 6 of Azar et al. For a multiplier Lambda, the interval x = Delta/xi
    (in changes) solves ``1 - (1 + x) e^-x = Lambda Delta / mu~``, a Lambert function per page; the
    multiplier is found by Newton's method on log(sum xi) against its logarithm, in a bracket.
    Pages that never change are always fresh and get no crawl.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: crawls per unit time, > 0.

    Returns:
        Rates that sum to the bandwidth (all zero when no page of any importance changes), with
        the importance-weighted freshness in [0, 1] as objective.

    Raises:
        ValueError: an argument is negative or not finite, all importance is zero, shapes disagree.
    """
    importance, change_rate = page_arrays(importance=importance, change_rate=change_rate)
    bandwidth = positive("bandwidth", bandwidth)
    return solve_periodic(normalised(importance), change_rate, bandwidth)


def solve_periodic(weight: FloatArray, change_rate: FloatArray, bandwidth: float) -> Allocation:
    """Solve for arrays (m,) that were checked, with weights that sum to 1."""
    useful = (weight > 0.0) & (change_rate > 0.0)
    rates = np.zeros(len(weight))
    if not useful.any():
        return Allocation(rates, None, 0.0, _share_fresh(weight, change_rate, rates), 0, True)
    changing = _kept(change_rate, useful)
    scale = math.sqrt(2.0) * np.sqrt(changing) / np.sqrt(_kept(weight, useful))
    start = _start(changing, scale, bandwidth)
    useful_rates, root, iterations = _spend(changing, scale, bandwidth, start)
    rates[useful] = useful_rates
    return Allocation(
        rates=rates,
        probabilities=None,
        multiplier=root * root,
        objective=_share_fresh(weight, change_rate, rates),
        iterations=iterations,
        converged=iterations < MAX_ITERATIONS
        and bool(abs(useful_rates.sum() / bandwidth - 1) <= 1e-9),
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


def _kept(array: FloatArray, mask: BoolArray) -> FloatArray:
    return array if mask.all() else np.ascontiguousarray(array[mask])


def _start(change_rate: FloatArray, scale: FloatArray, bandwidth: float) -> float:
    """Return a first guess of the root of the multiplier.

    From x = s + s^2/3, which is exact for ample bandwidth; for millions of pages, the solution for
    an evenly spaced sample.
    """
    if len(scale) <= SAMPLED_ABOVE:
        return float(np.sum(change_rate / scale) / (bandwidth + change_rate.sum() / 3.0))
    step = len(scale) // SAMPLE
    part = np.ascontiguousarray(change_rate[::step])
    parts = np.ascontiguousarray(scale[::step])
    share = bandwidth * (len(part) / len(scale))
    return _spend(part, parts, share, _start(part, parts, share))[1]


def _spend(
    change_rate: FloatArray, scale: FloatArray, bandwidth: float, start: float
) -> tuple[FloatArray, float, int]:
    """Return rates that spend the bandwidth, the root of their multiplier, and the passes.

    A page of scale sqrt(2 Delta/mu~) has s = scale * root, so that s^2/2 = Lambda Delta/mu~.
    """
    table = pieces()
    low, high = 0.0, NEVER / float(scale.min()) * (1.0 + 1e-15)  # spends too much; spends nothing
    root = min(start, 0.9 * high)
    last_gap = math.inf
    iterations = 0
    for iterations in range(1, MAX_ITERATIONS + 1):
        spent, slope = _pass(change_rate, scale, root, table)
        gap = math.log(spent / bandwidth) if spent > 0.0 else -math.inf
        if abs(gap) <= BUDGET_TOLERANCE:
            break
        low, high = (root, high) if gap > 0.0 else (low, root)
        newton = root * math.exp(min(-gap * spent / slope, 99.0)) if slope < 0.0 else math.nan
        slow = abs(gap) > 0.5 * abs(last_gap)
        last_gap = gap
        if low < newton < high and not (slow and low > 0.0):
            root = newton
            continue
        root = _middle(low, high)
        if not low < root < high:
            return _between(change_rate, scale, bandwidth, low, high), low, iterations
    rates = _rates(change_rate, scale, root, table)
    rates *= bandwidth / rates.sum()
    return rates, root, iterations


def _middle(low: float, high: float) -> float:
    if low <= 0.0:
        return 0.3 * high
    return 0.5 * (low + high) if high < 2.0 * low else math.sqrt(low) * math.sqrt(high)


def _between(
    change_rate: FloatArray, scale: FloatArray, bandwidth: float, low: float, high: float
) -> FloatArray:
    """Spend the budget that two adjacent multipliers leave on the pages that drop out there."""
    many = _rates(change_rate, scale, low, pieces())
    few = _rates(change_rate, scale, high, pieces())
    total = few.sum()
    share = (bandwidth - total) / (many.sum() - total)
    rates: FloatArray = few + share * (many - few)
    rates *= bandwidth / rates.sum()
    return rates


@compiled()
def _pass(
    change_rate: FloatArray, scale: FloatArray, root: float, table: FloatArray
) -> tuple[float, float]:
    """Return the sum of the rates, and its derivative by the logarithm of the root."""
    total = 0.0
    slope = 0.0
    for i in range(scale.size):
        s = scale[i] * root
        price = 0.5 * s * s
        if price < 1.0:
            x = fast_interval(s, table)
            rate = change_rate[i] / x
            total += rate
            slope -= rate * s * s * (1.0 + x) / ((1.0 - price) * x * x)
    return total, slope


@compiled()
def _rates(
    change_rate: FloatArray, scale: FloatArray, root: float, table: FloatArray
) -> FloatArray:
    rates = np.zeros(scale.size)
    for i in range(scale.size):
        s = scale[i] * root
        if 0.5 * s * s < 1.0:
            rates[i] = change_rate[i] / fast_interval(s, table)
    return rates


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
