"""Compiled: the point at which a page's value reaches a price, or its cycle a given length.

A point of a page of one source is a pair (``elapsed`` t, ``signals`` n) with effective elapsed time
t + n beta. The two are separate because the sum would lose t where beta is much longer than the
time between signals (a recall close to 1), and is undefined where beta is infinite. A point of a
page of several sources is its evidence y in nats, as ``elapsed`` without signals
(:mod:`policies.values.sources`), and its cycle length is in units of 1 / Delta. Crawl value and
cycle length increase with both. The length rises in steps if every change is signalled.

``values`` and ``lengths`` are the tables of one source (:mod:`policies.values.tables`), where
``several`` is None, or both the one of several, where it is True. Its type decides which search is
compiled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray
from policies.values.kernels import cycle_length_value, greedy_ncis_value
from policies.values.lambert import fast_interval
from policies.values.series import (
    ALPHA,
    EVIDENCE,
    FIRST,
    GAMMA,
    SATURATED,
    SPACING,
    TOP,
)
from policies.values.sources.kernels import cycle_length_sources_value, level_value

FAR_APART = 100.0
"""Value of beta, in mean times between signals, from which on t and n are kept separate."""

CLOSE = 1e-7
"""Relative size of the last Newton step; the next one would be below rounding."""

FLAT = 1e-15
"""Relative difference of values that count as equal."""

SAME = 1e-12
"""Relative difference of rates that count as equal."""

STEPS = 200


class Point(NamedTuple):
    """A point of a page, and the mean time psi to reach it."""

    elapsed: float
    signals: float
    length: float


@inlined()
def value_at(
    values: FloatArray, page: int, several: bool | None, elapsed: float, signals: float
) -> float:
    """Return the crawl value at a point."""
    if several is None:
        return greedy_ncis_value(values, page, elapsed, signals)
    return float(level_value(values, page, elapsed, 0.0))


@inlined()
def length_at(
    lengths: FloatArray, page: int, several: bool | None, elapsed: float, signals: float
) -> float:
    """Return the mean cycle to a point."""
    if several is None:
        return cycle_length_value(lengths, page, elapsed, signals)
    return float(cycle_length_sources_value(lengths, page, elapsed, 0.0))


@inlined()
def evidence_at(
    values: FloatArray, page: int, several: bool | None, elapsed: float, signals: float
) -> float:
    """Return -ln P(fresh) at a point."""
    if several is not None:
        return elapsed
    alpha: float = values[page, ALPHA]
    y = alpha * elapsed if alpha > 0.0 else 0.0
    if signals > 0.0:
        y += values[page, EVIDENCE] * signals
    return y


@inlined()
def point_of_value(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    several: bool | None,
    price: float,
    start: Point,
    pieces: FloatArray,
) -> Point:
    """Return the point at which the crawl value is ``price`` > 0; at infinity where it never is.

    With recall 1 the value rises in steps: the first signal that raises it to the price. ``start``
    is the first guess if its length is positive; with several sources there is none, so that the
    same price has the same point at a step of the length.
    """
    top = values[page, TOP]
    if not price < top:
        return Point(math.inf, math.inf, math.inf)
    if several is not None:
        nowhere = Point(0.0, 0.0, 0.0)
        level = _solve(values, lengths, page, several, price, nowhere, 1.0, pieces)
        return Point(level, 0.0, length_at(lengths, page, several, level, 0.0))
    alpha = values[page, ALPHA]
    if not start.length < math.inf:
        start = Point(0.0, 0.0, 0.0)
    if values[page, EVIDENCE] == 0.0:
        elapsed = fast_interval(math.sqrt(2.0 * (price / top)), pieces) / alpha
        return Point(elapsed, 0.0, elapsed)
    if alpha == 0.0:
        signals = _first_signal(values, lengths, page, several, price, start.signals, True)
        return Point(0.0, signals, signals / values[page, GAMMA])
    signals = 0.0
    if FAR_APART < values[page, SPACING] < math.inf:
        signals = (
            _first_signal(values, lengths, page, several, price, start.signals + 1.0, True) - 1.0
        )
    if not (start.length > 0.0 and start.signals == signals):
        start = Point(0.0, signals, 0.0)
    elapsed = _solve(values, lengths, page, several, price, start, alpha, pieces)
    return Point(elapsed, signals, length_at(lengths, page, several, elapsed, signals))


@inlined()
def _first_signal(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    several: bool | None,
    target: float,
    guess: float,
    by_value: bool,
) -> float:
    """Return the least n >= 1 whose value, or mean cycle, without time is at least ``target``."""
    high = max(guess, 1.0)
    low = high - 1.0
    step = 1.0
    while _without_time(values, lengths, page, several, high, by_value) < target:
        low = high
        high += step
        step *= 2.0
    while low > 0.0 and _without_time(values, lengths, page, several, low, by_value) >= target:
        high = low
        low = max(low - step, 0.0)
        step *= 2.0
    while high - low > 1.0:
        middle = np.floor(0.5 * (low + high))
        if not low < middle < high:  # beyond 2^53 not all whole numbers are floats
            break
        if _without_time(values, lengths, page, several, middle, by_value) < target:
            low = middle
        else:
            high = middle
    return high


@inlined()
def _without_time(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    several: bool | None,
    signals: float,
    by_value: bool,
) -> float:
    if by_value:
        return value_at(values, page, several, 0.0, signals)
    return length_at(lengths, page, several, 0.0, signals)


@inlined()
def _solve(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    several: bool | None,
    price: float,
    start: Point,
    alpha: float,
    pieces: FloatArray,
) -> float:
    """Return the time t at which the value is ``price``, given the signals of ``start``.

    Newton's method in a bracket, with V' = mu alpha exp(-y) psi; for several sources, whose time is
    the evidence, alpha is 1 and psi in units of 1 / Delta.
    """
    top: float = values[page, TOP]
    elapsed: float = start.elapsed
    signals, length = start.signals, start.length
    scale = (
        top
        if several is not None
        else values[page, FIRST] * (values[page, ALPHA] + values[page, GAMMA])
    )
    low, high = 0.0, SATURATED / alpha
    if several is None:
        apart = FAR_APART < values[page, SPACING] < math.inf
        if signals > 0.0 or apart:
            high = min(high, values[page, EVIDENCE] / alpha)
    if not low < elapsed < high:
        elapsed = fast_interval(math.sqrt(2.0 * (price / top)), pieces) / alpha
        if signals > 0.0 or not elapsed < high:
            elapsed = 0.5 * high
        length = 0.0
    for _ in range(STEPS):
        value = value_at(values, page, several, elapsed, signals)
        off = value - price
        if abs(off) <= FLAT * price:
            return elapsed
        if off > 0.0:
            high = elapsed
        else:
            low = elapsed
        if length == 0.0:
            length = length_at(lengths, page, several, elapsed, signals)
        slope = (
            scale * alpha * math.exp(-evidence_at(values, page, several, elapsed, signals)) * length
        )
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
def point_of_length(
    values: FloatArray, lengths: FloatArray, page: int, several: bool | None, length: float
) -> Point:
    """Return the point whose mean cycle is ``length`` > 0, or the last one with a shorter cycle.

    With recall 1 cycles are a whole number of signals long, rounded down (1 at least). Without
    false signals no cycle exceeds 1 / gamma: longer ones are at infinity. For a page that never
    changes signals have no effect.
    """
    if several is not None:
        return Point(_wait(lengths, page, several, length, 0.0, SATURATED), 0.0, length)
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
    if spacing == math.inf:
        return Point(-math.log1p(-length * gamma) / gamma, 0.0, length)
    signals, high = 0.0, SATURATED / alpha
    if spacing > FAR_APART:  # n signals take a time of n / gamma, and are worth somewhat more
        guess = np.floor(length * gamma * (1.0 - FLAT)) + 1.0
        signals = (
            _first_signal(
                values, lengths, page, several, np.nextafter(length, math.inf), guess, False
            )
            - 1.0
        )
        high = values[page, EVIDENCE] / alpha
    return Point(_wait(lengths, page, several, length, signals, high), signals, length)


@inlined()
def _wait(
    lengths: FloatArray, page: int, several: bool | None, length: float, signals: float, high: float
) -> float:
    """Return the time, given ``signals``, at which the mean cycle is ``length``, or the next above.

    Regula falsi, from a guess of the upper end; with bisection for several sources, whose cycles
    may rise in steps.
    """
    low = 0.0
    while length_at(lengths, page, several, high, signals) < length:
        low, high = high, 2.0 * high
    under = length_at(lengths, page, several, low, signals) - length
    over = length_at(lengths, page, several, high, signals) - length
    stepped = several is not None
    side = 0
    for step in range(STEPS):
        middle = (low * over - high * under) / (over - under)
        if not low < middle < high or (stepped and step % 2 > 0):
            middle = between(low, high)
            if not low < middle < high:
                break
        excess = length_at(lengths, page, several, middle, signals) - length
        if abs(excess) <= FLAT * length and not stepped:
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
