"""The search for the multiplier at which pages spend their budget."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import NamedTuple

TOLERANCE = 1e-12
"""Budget left open, as a share, at which the search ends."""

CLOSE = 1e-5
"""Budget left open from which one more step of Newton's method is expected to be the last."""

STEPS = 16
"""Iterations after which the bracket is halved each time, if there is one."""

MOST = 500
"""Iterations in all: for budgets and pages that numbers cannot tell apart."""

LEAST, LARGEST = sys.float_info.min, sys.float_info.max
"""Where the search ends if the budget is spent nowhere."""

Spend = Callable[[float, bool], tuple[float, float]]
"""``spend(at, last)``: the share of the budget that is spent, and its derivative by ln ``at``.

It rises with ``at``. With ``last``, pages take what they spend.
"""


class Root(NamedTuple):
    """Where the search ended: pages took there what they spend.

    ``spent`` is the share of the budget. It is off 1 only where no number lies between ``at`` and
    ``above``, at which more than the budget is spent, or where ``at`` is the largest number.
    """

    at: float
    spent: float
    above: float
    iterations: int

    @property
    def met(self) -> bool:
        """Whether the budget is spent."""
        return abs(self.spent - 1.0) <= TOLERANCE


def root(spend: Spend, start: float) -> Root:
    """Find the point, > 0, at which the budget is spent.

    Newton's method on the logarithm of what is spent against that of the point, in a bracket:
    where steps leave it or get slow, it is halved.

    Args:
        spend: see :data:`Spend`; it must exceed 1 somewhere.
        start: where to begin, > 0.
    """
    bracket = _Bracket()
    at, last, before = start, False, math.inf
    for iterations in itertools.count(1):
        spent, slope = spend(at, last)
        gap = math.log(spent) if spent > 0.0 else -math.inf
        met = abs(gap) <= TOLERANCE
        if last and (met or bracket.closed or iterations > MOST):
            break
        bracket.narrow(at, gap)
        if met:
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
    """Where the logarithm's tangent meets 0; a factor e^99 away at most."""
    step = -gap * spent / slope if slope > 0.0 else math.copysign(math.inf, -gap)
    return at * math.exp(max(min(step, 99.0), -99.0))


class _Bracket:
    """Points that spend at most, and at least, the budget; 0 and inf until there are any.

    ``closed``: no number lies between them, or none beyond them.
    """

    def __init__(self) -> None:
        self.low, self.high, self.closed = 0.0, math.inf, False
        self._reach = 4.0

    def narrow(self, at: float, gap: float) -> None:
        """Take in a point and its gap, > 0 where it spends too much."""
        if gap <= 0.0:
            self.low = at
        if gap >= 0.0:
            self.high = at

    def following(self, at: float, newton: float, *, slow: bool, late: bool) -> float:
        """The next point after ``at``: Newton's, if it lies within and steps make way."""
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
        """A point beyond ``at`` on the open side, ever further."""
        point = at * self._reach if self.low > 0.0 else at / self._reach
        self._reach = min(self._reach * self._reach, 1e60)
        return point


def _between(low: float, high: float) -> float | None:
    """A number that halves a bracket, or its logarithm; None where none is left."""
    far = high > 2.0 * low
    middle = math.sqrt(low) * math.sqrt(high) if far else low + 0.5 * (high - low)
    return middle if low < middle < high else None
