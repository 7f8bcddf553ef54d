"""Pages of several sources of signals, for the solver of Theorem 1, with their crawl conditions."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray
from crawl_envs.types.evidence import signal_evidence
from policies.solvers.noisy_signals.search import (
    RATE_TOLERANCE,
    VALUE_TOLERANCE,
    Levels,
    Point,
    Slope,
    length_search,
    value_search,
)
from policies.values.lambert import pieces
from policies.values.series import SATURATED, TOP
from policies.values.sources.kernels import cycle_length_sources_value, level_value
from policies.values.sources.tables import level_table

time_of_value = value_search(level_value, cycle_length_sources_value)
time_of_length = length_search(cycle_length_sources_value)

SIGNALLED = 1e-9
"""Share of all signals below which the rate of unsignalled changes counts as 0. Time then has no
effect: thresholds of time would be below rounding."""


def evidence_margin(level: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return how close evidence must be to a level, (k,), to count as equal to it, (k,).

    The margin covers rounding. It is at most a quarter of the least ``evidence`` of a signal, (S,
    k).
    """
    weakest = np.where(evidence > 0.0, evidence, np.inf).min(axis=0)
    margin: FloatArray = np.minimum(1e-6 * level, 0.25 * weakest)
    return margin


class Sources:
    """Pages that change and have importance, of several sources of signals.

    A point of a page is its evidence y in nats (:mod:`policies.values.sources`). The ``state`` of a
    search, (k, 3), has y, 0 and the mean cycle.

    Args:
        importance: shares of all importance, (k,).
        change_rate: Delta, (k,).
        recall: lambda_s, (S, k).
        false_signal_rate: nu_s, (S, k).
    """

    def __init__(
        self,
        importance: FloatArray,
        change_rate: FloatArray,
        recall: FloatArray,
        false_signal_rate: FloatArray,
    ) -> None:
        self.parameters = importance, change_rate, recall, false_signal_rate
        self._table = level_table(*self.parameters)
        self.evidence = signal_evidence(*self.parameters[1:])
        gamma = np.where(self.evidence > 0.0, recall * change_rate + false_signal_rate, 0.0)
        self.signal_rate = gamma.sum(axis=0)
        self.certain_rate = np.where(np.isinf(self.evidence), gamma, 0.0).sum(axis=0)
        alpha = np.maximum(1.0 - recall.sum(axis=0), 0.0) * change_rate
        self.alpha = np.where(alpha <= SIGNALLED * self.signal_rate, 0.0, alpha)
        counted = self.alpha == 0.0
        shortest = np.zeros(len(importance))
        shortest[counted] = 1.0 / self.signal_rate[counted]
        self._unit, self._shortest = 1.0 / change_rate, shortest

    def spend(self, price: float, state: FloatArray, rates: FloatArray) -> None:
        """Fill in the crawl rates and the states of pages at a multiplier ``price``."""
        _spend(self._table, self._unit, self._shortest, price, pieces(), state, rates)

    def settle(self, state: FloatArray, rates: FloatArray) -> None:
        """Move the state of each page to the point at which its crawl rate equals ``rates``."""
        _settle(self._table, self._unit, self.certain_rate, state, rates)
        every = (self.alpha == 0.0) & (rates >= self.signal_rate)
        lowest = np.where(self.evidence > 0.0, self.evidence, math.inf).min(axis=0)
        state[every, 0] = lowest[every]

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the freshness sum mu~ w / psi = rate V + mu~ exp(-y), also valid between steps.

        A page is always fresh if all changes are signalled and it is crawled at every signal.
        """
        importance, every = self.parameters[0], (self.alpha == 0.0) & (rates >= self.signal_rate)
        rest = _freshness(self._table, importance, state, np.where(every, 0.0, rates))
        return rest + float(importance[every].sum())

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the conditions under which pages are crawled: levels and probabilities."""
        crawled = rates > 0.0
        alpha, certain_rate = self.alpha, self.certain_rate
        level = np.where(crawled, state[:, 0], math.inf)
        timed = crawled & (alpha > 0.0) & np.isfinite(level)
        with np.errstate(divide="ignore", invalid="ignore"):
            thresholds = np.where(timed, level / alpha, math.inf)
            probability = np.where(np.isinf(level), np.minimum(rates / certain_rate, 1.0), 1.0)
        counted = crawled & ~timed & np.isfinite(level)
        probability = np.where(crawled, probability, 1.0)
        probability[counted] = self._probability(level, rates)[counted]
        return Levels(thresholds, level, probability, np.full(len(rates), math.nan))

    def _probability(self, level: FloatArray, rates: FloatArray) -> FloatArray:
        """Return the probability of a crawl at the level, else above, for a cycle of 1 / rate."""
        finite = np.where(np.isfinite(level), level, 1.0)
        margin = evidence_margin(finite, self.evidence)
        ends = np.empty((2, len(rates)))
        for end, sign in zip(ends, (-1.0, 1.0), strict=True):
            _lengths_at(self._table, self._unit, finite + sign * margin, end)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (ends[1] - 1.0 / rates) / (ends[1] - ends[0])
        stepped = ends[1] > ends[0] * (1.0 + 1e-9)
        mixed = stepped & (rates < self.signal_rate)
        return np.where(mixed, np.clip(share, 0.0, 1.0), 1.0)


@compiled()
def _spend(
    table: FloatArray,
    unit: FloatArray,
    shortest: FloatArray,
    price: float,
    pieces: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> None:
    """Fill in crawl rates at a multiplier ``price``, 0 where the value never reaches it.

    Mean cycles are in units of ``unit``, and at least ``shortest``. No search has a first guess, so
    that a price at a step of the length always has the same point.
    """
    for k in range(rates.size):
        level, length, top = math.inf, math.inf, table[k, TOP]
        if price < top:
            nowhere, slope = Point(0.0, 0.0, 0.0), Slope(top, 1.0, 0.0, top)
            level = time_of_value(table, table, k, price, nowhere, slope, SATURATED, pieces)
            length = cycle_length_sources_value(table, k, level, 0.0)
        state[k, 0], state[k, 1], state[k, 2] = level, 0.0, max(length * unit[k], shortest[k])
        rates[k] = 1.0 / state[k, 2]


@compiled()
def _settle(
    table: FloatArray,
    unit: FloatArray,
    certain_rate: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> None:
    """Move the state of each page to the point at which its crawl rate equals ``rates``.

    No cycle is longer than the mean time between certain signals: longer ones are at infinity.
    """
    for k in range(rates.size):
        if rates[k] > 0.0 and abs(rates[k] * state[k, 2] - 1.0) > RATE_TOLERANCE:
            length, level = 1.0 / rates[k], math.inf
            if not rates[k] <= certain_rate[k] * (1.0 + VALUE_TOLERANCE):
                aim = length / unit[k]
                level = time_of_length(table, k, aim, 0.0, SATURATED, True)
            state[k, 0], state[k, 1], state[k, 2] = level, 0.0, length


@compiled()
def _freshness(
    table: FloatArray, importance: FloatArray, state: FloatArray, rates: FloatArray
) -> float:
    total = 0.0
    for k in range(rates.size):
        if rates[k] > 0.0:
            level = state[k, 0]
            value = level_value(table, k, level, 0.0)
            total += rates[k] * value + importance[k] * math.exp(-level)
    return total


@compiled()
def _lengths_at(table: FloatArray, unit: FloatArray, levels: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` with the mean cycles of pages at levels of evidence."""
    for k in range(out.size):
        out[k] = cycle_length_sources_value(table, k, levels[k], 0.0) * unit[k]
