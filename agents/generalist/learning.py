"""The two fits of a correction, from what crawls found.

The first is the staleness of a page, by the likelihood of *changed* and *not changed*: its evidence
is that of the belief times a factor. The second is the price of a crawl at a level d of staleness,
E integral (d - D_t)^+ dt over a cycle without a crawl: V_GREEDY at the believed rate times a
factor, by regression along the cycles that were followed. Neither needs a reward or a budget.

The levels d are those that a page reached in the very cycle that is followed. The price is an
expectation over paths at a level that does not depend on them, so this fit is biased where signals
make D_t jump.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.generalist.networks import (
    FURTHEST,
    LARGEST_LOG_FACTOR,
    MOST_EVIDENCE,
    NUM_INPUTS,
    NUM_VALUED,
    write_levels,
    write_prices,
)
from agents.generalist.recording import (
    CHANGED,
    EVIDENCE,
    FOLLOWED,
    FORCED,
    PAGE,
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
"""Examples of a step, and steps of a round."""
LEAST_DEVIATION = 1e-3
"""Added to deviations of inputs."""
LEAST_EVIDENCE = 1e-6
"""Least evidence of a level; the largest is MOST_EVIDENCE."""
SAMPLED = 10
"""Every how many crawls one counts for the scaling of inputs."""


class Scaling(NamedTuple):
    """Means and inverse deviations of inputs, (K,) each."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, inputs: NDArray[np.floating]) -> Scaling:
        """Return the scaling of inputs, (n, K)."""
        exact = inputs.astype(np.float64)
        return cls(exact.mean(axis=0), 1.0 / (LEAST_DEVIATION + exact.std(axis=0)))

    def __call__(self, inputs: NDArray[np.floating]) -> Array:
        """Return inputs standardised and clipped, (n, K)."""
        scaled = inputs.astype(np.float32) - self.mean.astype(np.float32)
        scaled *= self.scale.astype(np.float32)
        return np.clip(scaled, -FURTHEST, FURTHEST, out=scaled)


class Paths(NamedTuple):
    """Examples of the value, in units of T.

    Inputs of staleness at the start of a cycle, (n, K); the level's evidence x, the believed rate,
    and the integral, (n,) each.
    """

    inputs: NDArray[np.float16]
    x: FloatArray
    rate: FloatArray
    target: FloatArray


