"""Crawls by thresholds: every page is crawled as soon as its state reaches its threshold.

The state of a page is its elapsed time plus the weights of the signals since its last crawl, for
instance its effective elapsed time. Signals only increase it, so between events the due time of a
page is known. An indexed heap has these times, and is merged with the tape. A crawl at the time of
an event precedes it. A birth starts a cycle; dead pages are never due.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from crawl_envs.sim.advance import (
    AT_ONCE,
    DAY_IS_OVER,
    DONE,
    PAUSED,
    SLOT_IS_OVER,
    UNFINISHED,
    apply_next_event,
    close_slots,
    crawl_page,
    end_slot,
    is_log_full,
    next_event_time,
    open_slot,
    pass_time,
)
from crawl_envs.sim.state import State, pointer_to, state_at
from crawl_envs.sim.streams import UintArray, loaded, next_uniform, store, stream_of
from crawl_envs.sim.tape import BIRTH, DEATH, SIGNAL
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import ThresholdRule
from crawl_envs.types.compiling import compiled
from crawl_envs.types.heap import IndexedHeap, first_due, set_due


@compiled()
def stream_words(seed: np.uint64) -> UintArray:
    """Return the random stream of a seed, as an array of four words."""
    words = np.empty(4, np.uint64)
    store(stream_of(seed, np.uint64(0)), words)
    return words


@compiled(forceinline=True)
def draw_target(rule: ThresholdRule, target: FloatArray, page: int, rng: UintArray) -> None:
    """Set the threshold of a new cycle of a page, at random if it has two.

    ``rng`` is the array of four words of a random stream.
    """
    target[page] = rule.threshold[page]
    if rule.later_share[page] > 0.0:
        uniform, stream = next_uniform(loaded(rng))
        store(stream, rng)
        if uniform <= rule.later_share[page]:
            target[page] = rule.later_threshold[page]


@compiled(forceinline=True)
def signals_count(state: State, lane: int, rule: ThresholdRule, page: int) -> float:
    """Return the summed weight of the signals of a page since its last crawl, possibly inf."""
    total = state.pages[lane, page].signals
    if total == 0:
        return 0.0
    held = state.source_signals
    if held.shape[1] == 0:
        return float(rule.signal_weight[0, page] * total)
    counted = 0.0
    for source in range(held.shape[1]):
        if held[lane, source, page] > 0:
            counted += rule.signal_weight[source, page] * held[lane, source, page]
    return counted


@compiled(forceinline=True)
def due_time(state: State, lane: int, rule: ThresholdRule, target: float, page: int) -> float:
    """Return the due time of an existing page without further signals, not before now."""
    if math.isinf(target):
        return math.inf
    now = state.lanes[lane].time
    counted = signals_count(state, lane, rule, page)
    if not rule.timed[page]:
        return float(now) if counted >= target else math.inf
    return float(max(state.last_crawl[lane, page] + (target - counted), now))


@compiled()
def start_cycles(
    state: State,
    lane: int,
    rule: ThresholdRule,
    target: FloatArray,
    heap: IndexedHeap,
    rng: UintArray,
) -> None:
    """Set the due times of all pages by a new rule; write their thresholds to ``target`` (m,)."""
    for page in range(target.shape[0]):
        draw_target(rule, target, page, rng)
        due = math.inf
        if state.pages[lane, page].alive:
            due = due_time(state, lane, rule, target[page], page)
        set_due(heap, page, due)


@compiled(forceinline=True)
def play_event(
    state: State,
    lane: int,
    rule: ThresholdRule,
    target: FloatArray,
    heap: IndexedHeap,
    rng: UintArray,
) -> None:
    """Apply the next event of the tape, and update the due time of its page."""
    number, kind = apply_next_event(state, lane)
    if kind == BIRTH or kind == DEATH:  # noqa: SIM109  # two branches, no tuple
        due = math.inf
        if state.pages[lane, number].alive:
            draw_target(rule, target, number, rng)
            due = due_time(state, lane, rule, target[number], number)
        set_due(heap, number, due)
    elif SIGNAL <= kind < BIRTH:
        set_due(heap, number, due_time(state, lane, rule, target[number], number))


@compiled()
def play_thresholds(
    state: State,
    lane: int,
    rule: ThresholdRule,
    target: FloatArray,
    heap: IndexedHeap,
    rng: UintArray,
    left: int,
) -> int:
    """Play a lane up to its target, and crawl every page when it is due.

    Returns DONE, UNFINISHED if a log is full or the day is over, or PAUSED after ``left`` events
    and crawls.
    """
    record = state.lanes[lane]
    while True:
        if left == 0:
            return PAUSED
        if is_log_full(state, lane) or record.slot_crawls == state.crawl_log.shape[1]:
            return UNFINISHED
        due, event_time = first_due(heap), next_event_time(state, lane)
        if event_time == DAY_IS_OVER:
            return UNFINISHED
        if due >= record.target and event_time == SLOT_IS_OVER:
            end_slot(record)
            return DONE
        left -= 1
        if due <= event_time:
            pass_time(record, due)
            number = heap.entries[0]
            crawl_page(state, lane, number)
            draw_target(rule, target, number, rng)
            set_due(heap, number, due_time(state, lane, rule, target[number], number))
        else:
            play_event(state, lane, rule, target, heap, rng)


@compiled(forceinline=True)
def borrowed(array: Any, dtype: Any) -> Any:
    """Return a view of an array of one or two axes without a reference count, to save time."""
    return carray(pointer_to(array.ctypes.data), array.shape, dtype)


@compiled(forceinline=True)
def borrowed_rule(rule: ThresholdRule) -> ThresholdRule:
    """Return a rule of borrowed arrays."""
    return ThresholdRule(
        rule.start,
        borrowed(rule.threshold, np.float64),
        borrowed(rule.later_threshold, np.float64),
        borrowed(rule.later_share, np.float64),
        borrowed(rule.signal_weight, np.float64),
        borrowed(rule.timed, np.bool_),
    )


@compiled(forceinline=True)
def borrowed_heap(heap: IndexedHeap) -> IndexedHeap:
    """Return a heap of borrowed arrays."""
    return IndexedHeap(
        borrowed(heap.due, np.float64),
        borrowed(heap.entries, np.int64),
        borrowed(heap.place, np.int64),
        borrowed(heap.size, np.int64),
    )


@compiled()
def begin_rule(
    table: IntArray, rule: ThresholdRule, target: FloatArray, heap: IndexedHeap, rng: UintArray
) -> None:
    """Set the rule of lane 0 from now on."""
    state = state_at(table)
    state.lanes[0].busy = False
    start_cycles(state, 0, rule, target, heap, rng)


@compiled()
def roll_thresholds(
    table: IntArray,
    rule: ThresholdRule,
    target: FloatArray,
    heap: IndexedHeap,
    rng: UintArray,
    until: float,
) -> int:
    """Play lane 0 up to ``until`` as one slot, which ends earlier if a log is full.

    Returns DONE or UNFINISHED, with the crawls in the lane's log, or PAUSED in mid-slot.
    """
    state = state_at(table)
    record, held = state.lanes[0], borrowed(target, np.float64)
    if not record.busy:
        open_slot(record, until)
    status = play_thresholds(state, 0, borrowed_rule(rule), held, borrowed_heap(heap), rng, AT_ONCE)
    if status != PAUSED:
        close_slots(state)
        record.busy = False
    return status
