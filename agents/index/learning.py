"""Two supervised fits that learn an index from what a crawler saw.

The first is the staleness D of a page, by the likelihood of whether crawls found a change. The
second is the value of a crawl at level D, by regression on integrals over the paths of D that the
signals tell (:mod:`agents.index.crossing`). Neither needs a price, a budget or the
truth.
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
STEPS, PASSES = 1000, 10
"""Most steps of a round, and most passes over the examples in it: few are not learned by heart."""
ROUNDS = STALENESS_ROUNDS + VALUE_ROUNDS + 2
"""Rounds that :func:`learned` yields: these, and the starts of both fits."""
FIRST_STALENESS = (0.0, -4.0, -4.0, 0.0, -4.0)
"""Logarithms of the a_k at the start: about GREEDY-NCIS."""
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
    """What a crawler saw and knew: a record that ends at ``end``, and its pages, with sources."""

    record: Record
    problem: Problem
    end: float


class Part(NamedTuple):
    """Examples from a history: pages (n,), functions (n, O) and targets (n,)."""

    page: IntArray
    functions: FloatArray
    target: FloatArray


def learned(
    histories: Sequence[History],
    hidden: int,
    learning_rate: float,
    rng: np.random.Generator,
    held_out: Sequence[History] = (),
) -> Iterator[Round]:
    """Yield the rounds of the first fit, and then those of the second, each after its start.

    The second fit uses the result of the first: of its last round, or of the one of least loss.

    Args:
        histories: with all parameters of pages.
        hidden: units of each hidden layer.
        learning_rate: of Adam, at the start.
        rng: for the start and the choice of examples.
        held_out: histories to choose between rounds by; without any, losses are NaN.
    """
    starts = FIRST_STALENESS, FIRST_VALUE
    staleness, value = (start_layers(len(INPUTS), hidden, each, rng) for each in starts)

    def fitted(
        layers: list[Array], loss: Loss, part_of: Callable[..., Part], rounds: int
    ) -> Iterator[float]:
        networks = staleness, value
        examples = examples_of(histories, networks, part_of)
        tests = examples_of(held_out, networks, part_of) if held_out else None
        steps = min(STEPS, -(-PASSES * examples.page.size // MINIBATCH))
        adam = partial(fit, learning_rate=learning_rate, rng=rng)
        return adam(layers, examples, tests, loss, rounds=rounds, steps=steps)

    least, best = math.inf, staleness
    for number, loss in enumerate(fitted(staleness, LOG_LOSS, outcomes_of, STALENESS_ROUNDS)):
        if loss < least:
            least, best = loss, [layer.copy() for layer in staleness]
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
    """Return the examples of all histories, by the networks as they are."""
    exact = OutcomeNetworks(*(tuple(layer.astype(np.float64) for layer in n) for n in networks))
    parts = [part_of(each, outcome_table(each.problem, exact)) for each in histories]
    inputs = [page_inputs(each.problem) for each in histories]
    first = np.cumsum([0, *(len(each) for each in inputs)])
    pages = np.concatenate([part.page + at for part, at in zip(parts, first[:-1], strict=True)])
    functions = np.concatenate([part.functions for part in parts], dtype=np.float32)
    target = np.concatenate([part.target for part in parts], dtype=np.float32)
    return Examples(np.concatenate(inputs, dtype=np.float32), pages, functions, target)


def outcomes_of(history: History, table: FloatArray) -> Part:
    """Return the examples of the first fit: whether each crawl found a change."""
    record, bases = history.record, cast(Any, bases_of)
    evidence = (table[record.page, EVIDENCES:].T * record.signals).sum(axis=0)
    functions = np.stack(bases.py_func(table, record.page, record.elapsed, evidence), axis=1)
    return Part(record.page, functions, record.changed.astype(np.float64))


def paths_of(history: History) -> tuple[IntArray, IntArray, IntArray]:
    """Return the order of crawls by page and time, and where paths begin.

    Returns:
        The order, (n,); the rank of each crawl on its page, in this order, (n,); the places in this
        order of crawls at which paths begin, (k,).
    """
    record, rate = history.record, history.problem.change_rate
    assert rate is not None
    order = np.lexsort((record.time, record.page))
    page, start = record.page[order], record.time[order]
    rank = np.arange(page.size) - np.searchsorted(page, page)
    begins = (rank >= 1) & (start <= (1.0 - WINDOW) * history.end) & (rate[page] > 0.0)
    return order, rank, np.flatnonzero(begins)


def values_of(history: History, table: FloatArray, rng: np.random.Generator) -> Part:
    """Return the examples of the second fit: integrals along paths that begin at crawls.

    The first level of a path is that of an earlier crawl of its page, chosen at random, another one
    is near that of another crawl.
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
        level = np.clip(x[earlier] * np.exp(away), SMALLEST, LARGEST)
        total = crossing_integrals(table, page, start, -np.expm1(-level), end, *signals)
        functions = np.empty((page.size, NUM_LEVELS))
        write_levels(level, functions)
        parts.append(Part(page, functions, total * table[page, PACE]))
    return Part(*map(np.concatenate, zip(*parts, strict=True)))
