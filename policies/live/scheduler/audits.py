"""Audits: fetches of pages that are drawn at random by importance, whatever the policy chooses.

After each 1 / share fetches that were handed out, a page is drawn among all that are not gone, by
importance (all alike if none has any). It comes before all others at the next choice. A page
without a copy is stale at once, without a fetch; the report of a fetch that is under way answers. A
page that may not be fetched now waits until it may, and its beliefs are those of that time: where
they are right, waiting does not bias what is measured. An audit is missed without an answer within
the timeout after its draw, or after it is handed out; if its page fails, is gone or removed; and if
its report has no ``changed``.

Draw k has the random numbers of seed (seed, k): a scheduler that is restored makes the same audits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray
from policies.estimators.measured_freshness import DRAWS, MeasuredFreshness, measure_freshness
from policies.live.scheduler.describing import stale
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.states import SENT

FRESH, STALE, MISSED, OPEN, WAITING = range(5)
"""The answers of audits: open ones are handed out without an answer yet, waiting ones are not."""
MAX_RECORDS = 100_000
"""Number of audits that are kept, the latest ones."""
RECORD = np.dtype([("time", float), ("row", np.int64), ("group", np.int32), ("answer", np.int8)])
RECORD = np.dtype(RECORD.descr + [(f"{x}_belief", float) for x in ("page", "mean", "group")])
"""An audit: when it was handed out, its page's row and group, its answer, and the believed
probability of a stale page: of the page, and means over further draws of all and of its group."""


class Audits:
    """The audits of a scheduler's pages: a share of the fetches, drawn with a seed."""

    def __init__(self, pages: PageTables, share: float, seed: int) -> None:
        self.pages, self.share, self.seed = pages, share, seed
        self.fetches = self.count = 0
        self._table, self._pending = np.zeros(0, RECORD), dict[int, int]()  # rows by slot

    def records(self) -> NDArray[Any]:
        """Return the records of the latest audits, in the order of their draws; see ``RECORD``."""
        return np.roll(self._table[: self.count], -self.count)

    def waiting(self) -> list[int]:
        """Return the rows of the pages that were drawn and are not handed out yet."""
        answers, pending = self._table["answer"], self._pending.items()
        return list(dict.fromkeys(row for slot, row in pending if answers[slot] == WAITING))

    def draw(self, now: float) -> None:
        """End the audits whose time is over, and draw the pages of those that are due now."""
        choices, copies = self.pages.choices, self.pages.lazy.pages["last_crawl"]
        latest, times = now - float(choices.lines["timeout"][0]), self._table["time"]
        for slot in [slot for slot in self._pending if times[slot] < latest]:
            self._end(slot, MISSED)
        while self.count < int(self.fetches * self.share + 1e-9):
            if self.count >= self._table.size < MAX_RECORDS:
                self._table = np.resize(self._table, min(2 * self.count + 64, MAX_RECORDS))
            (rows, sums, _), slot = self._weights(), self.count % MAX_RECORDS
            row = int(rows[_places(sums, self._uniform(self.count)[:1], 0, rows.size)][0])
            self._table[slot] = now, row, 0, WAITING, 0.0, 0.0, 0.0
            self._pending[slot], self.count = row, self.count + 1
        for row in self.waiting():
            if np.isinf(copies[row]):
                self.answer([row], [True])
            elif choices.status[row] == SENT and choices.due[row] > now:
                self.begin(row)

    def begin(self, row: int) -> None:
        """Record that a page is handed out now."""
        for slot in [slot for slot, drawn in self._pending.items() if drawn == row]:
            if self._table["answer"][slot] == WAITING:
                self._believe(slot)
                self._table["answer"][slot] = OPEN

    def answer(self, rows: list[int], changed: Sequence[bool] | None = None) -> None:
        """End the audits of pages by whether they had changed; None if that is not known."""
        for slot in [slot for slot, row in self._pending.items() if row in rows]:
            is_stale = changed is not None and changed[rows.index(self._pending[slot])]
            self._end(slot, MISSED if changed is None else STALE if is_stale else FRESH)

    def _end(self, slot: int, answer: int) -> None:
        """Set the answer of a pending audit."""
        if self._table["answer"][slot] == WAITING:
            self._believe(slot)
        self._table["answer"][slot] = answer
        del self._pending[slot]

    def _believe(self, slot: int) -> None:
        """Record the time, and the group and the beliefs of a drawn page at that time."""
        (rows, sums, groups), row = self._weights(), self._pending[slot]
        group = self.pages.group[row] if groups.size else 0
        low, high = np.searchsorted(groups, [group, group + 1]) if groups.size else (0, rows.size)
        number = slot + (self.count - 1 - slot) // MAX_RECORDS * MAX_RECORDS
        uniform = self._uniform(number)[1:].reshape(2, DRAWS)
        places = _places(sums, uniform[0], 0, rows.size), _places(sums, uniform[1], low, high)
        drawn = np.append(rows[np.concatenate(places)], row)
        beliefs = stale(self.pages, drawn, self.pages.pace.time)
        beliefs = np.zeros(drawn.size) if beliefs is None else beliefs
        means = beliefs[:DRAWS].mean(), beliefs[DRAWS:-1].mean()
        self._table[slot] = self.pages.pace.time, row, group, WAITING, beliefs[-1], *means

    def _uniform(self, number: int) -> FloatArray:
        """Return the random numbers of a draw: for its page, and for two mean beliefs."""
        return np.random.default_rng([self.seed, number]).random(1 + 2 * DRAWS)

    def _weights(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Return the rows of pages by group, the sums of importance before each, and the groups."""
        pages = self.pages
        if pages.drawn_from is None:
            rows, groups = pages.living(), pages.group
            rows = rows[np.argsort(groups[rows], kind="stable")] if groups.size else rows
            weights = pages.columns["importance"][rows]
            sums = np.append(0.0, np.cumsum(weights if weights.any() else weights + 1.0))
            pages.drawn_from = rows, sums, groups[rows] if groups.size else groups
        return pages.drawn_from

    def measure(self, since: float | None, until: float | None, group: Any) -> MeasuredFreshness:
        """Return the freshness of a window; see :meth:`CrawlScheduler.freshness`."""
        records, beliefs = self.records(), "mean_belief" if group is None else "group_belief"
        start, end = -math.inf if since is None else since, math.inf if until is None else until
        if self.count > MAX_RECORDS and -math.inf < start < records["time"][0]:
            first = f"the latest {MAX_RECORDS:,} audits begin at {records['time'][0]:g}"
            raise ValueError(f"since must not be before the audits that are kept: {first}")
        if group is not None and group not in self.pages.groups:
            raise ValueError(f"group must be among {[*self.pages.groups]}, got {group!r}")
        inside = (records["time"] >= start) & (records["time"] <= end)
        if group is not None:
            inside &= records["group"] == self.pages.groups[group]
        records = records[inside]
        records = records[np.cumsum(records["answer"] >= OPEN) == 0]
        is_stale, missed = records["answer"] == STALE, records["answer"] == MISSED
        return measure_freshness(is_stale, records["page_belief"], records[beliefs], missed)

    def turn_back(self, by: float) -> None:
        """Move the times of pending audits back."""
        self._table["time"][list(self._pending)] -= by

    def state(self) -> tuple[dict[str, Any], NDArray[Any]]:
        """Return values and the table of records for :meth:`restore`."""
        names = "share", "seed", "fetches", "count"
        return {name: getattr(self, name) for name in names}, self._table[: self.count]

    def restore(self, values: dict[str, Any], table: NDArray[Any]) -> None:
        """Load what :meth:`state` returned."""
        vars(self).update(values)
        self._table, order = table.copy(), np.roll(np.arange(table.size), -self.count)
        order = order[table["answer"][order] >= OPEN]
        self._pending = dict(zip(order.tolist(), table["row"][order].tolist(), strict=True))


def _places(sums: FloatArray, uniform: FloatArray, low: int, high: int) -> IntArray:
    """Return the places in ``[low, high)`` of uniform numbers, by the sums of weights before."""
    numbers = sums[low] + uniform * (sums[high] - sums[low])
    return np.clip(np.searchsorted(sums, numbers, side="right") - 1, low, high - 1)
