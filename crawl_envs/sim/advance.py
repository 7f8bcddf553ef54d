"""The simulation: start episodes, crawl pages, play the tapes up to the next decisions.

Functions of a State run over all its lanes and unpack its arrays once, because passing an array
through a call costs more than an event. Functions of a record update one page or one lane.
"""

from __future__ import annotations

import math
from typing import Any

from crawl_envs.sim.clock import slot_time
from crawl_envs.sim.penalties import add_penalty, clear_penalty
from crawl_envs.sim.state import (
    CRAWLS,
    DENIED,
    FRESHNESS,
    HITS,
    NUM_OUTCOMES,
    PENALTY,
    REQUESTS,
    State,
)
from crawl_envs.sim.tape import (
    BIRTH,
    CHANGE,
    KIND_BITS,
    KIND_MASK,
    REQUEST,
    SIGNAL,
    draw_block,
    rewind,
)
from crawl_envs.types import IntArray
from crawl_envs.types.compiling import compiled

NOTHING = -1
"""The kind of an event without effect: of a page that does not exist."""


@compiled(forceinline=True)
def next_event_time(state: State, lane: int) -> float:
    """Return the time of the next event of the tape, inf if there is none; draw it if needed."""
    record = state.lanes[lane]
    if record.cursor == record.length:
        if record.recorded:
            return math.inf
        draw_block(state, lane)
    return float(state.tape[min(lane, state.tape.shape[0] - 1), record.cursor].time)


@compiled(forceinline=True)
def log_signal(state: State, lane: int, number: int, source: int) -> None:
    """Log a signal that arrives now, and count it by source if there are several."""
    record = state.lanes[lane]
    entry = state.signal_log[lane, record.logged]
    entry.page, entry.time, entry.source = number, record.time, source
    record.logged += 1
    record.counted = record.logged
    if state.source_signals.shape[1] > 0:
        state.source_signals[lane, source, number] += 1


@compiled(forceinline=True)
def crawl_now(state: State, lane: int, number: int) -> None:
    """Crawl a page now and log the crawl; the log must not be full."""
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
def apply_next_event(state: State, lane: int) -> tuple[int, int]:
    """Apply the next event of the tape; the log of signals must not be full.

    Returns its code, and its kind, or NOTHING for an event without effect.
    """
    record = state.lanes[lane]
    event = state.tape[min(lane, state.tape.shape[0] - 1), record.cursor]
    pass_time(record, event.time)
    code = event.code
    number, kind = code >> KIND_BITS, code & KIND_MASK
    page = state.pages[lane, number]
    record.cursor += 1
    if kind >= BIRTH:
        if not set_alive(record, page, kind == BIRTH):
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


DONE, UNFINISHED, PAUSED = -1, -2, -3
"""Status of a call of compiled code: finished; not finished, because a log is full; or paused
after AT_ONCE operations."""

AT_ONCE = 1_000_000
"""Number of events, crawls and scores of pages after which compiled code returns to Python, for
interrupts; each takes 5 to 300 ns. The caller calls again; results do not depend on it."""


@compiled(forceinline=True)
def open_slot(record: Any, target: float) -> None:
    """Reset the totals and the log for a slot that ends at ``target``."""
    record.slot_fresh = 0.0
    record.slot_alive = 0.0
    record.slot_penalty = 0.0
    record.slot_requests = 0
    record.slot_hits = 0
    record.slot_crawls = 0
    record.slot_denied = 0
    record.logged = 0
    record.counted = 0
    record.reshaped = False
    record.target = target
    record.busy = True
    record.moved = True


@compiled(forceinline=True)
def clear_page(page: Any, changed: int) -> None:
    """Reset the counts of a page; ``changed`` is the outcome of its last crawl."""
    page.changes = 0
    page.signals = 0
    page.changed = changed
    page.probed = -1


