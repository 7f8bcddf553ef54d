"""The simulation: start episodes, crawl pages, play the tapes up to the next decisions.

An event of a tape changes its page by :func:`apply_next_event`; a crawl by :func:`crawl_page`. What
an event or a crawl means for the divergence of a copy is in :mod:`crawl_envs.sim.divergence`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawl_envs.compiled.array_tables import Records
from crawl_envs.compiled.compiling import inlined
from crawl_envs.sim.clock import SLACK, slot_time
from crawl_envs.sim.divergence import (
    change_fragments,
    change_price,
    converge,
    crawl_fragments,
    diverge,
    forget_bases,
    integrate_divergence,
    renew_copy,
    restart_fragments,
    update_fragments,
)
from crawl_envs.sim.state import (
    BY_BATCH,
    BY_WAITING,
    CRAWLS,
    DENIED,
    DIVERGENCE,
    FRESHNESS,
    HITS,
    NUM_OUTCOMES,
    REQUESTS,
    SIMILARITY,
    SPEND,
    State,
)
from crawl_envs.sim.streams import store, stream_of
from crawl_envs.sim.tape import (
    BIRTH,
    CHANGE,
    DAY,
    DEATH,
    KIND_BITS,
    KIND_MASK,
    PRICE,
    REQUEST,
    SIGNAL,
    SPELL_START,
    UPDATE,
    draw_block,
    rewind,
)
from crawl_envs.types import IntArray

DONE, UNFINISHED, PAUSED = -1, -2, -3
"""Status of a call of compiled code: finished; not finished, because a log is full or the events of
a day are played; or paused after AT_ONCE operations."""

AT_ONCE = 1_000_000
"""Number of events, crawls and scores of pages after which compiled code returns to Python, for
interrupts; each takes 5 to 300 ns. The caller calls again; results do not depend on it."""

NOTHING = -1
"""Kind that an event without effect gets, such as one of a page that does not exist."""


@inlined(forceinline=True)
def pass_time(record: Any, until: float) -> None:
    """Add a lane's weights times the time until ``until`` to its slot's totals; set the time."""
    passed = until - record.time
    record.slot_fresh += passed * record.fresh_weight
    record.slot_alive += passed * record.alive_weight
    record.time = until


# Episodes and slots


@inlined(forceinline=True)
def open_slot(record: Any, target: float) -> None:
    """Start a slot of a lane that ends at time ``target``: totals of 0, and no log entries."""
    record.slot_fresh = 0.0
    record.slot_alive = 0.0
    record.slot_divergence = 0.0
    record.slot_divergent = 0.0
    record.slot_requests = 0
    record.slot_hits = 0
    record.slot_crawls = 0
    record.slot_denied = 0
    record.slot_spend = 0.0
    record.logged = 0
    record.reshaped = False
    record.target = target
    record.busy = True
    record.moved = True


@inlined(forceinline=True)
def clear_page(page: Any, changed: int) -> None:
    """Set a page's changes and signals to 0; ``changed`` is its last crawl's outcome, or -1."""
    page.changes = 0
    page.signals = 0
    page.changed = changed


@inlined()
def weigh_pages(state: State, lane: int) -> None:
    """Sum the weights of a lane's existing pages and of its fresh ones, and store both sums."""
    record, pages = state.lanes[lane], state.pages
    record.fresh_weight, record.alive_weight, record.divergent_weight = 0.0, 0.0, 0.0
    priced = state.prices.shape[1] > 0
    for number in range(pages.shape[1]):
        page = pages[lane, number]
        if page.alive:
            record.alive_weight += page.importance
            record.fresh_weight += page.importance * (page.changes == 0)
            record.divergent_weight += 1.0 if priced else page.importance


@inlined()
def begin_episode(state: State, lane: int) -> None:
    """Begin an episode of a lane now: totals of 0, the first decision as target."""
    record = state.lanes[lane]
    record.fresh_time = 0.0
    record.alive_time = 0.0
    record.divergence_time = 0.0
    record.requests = 0
    record.hits = 0
    record.crawls = 0
    record.denied = 0
    record.spend = 0.0
    record.wasted = 0
    record.changes = 0
    record.changes_found = 0
    record.signals = 0
    record.origin = record.time
    record.slot = record.first_slot
    open_slot(record, slot_time(state.clock[lane], record.lead + record.slot))
    record.reshaped = True


