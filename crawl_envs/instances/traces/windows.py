"""Recorded histories of sites, and windows of them as tapes.

Times of births, changes, signals and deaths are recorded; nothing here is random. Rows are the same
pages in every window of a trace: m counts all pages that ever existed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crawl_envs.instances.misspecified.occurrences import members
from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH, SIGNAL, Tape
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import one_of

Signals: TypeAlias = Literal["directory", "mentions", "both", "none"]
SIGNALS: tuple[Signals, ...] = get_args(Signals)


def sources_of(signals: Signals) -> tuple[str, ...]:
    """Return the names of the sources that a kind of recorded signals has, in order."""
    return ("directory", "mentions") if signals == "both" else (signals,)


def check_signals(signals: str) -> Signals:
    """Return ``signals`` if it is a kind of recorded signals, else raise ValueError."""
    kind: Signals = one_of("signals", signals, SIGNALS)
    return kind


class RecordedFragments(NamedTuple):
    """Spells of fragments of text on the pages of a trace, one row per spell.

    A fragment that returns has several rows. Rows are sorted by page, birth and fragment; only
    pages with a few changes have rows.

    Attributes:
        page: row of the page, (n,) int64.
        fragment: hash of the fragment, (n,) uint32.
        birth: days since the record's start; -inf if present at its start, (n,) float64.
        death: days since the start; inf if present at the record's end, (n,) float64.
    """

    page: IntArray
    fragment: NDArray[np.uint32]
    birth: FloatArray
    death: FloatArray

    def of_pages(self, mask: BoolArray) -> RecordedFragments:
        """Return the spells of the pages that a mask, (m,), selects, with pages renumbered."""
        rows = mask[self.page]
        page = (np.cumsum(mask) - 1)[self.page[rows]]
        return RecordedFragments(page, self.fragment[rows], self.birth[rows], self.death[rows])


@dataclass(frozen=True, eq=False, kw_only=True)
class TraceWindow(Tape):
    """A window of a trace as a tape; times are days since the window's start.

    The order at equal times is births, changes, signals, deaths.

    Attributes:
        duration: length of the window in days.
    """

    duration: float

    @classmethod
    def cut(
        cls,
        events: Sequence[tuple[IntArray | int, IntArray, FloatArray]],
        birth: FloatArray,
        death: FloatArray,
        start: float,
        end: float,
        num_sources: int,
    ) -> TraceWindow:
        """Return the events in (start, end] as a tape whose time 0 is ``start``.

        Args:
            events: kind or kinds, pages and times of changes and signals, in this order.
            birth: time of birth of each page, (m,).
            death: time of death of each page, inf if it has none, (m,).
            start: start of the window.
            end: end of the window.
            num_sources: number of sources of signals.
        """
        pages = np.arange(birth.size)
        every = [(BIRTH, pages, birth), *events, (DEATH, pages, death)]
        time = np.concatenate([time for _, _, time in every])
        code = np.concatenate([page * CODE_STRIDE + kind for kind, page, _ in every])
        inside = np.flatnonzero((time > start) & (time <= end))
        order = inside[np.argsort(time[inside], kind="stable")]
        return cls(
            time=time[order] - start,
            code=code[order],
            alive=(birth <= start) & (start < death),
            duration=end - start,
            num_sources=num_sources,
        )

    def of_pages(self, pages: IntArray) -> TraceWindow:
        """Return the events of the pages ``pages``, which get new numbers in the given order."""
        number = np.full(self.alive.size, -1, np.int64)
        number[pages] = np.arange(pages.size)
        page, kind = np.divmod(self.code, CODE_STRIDE)
        event_mask = number[page] >= 0
        code = number[page[event_mask]] * CODE_STRIDE + kind[event_mask]
        return replace(self, time=self.time[event_mask], code=code, alive=self.alive[pages])

    def with_missing(self, count: int) -> TraceWindow:
        """Return the events with ``count`` further pages that never exist."""
        return replace(self, alive=np.append(self.alive, np.zeros(count, np.bool_)))


@dataclass(frozen=True, eq=False)
class Trace:
    """The record of one site; times are days since its start, in [0, days].

    Attributes:
        name: name of the site.
        folder: source folder.
        days: length of the record.
        created: birth of each page, negative when before the record, (m,) float64.
        deleted: death of each page, inf when after the record, (m,) float64.
        directory: directory of each page, (m,) int64.
        change_page: page of each change of content or white space, (c,) int64.
        change_time: time of each change, non-decreasing, (c,) float64.
        signal_directory: directory of each directory signal, (s,) int64.
        signal_time: time of each directory signal, non-decreasing, (s,) float64.
        mention_page: page of each mention, (k,) int64.
        mention_time: time of each mention, non-decreasing, (k,) float64.
        fragments: spells of the pages' fragments, None if not recorded.
    """

    name: str
    folder: Path
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
        where = f"days of trace {self.name!r}, got"
        if not 0.0 <= start < self.days:
            raise ValueError(f"start must lie in [0, {self.days:g}) {where} {start!r}")
        if not start < end <= self.days:
            raise ValueError(f"end must lie in ({start:g}, {self.days:g}] {where} {end!r}")

    def alive_days(self, start: float, end: float) -> FloatArray:
        """Return the days of existence of each page between ``start`` and ``end``, (m,).

        Raises:
            ValueError: the window is not within the record.
        """
        self.check_window(start, end)
        lived: FloatArray = np.minimum(self.deleted, end) - np.maximum(self.created, start)
        return lived.clip(min=0.0)

    def has_changes(self, pages: IntArray, start: float, end: float) -> bool:
        """Return whether one of some pages changes in (start, end]."""
        first, stop = np.searchsorted(self.change_time, (start, end), side="right")
        return bool(np.isin(self.change_page[first:stop], pages).any())

    def of_pages(self, pages: IntArray) -> Trace:
        """Return the record of some pages, ascending rows, and of the signals to them."""
        there = np.zeros(self.num_pages, np.bool_)
        there[pages] = True
        number = np.cumsum(there) - 1
        changes, mentions = there[self.change_page], there[self.mention_page]
        signals = np.isin(self.signal_directory, self.directory[pages])
        return replace(
            self,
            created=self.created[pages],
            deleted=self.deleted[pages],
            directory=self.directory[pages],
            change_page=number[self.change_page[changes]],
            change_time=self.change_time[changes],
            signal_directory=self.signal_directory[signals],
            signal_time=self.signal_time[signals],
            mention_page=number[self.mention_page[mentions]],
            mention_time=self.mention_time[mentions],
            fragments=None if self.fragments is None else self.fragments.of_pages(there),
        )

    def window(self, start: float, end: float, signals: Signals = "directory") -> TraceWindow:
        """Return the events in (start, end] as a tape whose time 0 is ``start``.

        A page that exists at ``start`` is alive and fresh at time 0. Changes of content and of
        white space are changes; creations and deletions are births and deaths. A directory signal
        applies to every existing page of the directory, a mention to its page. With ``both`` they
        are sources 0 and 1, and a page mentioned in a commit to its directory has a signal from
        each. Signals at the time of a page's birth or death are dropped, since they add no
        information to it.

        Args:
            start: start of the window, days since the record's start.
            end: end of the window, days since the record's start.
            signals: kind of recorded signals.

        Raises:
            ValueError: the window is not within the record, or ``signals`` is unknown.
        """
        self.check_window(start, end)
        sources = sources_of(check_signals(signals))
        events = [(CHANGE, self.change_page, self.change_time)]
        for number, source in enumerate(sources):
            events.append((SIGNAL + 2 * number, *self._received(source, start, end)))
        return TraceWindow.cut(events, self.created, self.deleted, start, end, len(sources))

    def _received(self, source: str, start: float, end: float) -> tuple[IntArray, FloatArray]:
        """Return pages and times of one source's signals to existing pages, from start to end."""
        page, time = self.mention_page, self.mention_time
        if source == "directory":
            sent = np.flatnonzero((self.signal_time > start) & (self.signal_time <= end))
            signal, page = members(self.directory, self.signal_directory[sent])
            time = self.signal_time[sent[signal]]
        reached = (time > self.created[page]) & (time < self.deleted[page]) & (source != "none")
        return page[reached], time[reached]
