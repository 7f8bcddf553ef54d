"""Plain counterparts of what is computed from a crawl log."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from policies.live.logs.crawl_log import CrawlLog
from policies.live.logs.imputation import Changes


def make_log(
    crawls: list[tuple[int, float, bool]],
    signals: list[tuple[int, float, int]] = [],  # noqa: B006
    *,
    num_pages: int,
    num_sources: int = 0,
    gone: set[tuple[int, float]] = frozenset(),  # type: ignore[assignment]
) -> CrawlLog:
    """Return a log of crawls (page, time, changed) and signals (page, time, source)."""
    crawls = sorted(crawls, key=lambda crawl: crawl[1])
    signals = sorted(signals, key=lambda signal: signal[1])
    return CrawlLog(
        urls=np.array([f"https://a.example/{page}" for page in range(num_pages)], np.object_),
        page=np.array([crawl[0] for crawl in crawls], np.int64),
        time=np.array([crawl[1] for crawl in crawls], np.float64),
        changed=np.array([crawl[2] for crawl in crawls], np.bool_),
        gone=np.array([(crawl[0], crawl[1]) in gone for crawl in crawls], np.bool_),
        signal_page=np.array([signal[0] for signal in signals], np.int64),
        signal_time=np.array([signal[1] for signal in signals], np.float64),
        signal_source=np.array([signal[2] for signal in signals], np.int64),
        sources=tuple(f"source {number}" for number in range(num_sources)),
        timed=np.ones(num_sources, np.bool_),
    )


def crawl_times(log: CrawlLog, page: int) -> list[float]:
    """Return the times of a page's crawls."""
    return [float(t) for p, t in zip(log.page, log.time, strict=True) if p == page]


def change_times(changes: Changes, page: int) -> list[float]:
    """Return the times of a page's changes."""
    return [float(t) for p, t in zip(changes.page, changes.time, strict=True) if p == page]


def freshness(
    log: CrawlLog, changes: Changes, importance: np.ndarray, start: float, end: float
) -> float:
    """Return the weighted share of the pages' time in (start, end] with a current copy."""
    fresh = lived = 0.0
    for page, weight in enumerate(importance):
        crawls = crawl_times(log, page)
        if not crawls:
            continue
        dead = [
            float(t)
            for p, t, gone in zip(log.page, log.time, log.gone, strict=True)
            if p == page and gone
        ]
        begin, over = max(crawls[0], start), min([*dead, end])
        if begin >= over:
            continue
        moments = [begin, *(t for t in crawls if begin < t < over), over]
        for copied, until in pairwise(moments):
            later = [t for t in change_times(changes, page) if copied < t <= until]
            fresh += weight * (min([*later, until]) - copied)
        lived += weight * (over - begin)
    return fresh / lived