@inlined()
def restart(state: State, lane: int) -> None:
    """Reset a lane to time 0 of its episode: all pages fresh, the first decision as target."""
    record, pages = state.lanes[lane], state.pages
    alive_at_start = state.alive_at_start[min(lane, state.alive_at_start.shape[0] - 1)]
    rewind(state, lane)
    store(stream_of(record.rng_root, record.episode), state.rng[lane])
    record.time = 0.0
    for number in range(pages.shape[1]):
        page = pages[lane, number]
        clear_page(page, -1)
        page.alive = alive_at_start[number]
        state.last_crawl[lane, number] = 0.0
    state.source_signals[lane] = 0
    state.divergence[lane] = 0.0
    weigh_pages(state, lane)
    record.divergence_weight = 0.0
    record.divergence_since = 0.0
    if state.copies.shape[1] > 0:
        restart_fragments(state, lane)
    begin_episode(state, lane)


@inlined(forceinline=True)
def close_slots(state: State) -> None:
    """Add the totals of the finished slots to the ledgers of their lanes, and write the outcomes.

    Only lanes that moved in this step have a finished slot. The outcomes of all other lanes become
    0.
    """
    lanes, outcomes, diverging = state.lanes, state.outcomes, state.divergence.shape[1] > 0
    for lane in range(lanes.shape[0]):
        record = lanes[lane]
        if not record.moved:
            for row in range(NUM_OUTCOMES):
                outcomes[row, lane] = 0.0
            continue
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
        outcomes[SPEND, lane] = record.slot_crawls
        if diverging:
            integrate_divergence(record, record.time)
            record.divergence_time += record.slot_divergence
            total = record.slot_divergent
            mean = max(record.slot_divergence / total, 0.0) if total > 0.0 else 0.0
            if state.increments.shape[0] == 0:
                mean = min(mean, 1.0)
            outcomes[DIVERGENCE, lane] = mean
            outcomes[SIMILARITY, lane] = 1.0 - mean if total > 0.0 else 0.0
        if state.cost.shape[1] > 0:
            weigh_outcomes(state, lane)


@inlined("cost")
def weigh_outcomes(state: State, lane: int) -> None:
    """Weigh the means over a slot by its length, in units of 1 / bandwidth, where it varies."""
    record, outcomes = state.lanes[lane], state.outcomes
    outcomes[SPEND, lane] = record.slot_spend
    if record.payment == BY_WAITING:
        cut = max(record.first_slot + record.spend - (math.floor(record.budget) + 1.0), 0.0)
        for row in (FRESHNESS, DIVERGENCE, SIMILARITY):
            outcomes[row, lane] *= record.slot_spend - cut


# Crawls


@inlined(forceinline=True)
def crawl_page(state: State, lane: int, number: int) -> None:
    """Crawl page ``number`` of a lane at its current time, and add an entry to the log of crawls.

    A crawl of a page that does not exist is counted as wasted. The log must have room for an entry.
    """
    record, page = state.lanes[lane], state.pages[lane, number]
    changed, place = page.changes > 0, record.slot_crawls
    entry: Any = state.crawl_log[lane, place]
    entry.page, entry.time = number, record.time
    entry.elapsed = (record.time - state.last_crawl[lane, number]) * page.alive
    entry.signals, entry.changed = page.signals, changed
    for source in range(state.source_signals.shape[1]):
        state.crawl_signals[lane, source, place] = state.source_signals[lane, source, number]
        state.source_signals[lane, source, number] = 0
    record.slot_crawls += 1
    record.crawls += 1
    if state.cost.shape[1] > 0:
        record.slot_spend += state.cost[lane, number]
        record.spend += state.cost[lane, number]
    if not page.alive:
        record.wasted += 1
    else:
        record.changes_found += changed
        if changed:
            record.fresh_weight += page.importance
        clear_page(page, changed)
        state.last_crawl[lane, number] = record.time
        if state.divergence.shape[1] > 0:
            renew(state, lane, number)
    if state.copies.shape[1] > 0:
        for slot in range(state.bases.shape[2]):
            state.crawl_bases[lane, place, slot] = state.bases[lane, number, slot]
    elif state.prices.shape[1] > 0:
        state.crawl_prices[lane, place] = state.prices[lane, number].true


