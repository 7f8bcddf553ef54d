"""Compiled choices of a live scheduler: which pages are fetched next, and what is learned of them.

A page is *ready*, *sent* to the crawler, *parked* while its host may not be asked, *waiting* until
a time (after a failure, or until its least interval has passed), *new*: it has no copy yet, or
*gone*. Ready pages are found by :mod:`crawl_envs.types.lazy_argmax`, new ones wait in line. A share
of the fetches goes to new pages while there are any.
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
from crawl_envs.types.compiling import VALUE, compiled, inlined
from crawl_envs.types.heap import IndexedHeap, first_due, set_due
from crawl_envs.types.lazy_argmax import (
    LazyArgmax,
    add,
    best_page,
    lazy_at,
    lower_top_bar,
    pass_time,
    remove,
    value_at,
)
from policies.scheduler.ranking import pop_best, rank

MANY = 8
"""Choices at one time from which pages are ranked at once."""

ABSENT, READY, SENT, WAITING, PARKED, NEW, GONE = range(7)
STATES = "absent", "ready", "sent", "waiting", "parked", "new", "gone"
NO_LIMIT = int(np.iinfo(np.int32).max)
MOST_DOUBLINGS = 60

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
        # wait after a first failure, which doubles with each further one, and the longest wait
        ("retry", np.float64),
        ("most_retry", np.float64),
        # difference of clocks; latest times of signals and of copies, which may be ahead of the
        # clock; and numbers of those that were ahead of it by more
        ("skew", np.float64),
        ("latest_signal", np.float64),
        ("latest_copy", np.float64),
        ("ahead", np.int64),
        # the value of the last page that was chosen by its value
        ("level", np.float64),
        # the first free entry of the log of signals
        ("free", np.int64),
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
    held: Annotated[FloatArray, np.float64, "H"]
    busy: Annotated[SmallArray, np.int32, "H"]
    # hosts with parked pages by the time at which they open, an IndexedHeap
    opening: Annotated[FloatArray, np.float64, "H"]
    opening_host: Annotated[IntArray, np.int64, "H"]
    opening_place: Annotated[IntArray, np.int64, "H"]
    opening_size: Annotated[IntArray, np.int64, "1"]
    # failures in a row, time before which a page is not tried again, least time between fetches
    fails: Annotated[SmallArray, np.int32, "m"]
    retry_at: Annotated[FloatArray, np.float64, "m"]
    least: Annotated[FloatArray, np.float64, "m"]
    # waiting pages by the time at which they are ready, an IndexedHeap
    due: Annotated[FloatArray, np.float64, "m"]
    waiting: Annotated[IntArray, np.int64, "m"]
    waiting_place: Annotated[IntArray, np.int64, "m"]
    waiting_size: Annotated[IntArray, np.int64, "1"]
    # the signals of each page: the latest one, their number; see ``signal_log``
    newest: Annotated[SmallArray, np.int32, "m"]
    logged: Annotated[SmallArray, np.int32, "m"]
    event_time: Annotated[FloatArray, np.float64, "E"]
    event_latest: Annotated[FloatArray, np.float64, "E"]
    event_source: Annotated[SmallArray, np.int32, "E"]
    event_next: Annotated[SmallArray, np.int32, "E"]
    slack: Annotated[FloatArray, np.float64, "S"]


FIELDS = fields_of(Choices)
CHOICES = StateType("Choices", FIELDS)


def new_choices(lengths: dict[str, int]) -> Choices:
    """Return the states of absent pages, and of hosts without limits."""
    choices = Choices(*zeros(FIELDS, lengths))
    for name in ("host", "parked", "following", "opening_place", "waiting_place", "newest"):
        getattr(choices, name)[:] = -1
    for name in ("sent", "opens", "held", "retry_at"):
        getattr(choices, name)[:] = -math.inf
    choices.opening[:] = choices.due[:] = math.inf
    choices.most[:] = NO_LIMIT
    choices.event_next[:] = np.arange(1, choices.event_next.size + 1)
    choices.event_next[-1] = -1
    choices.lines["latest_signal"] = choices.lines["latest_copy"] = -math.inf
    return choices


def copy_choices(before: Choices, after: Choices) -> None:
    """Copy the states of pages and hosts to arrays with more room."""
    lines, room, events = before.lines[0], before.status.size, before.event_next.size
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
    if after.event_next.size > events:
        after.event_next[-1], after.lines["free"] = lines["free"], events


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
def waiting_of(choices: Choices) -> IndexedHeap:
    """Return the waiting pages, by the time at which they are ready."""
    return IndexedHeap(choices.due, choices.waiting, choices.waiting_place, choices.waiting_size)


@inlined(forceinline=True)
def opens_at(choices: Choices, host: int) -> float:
    """Return the time from which on a host may be asked."""
    return float(max(choices.opens[host], choices.held[host]))


@inlined(forceinline=True)
def is_free(choices: Choices, host: int) -> bool:
    """Return whether a host has fewer fetches than it may; with a gap that is one, if not said."""
    most = choices.most[host]
    if most == NO_LIMIT and choices.gap[host] > 0.0:
        most = 1
    return bool(choices.busy[host] < most)


@inlined(forceinline=True)
def is_open(choices: Choices, host: int, now: float) -> bool:
    """Return whether a host may be asked."""
    return host < 0 or (opens_at(choices, host) <= now and is_free(choices, host))


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
    """Let a page be chosen again, at the earliest when its wait is over."""
    copy, due = lazy.pages[page].last_crawl, choices.retry_at[page]
    if copy < math.inf:
        due = max(due, copy + choices.least[page])
    if due > now:
        remove(lazy, page)
        choices.status[page] = WAITING
        set_due(waiting_of(choices), page, due)
    elif copy < math.inf:
        choices.status[page] = READY
        add(lazy, value, page, now)
    else:
        wait_in_line(choices, page)


@inlined()
def open_waiting(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Let the pages whose wait is over be chosen."""
    pages = waiting_of(choices)
    while first_due(pages) <= now:
        page = pages.entries[0]
        set_due(pages, page, math.inf)
        make_ready(choices, lazy, value, page, now)


