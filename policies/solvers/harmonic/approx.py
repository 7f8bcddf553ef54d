"""LambdaCrawl without the change rates of most pages: LambdaCrawlApprox."""

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
"""Scaled change rates above this are as good as infinite."""


def harmonic_approx(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    complete: ArrayLike | None = None,
) -> Allocation:
    r"""LambdaCrawl with rates in proportion to importance where observation is incomplete.

    Pages without complete observation share R- = sum rho by importance, ``rho = mu R-/sum mu``,
    which is optimal where mu/Delta is the same for all of them (Prop. 9 of Kolobov et al. 2019);
    those with it are crawled as :func:`harmonic` crawls them. The split of the bandwidth minimises
    J of eq. 8 over all such policies: the multiplier of the pages with complete observation equals
    ``-dJ/dR- = sum mu Delta/(rho + Delta) / R-`` of the others, or all of them are crawled on every
    signal. The published code searches for the same split by golden sections.

    Change rates of pages with complete observation are those of their signals. Those of the others
    matter for the split alone, and not at all where no page has complete observation: estimates
    may be given. So pages without complete observation get their share of crawls even if they never
    change; pages with it that never change or have no importance get none.

    Args, units and errors as for :func:`harmonic`. It takes about 5 passes, and holds the rates
    and probabilities.

    Returns:
        As :func:`harmonic` does; the multiplier is what one more crawl per unit time would save,
        split like the rest.
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
    if pages.unobserved == 0:  # nothing but signals tells of changes
        rates[:] = np.where(mask, change * (weight > 0.0), weight * shares * rest)
        price, iterations, met = 0.0, 0, True
    else:
        price, iterations, met = _spend(pages, bandwidth, shares, rates)
    return Allocation(
        rates=rates,
        probabilities=None if complete is None else crawl_probabilities(pages, rates),
        multiplier=price * (total / weight_scale),
        objective=harmonic_sum(weight, change, rates, mask),
        iterations=iterations,
        converged=met,
    )


def _spend(
    pages: PageTotals, bandwidth: float, shares: float, rates: FloatArray
) -> tuple[float, int, bool]:
    """Fill in the rates; returns the multiplier by importance of the unobserved, passes, success.

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

    found = root(spend, 0.5)
    return price * scale, found.iterations, found.met


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
    """What one more crawl of the unobserved saves, and minus its elasticity to their crawls."""
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
    """Crawls on signals at a price, and minus their derivative by its logarithm."""
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
