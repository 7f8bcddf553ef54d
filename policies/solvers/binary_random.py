"""Optimal random crawling for binary staleness, in continuous time and in steps of time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import quantity, share
from policies.solvers.allocation import Allocation
from policies.solvers.crawl_cost import columns_and_cost, in_crawls
from policies.solvers.multiplier import BLOCK, Root, allocate
from policies.solvers.page_totals import page_totals


def binary_poisson(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    floor: float = 0.0,
    cost: ArrayLike | None = None,
) -> Allocation:
    r"""Return crawl rates that maximise freshness for crawls at random times.

    Maximises ``sum mu~ rho/(rho + Delta)`` with ``sum c rho = R`` and rho at least the floor: the
    problem of Azar et al. 2018 (their Algorithm 1; BinaryLambdaCrawl in Kolobov et al. 2019). With
    a floor of 0.4 it is BLC-eps of the code of Kolobov et al. Every page is crawled at the times of
    a Poisson process, independently of its signals. With m the floor, a page of value
    ``mu Delta/(Delta + m)^2`` above the price ``c lambda`` is crawled at the rate
    ``sqrt(mu Delta/(c lambda)) - Delta``, and every other page at the rate m.

    The spent budget is piecewise linear in ``1/sqrt(lambda)``; its root is found in 5 to 15 passes,
    without sorting pages. Pages that never change or have no importance get only the floor.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: cost of all crawls per unit time, > 0.
        floor: least rate of each page as a share, in [0, 1], of the uniform rate ``R/sum c``, at
            which all pages together spend the bandwidth (R/m without costs).
        cost: c, the cost of a crawl of each page, > 0, shape (m,), or a scalar; None for 1.

    Returns:
        Rates that spend the bandwidth (``floor`` of it when no page of any importance
        changes), with the importance-weighted freshness in [0, 1] as objective.

    Raises:
        ValueError: an argument is negative or not finite, a cost is 0, all importance is zero, the
            floor is above 1, shapes disagree.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    floor = share("floor", floor)
    pages = page_totals(importance, change_rate, None, cost)
    weight, change = pages.importance, pages.change_rate
    one = np.ones(len(weight))
    costs = one if pages.cost is None else pages.cost
    min_rate = floor * (bandwidth / float(costs.sum()))
    value, reach = np.empty(len(weight)), np.empty(len(weight))
    rates, multiplier, iterations = min_rate * costs, 0.0, 0
    top = _continuous(weight, change, rates, value, reach)
    if top > 0.0:
        above = np.zeros(len(weight))
        if floor < 1.0:
            optimum = _search((value, reach, one), bandwidth * (1.0 - floor), math.inf, above)
            top, iterations = top / (1.0 + optimum.point), optimum.iterations
        rates += above
        multiplier = top * top / pages.total
    solution = Allocation(
        rates=rates,
        probabilities=None,
        multiplier=multiplier,
        objective=min(_freshness(weight, change, rates, 0.0) / pages.total, 1.0),
        iterations=iterations,
        converged=top == 0.0 or bool(abs(rates.sum() / bandwidth - 1.0) <= 1e-9),
    )
    return in_crawls(solution, pages.cost, min_rate)


def binary_discrete(
    importance: ArrayLike,
    change_probability: ArrayLike,
    budget: float,
    *,
    ceiling: float = 1.0,
    cost: ArrayLike | None = None,
) -> Allocation:
    r"""Return the crawl probabilities per step that maximise freshness at the ends of steps.

    In each step a page changes with probability Delta, and is then crawled with probability rho,
    independently: in the long run it is fresh at the end of a share
    ``F(rho) = rho/(rho + Delta - rho Delta)`` of the steps. This maximises ``sum mu~ F(rho)`` with
    ``sum c rho = b`` and rho in [0, ceiling]. With lambda the price of a unit of cost,
    ``rho = (sqrt(mu Delta/(c lambda)) - Delta)/(1 - Delta)``, cut to [0, ceiling].

    This is the LambdaCrawl of Han et al. 2020, Table 2, corrected: the printed radical seems to
    cover ``- Delta`` too, which contradicts this F and the lambda of the table (that of rates
    without a cut). For short steps it equals :func:`binary_poisson`.

    Where Delta = 1, F = rho: every crawl has the value mu~. Such pages get the ceiling or nothing;
    pages with mu~/c equal to the price all get the same rate. Pages that never change or have no
    importance get nothing. The search takes 2 to 15 passes, or about 50 if rates jump at the root,
    without sorting pages.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_probability: probability of a change in a step, in [0, 1], shape (m,); or a scalar.
        budget: cost of all crawls per step, > 0. The part above ``ceiling`` times the cost of all
            useful pages remains unspent.
        ceiling: largest crawl probability of a page, in (0, 1].
        cost: c, the cost of a crawl of each page, > 0, shape (m,), or a scalar; None for 1.

    Returns:
        Probabilities of a crawl per step as ``rates``, with the importance-weighted freshness in
        [0, 1] as objective; the multiplier is per cost and step, and 0 where not all is spent.

    Raises:
        ValueError: an argument is negative or not finite, a cost is 0, a probability or the ceiling
            is above 1, all importance is zero, shapes disagree.
    """
    budget = quantity("budget", budget, above=0.0)
    ceiling = share("ceiling", ceiling, above=True)
    weight, chance, costs = columns_and_cost(
        cost, importance=importance, change_probability=change_probability
    )
    if chance.max() > 1.0:
        raise ValueError(f"change_probability must lie in [0, 1], got {float(chance.max())!r}")
    total = float(weight.sum())
    if total <= 0.0:
        raise ValueError("importance must be positive for at least one page, got all zeros")
    value, reach = np.empty(len(weight)), np.empty(len(weight))
    top = _discrete(weight, chance, costs, value, reach)
    multiplier, iterations, converged = 0.0, 0, True
    if budget >= ceiling * float(costs[value > 0.0].sum()):
        rates = np.where(value > 0.0, ceiling, 0.0)
    else:
        rates = np.empty(len(weight))
        optimum = _search((value, reach, costs), budget, ceiling, rates)
        multiplier, iterations = (top / (1.0 + optimum.point)) ** 2 / total, optimum.iterations
        converged = bool(abs((costs * rates).sum() / budget - 1.0) <= 1e-9)
    return Allocation(
        rates=rates,
        probabilities=None,
        multiplier=multiplier,
        objective=min(_freshness(weight, chance, rates, 1.0) / total, 1.0),
        iterations=iterations,
        converged=converged,
    )