@inlined("divergence", forceinline=True)
def renew(state: State, lane: int, number: int) -> None:
    """Replace the held copy of an existing page by the live page, if copies have a divergence."""
    converge(state, lane, number)
    if state.copies.shape[1] > 0:
        crawl_fragments(state, lane, number)
    elif state.prices.shape[1] > 0:
        state.prices[lane, number].held = state.prices[lane, number].true


@inlined(forceinline=True)
def next_slot(state: State, lane: int, number: int) -> None:
    """Open the slot that begins with a crawl of a page, and ends at the next decision.

    Where costs are paid by waiting, it ends when the bandwidth has paid all crawls and this one, or
    with the episode.
    """
    record = state.lanes[lane]
    record.slot += record.batch
    due = float(record.slot)
    if state.cost.shape[1] > 0 and record.payment == BY_WAITING:
        due = record.first_slot + (record.spend + state.cost[lane, number])
        due = min(due, math.floor(record.budget) + 1.0)
    open_slot(record, slot_time(state.clock[lane], record.lead + due))


@inlined(forceinline=True)
def crawl(state: State, crawls: IntArray, counts: IntArray) -> None:
    """Crawl the first ``counts[lane]`` pages of ``crawls[lane]``; the next decision is the target.

    Lanes that are idle do not change. In a batch with costs, pages are crawled up to the first that
    costs more than the bandwidth so far has left; the next batch gets the remainder.
    """
    for lane in range(state.lanes.shape[0]):
        record = state.lanes[lane]
        if record.idle:
            continue
        bandwidth = record.slot + SLACK
        next_slot(state, lane, crawls[lane, 0])
        for position in range(counts[lane]):
            number = crawls[lane, position]
            in_batch = state.cost.shape[1] > 0 and record.payment == BY_BATCH
            if in_batch and record.spend + state.cost[lane, number] > bandwidth:
                break
            crawl_page(state, lane, number)


# Events


@inlined()
def set_alive(state: State, lane: int, number: int, born: bool) -> bool:
    """Give birth to a page (``born``) or remove it; return False if it is in this state already.

    A page that is born is known at once, and its copy is current.
    """
    record, page = state.lanes[lane], state.pages[lane, number]
    if page.alive == born:
        return False
    sign = 1.0 if born else -1.0
    if state.divergence.shape[1] > 0:
        converge(state, lane, number)
    record.alive_weight += sign * page.importance
    record.divergent_weight += sign * page.importance
    if born or page.changes == 0:
        record.fresh_weight += sign * page.importance
    page.alive = born
    clear_page(page, -1)
    state.last_crawl[lane, number] = record.time
    state.source_signals[lane, :, number] = 0
    if state.copies.shape[1] > 0:
        renew_copy(state.copies[lane, number], record.time, np.nextafter(record.time, np.inf))
        forget_bases(state.bases[lane, number])
    record.reshaped = True
    return True


@inlined(forceinline=True)
def apply_rare_event(state: State, lane: int, number: int, kind: int) -> int:
    """Apply the event before the cursor, of kind BIRTH or higher; return its kind or NOTHING."""
    if kind <= DEATH:
        return kind if set_alive(state, lane, number, kind == BIRTH) else NOTHING
    if kind == DAY:
        return kind
    row, event = min(lane, state.detail.shape[0] - 1), state.lanes[lane].cursor - 1
    detail = state.detail[row, event]
    if kind == PRICE:
        change_price(state, lane, number, detail)
    elif kind == UPDATE:
        update_fragments(state, lane, number, detail, state.since[row, event])
    else:
        change_fragments(state, lane, number, detail, 1 if kind == SPELL_START else -1)
    return kind


@inlined(forceinline=True)
def apply_next_event(state: State, lane: int) -> tuple[int, int]:
    """Apply the next event of a lane's tape; return its page, and its kind or NOTHING.

    NOTHING stands for an event without effect. The log of signals must have room for one more
    entry.
    """
    record = state.lanes[lane]
    event = state.tape[min(lane, state.tape.shape[0] - 1), record.cursor]
    return apply_event(state, lane, record, event, state.pages[lane], state.signal_log[lane])


