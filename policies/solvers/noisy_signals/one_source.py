"""Pages of one source of signals, for the solver of Theorem 1, with their crawl conditions."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray
from policies.solvers.noisy_signals.search import (
    RATE_TOLERANCE,
    VALUE_TOLERANCE,
    Levels,
    Point,
    Slope,
    length_search,
    value_search,
)
from policies.values.kernels import cycle_length_value, greedy_ncis_value
from policies.values.lambert import fast_interval, pieces
from policies.values.series import ALPHA, EVIDENCE, FIRST, GAMMA, SATURATED, SPACING, TOP
from policies.values.tables import cycle_length_table, greedy_ncis_table

FAR_APART = 100.0
"""Value of beta, in mean times between signals, above which t and n are searched one by one."""

time_of_value = value_search(greedy_ncis_value, cycle_length_value)
time_of_length = length_search(cycle_length_value)


class OneSource:
    """Pages with one source of signals, which change and have importance, for the solver.

    A point of a page is a pair (``elapsed`` t, ``signals`` n) with effective elapsed time t + n
    beta. The two are separate because the sum would lose t where beta is much longer than the time
    between signals (a recall close to 1), and is undefined where beta is infinite. The ``state`` of
    a search, (k, 3), has t, n and the mean cycle.

    Args:
        importance: shares of all importance, (k,).
        change_rate: Delta, (k,).
        recall: lambda, (1, k).
        false_signal_rate: nu, (1, k).
    """

    def __init__(
        self,
        importance: FloatArray,
        change_rate: FloatArray,
        recall: FloatArray,
        false_signal_rate: FloatArray,
    ) -> None:
        self.parameters = importance, change_rate, recall, false_signal_rate
        signals = change_rate, recall[0], false_signal_rate[0]
        self._values, self._lengths = (
            greedy_ncis_table(importance, *signals),
            cycle_length_table(*signals),
        )
        self.alpha, self.signal_rate = self._values[:, ALPHA], self._values[:, GAMMA]

    def spend(self, price: float, state: FloatArray, rates: FloatArray) -> None:
        """Fill in crawl rates and states at a multiplier ``price``; searches start at ``state``."""
        _spend(self._values, self._lengths, price, pieces(), state, rates)

    def settle(self, state: FloatArray, rates: FloatArray) -> None:
        """Move the state of each page to the point at which its crawl rate equals ``rates``."""
        _settle(self._values, self._lengths, state, rates)

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the freshness sum mu~ w / psi = rate V + mu~ exp(-y), also valid between steps."""
        return _freshness(self._values, self.parameters[0], state, rates)

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the conditions under which pages are crawled: levels, signals, probabilities."""
        elapsed, received, _ = state.T
        values, crawled = self._values, rates > 0.0
        evidence, alpha, signal_rate = values[:, EVIDENCE], values[:, ALPHA], values[:, GAMMA]
        observed, certain = alpha == 0.0, np.isinf(evidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = np.where(evidence > 0.0, evidence / alpha, math.inf)
            later = np.where(elapsed > 0.0, np.ceil(elapsed / beta), 0.0)
            counted = np.maximum(received + np.where(np.isinf(beta), math.inf, later), 1.0)
            signals = np.where(observed, received, np.where(certain, 1.0, counted))
            past = np.where(received > 0.0, beta * received, 0.0)
            thresholds = np.where(observed | ~crawled, math.inf, elapsed + past)
            mixed = np.where(certain, rates / signal_rate, signals + 1.0 - signal_rate / rates)
            level = np.where(observed, 0.0, alpha * elapsed)
            level = level + np.where(received > 0.0, evidence * received, 0.0)
        randomised = crawled & (observed | (certain & (rates < signal_rate)))
        return Levels(
            thresholds,
            np.where(crawled, level, math.inf),
            np.where(randomised, np.clip(mixed, 0.0, 1.0), 1.0),
            np.where(crawled, signals, math.inf),
        )


@compiled()
def _spend(
    values: FloatArray,
    lengths: FloatArray,
    price: float,
    pieces: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> None:
    for k in range(rates.size):
        start = Point(state[k, 0], state[k, 1], state[k, 2])
        point = _point_of_value(values, lengths, k, price, start, pieces)
        state[k, 0], state[k, 1], state[k, 2] = point
        rates[k] = 1.0 / point.length


@compiled()
def _settle(values: FloatArray, lengths: FloatArray, state: FloatArray, rates: FloatArray) -> None:
    for k in range(rates.size):
        if rates[k] > 0.0 and abs(rates[k] * state[k, 2] - 1.0) > RATE_TOLERANCE:
            point = _point_of_length(values, lengths, k, 1.0 / rates[k])
            state[k, 0], state[k, 1], state[k, 2] = point.elapsed, point.signals, 1.0 / rates[k]


@compiled()
def _freshness(
    values: FloatArray, importance: FloatArray, state: FloatArray, rates: FloatArray
) -> float:
    total = 0.0
    for k in range(rates.size):
        if rates[k] > 0.0:
            elapsed, signals, alpha = state[k, 0], state[k, 1], values[k, ALPHA]
            y = alpha * elapsed if alpha > 0.0 else 0.0
            if signals > 0.0:
                y += values[k, EVIDENCE] * signals
            value = greedy_ncis_value(values, k, elapsed, signals)
            total += rates[k] * value + importance[k] * math.exp(-y)
    return total


@inlined()
def _point_of_value(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    price: float,
    start: Point,
    pieces: FloatArray,
) -> Point:
    """Return the point at which the crawl value reaches ``price`` > 0; infinite if it never does.

    With recall 1 the value rises in steps, and the point is the first signal that reaches the
    price. ``start`` is the first guess if its length is positive.
    """
    top = values[page, TOP]
    if not price < top:
        return Point(math.inf, math.inf, math.inf)
    alpha, evidence = values[page, ALPHA], values[page, EVIDENCE]
    if not start.length < math.inf:
        start = Point(0.0, 0.0, 0.0)
    if evidence == 0.0:
        elapsed = fast_interval(math.sqrt(2.0 * (price / top)), pieces) / alpha
        return Point(elapsed, 0.0, elapsed)
    if alpha == 0.0:
        signals = _first_signal(values, lengths, page, price, start.signals, True)
        return Point(0.0, signals, signals / values[page, GAMMA])
    signals, high = 0.0, SATURATED / alpha
    if FAR_APART < values[page, SPACING] < math.inf:
        signals = _first_signal(values, lengths, page, price, start.signals + 1.0, True) - 1.0
        high = min(high, evidence / alpha)
    if not (start.length > 0.0 and start.signals == signals):
        start = Point(0.0, signals, 0.0)
    slope = Slope(values[page, FIRST] * (alpha + values[page, GAMMA]), alpha, evidence, top)
    elapsed = time_of_value(values, lengths, page, price, start, slope, high, pieces)
    return Point(elapsed, signals, cycle_length_value(lengths, page, elapsed, signals))


@inlined()
def _first_signal(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    target: float,
    guess: float,
    by_value: bool,
) -> float:
    """Return the least n >= 1 whose value, or mean cycle, without time is at least ``target``."""
    high = max(guess, 1.0)
    low = high - 1.0
    step = 1.0
    while _without_time(values, lengths, page, high, by_value) < target:
        low = high
        high += step
        step *= 2.0
    while low > 0.0 and _without_time(values, lengths, page, low, by_value) >= target:
        high = low
        low = max(low - step, 0.0)
        step *= 2.0
    while high - low > 1.0:
        middle = np.floor(0.5 * (low + high))
        if not low < middle < high:  # beyond 2^53 not all integers are floats
            break
        if _without_time(values, lengths, page, middle, by_value) < target:
            low = middle
        else:
            high = middle
    return high


@inlined()
def _without_time(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    signals: float,
    by_value: bool,
) -> float:
    if by_value:
        return greedy_ncis_value(values, page, 0.0, signals)
    return cycle_length_value(lengths, page, 0.0, signals)


@inlined()
def _point_of_length(values: FloatArray, lengths: FloatArray, page: int, length: float) -> Point:
    """Return the time and signals at which the mean cycle of a page is ``length`` > 0.

    If none has this length, it is the last one with a shorter cycle. With recall 1 cycles last an
    integer number of signals, rounded down (at least 1). Without false signals no cycle exceeds 1 /
    gamma: longer ones are at infinity. Signals of a page that never changes have no effect.
    """
    alpha: float = values[page, ALPHA]
    gamma: float = values[page, GAMMA]
    if values[page, EVIDENCE] == 0.0:
        return Point(length, 0.0, length)
    if length == math.inf:
        return Point(math.inf, math.inf, math.inf)
    if alpha == 0.0:
        return Point(0.0, max(np.floor(length * gamma * (1.0 + VALUE_TOLERANCE)), 1.0), length)
    spacing: float = values[page, SPACING]
    if spacing == math.inf and not length * gamma < 1.0:
        return Point(math.inf, math.inf, length)
    if spacing == math.inf:
        return Point(-math.log1p(-length * gamma) / gamma, 0.0, length)
    signals, high = 0.0, SATURATED / alpha
    if spacing > FAR_APART:  # n signals take a time of n / gamma, and count for somewhat more
        guess = np.floor(length * gamma * (1.0 - VALUE_TOLERANCE)) + 1.0
        above = np.nextafter(length, math.inf)
        signals = _first_signal(values, lengths, page, above, guess, False) - 1.0
        high = values[page, EVIDENCE] / alpha
    elapsed = time_of_length(lengths, page, length, signals, high, False)
    return Point(elapsed, signals, length)