@compiled()
def _continuous(
    importance: FloatArray,
    change_rate: FloatArray,
    min_rates: FloatArray,
    value: FloatArray,
    reach: FloatArray,
) -> float:
    """Fill in each page's reach Delta + m and scaled value, and return the largest value.

    The value is the root of mu Delta/(Delta + m)^2, with m the least rate, over the largest one.
    """
    for i in range(value.size):
        reach[i] = change_rate[i] + min_rates[i]
        root = math.sqrt(importance[i] * change_rate[i])
        value[i] = root / reach[i] if root > 0.0 else 0.0
    return _scaled(value)


@compiled()
def _discrete(
    importance: FloatArray,
    chance: FloatArray,
    cost: FloatArray,
    value: FloatArray,
    reach: FloatArray,
) -> float:
    """Fill in reach Delta/(1 - Delta) and scaled roots of mu/(Delta c); return the largest."""
    for i in range(value.size):
        reach[i] = chance[i] / (1.0 - chance[i])
        value[i] = math.sqrt(importance[i] / chance[i] / cost[i]) if chance[i] > 0.0 else 0.0
    return _scaled(value)


@inlined()
def _scaled(value: FloatArray) -> float:
    """Divide all values by the largest one, so that it becomes 1, and return the largest."""
    top = float(value.max())
    for i in range(value.size):
        value[i] = value[i] / top if value[i] > 0.0 else 0.0
    return top


def _search(
    columns: tuple[FloatArray, ...], budget: float, ceiling: float, rates: FloatArray
) -> Root:
    """Fill in crawl rates that spend the budget, and return the search's result.

    Its ``point`` + 1 is the root of the top value's price. ``columns`` are value, reach and cost.
    Rates are ``reach (value (1 + point) - 1)``, cut to [0, ceiling], with ``value`` at most 1.
    """

    def crawls(*arguments: Any) -> tuple[float, float]:
        return _pass(ceiling, *arguments)

    return allocate(crawls, columns, budget, _all_crawled, rates)


def _all_crawled(value: FloatArray, reach: FloatArray, cost: FloatArray, budget: float) -> float:
    """Return a first ``point``: the one at which all useful pages of finite reach are crawled.

    Sums avoid BLAS, whose threads wait for each other if all processors are busy: such a product of
    20,000 pages then takes 28 ms, a search without it 0.2 ms.
    """
    finite = np.where((value > 0.0) & np.isfinite(reach), cost * reach, 0.0)
    slope, missing = np.einsum("i,i", finite, value), np.einsum("i,i", finite, 1.0 - value)
    return float((budget + missing) / slope) if slope > 0.0 else 1.0


@compiled()
def _pass(
    ceiling: float,
    value: FloatArray,
    reach: FloatArray,
    cost: FloatArray,
    point: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Return the spent budget and its derivative by ln ``point``; fill in rates unless empty."""
    spent = slope = 0.0
    unused = np.empty(BLOCK)
    for begin in range(0, value.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        some = value[part]
        out = rates[part] if rates.size > 0 else unused[: some.size]
        more, steepness = _block(some, reach[part], cost[part], point, ceiling, out)
        spent += more
        slope += steepness * point
    return spent, slope


@inlined(fastmath={"contract", "nsz", "reassoc"})
def _block(
    value: FloatArray,
    reach: FloatArray,
    cost: FloatArray,
    point: float,
    ceiling: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Fill in the crawl rates of some pages; return what they spend and its slope in ``point``."""
    spent = slope = 0.0
    for i in range(value.size):
        beyond = value[i] * point - (1.0 - value[i])
        rate = reach[i] * beyond
        rate = rate if rate < ceiling else ceiling
        rate = rate if beyond > 0.0 else 0.0
        rates[i] = rate
        spent += cost[i] * rate
        slope += cost[i] * reach[i] * value[i] if rate > 0.0 and rate < ceiling else 0.0
    return spent, slope


@compiled()
def _freshness(
    importance: FloatArray, change: FloatArray, rates: FloatArray, before: float
) -> float:
    """Return the sum of the freshness of all pages, weighted by importance.

    ``before`` is 1 if a crawl at the end of a step hides the changes of the step, else 0.
    """
    total = 0.0
    for i in range(importance.size):
        if change[i] == 0.0:
            total += importance[i]
        elif rates[i] > 0.0:
            total += importance[i] / (1.0 + change[i] * (1.0 - before * rates[i]) / rates[i])
    return total
