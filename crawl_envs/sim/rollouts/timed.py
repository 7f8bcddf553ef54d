"""Whole episodes of one lane in compiled code, with crawls at their own times.

*Random instants*: Poisson processes of given rates, and random crawls at signals. The crawls of all
pages are one Poisson process. Its next crawl is due when the integral of the total rate reaches a
unit exponential number. The remainder is kept when rates change, so that setting the same rates
again changes nothing, and the lengths of epochs do not matter. Random numbers come from a stream of
their own, separate from the tape. With a token bucket, a crawl needs a whole token, and is denied
otherwise.

*Thresholds*: every page is crawled as soon as its state reaches its threshold. The state of a page
is its elapsed time plus the weights of the signals since its last crawl, for instance its effective
elapsed time. Signals only increase it, so between events the due time of a page is known. An
indexed heap has these times, and is merged with the tape. A crawl at the time of an event precedes
it. A birth starts a cycle; dead pages are never due.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.compiled.heap import IndexedHeap, first_due, set_due
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
    next_event_time,
    open_slot,
    pass_time,
)
from crawl_envs.sim.state import State, state_at
from crawl_envs.sim.streams import UintArray, draw_uniform, loaded, store
from crawl_envs.sim.tape import BIRTH, DEATH, KIND_BITS, SIGNAL, draw_code, fill_alias
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import ThresholdRule

TOKEN_ROUNDING = 1e-9
"""How much less than 1 the content of a bucket may be and still count as a whole token."""

EVENT, CRAWL = 0, 1
"""Results of :func:`next_in_slot` if the slot goes on: an event or a crawl comes next."""


@inlined(forceinline=True)
def next_in_slot(state: State, lane: int, due: float, remaining: int) -> int:
    """Return what comes next in a busy lane whose next crawl is due at time ``due``.

    EVENT is the tape's next event, before the crawl. CRAWL is the crawl, at which the time then is.
    DONE is the slot's end, UNFINISHED a full log or a finished day, PAUSED no operation
    ``remaining``.
    """
    record, signals, crawls = state.lanes[lane], state.signal_log.shape[1], state.crawl_log.shape[1]
    if remaining == 0:
        return PAUSED
    if record.logged == signals or record.slot_crawls == crawls:
        return UNFINISHED
    event_time = next_event_time(state, lane)
    if event_time == DAY_IS_OVER:
        return UNFINISHED
    if due >= record.target and event_time == SLOT_IS_OVER:
        end_slot(record)
        return DONE
    if due > event_time:
        return EVENT
    pass_time(record, due)
    return CRAWL


@inlined(forceinline=True)
def end_spell(state: State, status: int) -> int:
    """Return the status of a call; close the slot of lane 0 unless the call is only paused."""
    if status != PAUSED:
        close_slots(state)
        state.lanes[0].busy = False
    return status


# Random instants


@inlined("crawl_alias")
def start_rates(state: State, lane: int) -> None:
    """Start the random crawls of a lane's episode: a crawl rate of 0 and a full token bucket."""
    record = state.lanes[lane]
    record.crawl_rate, record.crawl_due = 0.0, math.inf
    record.hazard = -math.log(draw_uniform(state.rng[lane]))
    record.tokens, record.token_time = record.bucket, 0.0


@inlined()
def set_rates(state: State, lane: int, rates: FloatArray, chances: FloatArray) -> None:
    """Set, from now on, a lane's crawl rates and its chances of a crawl at each signal, by page."""
    record, total = state.lanes[lane], rates.sum()
    fill_alias(rates, state.crawl_alias[lane])
    for page in range(chances.shape[0]):
        state.chances[lane, page] = chances[page]
    if total == record.crawl_rate:
        return
    if record.crawl_rate > 0.0:
        record.hazard = (record.crawl_due - record.time) * record.crawl_rate
    record.crawl_rate = total
    record.crawl_due = record.time + record.hazard / total if total > 0.0 else math.inf


@inlined(forceinline=True)
def crawl_if_allowed(state: State, lane: int, number: int) -> None:
    """Crawl a page now if the lane's token bucket holds its cost, else count a denied crawl."""
    record, cost = state.lanes[lane], 1.0
    if state.cost.shape[1] > 0:
        cost = state.cost[lane, number]
    if not math.isinf(record.bucket):
        filled = record.tokens + (record.time - record.token_time) * record.token_rate
        record.tokens, record.token_time = min(filled, record.bucket), record.time
        if record.tokens < cost - TOKEN_ROUNDING:
            record.slot_denied += 1
            return
        record.tokens -= cost
    crawl_page(state, lane, number)


