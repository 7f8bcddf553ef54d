"""Optimal random crawling for harmonic staleness: LambdaCrawl, and LambdaCrawlApprox."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import quantity
from policies.solvers.allocation import Allocation
from policies.solvers.costs import harmonic_sum
from policies.solvers.crawl_cost import in_crawls
from policies.solvers.multiplier import BLOCK, Root, root
from policies.solvers.page_totals import PageTotals, page_totals, spend


def harmonic(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    complete: ArrayLike | None = None,
    cost: ArrayLike | None = None,
) -> Allocation:
    r"""Return crawl rates and probabilities that minimise harmonic staleness: LambdaCrawl.

    Minimises ``-sum mu ln(rho/(rho + Delta))`` over the pages without complete observation, which
    are crawled at the times of a Poisson process, plus ``-sum mu ln p`` over pages with complete
    observation, crawled on each signal with probability p; with
    ``sum c rho + sum c p Delta = R`` (for c = 1, Problem 3 of Kolobov et al. 2019, and so Problems
    1 and 2). All pages share one multiplier lambda:

    - incomplete observation: ``rho = (sqrt(Delta^2 + 4 mu Delta/(c lambda)) - Delta) / 2`` (eq. 5),
    - complete observation: ``p = min(1, mu/(c lambda Delta))`` (Prop. 5 and Algorithm 2),

    so the split of the budget needs no search (Algorithm 3). The search for lambda takes 3 to 6
    passes of about 0.6 ns per page.

    Pages that never change or have no importance get no crawl (the paper excludes them). If all
    other pages have complete observation and the bandwidth exceeds their changes, they are crawled
    on every signal, the multiplier is 0 and some bandwidth is not spent. Otherwise pages without
    complete observation take what is left.

    Memory beyond the arguments: the rates, and the probabilities if ``complete`` is an argument.
    Arguments that are not contiguous, writeable float64 (or bool) arrays are copied.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: cost of all crawls per unit time, > 0.
        complete: which pages have complete observation, (m,) bool, or a scalar; None for no page.
        cost: c, the cost of a crawl of each page, also of one on a signal, > 0, shape (m,), or a
            scalar; None for 1.

    Returns:
        Crawl rates of all pages (p Delta with complete observation); ``probabilities`` p of those
        with complete observation and 0 elsewhere, or None where ``complete`` is; J of eq. 8, a sum
        over pages, as objective, and the multiplier of that sum.

    Raises:
        ValueError: an argument is negative or not finite, a cost is 0, all importance is zero,
            ``complete`` is not boolean, shapes disagree.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete, cost)
    rates = np.empty(len(pages.importance))
    multiplier, iterations, converged = spend(pages, bandwidth, _pass, rates)
    solution = Allocation(
        rates=rates,
        probabilities=(
            None if complete is None else _probabilities(pages.change_rate, rates, pages.complete)
        ),
        multiplier=multiplier,
        objective=harmonic_sum(*pages[:2], rates, pages.complete) if multiplier > 0.0 else 0.0,
        iterations=iterations,
        converged=converged,
    )
    return in_crawls(solution, pages.cost)


