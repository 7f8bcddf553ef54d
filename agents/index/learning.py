"""Learn an index from the log of a crawler, by two supervised fits.

The first fits the staleness D of a page, by the likelihood of whether crawls saw a change. The
second fits the value of a crawl at level D, by regression on integrals over the paths of D that
signals show (:mod:`agents.index.crossing`). Neither needs a price, a budget or unseen changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from agents.index.crossing import crossing_integrals
from agents.index.fitting import (
    EXPONENTIAL,
    LOG_LOSS,
    MINIBATCH,
    Array,
    Examples,
    Loss,
    Round,
    fit,
    start_layers,
)
from agents.index.inputs import INPUTS, OutcomeNetworks, outcome_table, page_inputs
from agents.index.kernels import (
    BASES,
    EVIDENCES,
    LEVELS,
    NUM_LEVELS,
    PACE,
    bases_of,
    write_levels,
)
from agents.index.recording import Record
from crawl_envs.types import FloatArray, IntArray, Problem

STALENESS_ROUNDS, VALUE_ROUNDS = 6, 12
STEPS, MAX_PASSES = 1000, 10
"""Most steps of a round, and most passes over the examples in it, lest few be overfitted."""
ROUNDS = STALENESS_ROUNDS + VALUE_ROUNDS + 2
"""Number of results that :func:`fit_index` yields: all rounds, and the starts of both fits."""
FIRST_STALENESS = (0.0, -4.0, -4.0, 0.0, -4.0)
"""Logarithms of the first weights a_k of staleness, which give about GREEDY-NCIS."""
FIRST_VALUE = (-0.5, -3.0, *(-2.0,) * (NUM_LEVELS - 2))
"""Logarithms of the first weights c_k of the crawl value."""
WINDOW = 0.4
"""Least share of the log that must follow the start of a path."""
LEVELS_PER_PATH = 2
SPREAD = 0.3
"""Standard deviation of the logarithm of the evidence at a path's level, after the first level."""
MIN_EVIDENCE, MAX_EVIDENCE = 1e-4, 12.0
"""Range of the evidence at a path's level."""


class History(NamedTuple):
    """A record of crawls and signals up to time ``end``, and its pages with their parameters."""

    record: Record
    problem: Problem
    end: float


class Part(NamedTuple):
    """Examples from one history: each one's page (n,), functions (n, O) and target (n,)."""

    page: IntArray
    functions: FloatArray
    target: FloatArray


