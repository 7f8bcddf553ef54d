"""Solvers and estimators against NumPy and SciPy implementations of the same equations.

The baselines are plain uses of both libraries: formulas as printed, without loops over pages where
there are functions of arrays. One more baseline avoids temporary arrays.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray
from policies import solvers
from policies.estimators.change_rates import fit_change_rates
from scripts.timing.comparisons import Comparison, Ratio
from scripts.timing.turns import Task, repeated

HARMONIC_PAGES, QUICK_HARMONIC_PAGES = 18_532_314, 400_000
PERIODIC_PAGES, QUICK_PERIODIC_PAGES = 1_000_000, 50_000
FITTED_PAGES, QUICK_FITTED_PAGES = 500, 50
MIXED_PAGES, QUICK_MIXED_PAGES = 100_000, 10_000
MOST_TURNS = 9
"""Turns of comparisons with baselines that take seconds."""

CRAWLS = 98
"""Crawls per page, at slightly irregular intervals of about a day."""

PRECISION = 1e-12
"""Tolerance of the baselines for the logarithms of multipliers and rates."""

SMOOTHING = 0.5
"""Length of the imaginary intervals of LambdaLearnAndCrawl, in days."""


class Solution(NamedTuple):
    """Solution of a baseline."""

    rates: FloatArray
    multiplier: float
    objective: float


def pages(count: int) -> tuple[FloatArray, FloatArray, float]:
    """Return importance, (m,), change rates, (m,), and a bandwidth of a fifth of the pages."""
    rng = np.random.default_rng(0)
    return rng.lognormal(0.0, 2.0, count), rng.lognormal(-1.0, 1.6, count), 0.2 * count


def histories(count: int) -> tuple[FloatArray, BoolArray]:
    """Return intervals between crawls, and whether each crawl found a change, (m, CRAWLS)."""
    rng = np.random.default_rng(0)
    change_rate = rng.lognormal(-1.0, 1.0, (count, 1))
    intervals = rng.uniform(0.5, 1.5, (count, CRAWLS))
    return intervals, rng.random(intervals.shape) < -np.expm1(-change_rate * intervals)


def numpy_harmonic(
    importance: FloatArray, change_rate: FloatArray, bandwidth: float, *, in_place: bool = False
) -> Solution:
    """Solve eq. 5 of Kolobov et al. 2019: sums by NumPy, their root by SciPy's brentq on ln lambda.

    With ``in_place``, constant terms are computed once, and without temporary arrays.
    """
    from scipy.optimize import brentq

    if in_place:
        squares, products = change_rate**2, 4.0 * importance * change_rate
        changes, roots = change_rate.sum(), np.empty_like(change_rate)

    def printed(multiplier: float) -> FloatArray:
        inside = change_rate**2 + 4.0 * importance * change_rate / multiplier
        return (np.sqrt(inside) - change_rate) / 2.0

    def excess(logarithm: float) -> float:
        multiplier = math.exp(logarithm)
        if not in_place:
            return math.log(printed(multiplier).sum() / bandwidth)
        np.multiply(products, 1.0 / multiplier, out=roots)
        np.add(roots, squares, out=roots)
        np.sqrt(roots, out=roots)
        return math.log(0.5 * (roots.sum() - changes) / bandwidth)

    # The rate is at most mu/lambda.
    high = math.log(importance.sum() / bandwidth)
    low = high - 2.0
    while excess(low) < 0.0:
        high, low = low, low - 2.0
    multiplier = math.exp(brentq(excess, low, high, xtol=PRECISION))
    rates = printed(multiplier)
    return Solution(rates, multiplier, float(importance @ np.log1p(change_rate / rates)))


def scipy_binary_periodic(
    importance: FloatArray, change_rate: FloatArray, bandwidth: float
) -> Solution:
    """Solve eq. 5 of Busa-Fekete et al. by SciPy's lambertw, its multiplier by brentq."""
    from scipy.optimize import brentq
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

    high = math.log(1.0 / ratio.min())
    low = high - 2.0
    while excess(low) < 0.0:
        high, low = low, low - 2.0
    logarithm = brentq(excess, low, high, xtol=PRECISION)
    crawls = rates(logarithm)
    crawled = crawls > 0.0
    interval = change_rate[crawled] / crawls[crawled]
    objective = float(weight[crawled] @ (-np.expm1(-interval) / interval))
    return Solution(crawls, math.exp(logarithm), objective)


