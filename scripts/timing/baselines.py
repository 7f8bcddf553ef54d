"""Baselines of solvers and estimators: the same equations solved by NumPy and SciPy.

They use both libraries directly: formulas as printed, with functions of arrays where these exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray

CRAWLS = 98
"""Crawls per page, at slightly irregular intervals of about a day."""

PRECISION = 1e-12
"""Tolerance of the baselines for the logarithms of multipliers and rates."""

SMOOTHING = 0.5
"""Length of the imaginary intervals of LambdaLearnAndCrawl, in days."""


class Solution(NamedTuple):
    """Solution of a baseline: crawl rates, (m,), Lagrange multiplier, and objective."""

    rates: FloatArray
    multiplier: float
    objective: float


def pages(count: int) -> tuple[FloatArray, FloatArray, float]:
    """Draw importance, (m,), and change rates, (m,), of pages; bandwidth: a fifth of the pages."""
    rng = np.random.default_rng(0)
    return rng.lognormal(0.0, 2.0, count), rng.lognormal(-1.0, 1.6, count), 0.2 * count


def histories(count: int) -> tuple[FloatArray, BoolArray]:
    """Draw intervals between crawls, and whether each crawl found a change, (m, CRAWLS) each."""
    rng = np.random.default_rng(0)
    change_rate = rng.lognormal(-1.0, 1.0, (count, 1))
    intervals = rng.uniform(0.5, 1.5, (count, CRAWLS))
    return intervals, rng.random(intervals.shape) < -np.expm1(-change_rate * intervals)


def root_below(high: float, excess: Callable[[float], float]) -> float:
    """Find the root below ``high`` of a decreasing function ``excess``, by SciPy's brentq."""
    from scipy.optimize import brentq

    low = high - 2.0
    while excess(low) < 0.0:
        high, low = low, low - 2.0
    return float(brentq(excess, low, high, xtol=PRECISION))


def numpy_harmonic(importance: FloatArray, change_rate: FloatArray, bandwidth: float) -> Solution:
    """Solve eq. 5 of Kolobov et al. 2019: sums by NumPy, ln lambda by SciPy's brentq."""

    def rates(logarithm: float) -> FloatArray:
        inside = change_rate**2 + 4.0 * importance * change_rate / math.exp(logarithm)
        return (np.sqrt(inside) - change_rate) / 2.0

    def excess(logarithm: float) -> float:
        return math.log(rates(logarithm).sum() / bandwidth)

    # The rate is at most mu/lambda.
    logarithm = root_below(math.log(importance.sum() / bandwidth), excess)
    crawls = rates(logarithm)
    objective = float(importance @ np.log1p(change_rate / crawls))
    return Solution(crawls, math.exp(logarithm), objective)


def scipy_binary_periodic(
    importance: FloatArray, change_rate: FloatArray, bandwidth: float
) -> Solution:
    """Solve eq. 5 of Busa-Fekete et al. by SciPy's lambertw, its multiplier by brentq."""
    from scipy.special import lambertw

    weight = importance / importance.sum()
    ratio = change_rate / weight

    def rates(logarithm: float) -> FloatArray:
        cost = math.exp(logarithm) * ratio
        crawled = cost < 1.0
        result = np.zeros(len(ratio))
        interval = -1.0 - lambertw((cost[crawled] - 1.0) / math.e, -1).real
        result[crawled] = change_rate[crawled] / interval
        return result

    def excess(logarithm: float) -> float:
        return float(rates(logarithm).sum() / bandwidth) - 1.0

    logarithm = root_below(math.log(1.0 / ratio.min()), excess)
    crawls = rates(logarithm)
    crawled = crawls > 0.0
    interval = change_rate[crawled] / crawls[crawled]
    objective = float(weight[crawled] @ (-np.expm1(-interval) / interval))
    return Solution(crawls, math.exp(logarithm), objective)


def scipy_change_rates(intervals: FloatArray, changed: BoolArray) -> FloatArray:
    """Solve eq. 10 of Kolobov et al. 2019, smoothed as in their Algorithm 4, by brentq per page."""
    from scipy.optimize import brentq

    estimates = np.empty(len(intervals))
    for i, (lengths, hits) in enumerate(zip(intervals, changed, strict=True)):
        waited = np.append(lengths[hits], SMOOTHING)
        unchanged = lengths[~hits].sum() + SMOOTHING

        def slope(logarithm: float, waited: FloatArray = waited, rest: float = unchanged) -> float:
            return float((waited / np.expm1(math.exp(logarithm) * waited)).sum() - rest)

        estimates[i] = math.exp(brentq(slope, math.log(1e-4), math.log(100.0), xtol=PRECISION))
    return estimates