@inlined()
def park(choices: Choices, lazy: LazyArgmax, page: int) -> None:
    """Park a page until its host opens."""
    host = choices.host[page]
    remove(lazy, page)
    choices.status[page] = PARKED
    choices.following[page], choices.parked[host] = choices.parked[host], page
    expect(choices, host)


@inlined()
def expect(choices: Choices, host: int) -> None:
    """Note the time at which a host opens, if pages are parked there."""
    if choices.parked[host] >= 0 and is_free(choices, host):
        set_due(hosts_of(choices), host, opens_at(choices, host))


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
def end_fetch(choices: Choices, page: int, end: float) -> None:
    """Count a fetch of the page's host as ended, whether the page was sent or not."""
    host = choices.host[page]
    if host >= 0:
        if choices.status[page] == SENT:
            choices.busy[host] -= 1
        choices.opens[host] = max(choices.opens[host], end + choices.gap[host])
        expect(choices, host)


@inlined()
def leave_state(choices: Choices, lazy: LazyArgmax, page: int, end: float) -> None:
    """Take a page out of its state; a fetch of it ends at a time."""
    status = choices.status[page]
    if status == SENT:
        end_fetch(choices, page, end)
    elif status == PARKED:
        leave_parking(choices, page)
    elif status == NEW:
        choices.lines[0].waiting -= 1
    elif status == WAITING:
        set_due(waiting_of(choices), page, math.inf)
    remove(lazy, page)
    choices.status[page] = ABSENT


