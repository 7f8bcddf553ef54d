"""Optimal random crawling for binary staleness, with a floor: BinaryLambdaCrawl."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import quantity, real
from crawl_envs.types.compiling import compiled
from policies.solvers.allocation import Allocation
from policies.solvers.harmonic.page_totals import BLOCK, page_totals

TOLERANCE = 1e-13
MAX_ITERATIONS = 500
SAMPLED_ABOVE = 200_000
SAMPLE = 20_000


def binary_poisson(
    importance: ArrayLike, change_rate: ArrayLike, bandwidth: float, floor: float = 0.0
) -> Allocation:
    r"""Return crawl rates that maximise freshness for crawls at random times.

    Maximises ``sum mu~ rho/(rho + Delta)`` with ``sum rho = R`` and rho at least the floor: the
    problem of Azar et al. 2018 (their Algorithm 1; BinaryLambdaCrawl in Kolobov et al. 2019), and
    with a floor BLC-eps of the latter's code (floor 0.4). Every page is crawled at the times of a
    Poisson process, independently of its signals. With m the floor, a page of value
    ``mu Delta/(Delta + m)^2`` above the multiplier is crawled at the rate
    ``sqrt(mu Delta/lambda) - Delta``, the others at the rate m.

    The spent budget is a convex, piecewise linear function of ``1/sqrt(lambda)``: Newton's method
    from above finds its root in 5 to 15 passes, without sorting pages. Pages that never change or
    have no importance get only the floor. The budget is spent to 1e-12 (relative). Memory is two
    arrays of length m besides the rates.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: crawls per unit time, > 0.
        floor: least rate of each page as a share, in [0, 1], of the uniform rate R/m.

    Returns:
        Rates that sum to the bandwidth (to ``floor`` of it when no page of any importance
        changes), with the importance-weighted freshness in [0, 1] as objective.

    Raises:
        ValueError: an argument is negative or not finite, all importance is zero, the floor is
            above 1, shapes disagree.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    floor = real("floor", floor, least=0.0)
    if floor > 1.0:
        raise ValueError(f"floor must lie in [0, 1], a share of the uniform rate, got {floor!r}")
    pages = page_totals(importance, change_rate, None)
    least = floor * (bandwidth / len(pages.importance))
    rates = np.full(len(pages.importance), least)
    multiplier, iterations, converged = 0.0, 0, True
    total = _sum_scaled(pages.importance, pages.largest)
    if pages.unobserved > 0:
        value, reach = np.empty(len(rates)), np.empty(len(rates))
        top = _shape(pages.importance, pages.change_rate, least, pages.largest, value, reach)
        solution = _search(value, reach, bandwidth * (1.0 - floor))
        rates += solution.rates
        multiplier = (top / (1.0 + solution.at)) ** 2 / total
        iterations = solution.iterations
        converged = bool(abs(rates.sum() / bandwidth - 1.0) <= 1e-9)
    return Allocation(
        rates=rates,
        probabilities=None,
        multiplier=multiplier,
        objective=_freshness(pages.importance, pages.change_rate, rates, pages.largest) / total,
        iterations=iterations,
        converged=converged,
    )


class _Solution(NamedTuple):
    """Rates above the floor at a price that is 1 + ``at`` times the least with positive rates."""

    at: float
    rates: FloatArray
    iterations: int


def _search(value: FloatArray, reach: FloatArray, budget: float) -> _Solution:
    """Spend the budget, >= 0, on rates reach (value (1 + at) - 1), where these are positive.

    ``value`` is at most 1. Newton's method converges from above.
    """
    if budget <= 0.0:
        return _Solution(0.0, np.zeros(len(value)), 0)
    at, iterations, none = _start(value, reach, budget), 0, np.empty(0)
    while True:
        iterations += 1
        spent, slope, short = _pass(value, reach, at, none)
        if slope == 0.0:  # a sample's guess
            at = _all_crawled(value, reach, budget)
            continue
        following = (budget + short) / slope
        stays = iterations > 1 and not following < at
        if stays or abs(spent - budget) <= TOLERANCE * budget or iterations >= MAX_ITERATIONS:
            break
        at = following
    return _settled(value, reach, budget, at, iterations)


