"""Whole episodes of one lane in compiled code, with a page for each slot.

An index policy crawls the existing page of the largest value, which
:mod:`crawl_envs.compiled.lazy_argmax` finds; a sequence says which page is next; a policy that
learns while it crawls scores all pages.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from crawl_envs.compiled.heap import IndexedHeap, set_due
from crawl_envs.compiled.lazy_argmax import (
    ABSENT,
    LazyArgmax,
    add,
    best_page,
    count_crawl,
    count_signal,
    lazy_at,
    remove,
)
from crawl_envs.compiled.promises import put_due_first
from crawl_envs.sim.advance import AT_ONCE, advance, close_slots, crawl_page, next_slot
from crawl_envs.sim.rollouts.first_round import ROUND, Round, crawl_next, take_over
from crawl_envs.sim.state import State, state_at
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiled_policies import (
    AGE_ROUNDING,
    LEARN,
    MEMORY,
    ON_BIRTH_OR_DEATH,
    ON_SIGNAL,
    RESPONSE_DUE,
    SCORE,
    Memory,
)

# Indices

INDEX_SIGNATURE = types.boolean(
    types.int64[::1], types.int64[::1], VALUE, SIGNAL_WEIGHT, types.float64, types.int64[::1]
)


@compiled(SIGNAL_WEIGHT.signature)
def count_alike(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return the weight 1 for every signal: the default of policies that do not weigh signals."""
    return 1.0


@inlined(forceinline=True)
def crawl_one(state: State, page: int, crawls: IntArray) -> None:
    """Crawl a page in lane 0 at its current slot, and write the page into ``crawls``, (slots,)."""
    crawls[state.lanes[0].slot - 1] = page
    next_slot(state, 0, page)
    crawl_page(state, 0, page)


@inlined(forceinline=True)
def has_room(state: State, crawls: IntArray) -> bool:
    """Return whether ``crawls`` has room for the next one, if their number depends on costs."""
    return bool(state.cost.shape[1] == 0 or state.lanes[0].slot <= crawls.shape[0])


@inlined(forceinline=True)
def is_over(state: State, crawls: IntArray) -> bool:
    """Return whether the last slot is closed: ``crawls`` is full, or costs reach the budget."""
    record = state.lanes[0]
    if state.cost.shape[1] > 0:
        paid = record.origin >= 0.0  # the crawls of this episode
        return bool(paid and record.first_slot + record.spend > record.budget)
    return bool(record.slot > crawls.shape[0])


@inlined()
def add_signals(
    state: State, lazy: LazyArgmax, value: Any, signal_weight: Any, delay_window: float
) -> None:
    """Add the weights of the last slot's signals to their pages in the search of an index policy.

    Signals within ``delay_window`` after a page's crawl are skipped. A birth counts as a crawl.
    """
    now = state.lanes[0].time
    for position in range(state.lanes[0].logged):
        entry = state.signal_log[0, position]
        page, age = entry.page, entry.time - lazy.pages[entry.page].last_crawl
        if age > delay_window or (age == 0.0 and delay_window == 0.0):
            weight = signal_weight(lazy.parameters, page, age, entry.source)
            count_signal(lazy, value, page, weight, now)


@inlined()
def follow_births_and_deaths(state: State, lazy: LazyArgmax, value: Any, since: float) -> None:
    """Add the pages born at time ``since`` or later to the search, and remove dead pages."""
    for page in range(lazy.pages.shape[0]):
        record, born = lazy.pages[page], state.last_crawl[0, page]
        if not state.pages[0, page].alive:
            record.counted = 0.0
            remove(lazy, page)
        elif record.place == ABSENT or born >= since:
            record.last_crawl, record.counted = born, 0.0
            add(lazy, value, page, state.lanes[0].time)


@compiled(INDEX_SIGNATURE)
def roll_index(
    table: IntArray,
    search: IntArray,
    value: Any,
    signal_weight: Any,
    delay_window: float,
    crawls: IntArray,
) -> bool:
    """Play lane 0 by an index policy: each slot crawls the existing page of the largest value.

    ``search`` is the table of a :class:`crawl_envs.compiled.lazy_argmax.LazyArgmax`; ``crawls``,
    (slots,), gets the pages. Returns False if it must be called again, with a larger log of
    signals, or of crawls, if that is full.
    """
    state, lazy = state_at(table), lazy_at(search)
    record, remaining = state.lanes[0], AT_ONCE
    while remaining > 0 and has_room(state, crawls):
        complete, remaining = advance(state, remaining)
        if not complete:
            break
        close_slots(state)
        if record.reshaped:
            first = record.slot == record.first_slot
            start = 0.0 if first else state.crawl_log[0, 0].time
            follow_births_and_deaths(state, lazy, value, start)
            remaining -= lazy.pages.shape[0]
        add_signals(state, lazy, value, signal_weight, delay_window)
        if is_over(state, crawls):
            return True
        now, before = record.time, lazy.search[0].evaluated
        page = max(best_page(lazy, value, now), 0)
        crawl_one(state, page, crawls)
        if lazy.pages[page].place != ABSENT:
            count_crawl(lazy, value, page, now)
        remaining -= 1 + lazy.search[0].evaluated - before
    return False


# Sequences


class Responses(NamedTuple):
    """What lane 0 needs for a sequence: its position, and the crawls in response to signals."""

    share: FloatArray  # increment of a page's account per signal, (m,); (0,) without responses
    account: FloatArray  # account of each page, (m,)
    waiting: IndexedHeap  # the pages whose account has reached 1, in the order in which they did
    numbers: IntArray  # TURN, the next entry of the sequence; REACHED, pages that have waited


