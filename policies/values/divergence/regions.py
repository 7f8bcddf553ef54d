"""The divergence curves of pages made of static, churn and scroll regions, exactly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from crawl_envs.types.regions import Regions
from policies.values.divergence.curves import area_below, per_page
from policies.values.divergence.region_series import Terms, region_terms
from policies.values.series import deep

NEGLIGIBLE = 1e-18
"""A term of this share ends a sum whose terms fall."""

MANY = 700.0
"""From so many events on, exp(-x) is next to underflow, and shares are divided by their sum."""

CLOSE = 1e-8
"""A Newton step of this share is the last: its successor would be smaller than rounding."""

FLAT = 4e-16
"""Utilities that differ by this share are one."""

STEPS = 300


class RegionCurves:
    """Fragment staleness of pages whose regions are known (section 3.3): D* is a mean over updates.

    With X fragments lost of n, the Jaccard distance of a page and its copy is 2 X / (n + X). D*
    and U are finite sums of positive terms, see :mod:`policies.values.divergence.region_series`: both
    together take about 100 ns per page and set of regions. Relative errors are of order 1e-15.

    Args:
        regions: what the pages are made of, m pages of up to 8 regions that change.

    Attributes:
        regions: as given.
        terms: the sums.
        ceiling: U(inf), (m,), finite; 0 where nothing changes.

    Raises:
        ValueError: a page has too many regions that change, or too many items in them.
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
        """Expected fragment staleness D*, (m,), in [0, 1]."""
        divergence, _, _ = self._measures(elapsed)
        return divergence

    def area(self, elapsed: ArrayLike) -> FloatArray:
        """Integral of D* from 0 to ``elapsed``, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        divergence, _, utility = self._measures(time)
        return area_below(time, divergence, utility)

    def utility(self, elapsed: ArrayLike) -> FloatArray:
        """What a crawl is worth, (m,)."""
        _, _, utility = self._measures(elapsed)
        return utility

    def period(self, threshold: ArrayLike) -> FloatArray:
        """Least time at which the utility reaches the threshold, (m,); inf where it never does."""
        worth = per_page("threshold", threshold, self.num_pages)
        periods = np.empty(self.num_pages)
        _periods(self.terms, worth, self._pace, self.ceiling, periods)
        return periods

    def _measures(self, elapsed: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """D*, its derivative by time, and U, (m,) each."""
        time = per_page("elapsed", elapsed, self.num_pages)
        found: FloatArray = np.empty((3, self.num_pages))
        _measure_all(self.terms, time, found)
        return found[0], found[1], found[2]


@compiled()
def _measure_all(terms: Terms, elapsed: FloatArray, found: FloatArray) -> None:
    for page in range(elapsed.size):
        found[:, page] = _measure(terms, page, elapsed[page])


@compiled()
def _measure(terms: Terms, page: int, elapsed: float) -> tuple[float, float, float]:
    """D*, its derivative and U of a page."""
    divergence = slope = utility = 0.0
    for s in range(terms.first[page], terms.first[page + 1]):
        rate = terms.rate[s]
        weight = terms.weight[terms.start[s] : terms.start[s + 1]]
        reached, falling, gained = mean_of_sums(weight, rate * elapsed)
        divergence += reached
        slope += rate * falling
        utility += gained / rate
    return divergence, slope, utility


@compiled()
def mean_of_sums(weight: FloatArray, x: float) -> tuple[float, float, float]:
    """Means over N, Poisson of mean x, of b_0 + ... + b_{N-1}, b_N and the sum of (k + 1) b_k.

    The last is over k <= N - 2. Past the end of ``weight`` the b_k are 0; they must not rise. The
    mean of b_N is exact to 1e-17 of b_0, the others to 1e-14 of themselves.
    """
    length = weight.size
    if deep(length + 1.0, x):
        reached = gained = 0.0
        for k in range(length):
            reached += weight[k]
            gained += (k + 1.0) * weight[k]
        return reached, 0.0, gained
    if x > MANY:
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
    left = _left(mass, share, length + 1, x)
    return divergence + left * reached, slope, utility + left * gained


@compiled()
def _left(mass: float, share: float, index: int, x: float) -> float:
    """P(N > index), given P(N <= index) and P(N = index)."""
    if 2.0 * x > index:
        return 1.0 - mass
    left = 0.0
    while share > NEGLIGIBLE * left:
        index += 1
        share *= x / index
        left += share
    return left


@compiled()
def _mean_around(weight: FloatArray, x: float) -> tuple[float, float, float]:
    """:func:`mean_of_sums` of the N within 12 standard deviations of a large mean."""
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
    terms: Terms, worth: FloatArray, pace: FloatArray, ceiling: FloatArray, periods: FloatArray
) -> None:
    for page in range(worth.size):
        if worth[page] == 0.0:
            periods[page] = 0.0
        elif worth[page] < ceiling[page]:
            periods[page] = _wait(terms, page, worth[page], pace[page], ceiling[page])
        else:
            periods[page] = math.inf


@compiled()
def _wait(terms: Terms, page: int, worth: float, pace: float, ceiling: float) -> float:
    """Time at which the utility is ``worth``: Newton's method in a bracket.

    D* is concave, so that U <= D*'(0) t^2 / 2, and U' = t D*'.
    """
    elapsed = math.sqrt(2.0) * (math.sqrt(worth) / math.sqrt(pace))
    low, high = 0.0, math.inf
    for _ in range(STEPS):
        _, slope, utility = _measure(terms, page, elapsed)
        off = utility - worth
        if abs(off) <= FLAT * worth:
            break
        if off > 0.0:
            high = elapsed
        else:
            low = elapsed
        moved = _newton(elapsed, utility, worth, elapsed * slope, ceiling)
        if moved > 64.0 * elapsed:
            moved = math.inf
        if not low < moved < high:
            moved = 8.0 * elapsed if high == math.inf else _middle(low, high)
            if not low < moved < high:
                return high
        elif abs(moved - elapsed) <= CLOSE * elapsed:
            return moved
        elapsed = moved
    return elapsed


@compiled()
def _middle(low: float, high: float) -> float:
    return math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else low + 0.5 * (high - low)


@compiled()
def _newton(elapsed: float, utility: float, worth: float, slope: float, ceiling: float) -> float:
    """The next time to try: a step along a curve that is nearly straight.

    That of ln U against ln t where U is small, and of ln(U(inf) - U) against t where it is large.
    """
    if not slope > 0.0:
        return math.inf
    if 2.0 * worth > ceiling and utility < ceiling:
        left = ceiling - utility
        return elapsed - left / slope * math.log1p((utility - worth) / left)
    if utility > 0.0:
        return elapsed * math.exp(-utility / (slope * elapsed) * math.log(utility / worth))
    return math.inf