def _start(value: FloatArray, reach: FloatArray, budget: float) -> float:
    """Return a first guess of ``at``: from a sample of many pages, or as if all were crawled."""
    if len(value) <= SAMPLED_ABOVE:
        return _all_crawled(value, reach, budget)
    step = len(value) // SAMPLE
    some = np.ascontiguousarray(value[::step]), np.ascontiguousarray(reach[::step])
    if not some[0].any():
        return _all_crawled(value, reach, budget)
    return _search(*some, budget * len(some[0]) / len(value)).at


def _all_crawled(value: FloatArray, reach: FloatArray, budget: float) -> float:
    """Return the root if every rate were positive, an upper bound of the true one."""
    short, slope = _whole(value, reach)
    return (budget + short) / slope


def _settled(
    value: FloatArray, reach: FloatArray, budget: float, at: float, iterations: int
) -> _Solution:
    """Return the rates at ``at``, or mixed between neighbours that spend more and less."""
    rates = np.zeros(len(value))
    spent, slope, _ = _pass(value, reach, at, rates)
    if abs(spent - budget) <= 1e-12 * budget:
        return _Solution(at, rates, iterations)
    sign = 1.0 if spent < budget else -1.0
    width = max(abs(spent - budget) / slope, math.ulp(at))
    other = np.zeros(len(value))
    beyond, _, _ = _pass(value, reach, at + sign * width, other)
    while sign * (budget - beyond) > 0.0:
        width *= 2.0
        beyond, _, _ = _pass(value, reach, max(at + sign * width, 0.0), other)
    rates += (budget - spent) / (beyond - spent) * (other - rates)
    return _Solution(at, rates, iterations)


@compiled()
def _sum_scaled(importance: FloatArray, largest: float) -> float:
    total = 0.0
    for i in range(importance.size):
        total += importance[i] / largest
    return total


@compiled()
def _shape(
    importance: FloatArray,
    change_rate: FloatArray,
    least: float,
    largest: float,
    value: FloatArray,
    reach: FloatArray,
) -> float:
    """Fill in the roots of pages' values as shares of the largest, and reach; return the largest.

    A page's value is mu Delta/(Delta + m)^2, its reach is Delta + m.
    """
    top = 0.0
    for i in range(value.size):
        together = change_rate[i] + least
        reach[i] = together
        root = math.sqrt(importance[i] / largest) * math.sqrt(change_rate[i]) / together
        root = root if importance[i] > 0.0 and change_rate[i] > 0.0 else 0.0
        value[i] = root
        top = root if root > top else top
    for i in range(value.size):
        value[i] /= top
    return top


@compiled()
def _pass(
    value: FloatArray, reach: FloatArray, at: float, rates: FloatArray
) -> tuple[float, float, float]:
    """Return the spent budget and, of crawled pages, its derivative by ``at`` and the shortfall.

    Rates are filled in unless they are empty.
    """
    spent = slope = short = 0.0
    unused = np.empty(BLOCK)
    for begin in range(0, value.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        some = value[part]
        out = rates[part] if rates.size > 0 else unused[: some.size]
        _rates(some, reach[part], at, out)
        more, steepness, missing = _sums(some, reach[part], out)
        spent += more
        slope += steepness
        short += missing
    return spent, slope, short


@compiled(fastmath={"nsz"})
def _rates(value: FloatArray, reach: FloatArray, at: float, rates: FloatArray) -> None:
    for i in range(value.size):
        beyond = value[i] * at - (1.0 - value[i])
        rates[i] = reach[i] * beyond if beyond > 0.0 else 0.0


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _sums(value: FloatArray, reach: FloatArray, rates: FloatArray) -> tuple[float, float, float]:
    spent = slope = short = 0.0
    for i in range(value.size):
        crawled = reach[i] if rates[i] > 0.0 else 0.0
        spent += rates[i]
        slope += crawled * value[i]
        short += crawled * (1.0 - value[i])
    return spent, slope, short


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _whole(value: FloatArray, reach: FloatArray) -> tuple[float, float]:
    """Return the shortfall of all useful pages from their reach, and the derivative."""
    short = slope = 0.0
    for i in range(value.size):
        share = value[i] * reach[i]
        short += reach[i] * (1.0 - value[i]) if share > 0.0 else 0.0
        slope += share
    return short, slope


@compiled()
def _freshness(
    importance: FloatArray, change_rate: FloatArray, rates: FloatArray, largest: float
) -> float:
    total = 0.0
    for i in range(importance.size):
        if change_rate[i] == 0.0:
            total += importance[i] / largest
        elif rates[i] > 0.0:
            total += importance[i] / largest / (1.0 + change_rate[i] / rates[i])
    return total
