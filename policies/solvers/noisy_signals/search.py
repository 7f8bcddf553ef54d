"""Searches for the time at which a page's crawl value reaches a price, or its cycle a length.

Each search is compiled for a crawl value and a cycle length of the type ``VALUE``. Both increase
with time and with signals. The length rises in steps if every change is signalled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray
from policies.values.lambert import fast_interval

STEP_TOLERANCE = 1e-7
"""Relative size of the last Newton step; the next one would be below rounding."""

VALUE_TOLERANCE = 1e-15
"""Relative difference of values, or lengths, that count as equal."""

RATE_TOLERANCE = 1e-12
"""Relative difference of rates that count as equal."""

STEPS = 200


class Levels(NamedTuple):
    """Conditions under which k pages are crawled, (k,) each, as in ``Allocation``.

    ``signals`` are numbers of signals of one source.
    """

    thresholds: FloatArray
    evidence: FloatArray
    probabilities: FloatArray
    signals: FloatArray


class Point(NamedTuple):
    """A state of a page, elapsed time and signals, and the mean time psi to reach it."""

    elapsed: float
    signals: float
    length: float


class Slope(NamedTuple):
    """Constants of the slope of a page's crawl value by time, V'.

    V' = ``scale`` alpha exp(-y) psi with y = ``alpha`` t + ``evidence`` n, and V(inf) = ``top``.
    """

    scale: float
    alpha: float
    evidence: float
    top: float


def value_search(value_at: Any, length_at: Any) -> Any:
    """Return a compiled search for the time at which a page's crawl value reaches a price.

    ``value_at`` and ``length_at`` are kernels for the value and the cycle length of a page.
    """

    @inlined()
    def time_of_value(
        values: FloatArray,
        lengths: FloatArray,
        page: int,
        price: float,
        start: Point,
        slope: Slope,
        high: float,
        pieces: FloatArray,
    ) -> float:
        """Return the time at which a page's value is ``price``, after the signals of ``start``.

        Newton's method in the bracket from 0 to ``high``. ``start`` has the first guess of the
        time, if it lies within, and the cycle length there, if positive.
        """
        scale, alpha, evidence, top = slope
        elapsed, signals, length = start
        low = 0.0
        if not low < elapsed < high:
            elapsed = fast_interval(math.sqrt(2.0 * (price / top)), pieces) / alpha
            if signals > 0.0 or not elapsed < high:
                elapsed = 0.5 * high
            length = 0.0
        for _ in range(STEPS):
            value = value_at(values, page, elapsed, signals)
            off = value - price
            if abs(off) <= VALUE_TOLERANCE * price:
                return elapsed
            if off > 0.0:
                high = elapsed
            else:
                low = elapsed
            if length == 0.0:
                length = length_at(lengths, page, elapsed, signals)
            y = alpha * elapsed
            if signals > 0.0:
                y += evidence * signals
            steep = scale * alpha * math.exp(-y) * length
            length = 0.0
            moved = _newton_step(value, price, steep, top, elapsed, signals)
            if not low < moved < high:
                moved = _between(low, high)
                if not low < moved < high:
                    return high
            elif abs(moved - elapsed) <= STEP_TOLERANCE * min(moved, elapsed):
                return moved
            elapsed = moved
        return elapsed

    return time_of_value


@compiled()
def _between(low: float, high: float) -> float:
    """Return the midpoint of a bracket, or its geometric mean if the bracket is wide."""
    return 0.5 * (low + high) if high < 4.0 * low or low == 0.0 else math.sqrt(low * high)


@inlined()
def _newton_step(
    value: float, price: float, slope: float, top: float, elapsed: float, signals: float
) -> float:
    """Return the next time of a search, by Newton's method along a nearly straight curve.

    The curve is ln V against ln t where V is small, and ln(mu/Delta - V) against t where it is
    large.
    """
    if value > 0.5 * top and value < top:
        return elapsed - (top - value) / slope * math.log1p((value - price) / (top - value))
    if signals == 0.0 and value > 0.0:
        return elapsed * math.exp(-value / (slope * elapsed) * math.log(value / price))
    return elapsed - (value - price) / slope


def length_search(length_at: Any) -> Any:
    """Return a compiled search for the time at which a page's mean cycle reaches a length."""

    @inlined()
    def time_of_length(
        lengths: FloatArray,
        page: int,
        length: float,
        signals: float,
        high: float,
        stepped: bool,
    ) -> float:
        """Return the time at which a page's mean cycle, after ``signals`` signals, is ``length``.

        Regula falsi from a guess of the upper end, with bisection if cycles may rise in steps.
        """
        low = 0.0
        while length_at(lengths, page, high, signals) < length:
            low, high = high, 2.0 * high
        under: float = length_at(lengths, page, low, signals) - length
        over: float = length_at(lengths, page, high, signals) - length
        side = 0
        for step in range(STEPS):
            middle = (low * over - high * under) / (over - under)
            if not low < middle < high or (stepped and step % 2 > 0):
                middle = _between(low, high)
                if not low < middle < high:
                    break
            excess: float = length_at(lengths, page, middle, signals) - length
            if abs(excess) <= VALUE_TOLERANCE * length and not stepped:
                return middle
            if excess >= 0.0:
                high, over = middle, excess
                under *= 0.5 if side > 0 else 1.0
                side = 1
            else:
                low, under = middle, excess
                over *= 0.5 if side < 0 else 1.0
                side = -1
        return high

    return time_of_length
