"""The fragments of pages, live and held: divergence kept up event by event, exactly.

No set is ever built for it. What a copy holds follows from the time at which it was made, so an
event needs to know no more than whether its fragments were there at that time; the three numbers
that the Jaccard distance is made of (fragments live, held, and common to both) are counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crawl_envs.sim.advance import AT_ONCE
from crawl_envs.sim.state import Records
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from crawl_envs.worlds.fragments.versions import divergence_between, jaccard, size_at, there

END, START, UPDATE, BORN, GONE = range(5)
"""Kinds of events, in the order in which they happen at one time: a spell ends or starts, a page is
updated in a way that no fragment shows, is born, or dies."""
FRAGMENT_EVENT = np.dtype(
    [("time", np.float64), ("page", np.int32), ("spell", np.int32), ("kind", np.int8)], align=True
)
COPY = np.dtype(
    [
        # the page
        ("importance", np.float64),
        ("alive", np.bool_),
        ("live", np.int64),
        # the held copy: when it was made, its fragments, and those that are still there
        ("made", np.float64),
        ("held", np.int64),
        ("common", np.int64),
        # divergence, up to when it is integrated, its integral, the time of the first update
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
        # whether copies of pages that were not crawled have changed
        ("reshaped", np.bool_),
        # sums over existing pages of importance, and of importance times divergence
        ("alive_weight", np.float64),
        ("weight", np.float64),
        # integrals of both over the step, and since the episode began
        ("step_divergence", np.float64),
        ("step_alive", np.float64),
        ("divergence_time", np.float64),
        ("alive_time", np.float64),
    ],
    align=True,
)


class Fragments(NamedTuple):
    """The contents of N lanes of m pages, and what is held of them; h base versions are kept.

    Of what has R rows all lanes read the one row where R = 1, else each its own.

    Attributes:
        accounts: ACCOUNT, (N,).
        copies: COPY, (N, m).
        base: when the base versions of each page were made, latest first, NaN where none,
            (N, h, m).
        divergence: of the held copy from each of them, NaN where none, (N, h, m).
        age: by how much they are older than it, NaN where none, (N, h, m).
        start: first spell of each page, (R, m + 1).
        spells: SPELL, (R, n), of each page in order of birth.
        events: FRAGMENT_EVENT, (R, E), in order of time.
        alive_at_start: which pages exist at time 0, (m,).
        sketch_size: smallest hashes that a sketch keeps, (1,); 0 for all.
        outcomes: of the last step the mean divergence over existing pages, by importance, and 1
            minus it, both 0 for idle lanes; (2, N).
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
def settle(copy: Any, now: float) -> None:
    """Integrate the divergence of a copy up to now."""
    copy.area += copy.divergence * (now - copy.since)
    copy.since = now


@compiled(forceinline=True)
def set_divergence(account: Any, copy: Any, now: float) -> None:
    """Bring the divergence of a copy up to date with its counts."""
    settle(copy, now)
    divergence = jaccard(copy.live, copy.held, copy.common) if copy.alive else 0.0
    account.weight += copy.importance * (divergence - copy.divergence)
    copy.divergence = divergence


@compiled(forceinline=True)
def hold(account: Any, copy: Any, now: float, made: float) -> None:
    """Hold the live page from now on; ``made`` is the time that says which version it is."""
    copy.made, copy.held, copy.common = made, copy.live, copy.live
    set_divergence(account, copy, now)
    copy.area, copy.first_change = 0.0, np.nan


@compiled(forceinline=True)
def pass_time(account: Any, until: float) -> None:
    """Integrate the divergence of a lane up to a time and stand there."""
    passed = until - account.time
    account.step_divergence += passed * account.weight
    account.step_alive += passed * account.alive_weight
    account.time = until


@compiled()
def be_born_or_die(world: Fragments, lane: int, page: int, now: float, born: bool) -> None:
    """Let a page appear, known and held as it is, or disappear."""
    account, copy = world.accounts[lane], world.copies[lane, page]
    if copy.alive == born:
        return
    account.alive_weight += copy.importance if born else -copy.importance
    account.reshaped = True
    copy.alive = born
    hold(account, copy, now, np.nextafter(now, np.inf))
    forget_bases(world, lane, page)


@compiled(forceinline=True)
def forget_bases(world: Fragments, lane: int, page: int) -> None:
    """Know no base version of a page."""
    for slot in range(world.base.shape[1]):
        world.base[lane, slot, page] = np.nan
        world.divergence[lane, slot, page] = np.nan
        world.age[lane, slot, page] = np.nan


@compiled(forceinline=True)
def apply_event(account: Any, copy: Any, spells: Records, row: int, event: Any) -> None:
    """Let something happen to the content of a page."""
    if np.isnan(copy.first_change):
        copy.first_change = event.time
    if event.kind == UPDATE:
        return
    sign = 1 if event.kind == START else -1
    size = sign * spells[row, event.spell].size
    copy.live += size
    if there(spells, row, event.spell, copy.made):
        copy.common += size
    set_divergence(account, copy, event.time)


# Steps


@compiled()
def restart_fragments(world: Fragments, chosen: BoolArray) -> None:
    """Stand at time 0 of an episode in the chosen lanes, where every copy is current."""
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
            hold(account, copy, 0.0, 0.0)
            if copy.alive:
                account.alive_weight += copy.importance
            forget_bases(world, lane, page)


@compiled()
def compare_with_bases(world: Fragments, lane: int, row: int, page: int, now: float) -> None:
    """Write how far a copy of a page that was just made is from each of its base versions."""
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
    """Make the copy that was made at a time the latest base version of a page."""
    last = base.shape[1] - 1
    for slot in range(last, 0, -1):
        base[lane, slot, page] = base[lane, slot - 1, page]
    if last >= 0:
        base[lane, 0, page] = made


@compiled(forceinline=True)
def close_step(account: Any, outcomes: FloatArray, lane: int, until: float) -> None:
    """Stand at the end of a step of a lane, and enter it into the account and the outcomes."""
    pass_time(account, until)
    account.divergence_time += account.step_divergence
    account.alive_time += account.step_alive
    if account.step_alive > 0.0:
        mean = account.step_divergence / account.step_alive
        outcomes[0, lane] = min(max(mean, 0.0), 1.0)  # sums of weights are rounded
        outcomes[1, lane] = 1.0 - outcomes[0, lane]


@compiled()
def resume_fragments(world: Fragments, idle: BoolArray, until: FloatArray) -> bool:
    """Play the events of a step, and account for it; False where events are left."""
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
                be_born_or_die(world, lane, event.page, event.time, event.kind == BORN)
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
    """Crawl the first ``counts[lane]`` of ``crawls[lane]``, then play on to ``until[lane]``.

    Idle lanes stay where they are, and their step accounts for nothing. Returns False where events
    are left, which :func:`resume_fragments` plays.
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
                hold(account, copy, account.time, account.time)
                compare_with_bases(world, lane, row, page, account.time)
    return resume_fragments(world, idle, until)
