"""Pages of the solver of Theorem 1, with their crawl conditions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray
from crawl_envs.types.evidence import signal_evidence
from policies.solvers.noisy_signals.crossing import (
    FLAT,
    SAME,
    Point,
    evidence_at,
    length_at,
    point_of_length,
    point_of_value,
    value_at,
)
from policies.values.lambert import pieces
from policies.values.series import ALPHA, EVIDENCE, GAMMA
from policies.values.sources.tables import level_table
from policies.values.tables import cycle_length_table, greedy_ncis_table

SIGNALLED = 1e-9
"""Share of all signals below which the rate of unsignalled changes counts as 0: time has no effect,
because thresholds of time would be below rounding. For several sources."""


class Tables(NamedTuple):
    """The tables of pages of one source, or of several.

    Attributes:
        several: True, or None for one source; kernels are compiled for either.
        values, lengths: tables of the kind, with a row per page; one and the same for several.
    """

    several: bool | None
    values: FloatArray
    lengths: FloatArray


class Levels(NamedTuple):
    """Crawl conditions of pages, arrays of shape (k,); see :class:`policies.solvers.Allocation`.

    ``signals`` are those of one source.
    """

    thresholds: FloatArray
    evidence: FloatArray
    probabilities: FloatArray
    signals: FloatArray


def evidence_margin(level: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return the tolerance of evidence around a level, (k,), within which it equals the level.

    It covers rounding, and is less than a quarter of the least ``evidence`` of a signal, (S, k).
    """
    least = np.where(evidence > 0.0, evidence, np.inf).min(axis=0)
    margin: FloatArray = np.minimum(1e-6 * level, 0.25 * least)
    return margin


