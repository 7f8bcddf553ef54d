"""Pages with at most one source of signals, for the solver of Theorem 1."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.solvers.noisy_signals.crossing import Point, point_of_length, point_of_value
from policies.solvers.noisy_signals.pages import SAME, Levels
from policies.values.kernels import greedy_ncis_value
from policies.values.lambert import pieces
from policies.values.series import ALPHA, EVIDENCE, FIRST, GAMMA
from policies.values.tables import cycle_length_table, greedy_ncis_table


class SinglePages:
    """Pages of at most one source; time and signals are separate (see ``crossing``).

    ``state`` has elapsed times, numbers of signals and cycle lengths, shape (k, 3).
    """

    def __init__(
        self,
        importance: FloatArray,
        change_rate: FloatArray,
        recall: FloatArray,
        false_signal_rate: FloatArray,
    ) -> None:
        self.known = (importance, change_rate, recall, false_signal_rate)
        self.values = greedy_ncis_table(importance, change_rate, recall, false_signal_rate)
        self.lengths = cycle_length_table(change_rate, recall, false_signal_rate)
        self.importance, self.change_rate = importance, change_rate
        self.alpha, self.signal_rate = self.values[:, ALPHA], self.values[:, GAMMA]

    def every(self, step: int) -> Self:
        """Return every ``step``-th page."""
        return type(self)(*(np.ascontiguousarray(array[::step]) for array in self.known))

    def spend(self, price: float, floor: float, state: FloatArray, rates: FloatArray) -> float:
        """Fill in the rates at a multiplier; return their sum."""
        return _pass(self.values, self.lengths, floor, price, pieces(), state, rates)

    def settle(self, state: FloatArray, rates: FloatArray) -> None:
        """Move pages whose rate differs from that of their point to the point of the rate."""
        _settle(self.values, self.lengths, state, rates)

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the sum of mu~ w / psi."""
        return _freshness(self.values, state, rates)

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the crawl condition of each page."""
        elapsed, received, _ = state.T
        evidence, crawled = self.values[:, EVIDENCE], rates > 0.0
        observed, certain = self.alpha == 0.0, np.isinf(evidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = np.where(evidence > 0.0, evidence / self.alpha, math.inf)
            later = np.where(elapsed > 0.0, np.ceil(elapsed / beta), 0.0)
            counted = np.maximum(received + np.where(np.isinf(beta), math.inf, later), 1.0)
            signals = np.where(observed, received, np.where(certain, 1.0, counted))
            past = np.where(received > 0.0, beta * received, 0.0)
            thresholds = np.where(observed | ~crawled, math.inf, elapsed + past)
            mixed = np.where(
                certain, rates / self.signal_rate, signals + 1.0 - self.signal_rate / rates
            )
            level = np.where(observed, 0.0, self.alpha * elapsed)
            level = level + np.where(received > 0.0, evidence * received, 0.0)
        randomised = crawled & (observed | (certain & (rates < self.signal_rate)))
        return Levels(
            thresholds,
            np.where(crawled, level, math.inf),
            np.where(randomised, np.clip(mixed, 0.0, 1.0), 1.0),
            np.where(crawled, signals, math.inf),
        )


@compiled()
def _pass(
    values: FloatArray,
    lengths: FloatArray,
    floor: float,
    price: float,
    pieces: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> float:
    """Fill in the rates at a multiplier; return their sum. ``state`` is the start of the search."""
    total = 0.0
    for page in range(rates.size):
        start = Point(state[page, 0], state[page, 1], state[page, 2])
        point = point_of_value(values, lengths, page, price, start, pieces)
        state[page, 0] = point.elapsed
        state[page, 1] = point.signals
        state[page, 2] = point.length
        rates[page] = max(1.0 / point.length, floor)
        total += rates[page]
    return total


@compiled()
def _settle(values: FloatArray, lengths: FloatArray, state: FloatArray, rates: FloatArray) -> None:
    """Move pages whose rate differs from that of their point to the point of the rate."""
    for page in range(rates.size):
        length = state[page, 2]
        if rates[page] > 0.0 and abs(rates[page] * length - 1.0) > SAME:
            point = point_of_length(values, lengths, page, 1.0 / rates[page])
            state[page, 0] = point.elapsed
            state[page, 1] = point.signals
            state[page, 2] = point.length


@compiled()
def _freshness(values: FloatArray, state: FloatArray, rates: FloatArray) -> float:
    """Return the sum of mu~ w / psi = rate V + mu~ exp(-y), valid also between two steps."""
    total = 0.0
    for page in range(rates.size):
        rate = rates[page]
        elapsed, signals = state[page, 0], state[page, 1]
        alpha = values[page, ALPHA]
        if rate == 0.0:
            continue
        if alpha == 0.0:  # more crawls than signals are of no use
            rate = min(rate, values[page, GAMMA])
        value = greedy_ncis_value(values, page, elapsed, signals)
        weight = values[page, FIRST] * (alpha + values[page, GAMMA])
        y = alpha * elapsed if alpha > 0.0 else 0.0
        if signals > 0.0:
            y += values[page, EVIDENCE] * signals
        total += rate * value + weight * math.exp(-y)
    return total