def scipy_change_rates(intervals: FloatArray, changed: BoolArray) -> FloatArray:
    """Solve eq. 10 of Kolobov et al. 2019, smoothed as in their Algorithm 4, by brentq per page."""
    from scipy.optimize import brentq

    estimates = np.empty(len(intervals))
    for i, (lengths, seen) in enumerate(zip(intervals, changed, strict=True)):
        waited = np.append(lengths[seen], SMOOTHING)
        unchanged = lengths[~seen].sum() + SMOOTHING

        def slope(logarithm: float, waited: FloatArray = waited, rest: float = unchanged) -> float:
            return float((waited / np.expm1(math.exp(logarithm) * waited)).sum() - rest)

        estimates[i] = math.exp(brentq(slope, math.log(1e-4), math.log(100.0), xtol=PRECISION))
    return estimates


def harmonic_tasks(count: int) -> dict[str, Task]:
    """Return LambdaCrawl over pages without observation, and its baselines."""
    given = pages(count)
    return {
        "harmonic": repeated(solvers.harmonic, *given),
        "numpy and brentq": repeated(numpy_harmonic, *given),
        "numpy in place and brentq": repeated(numpy_harmonic, *given, in_place=True),
    }


def mixed_tasks(count: int) -> dict[str, Task]:
    """Return LambdaCrawl over pages, 4% of them with complete observation."""
    complete = np.arange(count) % 25 == 0
    return {"harmonic, mixed": repeated(solvers.harmonic, *pages(count), complete)}


def periodic_tasks(count: int) -> dict[str, Task]:
    """Return the optimum of even intervals, and its baseline."""
    given = pages(count)
    return {
        "binary_periodic": repeated(solvers.binary_periodic, *given),
        "lambertw and brentq": repeated(scipy_binary_periodic, *given),
    }


def fitting_tasks(count: int) -> dict[str, Task]:
    """Return the maximum likelihood of change rates, and its baseline."""
    given = histories(count)
    return {
        "fit_change_rates": repeated(fit_change_rates, *given, smoothing=SMOOTHING),
        "brentq per page": repeated(scipy_change_rates, *given),
    }


def solver_comparisons(quick: bool = False) -> tuple[Comparison, ...]:
    """Return the comparisons, with fewer pages if ``quick``."""
    harmonic = QUICK_HARMONIC_PAGES if quick else HARMONIC_PAGES
    periodic = QUICK_PERIODIC_PAGES if quick else PERIODIC_PAGES
    fitted = QUICK_FITTED_PAGES if quick else FITTED_PAGES
    mixed = QUICK_MIXED_PAGES if quick else MIXED_PAGES
    shares = "4% with complete observation"
    beaten = Ratio("harmonic", "numpy and brentq", 10.0)
    ratios = beaten, Ratio("harmonic", "numpy in place and brentq")
    even = (Ratio("binary_periodic", "lambertw and brentq", 15.0),)
    rates = (Ratio("fit_change_rates", "brentq per page", 60.0),)
    declared = (
        (f"LambdaCrawl over {harmonic:,} pages", harmonic_tasks, harmonic, ratios, MOST_TURNS),
        (f"LambdaCrawl over {mixed:,} pages, {shares}", mixed_tasks, mixed, (), None),
        (f"even intervals over {periodic:,} pages", periodic_tasks, periodic, even, MOST_TURNS),
        (
            *(f"change rates of {fitted} pages with {CRAWLS} crawls each", fitting_tasks),
            *(fitted, rates, None),
        ),
    )
    return tuple(
        Comparison(name, partial(tasks, count), count, "pages", each, turns)
        for name, tasks, count, each, turns in declared
    )
