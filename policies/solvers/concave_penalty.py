"""Optimal random crawling for any concave penalty of missed changes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import page_arrays, quantity
from policies.solvers.allocation import Allocation
from policies.solvers.page_totals import page_mask, page_totals, spend
from policies.solvers.penalty_curves import Penalty, PenaltyCurves, penalty_curves


def concave_penalty(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    penalty: Penalty,
    complete: ArrayLike | None = None,
) -> Allocation:
    r"""Return crawl rates and probabilities that minimise a concave penalty of missed changes.

    Minimises J of eq. 1 of Kolobov et al. 2019 over their class of policies (crawls at random
    times, and on a random share of the signals of pages with complete observation), for the
    penalties of which section 3 says that the approach is valid. With the mean penalty ``G(q)`` of
    :mod:`policies.solvers.penalty_curves`, ``q = x/(1 + x)``, all pages share one multiplier
    lambda:

    - incomplete observation: ``rho = Delta/x`` with ``q^2 G'(q) = lambda Delta/mu``,
    - complete observation: ``p = 1/(1 + x)`` with ``G'(q) = lambda Delta/mu``; p = 1 where the
      slope ``G'(0) = C(1)`` is above that.

    Both left sides rise with x. They are inverted by splines that are the same for all pages; rates
    are exact to about 1e-9. For ``C(n) = H(n)`` this is :func:`policies.solvers.harmonic`, for
    ``C(n) = 1`` from n = 1 on :func:`policies.solvers.binary_poisson`, which are faster.

    If ``sum n c_n`` of the increments is finite, as for every table, pages with
    ``lambda Delta/mu`` above it are never crawled. With a function, rates of pages that miss more
    than 3 million changes per crawl are extrapolated.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: crawls per unit time, > 0.
        penalty: a table C(0), C(1), ..., C(K) of at least two numbers, after which it stays at
            C(K); or a smooth function of arrays of real numbers n >= 0, as ``np.log1p``. It rises
            from 0 to C(1) and is concave.
        complete: which pages have complete observation, (m,) bool, or a scalar; None for no page.

    Returns:
        As :func:`policies.solvers.harmonic`; the objective is J, a sum over pages.

    Raises:
        ValueError: an argument is negative or not finite, all importance is zero, ``penalty`` is
            no such table or function, ``complete`` is not boolean, shapes disagree.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete)
    curves = penalty_curves(penalty)

    def crawls(
        weight: FloatArray, change: FloatArray, mask: BoolArray, price: float, out: FloatArray
    ) -> tuple[float, float]:
        rates = _rates(curves, weight, change, mask, price)
        if out.size > 0:
            out[:] = rates
        return float(rates.sum()), math.nan

    rates = np.empty(len(pages.importance))
    multiplier, iterations, converged = spend(pages, bandwidth, crawls, rates)
    weight, change, mask = pages[:3]
    answered = np.divide(rates, change, out=np.zeros(len(rates)), where=mask & (rates > 0.0))
    return Allocation(
        rates=rates,
        probabilities=None if complete is None else answered,
        multiplier=multiplier,
        objective=_cost(curves, weight, change, rates, mask),
        iterations=iterations,
        converged=converged,
    )


def concave_penalty_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    rates: ArrayLike,
    penalty: Penalty,
    complete: ArrayLike | None = None,
) -> float:
    """Return J of eq. 1 of Kolobov et al., a sum over pages, for a concave penalty.

    Args:
        importance: weights >= 0 of the pages, shape (m,), or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        rates: crawls per unit time, >= 0, shape (m,), or a scalar; with complete observation, on
            the share rates/change_rate, at most 1, of the signals.
        penalty: as for :func:`concave_penalty`.
        complete: which pages have complete observation, (m,) bool; None for no page.

    Returns:
        The cost, >= 0. The penalty of a page that is never crawled is the last of a table, or that
        of 10^18 changes.

    Raises:
        ValueError: as for :func:`concave_penalty`.
    """
    weight, change, crawls = page_arrays(
        importance=importance, change_rate=change_rate, rates=rates
    )
    mask = page_mask(complete, len(weight))
    return _cost(penalty_curves(penalty), weight, change, crawls, mask)


def _rates(
    curves: PenaltyCurves,
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    price: float,
) -> FloatArray:
    """Return the rates at 1/lambda = ``price``."""
    rates = np.zeros(len(importance))
    changing = (importance > 0.0) & (change_rate > 0.0)
    kinds = (changing & ~complete, curves.at_random), (changing & complete, curves.on_signals)
    for pages, changes_per_crawl in kinds:
        needed = change_rate[pages] / (price * importance[pages])
        rates[pages] = change_rate[pages] / changes_per_crawl(needed)
    return rates


def _cost(
    curves: PenaltyCurves,
    importance: FloatArray,
    change_rate: FloatArray,
    rates: FloatArray,
    complete: BoolArray,
) -> float:
    """Return J of the rates; pages that never change cost nothing."""
    changing = change_rate > 0.0
    with np.errstate(divide="ignore"):
        missed = change_rate[changing] / rates[changing] - complete[changing]
    return float(importance[changing] @ curves.costs(missed))