class Pages:
    """Pages that change and have importance, of one or several informative sources.

    Their ``state``, (k, 3), has the elapsed times, numbers of signals and mean cycles of a search;
    for several sources, evidence instead of times.

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
        self.known = (importance, change_rate, recall, false_signal_rate)
        self.certain_rate, shortest = np.zeros((2, len(importance)))
        if len(recall) == 1:
            known = importance, change_rate, recall[0], false_signal_rate[0]
            values = greedy_ncis_table(*known)
            self.tables = Tables(None, values, cycle_length_table(*known[1:]))
            self.alpha, self.signal_rate = values[:, ALPHA], values[:, GAMMA]
            self._cycles = np.ones(len(importance)), shortest
            return
        values = level_table(*self.known)
        self.tables = Tables(True, values, values)
        self.evidence = signal_evidence(*self.known[1:])
        gamma = np.where(self.evidence > 0.0, recall * change_rate + false_signal_rate, 0.0)
        self.signal_rate = gamma.sum(axis=0)
        self.certain_rate = np.where(np.isinf(self.evidence), gamma, 0.0).sum(axis=0)
        alpha = np.maximum(1.0 - recall.sum(axis=0), 0.0) * change_rate
        self.alpha = np.where(alpha <= SIGNALLED * self.signal_rate, 0.0, alpha)
        counted = self.alpha == 0.0
        shortest[counted] = 1.0 / self.signal_rate[counted]
        self._cycles = 1.0 / change_rate, shortest

    def every(self, step: int) -> Pages:
        """Return every ``step``-th page."""
        return Pages(*(np.ascontiguousarray(array[..., ::step]) for array in self.known))

    def spend(self, price: float, floor: float, state: FloatArray, rates: FloatArray) -> float:
        """Fill in the rates at a multiplier, at least ``floor``; return their sum."""
        _spend(self.tables, *self._cycles, price, pieces(), state, rates)
        np.maximum(rates, floor, out=rates)
        return float(rates.sum())

    def settle(self, state: FloatArray, rates: FloatArray) -> None:
        """Move pages whose rate differs from that of their point to the point of the rate."""
        _settle(self.tables, self._cycles[0], self.certain_rate, state, rates)
        if self.tables.several is not None:
            every = (self.alpha == 0.0) & (rates >= self.signal_rate)
            lowest = np.where(self.evidence > 0.0, self.evidence, math.inf).min(axis=0)
            state[every, 0] = lowest[every]

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the sum of mu~ w / psi; with alpha = 0, crawls beyond signals are useless."""
        useful = np.where(self.alpha == 0.0, np.minimum(rates, self.signal_rate), rates)
        return _freshness(self.tables, self.known[0], state, useful)

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the crawl condition of each page."""
        kind = self._of_one_source if self.tables.several is None else self._of_sources
        return kind(state, rates)

    def _of_one_source(self, state: FloatArray, rates: FloatArray) -> Levels:
        elapsed, received, _ = state.T
        values, crawled = self.tables.values, rates > 0.0
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

    def _of_sources(self, state: FloatArray, rates: FloatArray) -> Levels:
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
        """Return the probability of a crawl at the level (else above) with mean cycle 1 / rate."""
        finite = np.where(np.isfinite(level), level, 1.0)
        margin = evidence_margin(finite, self.evidence)
        ends = np.empty((2, len(rates)))
        for end, sign in zip(ends, (-1.0, 1.0), strict=True):
            _lengths_at(self.tables.lengths, self._cycles[0], finite + sign * margin, end)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (ends[1] - 1.0 / rates) / (ends[1] - ends[0])
        stepped = ends[1] > ends[0] * (1.0 + 1e-9)
        mixed = stepped & (rates < self.signal_rate)
        return np.where(mixed, np.clip(share, 0.0, 1.0), 1.0)


@compiled()
def _spend(
    tables: Tables,
    unit: FloatArray,
    shortest: FloatArray,
    price: float,
    pieces: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> None:
    """Fill in the rates at a multiplier. ``state`` is the start of the search.

    Mean cycles are in ``unit``, and at least ``shortest``, of every page.
    """
    several, values, lengths = tables
    for k in range(rates.size):
        start = Point(state[k, 0], state[k, 1], state[k, 2])
        point = point_of_value(values, lengths, k, several, price, start, pieces)
        state[k, 0] = point.elapsed
        state[k, 1] = point.signals
        state[k, 2] = max(point.length * unit[k], shortest[k])
        rates[k] = 1.0 / state[k, 2]


@compiled()
def _settle(
    tables: Tables, unit: FloatArray, certain_rate: FloatArray, state: FloatArray, rates: FloatArray
) -> None:
    """Move pages whose rate differs from that of their point to the point of the rate.

    No cycle is longer than the mean time between certain signals: longer ones are at infinity.
    """
    several, values, lengths = tables
    for k in range(rates.size):
        if rates[k] > 0.0 and abs(rates[k] * state[k, 2] - 1.0) > SAME:
            length = 1.0 / rates[k]
            point = Point(math.inf, 0.0, length)
            if not rates[k] <= certain_rate[k] * (1.0 + FLAT):
                point = point_of_length(values, lengths, k, several, length / unit[k])
            state[k, 0] = point.elapsed
            state[k, 1] = point.signals
            state[k, 2] = length


@compiled()
def _freshness(
    tables: Tables, importance: FloatArray, state: FloatArray, rates: FloatArray
) -> float:
    """Return the sum of mu~ w / psi = rate V + mu~ exp(-y), valid also between two steps."""
    several, values, _ = tables
    total = 0.0
    for k in range(rates.size):
        if rates[k] > 0.0:
            value = value_at(values, k, several, state[k, 0], state[k, 1])
            y = evidence_at(values, k, several, state[k, 0], state[k, 1])
            total += rates[k] * value + importance[k] * math.exp(-y)
    return total


@compiled()
def _lengths_at(lengths: FloatArray, unit: FloatArray, levels: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` with the mean cycles of pages at levels of evidence."""
    for k in range(out.size):
        out[k] = length_at(lengths, k, True, levels[k], 0.0) * unit[k]
