"""Replay a log with assumed changes: events for environments, and the freshness of its crawls.

A page exists from its first crawl, which makes a fresh copy, until a crawl finds it gone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from crawl_envs.instances.traces.windows import TraceWindow
from crawl_envs.sim.tape import CHANGE, SIGNAL
from crawl_envs.types import FloatArray, IntArray
from policies.live.logs.crawl_log import CrawlLog, crawls_before
from policies.live.logs.imputation import Changes


def lives(log: CrawlLog) -> tuple[FloatArray, FloatArray]:
    """Return each page's birth (its first crawl) and death (a crawl found it gone), (m,) each."""
    birth, death = np.full(log.num_pages, np.inf), np.full(log.num_pages, np.inf)
    np.minimum.at(birth, log.page, log.time)
    np.minimum.at(death, log.page[log.gone], log.time[log.gone])
    return birth, death


def window(log: CrawlLog, changes: Changes, start: float, end: float) -> TraceWindow:
    """Return changes and signals in (start, end] as a tape of events whose time 0 is ``start``.

    A page that exists at ``start`` is alive and fresh at time 0. Signals at the time of a page's
    birth or death are dropped.
    """
    birth, death = lives(log)
    page, time = log.signal_page, log.signal_time
    inside = (time > birth[page]) & (time < death[page])
    kind: IntArray = SIGNAL + 2 * log.signal_source[inside]
    events = ((CHANGE, changes.page, changes.time), (kind, page[inside], time[inside]))
    return TraceWindow.cut(events, birth, death, start, end, max(len(log.sources), 1))


def crawls_within(log: CrawlLog, start: float, end: float) -> IntArray:
    """Return the indices of crawls in (start, end] that could refresh a copy: no first, no gone."""
    birth, _ = lives(log)
    inside = (log.time > start) & (log.time <= end) & (log.time > birth[log.page]) & ~log.gone
    return np.flatnonzero(inside)


def in_turn(
    log: CrawlLog,
    start: float,
    end: float,
    crawls_per_day: float,
    cost: FloatArray | None = None,
) -> tuple[CrawlLog, float]:
    """Return a log with crawls of round robin, and the end of the last time slot.

    First crawls and crawls of gone pages are kept. The crawls of round robin come at even times
    after ``start``, when all copies are fresh. Each fetches the page
    whose last crawl or birth is the oldest (``policies.RoundRobin``); ties go to the first page.
    With the ``cost`` of a crawl of each page, (m,), the next crawl is later in proportion to it.
    """
    birth, death = lives(log)
    since = np.maximum(birth, start)
    waiting, place = np.argsort(since, kind="stable").tolist(), 0
    queue: deque[int] = deque()
    budget, spend, time = (end - start) * crawls_per_day + 1e-9, 0.0, start
    page, times = list[int](), list[float]()
    while 1.0 + spend <= budget:
        time = start + (1.0 + spend) / crawls_per_day
        while place < len(waiting) and since[waiting[place]] <= time:
            queue.append(waiting[place])
            place += 1
        while queue and death[queue[0]] <= time:
            queue.popleft()
        spend += 1.0 if cost is None or not queue else float(cost[queue[0]])
        if queue:
            page.append(queue[0])
            times.append(time)
            queue.rotate(-1)
    bounds = (log.time == birth[log.page]) | log.gone
    all_times = np.append(log.time[bounds], times)
    order = np.argsort(all_times, kind="stable")
    crawls = replace(
        log,
        page=np.append(log.page[bounds], np.array(page, np.int64))[order],
        time=all_times[order],
        gone=np.append(log.gone[bounds], np.zeros(len(page), np.bool_))[order],
        changed=np.zeros(order.size, np.bool_),
    )
    return crawls, time + 1.0 / crawls_per_day


def freshness_served(
    log: CrawlLog, changes: Changes, importance: FloatArray, start: float, end: float
) -> float:
    """Return the freshness in (start, end] that the crawls of the log reach for given changes.

    Freshness is the importance-weighted share of page time in which copies were fresh. All copies
    are assumed fresh at ``start``. The result is NaN if no page existed.

    Args:
        log: the crawls.
        changes: changes of the pages.
        importance: weight of each page, (m,).
        start: first day.
        end: last day.
    """
    birth, death = lives(log)
    begin, over = np.maximum(birth, start), np.minimum(death, end)
    alive = np.flatnonzero(begin < over)
    crawls = crawls_within(log, start, end)
    page = np.concatenate([alive, log.page[crawls]])
    time = np.concatenate([begin[alive], log.time[crawls]])
    order = np.lexsort((time, page))
    page, time = page[order], time[order]
    last = np.append(page[1:] != page[:-1], True)
    until = np.where(last, over[page], np.append(time[1:], 0.0))
    order = np.lexsort((-changes.time, changes.page))
    later = changes.time[order]
    next_change = crawls_before(page, -time, changes.page[order], -later)
    stale = np.minimum(np.append(later, np.inf)[next_change], until)
    fresh = np.bincount(page, stale - time, log.num_pages)
    lived = (over - begin).clip(min=0.0)
    total = float((importance * lived).sum())
    return float((importance * fresh).sum()) / total if total > 0.0 else np.nan
