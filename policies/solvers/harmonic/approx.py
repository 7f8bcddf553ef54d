"""LambdaCrawlApprox: LambdaCrawl without the change rates of most pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import quantity
from crawl_envs.types.compiling import compiled
from policies.solvers.allocation import Allocation
from policies.solvers.harmonic.costs import harmonic_sum
from policies.solvers.harmonic.lambdacrawl import crawl_probabilities, harmonic, power_below
from policies.solvers.harmonic.page_totals import PageTotals, page_totals
from policies.solvers.multiplier import root

FAST = 1e300
"""Limit of scaled change rates; larger ones count as infinite."""


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

    Args, units and errors as for :func:`harmonic`. It takes about 5 passes and stores the rates
    and probabilities only.

    Returns:
        As :func:`harmonic`; the multiplier is the saving of one more crawl per unit time, split
        like the rest.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete)
    weight, change, mask = pages[:3]
    weight_scale = power_below(pages.largest)
    total = _sum_unobserved(weight, mask, weight_scale)
    rest = bandwidth - pages.signalled
    if total == 0.0 or (pages.unobserved == 0 and rest <= 0.0):
        return harmonic(weight, change, bandwidth, None if complete is None else mask)
    rates = np.empty(len(weight))
    shares = weight_scale / total
    if pages.unobserved == 0:  # changes are seen by signals only
        rates[:] = np.where(mask, change * (weight > 0.0), weight * shares * rest)
        price, iterations, converged = 0.0, 0, True
    else:
        price, iterations, converged = _spend(pages, bandwidth, shares, rates)
    return Allocation(
        rates=rates,
        probabilities=None if complete is None else crawl_probabilities(pages, rates),
        multiplier=price * (total / weight_scale),
        objective=harmonic_sum(weight, change, rates, mask),
        iterations=iterations,
        converged=converged,
    )


def _spend(
    pages: PageTotals, bandwidth: float, shares: float, rates: FloatArray
) -> tuple[float, int, bool]:
    """Fill in the rates; return the multiplier by importance of the unobserved, passes, success.

    ``shares`` turns importance into shares of the importance of the unobserved.
    """
    scale = power_below(bandwidth)
    budget = bandwidth * scale
    price = 0.0

    def spend(split: float, last: bool) -> tuple[float, float]:
        nonlocal price
        crawls = budget * split
        price, steepness = _price(*pages[:3], shares, scale, crawls)
        total, rising = _signalled(*pages[:3], shares, scale, price)
        if last:
            _fill(*pages[:3], shares, scale, crawls, price, rates)
        return (crawls + total) / budget, (crawls + rising * steepness) / budget

    solution = root(spend, 0.5)
    return price * scale, solution.iterations, solution.converged


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _sum_unobserved(importance: FloatArray, complete: BoolArray, scale: float) -> float:
    total = 0.0
    for i in range(importance.size):
        total += 0.0 if complete[i] else importance[i] * scale
    return total


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _price(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    shares: float,
    scale: float,
    crawls: float,
) -> tuple[float, float]:
    """Return the saving of one more crawl of the unobserved, and minus its elasticity."""
    total = curved = 0.0
    for i in range(importance.size):
        share = 0.0 if complete[i] else importance[i] * shares
        change = min(change_rate[i] * scale, FAST)
        stale = change / (share * crawls + change)
        stale = stale if change > 0.0 else 0.0
        total += share * stale
        curved += share * stale * (1.0 - stale)
    return total / crawls, 1.0 + curved / total


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _signalled(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    shares: float,
    scale: float,
    price: float,
) -> tuple[float, float]:
    """Return the crawls on signals at a price, and minus their derivative by its logarithm."""
    total = rising = 0.0
    per_share = shares / price
    for i in range(importance.size):
        most = importance[i] * per_share
        change = change_rate[i] * scale
        capped = most if most < change else change
        growing = most if most < change else 0.0
        total += capped if complete[i] else 0.0
        rising += growing if complete[i] else 0.0
    return total, rising


@compiled()
def _fill(
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    shares: float,
    scale: float,
    crawls: float,
    price: float,
    rates: FloatArray,
) -> None:
    """Fill in all rates."""
    for i in range(importance.size):
        share = importance[i] * shares
        if complete[i]:
            rates[i] = min(share / price, change_rate[i] * scale) / scale
        else:
            rates[i] = share * crawls / scale
