"""Crawl logs of a crawler that explores: what it saw, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray, Instance, IntArray
from crawl_envs.types.compiled_policies import (
    LEARN,
    ON_BIRTH_OR_DEATH,
    ON_SIGNAL,
    SCORE,
    CompiledLearner,
    Memory,
)
from crawl_envs.worlds.rollouts import play_form

SPREAD = 1.2
"""Standard deviation of the logarithm of a page's weight."""
WEIGHT_SLOTS = 500
"""Crawls between two draws of the weights."""
CRAWLS, SIGNALS, SEQUENCE = range(3)
"""Places in ``shared``: numbers of crawls and signals recorded; then the pages to crawl."""


class Record(NamedTuple):
    """Crawls and signals of an episode, in order of time.

    ``page``, ``time``, ``elapsed`` since the crawl before, or since the fresh start at 0,
    ``signals`` since then of each of S sources (S, n), and ``changed``, of the n crawls;
    ``signal_page``, ``signal_time`` and ``signal_source`` of the k signals.
    """

    page: IntArray
    time: FloatArray
    elapsed: FloatArray
    signals: FloatArray
    changed: BoolArray
    signal_page: IntArray
    signal_time: FloatArray
    signal_source: IntArray


@compiled(ON_BIRTH_OR_DEATH.signature)
def on_birth_or_death(memory: Memory, page: int, time: float, alive: bool) -> None:
    """Do nothing: all pages exist throughout."""


@compiled(LEARN.signature)
def learn(
    memory: Memory, page: int, time: float, elapsed: float, signals: FloatArray, changed: bool
) -> None:
    """Write a crawl and its result to the next row of ``groups``."""
    row = memory.groups[int(memory.shared[CRAWLS])]
    row[0], row[1], row[2], row[3] = page, time, elapsed, changed
    row[4:] = signals
    memory.shared[CRAWLS] += 1.0


@compiled(ON_SIGNAL.signature)
def on_signal(memory: Memory, page: IntArray, time: FloatArray, source: IntArray) -> None:
    """Write signals to ``events``, and count all signals, including those that do not fit."""
    events, shared = memory.events, memory.shared
    for k in range(page.shape[0]):
        number = int(shared[SIGNALS])
        if number < events.shape[0]:
            events[number, 0], events[number, 1], events[number, 2] = page[k], time[k], source[k]
        shared[SIGNALS] += 1.0


@compiled(SCORE.signature)
def score(
    memory: Memory, now: float, elapsed: FloatArray, alive: BoolArray, scores: FloatArray
) -> None:
    """Give the next page of the stored sequence score 1, and all other pages 0."""
    scores[:] = 0.0
    scores[int(memory.shared[SEQUENCE + int(memory.shared[CRAWLS])])] = 1.0


def explored(num_pages: int, slots: int, rng: np.random.Generator) -> IntArray:
    """Draw a page for each slot, by weights exp(SPREAD z) that change every WEIGHT_SLOTS slots."""
    parts = []
    for first in range(0, slots, WEIGHT_SLOTS):
        weight = np.exp(SPREAD * rng.standard_normal(num_pages))
        size = min(WEIGHT_SLOTS, slots - first)
        parts.append(rng.choice(num_pages, size, p=weight / weight.sum()))
    return np.concatenate(parts)


def recorded(instance: Instance, horizon: float, slots: int, seed: int) -> Record:
    """Crawl random pages in the episode of a seed, and return the record of crawls and signals."""
    pages = explored(instance.num_pages, slots, np.random.default_rng([seed, 3])).astype(np.float64)
    group, signals, capacity = np.zeros(instance.num_pages, np.int64), 4 * slots, 0
    while signals > capacity:
        capacity = signals
        groups, events = np.zeros((slots, 4 + instance.num_sources)), np.zeros((capacity, 3))
        shared = np.concatenate([np.zeros(SEQUENCE), pages, np.zeros(1)])
        memory = Memory(np.zeros((1, 1)), groups, events, shared, group)
        form = CompiledLearner(on_birth_or_death, learn, on_signal, score, memory)
        play_form(form, instance, horizon, seed, requests=False)
        crawls, signals = int(shared[CRAWLS]), int(shared[SIGNALS])
    page, time, elapsed, changed, *counts = groups[:crawls].T
    signal_page, signal_time, source = events[:signals].T.copy()
    return Record(
        page.astype(np.int64),
        time.copy(),
        elapsed.copy(),
        np.array(counts),
        changed > 0.5,
        signal_page.astype(np.int64),
        signal_time,
        source.astype(np.int64),
    )
