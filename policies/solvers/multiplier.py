"""The search for the multiplier at which pages spend their budget."""

from __future__ import annotations

import math
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

Spend = Callable[[float, bool], tuple[float, float]]
"""``spend(at, last)``: the share of the budget that is spent, and its derivative by ln ``at``.

It rises with ``at``. With ``last``, pages take what they spend.
"""


class Root(NamedTuple):
    """Where the search ended: pages took there what they spend.

    ``spent`` is the share of the budget. It is off 1 only where no number lies between ``at`` and
    ``above``, at which more than the budget is spent.
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
    low, high, at, reach = 0.0, math.inf, start, 4.0
    last, last_gap, closed = False, math.inf, False
    iterations = 0
    while True:
        iterations += 1
        spent, slope = spend(at, last)
        gap = math.log(spent) if spent > 0.0 else -math.inf
        if last and (abs(gap) <= TOLERANCE or closed or iterations > MOST):
            return Root(at, spent, high, iterations)
        low, high = (at if gap <= 0.0 else low), (at if gap >= 0.0 else high)
        slow = iterations > STEPS or abs(gap) > 0.5 * abs(last_gap)
        last_gap, last = gap, abs(gap) <= TOLERANCE
        if last:
            continue
        step = -gap * spent / slope if slope > 0.0 else math.copysign(math.inf, -gap)
        following = at * math.exp(max(min(step, 99.0), -99.0))
        last = abs(gap) <= CLOSE and not slow
        if low == 0.0 or high == math.inf:
            if not low < following < high or iterations > STEPS:
                following = at * reach if low > 0.0 else at / reach
                reach = min(reach * reach, 1e60)
        elif slow or not low < following < high:
            middle = _between(low, high)
            closed = middle is None
            following, last = (low, True) if middle is None else (middle, False)
        last = last or iterations >= MOST
        at = following


def _between(low: float, high: float) -> float | None:
    """A number that halves a bracket, or its logarithm; None where none is left."""
    far = high > 2.0 * low
    middle = math.sqrt(low) * math.sqrt(high) if far else low + 0.5 * (high - low)
    return middle if low < middle < high else None
