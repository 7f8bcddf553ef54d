"""What the rows of a crawl log observed: that a page had changed, had not, or was gone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.instances.logs.columns import Columns
from crawl_envs.types import BoolArray, FloatArray, IntArray

EVIDENCE = ("changed", "hash", "digest", "etag", "last_modified")
"""Columns that tell whether a page changed; the first that is there is used."""
NOT_MODIFIED, GONE = 304, (404, 410)
"""Status of HTTP: RFC 9110, sections 15.4.5, 15.5.5 and 15.5.11."""


class Crawls(NamedTuple):
    """Crawls sorted by page and time: row of the file, page, time, status (NaN: unknown)."""

    row: IntArray
    page: IntArray
    time: FloatArray
    status: FloatArray

    def subset(self, kept: BoolArray) -> Crawls:
        """Return the crawls in a mask."""
        return Crawls(self.row[kept], self.page[kept], self.time[kept], self.status[kept])

    def first(self) -> BoolArray:
        """Return which crawls are the first of their page."""
        first: BoolArray = np.diff(self.page, prepend=-1) != 0
        return first


class Observations(NamedTuple):
    """Crawls that observed something, as in :class:`CrawlLog`, but sorted by page and time."""

    page: IntArray
    time: FloatArray
    changed: BoolArray
    gone: BoolArray


def distinct_crawls(rows: Columns, page: IntArray, time: FloatArray) -> Crawls:
    """Return the crawls of a file; of those of a page at one time, the first that did not fail."""
    status = np.full(page.size, np.nan)
    if "status" in rows:
        status = rows.numbers("status", "an HTTP status or a negative number")
    row = np.lexsort((_failed(status), time, page))
    crawls = Crawls(row, page[row], time[row], status[row])
    return crawls.subset(crawls.first() | (np.diff(crawls.time, prepend=-1.0) != 0.0))


def observed(rows: Columns, evidence: str, crawls: Crawls, dated: bool) -> Observations:
    """Return the crawls that observed something by the column ``evidence`` or their status."""
    gone = np.isin(crawls.status, GONE)
    alive = ~gone & ~_failed(crawls.status)
    value = _values(rows, evidence, dated)[crawls.row]
    tells = ~np.isnan(value) | (crawls.status == NOT_MODIFIED)
    if evidence in ("changed", "last_modified"):
        tells[np.flatnonzero(alive)[crawls.subset(alive).first()]] = True
    alive &= tells
    # A page is gone at the first 404 or 410 after the last crawl that found it.
    last = np.full(crawls.page[-1] + 1, crawls.page.size)
    last[crawls.page[alive]] = np.flatnonzero(alive)
    after = np.flatnonzero(gone & (np.arange(gone.size) > last[crawls.page]))
    death = np.zeros(gone.size, np.bool_)
    death[after[np.unique(crawls.page[after], return_index=True)[1]]] = True
    kept = alive | death
    found = crawls.subset(kept)
    changed = _changes(evidence, value[kept], found) & ~death[kept]
    return Observations(found.page, found.time, changed, death[kept])


def _failed(status: FloatArray) -> BoolArray:
    """Return which fetches observed nothing, not even that the page is gone."""
    failed: BoolArray = ((status < 100) | (status >= 400)) & ~np.isin(status, GONE)
    return failed


def _values(rows: Columns, evidence: str, dated: bool) -> FloatArray:
    """Return the evidence of each row as a number, NaN where there is none."""
    if evidence == "changed":
        return rows.flags(evidence)
    if evidence == "last_modified":
        return rows.times(evidence, dated, optional=True).value
    number = rows.codes(evidence, optional=True).number
    return np.where(number < 0, np.nan, number)


def _changes(evidence: str, value: FloatArray, crawls: Crawls) -> BoolArray:
    """Return which crawls found a change since the page's crawl before."""
    first, unmodified = crawls.first(), crawls.status == NOT_MODIFIED
    if evidence == "changed":
        changed = value == 1.0
    elif evidence == "last_modified":
        changed = (value > np.roll(crawls.time, 1)) & (value <= crawls.time)
    else:
        # Status 304 has the digest of the crawl before; -1 if there is none.
        own = first | ~(unmodified | np.isnan(value))
        source = np.maximum.accumulate(np.where(own, np.arange(value.size), 0))
        digest = np.nan_to_num(value[source], nan=-1.0)
        changed = digest != np.roll(digest, 1)
    found: BoolArray = changed & ~unmodified & ~first
    return found
