"""Compiled: the point at which a page's value reaches a price, or its cycle a given length.

A point of a page is a pair (``elapsed`` t, ``signals`` n) with effective elapsed time t + n beta.
The two are separate because the sum would lose t where beta is much longer than the time between
signals (a recall close to 1), and is undefined where beta is infinite. Crawl value and cycle length
increase with both. ``values`` and ``lengths`` are tables of :mod:`policies.values.tables`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled, inlined
from policies.values.kernels import cycle_length_value, greedy_ncis_value
from policies.values.lambert import fast_interval
from policies.values.series import (
    ALPHA,
    EVIDENCE,
    FIRST,
    GAMMA,
    LENGTH_GAMMA,
    SATURATED,
    SPACING,
    TOP,
)

FAR_APART = 100.0
"""Value of beta, in mean times between signals, from which on t and n are kept separate."""

CLOSE = 1e-7
"""Relative size of the last Newton step; the next one would be below rounding."""

FLAT = 1e-15
"""Relative difference of values that count as equal."""

STEPS = 200


class Point(NamedTuple):
    """A point of a page, and the mean time psi to reach it."""

    elapsed: float
    signals: float
    length: float


@inlined()
def point_of_value(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    price: float,
    start: Point,
    pieces: FloatArray,
) -> Point:
    """Return the point at which the crawl value is ``price`` > 0; at infinity where it never is.

    With recall 1 the value rises in steps: the first signal that raises it to the price. ``start``
    is the first guess if its length is positive.
    """
    top = values[page, TOP]
    alpha = values[page, ALPHA]
    if not price < top:
        return Point(math.inf, math.inf, math.inf)
    if not start.length < math.inf:
        start = Point(0.0, 0.0, 0.0)
    if values[page, EVIDENCE] == 0.0:
        elapsed = fast_interval(math.sqrt(2.0 * (price / top)), pieces) / alpha
        return Point(elapsed, 0.0, elapsed)
    if alpha == 0.0:
        signals = _first_signal(values, page, price, start.signals)
        return Point(0.0, signals, signals / values[page, GAMMA])
    signals = 0.0
    if FAR_APART < values[page, SPACING] < math.inf:
        signals = _first_signal(values, page, price, start.signals + 1.0) - 1.0
    if not (start.length > 0.0 and start.signals == signals):
        start = Point(0.0, signals, 0.0)
    elapsed = _solve(values, lengths, page, price, start, pieces)
    return Point(elapsed, signals, cycle_length_value(lengths, page, elapsed, signals))


@inlined()
def _first_signal(values: FloatArray, page: int, price: float, guess: float) -> float:
    """Return the least n >= 1 whose value right after the crawl is at least ``price``."""
    high = max(guess, 1.0)
    low = high - 1.0
    step = 1.0
    while greedy_ncis_value(values, page, 0.0, high) < price:
        low = high
        high += step
        step *= 2.0
    while low > 0.0 and greedy_ncis_value(values, page, 0.0, low) >= price:
        high = low
        low = max(low - step, 0.0)
        step *= 2.0
    while high - low > 1.0:
        middle = np.floor(0.5 * (low + high))
        if not low < middle < high:  # beyond 2^53 not all whole numbers are floats
            break
        if greedy_ncis_value(values, page, 0.0, middle) < price:
            low = middle
        else:
            high = middle
    return high


@inlined()
def _solve(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    price: float,
    start: Point,
    pieces: FloatArray,
) -> float:
    """Return the time t at which the value is ``price``, given the signals of ``start``.

    Newton's method in a bracket, with V' = mu alpha exp(-y) psi.
    """
    top: float = values[page, TOP]
    alpha: float = values[page, ALPHA]
    elapsed: float = start.elapsed
    signals, length = start.signals, start.length
    scale = values[page, FIRST] * (alpha + values[page, GAMMA])  # mu
    low, high = 0.0, SATURATED / alpha
    if signals > 0.0 or FAR_APART < values[page, SPACING] < math.inf:
        high = min(high, values[page, EVIDENCE] / alpha)
    if not low < elapsed < high:
        elapsed = fast_interval(math.sqrt(2.0 * (price / top)), pieces) / alpha
        if signals > 0.0 or not elapsed < high:
            elapsed = 0.5 * high
        length = 0.0
    base = values[page, EVIDENCE] * signals if signals > 0.0 else 0.0
    for _ in range(STEPS):
        value = greedy_ncis_value(values, page, elapsed, signals)
        off = value - price
        if abs(off) <= FLAT * price:
            return elapsed
        if off > 0.0:
            high = elapsed
        else:
            low = elapsed
        if length == 0.0:
            length = cycle_length_value(lengths, page, elapsed, signals)
        slope = scale * alpha * math.exp(-alpha * elapsed - base) * length
        length = 0.0
        moved = newton_step(value, price, slope, top, elapsed, signals)
        if not low < moved < high:
            moved = between(low, high)
            if not low < moved < high:
                return high
        elif abs(moved - elapsed) <= CLOSE * min(moved, elapsed):
            return moved
        elapsed = moved
    return elapsed


@compiled()
def between(low: float, high: float) -> float:
    """Return the midpoint of a bracket, or of its logarithm if it is wide."""
    return 0.5 * (low + high) if high < 4.0 * low or low == 0.0 else math.sqrt(low * high)


@inlined()
def newton_step(
    value: float, price: float, slope: float, top: float, elapsed: float, signals: float
) -> float:
    """Return the next time: a Newton step along a nearly straight curve.

    The curve is ln V against ln t where V is small, and ln(mu/Delta - V) against t where it is
    large.
    """
    if value > 0.5 * top and value < top:
        return elapsed - (top - value) / slope * math.log1p((value - price) / (top - value))
    if signals == 0.0 and value > 0.0:
        return elapsed * math.exp(-value / (slope * elapsed) * math.log(value / price))
    return elapsed - (value - price) / slope


@inlined()
def point_of_length(values: FloatArray, lengths: FloatArray, page: int, length: float) -> Point:
    """Return the point whose mean cycle is ``length`` > 0, or the last one with a shorter cycle.

    With recall 1 cycles are a whole number of signals long, rounded down (1 at least). Without
    false signals no cycle exceeds 1 / gamma: longer ones are at infinity. For a page that never
    changes signals have no effect.
    """
    alpha: float = values[page, ALPHA]
    gamma: float = values[page, GAMMA]
    if values[page, EVIDENCE] == 0.0:
        return Point(length, 0.0, length)
    if length == math.inf:
        return Point(math.inf, math.inf, math.inf)
    if alpha == 0.0:
        return Point(0.0, max(np.floor(length * gamma * (1.0 + FLAT)), 1.0), length)
    spacing: float = values[page, SPACING]
    if spacing == math.inf and not length * gamma < 1.0:
        return Point(math.inf, math.inf, length)
    signals = 0.0
    low, high = 0.0, SATURATED / alpha
    if spacing == math.inf:
        return Point(-math.log1p(-length * gamma) / gamma, 0.0, length)
    if spacing > FAR_APART:
        signals = _last_signal(lengths, page, length)
        high = values[page, EVIDENCE] / alpha
    while cycle_length_value(lengths, page, high, signals) < length:
        low, high = high, 2.0 * high
    return Point(_wait(lengths, page, length, signals, low, high), signals, length)


@inlined()
def _last_signal(lengths: FloatArray, page: int, length: float) -> float:
    """The largest n >= 0 whose mean cycle, with no time beside, is ``length`` or less.

    On average n signals take a time of n / gamma; they are worth somewhat more than that.
    """
    low: float = np.floor(length * lengths[page, LENGTH_GAMMA] * (1.0 - FLAT))
    step = max(1.0, FLAT * low)
    high = low + step
    while cycle_length_value(lengths, page, 0.0, high) <= length:
        low = high
        step *= 2.0
        high = low + step
    while high - low > 1.0:
        middle = np.floor(0.5 * (low + high))
        if not low < middle < high:
            break
        if cycle_length_value(lengths, page, 0.0, middle) <= length:
            low = middle
        else:
            high = middle
    return low


@inlined()
def _wait(
    lengths: FloatArray, page: int, length: float, signals: float, low: float, high: float
) -> float:
    """Return the time, given ``signals``, at which the mean cycle is ``length``; regula falsi."""
    under = cycle_length_value(lengths, page, low, signals) - length
    over = cycle_length_value(lengths, page, high, signals) - length
    side = 0
    for _ in range(STEPS):
        middle = (low * over - high * under) / (over - under)
        if not low < middle < high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                return low
        excess = cycle_length_value(lengths, page, middle, signals) - length
        if abs(excess) <= FLAT * length:
            return middle
        if excess > 0.0:
            high, over = middle, excess
            under *= 0.5 if side > 0 else 1.0
            side = 1
        else:
            low, under = middle, excess
            over *= 0.5 if side < 0 else 1.0
            side = -1
    return 0.5 * (low + high)
