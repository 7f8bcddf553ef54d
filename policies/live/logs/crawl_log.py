"""A crawl log in memory: crawls with their results, and signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray


class Intervals(NamedTuple):
    """Times between successive crawls of a page, sorted by page and time; k rows.

    A crawl that found the page gone ends none: it does not tell whether the content had changed.

    Attributes:
        page: row of the page, (k,) int64.
        start: time of the earlier crawl in days, (k,) float64.
        elapsed: days until the later crawl, >= 0, (k,) float64.
        signals: number of signals of each source in (start, start + elapsed], (S, k) int64.
        changed: whether the later crawl found a change, (k,) bool.
    """

    page: IntArray
    start: FloatArray
    elapsed: FloatArray
    signals: IntArray
    changed: BoolArray


class Dropped(NamedTuple):
    """Numbers of rows of each kind that were left out of a log.

    Attributes:
        failed: crawls that observed nothing, without redirects.
        duplicates: crawls of one page, or signals of one source, at the same time as another.
        signals: signals of unknown pages, or since an unknown time.
        redirected: crawls that were redirected.
        unreadable: rows that could not be read.
        absent: pages that were never found.
    """

    failed: int = 0
    duplicates: int = 0
    signals: int = 0
    redirected: int = 0
    unreadable: int = 0
    absent: int = 0


NOTHING = Dropped()
OUTCOMES = ("first", "unchanged", "changed", "failed", "redirected", "gone", "no evidence")
"""Outcomes of a fetch; ``gone``: status 404 or 410; ``no evidence``: changed or not is unknown."""


class History(NamedTuple):
    """All fetches of a log, sorted by time, including fetches that :class:`CrawlLog` leaves out.

    Of several rows of a page with one time there is one fetch.

    Attributes:
        page: row of the page, -1 if it was never found, (h,) int64.
        time: days as in the log; fetches before its first crawl are negative, (h,) float64.
        outcome: index into OUTCOMES, (h,) int8.
        cost: cost of the fetch, NaN if unknown, (h,) float64; None without costs.
    """

    page: IntArray
    time: FloatArray
    outcome: NDArray[np.int8]
    cost: FloatArray | None = None


NO_FETCHES = History(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int8))


@dataclass(frozen=True, eq=False, kw_only=True)
class CrawlLog:
    """Crawls of m pages and signals of S sources; times are days since ``origin``.

    The fields from ``signal_day`` on may be left out.

    Attributes:
        urls: name of each page, in the order of first mention, (m,) str objects.
        page: page of each crawl, (n,) int64.
        time: time of each crawl, non-decreasing, (n,) float64.
        changed: whether the content differed from that of the page's crawl before, (n,) bool; False
            at the first crawl of a page.
        gone: whether the page no longer existed, (n,) bool; the last crawl of the page then.
        signal_page: page of each signal, (k,) int64.
        signal_time: its time, non-decreasing, (k,) float64; where only the day is known, a time of
            this day, chosen by :func:`policies.live.logs.signals.place`.
        signal_source: its source, 0 .. S - 1, (k,) int64.
        sources: names of the sources, S of them.
        timed: whether the times of a source's signals were logged, (S,) bool. Where only their
            number between two crawls was, times are spread evenly between these.
        origin: time 0 as a date and time in ISO 8601, UTC; empty if the log has bare numbers.
        dropped: what was left out.
        signal_day: start of the day of a signal of which only the day is known, NaN where the time
            is, (k,) float64. The signal is in [signal_day, signal_day + 1).
        redirect: target of each page's last redirect, empty without one, (m,) str objects.
        redirected: whether the last fetch of each page was redirected, (m,) bool.
        history: all fetches; empty if the log was not read from a file.
        of_archive: whether the log was read from the index of a web archive.
        cost: cost of each crawl, >= 0, NaN if unknown, (n,) float64; None without costs.
        unit: unit of the costs.
        notes: sentences on what was guessed, merged or left out.
    """

    urls: NDArray[np.object_]
    page: IntArray
    time: FloatArray
    changed: BoolArray
    gone: BoolArray
    signal_page: IntArray
    signal_time: FloatArray
    signal_source: IntArray
    sources: tuple[str, ...] = ()
    timed: BoolArray
    origin: str = ""
    dropped: Dropped = NOTHING
    signal_day: FloatArray = None  # type: ignore[assignment]  # set in __post_init__, as two below
    redirect: NDArray[np.object_] = None  # type: ignore[assignment]
    redirected: BoolArray = None  # type: ignore[assignment]
    history: History = NO_FETCHES
    of_archive: bool = False
    cost: FloatArray | None = None
    unit: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Fill in the default arrays of fields that are None."""
        m, k = self.urls.size, self.signal_time.size
        defaults = {"signal_day": np.full(k, np.nan), "redirect": np.full(m, "", np.object_)}
        for name, values in {**defaults, "redirected": np.zeros(m, np.bool_)}.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, values)

    @property
    def signal_span(self) -> FloatArray:
        """Days in which each signal may lie: 1 where only its day is known, else 0, (k,)."""
        return np.where(np.isnan(self.signal_day), 0.0, 1.0)

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return int(self.urls.size)

    def sorted_crawls(self) -> IntArray:
        """Return the indices of the crawls, sorted by page and time, (n,) int64."""
        return np.lexsort((self.time, self.page))

    def intervals(self) -> Intervals:
        """Return the times between successive crawls, with their results and signals."""
        order = self.sorted_crawls()
        page, time = self.page[order], self.time[order]
        later = np.flatnonzero((page[1:] == page[:-1]) & ~self.gone[order][1:]) + 1
        counts = np.zeros((len(self.sources), page.size), np.int64)
        before = crawls_before(self.signal_page, self.signal_time, page, time)
        after_first = before >= 0
        np.add.at(counts, (self.signal_source[after_first], before[after_first]), 1)
        return Intervals(
            page=page[later],
            start=time[later - 1],
            elapsed=time[later] - time[later - 1],
            signals=counts[:, later - 1],
            changed=self.changed[order][later],
        )


def crawls_before(
    page: IntArray, time: FloatArray, crawl_page: IntArray, crawl_time: FloatArray
) -> IntArray:
    """Return the index of the given page's last crawl before each of k times, (k,), -1 for none.

    Crawls are sorted by page and time; one at the time itself is not before it.
    """
    pages, times = np.concatenate([page, crawl_page]), np.concatenate([time, crawl_time])
    crawls = np.arange(pages.size) >= page.size
    merged = np.lexsort((crawls, times, pages))
    number = np.empty(pages.size, np.int64)
    number[merged] = np.cumsum(crawls[merged]) - 1
    before = number[: page.size]
    same_page = np.append(crawl_page, -1)[before] == page
    return np.where((before >= 0) & same_page, before, -1)