def harmonic_approx(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    complete: ArrayLike | None = None,
    cost: ArrayLike | None = None,
) -> Allocation:
    r"""Return LambdaCrawl with rates proportional to importance for incomplete observation.

    Pages without complete observation share R- = sum rho by importance, ``rho = mu R-/sum mu``,
    which is optimal where mu/Delta is the same for all of them (Prop. 9 of Kolobov et al. 2019).
    With costs c they share the spending, ``rho = mu R-/(c sum mu)``, optimal at equal mu/(c Delta);
    pages with complete observation get the rates of :func:`harmonic`. The split of the bandwidth
    minimises J of eq. 8 over all such policies: the multiplier of the pages with complete
    observation equals ``-dJ/dR- = sum mu Delta/(rho + Delta) / R-`` of the pages without it, or all
    pages with complete observation are crawled on every signal. The published code searches this
    split by golden sections.

    Change rates of pages with complete observation are the rates of their signals. The other change
    rates may be estimates: they affect the split only, if any page has complete observation. Pages
    without complete observation get their share of crawls even if they never change. Pages with
    complete observation that never change or have no importance get none.

    Args, units and errors as for :func:`harmonic`.

    Returns:
        As :func:`harmonic`; the multiplier is the saving of one more unit of cost per unit time,
        which is split like the bandwidth.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete, cost)
    weight, change, mask = pages[:3]
    rest = bandwidth - pages.signalled
    if pages.blind == 0.0 or (pages.unobserved == 0 and rest <= 0.0):
        return harmonic(importance, change_rate, bandwidth, complete, cost)
    rates = np.empty(len(weight))
    multiplier, iterations, converged = 0.0, 0, True
    if pages.unobserved == 0:  # changes are seen by signals only
        rates[:] = np.where(mask, change * (weight > 0.0), weight * (rest / pages.blind))
    else:
        optimum, multiplier = _split(pages, bandwidth, rates)
        iterations, converged = optimum.iterations, optimum.converged
    solution = Allocation(
        rates=rates,
        probabilities=None if complete is None else _probabilities(change, rates, mask),
        multiplier=multiplier,
        objective=harmonic_sum(weight, change, rates, mask),
        iterations=iterations,
        converged=converged,
    )
    return in_crawls(solution, pages.cost)


def _split(pages: PageTotals, bandwidth: float, rates: FloatArray) -> tuple[Root, float]:
    """Fill in the crawl rates; return a root and the multiplier.

    The root's ``point`` is the bandwidth share of the pages without complete observation.
    """

    def both(split: float, out: FloatArray) -> tuple[float, float]:
        crawls = bandwidth * split
        price, steepness = _price(*pages[:3], crawls / pages.blind)
        spent, rising = _signalled(*pages[:3], price, crawls / pages.blind, out)
        return (crawls + spent) / bandwidth, (crawls + rising * steepness) / bandwidth

    optimum = root(both, 0.5, rates)
    return optimum, _price(*pages[:3], bandwidth * optimum.point / pages.blind)[0]


@compiled(fastmath={"nsz"})
def _probabilities(change_rate: FloatArray, rates: FloatArray, complete: BoolArray) -> FloatArray:
    """Return p = rho/Delta, crawls per signal, (m,); 0 without complete observation."""
    probabilities = np.empty(rates.size)
    for i in range(rates.size):
        share = rates[i] / change_rate[i]
        share = share if rates[i] > 0.0 else 0.0
        probabilities[i] = share if complete[i] else 0.0
    return probabilities


@compiled()
def _pass(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    price: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Return the sum of crawl rates at 1/lambda = ``price``, and its slope in ln ``price``.

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
    """Fill in the crawl rates of some pages; return their sum, and its derivative by ln ``price``.

    With s = sqrt(Delta^2 + 4 mu Delta/lambda), eq. 5 is rho = 2 mu Delta/lambda/(s + Delta), which
    loses no digits, and its derivative is mu Delta/lambda/s; both share one division.
    """
    total = slope = 0.0
    for i in range(importance.size):
        uncapped = importance[i] * price
        change = change_rate[i]
        root = math.sqrt(change * (change + 4.0 * uncapped))
        shared = uncapped * change / (root * (root + change))
        shared = shared if change > 0.0 else 0.0
        capped = uncapped if uncapped < change else change
        rising = uncapped if uncapped < change else 0.0
        rate = capped if complete[i] else 2.0 * shared * root
        rates[i] = rate
        total += rate
        slope += rising if complete[i] else shared * (root + change)
    return total, slope


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _price(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray, pace: float
) -> tuple[float, float]:
    """Return what one more crawl of the unobserved saves, and minus the elasticity of the saving.

    Each page without complete observation is crawled at ``pace`` times its importance.
    """
    saved = curved = weight = 0.0
    for i in range(importance.size):
        share = 0.0 if complete[i] else importance[i]
        change = change_rate[i]
        stale = change / (share * pace + change)
        stale = stale if change > 0.0 else 0.0
        weight += share
        saved += share * stale
        curved += share * stale * (1.0 - stale)
    return saved / (pace * weight), 1.0 + curved / saved


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _signalled(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    price: float,
    pace: float,
    rates: FloatArray,
) -> tuple[float, float]:
    """Return the rate of crawls on signals at ``price``, and minus its derivative by ln ``price``.

    The rates of all pages are filled in unless the array is empty.
    """
    total = rising = 0.0
    inverse = 1.0 / price
    for i in range(importance.size):
        uncapped = importance[i] * inverse
        change = change_rate[i]
        capped = uncapped if uncapped < change else change
        growing = uncapped if uncapped < change else 0.0
        total += capped if complete[i] else 0.0
        rising += growing if complete[i] else 0.0
        if rates.size > 0:
            rates[i] = capped if complete[i] else importance[i] * pace
    return total, rising