TURN, REACHED = range(2)


@inlined()
def add_responses(state: State, responses: Responses) -> None:
    """Add the last slot's signals to their pages' accounts; pages that reach 1 start to wait."""
    account, waiting, numbers = responses.account, responses.waiting, responses.numbers
    for position in range(state.lanes[0].logged):
        page = state.signal_log[0, position].page
        account[page] += responses.share[page]
        if account[page] >= RESPONSE_DUE and waiting.place[page] < 0:
            set_due(waiting, page, float(numbers[REACHED]))
            numbers[REACHED] += 1


@inlined(forceinline=True)
def next_page(pages: IntArray, responses: Responses) -> int:
    """Return the page to crawl next: the first page that waits, else the next of the sequence."""
    account, waiting, numbers = responses.account, responses.waiting, responses.numbers
    if waiting.size[0] > 0:
        page = waiting.entries[0]
        set_due(waiting, page, math.inf)
        while account[page] >= RESPONSE_DUE:
            account[page] -= 1.0
        return int(page)
    turn = numbers[TURN]
    numbers[TURN] = turn + 1 if turn + 1 < pages.shape[0] else 0
    return int(pages[turn])


@compiled()
def roll_sequence(table: IntArray, pages: IntArray, responses: Responses, crawls: IntArray) -> bool:
    """Play lane 0 by a fixed sequence of ``pages``, and write each slot's page into ``crawls``.

    See :class:`crawl_envs.types.compiled_policies.CompiledSequence`. Returns False if it must be
    called again, with a larger log of signals if that is full.
    """
    state, remaining = state_at(table), AT_ONCE
    while remaining > 0 and has_room(state, crawls):
        complete, remaining = advance(state, remaining)
        if not complete:
            break
        close_slots(state)
        if responses.share.shape[0] > 0:
            add_responses(state, responses)
        if is_over(state, crawls):
            return True
        crawl_one(state, next_page(pages, responses), crawls)
        remaining -= 1
    return False


# Learners

LEARNER_SIGNATURE = types.boolean(
    types.int64[::1],
    ON_BIRTH_OR_DEATH,
    LEARN,
    ON_SIGNAL,
    SCORE,
    MEMORY,
    types.float64[:, ::1],
    types.float64[::1],
    types.boolean[::1],
    ROUND,
    types.int64[::1],
)


@inlined()
def changed_pages(
    elapsed: FloatArray, alive: BoolArray, now: float, since: FloatArray, was_alive: BoolArray
) -> IntArray:
    """Return the pages that were born or died since the last call, or did both, ascending.

    Updates ``since`` (m,), the start of each page's elapsed time, and ``was_alive`` (m,), whether
    it existed.
    """
    start = np.where(alive, now - elapsed, since)
    newer = alive & (start > since + AGE_ROUNDING * now)
    changed = np.flatnonzero((alive != was_alive) | newer)
    since[:], was_alive[:] = start, alive
    return changed


@compiled(LEARNER_SIGNATURE)
def roll_learner(
    table: IntArray,
    on_birth_or_death: Any,
    learn: Any,
    on_signal: Any,
    score: Any,
    memory: Memory,
    promises: FloatArray,
    since: FloatArray,
    was_alive: BoolArray,
    first_round: Round,
    crawls: IntArray,
) -> bool:
    """Play lane 0 by a learner: each slot crawls the existing page of the largest score.

    Crawls before the episode, of ``first_round``, are slots too, from which it learns.

    Every decision has four calls: learn from the last crawl; process births and deaths since then;
    process the signals since then, in order of time; score the pages. Among equal scores the lowest
    page is crawled. Scores may decrease, so every decision scores all pages.

    :func:`changed_pages` describes ``since`` and ``was_alive``, both (m,). ``crawls``, (slots,),
    gets the pages. Returns False if it must be called again, with a larger log of signals, or of
    crawls, if that is full.
    """
    state = state_at(table)
    record, num_sources = state.lanes[0], state.source_signals.shape[1]
    scores, received = np.empty(since.shape), np.empty(max(num_sources, 1))
    remaining = AT_ONCE
    while remaining > 0 and has_room(state, crawls):
        complete, remaining = advance(state, remaining)
        if not complete:
            break
        if record.origin < 0.0 and record.turn == first_round.pages.shape[0]:
            take_over(state, 0)
            continue
        close_slots(state)
        if is_over(state, crawls):
            return True
        if record.slot_crawls > 0:
            entry = state.crawl_log[0, 0]
            received[0] = entry.signals
            for source in range(num_sources):
                received[source] = state.crawl_signals[0, source, 0]
            learn(memory, entry.page, entry.time, entry.elapsed, received, entry.changed)
            since[entry.page] = entry.time
        alive = state.pages[0]["alive"].copy()
        elapsed = np.where(alive, record.time - state.last_crawl[0], 0.0)
        if record.reshaped:
            for page in changed_pages(elapsed, alive, record.time, since, was_alive):
                start = record.time - elapsed[page]
                on_birth_or_death(memory, page, start, alive[page])
        log = state.signal_log[0, : record.logged]
        on_signal(memory, log["page"].copy(), log["time"].copy(), log["source"].copy())
        if record.origin < 0.0:
            crawl_next(state, 0, first_round)
            remaining -= since.size
            continue
        score(memory, record.time, elapsed, alive, scores)
        put_due_first(promises, elapsed, scores)
        best = int(np.argmax(np.where(alive, scores, -np.inf)))
        if math.isnan(scores[best]) and alive[best]:
            raise ValueError("the score of every page must be a number, got NaN")
        crawl_one(state, best, crawls)
        remaining -= since.size
    return False
