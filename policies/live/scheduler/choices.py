"""Compiled choices of a live scheduler: which pages are fetched next.

Ready pages are found by :mod:`crawl_envs.compiled.lazy_argmax`, new ones wait in line. A share of
the fetches goes to new pages while there are any. Pages that are due by promises come before both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import VALUE, compiled, inlined
from crawl_envs.compiled.heap import first_due, set_due
from crawl_envs.compiled.lazy_argmax import (
    LazyArgmax,
    add,
    best_page,
    lazy_at,
    lower_bars,
    pass_time,
    remove,
    value_at,
)
from crawl_envs.compiled.promises import DUE
from crawl_envs.types import IntArray
from policies.live.scheduler.states import (
    ABSENT,
    GONE,
    LINE,
    NEW,
    NO_LIMIT,
    PARKED,
    READY,
    SENT,
    WAITING,
    Choices,
    choices_at,
    due_pages,
    join_queue,
    leave_queue,
    opening_hosts,
)

MIN_RANKED = 8
"""Least number of pages of one batch for which the best pages are sorted in one pass."""
MOST_DOUBLINGS = 60
ROUNDING = 1e-3
"""Share of the timeout by which the times of reports may be rounded down."""


@inlined(forceinline=True)
def opens_at(choices: Choices, host: int) -> float:
    """Return the time from which on a host's gap and hold allow a fetch."""
    return float(max(choices.opens[host], choices.held[host]))


@inlined(forceinline=True)
def is_free(choices: Choices, host: int) -> bool:
    """Return whether a host may have one more fetch at once; a gap without a limit allows one."""
    max_fetches = choices.most[host]
    if max_fetches == NO_LIMIT and choices.gap[host] > 0.0:
        max_fetches = 1
    return bool(choices.busy[host] < max_fetches)


@inlined(forceinline=True)
def is_open(choices: Choices, host: int, now: float) -> bool:
    """Return whether a page of a host may be fetched now; host -1 has no limits."""
    return host < 0 or (opens_at(choices, host) <= now and is_free(choices, host))


@inlined()
def make_ready(
    choices: Choices, lazy: LazyArgmax, value: Any, page: int, now: float, guess: float = 0.0
) -> None:
    """Enter a page into the search for the best page, or let it wait until it may be fetched.

    ``guess`` is a guess of the time until the page is chosen, 0 for none.
    """
    copy, due = lazy.pages[page].last_crawl, choices.retry_at[page]
    if copy < math.inf:
        due = max(due, copy + choices.least[page])
    waits = due > now
    set_due(due_pages(choices), page, due if waits else math.inf)
    if waits:
        remove(lazy, page)
        choices.status[page] = WAITING
    elif copy < math.inf:
        choices.status[page] = READY
        add(lazy, value, page, now, guess)
    else:
        choices.status[page] = NEW
        join_queue(choices, page, LINE)
        choices.lines[0].num_new += 1


