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

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.sim.advance import AT_ONCE, advance, close_slots
from crawl_envs.sim.rollouts.index import crawl_one
from crawl_envs.sim.state import state_at
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiled_policies import (
    AGE_ROUNDING,
    LEARN,
    MEMORY,
    ON_BIRTH_OR_DEATH,
    ON_SIGNAL,
    SCORE,
    Memory,
)

LEARNER_SIGNATURE = types.boolean(
    types.int64[::1],
    ON_BIRTH_OR_DEATH,
    LEARN,
    ON_SIGNAL,
    SCORE,
    MEMORY,
    types.float64[::1],
    types.boolean[::1],
    types.int64[::1],
)


@inlined()
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


@compiled(LEARNER_SIGNATURE)
def roll_learner(
    table: IntArray,
    on_birth_or_death: Any,
    learn: Any,
    on_signal: Any,
    score: Any,
    memory: Memory,
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
            learn(memory, entry.page, entry.time, entry.elapsed, received, entry.changed)
            since[entry.page] = entry.time
        alive = state.pages[0]["alive"].copy()
        elapsed = np.where(alive, record.time - state.last_crawl[0], 0.0)
        if record.reshaped:
            for page in changed_pages(elapsed, alive, record.time, since, known):
                start = record.time - elapsed[page]
                on_birth_or_death(memory, page, start, alive[page])
        log = state.signal_log[0, : record.logged]
        on_signal(memory, log["page"].copy(), log["time"].copy(), log["source"].copy())
        score(memory, record.time, elapsed, alive, scores)
        best = int(np.argmax(np.where(alive, scores, -np.inf)))
        if math.isnan(scores[best]) and alive[best]:
            raise ValueError("the score of every page must be a number, got NaN")
        crawl_one(state, best, crawls)
        left -= since.size
    return False
