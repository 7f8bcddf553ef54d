"""Optimal periods of pages for any divergence that depends on the time since the last crawl."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import page_arrays, quantity
from policies.solvers.allocation import Allocation, normalised
from policies.solvers.crawl_cost import columns_and_cost
from policies.solvers.multiplier import root

if TYPE_CHECKING:
    from policies.values.divergence.curves import DivergenceCurves

TINY = 1e-90
"""Multiplier close to 0, as a share of the largest utility."""


def fragments(
    curves: DivergenceCurves, importance: ArrayLike, bandwidth: float, cost: ArrayLike | None = None
) -> Allocation:
    r"""Return crawl rates that minimise divergence for pages crawled at even intervals.

    Minimises ``sum mu~ (1/tau) int_0^tau D*(x) dx`` subject to ``sum c/tau = R``: section 2.2 of
    Olston and Pandey (2008), for c = 1. At the optimum all crawled pages have
    ``mu~ U(tau) = Lambda c``, with U their eq. 4; pages with ``mu~ U(inf) <= Lambda c`` are never
    crawled. Holistic curves give :func:`policies.solvers.binary_periodic`, curves of fragments the
    policy FS-S.

    Where U is flat, all periods of the flat part are equally good: such pages take the rest of the
    budget.

    Args:
        curves: divergence of m pages.
        importance: weights >= 0, (m,) or a scalar, not all zero.
        bandwidth: cost of all crawls per unit time, > 0.
        cost: c, the cost of a crawl of each page, > 0, shape (m,), or a scalar; None for 1.

    Returns:
        Rates that spend the bandwidth, ``thresholds`` tau (inf where never crawled), and as
        objective the importance-weighted mean of 1 - divergence over time, in [0, 1] where
        divergence is. All rates are 0 where no page of importance diverges. Where divergence stays
        0 for a while after each crawl, some of the bandwidth may be useless: it is not spent, and
        the multiplier is 0.

    Raises:
        ValueError: an argument is negative or not finite, a cost is 0, importance is zero
            everywhere, or shapes disagree.
    """
    weight, costs = columns_and_cost(cost, importance=_importance(curves, importance))
    weight = normalised(weight)
    per_cost = weight / costs
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    largest = float((per_cost * curves.ceiling).max())
    unit = largest if largest < math.inf else 1.0
    rates = np.zeros(weight.size)
    if largest > 0.0:
        rates = _rates(curves, per_cost, TINY * unit)
    if (costs * rates).sum() <= bandwidth:
        return _allocation(curves, weight, rates, 0.0, 0, converged=True)

    def spend(point: float, out: FloatArray) -> tuple[float, float]:
        crawls = _rates(curves, per_cost, 1.0 / point)
        out[:] = crawls[: out.size]
        return float((costs * crawls).sum()) / bandwidth, math.nan

    guess = _first_guess(curves, per_cost, bandwidth / float(costs.mean()), unit)
    optimum = root(spend, 1.0 / guess, rates)
    total = (costs * rates).sum()
    if total > 0.0:
        rates *= bandwidth / total
    solution = 1.0 / optimum.point, optimum.iterations
    converged = bool(abs((costs * rates).sum() / bandwidth - 1.0) <= 1e-9)
    return _allocation(curves, weight, rates, *solution, converged=converged)


def _importance(curves: DivergenceCurves, importance: ArrayLike) -> FloatArray:
    weight = page_arrays(importance=importance)[0]
    if np.ndim(importance) and weight.size != curves.num_pages:
        raise ValueError(
            f"importance must be a scalar or have shape ({curves.num_pages},) like the curves, "
            f"got shape {weight.shape}"
        )
    return np.broadcast_to(weight, (curves.num_pages,)).copy()


def _periods(curves: DivergenceCurves, weight: FloatArray, price: float) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):
        return curves.period(price / weight)


def _rates(curves: DivergenceCurves, weight: FloatArray, price: float) -> FloatArray:
    rates: FloatArray = 1.0 / _periods(curves, weight, price)
    return rates


def _first_guess(
    curves: DivergenceCurves, weight: FloatArray, bandwidth: float, unit: float
) -> float:
    """Return a first multiplier: the mean utility of pages if all are crawled at the same rate."""
    utility = weight * curves.utility(curves.num_pages / bandwidth)
    guess = float(utility[utility > 0.0].mean()) if np.any(utility > 0.0) else 0.0
    return guess if TINY * unit < guess < math.inf else 0.5 * unit


def _allocation(
    curves: DivergenceCurves,
    weight: FloatArray,
    rates: FloatArray,
    multiplier: float,
    iterations: int,
    *,
    converged: bool,
) -> Allocation:
    with np.errstate(divide="ignore"):
        periods = 1.0 / rates
    crawled = np.isfinite(periods)
    mean = np.multiply(curves.area(periods), rates, out=curves.divergence(np.inf), where=crawled)
    return Allocation(
        rates=rates,
        probabilities=None,
        multiplier=multiplier,
        objective=float(weight @ (1.0 - mean)),
        iterations=iterations,
        converged=converged,
        thresholds=periods,
    )
