"""Optimal random crawling for harmonic staleness: LambdaCrawl."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import quantity
from crawl_envs.types.compiling import compiled
from policies.solvers.allocation import Allocation
from policies.solvers.harmonic.costs import BLOCK, BUFFERS, block_cost
from policies.solvers.harmonic.page_totals import PageTotals, page_totals
from policies.solvers.multiplier import Root, root

FAR = 1e-70
"""Above this, and below its inverse, products of four factors are finite and not 0."""

LIFT = 2.0**540
"""Factor, applied as its square, that keeps large quotients finite."""

SAMPLED_ABOVE = 500_000
SAMPLE = 100_000


class Scales(NamedTuple):
    """Powers of two that bring importance and rates close to 1, without any rounding."""

    importance: float
    rate: float


def harmonic(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    complete: ArrayLike | None = None,
) -> Allocation:
    r"""Return crawl rates and probabilities that minimise harmonic staleness: LambdaCrawl.

    Minimises ``-sum mu ln(rho/(rho + Delta))`` over the pages without complete observation, which
    are crawled at the times of a Poisson process, plus ``-sum mu ln p`` over pages with complete
    observation, crawled on each signal with probability p; with ``sum rho + sum p Delta = R``
    (Problem 3 of Kolobov et al. 2019, and so Problems 1 and 2). All pages share one multiplier
    lambda:

    - incomplete observation: ``rho = (sqrt(Delta^2 + 4 mu Delta/lambda) - Delta) / 2`` (eq. 5),
    - complete observation: ``p = min(1, mu/(lambda Delta))`` (Prop. 5 and Algorithm 2),

    so that the split of the budget needs no search (Algorithm 3). Newton's method runs on ln(sum of
    rates) against ln(1/lambda), in a bracket; for many pages it starts from the solution for an
    evenly spaced sample. It takes 3 to 6 passes and one to check the pages, of about 0.6 ns per
    page. The budget is spent to 1e-12 (relative).

    Pages that never change or have no importance get no crawl (the paper excludes them). If all
    others have complete observation and the bandwidth exceeds their changes, they are crawled on
    every signal, the multiplier is 0 and the rest is not spent; otherwise pages without complete
    observation take the rest.

    Memory beyond the arguments: the rates, and the probabilities if ``complete`` is given.
    Arguments that are not contiguous, writeable float64 (or bool) arrays are copied.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: crawls per unit time, > 0.
        complete: which pages have complete observation, (m,) bool, or a scalar; None for no page.

    Returns:
        Crawl rates of all pages (p Delta with complete observation); ``probabilities`` p of those
        with complete observation and 0 elsewhere, or None where ``complete`` is; J of eq. 8, a sum
        over pages, as objective, and the multiplier of that sum.

    Raises:
        ValueError: an argument is negative or not finite, all importance is zero, ``complete`` is
            not boolean, shapes disagree.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete)
    rates = np.empty(len(pages.importance))
    multiplier, objective, iterations, converged = 0.0, 0.0, 0, True
    if pages.unobserved == 0 and pages.signalled <= bandwidth:
        np.multiply(pages.change_rate, pages.importance > 0.0, out=rates)
    else:
        scales = Scales(power_below(pages.largest), power_below(bandwidth))
        solution, objective = _search(pages, bandwidth * scales.rate, scales, rates)
        multiplier = unscaled(solution.at, scales)
        iterations, converged = solution.iterations, solution.converged
    return Allocation(
        rates=rates,
        probabilities=None if complete is None else crawl_probabilities(pages, rates),
        multiplier=multiplier,
        objective=objective,
        iterations=iterations,
        converged=converged,
    )


def crawl_probabilities(pages: PageTotals, rates: FloatArray) -> FloatArray:
    """Return the probabilities with complete observation, 0 elsewhere, shape (m,)."""
    return _probabilities(pages.change_rate, rates, pages.complete)


def power_below(value: float) -> float:
    """Return the power of two that scales a value > 0 into [1/2, 1)."""
    return math.ldexp(1.0, max(min(-math.frexp(value)[1], 1022), -1022))


def unscaled(at: float, scales: Scales) -> float:
    """Return the multiplier whose scaled inverse is ``at`` > 0; inf if it overflows."""
    part, exponent = math.frexp(at)
    shift = math.frexp(scales.rate)[1] - math.frexp(scales.importance)[1] - exponent
    try:
        return math.ldexp(1.0 / part, shift)
    except OverflowError:
        return math.inf