def learned(
    records: Sequence[Record],
    held_out: Sequence[Record],
    hidden: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> Iterator[Round]:
    """Yield the rounds of the first fit, and then those of the second.

    Args:
        records: of the episodes to learn from.
        held_out: of others, to measure the losses on.
        hidden: units of each hidden layer.
        learning_rate: of Adam, at the start.
        rng: for the start, levels and the choice of examples.
    """
    adam = partial(fit, steps=STEPS, learning_rate=learning_rate, rng=rng, minibatch=MINIBATCH)
    scaling = Scaling.of(np.concatenate([each.crawl_inputs[::SAMPLED] for each in records]))
    staleness = start_layers(NUM_INPUTS, hidden, (0.0,), rng)
    examples, tests = (outcomes_of(each, scaling) for each in (records, held_out))
    count = rounds_of(examples, STALENESS_EPOCHS)
    rounds = adam(staleness, examples, tests, LOG_LOSS, rounds=count)
    for number, loss in enumerate(islice(rounds, 1, None)):
        yield Round("staleness", number, loss)
    paths, others = (paths_of(each, staleness, scaling, rng) for each in (records, held_out))
    of_level = Scaling.of(level_inputs(paths.x))
    value = start_layers(NUM_VALUED, hidden, (0.0,), rng)
    examples, tests = (values_of(each, scaling, of_level) for each in (paths, others))
    count = rounds_of(examples, VALUE_EPOCHS)
    scales = [np.concatenate(both) for both in zip(scaling, of_level, strict=True)]
    rounds = adam(value, examples, tests, EXPONENTIAL, rounds=count)
    for number, loss in enumerate(islice(rounds, 1, None)):
        layers = [layer.ravel() for layer in (*staleness, *value)]
        yield Round("value", number, loss, np.concatenate([*scales, *layers]))


def rounds_of(examples: Examples, epochs: int) -> int:
    """Return the number of rounds of a fit."""
    return max(1, round(epochs * examples.page.size / (MINIBATCH * STEPS)))


def outcomes_of(records: Sequence[Record], scaling: Scaling) -> Examples:
    """Return the examples of the first fit: whether each crawl found a change."""
    inputs = np.concatenate([scaling(each.crawl_inputs) for each in records])
    crawls = np.concatenate([each.crawls for each in records])
    functions, changed = crawls[:, EVIDENCE, None], crawls[:, CHANGED]
    return Examples(inputs, np.arange(len(inputs)), functions, changed)


def values_of(paths: Paths, scaling: Scaling, of_level: Scaling) -> Examples:
    """Return the examples of the second fit: integrals over the price without a correction."""
    inputs = np.hstack([scaling(paths.inputs), of_level(level_inputs(paths.x))])
    base = np.empty(len(inputs))
    write_prices(paths.x, paths.rate, base)
    ones = np.ones((len(inputs), 1), np.float32)
    return Examples(inputs, np.arange(len(inputs)), ones, (paths.target / base).astype(np.float32))


def level_inputs(x: FloatArray) -> Array:
    """Return the inputs LEVEL, (n, 3), at evidence (n,)."""
    inputs = np.empty((NUM_VALUED - NUM_INPUTS, x.size))
    write_levels(x, inputs)
    return inputs.T.astype(np.float32)


def paths_of(
    records: Sequence[Record],
    staleness: Sequence[Array],
    scaling: Scaling,
    rng: np.random.Generator,
) -> Paths:
    """Return the examples of the followed cycles of episodes, by fitted staleness."""

    def level(rows: Array, inputs: NDArray[np.float16]) -> FloatArray:
        output = forward(staleness, scaling(inputs))[2][:, 0]
        output = np.clip(output, -LARGEST_LOG_FACTOR, LARGEST_LOG_FACTOR)
        x = rows[:, EVIDENCE] * np.exp(output, dtype=np.float64)
        return np.asarray(-np.expm1(-np.clip(x, LEAST_EVIDENCE, MOST_EVIDENCE)))

    parts = []
    for record in records:
        levels = level(record.crawls, record.crawl_inputs), level(record.seen, record.seen_inputs)
        start, d, total = cycles_of(record, *levels, rng)
        rate = record.crawls[start, RATE].astype(np.float64) * record.cycle
        parts.append(Paths(record.crawl_inputs[start], -np.log1p(-d), rate, total / record.cycle))
    return Paths(*map(np.concatenate, zip(*parts, strict=True)))


def cycles_of(
    record: Record, at_crawls: FloatArray, when_seen: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the starts of followed cycles, a level, and the integral of d - D_t up to it, (n,).

    Every cycle has two levels: that at its end, and one on the way. Those that end by a crawl at
    random are left out. ``at_crawls`` and ``when_seen`` are the levels D of the records.
    """
    crawls, seen = (rows.astype(np.float64) for rows in (record.crawls, record.seen))
    order, along = (np.lexsort((rows[:, TIME], rows[:, PAGE])) for rows in (crawls, seen))
    way = rng.random(len(order))
    rows = follow(crawls[order], at_crawls[order], seen[along], when_seen[along], way)
    return order[rows[:, 0].astype(np.int64)], rows[:, 1].copy(), rows[:, 2].copy()


@compiled()
def follow(
    crawls: FloatArray,
    at_crawls: FloatArray,
    seen: FloatArray,
    when_seen: FloatArray,
    way: FloatArray,
) -> FloatArray:
    """Return starts, levels and integrals of cycles, (n, 3); records are sorted by page and time.

    ``way`` is, for each crawl, in [0, 1), which of the levels on the way is taken.
    """
    rows, count = np.empty((2 * len(crawls), 3)), 0
    for end in range(1, len(crawls)):
        page, begun, ended = crawls[end, PAGE], crawls[end - 1, TIME], crawls[end, TIME]
        if crawls[end - 1, PAGE] != page or page % FOLLOWED > 0.0 or crawls[end, FORCED] > 0.0:
            continue
        first, last = np.searchsorted(seen[:, PAGE], page), np.searchsorted(seen[:, PAGE], page + 1)
        times = seen[first:last, TIME]
        last = first + np.searchsorted(times, ended)
        first += np.searchsorted(times, begun, side="right")
        age, level = np.zeros(last - first + 2), np.zeros(last - first + 2)
        age[1:-1], level[1:-1] = seen[first:last, TIME] - begun, when_seen[first:last]
        age[-1], level[-1] = ended - begun, at_crawls[end]
        for place in (age.size - 1, 1 + int(way[end] * (age.size - 2))):
            rows[count, 0], rows[count, 1] = end - 1, level[place]
            rows[count, 2] = shortfall(age, level, level[place])
            count += 1
    return rows[:count]


@compiled()
def shortfall(age: FloatArray, level: FloatArray, d: float) -> float:
    """Return the integral of d - D_t from age 0 until D first reaches d, by trapezoids."""
    total = 0.0
    for k in range(1, age.size):
        short = max(d - level[k - 1], 0.0) + max(d - level[k], 0.0)
        total += 0.5 * short * (age[k] - age[k - 1])
        if level[k] >= d:
            return float(total)
    return total
