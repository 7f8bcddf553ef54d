"""The estimates of a log as a table of pages."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import within_domain
from policies.live.adapters import messages
from policies.live.logs import OUTCOMES, CrawlLog, PageTable, hosts_of
from scripts.live.fitting import Fitted


def table_of(log: CrawlLog, importance: FloatArray, fitted: Fitted) -> PageTable:
    """Return the estimates as a table of pages."""
    quality, signals = fitted.quality, bool(log.sources)
    last = np.full(log.num_pages, np.nan)
    np.fmax.at(last, log.page, log.time)
    gone = np.isin(np.arange(log.num_pages), log.page[log.gone])
    missed = (log.history.page >= 0) & (log.history.outcome == OUTCOMES.index("gone"))
    missed[missed] = gone[log.history.page[missed]]  # a page that is gone was last asked then
    np.fmax.at(last, log.history.page[missed], log.history.time[missed])
    counts = np.zeros((len(log.sources), log.num_pages), np.int64)
    since = log.signal_time > last[log.signal_page]
    np.add.at(counts, (log.signal_source[since], log.signal_page[since]), 1)
    if log.origin:
        last += messages.day_of(log.origin)
    return PageTable(
        urls=log.urls,
        importance=importance,
        host=hosts_of(log.urls),
        change_rate=within_domain(quality.change_rate),
        change_rate_low=fitted.low,
        change_rate_high=fitted.high,
        evidence=fitted.evidence,
        gone=gone,
        recall=np.nan_to_num(quality.recall) if signals else None,
        false_signal_rate=within_domain(quality.false_signal_rate) if signals else None,
        signals=counts if signals else None,
        last_crawl=last,
        dated=bool(log.origin),
        sources=log.sources,
    )


def errors_of(log: CrawlLog, fitted: Fitted) -> dict[str, FloatArray]:
    """Return the further columns: the rate by a page's crawls alone, errors, number of crawls."""
    quality = fitted.quality
    columns = {"change_rate_own": fitted.own, "change_rate_stderr": quality.change_rate_stderr}
    for number, source in enumerate(log.sources):
        columns[f"recall_stderr:{source}"] = quality.recall_stderr[number]
        columns[f"false_signal_rate_stderr:{source}"] = quality.false_signal_rate_stderr[number]
    return columns | {"crawls": fitted.crawls.astype(np.float64)}
