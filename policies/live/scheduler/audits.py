"""Audits: fetches of pages that are drawn at random by importance, whatever the policy chooses.

After each 1 / share fetches that were handed out, a page is drawn among all that are not gone. It
comes before all other pages at the next choice. Its copy is stale at once if it has none, without
a fetch; if it is handed out already, the report of that fetch answers. A page that may not be
fetched now waits until it may, and its beliefs are those of that time; so where the beliefs are
right, waiting does not bias the freshness that is measured. An audit that has no answer within the
timeout after its draw, or after it was handed out, is missed, as are those of pages that fail, are
gone or removed, or are reported without ``changed``.

The numbers of draw k are those of the generator with seed (seed, k), so that a scheduler that is
restored makes the same audits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators.measured_freshness import DRAWS, MeasuredFreshness, measure_freshness
from policies.live.scheduler.describing import stale
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.states import SENT

FRESH, STALE, MISSED, OPEN = range(4)
"""The answers of audits; those that are open have none yet."""
MAX_RECORDS = 100_000
"""Number of audits of which a scheduler keeps the records, the latest ones."""
RECORD = np.dtype(
    [
        # when it was handed out, the code of the page's group, and the answer
        *(("time", np.float64), ("group", np.int32), ("answer", np.int8)),
        # the belief that the page is stale, its mean over further draws, and over those of the group
        *((name, np.float64) for name in ("believed", "mean_belief", "group_belief")),
    ]
)


class Draw(NamedTuple):
    """A drawn page without an answer: its row, the number and time of the draw, and its record."""

    row: int
    number: int
    since: float
    record: int = -1  # while it waits


class Audits:
    """The audits of a scheduler.

    Args:
        pages: the scheduler's pages.
        share: share of the fetches, in (0, 1].
        seed: seed of the draws, >= 0.
    """

    def __init__(self, pages: PageTables, share: float, seed: int) -> None:
        self.pages, self.share, self.seed = pages, share, seed
        self.fetches = self.draws = self.count = 0
        self.pending: list[Draw] = []
        self._table = np.zeros(0, RECORD)

    def records(self) -> NDArray[Any]:
        """Return the latest records in the order in which they were handed out; see ``RECORD``."""
        return np.roll(self._table[: self.count], -max(self.count - MAX_RECORDS, 0))

    def waiting(self) -> list[int]:
        """Return the rows of the pages that were drawn and are not handed out yet."""
        return list(dict.fromkeys(draw.row for draw in self.pending if draw.record < 0))

    def draw(self, now: float) -> None:
        """End the audits whose time is over, and draw the pages of those that are due now."""
        pages, choices = self.pages, self.pages.choices
        latest = now - float(choices.lines["timeout"][0])
        self._end([draw.since < latest for draw in self.pending], MISSED)
        while self.draws + 1 <= self.fetches * self.share + 1e-9:
            self.draws += 1
            rows, sums, _ = self._weights()
            if rows.size and sums[-1] > 0.0:
                row = int(rows[_places(sums, self._uniform(self.draws)[:1], 0, rows.size)][0])
                self.pending.append(Draw(row, self.draws, now))
        for row in self.waiting():
            if np.isinf(pages.lazy.pages["last_crawl"][row]):
                self._end([draw.row == row for draw in self.pending], STALE)
            elif choices.status[row] == SENT and choices.due[row] > now:
                self.begin(row)

    def begin(self, row: int) -> None:
        """Record that a page is handed out now, before its next copy."""
        now = self.pages.pace.time
        self.pending = [
            Draw(row, draw.number, now, self._record(draw, OPEN))
            if draw.row == row and draw.record < 0
            else draw
            for draw in self.pending
        ]

    def answer(self, rows: IntArray, changed: BoolArray | None = None) -> None:
        """End the audits of pages by what their fetches found; None if they tell nothing."""
        for row in {draw.row for draw in self.pending}.intersection(rows.tolist()):
            first = int(np.flatnonzero(rows == row)[0])
            found = MISSED if changed is None else STALE if changed[first] else FRESH
            self._end([draw.row == row for draw in self.pending], found)

    def _end(self, ends: list[bool], answer: int) -> None:
        """Give some of the pending audits, a truth value each, an answer."""
        for draw in [draw for draw, is_ended in zip(self.pending, ends, strict=True) if is_ended]:
            self.pending.remove(draw)
            record = draw.record if draw.record >= 0 else self._record(draw, answer)
            if self.count - record <= MAX_RECORDS:
                self._table["answer"][record % MAX_RECORDS] = answer

    def _record(self, draw: Draw, answer: int) -> int:
        """Record an audit with the beliefs of now; return the number of its record."""
        (rows, sums, groups), now, uniform = self._weights(), self.pages.pace.time, self._uniform
        group = int(self.pages.group[draw.row]) if self.pages.group.size else 0
        low, high = np.searchsorted(groups, [group, group + 1]) if groups.size else (0, rows.size)
        numbers = uniform(draw.number)[1:].reshape(2, DRAWS)
        places = [_places(sums, numbers[0], 0, rows.size), _places(sums, numbers[1], low, high)]
        believed = stale(self.pages, np.append(rows[np.concatenate(places)], draw.row), now)
        if believed is None:
            believed = np.zeros(2 * DRAWS + 1)
        means = believed[:-1].reshape(2, DRAWS).mean(axis=1)
        if self.count >= self._table.size < MAX_RECORDS:
            self._table = np.resize(self._table, min(max(2 * self.count, 64), MAX_RECORDS))
        entry = now, group, answer, believed[-1], *(means if groups.size else means[[0, 0]])
        self._table[self.count % MAX_RECORDS] = entry
        self.count += 1
        return self.count - 1

    def _uniform(self, number: int) -> FloatArray:
        """Return the uniform random numbers of a draw: for its page, and for the mean beliefs."""
        return np.random.default_rng([self.seed, number]).random(1 + 2 * DRAWS)

    def _weights(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Return the rows of all pages by group, the sums of importance before each, and groups."""
        pages = self.pages
        if pages.drawn_from is None:
            rows, groups = pages.living(), pages.group
            if groups.size:
                rows = rows[np.argsort(groups[rows], kind="stable")]
            sums = np.append(0.0, np.cumsum(pages.columns["importance"][rows]))
            pages.drawn_from = rows, sums, groups[rows] if groups.size else groups
        return pages.drawn_from

    def measure(self, since: float | None, until: float | None, group: Any) -> MeasuredFreshness:
        """Return the freshness of a window; see :meth:`CrawlScheduler.freshness`."""
        records, beliefs = self.records(), "mean_belief"
        start, end = (x if y is None else y for x, y in ((-math.inf, since), (math.inf, until)))
        if -math.inf < start and self.count > MAX_RECORDS and start < records["time"][0]:
            raise ValueError(
                f"since must be {records['time'][0]:g} or later, got {start:g}: the latest "
                f"{MAX_RECORDS:,} audits are kept"
            )
        inside = (records["time"] >= start) & (records["time"] <= end)
        if group is not None:
            if group not in self.pages.groups:
                raise ValueError(f"group must be among {[*self.pages.groups]}, got {group!r}")
            inside &= records["group"] == self.pages.groups[group]
            beliefs = "group_belief"
        records = records[inside]
        records = records[np.cumsum(records["answer"] == OPEN) == 0]
        answer = records["answer"]
        outcomes = answer == STALE, records["believed"], records[beliefs], answer == MISSED
        return measure_freshness(*outcomes)

    def turn_back(self, by: float) -> None:
        """Move the times of pending draws back."""
        self.pending = [draw._replace(since=draw.since - by) for draw in self.pending]

    def state(self) -> tuple[dict[str, Any], NDArray[Any]]:
        """Return values and records for :meth:`restore`."""
        names = "share", "seed", "fetches", "draws", "count"
        values = {name: getattr(self, name) for name in names}
        return values | {"pending": [list(x) for x in self.pending]}, self._table[: self.count]

    def restore(self, values: Mapping[str, Any], records: NDArray[Any]) -> None:
        """Load what :meth:`state` returned."""
        vars(self).update(values)
        self.pending, self._table = [Draw(*x) for x in values["pending"]], records.copy()


def _places(sums: FloatArray, uniform: FloatArray, low: int, high: int) -> IntArray:
    """Return the places in ``[low, high)`` of uniform numbers, by the sums of weights before."""
    numbers = sums[low] + uniform * (sums[high] - sums[low])
    places: IntArray = np.searchsorted(sums, numbers, side="right") - 1
    return np.clip(places, low, high - 1)
