"""Audits: fetches of pages that are drawn at random by importance, whatever the policy chooses.

After each 1 / share fetches a page is drawn among all that are not gone, by importance (uniformly
if all importance is 0). It is fetched before all others. Except: a page without a copy is stale at
once, without a fetch; a page that is handed out already is answered by its report; a page that may
not be fetched now waits until it may. The beliefs are those of the time of the fetch, so that
waiting does not bias what is measured if they are right.

An audit is missed if its page fails, is gone or is removed, if its report has no ``changed``, or if
no answer comes within the timeout, counted from its draw and again from its fetch. Draw k uses the
seed (seed, k), so that a restored scheduler makes the same audits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray
from policies.estimators.measured_freshness import DRAWS, MeasuredFreshness, measure_freshness
from policies.live.scheduler.describing import stale
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.states import DRAWN, MISSED, OPEN, SENT, STALE

MAX_RECORDS = 100_000
"""Number of audits that are kept, the latest ones."""
BELIEFS = [(f"{name}_belief", float) for name in ("page", "mean", "group")]
RECORD = np.dtype([("time", float), ("row", int), ("group", np.int32), ("answer", int), *BELIEFS])
"""An audit: the time of its draw, then of its fetch; the row and the group of its page; its answer;
the belief that the page is stale, and the means over further draws of all and of its group."""


class Audits:
    """The audits of a scheduler's pages: a share of the fetches, drawn with a seed."""

    def __init__(self, pages: PageTables, share: float, seed: int) -> None:
        self.pages, self.share, self.seed, self.fetches, self.count = pages, share, seed, 0, 0
        self._table, self._pending = np.zeros(0, RECORD), dict[int, int]()  # rows by slot

    def records(self) -> NDArray[Any]:
        """Return the records of the latest audits, in the order of their draws; see ``RECORD``."""
        return np.roll(self._table[: self.count], -self.count)

    def draw(self) -> list[int]:
        """Draw the pages of audits that are due; return the rows to hand out, each once."""
        due, now = int(self.fetches * self.share + 1e-9), self.pages.pace.time
        if not self._pending and self.count >= due:
            return []
        choices, copies = self.pages.choices, self.pages.lazy.pages["last_crawl"]
        begin, times = now - float(choices.lines["timeout"][0]), self._table["time"]
        pending = self._pending.items()
        self.note([row for slot, row in pending if not begin <= times[slot] <= now], MISSED)
        while self.count < due:
            self._draw_one(now)
        drawn = self._drawn()
        self.note([row for row in drawn if np.isinf(copies[row])], STALE)
        sent = [row for row in drawn if choices.status[row] == SENT and choices.due[row] > now]
        self.note(sent, OPEN)
        return self._drawn()

    def _draw_one(self, now: float) -> None:
        if self.count >= self._table.size < MAX_RECORDS:
            self._table = np.resize(self._table, min(2 * self.count + 64, MAX_RECORDS))
        slot, (rows, sums, _) = self.count % MAX_RECORDS, self._weights()
        row = int(rows[_places(sums, self._uniform(self.count)[:1], 0, rows.size)[0]])
        self._table[slot] = now, row, 0, DRAWN, 0.0, 0.0, 0.0
        self._pending[slot], self.count = row, self.count + 1

    def _drawn(self) -> list[int]:
        """Return the rows of pages that were drawn and are not handed out yet, each once."""
        answers, pending = self._table["answer"], self._pending.items()
        return [*dict.fromkeys(row for slot, row in pending if answers[slot] == DRAWN)]

    def measure(self, since: float, until: float, group: Any) -> MeasuredFreshness:
        """Return the freshness of a window; see :meth:`CrawlScheduler.freshness`."""
        records, codes = self.records(), self.pages.groups
        if group is not None and group not in codes:
            raise ValueError(f"group must be among {[*codes]}, got {group!r}")
        if self.count > records.size and -np.inf < since < (first := records["time"][0]):
            raise ValueError(f"since must be at least {first:g}, the first audit kept, got {since}")
        records = records[(records["time"] >= since) & (records["time"] <= until)]
        records = records if group is None else records[records["group"] == codes[group]]
        records = records[np.cumsum(records["answer"] >= OPEN) == 0]
        mean = records["mean_belief" if group is None else "group_belief"]
        is_stale, is_missed = (records["answer"] == answer for answer in (STALE, MISSED))
        return measure_freshness(is_stale, records["page_belief"], mean, is_missed)

    def note(self, rows: Any, answers: ArrayLike) -> None:
        """Note the answers of fetches that ended now, (n,) or one for all; OPEN if they begin."""
        for slot, row in [(k, row) for k, row in self._pending.items() if row in rows]:
            if self._table["answer"][slot] == DRAWN:
                self._believe(slot)
            answer = np.broadcast_to(answers, len(rows))[np.equal(rows, row)][0]
            self._table["answer"][slot] = answer
            if answer != OPEN:
                del self._pending[slot]

    def _believe(self, slot: int) -> None:
        """Record the time, and a page's group and beliefs at that time."""
        (rows, sums, starts), row, now = self._weights(), self._pending[slot], self.pages.pace.time
        group = self.pages.group[row]
        number = slot + (self.count - 1 - slot) // MAX_RECORDS * MAX_RECORDS  # of the draw
        numbers = np.sort(self._uniform(number)[1:].reshape(2, DRAWS))  # sorted ones are faster
        ranges = [(0, rows.size), starts[group : group + 2]][: len(self.pages.groups)]
        places = [_places(sums, x, *ends) for x, ends in zip(numbers, ranges, strict=False)]
        believed = stale(self.pages, np.append(rows[np.concatenate(places)], row), now)
        b = np.zeros(2 * DRAWS) if believed is None else believed
        self._table[slot] = now, row, group, 0, b[-1], b[:DRAWS].mean(), b[-DRAWS - 1 : -1].mean()

    def _uniform(self, number: int) -> FloatArray:
        """Return the random numbers of a draw: for its page, and for two mean beliefs."""
        return np.random.default_rng([self.seed, number]).random(1 + 2 * DRAWS)

    def _weights(self) -> Any:
        """Return the rows of pages by group, the importance before each, and where groups start."""
        pages = self.pages
        if pages.drawn_from is None:
            rows = pages.living()
            rows = rows[np.argsort(pages.group[rows], kind="stable")]
            weights = pages.columns["importance"][rows]
            sums = np.append(0.0, np.cumsum(weights if weights.any() else weights + 1.0))
            starts = np.searchsorted(pages.group[rows], np.arange(len(pages.groups) + 1))
            pages.drawn_from = rows, sums, starts
        return pages.drawn_from

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays by name."""
        numbers = np.array([self.share, self.seed, self.fetches, self.count])
        return {"numbers": numbers, "records": self._table[: self.count]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Load what :meth:`arrays` returned."""
        self.share, self._table = float(arrays["numbers"][0]), arrays["records"]
        self.seed, self.fetches, self.count = map(int, arrays["numbers"][1:])
        slots = [k % MAX_RECORDS for k in range(self.count - self._table.size, self.count)]
        open_slots = [k for k in slots if self._table["answer"][k] >= OPEN]
        self._pending = {k: int(self._table["row"][k]) for k in open_slots}


def _places(sums: FloatArray, uniform: FloatArray, low: int, high: int) -> IntArray:
    """Return the places in ``[low, high)`` of uniform numbers, by the sums of weights before."""
    numbers = sums[low] + uniform * (sums[high] - sums[low])
    places: IntArray = np.searchsorted(sums, numbers, side="right") - 1
    return np.clip(places, low, high - 1)