def _search(
    pages: PageTotals, budget: float, scales: Scales, rates: FloatArray
) -> tuple[Root, float]:
    """Fill in rates that spend the scaled budget; return the root and the cost."""
    none = np.empty(0)
    fast = pages.least * scales.rate > FAR and pages.fastest * scales.rate < 1.0 / FAR
    cost = 0.0

    def spend(price: float, last: bool) -> tuple[float, float]:
        nonlocal cost
        plain = fast and price < 1.0 / FAR and pages.least * scales.importance * price > FAR
        total, slope, cost = _pass(*pages[:3], *scales, price, plain, rates if last else none)
        return total / budget, slope / budget

    solution = root(spend, _start(pages, budget, scales))
    return solution, cost


def _start(pages: PageTotals, budget: float, scales: Scales) -> float:
    """Return a guess of 1/lambda, scaled: from a sample of many pages, else a lower bound."""
    count = len(pages.importance)
    if count > SAMPLED_ABOVE:
        step = count // SAMPLE
        some = [np.ascontiguousarray(column[::step]) for column in pages[:3]]
        share = budget * len(some[0]) / count
        part = page_totals(*some) if some[0].any() else None
        if part is not None and (part.unobserved > 0 or part.signalled * scales.rate > share):
            return _search(part, share, scales, np.empty(len(some[0])))[0].at
    return budget / float(_sum(pages.importance, scales.importance))


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _sum(values: FloatArray, scale: float) -> float:
    total = 0.0
    for i in range(values.size):
        total += values[i] * scale
    return total


@compiled()
def _pass(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    importance_scale: float,
    rate_scale: float,
    price: float,
    plain: bool,
    rates: FloatArray,
) -> tuple[float, float, float]:
    """Return the sum of scaled rates at 1/lambda = ``price``, its slope in ln ``price``, the cost.

    Unless ``rates`` is empty, the unscaled rates are filled in and the cost is computed. ``plain``
    is whether products of scaled rates and mu/lambda can neither overflow nor underflow.
    """
    total = slope = cost = 0.0
    weight_scale = importance_scale * price
    apart = math.isinf(weight_scale)
    unused = np.empty(BLOCK)
    buffers = np.empty((BUFFERS + 1, BLOCK))
    for begin in range(0, complete.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        weight = importance[part]
        out = rates[part] if rates.size > 0 else unused[: weight.size]
        scaled, times = (weight * importance_scale, price) if apart else (weight, weight_scale)
        given = scaled, change_rate[part], complete[part], times, rate_scale, out
        spent, steepness = _plain_block(*given) if plain else _block(*given)
        total += spent
        slope += steepness
        if rates.size > 0:
            cost += block_cost(weight, change_rate[part], out, complete[part], buffers)
    return total, slope, cost


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _plain_block(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    weight_scale: float,
    rate_scale: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Run :func:`_block` with one division, for products that cannot overflow."""
    total = slope = 0.0
    unscale = 1.0 / rate_scale
    for i in range(importance.size):
        most = importance[i] * weight_scale
        change = change_rate[i] * rate_scale
        root = math.sqrt(change * (change + 4.0 * most))
        shared = most * change / (root * (root + change))
        capped = most if most < change else change
        rising = most if most < change else 0.0
        rate = capped if complete[i] else 2.0 * shared * root
        rates[i] = rate * unscale
        total += rate
        slope += rising if complete[i] else shared * (root + change)
    return total, slope


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _block(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    weight_scale: float,
    rate_scale: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Return the sums of the scaled rates of some pages and of their derivatives.

    With k = mu/(lambda Delta) and s = sqrt(1 + 4 k), eq. 5 is rho = 2 mu/lambda/(1 + s), which
    loses no digits, and its derivative is mu/lambda/s; both share one division. For k beyond 1e300,
    which is rescaled, s + 1 = s.
    """
    total = slope = 0.0
    unscale = 1.0 / rate_scale
    for i in range(importance.size):
        most = importance[i] * weight_scale
        change = change_rate[i] * rate_scale
        far = change < most * 1e-300
        part = most / LIFT if far else most
        k = part / (change * LIFT if far else change)
        s = math.sqrt((0.0 if far else 1.0) + 4.0 * k)
        shared = part / (s if far else s * (1.0 + s))
        rate = 2.0 * shared * (1.0 if far else s)
        steep = shared * (1.0 if far else 1.0 + s)
        rate = rate if change > 0.0 else 0.0
        steep = steep if change > 0.0 else 0.0
        capped = most if most < change else change
        rising = most if most < change else 0.0
        rate = capped if complete[i] else rate
        rates[i] = rate * unscale
        total += rate
        slope += rising if complete[i] else steep
    return total, slope


@compiled(fastmath={"nsz"})
def _probabilities(change_rate: FloatArray, rates: FloatArray, complete: BoolArray) -> FloatArray:
    probabilities = np.empty(rates.size)
    for i in range(rates.size):
        share = rates[i] / change_rate[i]
        share = share if rates[i] > 0.0 else 0.0
        probabilities[i] = share if complete[i] else 0.0
    return probabilities
