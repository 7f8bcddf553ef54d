"""Crawls at random instants: Poisson processes of given rates, and random crawls at signals.

The crawls of all pages are one Poisson process. Its next crawl is due when the integral of the
total rate reaches a unit exponential number. The remainder is kept when rates change, so that
setting the same rates again changes nothing, and the lengths of epochs do not matter. Random
numbers come from a stream of their own, separate from the tape. With a token bucket, a crawl needs
a whole token, and is denied otherwise.
"""

from __future__ import annotations

import math

from crawl_envs.compiled.compiling import compiled, inlined
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
from crawl_envs.sim.streams import draw_uniform, loaded, store
from crawl_envs.sim.tape import BIRTH, KIND_BITS, SIGNAL, draw_code, fill_alias
from crawl_envs.types import FloatArray, IntArray

TOKEN_ROUNDING = 1e-9
"""Rounding tolerance of a whole token."""

EVENT, CRAWL = 0, 1
"""What comes next in a slot, besides the status of a call that ends."""


@inlined(forceinline=True)
def next_in_slot(state: State, lane: int, due: float, left: int) -> int:
    """Return what comes next in a busy lane whose next crawl is due at ``due``.

    EVENT, the next one of the tape; CRAWL, after passing the time; DONE at the target; UNFINISHED
    if a log is full or the day is over; or PAUSED if ``left``, the events and crawls left, is 0.
    """
    record, signals, crawls = state.lanes[lane], state.signal_log.shape[1], state.crawl_log.shape[1]
    if left == 0:
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
    """Close the slot of lane 0 unless it is paused; return the status."""
    if status != PAUSED:
        close_slots(state)
        state.lanes[0].busy = False
    return status


@inlined()
def start_rates(state: State, lane: int) -> None:
    """Start the random crawls of a lane's episode: rate 0, a full bucket."""
    record = state.lanes[lane]
    record.crawl_rate, record.crawl_due = 0.0, math.inf
    record.hazard = -math.log(draw_uniform(state.rng[lane]))
    record.tokens, record.token_time = record.bucket, 0.0


@inlined()
def set_rates(state: State, lane: int, rates: FloatArray, chances: FloatArray) -> None:
    """Set the crawl rates of a lane, and its probabilities of crawls at signals, from now on."""
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
    """Crawl a page now, unless the bucket has less than a token."""
    record = state.lanes[lane]
    if not math.isinf(record.bucket):
        filled = record.tokens + (record.time - record.token_time) * record.token_rate
        record.tokens, record.token_time = min(filled, record.bucket), record.time
        if record.tokens < 1.0 - TOKEN_ROUNDING:
            record.slot_denied += 1
            return
        record.tokens -= 1.0
    crawl_page(state, lane, number)


@inlined()
def play_rates(state: State, lane: int, left: int) -> tuple[int, int]:
    """Play a busy lane up to its target, with crawls at random instants.

    Returns DONE, UNFINISHED if a log is full or the day is over, or PAUSED after ``left`` events
    and crawls; and the number of them left.
    """
    record, rng = state.lanes[lane], state.rng[lane]
    while True:
        status = next_in_slot(state, lane, record.crawl_due, left)
        if status < EVENT:
            return status, left
        left -= 1
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
    """Play lane 0 up to ``until`` as one slot, which ends earlier if a log is full.

    Where a rule ``begins`` its rates and chances, (m,), are set. Returns DONE or UNFINISHED, with
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
