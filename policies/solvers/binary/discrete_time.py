"""Optimal random crawling for binary staleness in discrete steps of time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import page_arrays, real
from crawl_envs.types.compiling import compiled
from policies.solvers.allocation import Allocation
from policies.solvers.harmonic.page_totals import BLOCK

TOLERANCE = 1e-13
MAX_ITERATIONS = 500
SAMPLED_ABOVE = 200_000
SAMPLE = 20_000
SETTLED_BELOW = 0.5
"""Largest share of the budget error that a step of Newton's method may leave."""


def binary_discrete(
    importance: ArrayLike,
    change_probability: ArrayLike,
    budget: float,
    *,
    ceiling: float = 1.0,
) -> Allocation:
    r"""Return the crawl probabilities per step that maximise freshness at the ends of steps.

    In each step a page changes with probability Delta, and is then crawled with probability rho,
    independently: in the long run it is fresh at the end of a share
    ``F(rho) = rho/(rho + Delta - rho Delta)`` of the steps. This maximises ``sum mu~ F(rho)`` with
    ``sum rho = b`` and rho in [0, ceiling]. With lambda the price of a crawl,
    ``rho = (sqrt(mu Delta/lambda) - Delta)/(1 - Delta)``, cut to [0, ceiling].

    This is the LambdaCrawl of Han et al. 2020, Table 2, in a corrected form: the printed radical
    seems to cover ``- Delta`` too, and such a rate follows neither from this F nor from the table's
    own lambda, which is that of rates without a cut. For short steps it equals
    :func:`binary_poisson`.

    Where Delta = 1, F = rho: every crawl has the value mu~, so such pages get all or nothing; those
    with mu~ equal to the price share the rest equally. Pages that never change or have no
    importance get nothing. The spent budget is piecewise linear in ``1/sqrt(lambda)``: Newton's
    method between bounds finds its root in 2 to 15 passes, or about 50 if it jumps at the root,
    without sorting pages. The budget is spent to 1e-12 (relative). Memory is two arrays of length m
    besides the rates, three if the budget runs out at a jump.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_probability: probability of a change in a step, in [0, 1], shape (m,); or a scalar.
        budget: crawls per step, > 0. The part above ``ceiling`` times the number of useful pages
            remains unspent.
        ceiling: largest crawl probability of a page, in (0, 1].

    Returns:
        Probabilities of a crawl per step as ``rates``, with the importance-weighted freshness in
        [0, 1] as objective; the multiplier is per crawl and step, and 0 where not all is spent.

    Raises:
        ValueError: an argument is negative or not finite, a probability or the ceiling is above 1,
            all importance is zero, shapes disagree.
    """
    budget = real("budget", budget, above=0.0)
    ceiling = real("ceiling", ceiling, above=0.0)
    if ceiling > 1.0:
        raise ValueError(f"ceiling must lie in (0, 1], a probability, got {ceiling!r}")
    weight, chance = page_arrays(importance=importance, change_probability=change_probability)
    most, largest = float(chance.max()), float(weight.max())
    if most > 1.0:
        raise ValueError(f"change_probability must lie in [0, 1], got {most!r}")
    if largest <= 0.0:
        raise ValueError("importance must be positive for at least one page, got all zeros")
    value, reach = np.empty(len(weight)), np.empty(len(weight))
    top, useful, total = _shape(weight, chance, largest, value, reach)
    multiplier, iterations, converged = 0.0, 0, True
    if budget >= ceiling * useful:
        rates = np.where(value > 0.0, ceiling, 0.0)
    else:
        solution = _search(value, reach, budget, ceiling)
        rates, iterations = solution.rates, solution.iterations
        multiplier = (top / (1.0 + solution.at)) ** 2 / total
        converged = bool(abs(rates.sum() / budget - 1.0) <= 1e-9)
    return Allocation(
        rates=rates,
        probabilities=None,
        multiplier=multiplier,
        objective=_freshness(weight, chance, rates, largest) / total,
        iterations=iterations,
        converged=converged,
    )


class _Solution(NamedTuple):
    """Rates at a price whose root is 1/(1 + ``at``) of the largest with positive rates."""

    at: float
    rates: FloatArray
    iterations: int


def _search(value: FloatArray, reach: FloatArray, budget: float, ceiling: float) -> _Solution:
    """Spend a budget that is > 0 and below the sum of all ceilings."""
    at = _start(value, reach, budget, ceiling)
    at, width, iterations = _root(value, reach, budget, ceiling, at)
    return _settled(value, reach, budget, ceiling, at, width, iterations)


def _start(value: FloatArray, reach: FloatArray, budget: float, ceiling: float) -> float:
    """Return a first guess of ``at``: from a sample of many pages, or as if all were crawled."""
    if len(value) <= SAMPLED_ABOVE:
        return _all_crawled(value, reach, budget)
    step = len(value) // SAMPLE
    some = np.ascontiguousarray(value[::step]), np.ascontiguousarray(reach[::step])
    share = budget * len(some[0]) / len(value)
    if share >= ceiling * np.count_nonzero(some[0]):
        return _all_crawled(value, reach, budget)
    return _root(*some, share, ceiling, _all_crawled(*some, share))[0]


