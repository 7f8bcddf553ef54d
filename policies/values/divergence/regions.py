"""Exact divergence curves of pages with static, churn and scroll regions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray
from crawl_envs.types.contents import Regions
from policies.values.divergence.curves import area_below, per_page
from policies.values.divergence.region_series import Terms, region_terms
from policies.values.series import deep

NEGLIGIBLE = 1e-18
"""A sum of falling terms ends at a term of this relative size."""

LARGE_MEAN = 700.0
"""From this mean on, exp(-x) is close to underflow, and probabilities are normalised."""

STEP_TOLERANCE = 1e-8
"""Relative size of the last Newton step: the next one would be smaller than rounding."""

UTILITY_TOLERANCE = 4e-16
"""Relative tolerance of equal utilities."""

STEPS = 300


class RegionCurves:
    """Expected fragment staleness of pages with known regions (section 3.3).

    With X fragments lost of n, the Jaccard distance of a page and its copy is 2 X / (n + X). D* and
    U are finite sums of positive terms (:mod:`policies.values.divergence.region_series`), which
    together take about 100 ns per page and set of regions. Relative errors are of order 1e-15.

    Args:
        regions: regions of m pages, up to 8 changing ones per page.

    Attributes:
        regions: the argument.
        terms: the sums.
        ceiling: U(inf), (m,), finite; 0 where nothing changes.

    Raises:
        ValueError: a page has too many changing regions, or too many items in them.
    """

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.terms: Terms = region_terms(regions)
        _, _, self.ceiling = self._measures(math.inf)
        _, self._pace, _ = self._measures(0.0)

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return self.regions.num_pages

    def divergence(self, elapsed: ArrayLike) -> FloatArray:
        """Return the expected fragment staleness D*, (m,), in [0, 1]."""
        divergence, _, _ = self._measures(elapsed)
        return divergence

    def area(self, elapsed: ArrayLike) -> FloatArray:
        """Return the integral of D* from 0 to ``elapsed``, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        divergence, _, utility = self._measures(time)
        return area_below(time, divergence, utility)

    def utility(self, elapsed: ArrayLike) -> FloatArray:
        """Return the utility U of a crawl at ``elapsed`` (eq. 4), (m,)."""
        _, _, utility = self._measures(elapsed)
        return utility

    def period(self, threshold: ArrayLike) -> FloatArray:
        """Return the least time at which the utility reaches the threshold, (m,), or inf."""
        target = per_page("threshold", threshold, self.num_pages)
        periods = np.empty(self.num_pages)
        _periods(self.terms, target, self._pace, self.ceiling, periods)
        return periods

    def _measures(self, elapsed: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the divergence D*, its derivative by time, and the utility U, (m,) each."""
        time = per_page("elapsed", elapsed, self.num_pages)
        measures: FloatArray = np.empty((3, self.num_pages))
        _measure_all(self.terms, time, measures)
        return measures[0], measures[1], measures[2]


@compiled()
def _measure_all(terms: Terms, elapsed: FloatArray, measures: FloatArray) -> None:
    for page in range(elapsed.size):
        measures[:, page] = _measure(terms, page, elapsed[page])


@inlined()
def _measure(terms: Terms, page: int, elapsed: float) -> tuple[float, float, float]:
    """Return the divergence D*, its derivative by time, and the utility U of one page."""
    divergence = slope = utility = 0.0
    for s in range(terms.first[page], terms.first[page + 1]):
        rate = terms.rate[s]
        weight = terms.weight[terms.start[s] : terms.start[s + 1]]
        reached, falling, gained = mean_of_sums(weight, rate * elapsed)
        divergence += reached
        slope += rate * falling
        utility += gained / rate
    return divergence, slope, utility


@inlined()
def mean_of_sums(weight: FloatArray, x: float) -> tuple[float, float, float]:
    """Return means over N ~ Poisson(x) of b_0 + ... + b_{N-1}, of b_N, and of sum (k + 1) b_k.

    The last sum is over k <= N - 2. The b_k must not rise, and are 0 past the end of ``weight``.
    The error of the mean of b_N is 1e-17 b_0; the relative error of the other two is 1e-14.
    """
    length = weight.size
    if deep(length + 1.0, x):
        reached = gained = 0.0
        for k in range(length):
            reached += weight[k]
            gained += (k + 1.0) * weight[k]
        return reached, 0.0, gained
    if x > LARGE_MEAN:
        return _mean_around(weight, x)
    share = math.exp(-x)
    mass, slope = share, share * weight[0]
    divergence = utility = reached = gained = 0.0
    old, new = 0.0, weight[0]  # b_{k-1}, b_k
    for k in range(1, length + 2):
        gained += (k - 1.0) * old
        old = new
        new = weight[k] if k < length else 0.0
        reached += old
        share *= x / k
        mass += share
        slope += share * new
        divergence += share * reached
        utility += share * gained
        if k > x and k > 1 and share * gained <= NEGLIGIBLE * utility:
            return divergence, slope, utility
    tail = _upper_tail(mass, share, length + 1, x)
    return divergence + tail * reached, slope, utility + tail * gained


@inlined()
def _upper_tail(mass: float, share: float, index: int, x: float) -> float:
    """Return P(N > index), N ~ Poisson(x), given ``mass`` P(N <= index), ``share`` P(N = index)."""
    if 2.0 * x > index:
        return 1.0 - mass
    tail = 0.0
    while share > NEGLIGIBLE * tail:
        index += 1
        share *= x / index
        tail += share
    return tail


@inlined()
def _mean_around(weight: FloatArray, x: float) -> tuple[float, float, float]:
    """Return :func:`mean_of_sums` for a large mean x, from the N within 12 standard deviations."""
    spread = 12.0 * math.sqrt(x)
    divergence = slope = utility = mass = reached = gained = 0.0
    share = 1.0
    for k in range(int(x + spread)):
        if 1 <= k <= weight.size:
            reached += weight[k - 1]
        if 2 <= k <= weight.size + 1:
            gained += (k - 1.0) * weight[k - 2]
        if k > x - spread:
            slope += share * weight[k] if k < weight.size else 0.0
            divergence += share * reached
            utility += share * gained
            mass += share
            share *= x / (k + 1.0)
    return divergence / mass, slope / mass, utility / mass


@compiled()
def _periods(
    terms: Terms, target: FloatArray, pace: FloatArray, ceiling: FloatArray, periods: FloatArray
) -> None:
    for page in range(target.size):
        if target[page] == 0.0:
            periods[page] = 0.0
        elif target[page] < ceiling[page]:
            periods[page] = _wait(terms, page, target[page], pace[page], ceiling[page])
        else:
            periods[page] = math.inf


@inlined()
def _wait(terms: Terms, page: int, target: float, pace: float, ceiling: float) -> float:
    """Return the time at which a page's utility reaches ``target`` (Newton's method in a bracket).

    D* is concave, so that U <= D*'(0) t^2 / 2, and U' = t D*'.
    """
    elapsed = math.sqrt(2.0) * (math.sqrt(target) / math.sqrt(pace))
    low, high = 0.0, math.inf
    for _ in range(STEPS):
        _, slope, utility = _measure(terms, page, elapsed)
        off = utility - target
        if abs(off) <= UTILITY_TOLERANCE * target:
            break
        if off > 0.0:
            high = elapsed
        else:
            low = elapsed
        moved = _newton(elapsed, utility, target, elapsed * slope, ceiling)
        if moved > 64.0 * elapsed:
            moved = math.inf
        if not low < moved < high:
            moved = 8.0 * elapsed if high == math.inf else _middle(low, high)
            if not low < moved < high:
                return high
        elif abs(moved - elapsed) <= STEP_TOLERANCE * elapsed:
            return moved
        elapsed = moved
    return elapsed


@inlined()
def _middle(low: float, high: float) -> float:
    return math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else low + 0.5 * (high - low)


@compiled()
def _newton(elapsed: float, utility: float, target: float, slope: float, ceiling: float) -> float:
    """Return the next time of Newton's method, in coordinates where the utility is nearly straight.

    The coordinates are ln U against ln t if U is small, and ln(U(inf) - U) against t if it is
    large.
    """
    if not slope > 0.0:
        return math.inf
    if 2.0 * target > ceiling and utility < ceiling:
        gap = ceiling - utility
        return elapsed - gap / slope * math.log1p((utility - target) / gap)
    if utility > 0.0:
        return elapsed * math.exp(-utility / (slope * elapsed) * math.log(utility / target))
    return math.inf
