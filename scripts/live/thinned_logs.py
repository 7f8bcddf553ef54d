"""Logs of crawlers that visited recorded sites: what is left of a record if pages are crawled."""

from __future__ import annotations

import numpy as np

from crawl_envs.instances.traces import Trace
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.logs.crawl_log import CrawlLog, crawls_before
from policies.live.logs.imputation import Changes

SCHEDULES = ("regular", "Poisson")


def thinned_log(
    trace: Trace, days_per_crawl: float, schedule: str, rng: np.random.Generator
) -> tuple[CrawlLog, Changes]:
    """Return a log of crawls of a recorded site, and the true changes between them.

    Pages are crawled first when they are created, and then at even intervals from a random first
    one on, or after exponential times, until a crawl finds them gone. Mentions are signals.

    Args:
        trace: the record.
        days_per_crawl: mean days between crawls of a page.
        schedule: ``regular`` or ``Poisson``.
        rng: source of randomness.
    """
    born = np.maximum(trace.created, 0.0)
    page, time = _visits(born, trace.days, days_per_crawl, schedule, rng)
    late = time >= trace.deleted[page]
    order = np.lexsort((time, page))
    page, time, late = page[order], time[order], late[order]
    first = np.append(True, page[1:] != page[:-1])
    kept = ~late | first | ~np.append(False, late[:-1])
    page, time, gone = page[kept], time[kept], late[kept]
    after = trace.change_time > born[trace.change_page]
    true = Changes(trace.change_page[after], trace.change_time[after])
    changed = changes_found(page, time, true) & ~gone
    order = np.argsort(time, kind="stable")
    log = CrawlLog(
        urls=np.array([str(number) for number in range(born.size)], np.object_),
        page=page[order],
        time=time[order],
        changed=changed[order],
        gone=gone[order],
        signal_page=trace.mention_page,
        signal_time=trace.mention_time,
        signal_source=np.zeros(trace.mention_page.size, np.int64),
        sources=("mentions",),
        timed=np.ones(1, np.bool_),
    )
    return log, true


def _visits(
    born: FloatArray, days: float, days_per_crawl: float, schedule: str, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return pages and times of all visits until the end of the record."""
    page = [np.arange(born.size)]
    time = [born]
    step = rng.random(born.size) * days_per_crawl
    while True:
        if schedule != "regular":
            step = rng.exponential(days_per_crawl, page[-1].size)
        following = time[-1] + step
        alive = following <= days
        if not alive.any():
            return np.concatenate(page), np.concatenate(time)
        page.append(page[-1][alive])
        time.append(following[alive])
        step = np.full(page[-1].size, days_per_crawl)


def changes_found(page: IntArray, time: FloatArray, true: Changes) -> BoolArray:
    """Return whether each crawl, sorted by page and time, is the first after a change."""
    before = crawls_before(true.page, true.time, page, time)
    after_change = np.zeros(page.size + 1, np.bool_)
    after_change[before[before >= 0] + 1] = True
    return after_change[:-1] & (np.diff(page, prepend=-1) == 0)
