"""Compiled choices of a live scheduler: which pages are fetched next, and what is learned of them.

A page is *ready*, *sent* to the crawler, *failed* there, *parked* while its host may not be asked,
or *new*: it has no copy yet. Ready pages are found by :mod:`crawl_envs.types.lazy_argmax`, new
ones wait in line. A share of the fetches goes to new pages while there are any.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.array_tables import (
    Records,
    SmallArray,
    StateType,
    fields_of,
    lengths_of,
    read_table,
    table_of,
    zeros,
)
from crawl_envs.types.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from crawl_envs.types.heap import IndexedHeap, first_due, set_due
from crawl_envs.types.lazy_argmax import (
    LazyArgmax,
    add,
    best_page,
    count_signal,
    lazy_at,
    lower_top_bar,
    pass_time,
    remove,
)
from policies.scheduler.ranking import pop_best, rank

MANY = 8
"""Choices at one time from which pages are ranked at once."""

ABSENT, READY, SENT, FAILED, PARKED, NEW = range(6)

LINES = np.dtype(
    [
        # the lines of pages: the first place, and the number of pages
        ("first_sent", np.int64),
        ("num_sent", np.int64),
        ("first_new", np.int64),
        ("num_new", np.int64),
        # new pages in line
        ("waiting", np.int64),
        # share of fetches for new pages, and what is left of it
        ("new_share", np.float64),
        ("credit", np.float64),
        # time after which a page that was sent is ready again
        ("timeout", np.float64),
    ]
)


class Choices(NamedTuple):
    """The states of m pages and H hosts."""

    lines: Annotated[Records, LINES, "1"]
    status: Annotated[SmallArray, np.int8, "m"]
    host: Annotated[SmallArray, np.int32, "m"]  # -1 if there is no limit
    sent: Annotated[FloatArray, np.float64, "m"]  # time at which the page was sent last
    sent_page: Annotated[SmallArray, np.int32, "sent"]  # a ring, with outdated entries
    sent_time: Annotated[FloatArray, np.float64, "sent"]
    new_page: Annotated[SmallArray, np.int32, "m"]  # a ring, with outdated entries
    # the first parked page of each host, -1 for none; and of a parked page the next one, of a new
    # page its place in the ring
    parked: Annotated[SmallArray, np.int32, "H"]
    following: Annotated[SmallArray, np.int32, "m"]
    # least time between two fetches of a host, most fetches at once; and their state
    gap: Annotated[FloatArray, np.float64, "H"]
    most: Annotated[SmallArray, np.int32, "H"]
    opens: Annotated[FloatArray, np.float64, "H"]
    busy: Annotated[SmallArray, np.int32, "H"]
    # hosts with parked pages by the time at which they open, an IndexedHeap
    opening: Annotated[FloatArray, np.float64, "H"]
    opening_host: Annotated[IntArray, np.int64, "H"]
    opening_place: Annotated[IntArray, np.int64, "H"]
    opening_size: Annotated[IntArray, np.int64, "1"]


FIELDS = fields_of(Choices)
CHOICES = StateType("Choices", FIELDS)


def new_choices(lengths: dict[str, int]) -> Choices:
    """Return the states of absent pages, and of hosts without limits."""
    choices = Choices(*zeros(FIELDS, lengths))
    for name in ("host", "parked", "following", "opening_place"):
        getattr(choices, name)[:] = -1
    choices.sent[:] = choices.opens[:] = -math.inf
    choices.opening[:] = math.inf
    choices.most[:] = np.iinfo(np.int32).max
    return choices


def copy_choices(before: Choices, after: Choices) -> None:
    """Copy the states of pages and hosts to arrays with more room."""
    lines, room = before.lines[0], before.status.size
    sent = (lines["first_sent"] + np.arange(lines["num_sent"])) % before.sent_time.size
    line = (lines["first_new"] + np.arange(lines["num_new"])) % room
    page = before.new_page[line]
    page = page[(before.status[page] == NEW) & (before.following[page] == line)]
    for name in before._fields:
        array, copy = getattr(before, name), getattr(after, name)
        if name in ("sent_page", "sent_time"):
            copy[: sent.size] = array[sent]
        elif name != "new_page":
            copy[: array.shape[0]] = array
    after.new_page[: page.size], after.following[page] = page, np.arange(page.size)
    after.lines["first_sent"] = after.lines["first_new"] = 0
    after.lines["num_new"] = page.size


def choices_table(choices: Choices) -> IntArray:
    """Return the table of the states; see :mod:`crawl_envs.types.array_tables`."""
    return table_of(choices, lengths_of(choices, FIELDS))


def _choices_at(typing_context: Any, table: Any) -> Any:
    """Turn a table into the states of compiled code."""
    return read_table(CHOICES, table)


choices_at: Any = intrinsic(_choices_at)
"""Return the Choices of a table; its arrays are valid as long as their owner keeps them."""


@inlined(forceinline=True)
def hosts_of(choices: Choices) -> IndexedHeap:
    """Return the hosts with parked pages, by the time at which they open."""
    return IndexedHeap(
        choices.opening, choices.opening_host, choices.opening_place, choices.opening_size
    )


@inlined(forceinline=True)
def is_open(choices: Choices, host: int, now: float) -> bool:
    """Return whether a host may be asked."""
    return host < 0 or (choices.opens[host] <= now and choices.busy[host] < choices.most[host])


@inlined(forceinline=True)
def is_new(choices: Choices, place: int) -> bool:
    """Return whether a place in the line is that of a new page."""
    page = choices.new_page[place]
    return bool(choices.status[page] == NEW and choices.following[page] == place)


@inlined()
def wait_in_line(choices: Choices, page: int) -> None:
    """Put a new page at the end of the line, without outdated entries if it is full."""
    lines, room = choices.lines[0], choices.new_page.shape[0]
    if lines.num_new == room:
        lines.num_new = 0
        for position in range(room):
            place = (lines.first_new + position) % room
            if is_new(choices, place):
                end, other = (lines.first_new + lines.num_new) % room, choices.new_page[place]
                choices.new_page[end], choices.following[other] = other, end
                lines.num_new += 1
    end = (lines.first_new + lines.num_new) % room
    choices.new_page[end], choices.following[page], choices.status[page] = page, end, NEW
    lines.num_new += 1
    lines.waiting += 1


@inlined()
def make_ready(choices: Choices, lazy: LazyArgmax, value: Any, page: int, now: float) -> None:
    """Let a page be chosen again."""
    if lazy.pages[page].last_crawl < math.inf:
        choices.status[page] = READY
        add(lazy, value, page, now)
    else:
        wait_in_line(choices, page)


@inlined()
def park(choices: Choices, lazy: LazyArgmax, page: int) -> None:
    """Park a page until its host opens."""
    host = choices.host[page]
    remove(lazy, page)
    choices.status[page] = PARKED
    choices.following[page], choices.parked[host] = choices.parked[host], page
    if choices.busy[host] < choices.most[host]:
        set_due(hosts_of(choices), host, choices.opens[host])


@inlined()
def leave_parking(choices: Choices, page: int) -> None:
    """Take a page out of the parked pages of its host."""
    host = choices.host[page]
    other = choices.parked[host]
    if other == page:
        choices.parked[host] = choices.following[page]
        return
    while choices.following[other] != page:
        other = choices.following[other]
    choices.following[other] = choices.following[page]


@inlined()
def open_hosts(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Let the parked pages of hosts that may be asked again be chosen."""
    hosts = hosts_of(choices)
    while first_due(hosts) <= now:
        host = hosts.entries[0]
        set_due(hosts, host, math.inf)
        page, choices.parked[host] = choices.parked[host], -1
        while page >= 0:
            other = choices.following[page]
            make_ready(choices, lazy, value, page, now)
            page = other


