"""Crawls at random instants: Poisson processes of given rates, and random crawls at signals.

The crawls of all pages are one Poisson process. Its next crawl is due when the integral of the
total rate reaches a unit exponential number. The remainder is kept when rates change, so that
setting the same rates again changes nothing, and the lengths of epochs do not matter. Random
numbers come from a stream of their own, separate from the tape. With a token bucket, a crawl needs
a whole token, and is denied otherwise.
"""

from __future__ import annotations

import math

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
from crawl_envs.sim.state import State, state_at
from crawl_envs.sim.streams import loaded, next_uniform, store
from crawl_envs.sim.tape import BIRTH, KIND_BITS, SIGNAL, draw_code, fill_alias
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled

TOKEN_ROUNDING = 1e-9
"""Rounding tolerance of a whole token."""


@compiled(forceinline=True)
def draw_uniform(state: State, lane: int) -> float:
    """Return a uniform number in (0, 1] from the lane's stream of random crawls."""
    uniform, stream = next_uniform(loaded(state.rng[lane]))
    store(stream, state.rng[lane])
    return float(uniform)


@compiled()
def start_rates(state: State, lane: int) -> None:
    """Start the random crawls of a lane's episode: rate 0, a full bucket."""
    record = state.lanes[lane]
    record.crawl_rate, record.crawl_due = 0.0, math.inf
    record.hazard = -math.log(draw_uniform(state, lane))
    record.tokens, record.token_time = record.bucket, 0.0


@compiled()
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


@compiled(forceinline=True)
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


@compiled()
def play_rates(state: State, lane: int, left: int) -> tuple[int, int]:
    """Play a busy lane up to its target, with crawls at random instants.

    Returns DONE, UNFINISHED if a log is full or the day is over, or PAUSED after ``left`` events
    and crawls; and the number of them left.
    """
    record = state.lanes[lane]
    while True:
        if left == 0:
            return PAUSED, left
        if is_log_full(state, lane) or record.slot_crawls == state.crawl_log.shape[1]:
            return UNFINISHED, left
        due, event_time = record.crawl_due, next_event_time(state, lane)
        if event_time == DAY_IS_OVER:
            return UNFINISHED, left
        if due >= record.target and event_time == SLOT_IS_OVER:
            end_slot(record)
            return DONE, left
        left -= 1
        if due <= event_time:
            pass_time(record, due)
            stream = loaded(state.rng[lane])
            code, stream = draw_code(stream, state.crawl_alias[lane], 0)
            store(stream, state.rng[lane])
            crawl_if_allowed(state, lane, code >> KIND_BITS)
            record.crawl_due = due - math.log(draw_uniform(state, lane)) / record.crawl_rate
            continue
        number, kind = apply_next_event(state, lane)
        answerable = SIGNAL <= kind < BIRTH and state.chances[lane, number] > 0.0
        if answerable and draw_uniform(state, lane) <= state.chances[lane, number]:
            crawl_if_allowed(state, lane, number)


@compiled()
def roll_rates(table: IntArray, until: float) -> int:
    """Play lane 0 up to ``until`` as one slot, which ends earlier if a log is full.

    Returns DONE or UNFINISHED, with the crawls in the lane's log, or PAUSED in mid-slot.
    """
    state = state_at(table)
    record = state.lanes[0]
    if not record.busy:
        open_slot(record, until)
    status, _ = play_rates(state, 0, AT_ONCE)
    if status != PAUSED:
        close_slots(state)
        record.busy = False
    return status


@compiled()
def begin_rates(table: IntArray, rates: FloatArray, chances: FloatArray) -> None:
    """Set the crawl rates of lane 0 from now on."""
    state = state_at(table)
    state.lanes[0].busy = False
    set_rates(state, 0, rates, chances)
