"""Learn the two networks from recorded crawls, without a reward or a budget.

The first network corrects the staleness of a page: a factor on the believed evidence, by the
likelihood of *changed* and *not changed*. The second corrects the value of a crawl at a level d of
staleness, E integral (d - D_t)^+ dt over a cycle without a crawl: a factor on V_GREEDY at the
believed rate, by regression along recorded cycles. A level d is one that the page reached in the
recorded cycle itself. The value is an expectation over paths at a level that does not depend on
them, so this fit is biased where signals make D_t jump.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.generalist.networks import (
    MAX_EVIDENCE,
    MAX_INPUT,
    MAX_LOG_FACTOR,
    NUM_INPUTS,
    NUM_VALUED,
    write_levels,
    write_prices,
)
from agents.generalist.recording import (
    CHANGED,
    EVIDENCE,
    FORCED,
    PAGE,
    PAGE_STRIDE,
    RATE,
    TIME,
    Record,
)
from agents.index.fitting import EXPONENTIAL, LOG_LOSS, Array, Examples, Round, fit, start_layers
from agents.index.inputs import forward
from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray, IntArray

STALENESS_EPOCHS, VALUE_EPOCHS = 8, 24
MINIBATCH, STEPS = 512, 1000
"""Number of examples per step of the optimiser, and of steps per round."""
DEVIATION_OFFSET = 1e-3
"""Added to deviations of inputs."""
MIN_EVIDENCE = 1e-6
"""Smallest evidence at which a path's level is taken; the largest is MAX_EVIDENCE."""
SCALING_STRIDE = 10
"""The scaling of inputs is learned from every tenth crawl."""


class Scaling(NamedTuple):
    """Means and inverse deviations of inputs, (K,) each."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def learn(cls, inputs: NDArray[np.floating]) -> Scaling:
        """Return the scaling by means and deviations of the columns of inputs, (n, K)."""
        exact = inputs.astype(np.float64)
        return cls(exact.mean(axis=0), 1.0 / (DEVIATION_OFFSET + exact.std(axis=0)))

    def __call__(self, inputs: NDArray[np.floating]) -> Array:
        """Return inputs standardised and clipped, (n, K)."""
        scaled = inputs.astype(np.float32) - self.mean.astype(np.float32)
        scaled *= self.scale.astype(np.float32)
        return np.clip(scaled, -MAX_INPUT, MAX_INPUT, out=scaled)


class Paths(NamedTuple):
    """Examples of the value, in units of T.

    Each example has the inputs of staleness at the start of a cycle, (n, K); the evidence x at a
    level, the believed change rate, and the integral to learn, (n,) each.
    """

    inputs: NDArray[np.float16]
    x: FloatArray
    rate: FloatArray
    target: FloatArray


def fit_networks(
    records: Sequence[Record],
    held_out: Sequence[Record],
    hidden: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> Iterator[Round]:
    """Fit both networks, and yield the rounds of the first fit and then those of the second.

    Losses are measured on ``held_out``. ``hidden`` is the number of units of each hidden layer, and
    ``learning_rate`` the first step size of Adam. ``rng`` draws weights, levels and minibatches.
    """
    adam = partial(fit, steps=STEPS, learning_rate=learning_rate, rng=rng, minibatch=MINIBATCH)
    scaling = Scaling.learn(np.concatenate([r.crawl_inputs[::SCALING_STRIDE] for r in records]))
    staleness = start_layers(NUM_INPUTS, hidden, (0.0,), rng)
    examples, tests = (outcomes_of(part, scaling) for part in (records, held_out))
    count = rounds_of(examples, STALENESS_EPOCHS)
    rounds = adam(staleness, examples, tests, LOG_LOSS, rounds=count)
    for number, loss in enumerate(islice(rounds, 1, None)):
        yield Round("staleness", number, loss)
    paths, test_paths = (paths_of(r, staleness, scaling, rng) for r in (records, held_out))
    level_scaling = Scaling.learn(level_inputs(paths.x))
    value = start_layers(NUM_VALUED, hidden, (0.0,), rng)
    examples, tests = (values_of(part, scaling, level_scaling) for part in (paths, test_paths))
    count = rounds_of(examples, VALUE_EPOCHS)
    scales = [np.concatenate(pair) for pair in zip(scaling, level_scaling, strict=True)]
    rounds = adam(value, examples, tests, EXPONENTIAL, rounds=count)
    for number, loss in enumerate(islice(rounds, 1, None)):
        layers = [layer.ravel() for layer in (*staleness, *value)]
        yield Round("value", number, loss, np.concatenate([*scales, *layers]))


def rounds_of(examples: Examples, epochs: int) -> int:
    """Return the number of rounds of a fit."""
    return max(1, round(epochs * examples.page.size / (MINIBATCH * STEPS)))


def outcomes_of(records: Sequence[Record], scaling: Scaling) -> Examples:
    """Return the examples of the staleness fit: crawls' inputs, and whether each saw a change."""
    inputs = np.concatenate([scaling(record.crawl_inputs) for record in records])
    crawls = np.concatenate([record.crawls for record in records])
    functions, changed = crawls[:, EVIDENCE, None], crawls[:, CHANGED]
    return Examples(inputs, np.arange(len(inputs)), functions, changed)


