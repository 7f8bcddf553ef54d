"""The one physics: start an episode, crawl a page, play the tape up to the next decision."""

from __future__ import annotations

from crawl_envs.kernels import compiled
from crawl_envs.sim.events import BIRTH, CHANGE, CODE_STRIDE, REQUEST, SIGNAL
from crawl_envs.sim.state import State
from crawl_envs.sim.tape import draw_block, rewind
from crawl_envs.types import FloatArray

FRESHNESS, HITS, REQUESTS, CRAWLS = range(4)
NUM_OUTCOMES = 4
"""Rows of the outcomes of a slot, (NUM_OUTCOMES, N) float64."""


@compiled()
def restart(state: State, lane: int) -> None:
    """Stand at time 0 of the lane's episode: every page fresh, nothing counted."""
    record = state.lanes[lane]
    rewind(state, lane)
    record.time = 0.0
    record.slot = 0
    record.fresh_weight = 0.0
    for number in range(state.pages.shape[1]):
        page = state.pages[lane, number]
        state.last_crawl[lane, number] = 0.0
        page.changes = 0
        page.signals = 0
        page.changed = -1
        page.alive = state.alive_at_start[number]
        if page.alive:
            record.fresh_weight += page.importance
    record.alive_weight = record.fresh_weight
    record.fresh_time = 0.0
    record.alive_time = 0.0
    record.requests = 0
    record.hits = 0
    record.crawls = 0
    record.wasted = 0
    record.changes = 0
    record.changes_found = 0
    record.signals = 0


@compiled()
def open_slot(state: State, lane: int) -> None:
    """Start the account and the log of a new slot."""
    record = state.lanes[lane]
    record.slot_fresh = 0.0
    record.slot_alive = 0.0
    record.slot_requests = 0
    record.slot_hits = 0
    record.slot_crawls = 0
    record.logged = 0
    record.reshaped = False


@compiled()
def crawl(state: State, lane: int, number: int) -> None:
    """Crawl a page now; the crawl of a page that does not exist is wasted."""
    record, page = state.lanes[lane], state.pages[lane, number]
    entry = state.crawl_log[lane, record.slot_crawls]
    found = page.changes > 0
    entry.page = number
    entry.elapsed = record.time - state.last_crawl[lane, number]
    entry.signals = page.signals
    entry.changed = found
    record.slot_crawls += 1
    record.crawls += 1
    if not page.alive:
        record.wasted += 1
        return
    if found:
        record.changes_found += 1
        record.fresh_weight += page.importance
    page.changes = 0
    page.signals = 0
    page.changed = found
    state.last_crawl[lane, number] = record.time


@compiled()
def be_born_or_die(state: State, lane: int, number: int, kind: int) -> None:
    """Let a page appear, known and fresh, or disappear."""
    record, page = state.lanes[lane], state.pages[lane, number]
    born = kind == BIRTH
    if page.alive == born:
        return
    sign = 1.0 if born else -1.0
    record.alive_weight += sign * page.importance
    if born or page.changes == 0:
        record.fresh_weight += sign * page.importance
    page.alive = born
    page.changes = 0
    page.signals = 0
    page.changed = -1
    state.last_crawl[lane, number] = record.time
    record.reshaped = True


@compiled()
def apply_event(state: State, lane: int, time: float, code: int) -> None:
    """Let an event happen to an existing page: any of a change, a signal and a request."""
    record, page = state.lanes[lane], state.pages[lane, code // CODE_STRIDE]
    kind = code % CODE_STRIDE
    if kind >= BIRTH:
        be_born_or_die(state, lane, code // CODE_STRIDE, kind)
    elif page.alive:
        if kind == REQUEST:
            record.slot_requests += 1
            record.slot_hits += page.changes == 0
        if kind & CHANGE:
            record.changes += 1
            if page.changes == 0:
                record.fresh_weight -= page.importance
            page.changes += 1
        if kind & SIGNAL:
            page.signals += 1
            entry = state.signal_log[lane, record.logged]
            entry.page, entry.time = code // CODE_STRIDE, time
            record.logged += 1


@compiled()
def advance(state: State, lane: int, until: float) -> bool:
    """Play all events before ``until``, then stand there.

    Returns False, in mid-slot, when the log of signals is full: call again with a larger one.
    """
    record = state.lanes[lane]
    tape = state.tape[0 if record.recorded else lane]
    capacity = state.signal_log.shape[1]
    while True:
        if record.cursor == record.length:
            if record.recorded:
                break
            draw_block(state, lane)
        event = tape[record.cursor]
        if event.time >= until:
            break
        if record.logged == capacity:
            return False
        passed = event.time - record.time
        record.slot_fresh += passed * record.fresh_weight
        record.slot_alive += passed * record.alive_weight
        record.time = event.time
        apply_event(state, lane, event.time, event.code)
        record.cursor += 1
    passed = until - record.time
    record.slot_fresh += passed * record.fresh_weight
    record.slot_alive += passed * record.alive_weight
    record.time = until
    return True


@compiled()
def close_slot(state: State, lane: int, outcomes: FloatArray) -> None:
    """Enter the slot into the ledger, and what came of it into column ``lane``."""
    record = state.lanes[lane]
    alive = record.slot_alive
    outcomes[FRESHNESS, lane] = min(record.slot_fresh / alive, 1.0) if alive > 0.0 else 0.0
    outcomes[HITS, lane] = record.slot_hits
    outcomes[REQUESTS, lane] = record.slot_requests
    outcomes[CRAWLS, lane] = record.slot_crawls
    record.fresh_time += record.slot_fresh
    record.alive_time += record.slot_alive
    record.requests += record.slot_requests
    record.hits += record.slot_hits
    record.signals += record.logged
