"""Optimal crawling for harmonic staleness at even intervals, or at every n-th signal."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import page_arrays, quantity
from policies.solvers.allocation import Allocation
from policies.solvers.crawl_cost import in_crawls
from policies.solvers.multiplier import BLOCK
from policies.solvers.page_totals import PageTotals, page_mask, page_totals, spend
from policies.values.lambert import harmonic_interval

CYCLE_TOLERANCE = 1e-11
"""Relative rounding of a mean cycle in signals that counts as an integer."""

SMALL = 1.0
"""Changes per interval below which the cost is summed as a series."""

TERMS = 18


def harmonic_periodic(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    complete: ArrayLike | None = None,
    cost: ArrayLike | None = None,
) -> Allocation:
    r"""Return optimal intervals and numbers of signals for harmonic staleness.

    A page without complete observation is crawled every T units of time; a page with complete
    observation, at its n-th signal since the last crawl. For a multiplier lambda the optimum
    follows from the crawl values (after Olston and Pandey 2008, eq. 4):

    - incomplete observation: ``mu (T - (1 - exp(-Delta T))/Delta) = c lambda``,
    - complete observation: the least n with ``mu n/Delta >= c lambda``, with c the cost of a crawl.

    No policy that observes the pages has a lower long-run cost at this crawl rate. The random
    crawls of :func:`harmonic` cost more.

    Rates of pages with complete observation decrease in steps, Delta/n. If the budget ends within a
    step, pages at the step are crawled at the n-th signal with a probability, and otherwise at the
    next signal; both are optimal there. Rates follow from this mixture, and spend the bandwidth.

    Pages that never change or have no importance get no crawl. If all other pages have complete
    observation and the bandwidth exceeds their changes, every signal leads to a crawl, the
    multiplier is 0 and some bandwidth is not spent.

    Args, units and errors as for :func:`harmonic`.

    Returns:
        Crawl rates; ``thresholds``, the intervals T, inf with complete observation and without
        crawls; ``signals``, the numbers n of pages with complete observation, inf elsewhere;
        ``probabilities`` of a crawl at the n-th signal (otherwise at the next), 1 elsewhere, or
        None if ``complete`` is None; J as objective, a sum over pages, and the multiplier of that
        sum.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete, cost)
    rates = np.empty(len(pages.importance))
    # rho <= mu/lambda + Delta/2 or less
    multiplier, iterations, _ = spend(pages, bandwidth, _pass, rates)
    spent = bool(abs(rates.sum() / bandwidth - 1.0) <= 1e-9)
    signals, probabilities = _numbers(pages, rates)
    with np.errstate(divide="ignore", over="ignore"):
        thresholds = np.where(pages.complete, math.inf, 1.0 / rates)
    solution = Allocation(
        rates=rates,
        probabilities=None if complete is None else probabilities,
        multiplier=multiplier,
        objective=_cost(pages.importance, pages.change_rate, rates, pages.complete),
        iterations=iterations,
        converged=spent or multiplier == 0.0,
        thresholds=thresholds,
        signals=signals,
    )
    return in_crawls(solution, pages.cost)


def harmonic_periodic_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    rates: ArrayLike,
    complete: ArrayLike | None = None,
) -> float:
    """Return the summed harmonic staleness J of pages crawled at even intervals or n-th signals.

    With x = Delta/rho changes per interval, a page costs ``mu (gamma_E + ln x + E_1(x) - 1 + (1 -
    e^-x)/x)``. This is the mean over the interval of ``E[H(N)] = Ein``, the entire exponential
    integral. With complete observation and a crawl at the n-th signal it costs ``mu (H(n) - 1)``;
    between two integers, the mixture with this crawl rate.

    :func:`policies.solvers.harmonic_cost` documents arguments, units and errors; J is inf where a
    page that changes and has importance is never crawled.
    """
    weight, change, crawls = page_arrays(
        importance=importance, change_rate=change_rate, rates=rates
    )
    return _cost(weight, change, crawls, page_mask(complete, len(weight)))


@compiled()
def _pass(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    price: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Return the sum of crawl rates at 1/lambda = ``price``, and roughly its slope in ln ``price``.

    The rates are filled in unless the array is empty.
    """
    total = slope = 0.0
    for begin in range(0, importance.size, BLOCK):
        part = steepness = 0.0
        for i in range(begin, min(begin + BLOCK, importance.size)):
            weight, change = importance[i] * price, change_rate[i]
            rate = steep = 0.0
            if weight > 0.0 and change > 0.0:
                cost = change / weight
                if complete[i]:
                    rate = change / max(np.ceil(cost), 1.0)
                    steep = rate if change > weight else 0.0
                else:
                    x = harmonic_interval(cost)
                    rate = change / x
                    steep = rate * cost / (-math.expm1(-x) * x)
            if rates.size > 0:
                rates[i] = rate
            part += rate
            steepness += steep
        total += part
        slope += steepness
    return total, slope


def _numbers(pages: PageTotals, rates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the number of signals that leads to a crawl, and the probability of this crawl, (m,).

    The number is inf without complete observation or crawls. Cycles within rounding of an integer
    number of signals are rounded to it.
    """
    crawled = pages.complete & (rates > 0.0)
    signals = np.full(len(rates), math.inf)
    probabilities = np.ones(len(rates))
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite cycle counts as an integer
        cycles = pages.change_rate[crawled] / rates[crawled]
        nearest = np.rint(cycles)
        broken = np.abs(cycles - nearest) > CYCLE_TOLERANCE * cycles
        number = np.where(broken, np.floor(cycles), nearest)
        probabilities[crawled] = np.where(broken, number + 1.0 - cycles, 1.0)
    signals[crawled] = number
    return signals, probabilities


def _cost(
    importance: FloatArray, change_rate: FloatArray, rates: FloatArray, complete: BoolArray
) -> float:
    changing = (importance > 0.0) & (change_rate > 0.0)
    if not rates[changing].all():
        return math.inf
    timed, signalled = changing & ~complete, changing & complete
    waits = change_rate[timed] / rates[timed]
    cycles = change_rate[signalled] / rates[signalled]
    return float(
        importance[timed] @ _evenly(waits) + importance[signalled] @ _after_signals(cycles)
    )


def _evenly(changes: FloatArray) -> FloatArray:
    """Return the mean harmonic staleness over intervals of ``changes`` expected changes each."""
    from scipy.special import exp1

    near = np.minimum(changes, SMALL)
    series = np.zeros_like(near)
    term = np.ones_like(near)
    for k in range(1, TERMS + 1):
        term *= near / -(k + 1.0)
        series -= term / k
    far = np.maximum(changes, SMALL)
    closed = np.euler_gamma + np.log(far) + exp1(far) - 1.0 - np.expm1(-far) / far
    return np.where(changes < SMALL, series, closed)


def _after_signals(cycles: FloatArray) -> FloatArray:
    """Return the mean harmonic staleness if a crawl comes after ``cycles`` signals on average."""
    from scipy.special import digamma

    def staleness(number: FloatArray) -> FloatArray:
        return np.where(number > 1.0, digamma(number + 1.0) + np.euler_gamma - 1.0, 0.0)

    cycles = np.maximum(cycles, 1.0)
    number = np.floor(cycles)
    later = cycles - number
    early = (1.0 - later) * (number / cycles) * staleness(number)
    late = later * ((number + 1.0) / cycles) * staleness(number + 1.0)
    return np.asarray(early + late)
