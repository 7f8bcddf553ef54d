"""Crawls by thresholds: every page is crawled as soon as its state reaches its threshold.

The state of a page is its elapsed time plus the weights of the signals since its last crawl, for
instance its effective elapsed time. Signals only increase it, so between events the due time of a
page is known. An indexed heap has these times, and is merged with the tape. A crawl at the time of
an event precedes it. A birth starts a cycle; dead pages are never due.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.compiled.heap import IndexedHeap, first_due, set_due
from crawl_envs.sim.advance import AT_ONCE, apply_next_event, crawl_page, open_slot
from crawl_envs.sim.rollouts.rates import CRAWL, EVENT, end_spell, next_in_slot
from crawl_envs.sim.state import State, state_at
from crawl_envs.sim.streams import UintArray, draw_uniform
from crawl_envs.sim.tape import BIRTH, DEATH, SIGNAL
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import ThresholdRule


class Agenda(NamedTuple):
    """The due times of the pages of a lane by a rule."""

    rule: ThresholdRule
    target: FloatArray  # thresholds of the current cycles, (m,)
    heap: IndexedHeap  # the pages by due time
    rng: UintArray  # state of the generator that chooses between two thresholds


@inlined(forceinline=True)
def draw_target(agenda: Agenda, page: int) -> None:
    """Set the threshold of a new cycle of a page, at random if it has two."""
    rule = agenda.rule
    agenda.target[page] = rule.threshold[page]
    share = rule.later_share[page]
    if share > 0.0 and draw_uniform(agenda.rng) <= share:
        agenda.target[page] = rule.later_threshold[page]


@inlined(forceinline=True)
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


@inlined(forceinline=True)
def set_due_time(state: State, lane: int, agenda: Agenda, page: int) -> None:
    """Set the due time of a page without further signals, not before now; inf if it is dead."""
    due, target, now = math.inf, agenda.target[page], state.lanes[lane].time
    if state.pages[lane, page].alive and not math.isinf(target):
        counted = signals_count(state, lane, agenda.rule, page)
        if agenda.rule.timed[page]:
            due = float(max(state.last_crawl[lane, page] + (target - counted), now))
        elif counted >= target:
            due = float(now)
    set_due(agenda.heap, page, due)


@inlined()
def start_cycles(state: State, lane: int, agenda: Agenda) -> None:
    """Set the thresholds and the due times of all pages by a new rule."""
    for page in range(agenda.target.shape[0]):
        draw_target(agenda, page)
        set_due_time(state, lane, agenda, page)


@inlined()
def play_thresholds(state: State, lane: int, agenda: Agenda, left: int) -> int:
    """Play a lane up to its target, and crawl every page when it is due.

    Returns DONE, UNFINISHED if a log is full or the day is over, or PAUSED after ``left`` events
    and crawls.
    """
    heap = agenda.heap
    while True:
        status = next_in_slot(state, lane, first_due(heap), left)
        if status < EVENT:
            return status
        left -= 1
        if status == CRAWL:
            page = heap.entries[0]
            crawl_page(state, lane, page)
            draw_target(agenda, page)
            set_due_time(state, lane, agenda, page)
            continue
        page, kind = apply_next_event(state, lane)
        if kind == BIRTH:
            draw_target(agenda, page)
        if SIGNAL <= kind <= DEATH:
            set_due_time(state, lane, agenda, page)


@compiled()
def roll_thresholds(table: IntArray, agenda: Agenda, until: float, begins: bool) -> int:
    """Play lane 0 up to ``until`` as one slot, which ends earlier if a log is full.

    Where a rule ``begins`` its cycles are started. Returns DONE or UNFINISHED, with the crawls in
    the lane's log, or PAUSED in mid-slot.
    """
    state = state_at(table)
    if begins:
        start_cycles(state, 0, agenda)
    if begins or not state.lanes[0].busy:
        open_slot(state.lanes[0], until)
    return end_spell(state, play_thresholds(state, 0, agenda, AT_ONCE))
