"""The signals of each page since its copy, compiled: what is counted, and what came before.

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

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from crawl_envs.types.lazy_argmax import LazyArgmax, count_signal, lazy_at
from policies.scheduler.choices import ABSENT, GONE, Choices, choices_at

MOST_LOGGED = 256
"""Signals that a page keeps; older ones are taken for known."""

ADDED, KNOWN, NO_ROOM = 1, 0, -1
_ROWS, _TIMES = types.int64[::1], types.float64[::1]


@inlined()
def drop(choices: Choices, page: int, before: int, event: int) -> int:
    """Remove a signal from the list of a page, after the one before it, and return the next one."""
    following = choices.event_next[event]
    if before < 0:
        choices.newest[page] = following
    else:
        choices.event_next[before] = following
    choices.event_next[event] = choices.lines[0].free
    choices.lines[0].free = event
    choices.logged[page] -= 1
    return int(following)


@inlined()
def log_signal(choices: Choices, page: int, time: float, latest: float, source: int) -> int:
    """Put a signal into the list of its page; return ADDED, KNOWN or NO_ROOM."""
    before, event, place = -1, choices.newest[page], 0
    while event >= 0 and choices.event_time[event] >= time:
        other = choices.event_source[event]
        if choices.event_time[event] == time and max(other, ~other) == source:
            return KNOWN
        before, event, place = event, choices.event_next[event], place + 1
    if place == MOST_LOGGED:
        return KNOWN
    new = choices.lines[0].free
    if new < 0:
        return NO_ROOM
    choices.lines[0].free = choices.event_next[new]
    choices.event_time[new], choices.event_latest[new] = time, latest
    choices.event_source[new], choices.event_next[new] = source, event
    if before < 0:
        choices.newest[page] = new
    else:
        choices.event_next[before] = new
    choices.logged[page] += 1
    if choices.logged[page] > MOST_LOGGED:
        before = new
        while choices.event_next[choices.event_next[before]] >= 0:
            before = choices.event_next[before]
        drop(choices, page, before, choices.event_next[before])
    return ADDED


@inlined()
def pass_copy(choices: Choices, page: int, copy: float) -> None:
    """Mark the signals up to a copy as spent, and forget those that cannot be told again."""
    before, event = -1, choices.newest[page]
    while event >= 0:
        source = max(choices.event_source[event], ~choices.event_source[event])
        if choices.event_latest[event] <= copy:
            if choices.event_time[event] + choices.slack[source] < copy:
                event = drop(choices, page, before, event)
                continue
            choices.event_source[event] = ~source
        before, event = event, choices.event_next[event]


@inlined()
def weight_of(
    choices: Choices, lazy: LazyArgmax, signal_weight: Any, page: int, window: float
) -> float:
    """Return the weight of the signals that count for the copy of a page."""
    total, event, copy = 0.0, choices.newest[page], lazy.pages[page].last_crawl
    while event >= 0:
        age, source = choices.event_latest[event] - copy, choices.event_source[event]
        if source >= 0 and (window == 0.0 or age > window):
            total += signal_weight(lazy.parameters, page, age, source)
        event = choices.event_next[event]
    return total


@inlined()
def forget_signals(choices: Choices, page: int) -> None:
    """Remove all signals of a page."""
    event = choices.newest[page]
    while event >= 0:
        event = drop(choices, page, -1, event)


@compiled(
    types.void(
        _ROWS,
        _ROWS,
        VALUE,
        SIGNAL_WEIGHT,
        _ROWS,
        _TIMES,
        _ROWS,
        types.float64,
        types.float64,
        _ROWS,
    )
)
def count_signals(
    table: IntArray,
    search: IntArray,
    value: Any,
    signal_weight: Any,
    pages: IntArray,
    times: FloatArray,
    sources: IntArray,
    window: float,
    now: float,
    counts: IntArray,
) -> None:
    """Add signals; add to ``counts`` how many were read, until there is no room, and ignored.

    Ignored are those of pages without a copy, from before the copy, and known ones. Signals up to
    ``window`` after the copy have no weight.
    """
    choices, lazy = choices_at(table), lazy_at(search)
    lines = choices.lines[0]
    for position in range(counts[0], pages.shape[0]):
        page, time, source = pages[position], times[position], sources[position]
        copy = lazy.pages[page].last_crawl
        latest = min(time + choices.slack[source], max(time, now, copy))
        age = latest - copy
        added = KNOWN
        if age >= 0.0 and choices.status[page] not in (ABSENT, GONE):
            added = log_signal(choices, page, time, latest, source)
        if added == NO_ROOM:
            return
        counts[0] += 1
        counts[1] += added == KNOWN
        if added == ADDED:
            lines.latest_signal = max(lines.latest_signal, latest)
            if window == 0.0 or age > window:
                weight = signal_weight(lazy.parameters, page, age, source)
                count_signal(lazy, value, page, weight, now)


@compiled()
def signals_until(table: IntArray, pages: IntArray, times: FloatArray, counts: FloatArray) -> None:
    """Add the numbers of signals that count for the copies, up to times, by source, (n, S)."""
    choices = choices_at(table)
    for position in range(pages.shape[0]):
        event = choices.newest[pages[position]]
        while event >= 0:
            source = choices.event_source[event]
            if source >= 0 and choices.event_latest[event] <= times[position]:
                counts[position, source] += 1.0
            event = choices.event_next[event]


@compiled(types.void(_ROWS, _ROWS, SIGNAL_WEIGHT, _ROWS, _TIMES, types.float64))
def weigh(
    table: IntArray,
    search: IntArray,
    signal_weight: Any,
    pages: IntArray,
    more: FloatArray,
    window: float,
) -> None:
    """Count the signals of pages again, by new weights, and ``more``, (n,)."""
    choices, lazy = choices_at(table), lazy_at(search)
    for position in range(pages.shape[0]):
        page = pages[position]
        total = weight_of(choices, lazy, signal_weight, page, window)
        lazy.pages[page].counted = total + more[position]