@compiled()
def restart(state: State, lane: int) -> None:
    """Reset a lane to time 0 of its episode, all pages fresh, with the first decision as target."""
    record, pages, last_crawl = state.lanes[lane], state.pages, state.last_crawl
    rewind(state, lane)
    record.time = 0.0
    record.fresh_weight = 0.0
    for number in range(pages.shape[1]):
        page = pages[lane, number]
        clear_page(page, -1)
        state.source_signals[lane, :, number] = 0
        last_crawl[lane, number] = 0.0
        page.alive = state.alive_at_start[number]
        if page.alive:
            record.fresh_weight += page.importance
    record.alive_weight = record.fresh_weight
    record.penalty_weight = 0.0
    state.penalty[lane] = 0.0
    record.fresh_time = 0.0
    record.alive_time = 0.0
    record.penalty_time = 0.0
    record.requests = 0
    record.hits = 0
    record.crawls = 0
    record.probes = 0
    record.denied = 0
    record.wasted = 0
    record.changes = 0
    record.changes_found = 0
    record.signals = 0
    record.slot = record.first_slot
    open_slot(record, slot_time(state.clock[lane], record.slot))
    record.reshaped = True


@compiled(forceinline=True)
def crawl_page(record: Any, page: Any, entry: Any, number: int, elapsed: float) -> None:
    """Crawl a page now and log it; the crawl of a page that does not exist is wasted."""
    changed = page.changes > 0
    entry.page, entry.time, entry.elapsed = number, record.time, elapsed
    entry.signals, entry.changed, entry.probe = page.signals, changed, False
    record.slot_crawls += 1
    record.crawls += 1
    if page.alive:
        record.changes_found += changed
        if changed:
            record.fresh_weight += page.importance
        clear_page(page, changed)
    else:
        record.wasted += 1


@compiled()
def probe_page(record: Any, page: Any, entry: Any, number: int, elapsed: float) -> None:
    """Probe a page now and log the probe: a crawl without a refresh."""
    changed = page.changes > 0
    entry.page, entry.time, entry.elapsed = number, record.time, elapsed
    entry.signals, entry.changed, entry.probe = page.signals, changed, True
    record.slot_crawls += 1
    record.crawls += 1
    record.probes += 1
    record.wasted += not page.alive
    if page.alive:
        page.probed = changed


# Counts by source, besides the totals. These functions are not called for a single source, since
# even empty loops over sources take time.


@compiled()
def log_sources(state: State, crawls: IntArray, counts: IntArray) -> None:
    """Log and reset the signals, by source, of the pages that :func:`crawl` crawls now."""
    held, log = state.source_signals, state.crawl_signals
    for lane in range(counts.shape[0]):
        if not state.lanes[lane].idle:
            for position in range(counts[lane]):
                number, probe = crawls[lane, position], False
                if number >= held.shape[2]:
                    number, probe = number - held.shape[2], True
                for source in range(held.shape[1]):
                    log[lane, source, position] = held[lane, source, number]
                    held[lane, source, number] *= probe


@compiled()
def count_sources(state: State, lane: int) -> None:
    """Count by source the signals logged since the last call in this slot."""
    record, held = state.lanes[lane], state.source_signals
    for position in range(record.counted, record.logged):
        entry = state.signal_log[lane, position]
        held[lane, entry.source, entry.page] += 1
    record.counted = record.logged


@compiled(forceinline=True)
def crawl(state: State, crawls: IntArray, counts: IntArray) -> None:
    """Crawl the first ``counts[lane]`` of ``crawls[lane]``, and set the next decision as target.

    Page number plus m stands for a probe of the page. Idle lanes are unchanged.
    """
    lanes, clock, pages, last_crawl = state.lanes, state.clock, state.pages, state.last_crawl
    log, penal, num_pages = state.crawl_log, state.penalty.shape[1] > 0, state.pages.shape[1]
    if state.source_signals.shape[1] > 0:
        log_sources(state, crawls, counts)
    for lane in range(lanes.shape[0]):
        record = lanes[lane]
        if record.idle:
            continue
        record.slot += record.batch
        open_slot(record, slot_time(clock[lane], record.slot))
        for position in range(counts[lane]):
            number = crawls[lane, position]
            entry = log[lane, position]
            if number >= num_pages:
                page = pages[lane, number - num_pages]
                elapsed = (record.time - last_crawl[lane, number - num_pages]) * page.alive
                probe_page(record, page, entry, number - num_pages, elapsed)
                continue
            page = pages[lane, number]
            elapsed = (record.time - last_crawl[lane, number]) * page.alive
            crawl_page(record, page, entry, number, elapsed)
            if penal:
                clear_penalty(state, lane, number)
            if page.alive:
                last_crawl[lane, number] = record.time


@compiled()
def set_alive(record: Any, page: Any, born: bool) -> bool:
    """Add a page, known and fresh, or remove it; return False if nothing changes."""
    if page.alive == born:
        return False
    sign = 1.0 if born else -1.0
    record.alive_weight += sign * page.importance
    if born or page.changes == 0:
        record.fresh_weight += sign * page.importance
    page.alive = born
    clear_page(page, -1)
    record.reshaped = True
    return True