def _root(
    value: FloatArray, reach: FloatArray, budget: float, ceiling: float, at: float
) -> tuple[float, float, int]:
    """Return the ``at`` that spends the budget, its largest error, and the number of passes."""
    low, high, missing = 0.0, math.inf, math.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        spent, slope = _pass(value, reach, at, ceiling, np.empty(0))
        before, missing = missing, abs(spent - budget)
        if missing <= TOLERANCE * budget:
            return at, 0.0, iteration
        low, high = (at, high) if spent < budget else (low, at)
        if high - low <= math.ulp(1.0 + low):
            break
        following = at + (budget - spent) / slope if slope > 0.0 else math.nan
        if not low < following < high or missing > SETTLED_BELOW * before:
            following, missing = _between(low, high), math.inf
        if not low < following < high:
            break
        at = following
    return low, high - low, iteration


def _between(low: float, high: float) -> float:
    """Return the geometric mean of prices' roots, or a much lower price without a bound."""
    if high == math.inf:
        return 8.0 * (1.0 + low)
    return math.expm1((math.log1p(low) + math.log1p(high)) / 2.0)


def _settled(
    value: FloatArray,
    reach: FloatArray,
    budget: float,
    ceiling: float,
    at: float,
    width: float,
    iterations: int,
) -> _Solution:
    """Return the rates at ``at``, or mixed between neighbours that spend less and more."""
    rates = np.empty(len(value))
    spent, slope = _pass(value, reach, at, ceiling, rates)
    if abs(spent - budget) <= 1e-12 * budget:
        return _Solution(at, rates, iterations)
    sign = 1.0 if spent < budget else -1.0
    if width == 0.0:
        width = abs(spent - budget) / slope if slope > 0.0 else math.ulp(1.0 + at)
    other = np.empty(len(value))
    beyond, _ = _pass(value, reach, max(at + sign * width, 0.0), ceiling, other)
    while sign * (budget - beyond) > 0.0:
        width *= 2.0
        beyond, _ = _pass(value, reach, max(at + sign * width, 0.0), ceiling, other)
    rates += (budget - spent) / (beyond - spent) * (other - rates)
    np.minimum(rates, ceiling, out=rates)
    return _Solution(at, rates, iterations)


@compiled()
def _shape(
    importance: FloatArray,
    change_probability: FloatArray,
    largest: float,
    value: FloatArray,
    reach: FloatArray,
) -> tuple[float, int, float]:
    """Fill in the roots of pages' values as shares of the largest, and their reach.

    The value of a page's first crawl is mu/Delta; its reach is Delta/(1 - Delta), inf where it
    always changes. Returns the largest root, the number of pages with positive value, and the sum
    of importance as a multiple of the largest.
    """
    top = total = 0.0
    for i in range(value.size):
        share, chance = importance[i] / largest, change_probability[i]
        reach[i] = chance / (1.0 - chance)
        root = math.sqrt(share) / math.sqrt(chance) if share > 0.0 and chance > 0.0 else 0.0
        value[i] = root
        top = root if root > top else top
    useful = 0
    for begin in range(0, value.size, BLOCK):
        part = 0.0
        for i in range(begin, min(begin + BLOCK, value.size)):
            value[i] = value[i] / top if top > 0.0 else 0.0
            useful += value[i] > 0.0
            part += importance[i] / largest
        total += part
    return top, useful, total


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _all_crawled(value: FloatArray, reach: FloatArray, budget: float) -> float:
    """Return the ``at`` of the budget if each rate were Delta (value (1 + at) - 1)."""
    short = slope = 0.0
    for i in range(value.size):
        chance = 1.0 / (1.0 + 1.0 / reach[i]) if value[i] > 0.0 else 0.0
        short += chance * (1.0 - value[i])
        slope += chance * value[i]
    return (budget + short) / slope


@compiled()
def _pass(
    value: FloatArray, reach: FloatArray, at: float, ceiling: float, rates: FloatArray
) -> tuple[float, float]:
    """Return the spent budget and its derivative by ``at``; fill in rates unless empty."""
    spent = slope = 0.0
    unused = np.empty(BLOCK)
    for begin in range(0, value.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        some = value[part]
        out = rates[part] if rates.size > 0 else unused[: some.size]
        _rates(some, reach[part], at, ceiling, out)
        more, steepness = _sums(some, reach[part], ceiling, out)
        spent += more
        slope += steepness
    return spent, slope


@compiled(fastmath={"nsz"})
def _rates(
    value: FloatArray, reach: FloatArray, at: float, ceiling: float, rates: FloatArray
) -> None:
    for i in range(value.size):
        beyond = value[i] * at - (1.0 - value[i])
        rate = reach[i] * beyond
        rate = rate if rate < ceiling else ceiling
        rates[i] = rate if beyond > 0.0 else 0.0


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _sums(
    value: FloatArray, reach: FloatArray, ceiling: float, rates: FloatArray
) -> tuple[float, float]:
    spent = slope = 0.0
    for i in range(value.size):
        between = rates[i] > 0.0 and rates[i] < ceiling
        spent += rates[i]
        slope += reach[i] * value[i] if between else 0.0
    return spent, slope


@compiled()
def _freshness(
    importance: FloatArray, change_probability: FloatArray, rates: FloatArray, largest: float
) -> float:
    total = 0.0
    for begin in range(0, importance.size, BLOCK):
        part = 0.0
        for i in range(begin, min(begin + BLOCK, importance.size)):
            chance, rate = change_probability[i], rates[i]
            if chance == 0.0:
                part += importance[i] / largest
            elif rate > 0.0:
                part += importance[i] / largest / (1.0 + chance * (1.0 - rate) / rate)
        total += part
    return total
