"""Pages with several sources of signals, for the solver of Theorem 1.

The state is the evidence y = alpha iota in nats, which combines time and signals (see
:mod:`policies.values.sources`): a page is crawled when it reaches a level. The value V is
smooth in the level, V' = mu exp(-y) psi. The cycle length psi rises in steps if every change is
signalled: then only signals add evidence, and it is one of the sums n . b.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled, inlined
from crawl_envs.types.evidence import signal_evidence
from policies.solvers.noisy_signals.crossing import CLOSE, FLAT, STEPS, between, newton_step
from policies.solvers.noisy_signals.pages import SAME, Levels, evidence_margin
from policies.values.lambert import fast_interval, pieces
from policies.values.series import SATURATED, TOP
from policies.values.sources.kernels import (
    BODY,
    COUNT,
    DRIFT,
    FAR,
    TOTAL,
    cycle_length_sources_value,
    greedy_ncis_sources_value,
)
from policies.values.sources.lattice import lattice_share
from policies.values.sources.tables import cycle_length_sources_table, greedy_ncis_sources_table

SIGNALLED = 1e-9
"""Share of all signals below which the rate of unsignalled changes counts as 0: time has no effect,
because thresholds of time would be below rounding."""

STEEP = 0.02
"""Share of all signals below which alpha makes pieces of the value smooth its kinks."""


class SeveralPages:
    """Pages with two or more different sources; ``recall`` and ``false_signal_rate`` are (S, k).

    ``state`` has their levels in its first column.
    """

    def __init__(
        self,
        importance: FloatArray,
        change_rate: FloatArray,
        recall: FloatArray,
        false_signal_rate: FloatArray,
    ) -> None:
        self.known = (importance, change_rate, recall, false_signal_rate)
        self.importance, self.change_rate = importance, change_rate
        self.values = greedy_ncis_sources_table(*self.known)
        self.lengths = cycle_length_sources_table(*self.known[1:], highest=SATURATED)
        self.evidence = signal_evidence(*self.known[1:])
        gamma = np.where(self.evidence > 0.0, recall * change_rate + false_signal_rate, 0.0)
        self.signal_rate = gamma.sum(axis=0)
        self.certain_rate = np.where(np.isinf(self.evidence), gamma, 0.0).sum(axis=0)
        alpha = np.maximum(1.0 - recall.sum(axis=0), 0.0) * change_rate
        self.alpha = np.where(alpha <= SIGNALLED * self.signal_rate, 0.0, alpha)
        self.shortest = np.where(self.alpha == 0.0, 1.0 / self.signal_rate, 0.0)

    def every(self, step: int) -> Self:
        """Return every ``step``-th page."""
        return type(self)(*(np.ascontiguousarray(array[..., ::step]) for array in self.known))

    def spend(self, price: float, floor: float, state: FloatArray, rates: FloatArray) -> float:
        """Fill in the rates at a multiplier; return their sum."""
        tables = (self.values, self.lengths, self.change_rate, self.shortest)
        return _pass(*tables, floor, price, pieces(), state, rates)

    def settle(self, state: FloatArray, rates: FloatArray) -> None:
        """Move pages whose rate differs from that of their point to the point of the rate."""
        lowest = np.where(self.evidence > 0.0, self.evidence, math.inf).min(axis=0)
        by_every_signal = (self.alpha == 0.0) & (rates >= self.signal_rate)
        _settle(self.lengths, self.change_rate, self.certain_rate, state, rates)
        state[by_every_signal, 0] = lowest[by_every_signal]

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the sum of mu~ w / psi; with alpha = 0, crawls beyond signals are useless."""
        useful = np.where(self.alpha == 0.0, np.minimum(rates, self.signal_rate), rates)
        return _freshness(self.values, self.lengths, self.importance, state, useful)

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the crawl condition of each page."""
        crawled = rates > 0.0
        level = np.where(crawled, state[:, 0], math.inf)
        timed = crawled & (self.alpha > 0.0) & np.isfinite(level)
        with np.errstate(divide="ignore", invalid="ignore"):
            thresholds = np.where(timed, level / self.alpha, math.inf)
            probability = np.where(np.isinf(level), np.minimum(rates / self.certain_rate, 1.0), 1.0)
        counted = crawled & ~timed & np.isfinite(level)
        probability = np.where(crawled, probability, 1.0)
        probability[counted] = self._probability(level, rates)[counted]
        return Levels(thresholds, level, probability, np.full(len(rates), math.nan))

    def _probability(self, level: FloatArray, rates: FloatArray) -> FloatArray:
        """Return the probability of a crawl at the level (else above) with mean cycle 1 / rate."""
        finite = np.where(np.isfinite(level), level, 1.0)
        margin = evidence_margin(finite, self.evidence)
        ends = np.empty((2, len(rates)))
        for end, sign in zip(ends, (-1.0, 1.0), strict=True):
            _lengths_at(self.lengths, self.change_rate, finite + sign * margin, end)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (ends[1] - 1.0 / rates) / (ends[1] - ends[0])
        stepped = ends[1] > ends[0] * (1.0 + 1e-9)
        return np.where(stepped & (rates < self.signal_rate), np.clip(share, 0.0, 1.0), 1.0)


@inlined()
def _value(values: FloatArray, lengths: FloatArray, page: int, level: float) -> float:
    """Return the value at a level; if it is nearly a polygon, from the lattice of the length."""
    count = int(lengths[page, COUNT])
    rates = (lengths[page, DRIFT], lengths[page, TOTAL])
    if count > 1 and level <= lengths[page, FAR] and rates[0] <= STEEP * rates[1]:
        bodies = lengths.reshape((1, lengths.size))
        share = lattice_share(bodies, 0, (int(lengths[page, BODY]), count), rates, level)
        return float(values[page, TOP] * min(1.0, share))
    return float(greedy_ncis_sources_value(values, page, 0.0, level))


@compiled()
def _level(
    values: FloatArray,
    lengths: FloatArray,
    page: int,
    price: float,
    start: float,
    pieces: FloatArray,
) -> float:
    """Return the level at which the value is ``price`` > 0, inf where it never is.

    Newton's method from ``start`` in a bracket, with the steps for one source.
    """
    top: float = values[page, TOP]
    if not price < top:
        return math.inf
    low, high = 0.0, SATURATED
    level = start
    if not low < level < high:
        level = min(fast_interval(math.sqrt(2.0 * (price / top)), pieces), 0.5 * high)
    for _ in range(STEPS):
        value = _value(values, lengths, page, level)
        off = value - price
        if abs(off) <= FLAT * price:
            return level
        if off > 0.0:
            high = level
        else:
            low = level
        slope = top * math.exp(-level) * cycle_length_sources_value(lengths, page, level, 0.0)
        moved = newton_step(value, price, slope, top, level, 0.0)
        if not low < moved < high:
            moved = between(low, high)
            if not low < moved < high:
                return high
        elif abs(moved - level) <= CLOSE * min(moved, level):
            return moved
        level = moved
    return level


@inlined()
def _last(lengths: FloatArray, page: int, length: float) -> float:
    """Return the level with mean cycle ``length`` > 0, in units of 1 / Delta, or the next above."""
    low, high = 0.0, SATURATED
    while cycle_length_sources_value(lengths, page, high, 0.0) < length:
        low, high = high, 2.0 * high
    for _ in range(STEPS):
        middle = between(low, high)
        if not low < middle < high:
            break
        if cycle_length_sources_value(lengths, page, middle, 0.0) < length:
            low = middle
        else:
            high = middle
    return high


@compiled()
def _pass(
    values: FloatArray,
    lengths: FloatArray,
    change_rate: FloatArray,
    shortest: FloatArray,
    floor: float,
    price: float,
    pieces: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> float:
    """Fill in the rates at a multiplier; return their sum. ``state`` is the start of the search."""
    total = 0.0
    for page in range(rates.size):
        level = _level(values, lengths, page, price, state[page, 0], pieces)
        length = math.inf
        if level < math.inf:
            length = cycle_length_sources_value(lengths, page, level, 0.0) / change_rate[page]
            length = max(length, shortest[page])
        state[page, 0] = level
        state[page, 2] = length
        rates[page] = max(1.0 / length, floor)
        total += rates[page]
    return total


@compiled()
def _settle(
    lengths: FloatArray,
    change_rate: FloatArray,
    certain_rate: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> None:
    """Move pages whose rate differs from that of their level to the level of the rate.

    No cycle is longer than the mean time between certain signals: longer ones are at infinity.
    """
    for page in range(rates.size):
        length = state[page, 2]
        if rates[page] > 0.0 and abs(rates[page] * length - 1.0) > SAME:
            level = math.inf
            if not rates[page] <= certain_rate[page] * (1.0 + FLAT):
                level = _last(lengths, page, change_rate[page] / rates[page])
            state[page, 0] = level
            state[page, 2] = 1.0 / rates[page]


@compiled()
def _lengths_at(
    lengths: FloatArray, change_rate: FloatArray, levels: FloatArray, out: FloatArray
) -> None:
    """Fill ``out`` with the mean cycles at the levels."""
    for page in range(out.size):
        out[page] = cycle_length_sources_value(lengths, page, levels[page], 0.0) / change_rate[page]


@compiled()
def _freshness(
    values: FloatArray,
    lengths: FloatArray,
    importance: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> float:
    """Return the sum of rate V + mu~ exp(-y)."""
    total = 0.0
    for page in range(rates.size):
        if rates[page] > 0.0:
            level = state[page, 0]
            value = _value(values, lengths, page, level)
            total += rates[page] * value + importance[page] * math.exp(-level)
    return total
