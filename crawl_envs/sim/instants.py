"""Crawls at instants of their own, between the events of a tape that happen one at a time.

What is played in slots goes from decision to decision in one loop; here whoever plays may crawl
after every single event.
"""

from __future__ import annotations

import math
from typing import Any

from crawl_envs.kernels import compiled
from crawl_envs.sim.advance import apply_event, be_born_or_die, crawl_page, pass_time
from crawl_envs.sim.events import BIRTH, CHANGE, KIND_BITS, KIND_MASK, SIGNAL
from crawl_envs.sim.penalties import add_penalty, clear_penalty
from crawl_envs.sim.state import State
from crawl_envs.sim.tape import draw_block

NOTHING = -1
"""The kind of an event that touched nothing: of a page that does not exist."""


@compiled(forceinline=True)
def next_event_time(state: State, lane: int) -> float:
    """Return the time of the next event of the tape, inf if there is none; draw it if need be."""
    record = state.lanes[lane]
    if record.cursor == record.length:
        if record.recorded:
            return math.inf
        draw_block(state, lane)
    return float(state.tape[min(lane, state.tape.shape[0] - 1), record.cursor].time)


@compiled(forceinline=True)
def log_signal(state: State, lane: int, number: int, source: int) -> None:
    """Log a signal that arrives now, and count it by its source where there are several."""
    record = state.lanes[lane]
    entry = state.signal_log[lane, record.logged]
    entry.page, entry.time, entry.source = number, record.time, source
    record.logged += 1
    record.counted = record.logged
    if state.source_signals.shape[1] > 0:
        state.source_signals[lane, source, number] += 1


@compiled(forceinline=True)
def crawl_now(state: State, lane: int, number: int) -> None:
    """Crawl a page now and log it, for which there must be room."""
    record, page = state.lanes[lane], state.pages[lane, number]
    place = record.slot_crawls
    entry: Any = state.crawl_log[lane, place]
    elapsed = (record.time - state.last_crawl[lane, number]) * page.alive
    crawl_page(record, page, entry, number, elapsed)
    if state.penalty.shape[1] > 0:
        clear_penalty(state, lane, number)
    for source in range(state.source_signals.shape[1]):
        state.crawl_signals[lane, source, place] = state.source_signals[lane, source, number]
        state.source_signals[lane, source, number] = 0
    if page.alive:
        state.last_crawl[lane, number] = record.time


@compiled(forceinline=True)
def let_happen(state: State, lane: int) -> tuple[int, int]:
    """Let the next event of the tape happen; there must be room to log a signal.

    Returns its code, and its kind, or NOTHING where it touched nothing.
    """
    record = state.lanes[lane]
    event = state.tape[min(lane, state.tape.shape[0] - 1), record.cursor]
    pass_time(record, event.time)
    code = event.code
    number, kind = code >> KIND_BITS, code & KIND_MASK
    page = state.pages[lane, number]
    record.cursor += 1
    if kind >= BIRTH:
        if not be_born_or_die(record, page, kind == BIRTH):
            return code, NOTHING
        state.last_crawl[lane, number] = record.time
        state.source_signals[lane, :, number] = 0
        if state.penalty.shape[1] > 0:
            clear_penalty(state, lane, number)
        return code, kind
    if not page.alive:
        return code, NOTHING
    apply_event(record, page, kind)
    if state.penalty.shape[1] > 0 and kind & CHANGE:
        add_penalty(state, lane, number)
    if kind >= SIGNAL:
        log_signal(state, lane, number, (kind >> 1) - 1)
    return code, kind
