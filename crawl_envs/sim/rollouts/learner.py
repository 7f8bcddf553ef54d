"""Whole episodes of one lane in compiled code, by a policy that learns while it crawls.

Every decision has four calls: learn from the last crawl; process births and deaths since then;
process the signals since then, in order of time; score the pages. The existing page of the largest
score is crawled, the lowest among equals. Scores may decrease, so every decision scores all pages.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from crawl_envs.sim.advance import AT_ONCE, advance, close_slots
from crawl_envs.sim.rollouts.index import crawl_one
from crawl_envs.sim.state import State, state_at
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiled_policies import AGE_ROUNDING
from crawl_envs.types.compiling import LEARN, MEMORY, ON_BIRTH_OR_DEATH, ON_SIGNAL, SCORE, compiled

LEARNER_SIGNATURE = types.boolean(
    types.int64[::1],
    ON_BIRTH_OR_DEATH,
    LEARN,
    ON_SIGNAL,
    SCORE,
    *MEMORY,
    types.float64[::1],
    types.boolean[::1],
    types.int64[::1],
)


@compiled()
def largest(scores: FloatArray, alive: BoolArray) -> int:
    """Return the existing page of the largest score, the lowest among equals; 0 if none exists."""
    best, best_score = 0, -math.inf
    for page in range(scores.shape[0]):
        if alive[page] and scores[page] > best_score:
            best, best_score = page, scores[page]
    return best


@compiled()
def look(state: State, elapsed: FloatArray, alive: BoolArray) -> None:
    """Read the elapsed times of the pages of lane 0, 0 for pages that do not exist."""
    now, last_crawl, pages = state.lanes[0].time, state.last_crawl, state.pages
    for page in range(elapsed.shape[0]):
        alive[page] = pages[0, page].alive
        elapsed[page] = now - last_crawl[0, page] if alive[page] else 0.0


@compiled()
def changed_pages(
    elapsed: FloatArray, alive: BoolArray, now: float, since: FloatArray, known: BoolArray
) -> IntArray:
    """Return the pages born or dead since the last call, also those that died and were born again.

    Updates ``since`` (m,), the start of each page's elapsed time, and ``known`` (m,), whether it
    existed.
    """
    start = np.where(alive, now - elapsed, since)
    newer = alive & (start > since + AGE_ROUNDING * now)
    changed = np.flatnonzero((alive != known) | newer)
    since[:], known[:] = start, alive
    return changed


@compiled()
def read_signals(state: State, page: IntArray, time: FloatArray, source: IntArray) -> None:
    """Read the signals of the last slot of lane 0."""
    for position in range(page.shape[0]):
        entry = state.signal_log[0, position]
        page[position], time[position], source[position] = entry.page, entry.time, entry.source


@compiled(LEARNER_SIGNATURE)
def roll_learner(
    table: IntArray,
    on_birth_or_death: Any,
    learn: Any,
    on_signal: Any,
    score: Any,
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    since: FloatArray,
    known: BoolArray,
    crawls: IntArray,
) -> bool:
    """Play lane 0 to the end of ``crawls``, one page per slot, by the largest score.

    ``since`` and ``known``, both (m,), are those of :func:`changed_pages`. Returns False if it must
    be called again, with a larger log of signals if that is full.
    """
    state = state_at(table)
    record, apart = state.lanes[0], state.source_signals.shape[1]
    elapsed, alive = np.empty(since.shape), np.empty(known.shape, np.bool_)
    scores, received = np.empty(since.shape), np.empty(max(apart, 1))
    left = AT_ONCE
    while left > 0:
        if record.busy:
            complete, left = advance(state, left)
            if not complete:
                break
            close_slots(state)
        if record.slot > crawls.shape[0]:
            return True
        if record.slot_crawls > 0:
            entry = state.crawl_log[0, 0]
            received[0] = entry.signals
            for source in range(apart):
                received[source] = state.crawl_signals[0, source, 0]
            learn(
                pages, groups, events, shared, group,
                entry.page, entry.time, entry.elapsed, received, entry.changed,
            )  # fmt: skip
            since[entry.page] = entry.time
        look(state, elapsed, alive)
        if record.reshaped:
            for page in changed_pages(elapsed, alive, record.time, since, known):
                start = record.time - elapsed[page]
                on_birth_or_death(pages, groups, events, shared, group, page, start, alive[page])
        count = record.logged
        signal = np.empty(count, np.int64), np.empty(count), np.empty(count, np.int64)
        read_signals(state, *signal)
        on_signal(pages, groups, events, shared, group, *signal)
        score(pages, groups, events, shared, group, record.time, elapsed, alive, scores)
        crawl_one(state, largest(scores, alive), crawls)
        left -= since.size
    return False
