"""Read the crawl log of a crawler or of a web archive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import one_of, real, share
from policies.live.logs.columns import ABSENT, Columns, Wanted, aliases
from policies.live.logs.costs import note_candidates, note_costs, read_costs
from policies.live.logs.crawl_log import OUTCOMES, CrawlLog, Dropped, History
from policies.live.logs.formats import read_columns
from policies.live.logs.observations import (
    CHANGED,
    EVIDENCE,
    NO_EVIDENCE,
    REDIRECTED,
    Crawls,
    distinct_crawls,
    evidence_of,
    leave_out_records,
    observed,
    shared_digests,
    status_of_revisits,
)
from policies.live.logs.signals import Signals, place, signal_counts, spread_signals, with_events
from policies.live.logs.times import MICROSECONDS_PER_DAY, TIME_UNITS, Times
from policies.live.logs.urls import Pages, pages_of

EPOCH = datetime(1970, 1, 1)
LOG_COLUMNS = re.compile(
    rf"url|time|status|status_code|{'|'.join(EVIDENCE)}|redirect|urlkey|mime|truncated|signals(:.+)?"
)
ALIASES = (
    aliases(
        url="original",
        time="timestamp fetchtime",
        status_code="statuscode fetchstatus httpstatus httpstatuscode responsestatus responsecode",
        hash="contenthash",
        digest="contentdigest",
        last_modified="lastmodified",
        urlkey="urlsurtkey",
        redirect="location",
        mime="mimetype contenttype contentmimetype",
        truncated="contenttruncated warctruncated",
    ),
    aliases(
        url="uri pageurl crawlurl warctargeturi",
        time="fetchedat fetchdate crawltime crawltimestamp crawldate crawledat crawledon scrapedat "
        "retrievedat capturedat visitedat checkedat downloadedat warcdate",
        status_code="httpcode",
        changed="ischanged haschanged contentchanged",
        hash="bodyhash bodymd5 bodysha256 contentmd5 contentsha1 contentsha256 contentchecksum",
        digest="payloaddigest warcpayloaddigest",
        last_modified="httplastmodified",
        redirect="redirecturl fetchredirect",
    ),
    aliases(url="loc address link page", time="ts date datetime", hash="checksum"),
)
"""Names of CDX servers, of Common Crawl's tables, of fields of HTTP and WARC, and of crawlers; then
others, that mean something else where these are there too."""


def read_crawl_log(
    path: str | Path | Sequence[str | Path],
    *,
    columns: Mapping[str, str] | None = None,
    cost: str | None = None,
    format: str | None = None,
    events: str | Path | None = None,
    event_columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    clock_tolerance: float = 60.0,
    max_bad: float = 0.01,
    merge_schemes: bool = False,
    merge_www: bool = False,
) -> CrawlLog:
    """Read a crawl log; rows may be in any order, and in several files.

    - ``url``: URL of the page, or any name, in UTF-8; ``time``: its date and time, or a number
    - ``changed``: whether the content differed from the crawl before: a text of ``FLAGS``
    - ``hash``, ``digest`` or ``etag``: any text; a page changed if its value differs from that of
      the crawl before, see :func:`policies.live.logs.observations.canonical`
    - ``last_modified``: a time; a page changed if it is later than the crawl before, up to
      ``clock_tolerance``, and unlike the last one of the page
    - ``status``, ``status_code``: HTTP status, optional; of both that of numbers: 304 is no change;
      with 404 or 410 the page is gone; another 3xx is a redirect, which is no content; any other
      >= 400 or < 100 observed nothing
    - ``redirect``, ``urlkey``, ``mime``, ``truncated``: target of a redirect, key of a web archive,
      MIME type, and why the content is a part, whose digest is no evidence; all optional
    - ``signals``, ``signals:NAME``: number of signals since the row before of this page, optional,
      a source each; they are spread evenly over this time

    Names may be in any case, or those of ``ALIASES``; other columns are noted, and not read. An
    empty value, or another text of ``ABSENT``, is none. Of the rows of a page at one time one
    counts: content before 404 and 410, redirects and failures.

    **Evidence.** The first column from ``changed`` to ``last_modified`` that has a value is used. A
    crawl without evidence observed nothing, unless its status is 304, or it is the first of its
    page and needs no text to be compared. The first text after crawls with status 304 alone is a
    change. A page is gone at the first 404 or 410 after the last crawl that found it; earlier ones
    were failures, and a page that was never found is left out.

    **Times** are those of :mod:`policies.live.logs.times`, in UTC without a zone. The stamps of
    archives (CDX, CDXJ, or ``timestamp`` beside ``urlkey``) are never anything else. A date without
    a time is noon of a crawl, the end of the day of ``last_modified``, and an unknown time of this
    day of a signal: ``signal_day``. A ``last_modified`` that cannot be read, or is later than its
    crawl by more than ``clock_tolerance``, is no evidence.

    **Pages.** URLs are one page if they have one key of an archive, else if they are equivalent by
    :func:`policies.live.urls.normal_url`. A page has the name of its latest row.

    Args:
        path: the file, or several with the same columns.
        columns: names in the file of columns that have other names than above; the name of a value
            in a JSON object has a dot, ``hash.body_md5``; an empty name for a column not to read.
        cost: name in the file of the column with the cost of each fetch, such as its bytes; None
            to read no costs. A missing value is unknown.
        format: one of :mod:`policies.live.logs.formats`; None to guess it from the first line or
            the extension.
        events: a CSV, JSON lines or Parquet file of signals with columns ``url``, ``time`` and,
            optional, ``source``, or the names in ``EVENT_ALIASES``.
        event_columns: names in this file of columns that have other names, as ``columns``.
        time_unit: unit of bare numbers in columns ``time``, one of ``TIME_UNITS``: ``days``, a unit
            since 1970, or ``stamp``, yyyymmddhhmmss or its beginning; None to guess it.
        clock_tolerance: seconds that the clocks of servers and crawler may differ, >= 0.
        max_bad: largest share of rows that may be left out as they cannot be read, 0 to 1; one row
            may be unless it is 0.
        merge_schemes: whether http and https are one page where there is no key.
        merge_www: whether hosts with and without ``www.`` are.

    Returns:
        The log, in days since the first crawl or signal. ``dropped`` counts what was left out,
        ``history`` has all fetches, and ``notes`` say what was guessed, merged or left out.

    Raises:
        ValueError: a file that is missing, empty or of another format, a missing column, too many
            rows that cannot be read, with the line of the first; no crawl, or no cost above 0, is
            left.
    """
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    if not paths:
        raise ValueError(f"path must be a file or some files, got {path!r}")
    if time_unit is not None:
        one_of("time_unit", time_unit, TIME_UNITS)
    if event_columns and events is None:
        raise ValueError("event_columns (--event-column) needs events (--events), got none")
    tolerance, bad = real("clock_tolerance", clock_tolerance, least=0.0), share("max_bad", max_bad)
    wanted = Wanted(LOG_COLUMNS, ("url", "time"), columns or {}, ALIASES, ABSENT, bad)
    if cost is not None:
        wanted = wanted.with_option("cost", cost)
    rows = read_columns(paths, wanted, format)
    present = [word for word in EVIDENCE if word in rows]
    if not present:
        got = list(rows.present or rows.names.values())
        expected = f"expected one of the columns {EVIDENCE}, got {got}"
        raise ValueError(f"{paths[0]}: {expected}{wanted.way_out('hash', needed=True)}")
    filled = [word for word in present if rows.text(word).null_count < rows.num_rows]
    evidence = (filled or present)[0]
    if (name := rows.names[evidence]) not in wanted.columns.values() and wanted.word(name)[1]:
        ignored = [rows.names[word] for word in present if word not in (evidence, "last_modified")]
        rows.notes += [f"changes are those of column {name!r}, not of {ignored}"] * bool(ignored)
    rows.note_others()
    if cost is None:
        note_candidates(rows)
    leave_out_records(rows)
    times, dated = _times(rows, time_unit)
    status, counts = np.full(rows.num_rows, np.nan), signal_counts(rows)
    if "status" in rows:
        status = rows.numbers("status", "an HTTP status or a negative number")
    paid = None if cost is None else read_costs(rows)
    content = evidence_of(rows, evidence, times, status, dated, tolerance)
    rows.check("url", rows.codes("url", optional=True).number < 0, "text")
    rows.settle()
    pages = pages_of(rows, times.value, merge_schemes, merge_www)
    status = status_of_revisits(rows, content, pages.number, times.value, status)
    crawls = distinct_crawls(pages.number, times.value, status, rows.good)
    outcome, gone = observed(content, crawls)
    count = dict(zip(OUTCOMES, np.bincount(outcome, minlength=len(OUTCOMES)), strict=True))
    if not count["first"]:
        what = ", ".join(f"{number} {name}" for name, number in count.items() if number)
        raise ValueError(f"{paths[0]}: no crawl observed anything, {what or 'no response'}")
    rows.notes += shared_digests(content, crawls, outcome)
    signals = spread_signals(*counts, crawls)
    if events is not None:
        names = event_columns or {}
        signals = with_events(signals, Path(events), pages, dated, time_unit, rows, names)
    return _log(rows, pages, crawls, outcome, gone, signals, dated, paid)


def _times(rows: Columns, unit: str | None) -> tuple[Times, bool]:
    """Read the times of rows, noon for a bare date; return them and whether they are dates."""
    times = rows.times("time", unit=unit or ("stamp" if rows.stamped else None))
    times.whole_day[:] &= not rows.stamped
    rows.note("crawls with a date alone, taken at noon (UTC)", times.whole_day & rows.good)
    value = times.value + 0.5 * MICROSECONDS_PER_DAY * times.whole_day
    return times._replace(value=value), bool(times.dated[rows.good].any())


def _log(
    rows: Columns,
    pages: Pages,
    crawls: Crawls,
    outcome: NDArray[np.int8],
    gone: BoolArray,
    signals: Signals,
    dated: bool,
    paid: FloatArray | None,
) -> CrawlLog:
    """Build the crawl log of the pages that were found at least once."""
    mask = (outcome <= CHANGED) | gone
    crawled_pages = np.unique(crawls.page[mask])
    number = np.full(pages.urls.size + 1, -1)  # the last one is that of page -1
    number[crawled_pages] = np.arange(crawled_pages.size)
    of_known = number[signals.page] >= 0
    page, time = number[signals.page[of_known]], signals.time[of_known]
    source, dates = signals.source[of_known], signals.whole_day[of_known]
    signals = signals._replace(lost=signals.lost + int(np.count_nonzero(~of_known)))
    dropped = _left_out(rows, crawls, outcome, mask, signals)
    start = min(crawls.time[mask].min(), time.min(initial=np.inf))
    unit = MICROSECONDS_PER_DAY if dated else 1.0
    crawls = crawls._replace(page=number[crawls.page], time=(crawls.time - start) / unit)
    crawled, changed, time = crawls.subset(mask), outcome[mask] == CHANGED, (time - start) / unit
    day = np.where(dates, time, np.nan)
    if dates.any():
        time[dates] = place(page[dates], day[dates], crawled.page, crawled.time, changed)
    in_time, order = np.lexsort((crawled.page, crawled.time)), np.lexsort((source, page, time))
    redirected, redirect = _redirects(rows, pages, crawls, outcome, number)
    rows.note("signals with a date alone, at an unknown time of this day", dates)
    history = np.argsort(crawls.time, kind="stable")
    cost = None if paid is None else paid[crawls.row]
    cost_unit = "" if cost is None else note_costs(rows, cost)
    return CrawlLog(
        urls=pages.urls[crawled_pages],
        page=crawled.page[in_time],
        time=crawled.time[in_time],
        changed=changed[in_time],
        gone=gone[mask][in_time],
        signal_page=page[order],
        signal_time=time[order],
        signal_source=source[order],
        sources=signals.sources,
        timed=np.arange(len(signals.sources)) >= signals.counted,
        origin=f"{(EPOCH + timedelta(microseconds=start)).isoformat()}Z" if dated else "",
        dropped=dropped,
        signal_day=day[order],
        redirect=redirect,
        redirected=redirected,
        history=History(
            *(crawls.page[history], crawls.time[history], outcome[history]),
            cost=None if cost is None else cost[history],
        ),
        of_archive=rows.stamped,
        cost=None if cost is None else cost[mask][in_time],
        unit=cost_unit,
        notes=tuple(rows.notes),
    )


def _redirects(
    rows: Columns, pages: Pages, crawls: Crawls, outcome: NDArray[np.int8], number: IntArray
) -> tuple[BoolArray, NDArray[np.object_]]:
    """Return whether the last fetch of each page was redirected elsewhere, and the last target.

    ``number`` has the number in the log of each of ``pages``, -1 for a page that is left out.
    """
    moved = outcome == REDIRECTED
    redirected, target = np.zeros(number.size, np.bool_), np.full(number.size, "", np.object_)
    if "redirect" in rows:
        texts = rows.words("redirect", optional=True)[crawls.row]
        targeted = np.flatnonzero(moved & (texts != ""))
        elsewhere = number[pages.find(texts[targeted])] != crawls.page[targeted]
        moved[targeted] = elsewhere
        target[crawls.page[targeted[elsewhere]]] = texts[targeted[elsewhere]]
    redirected[crawls.page] = moved  # crawls are sorted: the last one of a page stays
    m = number.max() + 1
    return redirected[:m], target[:m]


def _left_out(
    rows: Columns, crawls: Crawls, outcome: NDArray[np.int8], mask: BoolArray, signals: Signals
) -> Dropped:
    """Count what was left out of the log, and add a note on it."""
    silent, redirected = (int((outcome == kind).sum()) for kind in (NO_EVIDENCE, REDIRECTED))
    dropped = Dropped(
        failed=int(np.count_nonzero(~mask)) - redirected,
        duplicates=int(np.count_nonzero(rows.good)) - mask.size + signals.duplicates,
        signals=signals.lost,
        redirected=redirected,
        unreadable=rows.bad.count,
        absent=np.unique(crawls.page).size - np.unique(crawls.page[mask]).size,
    )
    failed = dropped.failed - silent
    counted = {
        "fetches that failed, or found a page missing before it was found or again": failed,
        "fetches that found content of which nothing tells whether it had changed": silent,
        "redirects, which are no content": redirected,
        "rows that repeat a page, or a signal, at one time": dropped.duplicates,
        "pages that were never found": dropped.absent,
        "signals of unknown pages, or since an unknown time": signals.lost,
    }
    rows.notes += [f"{what}: {count}" for what, count in counted.items() if count]
    return dropped
