"""Reading of crawl logs as they come, from one's own crawler or from a web archive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.instances.logs.columns import Wanted
from crawl_envs.instances.logs.crawl_log import CrawlLog, Dropped
from crawl_envs.instances.logs.formats import read_columns
from crawl_envs.instances.logs.observations import EVIDENCE, Observations, distinct_crawls, observed
from crawl_envs.instances.logs.signals import Signals, spread_signals, timed_signals
from crawl_envs.instances.logs.times import MICROSECONDS_PER_DAY

LOG_COLUMNS = re.compile(rf"url|time|status|{'|'.join(EVIDENCE)}|signals(:.+)?")


def read_crawl_log(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,
    events: str | Path | None = None,
) -> CrawlLog:
    """Read a crawl log; rows may be in any order.

    ==================  ==========================================================================
    column              content
    ==================  ==========================================================================
    ``url``             name of the page, any text
    ``time``            ISO 8601 (UTC unless it has a zone), HTTP date, Unix seconds or
                        milliseconds, ``yyyymmddhhmmss``, or a number of days
    ``changed``         whether the content differed from the crawl before: 0, 1, true, false
    ``hash``,           any text; a page changed if it differs from that of the crawl before. One
    ``digest``,         of these three
    ``etag``
    ``last_modified``   time; a page changed if it is after the crawl before and not after this one
    ``status``          HTTP status, optional: 304 is no change; with 404 or 410 the page is gone;
                        any other >= 400 or < 100 observed nothing
    ``signals``,        number of signals since the row before of this page, optional, a source
    ``signals:NAME``    each; they are spread evenly over this time
    ==================  ==========================================================================

    The first column from ``changed`` to ``last_modified`` that is there is the evidence. After a
    better one ``last_modified`` is not read: a crawler learns it by a crawl, so it is no signal
    that could lead to one. A crawl without evidence observed nothing, unless its status is 304, or
    it is the first of its page and needs no text to be compared. The first text after crawls with
    status 304 alone is a change. A page is gone at the first 404 or 410 after the last crawl that
    found it; earlier ones were failures, and a page that was never found is left out.

    Args:
        path: the file; formats are described in :mod:`crawl_envs.instances.logs.formats`.
        columns: names in the file of columns that have other names than above.
        format: ``csv``, ``jsonl``, ``parquet``, ``heritrix``, ``cdx`` or ``cdxj``; None to guess it
            from the extension or the first line.
        events: a CSV, JSON lines or Parquet file of signals with columns ``url``, ``time`` and,
            optional, ``source``.

    Returns:
        The log. Times are days since the first crawl or signal. ``dropped`` counts rows that were
        left out.

    Raises:
        ValueError: a file that is missing, empty or of another format, a missing column, or a value
            that cannot be read, with its line; or no crawl is left.
    """
    wanted = Wanted(LOG_COLUMNS, ("url", "time"), columns or {})
    rows = read_columns(Path(path), wanted, format)
    evidence = next((word for word in EVIDENCE if word in rows), None)
    if evidence is None:
        raise ValueError(
            f"{path}: expected one of the columns {EVIDENCE}, got {list(rows.names.values())}"
        )
    url, times = rows.codes("url"), rows.times("time")
    dated = bool(times.dated[0])
    crawls = distinct_crawls(rows, url.number, times.value)
    spread, timed = spread_signals(rows, crawls), Signals.none()
    found = observed(rows, evidence, crawls, dated)
    if events is not None:
        timed = timed_signals(Path(events), url.texts, dated)
    repeated = set(spread.sources) & set(timed.sources)
    if repeated:
        raise ValueError(f"{events}: source {min(repeated)!r} is also a column of {path}")
    failed = crawls.page.size - found.page.size
    if failed == crawls.page.size:
        raise ValueError(f"{path}: no crawl observed anything, {failed} failed")
    duplicates = rows.num_rows - crawls.page.size + timed.duplicates
    return _log(found, spread, timed, url.texts, dated, Dropped(failed, duplicates))


def _log(
    found: Observations,
    spread: Signals,
    timed: Signals,
    urls: Any,
    dated: bool,
    dropped: Dropped,
) -> CrawlLog:
    """Return the log of the pages that were observed, with times in days since the first."""
    known = np.unique(found.page)
    number = np.full(len(urls) + 1, -1)  # the last one is that of page -1
    number[known] = np.arange(known.size)
    page = number[np.concatenate([spread.page, timed.page])]
    time = np.concatenate([spread.time, timed.time])
    source = np.concatenate([spread.source, timed.source + len(spread.sources)])
    heard = page >= 0
    lost = spread.lost + int((~heard).sum())
    page, time, source = page[heard], time[heard], source[heard]
    start = min(found.time.min(), time.min(initial=np.inf))
    unit = MICROSECONDS_PER_DAY if dated else 1.0
    crawls = np.lexsort((found.page, found.time))
    signals = np.lexsort((source, page, time))
    return CrawlLog(
        urls=urls.take(known).to_numpy(zero_copy_only=False),
        page=number[found.page[crawls]],
        time=(found.time[crawls] - start) / unit,
        changed=found.changed[crawls],
        gone=found.gone[crawls],
        signal_page=page[signals],
        signal_time=(time[signals] - start) / unit,
        signal_source=source[signals],
        sources=(*spread.sources, *timed.sources),
        timed=np.arange(len(spread.sources) + len(timed.sources)) >= len(spread.sources),
        origin=_iso(start) if dated else "",
        dropped=dropped._replace(signals=lost),
    )


def _iso(microseconds: float) -> str:
    """Return a time since 1970 in ISO 8601."""
    date = datetime(1970, 1, 1) + timedelta(microseconds=microseconds)
    return f"{date.isoformat()}Z"