@inlined(forceinline=True)
def apply_event(
    state: State, lane: int, record: Any, event: Any, pages: Records, log: Records
) -> tuple[int, int]:
    """Apply one event to a lane; return its page and its kind, or NOTHING if it has no effect.

    ``record``, ``pages`` and ``log`` are the lane's record, pages and log of signals. Changes,
    signals and requests are applied without branches, because a processor cannot predict the next
    kind.
    """
    pass_time(record, event.time)
    number, kind = event.code >> KIND_BITS, event.code & KIND_MASK
    record.cursor += 1
    if kind >= BIRTH:
        return number, apply_rare_event(state, lane, number, kind)
    page = pages[number]
    if not page.alive:
        return number, NOTHING
    fresh, change, request = page.changes == 0, kind & CHANGE, kind == REQUEST
    record.slot_requests += request
    record.slot_hits += request & fresh
    record.changes += change
    record.fresh_weight -= page.importance * (change & fresh)
    page.changes += change
    page.signals += kind >= SIGNAL
    if state.divergence.shape[1] > 0 and change:
        diverge(state, lane, number)
    entry, source = log[record.logged], (kind >> 1) - 1
    entry.page, entry.time, entry.source = number, event.time, source
    record.logged += kind >= SIGNAL
    if state.source_signals.shape[1] > 0 and kind >= SIGNAL:
        state.source_signals[lane, source, number] += 1
    return number, kind


SLOT_IS_OVER, DAY_IS_OVER = math.inf, -math.inf


@inlined(forceinline=True)
def has_event(state: State, lane: int) -> bool:
    """Return whether a lane's tape has a next event; draw a new block of events if needed."""
    record = state.lanes[lane]
    if record.cursor == record.length and not (record.by_day or record.recorded):
        draw_block(state, lane)
    return bool(record.cursor < record.length)


@inlined(forceinline=True)
def is_after(event: Any, target: float) -> bool:
    """Return whether an event belongs to a slot after the one that ends at time ``target``.

    At the time of a crawl, price changes and ends of days come before it; all other events come
    after.
    """
    return bool(event.time >= target and (event.time > target or event.code & KIND_MASK < PRICE))


@inlined(forceinline=True)
def next_event_time(state: State, lane: int) -> float:
    """Return the time of the next event in the current slot of a lane.

    Return SLOT_IS_OVER if the slot has no more events, DAY_IS_OVER if the next day is not drawn
    yet.
    """
    record = state.lanes[lane]
    if not has_event(state, lane):
        return DAY_IS_OVER if record.by_day else SLOT_IS_OVER
    event = state.tape[min(lane, state.tape.shape[0] - 1), record.cursor]
    return SLOT_IS_OVER if is_after(event, record.target) else float(event.time)


@inlined(forceinline=True)
def end_slot(record: Any) -> None:
    """Move a lane's time to the end of its slot, and mark the lane as no longer busy."""
    pass_time(record, record.target)
    record.busy = False


@inlined(forceinline=True)
def play_slot(state: State, lane: int, left: int) -> int:
    """Play a lane's events up to its target, at most ``left`` of them; return how many are left."""
    record, pages, log = state.lanes[lane], state.pages[lane], state.signal_log[lane]
    events, target = state.tape[min(lane, state.tape.shape[0] - 1)], record.target
    while has_event(state, lane):
        room = min(left, log.shape[0] - record.logged)
        if room == 0:
            if is_after(events[record.cursor], target):
                end_slot(record)
            return left
        for cursor in range(record.cursor, min(record.cursor + room, record.length)):
            event = events[cursor]
            if is_after(event, target):
                end_slot(record)
                return left
            apply_event(state, lane, record, event, pages, log)
            left -= 1
    if not record.by_day:
        end_slot(record)
    return left


@inlined(forceinline=True)
def advance(state: State, left: int) -> tuple[bool, int]:
    """Play the events of each busy lane up to its target, at most ``left`` events in all lanes.

    Returns whether all lanes have reached their target, and how many events are left. If a lane has
    not, its log is full, its next day is missing, or no event is left. The caller then calls again.
    """
    complete = True
    for lane in range(state.lanes.shape[0]):
        record = state.lanes[lane]
        if record.busy:
            left = play_slot(state, lane, left)
            complete = complete and not record.busy
    return complete, left