@inlined()
def play_rates(state: State, lane: int, remaining: int) -> tuple[int, int]:
    """Play a busy lane up to its target with random crawls; return a status and operations left.

    The status is DONE, UNFINISHED if a log is full or the day is over, or PAUSED after
    ``remaining`` events and crawls.
    """
    record, rng = state.lanes[lane], state.rng[lane]
    while True:
        status = next_in_slot(state, lane, record.crawl_due, remaining)
        if status < EVENT:
            return status, remaining
        remaining -= 1
        if status == CRAWL:
            code, stream = draw_code(loaded(rng), state.crawl_alias[lane], 0)
            store(stream, rng)
            crawl_if_allowed(state, lane, code >> KIND_BITS)
            record.crawl_due = record.time - math.log(draw_uniform(rng)) / record.crawl_rate
            continue
        number, kind = apply_next_event(state, lane)
        answerable = SIGNAL <= kind < BIRTH and state.chances[lane, number] > 0.0
        if answerable and draw_uniform(rng) <= state.chances[lane, number]:
            crawl_if_allowed(state, lane, number)


@compiled()
def roll_rates(
    table: IntArray, rates: FloatArray, chances: FloatArray, until: float, begins: bool
) -> int:
    """Play lane 0 with random crawls up to time ``until``, or until a log is full, as one slot.

    If the rule ``begins``, its rates and chances, (m,), are set. Returns DONE or UNFINISHED, with
    the crawls in the lane's log, or PAUSED in mid-slot.
    """
    state = state_at(table)
    record = state.lanes[0]
    if begins:
        set_rates(state, 0, rates, chances)
    if begins or not record.busy:
        open_slot(record, until)
    status, _ = play_rates(state, 0, AT_ONCE)
    return end_spell(state, status)


# Thresholds


class Agenda(NamedTuple):
    """The times at which a rule of thresholds will crawl the pages of a lane."""

    rule: ThresholdRule
    target: FloatArray  # thresholds of the current cycles, (m,)
    heap: IndexedHeap  # the pages by due time
    rng: UintArray  # state of the generator that chooses between two thresholds


@inlined(forceinline=True)
def draw_target(agenda: Agenda, page: int) -> None:
    """Choose the threshold of a page until its next crawl, at random if its rule has two."""
    rule = agenda.rule
    agenda.target[page] = rule.threshold[page]
    share = rule.later_share[page]
    if share > 0.0 and draw_uniform(agenda.rng) <= share:
        agenda.target[page] = rule.later_threshold[page]


@inlined(forceinline=True)
def signals_count(state: State, lane: int, rule: ThresholdRule, page: int) -> float:
    """Return the total weight of a page's signals since its last crawl, which may be inf."""
    total = state.pages[lane, page].signals
    if total == 0:
        return 0.0
    counts = state.source_signals
    if counts.shape[1] == 0:
        return float(rule.signal_weight[0, page] * total)
    counted = 0.0
    for source in range(counts.shape[1]):
        if counts[lane, source, page] > 0:
            counted += rule.signal_weight[source, page] * counts[lane, source, page]
    return counted


@inlined(forceinline=True)
def set_due_time(state: State, lane: int, agenda: Agenda, page: int) -> None:
    """Set when a page reaches its threshold without more signals, now at least; inf if dead."""
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
    """Choose thresholds and set due times for all pages of a lane, when a rule begins."""
    for page in range(agenda.target.shape[0]):
        draw_target(agenda, page)
        set_due_time(state, lane, agenda, page)


@inlined()
def play_thresholds(state: State, lane: int, agenda: Agenda, remaining: int) -> int:
    """Play a lane up to its target, and crawl each page when it reaches its threshold.

    Returns DONE, UNFINISHED if a log is full or the day is over, or PAUSED after ``remaining``
    events and crawls.
    """
    heap = agenda.heap
    while True:
        status = next_in_slot(state, lane, first_due(heap), remaining)
        if status < EVENT:
            return status
        remaining -= 1
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
    """Play lane 0 by thresholds up to time ``until``, or until a log is full, as one slot.

    If the rule ``begins``, all pages get new thresholds. Returns DONE or UNFINISHED, with the
    crawls in the lane's log, or PAUSED in mid-slot.
    """
    state = state_at(table)
    if begins:
        start_cycles(state, 0, agenda)
    if begins or not state.lanes[0].busy:
        open_slot(state.lanes[0], until)
    return end_spell(state, play_thresholds(state, 0, agenda, AT_ONCE))
