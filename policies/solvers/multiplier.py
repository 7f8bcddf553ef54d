"""The search for the multiplier at which pages spend their budget."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import NamedTuple

TOLERANCE = 1e-12
"""Relative error of the budget at which the search ends."""

CLOSE = 1e-5
"""Relative error from which one more step of Newton's method is expected to be the last."""

STEPS = 16
"""Iterations after which the bracket, if there is one, is halved in every step."""

MOST = 500
"""Limit of iterations, for budgets and pages beyond float resolution."""

LEAST, LARGEST = sys.float_info.min, sys.float_info.max
"""Ends of the search if no point spends the budget."""

Spend = Callable[[float, bool], tuple[float, float]]
"""``spend(at, last)``: the spent share of the budget, and its derivative by ln ``at``.

The share increases with ``at``. With ``last``, the call also stores the rates of the pages.
"""


class Root(NamedTuple):
    """The last point of the search.

    ``spent`` is the share of the budget spent at ``at``. It differs from 1 only if no float lies
    between ``at`` and ``above``, which spends too much, or if ``at`` is the largest float.
    """

    at: float
    spent: float
    above: float
    iterations: int

    @property
    def converged(self) -> bool:
        """Whether the budget is spent."""
        return abs(self.spent - 1.0) <= TOLERANCE


def root(spend: Spend, start: float) -> Root:
    """Return the point > 0 at which the budget is spent.

    Newton's method on ln(spent share) against ln(point); if steps leave the bracket or converge
    slowly, it is halved.

    Args:
        spend: see :data:`Spend`; it must exceed 1 somewhere.
        start: first point, > 0.
    """
    bracket = _Bracket()
    at, last, before = start, False, math.inf
    for iterations in itertools.count(1):
        spent, slope = spend(at, last)
        gap = math.log(spent) if spent > 0.0 else -math.inf
        converged = abs(gap) <= TOLERANCE
        if last and (converged or bracket.closed or iterations > MOST):
            break
        bracket.narrow(at, gap)
        if converged:
            last = True
            continue
        late = iterations > STEPS
        slow = late or abs(gap) > 0.5 * before
        before = abs(gap)
        newton = _newton(at, spent, slope, gap)
        at = bracket.following(at, newton, slow=slow, late=late)
        close = before <= CLOSE and not slow and at == newton
        last = close or bracket.closed or iterations >= MOST
    return Root(at, spent, bracket.high, iterations)


def _newton(at: float, spent: float, slope: float, gap: float) -> float:
    """Return the root of the tangent in logarithms, at most a factor e^99 away."""
    step = -gap * spent / slope if slope > 0.0 else math.copysign(math.inf, -gap)
    return at * math.exp(max(min(step, 99.0), -99.0))


class _Bracket:
    """A bracket of the root; its ends are 0 and inf until points are known.

    ``closed``: no float lies between the ends, or beyond the open one.
    """

    def __init__(self) -> None:
        self.low, self.high, self.closed = 0.0, math.inf, False
        self._reach = 4.0

    def narrow(self, at: float, gap: float) -> None:
        """Add a point and its gap, > 0 if it spends too much."""
        if gap <= 0.0:
            self.low = at
        if gap >= 0.0:
            self.high = at

    def following(self, at: float, newton: float, *, slow: bool, late: bool) -> float:
        """Return the next point after ``at``: Newton's, if it lies within and converges."""
        within = self.low < newton < self.high
        if self.low == 0.0 or self.high == math.inf:
            point = newton if within and not late else self._outwards(at)
            point = min(max(point, LEAST), LARGEST)
            self.closed = point == at
            return point
        if within and not slow:
            return newton
        middle = _between(self.low, self.high)
        self.closed = middle is None
        return self.low if middle is None else middle

    def _outwards(self, at: float) -> float:
        """Return a point beyond ``at`` on the open side, further each time."""
        point = at * self._reach if self.low > 0.0 else at / self._reach
        self._reach = min(self._reach * self._reach, 1e60)
        return point


def _between(low: float, high: float) -> float | None:
    """Return the midpoint of a bracket or of its logarithm; None if no float is left."""
    far = high > 2.0 * low
    middle = math.sqrt(low) * math.sqrt(high) if far else low + 0.5 * (high - low)
    return middle if low < middle < high else None
