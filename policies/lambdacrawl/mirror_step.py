"""One step of descent for crawl rates in a box with a bounded sum: mirror descent, projection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawl_envs.types import FloatArray
from policies.solvers.multiplier import root

TOLERANCE = 1e-13
"""Relative error of the total at which the search for the multiplier stops."""


def mirror_step(
    rates: FloatArray,
    gradient: FloatArray,
    step_size: float,
    slowest: float,
    fastest: float,
    total: float,
) -> FloatArray:
    r"""Return the rates r that minimise eta <g, r> + sum (r/r' - 1 - ln(r/r')).

    Over ``slowest <= r <= fastest`` and ``sum r <= total``: the update of MirrorSync (Kolobov,
    Bubeck and Zimmert, Online Learning for Active Cache Synchronization, ICML 2020). With the
    multiplier lambda >= 0 of the total, 1/r = 1/r' + eta g + lambda, clipped to the box; the sum
    decreases in lambda, and its root is that of :mod:`policies.solvers.multiplier`.

    Args:
        rates: r', > 0, (n,).
        gradient: g, (n,).
        step_size: eta, >= 0.
        slowest: least rate, > 0, at most ``total / n``.
        fastest: largest rate, >= slowest.
        total: largest sum of rates.

    Returns:
        (n,).

    Raises:
        ValueError: ``slowest`` everywhere exceeds ``total``.
    """
    _check_total(rates.size, slowest, total)
    inverse = 1.0 / rates + step_size * gradient

    def at(multiplier: float) -> tuple[FloatArray, float]:
        result = 1.0 / np.clip(inverse + multiplier, 1.0 / fastest, 1.0 / slowest)
        inside = result[(result > slowest) & (result < fastest)]
        return result, float(inside @ inside)

    return _spend(at, 1.0 / slowest - float(inverse.min()), total)


def projected_step(
    rates: FloatArray,
    gradient: FloatArray,
    step_size: float,
    slowest: float,
    fastest: float,
    total: float,
) -> FloatArray:
    """Return the rates nearest to r' - eta g, over the same set: projected gradient descent.

    Arguments, result and errors as for :func:`mirror_step`; r = r' - eta g - lambda, clipped to
    the box.
    """
    _check_total(rates.size, slowest, total)
    aim = rates - step_size * gradient

    def at(multiplier: float) -> tuple[FloatArray, float]:
        result = np.clip(aim - multiplier, slowest, fastest)
        return result, float(np.count_nonzero((result > slowest) & (result < fastest)))

    return _spend(at, float(aim.max()) - slowest, total)


def _check_total(num_pages: int, slowest: float, total: float) -> None:
    if num_pages * slowest > total * (1.0 + 1e-12):
        raise ValueError(
            f"slowest must be at most total / num_pages, got {slowest} for each of {num_pages} "
            f"pages and the total {total}"
        )


def _spend(
    at: Callable[[float], tuple[FloatArray, float]], largest: float, total: float
) -> FloatArray:
    """Return the rates at the least multiplier >= 0 with a sum of at most the total.

    Args:
        at: function of the multiplier that returns the rates, and minus the slope of their sum.
        largest: a multiplier at which all rates are at their least.
        total: largest sum.
    """
    rates, slope = at(0.0)
    excess = float(rates.sum()) - total
    if excess <= TOLERANCE * total:
        return rates

    def spend(inverse: float, out: FloatArray) -> tuple[float, float]:
        result, steep = at(1.0 / inverse)
        out[:] = result[: out.size]
        return float(result.sum()) / total, steep / (inverse * total)

    root(spend, max(slope / excess, 1.0 / largest), rates, TOLERANCE)
    return rates