@compiled(forceinline=True)
def apply_event(record: Any, page: Any, kind: int) -> None:
    """Apply a change, signal or request to an existing page, by its kind.

    Without branches, because the next kind cannot be predicted.
    """
    fresh = page.changes == 0
    change = kind & CHANGE
    request = kind == REQUEST
    record.slot_requests += request
    record.slot_hits += request & fresh
    record.changes += change
    record.fresh_weight -= page.importance * (change & fresh)
    page.changes += change
    page.signals += kind >= SIGNAL


@compiled(forceinline=True)
def pass_time(record: Any, until: float) -> None:
    """Integrate freshness and penalty up to ``until``, and set the time."""
    passed = until - record.time
    record.slot_fresh += passed * record.fresh_weight
    record.slot_alive += passed * record.alive_weight
    record.slot_penalty += passed * record.penalty_weight
    record.time = until


@compiled(forceinline=True)
def advance(state: State, left: int) -> tuple[bool, int]:
    """Play the events of each busy lane up to its target, at most ``left`` events in all.

    Returns whether all lanes have reached their target, and the number of events left. A lane that
    is still busy has a full log of signals, or no event is left: call again, with a larger log if
    it is full.
    """
    lanes, tape, pages, last_crawl = state.lanes, state.tape, state.pages, state.last_crawl
    log, apart = state.signal_log, state.source_signals.shape[1] > 0
    penal = state.penalty.shape[1] > 0
    complete = True
    for lane in range(lanes.shape[0]):
        record = lanes[lane]
        row = min(lane, tape.shape[0] - 1)
        stopped = False
        while record.busy and (record.cursor < record.length or not record.recorded):
            if record.cursor == record.length:
                draw_block(state, lane)
            event = tape[row, record.cursor]
            if event.time >= record.target:
                break
            stopped = record.logged == log.shape[1] or left == 0
            if stopped:
                break
            left -= 1
            pass_time(record, event.time)
            number, kind = event.code >> KIND_BITS, event.code & KIND_MASK
            page = pages[lane, number]
            if kind >= BIRTH:
                if set_alive(record, page, kind == BIRTH):
                    last_crawl[lane, number] = event.time
                    if penal:
                        clear_penalty(state, lane, number)
                    if apart:
                        count_sources(state, lane)
                        state.source_signals[lane, :, number] = 0
            elif page.alive:
                apply_event(record, page, kind)
                if penal and kind & CHANGE:
                    add_penalty(state, lane, number)
                entry = log[lane, record.logged]
                entry.page, entry.time, entry.source = number, event.time, (kind >> 1) - 1
                record.logged += kind >= SIGNAL
            record.cursor += 1
        if apart:
            count_sources(state, lane)
        if stopped:
            complete = False
        elif record.busy:
            pass_time(record, record.target)
            record.busy = False
    return complete, left


@compiled(forceinline=True)
def close_slots(state: State) -> None:
    """Add the slots of the lanes that moved to their ledgers, and write the outcomes.

    The outcomes of the other lanes are 0.
    """
    lanes, outcomes, penal = state.lanes, state.outcomes, state.penalty.shape[1] > 0
    for lane in range(lanes.shape[0]):
        record = lanes[lane]
        if not record.moved:
            for row in range(NUM_OUTCOMES):
                outcomes[row, lane] = 0.0
        else:
            record.fresh_time += record.slot_fresh
            record.alive_time += record.slot_alive
            record.denied += record.slot_denied
            record.requests += record.slot_requests
            record.hits += record.slot_hits
            record.signals += record.logged
            alive = record.slot_alive
            share = record.slot_fresh / alive if alive > 0.0 else 0.0
            outcomes[FRESHNESS, lane] = min(max(share, 0.0), 1.0)  # sums of weights are rounded
            outcomes[HITS, lane] = record.slot_hits
            outcomes[REQUESTS, lane] = record.slot_requests
            outcomes[CRAWLS, lane] = record.slot_crawls
            outcomes[DENIED, lane] = record.slot_denied
            if penal:
                record.penalty_time += record.slot_penalty
                cost = record.slot_penalty / alive if alive > 0.0 else 0.0
                outcomes[PENALTY, lane] = max(cost, 0.0)