@inlined()
def pass_due_times(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Process the times that have passed: lost fetches, ended waits, and gone pages to forget.

    A page whose fetch is lost is ready at once if nothing failed since its copy; else it waits.
    """
    pages = due_pages(choices)
    while first_due(pages) <= now:
        page = pages.entries[0]
        end = choices.due[page]
        if choices.status[page] == GONE:
            set_due(pages, page, math.inf)
            choices.lines[0].num_forgotten += 1
            continue
        if choices.status[page] == SENT:
            lose_fetch(choices, page, end)
            end_fetch(choices, page, end)
        make_ready(choices, lazy, value, page, now)


@inlined()
def park(choices: Choices, lazy: LazyArgmax, page: int) -> None:
    """Take a page out of the search until its host may be fetched from."""
    host = choices.host[page]
    remove(lazy, page)
    choices.status[page] = PARKED
    join_queue(choices, page, host + 1)
    expect(choices, host)


@inlined()
def expect(choices: Choices, host: int) -> None:
    """Schedule the time at which a host opens, if the host has parked pages."""
    if choices.first[host + 1] >= 0 and is_free(choices, host):
        set_due(opening_hosts(choices), host, opens_at(choices, host))


@inlined()
def open_hosts(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Bring the parked pages of all hosts that have opened by now back into the search."""
    hosts = opening_hosts(choices)
    while first_due(hosts) <= now:
        host = hosts.entries[0]
        set_due(hosts, host, math.inf)
        while choices.first[host + 1] >= 0:
            page = choices.first[host + 1]
            leave_queue(choices, page, host + 1)
            make_ready(choices, lazy, value, page, now)


@inlined()
def end_fetch(choices: Choices, page: int, end: float) -> None:
    """Count a fetch of a page's host as ended at a time, whether the page was handed out or not."""
    host = choices.host[page]
    if host >= 0:
        if choices.status[page] == SENT:
            choices.busy[host] -= 1
        choices.opens[host] = max(choices.opens[host], end + choices.gap[host])
        expect(choices, host)


@inlined()
def leave_line(choices: Choices, page: int) -> None:
    """Take a new page out of the queue of new pages."""
    leave_queue(choices, page, LINE)
    choices.lines[0].num_new -= 1


@inlined()
def leave_state(choices: Choices, lazy: LazyArgmax, page: int, end: float) -> None:
    """Make a page absent, whatever its state; if it was handed out, its fetch ends at ``end``."""
    status = choices.status[page]
    if status == SENT:
        end_fetch(choices, page, end)
    elif status == PARKED:
        leave_queue(choices, page, choices.host[page] + 1)
    elif status == NEW:
        leave_line(choices, page)
    set_due(due_pages(choices), page, math.inf)
    remove(lazy, page)
    choices.status[page] = ABSENT


@inlined()
def count_failure(choices: Choices, page: int, end: float) -> None:
    """Count a failure of a page; its wait from ``end`` doubles with each failure in a row."""
    lines = choices.lines[0]
    choices.fails[page] = min(choices.fails[page] + 1, MOST_DOUBLINGS)
    wait = min(lines.retry * 2.0 ** (choices.fails[page] - 1), lines.most_retry)
    choices.retry_at[page] = end + wait


@inlined()
def lose_fetch(choices: Choices, page: int, end: float) -> None:
    """Count a lost fetch as a failure, except the first one since the page's copy."""
    if choices.retry_at[page] == -math.inf:
        choices.retry_at[page] = end
    else:
        count_failure(choices, page, end)


@inlined()
def correct_clocks(choices: Choices, lazy: LazyArgmax, value: Any, now: float) -> None:
    """Set future times of copies and signals to now; count those ahead by more than the skew."""
    lines = choices.lines[0]
    if lines.latest_copy > now:
        for page in range(choices.status.shape[0]):
            copy = lazy.pages[page].last_crawl
            if now < copy < math.inf and choices.status[page] != ABSENT:
                lines.ahead += copy > now + lines.skew
                lazy.pages[page].last_crawl = now
                if choices.status[page] == WAITING:
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
    """Return the first new page whose host is open, or -1; park the new pages before it."""
    while choices.first[LINE] >= 0:
        page = choices.first[LINE]
        leave_line(choices, page)
        if is_open(choices, choices.host[page], now):
            return int(page)
        park(choices, lazy, page)
    return -1


@inlined()
def rank(lazy: LazyArgmax, value: Any, now: float, ranked: IntArray, span: IntArray) -> None:
    """Write the pages whose value reaches the search's top bar to ``ranked``, best first."""
    bar = lazy.levels[0].bar
    pages = np.sort(lazy.members[: lazy.levels[0].end])  # the lowest is first among equal values
    values = np.empty(pages.shape[0])
    for place in range(pages.shape[0]):
        values[place] = value_at(lazy, value, pages[place], now)
    lazy.search[0].choosing += pages.shape[0]
    span[:] = 0
    for place in np.argsort(-values, kind="mergesort"):
        if values[place] >= bar:
            ranked[span[1]] = pages[place]
            span[1] += 1


@inlined()
def next_ranked(lazy: LazyArgmax, value: Any, now: float, ranked: IntArray, span: IntArray) -> int:
    """Return the best page not yet taken, or -1; ``span`` bounds the rest of ``ranked``."""
    while span[0] == span[1] and lazy.levels[0].bar > -math.inf:
        lower_bars(lazy, value, now)
        rank(lazy, value, now, ranked, span)
    if span[0] == span[1]:
        return -1
    span[0] += 1
    lazy.search[0].choices += 1
    return int(ranked[span[0] - 1])


@inlined()
def next_ready(
    choices: Choices, lazy: LazyArgmax, value: Any, now: float, ranked: IntArray, span: IntArray
) -> int:
    """Return the best page whose host is open, or -1; park better pages of closed hosts.

    ``ranked`` has the pages sorted so far; if it has length 0, each page is searched for.
    """
    while True:
        if ranked.shape[0] == 0:
            page = best_page(lazy, value, now)
        else:
            page = next_ranked(lazy, value, now, ranked, span)
        if page < 0 or is_open(choices, choices.host[page], now):
            return int(page)
        park(choices, lazy, page)


@inlined()
def choose(
    choices: Choices, lazy: LazyArgmax, value: Any, now: float, ranked: IntArray, span: IntArray
) -> int:
    """Return the page to fetch next, or -1; new pages get their share of all fetches."""
    lines, page, new = choices.lines[0], -1, -1
    credit = lines.credit + (lines.new_share if lines.num_new > 0 else 0.0)
    if lazy.promises.shape[0] > 0 and lines.num_new > 0:
        page = next_ready(choices, lazy, value, now, ranked, span)
        if page >= 0 and value_at(lazy, value, page, now) < DUE:
            span[0] -= ranked.shape[0] > 0  # it stays the next one
            page = -1
    if page < 0 and credit >= 1.0:
        page = new = next_new(choices, lazy, now)
    credit = min(credit, 1.0) - (new >= 0)
    if page < 0:
        page = next_ready(choices, lazy, value, now, ranked, span)
    if page < 0:
        page = next_new(choices, lazy, now)
    if page >= 0:
        lines.credit = credit
    return page


@inlined()
def send(choices: Choices, lazy: LazyArgmax, page: int, now: float) -> None:
    """Mark a page as handed out now; count the fetch for its host's limits, and if it is late."""
    host = choices.host[page]
    if choices.promises.shape[0] > 0:
        late = now - (lazy.pages[page].last_crawl + choices.most_interval[page])
        choices.promises[0].late_fetches += late > 0.0
        choices.promises[0].most_late = max(choices.promises[0].most_late, late)
    if host >= 0:
        choices.busy[host] += 1
        choices.opens[host] = max(choices.opens[host], now + choices.gap[host])
    remove(lazy, page)
    choices.status[page] = SENT
    set_due(due_pages(choices), page, now + choices.lines[0].timeout)


@inlined(forceinline=True)
def pay(choices: Choices, page: int, now: float) -> float:
    """Return the expected cost of a page's fetch, and note it; 0 where fetches have no costs."""
    if choices.paid_cost.shape[0] == 0:
        return 0.0
    if choices.paid_cost[page] > 0.0:
        lines = choices.lines[0]
        choices.lost_until[page] = now - lines.skew - ROUNDING * lines.timeout
        choices.lost_cost[page] += choices.paid_cost[page]
        choices.lost_fetches[page] += 1
    choices.paid_cost[page] = choices.cost[page]
    return float(choices.paid_cost[page])


@compiled(
    types.int64(
        *(types.int64[::1], types.int64[::1], VALUE, types.float64, types.int64[::1], types.float64)
    )
)
def take(
    table: IntArray, search: IntArray, value: Any, now: float, pages: IntArray, balance: float
) -> int:
    """Write the pages to fetch at a time to ``pages``, best first, and return their number.

    No further page is taken when those before cost more than ``balance``.
    """
    choices, lazy = choices_at(table), lazy_at(search)
    correct_clocks(choices, lazy, value, now)
    pass_due_times(choices, lazy, value, now)
    open_hosts(choices, lazy, value, now)
    count, many = pages.shape[0], pages.shape[0] >= MIN_RANKED
    ranked, span = np.empty(choices.status.shape[0] if many else 0, np.int64), np.zeros(2, np.int64)
    lazy.search[0].batch = max(count, lazy.search[0].batch - lazy.search[0].batch // 4)
    if many:
        pass_time(lazy, value, now)
        rank(lazy, value, now, ranked, span)
    number, last, spend = 0, -1, 0.0
    while number < count and spend <= balance:
        page = choose(choices, lazy, value, now, ranked, span)
        if page < 0:
            break
        if choices.status[page] == READY:
            last = page
        send(choices, lazy, page, now)
        spend += pay(choices, page, now)
        pages[number] = page
        number += 1
    if last >= 0 and value_at(lazy, value, last, now) < DUE:
        choices.lines[0].level = value_at(lazy, value, last, now)
    return number


@compiled(types.float64(types.int64[::1], types.int64[::1], VALUE, types.float64, types.int64))
def value_now(table: IntArray, search: IntArray, value: Any, now: float, page: int) -> float:
    """Return a page's crawl value; inf without a copy, NaN if it may not be fetched now."""
    choices, lazy = choices_at(table), lazy_at(search)
    correct_clocks(choices, lazy, value, now)
    pass_due_times(choices, lazy, value, now)
    open_hosts(choices, lazy, value, now)
    status = choices.status[page]
    if status not in (READY, NEW) or not is_open(choices, choices.host[page], now):
        return math.nan
    return math.inf if status == NEW else value_at(lazy, value, page, now)


@compiled(types.void(types.int64[::1], types.int64[::1], types.float64, types.int64))
def hand_out(table: IntArray, search: IntArray, now: float, page: int) -> None:
    """Hand out one page, which must be ready or new and whose host must be open."""
    choices, lazy = choices_at(table), lazy_at(search)
    if choices.status[page] == NEW:
        leave_line(choices, page)
    send(choices, lazy, page, now)
    pay(choices, page, now)


@compiled(types.void(types.int64[::1], VALUE, types.float64))
def look(search: IntArray, value: Any, now: float) -> None:
    """Set the bars of the search by evaluating all pages."""
    best_page(lazy_at(search), value, now)


@compiled(types.void(types.int64[::1], types.int64[::1], VALUE, types.int64[::1], types.float64))
def admit(table: IntArray, search: IntArray, value: Any, pages: IntArray, now: float) -> None:
    """Enter absent pages into the search, or pages that are ready or wait again after a change."""
    choices, lazy = choices_at(table), lazy_at(search)
    for page in pages:
        if choices.status[page] in (ABSENT, READY, WAITING):
            make_ready(choices, lazy, value, page, now)
