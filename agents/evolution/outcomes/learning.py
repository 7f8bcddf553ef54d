"""Two supervised fits that learn an index from what a crawler saw.

The first is the staleness D of a page, by the likelihood of whether crawls found a change. The
second is the value of a crawl at level D, by regression on integrals over the paths of D that the
signals tell (:mod:`agents.evolution.outcomes.crossing`). Neither needs a price, a budget or the
truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from agents.evolution.outcomes.crossing import crossing_integrals
from agents.evolution.outcomes.fitting import (
    Array,
    Examples,
    exponential_slope,
    fit,
    log_loss_slope,
    start_layers,
)
from agents.evolution.outcomes.inputs import OutcomeNetworks, outcome_table, page_inputs
from agents.evolution.outcomes.kernels import (
    BASES,
    LEVELS,
    NUM_BASES,
    NUM_LEVELS,
    PACE,
    write_bases,
    write_levels,
)
from agents.evolution.outcomes.recording import Record
from crawl_envs.types import FloatArray, IntArray, Problem

STALENESS_ROUNDS, VALUE_ROUNDS = 6, 12
FIRST_STALENESS = (0.0, -3.0, -3.0, -1.0, -1.0)
"""Logarithms of the a_k at the start."""
FIRST_VALUE = (-0.5, -3.0, *(-2.0,) * (NUM_LEVELS - 2))
"""Logarithms of the c_k at the start."""
WINDOW = 0.4
"""Paths begin where at least this share of the log is ahead."""
LEVELS_PER_PATH = 2
SPREAD = 0.3
"""Standard deviation of the logarithm of the evidence at a path's level, after the first level."""
SMALLEST, LARGEST = 1e-4, 12.0
"""Range of the evidence at a path's level."""


class History(NamedTuple):
    """What a crawler saw and knew: a record that ends at ``end``, and its pages."""

    record: Record
    problem: Problem
    end: float


class Part(NamedTuple):
    """Examples from a history: pages (n,), functions (n, O) and targets (n,)."""

    page: IntArray
    functions: FloatArray
    target: FloatArray


def learned(
    histories: Sequence[History], hidden: int, learning_rate: float, rng: np.random.Generator
) -> Iterator[FloatArray | None]:
    """Yield None after each round of the first fit, and the weights after those of the second.

    Args:
        histories: with all parameters of pages, and one source of signals.
        hidden: units of each hidden layer.
        learning_rate: of Adam, at the start.
        rng: for the start and the choice of examples.
    """
    inputs = [page_inputs(each.problem) for each in histories]
    staleness = start_layers(inputs[0].shape[1], hidden, FIRST_STALENESS, rng)
    value = start_layers(inputs[0].shape[1], hidden, FIRST_VALUE, rng)
    fitted = partial(fit, learning_rate=learning_rate, rng=rng)
    tables = _tables(histories, staleness, value)
    examples = _joined(inputs, list(map(outcomes_of, histories, tables)))
    yield from fitted(staleness, examples, log_loss_slope, rounds=STALENESS_ROUNDS)
    tables = _tables(histories, staleness, value)
    parts = [values_of(*each, rng) for each in zip(histories, tables, strict=True)]
    examples = _joined(inputs, parts)
    for _ in fitted(value, examples, exponential_slope, rounds=VALUE_ROUNDS):
        yield np.concatenate([layer.ravel() for layer in (*staleness, *value)], dtype=np.float64)


def _tables(
    histories: Sequence[History], staleness: Sequence[Array], value: Sequence[Array]
) -> list[FloatArray]:
    """Return the table of each history's pages."""
    exact = (tuple(layer.astype(np.float64) for layer in each) for each in (staleness, value))
    networks = OutcomeNetworks(*exact)
    return [outcome_table(each.problem, networks) for each in histories]


def _joined(inputs: Sequence[FloatArray], parts: Sequence[Part]) -> Examples:
    """Return the examples of all histories, given the inputs of their pages."""
    first = np.cumsum([0, *(len(each) for each in inputs)])
    pages = np.concatenate([part.page + at for part, at in zip(parts, first[:-1], strict=True)])
    functions = np.concatenate([part.functions for part in parts], dtype=np.float32)
    target = np.concatenate([part.target for part in parts], dtype=np.float32)
    return Examples(np.concatenate(inputs, dtype=np.float32), pages, functions, target)


def outcomes_of(history: History, table: FloatArray) -> Part:
    """Return the examples of the first fit: whether each crawl found a change."""
    record = history.record
    functions = np.empty((record.page.size, NUM_BASES))
    write_bases(table, record.page, record.elapsed, record.signals, functions)
    return Part(record.page, functions, record.changed.astype(np.float64))


def values_of(history: History, table: FloatArray, rng: np.random.Generator) -> Part:
    """Return the examples of the second fit: integrals along paths that begin at crawls.

    The first level of a path is that of an earlier crawl of its page, chosen at random, another one
    is near that of another crawl.
    """
    record, end, num_pages = history.record, history.end, len(table)
    order = np.lexsort((record.time, record.page))
    page, start = record.page[order], record.time[order]
    begin = np.searchsorted(page, np.arange(num_pages))
    rank = np.arange(page.size) - begin[page]
    functions = outcomes_of(history, table).functions
    x = (table[record.page, BASES:LEVELS] * functions).sum(axis=1)[order]
    changes = table[page, PACE] > 0.0
    paths = np.flatnonzero((rank >= 1) & (start <= (1.0 - WINDOW) * end) & changes)
    page, start, rank = page[paths], start[paths], rank[paths]
    by_page = np.lexsort((record.signal_time, record.signal_page))
    first = np.searchsorted(record.signal_page[by_page], np.arange(num_pages + 1))
    parts = []
    for number in range(LEVELS_PER_PATH):
        earlier = begin[page] + (rng.random(page.size) * rank).astype(np.int64)
        away = SPREAD * min(number, 1) * rng.standard_normal(page.size)
        level = np.clip(x[earlier] * np.exp(away), SMALLEST, LARGEST)
        total = crossing_integrals(
            table, page, start, -np.expm1(-level), end, first, record.signal_time[by_page]
        )
        functions = np.empty((page.size, NUM_LEVELS))
        write_levels(level, functions)
        parts.append(Part(page, functions, total * table[page, PACE]))
    return Part(*map(np.concatenate, zip(*parts, strict=True)))