@inlined()
def count_failure(choices: Choices, page: int, end: float, free: int) -> None:
    """Let a page wait after a failure, twice as long each time, but the first ``free`` times."""
    lines = choices.lines[0]
    choices.fails[page] = min(choices.fails[page] + 1, MOST_DOUBLINGS)
    doublings = choices.fails[page] - 1 - free
    if doublings >= 0:
        wait = min(lines.retry * 2.0**doublings, lines.most_retry)
        choices.retry_at[page] = end + wait


@inlined()
def time_out(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Let the pages be chosen again that were sent too long ago; only the first time at once."""
    lines = choices.lines[0]
    while lines.num_sent > 0:
        sent, page = choices.sent_time[lines.first_sent], choices.sent_page[lines.first_sent]
        current = choices.status[page] == SENT and choices.sent[page] == sent
        if current and sent + lines.timeout > now:
            break
        lines.first_sent = (lines.first_sent + 1) % choices.sent_time.shape[0]
        lines.num_sent -= 1
        if current:
            count_failure(choices, page, sent + lines.timeout, 1)
            end_fetch(choices, page, sent + lines.timeout)
            make_ready(choices, lazy, value, page, now)


@inlined()
def correct_clocks(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Put copies and signals that are ahead of the clock to now, and count those far ahead."""
    lines = choices.lines[0]
    if lines.latest_copy > now:
        for page in range(choices.status.shape[0]):
            copy = lazy.pages[page].last_crawl
            if now < copy < math.inf and choices.status[page] not in (ABSENT, GONE):
                lines.ahead += copy > now + lines.skew
                lazy.pages[page].last_crawl = now
                if choices.status[page] == WAITING:
                    set_due(waiting_of(choices), page, math.inf)
                    make_ready(choices, lazy, value, page, now)
        lines.latest_copy = now
    if lines.latest_signal > now:
        for page in range(choices.status.shape[0]):
            event = choices.newest[page]
            while event >= 0:
                if choices.event_latest[event] > now:
                    lines.ahead += choices.event_time[event] > now + lines.skew
                    choices.event_latest[event] = now
                event = choices.event_next[event]
        lines.latest_signal = now


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
    """Return the page to fetch next, or -1; new pages are owed a share of what is handed out."""
    lines, page = choices.lines[0], -1
    credit = lines.credit + (lines.new_share if lines.waiting > 0 else 0.0)
    if credit >= 1.0:
        page = next_new(choices, lazy, now)
    credit = min(credit, 1.0) - (page >= 0)
    if page < 0:
        page = next_ready(choices, lazy, value, now, ranked)
    if page < 0:
        page = next_new(choices, lazy, now)
    if page >= 0:
        lines.credit = credit
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
    correct_clocks(choices, lazy, value, now)
    time_out(choices, lazy, value, now)
    open_hosts(choices, lazy, value, now)
    open_waiting(choices, lazy, value, now)
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
            choices.opens[host] = max(choices.opens[host], now + choices.gap[host])
        if choices.status[page] == READY:
            lines.level = value_at(lazy, value, page, now)
        remove(lazy, page)
        choices.status[page], choices.sent[page] = SENT, now
        pages[count] = page
    return int(pages.shape[0])


@compiled(types.void(types.int64[::1], VALUE, types.float64))
def look(search: IntArray, value: Any, now: float) -> None:
    """Set the bars of the search by the values of all pages."""
    best_page(lazy_at(search), value, now)


@compiled(types.void(types.int64[::1], types.int64[::1], VALUE, types.int64[::1], types.float64))
def admit(table: IntArray, search: IntArray, value: Any, pages: IntArray, now: float) -> None:
    """Let absent pages be chosen, or place ready ones again after a change of any kind."""
    choices, lazy = choices_at(table), lazy_at(search)
    for page in pages:
        if choices.status[page] in (ABSENT, READY, WAITING):
            set_due(waiting_of(choices), page, math.inf)
            make_ready(choices, lazy, value, page, now)