def fit_index(
    histories: Sequence[History],
    hidden: int,
    learning_rate: float,
    rng: np.random.Generator,
    held_out: Sequence[History] = (),
) -> Iterator[Round]:
    """Fit both networks, and yield the starts and rounds of the first fit, then of the second.

    The second fit uses the first network with the smallest loss, or the last one without losses.

    Args:
        histories: logs with all parameters of pages.
        hidden: units of each hidden layer.
        learning_rate: initial step size of Adam.
        rng: draws initial weights, minibatches and levels.
        held_out: histories that select the best round; without any, losses are NaN.
    """
    starts = FIRST_STALENESS, FIRST_VALUE
    staleness, value = (start_layers(len(INPUTS), hidden, start, rng) for start in starts)

    def fitted(
        layers: list[Array], loss: Loss, part_of: Callable[..., Part], rounds: int
    ) -> Iterator[float]:
        networks = staleness, value
        examples = examples_of(histories, networks, part_of)
        tests = examples_of(held_out, networks, part_of) if held_out else None
        steps = min(STEPS, -(-MAX_PASSES * examples.page.size // MINIBATCH))
        adam = partial(fit, learning_rate=learning_rate, rng=rng)
        return adam(layers, examples, tests, loss, rounds=rounds, steps=steps)

    best_loss, best = math.inf, staleness
    for number, loss in enumerate(fitted(staleness, LOG_LOSS, outcomes_of, STALENESS_ROUNDS)):
        if loss < best_loss:
            best_loss, best = loss, [layer.copy() for layer in staleness]
        yield Round("staleness", number, loss)
    staleness = best
    along_paths = partial(values_of, rng=rng)
    for number, loss in enumerate(fitted(value, EXPONENTIAL, along_paths, VALUE_ROUNDS)):
        layers = [layer.ravel() for layer in (*staleness, *value)]
        yield Round("value", number, loss, np.concatenate(layers, dtype=np.float64))


def examples_of(
    histories: Sequence[History],
    networks: Sequence[Sequence[Array]],
    part_of: Callable[[History, FloatArray], Part],
) -> Examples:
    """Return the examples that ``part_of`` makes of all histories with the present networks."""
    exact = OutcomeNetworks(*(tuple(layer.astype(np.float64) for layer in n) for n in networks))
    parts = [part_of(h, outcome_table(h.problem, exact)) for h in histories]
    inputs = [page_inputs(history.problem) for history in histories]
    first = np.cumsum([0, *map(len, inputs)])
    pages = np.concatenate([part.page + k for part, k in zip(parts, first[:-1], strict=True)])
    functions = np.concatenate([part.functions for part in parts], dtype=np.float32)
    target = np.concatenate([part.target for part in parts], dtype=np.float32)
    return Examples(np.concatenate(inputs, dtype=np.float32), pages, functions, target)


def outcomes_of(history: History, table: FloatArray) -> Part:
    """Return the examples of the staleness fit: functions of crawls, and which saw a change."""
    record, bases = history.record, cast(Any, bases_of)
    evidence = (table[record.page, EVIDENCES:].T * record.signals).sum(axis=0)
    functions = np.stack(bases.py_func(table, record.page, record.elapsed, evidence), axis=1)
    return Part(record.page, functions, record.changed.astype(np.float64))


def paths_of(history: History) -> tuple[IntArray, IntArray, IntArray]:
    """Sort a history's crawls by page and time, and find the crawls at which paths begin.

    Returns:
        The order, (n,); in this order, the rank of each crawl on its page, (n,), and the positions
        of crawls at which paths begin, (k,).
    """
    record, rate = history.record, history.problem.change_rate
    assert rate is not None
    order = np.lexsort((record.time, record.page))
    page, start = record.page[order], record.time[order]
    rank = np.arange(page.size) - np.searchsorted(page, page)
    begins = (rank >= 1) & (start <= (1.0 - WINDOW) * history.end) & (rate[page] > 0.0)
    return order, rank, np.flatnonzero(begins)


def values_of(history: History, table: FloatArray, rng: np.random.Generator) -> Part:
    """Return the examples of the value fit: integrals along paths that begin at crawls.

    The first level of a path is the level at a random earlier crawl of its page, the second is
    near the level at another one.
    """
    record, end = history.record, history.end
    order, rank, paths = paths_of(history)
    functions = outcomes_of(history, table).functions
    x = (table[record.page, BASES:LEVELS] * functions).sum(axis=1)[order]
    page, start, rank = record.page[order][paths], record.time[order][paths], rank[paths]
    by_page = np.lexsort((record.signal_time, record.signal_page))
    first = np.searchsorted(record.signal_page[by_page], np.arange(len(table) + 1))
    evidences = table[record.signal_page, EVIDENCES + record.signal_source][by_page]
    signals = first, record.signal_time[by_page], evidences
    parts = []
    for number in range(LEVELS_PER_PATH):
        earlier = paths - rank + (rng.random(page.size) * rank).astype(np.int64)
        away = SPREAD * min(number, 1) * rng.standard_normal(page.size)
        level = np.clip(x[earlier] * np.exp(away), MIN_EVIDENCE, MAX_EVIDENCE)
        total = crossing_integrals(table, page, start, -np.expm1(-level), end, *signals)
        functions = np.empty((page.size, NUM_LEVELS))
        write_levels(level, functions)
        parts.append(Part(page, functions, total * table[page, PACE]))
    return Part(*map(np.concatenate, zip(*parts, strict=True)))
