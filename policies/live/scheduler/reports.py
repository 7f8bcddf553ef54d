"""Apply the results of fetches, compiled: new copies, failures, and pages that are gone."""

from __future__ import annotations

import math
from typing import Any

from numba import types

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled
from crawl_envs.compiled.heap import set_due
from crawl_envs.compiled.lazy_argmax import lazy_at
from crawl_envs.types import FloatArray, IntArray
from policies.live.scheduler.choices import (
    count_failure,
    end_fetch,
    expect,
    leave_state,
    lose_fetch,
    make_ready,
)
from policies.live.scheduler.signal_log import forget_signals, pass_copy, weight_of
from policies.live.scheduler.states import GONE, PARKED, SENT, WAITING, choices_at, due_pages

_ROWS, _TIMES = types.int64[::1], types.float64[::1]


@compiled(
    types.int64(_ROWS, _ROWS, VALUE, SIGNAL_WEIGHT, _ROWS, _TIMES, _TIMES, _TIMES, types.float64)
)
def give_back(
    table: IntArray,
    search: IntArray,
    value: Any,
    signal_weight: Any,
    pages: IntArray,
    times: FloatArray,
    ends: FloatArray,
    more: FloatArray,
    now: float,
) -> int:
    """Record new copies of pages; return the number of older copies, which are ignored.

    ``times`` are the times of the copies, and ``ends`` the times at which the fetches ended.
    ``more`` is a weight per page that is added to that of the signals after the copy, (n,).
    """
    choices, lazy, ignored = choices_at(table), lazy_at(search), 0
    for position in range(pages.shape[0]):
        page, time = pages[position], times[position]
        status, record = choices.status[page], lazy.pages[page]
        if time <= record.last_crawl < math.inf:
            ignored += 1
            continue
        interval = time - record.last_crawl
        end_fetch(choices, page, ends[position])
        record.last_crawl = time
        choices.lines[0].latest_copy = max(choices.lines[0].latest_copy, time)
        pass_copy(choices, page, time)
        record.counted = weight_of(choices, lazy, signal_weight, page) + more[position]
        choices.fails[page], choices.retry_at[page] = 0, -math.inf
        if status != PARKED:
            if status != SENT:
                leave_state(choices, lazy, page, ends[position])
            make_ready(choices, lazy, value, page, now, interval)
    return ignored


@compiled(
    types.int64(_ROWS, _ROWS, VALUE, _ROWS, _TIMES, _TIMES, _TIMES, types.boolean, types.float64)
)
def fail(
    table: IntArray,
    search: IntArray,
    value: Any,
    pages: IntArray,
    times: FloatArray,
    ends: FloatArray,
    retry_at: FloatArray,
    counts: bool,
    now: float,
) -> int:
    """Record fetches that brought no copy; return the number of older reports, which are ignored.

    Pages wait at least until ``retry_at``. If ``counts``, each fetch is a failure, after which
    its page waits as well; else it counts as lost.
    """
    choices, lazy, ignored = choices_at(table), lazy_at(search), 0
    for position in range(pages.shape[0]):
        page, time = pages[position], times[position]
        if time <= choices.failure_time[page]:
            ignored += 1
            continue
        choices.failure_time[page] = time
        if choices.status[page] != SENT:
            end_fetch(choices, page, ends[position])
        leave_state(choices, lazy, page, ends[position])
        if counts:
            count_failure(choices, page, ends[position])
        else:
            lose_fetch(choices, page, ends[position])
        if not math.isnan(retry_at[position]):
            choices.retry_at[page] = max(choices.retry_at[page], retry_at[position])
        make_ready(choices, lazy, value, page, now)
    return ignored


@compiled(types.void(_ROWS, _ROWS, _ROWS, _TIMES, types.float64))
def dismiss(
    table: IntArray, search: IntArray, pages: IntArray, ends: FloatArray, until: float
) -> None:
    """Mark pages in any state as gone until a time; if the time is -inf, remove them."""
    choices, lazy = choices_at(table), lazy_at(search)
    for position in range(pages.shape[0]):
        page = pages[position]
        leave_state(choices, lazy, page, ends[position])
        forget_signals(choices, page)
        choices.failure_time[page] = -math.inf
        if until > -math.inf:
            count_failure(choices, page, ends[position])
            choices.status[page] = GONE
            set_due(due_pages(choices), page, until)
        else:
            choices.fails[page], choices.retry_at[page] = 0, -math.inf
            choices.least[page] = 0.0


@compiled(types.void(_ROWS, _ROWS, VALUE, _ROWS, types.boolean, types.float64))
def revive(
    table: IntArray, search: IntArray, value: Any, pages: IntArray, waits: bool, now: float
) -> None:
    """Bring gone pages back, after a wait if ``waits``; end the failures and waits of others."""
    choices, lazy = choices_at(table), lazy_at(search)
    for page in pages:
        status = choices.status[page]
        if status != GONE:
            choices.fails[page] = 0
        if status != GONE or not waits:
            choices.retry_at[page] = -math.inf
        if status in (GONE, WAITING):
            leave_state(choices, lazy, page, now)
            make_ready(choices, lazy, value, page, now)


@compiled(types.void(_ROWS))
def reopen(table: IntArray) -> None:
    """Schedule the opening times of all hosts with parked pages again, after limits changed."""
    choices = choices_at(table)
    for host in range(choices.gap.shape[0]):
        expect(choices, host)
