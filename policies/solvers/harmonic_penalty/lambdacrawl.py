"""Optimal random crawling for harmonic staleness: LambdaCrawl."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import quantity
from crawl_envs.types.compiling import compiled, inlined
from policies.solvers.allocation import Allocation
from policies.solvers.harmonic_penalty.costs import harmonic_sum
from policies.solvers.harmonic_penalty.page_totals import PageTotals, page_totals
from policies.solvers.multiplier import BLOCK, Spend, root, start_of


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

    so that the split of the budget needs no search (Algorithm 3). The search for lambda takes 3 to
    6 passes, of about 0.6 ns per page.

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
        start = start_of(_guess, _spending, pages[:3], bandwidth)
        found = root(_spending(*pages[:3], bandwidth), start, rates)
        multiplier, iterations, converged = 1.0 / found.at, found.iterations, found.converged
        objective = harmonic_sum(*pages[:2], rates, pages.complete)
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


def _guess(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray, budget: float
) -> float:
    """Return a lower bound of 1/lambda."""
    return float(budget / importance.sum())


def _spending(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray, budget: float
) -> Spend:
    """Return the spent share of the budget, as a function of 1/lambda."""

    def spend(at: float, rates: FloatArray) -> tuple[float, float]:
        total, slope = _pass(importance, change_rate, complete, at, rates)
        return total / budget, slope / budget

    return spend


@compiled()
def _pass(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    price: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Return the sum of the rates at 1/lambda = ``price``, and its slope in ln ``price``.

    The rates are filled in unless the array is empty.
    """
    total = slope = 0.0
    unused = np.empty(BLOCK)
    for begin in range(0, complete.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        weight = importance[part]
        out = rates[part] if rates.size > 0 else unused[: weight.size]
        spent, steepness = _block(weight, change_rate[part], complete[part], price, out)
        total += spent
        slope += steepness
    return total, slope


@inlined(fastmath={"contract", "nsz", "reassoc"})
def _block(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    price: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Fill in the rates of some pages; return the sums of them and of their derivatives.

    With s = sqrt(Delta^2 + 4 mu Delta/lambda), eq. 5 is rho = 2 mu Delta/lambda/(s + Delta), which
    loses no digits, and its derivative is mu Delta/lambda/s; both share one division.
    """
    total = slope = 0.0
    for i in range(importance.size):
        most = importance[i] * price
        change = change_rate[i]
        root = math.sqrt(change * (change + 4.0 * most))
        shared = most * change / (root * (root + change))
        shared = shared if change > 0.0 else 0.0
        capped = most if most < change else change
        rising = most if most < change else 0.0
        rate = capped if complete[i] else 2.0 * shared * root
        rates[i] = rate
        total += rate
        slope += rising if complete[i] else shared * (root + change)
    return total, slope


@compiled(fastmath={"nsz"})
def _probabilities(change_rate: FloatArray, rates: FloatArray, complete: BoolArray) -> FloatArray:
    probabilities = np.empty(rates.size)
    for i in range(rates.size):
        share = rates[i] / change_rate[i]
        share = share if rates[i] > 0.0 else 0.0
        probabilities[i] = share if complete[i] else 0.0
    return probabilities
