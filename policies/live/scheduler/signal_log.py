"""Count the signals of each page since its copy, compiled, and store earlier ones.

A list per page, the latest first. Each signal has the time that its source gave, which tells
whether it is a new one, and the latest time at which its change can have been: that plus the
source's *slack* (its resolution and the difference of clocks), but not after the clock, or the
copy that was known when it was received. A signal counts for a copy if that latest time is after
it. Others are *spent*; they are kept while the copy is within the slack, so that the same one is
known again. A source is written as itself, and as its complement if the signal is spent.
"""

from __future__ import annotations

from typing import Any

from numba import types

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from crawl_envs.compiled.lazy_argmax import LazyArgmax, count_signal, lazy_at
from crawl_envs.types import FloatArray, IntArray
from policies.live.scheduler.states import ABSENT, GONE, Choices, choices_at

MOST_LOGGED = 256
"""Most signals that are kept per page; older signals that come later count as known."""

_ROWS, _TIMES = types.int64[::1], types.float64[::1]


@inlined()
def drop(choices: Choices, page: int, before: int, event: int) -> int:
    """Remove signal ``event``, which follows ``before``, from a page's list; return the next."""
    following = choices.event_next[event]
    if before < 0:
        choices.newest[page] = following
    else:
        choices.event_next[before] = following
    choices.event_next[event] = choices.lines[0].free_event
    choices.lines[0].free_event = event
    choices.lines[0].num_events -= 1
    choices.logged[page] -= 1
    return int(following)


@inlined()
def put(choices: Choices, page: int, before: int, following: int) -> int:
    """Insert a new entry into a page's list between two entries, -1 for none, and return it."""
    lines = choices.lines[0]
    event = lines.free_event
    if event >= 0:
        lines.free_event = choices.event_next[event]
    else:
        event = lines.used_events
        lines.used_events += 1
    choices.event_next[event] = following
    if before < 0:
        choices.newest[page] = event
    else:
        choices.event_next[before] = event
    lines.num_events += 1
    choices.logged[page] += 1
    return int(event)


@inlined()
def log_signal(choices: Choices, page: int, time: float, latest: float, source: int) -> bool:
    """Insert a signal into its page's list, sorted by time; return False if it is known already."""
    before, event, place = -1, choices.newest[page], 0
    while event >= 0 and choices.event_time[event] >= time:
        stored = choices.event_source[event]
        if choices.event_time[event] == time and max(stored, ~stored) == source:
            return False
        before, event, place = event, choices.event_next[event], place + 1
    if place == MOST_LOGGED:
        return False
    last = put(choices, page, before, event)
    choices.event_time[last], choices.event_latest[last] = time, latest
    choices.event_source[last] = source
    if choices.logged[page] > MOST_LOGGED:
        while choices.event_next[choices.event_next[last]] >= 0:
            last = choices.event_next[last]
        drop(choices, page, last, choices.event_next[last])
    return True


@inlined()
def pass_copy(choices: Choices, page: int, copy: float) -> None:
    """Mark a page's signals up to a copy as spent, and drop those that cannot be reported again."""
    before, event = -1, choices.newest[page]
    while event >= 0:
        source = max(choices.event_source[event], ~choices.event_source[event])
        if choices.event_latest[event] <= copy:
            if choices.event_time[event] + choices.slack[source] < copy:
                event = drop(choices, page, before, event)
                continue
            choices.event_source[event] = ~source
        before, event = event, choices.event_next[event]


@inlined(forceinline=True)
def weighs(choices: Choices, age: float) -> bool:
    """Return whether a signal that came ``age`` after the copy has a weight."""
    return bool(choices.lines[0].window == 0.0 or age > choices.lines[0].window)


@inlined()
def weight_of(choices: Choices, lazy: LazyArgmax, signal_weight: Any, page: int) -> float:
    """Return the summed weight of a page's signals since its copy."""
    total, event, copy = 0.0, choices.newest[page], lazy.pages[page].last_crawl
    while event >= 0:
        age, source = choices.event_latest[event] - copy, choices.event_source[event]
        if source >= 0 and weighs(choices, age):
            total += signal_weight(lazy.parameters, page, age, source)
        event = choices.event_next[event]
    return total


@inlined()
def forget_signals(choices: Choices, page: int) -> None:
    """Remove all signals of a page."""
    event = choices.newest[page]
    while event >= 0:
        event = drop(choices, page, -1, event)


@compiled(types.int64(_ROWS, _ROWS, VALUE, SIGNAL_WEIGHT, _ROWS, _TIMES, _ROWS, types.float64))
def count_signals(
    table: IntArray,
    search: IntArray,
    value: Any,
    signal_weight: Any,
    pages: IntArray,
    times: FloatArray,
    sources: IntArray,
    now: float,
) -> int:
    """Add signals to the lists of their pages; return how many were ignored.

    Signals of absent or gone pages or without a copy, from before the copy, or known are ignored.
    """
    choices, lazy, ignored = choices_at(table), lazy_at(search), 0
    lines = choices.lines[0]
    for position in range(pages.shape[0]):
        page, time, source = pages[position], times[position], sources[position]
        copy = lazy.pages[page].last_crawl
        latest = min(time + choices.slack[source], max(time, now, copy))
        age = latest - copy
        counts = age >= 0.0 and choices.status[page] not in (ABSENT, GONE)
        if not counts or not log_signal(choices, page, time, latest, source):
            ignored += 1
            continue
        lines.latest_signal = max(lines.latest_signal, latest)
        if weighs(choices, age):
            weight = signal_weight(lazy.parameters, page, age, source)
            count_signal(lazy, value, page, weight, now)
    return ignored


@compiled(types.void(_ROWS, _ROWS, _TIMES, types.float64[:, ::1]))
def signals_until(table: IntArray, pages: IntArray, times: FloatArray, counts: FloatArray) -> None:
    """Add to ``counts`` the pages' signals by source since their copies, up to times, (n, S)."""
    choices = choices_at(table)
    for position in range(pages.shape[0]):
        event = choices.newest[pages[position]]
        while event >= 0:
            source = choices.event_source[event]
            if source >= 0 and choices.event_latest[event] <= times[position]:
                counts[position, source] += 1.0
            event = choices.event_next[event]


@compiled(types.void(_ROWS, _ROWS, SIGNAL_WEIGHT, _ROWS, _TIMES))
def weigh(
    table: IntArray, search: IntArray, signal_weight: Any, pages: IntArray, more: FloatArray
) -> None:
    """Set each page's weight of signals to the sum by present weights plus ``more``, (n,)."""
    choices, lazy = choices_at(table), lazy_at(search)
    for position in range(pages.shape[0]):
        page = pages[position]
        total = weight_of(choices, lazy, signal_weight, page)
        lazy.pages[page].counted = total + more[position]
