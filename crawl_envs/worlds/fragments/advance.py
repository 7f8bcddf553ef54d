"""Fragments of live pages and held copies, with exact divergence, updated event by event.

No sets are built. The content of a copy follows from the time at which it was made, so an event
only checks whether its fragments were present then. The Jaccard distance is computed from three
counts: fragments live, held, and common to both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crawl_envs.sim.advance import AT_ONCE
from crawl_envs.sim.state import Records
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from crawl_envs.worlds.fragments.versions import divergence_between, jaccard, size_at, was_present

END, START, UPDATE, BORN, GONE = range(5)
"""Kinds of events, in their order at equal times: a spell ends or starts, a page has an update
without a change of fragments, is born, or dies."""
FRAGMENT_EVENT = np.dtype(
    [("time", np.float64), ("page", np.int32), ("spell", np.int32), ("kind", np.int8)], align=True
)
COPY = np.dtype(
    [
        # the page
        ("importance", np.float64),
        ("alive", np.bool_),
        ("live", np.int64),
        # the held copy: time, number of its fragments, number of those still present
        ("made", np.float64),
        ("held", np.int64),
        ("common", np.int64),
        # divergence, time up to which it is integrated, its integral, time of the first update
        ("divergence", np.float64),
        ("since", np.float64),
        ("area", np.float64),
        ("first_change", np.float64),
    ],
    align=True,
)
ACCOUNT = np.dtype(
    [
        ("time", np.float64),
        ("cursor", np.int64),
        ("length", np.int64),
        # whether copies of pages have changed without a crawl
        ("reshaped", np.bool_),
        # sums over existing pages of importance, and of importance times divergence
        ("alive_weight", np.float64),
        ("weight", np.float64),
        # integrals of both over the step, and over the episode
        ("step_divergence", np.float64),
        ("step_alive", np.float64),
        ("divergence_time", np.float64),
        ("alive_time", np.float64),
    ],
    align=True,
)


class Fragments(NamedTuple):
    """The contents of N lanes of m pages, and their held copies, with h base versions.

    R is 1 if all lanes share the row, else N.

    Attributes:
        accounts: ACCOUNT, (N,).
        copies: COPY, (N, m).
        base: times of the base versions of each page, latest first, NaN for none, (N, h, m).
        divergence: divergence of the held copy from each of them, NaN for none, (N, h, m).
        age: age of each of them relative to the held copy, NaN for none, (N, h, m).
        start: first spell of each page, (R, m + 1).
        spells: SPELL, (R, n), by page, in order of birth.
        events: FRAGMENT_EVENT, (R, E), in order of time.
        alive_at_start: mask of the pages that exist at time 0, (m,).
        sketch_size: number of smallest hashes in a sketch, (1,); 0 for all.
        outcomes: importance-weighted mean divergence over existing pages in the last step, and 1
            minus it, both 0 for idle lanes, (2, N).
    """

    accounts: Records
    copies: Records
    base: FloatArray
    divergence: FloatArray
    age: FloatArray
    start: IntArray
    spells: Records
    events: Records
    alive_at_start: BoolArray
    sketch_size: IntArray
    outcomes: FloatArray


# Events


@compiled(forceinline=True)
def integrate_divergence(copy: Any, now: float) -> None:
    """Integrate the divergence of a copy up to now."""
    copy.area += copy.divergence * (now - copy.since)
    copy.since = now


@compiled(forceinline=True)
def set_divergence(account: Any, copy: Any, now: float) -> None:
    """Update the divergence of a copy from its counts."""
    integrate_divergence(copy, now)
    divergence = jaccard(copy.live, copy.held, copy.common) if copy.alive else 0.0
    account.weight += copy.importance * (divergence - copy.divergence)
    copy.divergence = divergence


@compiled(forceinline=True)
def refresh_copy(account: Any, copy: Any, now: float, made: float) -> None:
    """Replace a copy by the live page; ``made`` is the time of the version."""
    copy.made, copy.held, copy.common = made, copy.live, copy.live
    set_divergence(account, copy, now)
    copy.area, copy.first_change = 0.0, np.nan


@compiled(forceinline=True)
def pass_time(account: Any, until: float) -> None:
    """Integrate the divergence of a lane up to ``until``, and set the time."""
    passed = until - account.time
    account.step_divergence += passed * account.weight
    account.step_alive += passed * account.alive_weight
    account.time = until


@compiled()
def set_alive(world: Fragments, lane: int, page: int, now: float, born: bool) -> None:
    """Add a page, known and with a current copy, or remove it."""
    account, copy = world.accounts[lane], world.copies[lane, page]
    if copy.alive == born:
        return
    account.alive_weight += copy.importance if born else -copy.importance
    account.reshaped = True
    copy.alive = born
    refresh_copy(account, copy, now, np.nextafter(now, np.inf))
    forget_bases(world, lane, page)


@compiled(forceinline=True)
def forget_bases(world: Fragments, lane: int, page: int) -> None:
    """Remove the base versions of a page."""
    for slot in range(world.base.shape[1]):
        world.base[lane, slot, page] = np.nan
        world.divergence[lane, slot, page] = np.nan
        world.age[lane, slot, page] = np.nan


@compiled(forceinline=True)
def apply_event(account: Any, copy: Any, spells: Records, row: int, event: Any) -> None:
    """Apply an event to the content of a page."""
    if np.isnan(copy.first_change):
        copy.first_change = event.time
    if event.kind == UPDATE:
        return
    sign = 1 if event.kind == START else -1
    size = sign * spells[row, event.spell].size
    copy.live += size
    if was_present(spells, row, event.spell, copy.made):
        copy.common += size
    set_divergence(account, copy, event.time)


# Steps


@compiled()
def restart_fragments(world: Fragments, chosen: BoolArray) -> None:
    """Reset the chosen lanes to time 0 of an episode, with current copies."""
    num_pages = world.copies.shape[1]
    for lane in range(chosen.size):
        if not chosen[lane]:
            continue
        account, row = world.accounts[lane], min(lane, world.start.shape[0] - 1)
        account.time, account.cursor, account.weight, account.alive_weight = 0.0, 0, 0.0, 0.0
        account.divergence_time, account.alive_time = 0.0, 0.0
        account.step_divergence, account.step_alive = 0.0, 0.0
        account.reshaped = True
        for page in range(num_pages):
            copy = world.copies[lane, page]
            first, last = world.start[row, page], world.start[row, page + 1]
            copy.live = size_at(world.spells, row, first, last, 0.0)
            copy.alive = world.alive_at_start[page]
            copy.divergence, copy.since = 0.0, 0.0
            refresh_copy(account, copy, 0.0, 0.0)
            if copy.alive:
                account.alive_weight += copy.importance
            forget_bases(world, lane, page)


@compiled()
def compare_with_bases(world: Fragments, lane: int, row: int, page: int, now: float) -> None:
    """Write the divergence of the copy just made from each base version of its page."""
    base, divergence, age = world.base, world.divergence, world.age
    spells, size = world.spells, world.sketch_size[0]
    first, last = world.start[row, page], world.start[row, page + 1]
    for slot in range(base.shape[1]):
        then = base[lane, slot, page]
        if np.isnan(then):
            break
        age[lane, slot, page] = now - then
        divergence[lane, slot, page] = divergence_between(spells, row, first, last, then, now, size)


@compiled(forceinline=True)
def keep_as_base(base: FloatArray, lane: int, page: int, made: float) -> None:
    """Add the copy made at a time as the latest base version of a page."""
    last = base.shape[1] - 1
    for slot in range(last, 0, -1):
        base[lane, slot, page] = base[lane, slot - 1, page]
    if last >= 0:
        base[lane, 0, page] = made


@compiled(forceinline=True)
def close_step(account: Any, outcomes: FloatArray, lane: int, until: float) -> None:
    """Finish a step of a lane, and add it to the account and the outcomes."""
    pass_time(account, until)
    account.divergence_time += account.step_divergence
    account.alive_time += account.step_alive
    if account.step_alive > 0.0:
        mean = account.step_divergence / account.step_alive
        outcomes[0, lane] = min(max(mean, 0.0), 1.0)  # sums of weights are rounded
        outcomes[1, lane] = 1.0 - outcomes[0, lane]


@compiled()
def resume_fragments(world: Fragments, idle: BoolArray, until: FloatArray) -> bool:
    """Play the events of a step, and close it; return False if events are left."""
    accounts, copies, spells, events = world.accounts, world.copies, world.spells, world.events
    left = AT_ONCE
    for lane in range(idle.size):
        account, row = accounts[lane], min(lane, events.shape[0] - 1)
        while not idle[lane] and account.cursor < account.length:
            event = events[row, account.cursor]
            if event.time >= until[lane]:
                break
            if left == 0:
                return False
            left -= 1
            pass_time(account, event.time)
            if event.kind >= BORN:
                set_alive(world, lane, event.page, event.time, event.kind == BORN)
            else:
                apply_event(account, copies[lane, event.page], spells, row, event)
            account.cursor += 1
    for lane in range(idle.size):
        if not idle[lane]:
            close_step(accounts[lane], world.outcomes, lane, until[lane])
    return True


@compiled()
def step_fragments(
    world: Fragments, crawls: IntArray, counts: IntArray, idle: BoolArray, until: FloatArray
) -> bool:
    """Crawl the first ``counts[lane]`` of ``crawls[lane]``, then play to ``until[lane]``.

    Idle lanes are unchanged, with outcomes 0. Returns False if events are left, which
    :func:`resume_fragments` plays.
    """
    base, copies = world.base, world.copies
    for lane in range(counts.size):
        account, row = world.accounts[lane], min(lane, world.events.shape[0] - 1)
        account.step_divergence, account.step_alive = 0.0, 0.0
        world.outcomes[:, lane] = 0.0
        if idle[lane]:
            continue
        for position in range(counts[lane]):
            page = crawls[lane, position]
            copy = copies[lane, page]
            if copy.alive:
                keep_as_base(base, lane, page, copy.made)
                refresh_copy(account, copy, account.time, account.time)
                compare_with_bases(world, lane, row, page, account.time)
    return resume_fragments(world, idle, until)