@inlined()
def end_fetch(choices: Choices, page: int) -> None:
    """Count a fetch of the page's host as ended."""
    host = choices.host[page]
    if host >= 0:
        choices.busy[host] -= 1
        if choices.parked[host] >= 0:
            set_due(hosts_of(choices), host, choices.opens[host])


@inlined()
def time_out(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Let the pages be chosen again that were sent too long ago."""
    lines = choices.lines[0]
    while lines.num_sent > 0:
        sent, page = choices.sent_time[lines.first_sent], choices.sent_page[lines.first_sent]
        status = choices.status[page]
        current = status in (SENT, FAILED) and choices.sent[page] == sent
        if current and sent + lines.timeout > now:
            break
        lines.first_sent = (lines.first_sent + 1) % choices.sent_time.shape[0]
        lines.num_sent -= 1
        if current:
            if status == SENT:
                end_fetch(choices, page)
            make_ready(choices, lazy, value, page, now)


@inlined()
def next_new(choices: Choices, lazy: LazyArgmax, now: float) -> int:
    """Return the first new page whose host may be asked, or -1; park those before it."""
    lines = choices.lines[0]
    while lines.num_new > 0:
        page, waiting = choices.new_page[lines.first_new], is_new(choices, lines.first_new)
        lines.first_new = (lines.first_new + 1) % choices.new_page.shape[0]
        lines.num_new -= 1
        if not waiting:
            continue
        lines.waiting -= 1
        if is_open(choices, choices.host[page], now):
            return int(page)
        park(choices, lazy, page)
    return -1


@inlined()
def next_ready(
    choices: Choices,
    lazy: LazyArgmax,
    value: Any,
    now: float,
    ranked: tuple[FloatArray, IntArray, IntArray],
) -> int:
    """Return the page of the largest value whose host may be asked, or -1; park those above it.

    ``ranked`` is a heap of the first pages and its size, which may be 0.
    """
    values, pages, size = ranked
    while True:
        if pages.shape[0] == 0:
            page = best_page(lazy, value, now)
        else:
            if size[0] == 0 and lazy.search[0].top_bar > -math.inf:
                lower_top_bar(lazy, value, now)
                size[0] = rank(lazy, value, now, values, pages)
            size[0] -= 1
            page = pop_best(values, pages, size[0] + 1) if size[0] >= 0 else -1
        if page < 0 or is_open(choices, choices.host[page], now):
            return int(page)
        park(choices, lazy, page)


@inlined()
def choose(
    choices: Choices,
    lazy: LazyArgmax,
    value: Any,
    now: float,
    ranked: tuple[FloatArray, IntArray, IntArray],
) -> int:
    """Return the page to fetch next, or -1."""
    lines = choices.lines[0]
    if lines.waiting > 0:
        lines.credit += lines.new_share
    page = -1
    if lines.credit >= 1.0:
        page = next_new(choices, lazy, now)
        lines.credit -= 1.0
    if page < 0:
        page = next_ready(choices, lazy, value, now, ranked)
    if page < 0:
        page = next_new(choices, lazy, now)
    return page


@inlined()
def rank_ready(
    lazy: LazyArgmax, value: Any, now: float, count: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return a heap of the first ready pages and its size; an empty one for few choices."""
    size = np.zeros(1, np.int64)
    if count < MANY:
        return np.empty(0), np.empty(0, np.int64), size
    lazy.search[0].batch = max(lazy.search[0].batch, count)
    pass_time(lazy, value, now)
    num_pages = lazy.wake.shape[0]
    values, pages = np.empty(num_pages), np.empty(num_pages, np.int64)
    size[0] = rank(lazy, value, now, values, pages)
    return values, pages, size


@compiled(types.int64(types.int64[::1], types.int64[::1], VALUE, types.float64, types.int64[::1]))
def take(table: IntArray, search: IntArray, value: Any, now: float, pages: IntArray) -> int:
    """Write the pages to fetch at a time, best first, and return their number.

    It stops early where no page is left, or where the line of sent pages is full.
    """
    choices, lazy = choices_at(table), lazy_at(search)
    lines = choices.lines[0]
    time_out(choices, lazy, value, now)
    open_hosts(choices, lazy, value, now)
    ranked = rank_ready(lazy, value, now, pages.shape[0])
    for count in range(pages.shape[0]):
        if lines.num_sent == choices.sent_time.shape[0]:
            return count
        page = choose(choices, lazy, value, now, ranked)
        if page < 0:
            return count
        last = (lines.first_sent + lines.num_sent) % choices.sent_time.shape[0]
        choices.sent_time[last], choices.sent_page[last] = now, page
        lines.num_sent += 1
        host = choices.host[page]
        if host >= 0:
            choices.busy[host] += 1
            choices.opens[host] = now + choices.gap[host]
        remove(lazy, page)
        choices.status[page], choices.sent[page] = SENT, now
        pages[count] = page
    return int(pages.shape[0])


@compiled(types.void(types.int64[::1], types.int64[::1], VALUE, types.int64[::1], types.float64))
def admit(table: IntArray, search: IntArray, value: Any, pages: IntArray, now: float) -> None:
    """Let absent pages be chosen, or place ready ones again after a change of any kind."""
    choices, lazy = choices_at(table), lazy_at(search)
    for page in pages:
        if choices.status[page] in (ABSENT, READY):
            make_ready(choices, lazy, value, page, now)


@compiled()
def dismiss(table: IntArray, search: IntArray, pages: IntArray) -> None:
    """Remove pages in any state."""
    choices, lazy = choices_at(table), lazy_at(search)
    for page in pages:
        if choices.status[page] == SENT:
            end_fetch(choices, page)
        elif choices.status[page] == PARKED:
            leave_parking(choices, page)
        elif choices.status[page] == NEW:
            choices.lines[0].waiting -= 1
        remove(lazy, page)
        choices.status[page] = ABSENT


@compiled(
    types.int64(
        types.int64[::1],
        types.int64[::1],
        VALUE,
        types.int64[::1],
        types.float64[::1],
        types.float64[::1],
        types.float64,
    )
)
def give_back(
    table: IntArray,
    search: IntArray,
    value: Any,
    pages: IntArray,
    times: FloatArray,
    later: FloatArray,
    now: float,
) -> int:
    """Take note of fetches, and return the number of those that a later one precedes.

    ``times`` are those of the copies, ``later`` the weights of the signals after them, (n,).
    """
    choices, lazy, ignored = choices_at(table), lazy_at(search), 0
    for position in range(pages.shape[0]):
        page, time = pages[position], times[position]
        status, record = choices.status[page], lazy.pages[page]
        newer = record.last_crawl == math.inf or time > record.last_crawl
        ignored += not newer
        if newer:
            record.last_crawl, record.counted = time, later[position]
        if status == SENT:
            end_fetch(choices, page)
        if status == NEW and newer:
            choices.lines[0].waiting -= 1
        if status in (SENT, FAILED) or (status in (NEW, READY) and newer):
            make_ready(choices, lazy, value, page, now)
    return ignored


@compiled()
def reopen(table: IntArray) -> None:
    """Let hosts with parked pages open, where their limits have changed."""
    choices = choices_at(table)
    for host in range(choices.gap.shape[0]):
        if choices.parked[host] >= 0:
            set_due(hosts_of(choices), host, choices.opens[host])


@compiled()
def fail(table: IntArray, pages: IntArray) -> None:
    """Take note of fetches that failed; the pages are ready again after the timeout."""
    choices = choices_at(table)
    for page in pages:
        if choices.status[page] == SENT:
            end_fetch(choices, page)
            choices.status[page] = FAILED


@compiled(
    types.int64(
        types.int64[::1],
        VALUE,
        SIGNAL_WEIGHT,
        types.int64[::1],
        types.float64[::1],
        types.int64[::1],
        types.float64[::1],
        types.float64,
        types.float64,
    )
)
def count_signals(
    search: IntArray,
    value: Any,
    signal_weight: Any,
    pages: IntArray,
    times: FloatArray,
    sources: IntArray,
    weights: FloatArray,
    window: float,
    now: float,
) -> int:
    """Add signals, write their weights, and return the number of those before the copy.

    Signals up to ``window`` after the copy have no weight.
    """
    lazy, ignored = lazy_at(search), 0
    for position in range(pages.shape[0]):
        page, age = pages[position], times[position] - lazy.pages[pages[position]].last_crawl
        if age < 0.0:
            ignored += 1
        elif window == 0.0 or age > window:
            weights[position] = signal_weight(lazy.parameters, page, age, sources[position])
            count_signal(lazy, value, page, weights[position], now)
    return ignored
