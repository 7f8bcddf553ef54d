"""Play a live scheduler in the loop of a crawler on recorded sites, with and without faults.

The changes of pages are those of the record; pages come and go with it, and are added one by one.
A good feed tells four of five changes, and now and then a false one; with faults a bad feed tells
random pages as well. Faults: a tenth of the pages is dead and answers no request, one answer of a
hundred fails, timers are 5 ms late, and every poll of the feeds tells the entries of three days
again. Nothing is known of the pages at first: rates and the quality of feeds are learned. A page is
fetched once in ten days on average, each directory's host is asked after a gap. Writes
``live_loop.csv`` and ``provenance.json``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from crawl_envs.instances.traces import Trace, find, load
from policies.scheduler import CrawlScheduler
from scripts.cli.commands import command
from scripts.data.copies import changes_by_page, fresh_days
from scripts.timing.commands import QUICK_OUT, Measurement, measure

SECOND = 1.0 / 86_400.0
HOSTS, GAP, LATE = 5, 1_800.0 * SECOND, 0.005 * SECOND
POLL, TOLD_AGAIN = 1.0 / 24.0, 3.0
DEAD, FAILING, RECALL, FALSE, BAD = 0.1, 0.01, 0.8, 0.01, 0.3
ROUND = 10.0
"""Days in which every page could be fetched once."""


class Row(NamedTuple):
    """A run: share of the time in which living pages were stale, share of the bandwidth used.

    Shares of the fetches that failed, least time from the end of a fetch of a host to the next
    one's start over the gap, and fetches.
    """

    site: str
    run: str
    stale: float
    used: float
    failed: float
    gap: float
    fetches: int


class Loop:
    """The loop of a crawler on the first days of a site.

    Args:
        trace: the record.
        days: how long.
        faults: whether there are faults.
        seed: of feeds and faults; dead pages are the same in both runs.
    """

    def __init__(self, trace: Trace, days: float, faults: bool, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.trace, self.days, self.faults, self.rng = trace, days, faults, rng
        m = trace.num_pages
        self.dead, alive = rng.random(m) < DEAD, trace.created <= 0.0
        self.changes = changes_by_page(trace)
        self.entries = self._feeds(np.random.default_rng(seed + 1))
        self.copies: list[list[float]] = [[] for _ in range(m)]
        self.bandwidth = alive.sum() / ROUND
        waits = {"timeout": 0.02, "retry": 1.0, "keep_gone": 30.0}
        self.scheduler = CrawlScheduler(
            "GreedyNCIS", self.bandwidth, learn=True, num_sources=1 + faults, **waits
        )
        self.scheduler.limit_hosts(gap=GAP)
        self.ends: dict[int, float] = {}
        self.fetches = self.failures = 0
        self.least_gap = math.inf
        self.calls: list[tuple[float, int, str, Any]] = []
        self.number = self.timer = 0

    def _feeds(self, rng: np.random.Generator) -> np.ndarray:
        """Return the entries of all feeds as (time, page, source), in order of time."""
        told = rng.random(self.trace.change_time.size) < RECALL
        good = np.stack([self.trace.change_time, self.trace.change_page], axis=1)[told]
        rates, parts = ((FALSE, 0.0), (BAD, 1.0)), [np.insert(good, 2, 0.0, axis=1)]
        for rate, source in rates[: 1 + self.faults]:
            count = rng.poisson(rate * self.days * self.trace.num_pages)
            pages = rng.integers(self.trace.num_pages, size=count)
            times = rng.random(count) * self.days
            parts.append(np.stack([times, pages, np.full(count, source)], axis=1))
        entries = np.concatenate(parts)
        return entries[np.argsort(entries[:, 0], kind="stable")]

    def play(self) -> Row:
        """Play the days, and return what came out."""
        self.scheduler.warm()
        for page in range(self.trace.num_pages):
            if self.faults or not self.dead[page]:
                self._at(max(float(self.trace.created[page]), 0.0), "add", page)
        self._at(POLL, "poll", 0.0)
        while self.calls and self.calls[0][0] < self.days:
            now, number, name, argument = heapq.heappop(self.calls)
            if name == "ask" and number != self.timer:
                continue  # the timer was set again
            getattr(self, f"_{name}")(now, argument)
        living = np.flatnonzero(~self.dead & (self.trace.created < self.days)).tolist()
        stale, lived = np.sum([self.stale(page) for page in living], axis=0)
        used = self.fetches / (self.bandwidth * self.days)
        run = "with faults" if self.faults else "without faults"
        failed, gap = self.failures / self.fetches, self.least_gap / GAP
        return Row(self.trace.name, run, float(stale / lived), used, failed, gap, self.fetches)

    def stale(self, page: int) -> tuple[float, float]:
        """Return the times in which a page had no fresh copy and in which it lived."""
        begin = max(float(self.trace.created[page]), 0.0)
        end = min(float(self.trace.deleted[page]), self.days)
        lived = max(end - begin, 0.0)
        return lived - fresh_days(self.copies[page], self.changes[page], begin, end), lived

    def _at(self, time: float, name: str, argument: Any) -> None:
        self.number += 1
        heapq.heappush(self.calls, (time, self.number, name, argument))

    def _add(self, now: float, page: int) -> None:
        if self.trace.deleted[page] <= now:
            return
        self.copies[page] = [now] if self.trace.created[page] <= 0.0 else []
        host = f"host{self.trace.directory[page] % HOSTS}"
        self.scheduler.add([page], host=host, last_crawl=(*self.copies[page], np.nan)[0])
        self._ask(now, None)

    def _poll(self, now: float, before: float) -> None:
        """Tell what the feeds hold: with faults that of three days, else what is new."""
        since = now - TOLD_AGAIN if self.faults else before
        low, high = np.searchsorted(self.entries[:, 0], [since, now])
        times, pages, sources = self.entries[low:high].T
        if times.size:
            self.scheduler.signal(pages.astype(int), times, sources.astype(int))
        self._at(now + POLL, "poll", now)
        self._ask(now, None)

    def _ask(self, now: float, _: Any) -> None:
        """Begin the fetches that may be made now, and set the timer."""
        while True:
            page, again = self.scheduler.next(now)
            if page is None:
                break
            host = int(self.trace.directory[page]) % HOSTS
            self.least_gap = min(self.least_gap, now - self.ends.get(host, -math.inf))
            self.fetches += 1
            self._at(now + SECOND * self.rng.uniform(0.2, 3.0), "end", (int(page), now))
        if math.isfinite(again):
            self._at(again + LATE * self.faults, "ask", None)
            self.timer = self.number

    def _end(self, now: float, fetch: tuple[int, float]) -> None:
        """Report a fetch that was begun at a time."""
        page, begun = fetch
        self.ends[int(self.trace.directory[page]) % HOSTS] = now
        failing = self.faults and (self.dead[page] or self.rng.random() < FAILING)
        self.failures += failing
        if failing:
            self.scheduler.report([page], begun, "failed", ended=now)
        elif self.trace.deleted[page] <= begun:
            self.scheduler.report([page], begun, "gone", ended=now)
        else:
            times = [*self.copies[page][-1:], begun]
            seen = np.searchsorted(self.changes[page], times, side="right")
            changed = [bool(seen[1] > seen[0])] if seen.size > 1 else None
            self.scheduler.report([page], begun, changed=changed, ended=now)
            self.copies[page].append(begun)
        self._ask(now, None)


def runs(site: str, days: float) -> Iterator[Row]:
    """Yield the runs of a site."""
    trace = load(find(site))
    for faults in (False, True):
        yield Loop(trace, days, faults).play()


OF = Measurement("scripts.timing.live_loop", {"live_loop": Row}, "A live scheduler in a loop")
Sites = Annotated[list[str], typer.Argument(help="Recorded sites: names or folders.")]
Days = Annotated[float, typer.Option(help="Days of each run.")]
Out = Annotated[Path, typer.Option(help="Output folder.")]


def main(sites: Sites, days: Days = 120.0, out: Out = QUICK_OUT) -> None:
    """Play the loop on sites."""
    measure(OF, {site: partial(runs, site, days) for site in sites}, out)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
