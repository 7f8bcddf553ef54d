"""LambdaCrawlApprox: LambdaCrawl without the change rates of most pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import quantity
from crawl_envs.types.compiling import compiled
from policies.solvers.allocation import Allocation
from policies.solvers.harmonic_penalty.costs import harmonic_sum
from policies.solvers.harmonic_penalty.lambdacrawl import crawl_probabilities, harmonic
from policies.solvers.harmonic_penalty.page_totals import PageTotals, page_totals
from policies.solvers.multiplier import Root, root


def harmonic_approx(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    complete: ArrayLike | None = None,
) -> Allocation:
    r"""Return LambdaCrawl with rates proportional to importance for incomplete observation.

    Pages without complete observation share R- = sum rho by importance, ``rho = mu R-/sum mu``,
    which is optimal where mu/Delta is the same for all of them (Prop. 9 of Kolobov et al. 2019);
    pages with complete observation get the rates of :func:`harmonic`. The split of the bandwidth
    minimises J of eq. 8 over all such policies: the multiplier of the pages with complete
    observation equals ``-dJ/dR- = sum mu Delta/(rho + Delta) / R-`` of the others, or all of them
    are crawled on every signal. The published code finds the same split by golden sections.

    Change rates of pages with complete observation are the rates of their signals. Those of the
    others affect the split only, if any page has complete observation; they may be estimates. Pages
    without complete observation get their share of crawls even if they never change; pages with
    complete observation that never change or have no importance get none.

    Args, units and errors as for :func:`harmonic`.

    Returns:
        As :func:`harmonic`; the multiplier is the saving of one more crawl per unit time, split
        like the rest.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete)
    weight, change, mask = pages[:3]
    total = _sum_unobserved(weight, mask)
    rest = bandwidth - pages.signalled
    if total == 0.0 or (pages.unobserved == 0 and rest <= 0.0):
        return harmonic(weight, change, bandwidth, None if complete is None else mask)
    rates = np.empty(len(weight))
    multiplier, iterations, converged = 0.0, 0, True
    if pages.unobserved == 0:  # changes are seen by signals only
        rates[:] = np.where(mask, change * (weight > 0.0), weight * (rest / total))
    else:
        found, multiplier = _search(pages, bandwidth, total, rates)
        iterations, converged = found.iterations, found.converged
    return Allocation(
        rates=rates,
        probabilities=None if complete is None else crawl_probabilities(pages, rates),
        multiplier=multiplier,
        objective=harmonic_sum(weight, change, rates, mask),
        iterations=iterations,
        converged=converged,
    )


def _search(
    pages: PageTotals, bandwidth: float, total: float, rates: FloatArray
) -> tuple[Root, float]:
    """Fill in the rates; return the share of the unobserved, and the multiplier.

    ``total`` is the importance of the unobserved.
    """
    price = 0.0

    def spend(split: float, out: FloatArray) -> tuple[float, float]:
        nonlocal price
        crawls = bandwidth * split
        price, steepness = _price(*pages[:3], crawls / total)
        spent, rising = _signalled(*pages[:3], price, crawls / total, out)
        return (crawls + spent) / bandwidth, (crawls + rising * steepness) / bandwidth

    return root(spend, 0.5, rates), price


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _price(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray, pace: float
) -> tuple[float, float]:
    """Return the saving of one more crawl of the unobserved, and minus its elasticity.

    ``pace`` is the crawl rate of the unobserved by importance.
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
    """Return the crawls on signals at a price, and minus their derivative by its logarithm.

    The rates of all pages are filled in unless the array is empty.
    """
    total = rising = 0.0
    inverse = 1.0 / price
    for i in range(importance.size):
        most = importance[i] * inverse
        change = change_rate[i]
        capped = most if most < change else change
        growing = most if most < change else 0.0
        total += capped if complete[i] else 0.0
        rising += growing if complete[i] else 0.0
        if rates.size > 0:
            rates[i] = capped if complete[i] else importance[i] * pace
    return total, rising


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _sum_unobserved(importance: FloatArray, complete: BoolArray) -> float:
    total = 0.0
    for i in range(importance.size):
        total += 0.0 if complete[i] else importance[i]
    return total
