"""A recorded history of a site, and the stretches of it that are replayed as tapes.

A page is born, changes, is signalled and dies at recorded moments; nothing here is drawn. Rows
stand for the same pages in every window of one trace: m counts all pages that were ever alive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH, SIGNAL, CodeArray
from crawl_envs.types import BoolArray, FloatArray, IntArray

Signals: TypeAlias = Literal["directory", "mentions", "both", "none"]
SIGNALS: tuple[Signals, ...] = get_args(Signals)


def sources_of(signals: Signals) -> tuple[str, ...]:
    """Names of the sources of a kind of recorded signals, in the order of their numbers."""
    return ("directory", "mentions") if signals == "both" else (signals,)


def check_signals(signals: str) -> Signals:
    """Return ``signals`` if it names a kind of recorded signal, else raise ValueError."""
    for known in SIGNALS:
        if signals == known:
            return known
    raise ValueError(f"signals must be one of {SIGNALS}, got {signals!r}")


class RecordedFragments(NamedTuple):
    """When fragments of text were on the pages of a trace; one row per spell.

    A fragment that comes back has a row for each time. Rows are in order of page, birth and
    fragment; only pages that changed a few times have any.

    Attributes:
        page: row of the page, (n,) int64.
        fragment: hash of the fragment, (n,) uint32.
        birth: days since the record's start; -inf for what was there at its start, (n,) float64.
        death: inf for what is there at its end, (n,) float64.
        modulus: about one fragment in so many is in the record, in all versions or in none.
    """

    page: IntArray
    fragment: NDArray[np.uint32]
    birth: FloatArray
    death: FloatArray
    modulus: int

    def of_pages(self, kept: BoolArray) -> RecordedFragments:
        """Return those of some pages, which are numbered anew in order; ``kept`` is (m,)."""
        rows = kept[self.page]
        return RecordedFragments(
            (np.cumsum(kept) - 1)[self.page[rows]],
            self.fragment[rows],
            self.birth[rows],
            self.death[rows],
            self.modulus,
        )


class TraceWindow(NamedTuple):
    """A stretch of a trace as a tape; times are days since the window's start.

    Attributes:
        time: time of each event, in (0, duration], never decreasing, (n,) float64.
        code: ``page * CODE_STRIDE + kind`` of each event, (n,) int64; at equal times births come
            first, then changes, signals and deaths.
        alive: pages that exist at the window's start, (m,) bool.
        duration: length of the window in days.
        num_sources: number of sources of signals, S.
    """

    time: FloatArray
    code: CodeArray
    alive: BoolArray
    duration: float
    num_sources: int = 1

    @property
    def num_pages(self) -> int:
        """Number of pages ever alive in the whole trace, m."""
        return int(self.alive.shape[0])

    def of_pages(self, pages: IntArray) -> TraceWindow:
        """Return the events of some pages only, which are numbered anew in the order given.

        Raises:
            ValueError: there are none, one does not exist, or one is named twice.
        """
        known = pages.ndim == 1 and pages.size > 0 and pages.dtype.kind in "iu"
        if not known or pages.min() < 0 or pages.max() >= self.num_pages:
            raise ValueError(f"pages must be rows below {self.num_pages}, got {pages}")
        if np.unique(pages).size < pages.size:
            raise ValueError(f"pages must be named once, got {pages}")
        number = np.full(self.num_pages, -1, np.int64)
        number[pages] = np.arange(pages.size)
        page, kind = np.divmod(self.code, CODE_STRIDE)
        kept = number[page] >= 0
        code = number[page[kept]] * CODE_STRIDE + kind[kept]
        return self._replace(time=self.time[kept], code=code, alive=self.alive[pages])


@dataclass(frozen=True, eq=False)
class Trace:
    """What was recorded of one site; times are days since the record's start, in [0, days].

    Attributes:
        name: the site.
        folder: where it was read from.
        start_date: UTC date of time 0, as YYYY-MM-DD.
        days: length of the record.
        created: birth of each page, negative when before the record, (m,) float64.
        deleted: death of each page, infinite when it outlives the record, (m,) float64.
        directory: directory of each page, (m,) int64.
        change_page: page of each change of content or white space, (c,) int64.
        change_time: its time, never decreasing, (c,) float64.
        signal_directory: directory of each directory signal, (s,) int64.
        signal_time: its time, never decreasing, (s,) float64.
        mention_page: page of each mention, (k,) int64.
        mention_time: its time, never decreasing, (k,) float64.
        fragments: what pages said and when, None where it was not recorded.
    """

    name: str
    folder: Path
    start_date: str
    days: float
    created: FloatArray
    deleted: FloatArray
    directory: IntArray
    change_page: IntArray
    change_time: FloatArray
    signal_directory: IntArray
    signal_time: FloatArray
    mention_page: IntArray
    mention_time: FloatArray
    fragments: RecordedFragments | None = None

    @property
    def num_pages(self) -> int:
        """Number of pages ever alive in the record, m."""
        return int(self.created.shape[0])

    def check_window(self, start: float, end: float) -> None:
        """Raise ValueError unless 0 <= start < end <= days."""
        if not (math.isfinite(start) and 0.0 <= start < self.days):
            raise ValueError(
                f"start must lie in [0, {self.days:g}) days of trace {self.name!r}, got {start!r}"
            )
        if not (math.isfinite(end) and start < end <= self.days):
            raise ValueError(
                f"end must lie in ({start:g}, {self.days:g}] days of trace {self.name!r}, "
                f"got {end!r}"
            )

    def alive_days(self, start: float, end: float) -> FloatArray:
        """Days that each page existed between ``start`` and ``end``, shape (m,).

        Raises:
            ValueError: the window does not lie in the record.
        """
        self.check_window(start, end)
        lived: FloatArray = np.minimum(self.deleted, end) - np.maximum(self.created, start)
        return lived.clip(min=0.0)

    def window(self, start: float, end: float, signals: Signals = "directory") -> TraceWindow:
        """The events in (start, end] as a tape whose time 0 is ``start``.

        A page born at or before ``start`` and not yet dead is alive and fresh at time 0. Changes
        of content and of white space are changes; creations and deletions are births and deaths.
        A directory signal reaches every page of the directory that is alive, a mention its page;
        with ``both`` they are sources 0 and 1, and a page that is mentioned in a commit to its
        directory gets a signal from each. A
        page gets no signal at the very moment of its birth or its death: the commit that made or
        removed it tells nothing that the birth or the death does not.

        Args:
            start: start of the window, days since the record's start.
            end: end of the window, days since the record's start.
            signals: which recorded signals are sent.

        Raises:
            ValueError: the window does not lie in the record, or ``signals`` is unknown.
        """
        self.check_window(start, end)
        check_signals(signals)
        pages = np.arange(self.num_pages)
        sources = self._signals(start, end, signals)
        parts = [
            (BIRTH, self._between(pages, self.created, start, end)),
            (CHANGE, self._between(self.change_page, self.change_time, start, end)),
            *((SIGNAL + 2 * number, heard) for number, heard in enumerate(sources)),
            (DEATH, self._between(pages, self.deleted, start, end)),
        ]
        code = np.concatenate([page * CODE_STRIDE + kind for kind, (page, _) in parts])
        time = np.concatenate([time for _, (_, time) in parts])
        order = np.argsort(time, kind="stable")
        return TraceWindow(
            time=time[order] - start,
            code=code[order],
            alive=(self.created <= start) & (start < self.deleted),
            duration=end - start,
            num_sources=len(sources),
        )

    @staticmethod
    def _between(
        rows: IntArray, times: FloatArray, start: float, end: float
    ) -> tuple[IntArray, FloatArray]:
        """Rows and times of the events in (start, end]."""
        inside = (times > start) & (times <= end)
        return rows[inside], times[inside]

    def _signals(
        self, start: float, end: float, signals: Signals
    ) -> list[tuple[IntArray, FloatArray]]:
        """By source, page and time of every signal in (start, end] that reaches a living page."""
        found = []
        for source in sources_of(signals):
            page, time = np.empty(0, np.int64), np.empty(0)
            if source == "directory":
                signal = self._between(self.signal_directory, self.signal_time, start, end)
                page, time = self._spread(*signal)
            elif source == "mentions":
                page, time = self._between(self.mention_page, self.mention_time, start, end)
            heard = (time > self.created[page]) & (time < self.deleted[page])
            found.append((page[heard], time[heard]))
        return found

    def _spread(self, directory: IntArray, time: FloatArray) -> tuple[IntArray, FloatArray]:
        """Repeat every directory signal for each page that the directory ever had."""
        by_directory = np.argsort(self.directory, kind="stable")
        size = np.bincount(self.directory)
        first = np.cumsum(size) - size
        copies = size[directory]
        signal = np.repeat(np.arange(directory.shape[0]), copies)
        nth = np.arange(signal.shape[0]) - np.repeat(np.cumsum(copies) - copies, copies)
        return by_directory[first[directory[signal]] + nth], time[signal]
