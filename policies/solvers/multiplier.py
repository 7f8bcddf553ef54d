"""A search for the price of crawls at which pages together spend exactly their budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import FloatArray

TOLERANCE = 1e-12
"""Relative error of the budget at which the search ends."""

MIN_WIDTH = 1e-13
"""Relative width of a bracket at which the search ends and the rates at both ends are mixed."""

FINAL_GAP = 1e-5
"""Relative error below which one more step of Newton's method should reach the tolerance."""

STEPS = 16
"""Iterations after which every step halves the bracket, if there is one."""

MAX_ITERATIONS = 500
"""Limit of iterations."""

SMALLEST, LARGEST = 1e-100, 1e100
"""Ends of the search if no point spends the budget."""

SAMPLED_ABOVE = 200_000
"""Number of pages above which a search starts from the solution for a sample."""

SAMPLE = 20_000

BLOCK = 4096
"""Pages per partial sum; sums of partial sums have smaller rounding errors than TOLERANCE."""

NOTHING = np.empty(0)

Spend = Callable[[float, FloatArray], tuple[float, float]]
"""``spend(point, rates)``: the spent share of the budget, and its slope in ln ``point`` or NaN.

The share does not decrease with ``point`` >= 0. The crawl rates of pages are filled in unless the
array is empty."""

Crawls = Callable[..., tuple[float, float]]
"""``crawls(*columns, point, rates)``: the sum of crawl rates and its slope, as for ``Spend``."""


class Root(NamedTuple):
    """Result of a search: the point, a multiplier or its inverse, at which the budget is spent.

    ``converged`` is False where the spent share jumps over the budget. Then ``low`` and ``high``
    are the sides of the jump, and the rates of both are mixed.
    """

    point: float
    iterations: int
    converged: bool
    low: float
    high: float


def root(
    spend: Spend, start: float, rates: FloatArray = NOTHING, tolerance: float = TOLERANCE
) -> Root:
    """Return the point > 0 at which the budget is spent, and fill in the crawl rates there.

    Newton's method on ln(spent share) against ln(point), with secants where slopes are unknown. The
    bracket is halved if steps leave it or converge slowly. At a jump the rates are mixed.

    Args:
        spend: see :data:`Spend`.
        start: first point, > 0.
        rates: filled in with rates that spend the budget, (m,); or empty.
        tolerance: relative error of the budget at which the search ends.
    """
    bracket = _Bracket()
    point, last, before = start, False, math.inf
    secant = _Secant()
    for iterations in itertools.count(1):
        spent, slope = spend(point, rates if last else NOTHING)
        gap = math.log(spent) if spent > 0.0 else -math.inf
        converged = abs(gap) <= tolerance
        if (converged and last) or bracket.closed or iterations > MAX_ITERATIONS:
            break
        bracket.narrow(point, gap)
        if converged:
            last = True
            continue
        late = iterations > STEPS
        slow = late or abs(gap) > 0.5 * before
        before = abs(gap)
        steep = slope / spent if spent > 0.0 else 0.0
        if math.isnan(slope):
            steep = secant.slope(math.log(point), gap)
        newton = _newton(point, steep, gap)
        point = bracket.following(point, newton, slow=slow, late=late)
        final = before <= FINAL_GAP and not slow and point == newton
        last = final or bracket.closed or iterations >= MAX_ITERATIONS
    if not converged and bracket.high < math.inf:
        mix(spend, bracket.low, bracket.high, rates)
    return Root(point, iterations, converged, bracket.low, bracket.high)


def mix(spend: Spend, low: float, high: float, rates: FloatArray) -> None:
    """Fill in rates that spend the budget: a mixture of the rates at the two sides of a jump."""
    more = np.empty_like(rates)
    (few, _), (many, _) = spend(low, rates), spend(high, more)
    rates += (1.0 - few) / (many - few) * (more - rates)


def allocate(
    crawls: Crawls,
    columns: tuple[Any, ...],
    budget: float,
    guess: Callable[..., float],
    rates: FloatArray,
) -> Root:
    """Return the point at which pages spend a budget, and fill in the crawl rates of pages there.

    The search starts at ``guess(*columns, budget)``. For many pages it starts at the root of the
    same problem for an evenly spaced sample of them.

    Args:
        crawls: see :data:`Crawls`.
        columns: arrays (m,) of the pages.
        budget: crawls per unit of time, > 0.
        guess: first point for few pages.
        rates: filled in, (m,).
    """
    start, count = 0.0, len(rates)
    if count > SAMPLED_ABOVE:
        some = tuple(np.ascontiguousarray(column[:: count // SAMPLE]) for column in columns)
        share = budget * len(some[0]) / count
        with np.errstate(divide="ignore", invalid="ignore"):
            first = guess(*some, share)
        if 0.0 < first < math.inf:
            sampled = root(_share_of(crawls, some, share), first)
            start = sampled.point if sampled.converged else 0.0
    return root(_share_of(crawls, columns, budget), start or guess(*columns, budget), rates)


def _share_of(crawls: Crawls, columns: tuple[Any, ...], budget: float) -> Spend:
    def spend(point: float, rates: FloatArray) -> tuple[float, float]:
        total, slope = crawls(*columns, point, rates)
        return total / budget, slope / budget

    return spend


def _newton(point: float, steep: float, gap: float) -> float:
    """Return the next point of Newton's method in logarithms, at most a factor e^99 away."""
    step = -gap / steep if steep > 0.0 else math.copysign(math.inf, -gap)
    return point * math.exp(max(min(step, 99.0), -99.0))


class _Secant:
    """The slope of ln(spent share) against ln(point) through the last two points, 1 at first."""

    def __init__(self) -> None:
        self._before = (math.nan, math.nan)

    def slope(self, log_point: float, gap: float) -> float:
        """Return the slope between the last point and this one, and remember this one."""
        run, rise = log_point - self._before[0], gap - self._before[1]
        self._before = log_point, gap
        steep = rise / run if run != 0.0 else math.nan
        return steep if 0.0 < steep < math.inf else 1.0


class _Bracket:
    """An interval around the root; its ends are 0 and inf until points on both sides are known.

    ``closed`` is True if the interval is narrow, or no further point can be tried.
    """

    def __init__(self) -> None:
        self.low, self.high, self.closed = 0.0, math.inf, False
        self._reach = 4.0

    def narrow(self, point: float, gap: float) -> None:
        """Move one end to ``point``; its ``gap``, ln(spent share), is > 0 if it spends too much."""
        if gap <= 0.0:
            self.low = point
        if gap >= 0.0:
            self.high = point

    def following(self, current: float, newton: float, *, slow: bool, late: bool) -> float:
        """Return the next point: ``newton`` if it lies inside and converges, else the middle."""
        within = self.low < newton < self.high
        if self.low == 0.0 or self.high == math.inf:
            point = newton if within and not late else self._outwards(current)
            point = min(max(point, SMALLEST), LARGEST)
            self.closed = point == current
            return point
        self.closed = self.high - self.low <= MIN_WIDTH * self.low
        return newton if within and not slow else math.sqrt(self.low * self.high)

    def _outwards(self, current: float) -> float:
        """Return a point beyond ``current`` on the side without an end, further each time."""
        point = current * self._reach if self.low > 0.0 else current / self._reach
        self._reach = min(self._reach * self._reach, 1e60)
        return point