def values_of(paths: Paths, scaling: Scaling, level_scaling: Scaling) -> Examples:
    """Return the examples of the value fit: targets are integrals over uncorrected values."""
    inputs = np.hstack([scaling(paths.inputs), level_scaling(level_inputs(paths.x))])
    base = np.empty(len(inputs))
    write_prices(paths.x, paths.rate, base)
    ones = np.ones((len(inputs), 1), np.float32)
    return Examples(inputs, np.arange(len(inputs)), ones, (paths.target / base).astype(np.float32))


def level_inputs(x: FloatArray) -> Array:
    """Return the inputs LEVEL of the value network, (n, 3), at evidence ``x``, (n,)."""
    inputs = np.empty((NUM_VALUED - NUM_INPUTS, x.size))
    write_levels(x, inputs)
    return inputs.T.astype(np.float32)


def paths_of(
    records: Sequence[Record],
    staleness: Sequence[Array],
    scaling: Scaling,
    rng: np.random.Generator,
) -> Paths:
    """Return the examples of the value from recorded cycles, by the fitted staleness network."""

    def level(rows: Array, inputs: NDArray[np.float16]) -> FloatArray:
        output = forward(staleness, scaling(inputs))[2][:, 0]
        output = np.clip(output, -MAX_LOG_FACTOR, MAX_LOG_FACTOR)
        x = rows[:, EVIDENCE] * np.exp(output, dtype=np.float64)
        return np.asarray(-np.expm1(-np.clip(x, MIN_EVIDENCE, MAX_EVIDENCE)))

    parts = []
    for record in records:
        crawl_levels = level(record.crawls, record.crawl_inputs)
        sample_levels = level(record.samples, record.sample_inputs)
        start, d, total = cycles_of(record, crawl_levels, sample_levels, rng)
        rate = record.crawls[start, RATE].astype(np.float64) * record.cycle
        parts.append(Paths(record.crawl_inputs[start], -np.log1p(-d), rate, total / record.cycle))
    return Paths(*map(np.concatenate, zip(*parts, strict=True)))


def cycles_of(
    record: Record, crawl_levels: FloatArray, sample_levels: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return starts of recorded cycles, levels d of staleness, and integrals of d - D_t, (n,) each.

    The integral is over the time until the staleness D_t reaches d. Each cycle gives two levels:
    that at its end and an earlier one. Cycles that end with a random crawl are skipped.
    ``crawl_levels`` and ``sample_levels`` are D at the recorded crawls and samples.
    """
    crawls, samples = (rows.astype(np.float64) for rows in (record.crawls, record.samples))
    order, places = (np.lexsort((rows[:, TIME], rows[:, PAGE])) for rows in (crawls, samples))
    way, sorted_samples = rng.random(len(order)), (samples[places], sample_levels[places])
    rows = follow(crawls[order], crawl_levels[order], *sorted_samples, way)
    return order[rows[:, 0].astype(np.int64)], rows[:, 1].copy(), rows[:, 2].copy()


@compiled()
def follow(
    crawls: FloatArray,
    crawl_levels: FloatArray,
    samples: FloatArray,
    sample_levels: FloatArray,
    way: FloatArray,
) -> FloatArray:
    """Return the start, level and integral of each cycle, (n, 3), from records by page and time.

    ``way`` in [0, 1) selects the earlier level of the cycle that each crawl ends.
    """
    rows, count = np.empty((2 * len(crawls), 3)), 0
    for end in range(1, len(crawls)):
        page, begun, ended = crawls[end, PAGE], crawls[end - 1, TIME], crawls[end, TIME]
        if crawls[end - 1, PAGE] != page or page % PAGE_STRIDE > 0.0 or crawls[end, FORCED] > 0.0:
            continue
        pages = samples[:, PAGE]
        first, last = np.searchsorted(pages, page), np.searchsorted(pages, page + 1)
        times = samples[first:last, TIME]
        last = first + np.searchsorted(times, ended)
        first += np.searchsorted(times, begun, side="right")
        age, level = np.zeros(last - first + 2), np.zeros(last - first + 2)
        age[1:-1], level[1:-1] = samples[first:last, TIME] - begun, sample_levels[first:last]
        age[-1], level[-1] = ended - begun, crawl_levels[end]
        for place in (age.size - 1, 1 + int(way[end] * (age.size - 2))):
            rows[count, 0], rows[count, 1] = end - 1, level[place]
            rows[count, 2] = shortfall(age, level, level[place])
            count += 1
    return rows[:count]


@compiled()
def shortfall(age: FloatArray, level: FloatArray, d: float) -> float:
    """Return the integral of d - D_t from age 0 until staleness D first reaches d (trapezoids)."""
    total = 0.0
    for k in range(1, age.size):
        short = max(d - level[k - 1], 0.0) + max(d - level[k], 0.0)
        total += 0.5 * short * (age[k] - age[k - 1])
        if level[k] >= d:
            return float(total)
    return total
