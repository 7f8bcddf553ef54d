"""Audits: fetches of pages that are drawn at random by importance, whatever the policy chooses.

After each 1 / share fetches a page is drawn among all that are not gone, by importance (uniformly
if all importance is 0). An audit asks whether its page was stale when it was drawn: its time, its
group and its beliefs are of that instant. A page without a copy was stale. Any other is fetched
before all others. What its fetch found tells it, except:

- A page that may not be handed out at once waits. Copies only get staler, so that if it is fresh
  later it was fresh, but if it is stale it may have been fresh: its answer is unsure.
- A page that is under way is answered by its report. If that is of a copy from before the draw, a
  stale page was stale, and the answer fresh is unsure.
- An audit is missed if its page fails, is gone or is removed, if its report has no ``changed``, if
  it or an earlier one of its page has no answer a timeout after its draw, or if its page is the
  oldest one of more than ``MAX_WAITING`` that wait.

Draw k uses the seed (seed, k), so that a restored scheduler makes the same audits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray
from policies.estimators.measured_freshness import DRAWS, MeasuredFreshness, measure_freshness
from policies.live.scheduler.describing import stale
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.states import DRAWN, MISSED, OPEN, SENT, STALE

MAX_RECORDS, MAX_WAITING = 100_000, 16
"""Numbers of audits that are kept, the latest ones, and of pages that wait for their fetch."""
BELIEFS = [(f"{name}_belief", float) for name in ("page", "mean", "group")]
ANSWER = [("answer", np.int32), ("unsure", np.int32)]
RECORD = np.dtype([("time", float), ("row", int), ("group", np.int32), *ANSWER, *BELIEFS])
"""An audit: the time of its draw; the row and the group of its page; its answer, and whether that
may not hold for the time of the draw; the belief that the page was stale then, and the means over
further draws of all and of its group, 0 without change rates."""


class Audits:
    """The audits of a scheduler's pages: a share of the fetches, drawn with a seed."""

    def __init__(self, pages: PageTables, share: float, seed: int) -> None:
        self.pages, self.share, self.seed, self.credit, self.count = pages, share, seed, 0.0, 0
        self._table, self._waiting = np.zeros(0, RECORD), dict[int, None]()  # rows that wait
        self.pending = dict[int, list[int]]()  # places of audits without an answer, by row

    def records(self) -> NDArray[Any]:
        """Return the records of the latest audits, in the order of their draws; see ``RECORD``."""
        return np.roll(self._table[: self.count], -self.count)

    def draw(self) -> Iterator[int]:
        """Yield the rows of pages to hand out: first those that wait, then each that is drawn."""
        now, timeout = self.pages.pace.time, float(self.pages.choices.lines["timeout"][0])
        while self.pending:
            row, slots = next(iter(self.pending.items()))
            if self._table["time"][slots[0]] + timeout > now:
                break
            self.note([row], MISSED)
        yield from [*self._waiting]
        while self.share and self.credit >= 1.0 - 1e-9:
            self.credit -= 1.0
            row = self._draw_one(now)
            if row in self._waiting:
                yield row
            self.note([*self._waiting][:-MAX_WAITING], MISSED)

    def _draw_one(self, now: float) -> int:
        """Draw a page, and record its audit; return its row."""
        if self.count >= self._table.size < MAX_RECORDS:
            self._table = np.resize(self._table, min(2 * self.count + 64, MAX_RECORDS))
        pages, (rows, sums, starts), slot = self.pages, self._weights(), self.count % MAX_RECORDS
        if slot in self.pending.get(row := int(self._table["row"][slot]), ()):
            self.note([row], MISSED)
        uniform = np.random.default_rng([self.seed, self.count]).random(1 + 2 * DRAWS)
        row = int(rows[_places(sums, uniform[:1], 0, rows.size)[0]])
        numbers, group = np.sort(uniform[1:].reshape(2, DRAWS)), pages.group[row]  # sorted: faster
        ranges = [(0, rows.size), starts[group : group + 2]][: len(pages.groups)]
        places = [_places(sums, x, *ends) for x, ends in zip(numbers, ranges, strict=False)]
        believed = stale(pages, np.append(rows[np.concatenate(places)], row), now)
        b = np.zeros(2 * DRAWS) if believed is None else believed
        is_sent = pages.choices.status[row] == SENT and pages.choices.due[row] > now
        is_there = np.isfinite(pages.lazy.pages["last_crawl"][row])
        answer = STALE if not is_there else OPEN if is_sent else DRAWN
        if is_there:
            self.pending.setdefault(row, []).append(slot)
            self._waiting |= {} if is_sent else {row: None}
        beliefs = b[-1], b[:DRAWS].mean(), b[-DRAWS - 1 : -1].mean()
        self._table[slot] = now, row, group, answer, is_there, *beliefs
        self.count += 1
        return row

    def begin(self, rows: IntArray) -> None:
        """Count fetches of pages that are handed out now, (n,)."""
        self.credit += rows.size * self.share
        for row in self._waiting.keys() & rows.tolist():
            del self._waiting[row]
            for slot in self.pending[row]:
                if self._table["answer"][slot] == DRAWN:
                    self._table["answer"][slot] = OPEN
                    self._table["unsure"][slot] = self._table["time"][slot] < self.pages.pace.time

    def note(self, rows: Any, answers: ArrayLike, times: ArrayLike = 0.0) -> None:
        """Note the answers of fetches that ended now, (n,) or one for all, of copies of times."""
        answers, times = (np.broadcast_to(x, len(rows)) for x in (answers, times))
        for place, row in enumerate(rows if self.pending else ()):
            self._waiting.pop(row, None)
            for slot in self.pending.pop(row, ()):
                answer, later = answers[place], times[place] - self._table["time"][slot]
                self._table["answer"][slot] = answer
                self._table["unsure"][slot] &= later > 0.0 if answer == STALE else later < 0.0

    def measure(self, since: float, until: float, group: Any) -> MeasuredFreshness:
        """Return the freshness of a window; see :meth:`CrawlScheduler.freshness`."""
        records, codes = self.records(), self.pages.groups
        if not (isinstance(since, Real) and isinstance(until, Real) and since <= until):
            raise ValueError(
                f"since must be a number <= until, got {since!r:.80} and {until!r:.80}"
            )
        if group is not None and (not isinstance(group, Hashable) or group not in codes):
            names = f"{[*codes][:10]}{', ..' * (len(codes) > 10)}"
            raise ValueError(f"group must be among {names}, got {group!r:.80}")
        if self.count > records.size and -np.inf < since < (first := records["time"][0]):
            raise ValueError(f"since must be at least {first:g}, the first audit kept, got {since}")
        records = records[(records["time"] >= since) & (records["time"] <= until)]
        records = records if group is None else records[records["group"] == codes[group]]
        mean = records["mean_belief" if group is None else "group_belief"]
        answers, nan = records["answer"], np.nan
        findings = (
            answers == STALE,
            records["page_belief"],
            mean,
            answers >= MISSED,
            records["unsure"],
        )
        facts = measure_freshness(*findings)
        if "change_rate" in self.pages.columns:
            return facts
        facts = facts._replace(believed=nan, calibration=facts.calibration[:0])
        return facts._replace(belief_gap=nan, gap_low=nan, gap_high=nan)

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
        numbers = np.array([self.share, self.seed, self.credit, self.count])
        return {"numbers": numbers, "records": self._table[: self.count]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Load what :meth:`arrays` returned."""
        self.share, seed, self.credit, count = arrays["numbers"].tolist()
        self.seed, self.count, self._table = int(seed), int(count), arrays["records"]
        self.pending, self._waiting = {}, {}
        for slot in (k % MAX_RECORDS for k in range(self.count - self._table.size, self.count)):
            row, answer = int(self._table["row"][slot]), self._table["answer"][slot]
            if answer > MISSED:
                self.pending.setdefault(row, []).append(slot)
                self._waiting |= {row: None} if answer == DRAWN else {}


def _places(sums: FloatArray, uniform: FloatArray, low: int, high: int) -> IntArray:
    """Return the places in ``[low, high)`` of uniform numbers, by the sums of weights before."""
    numbers = sums[low] + uniform * (sums[high] - sums[low])
    places: IntArray = np.searchsorted(sums, numbers, side="right") - 1
    return np.clip(places, low, high - 1)
