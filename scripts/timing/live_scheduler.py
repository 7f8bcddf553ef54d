"""Tasks and sizes of a live scheduler, driven by a simulated crawler.

Pages are those of the law ``noisy``, a tenth of which are fetched per unit of time. All signals and
fetches are reported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import policies
from crawl_envs import Instance
from crawl_envs.compiled.compiling import ready
from crawl_envs.instances.synthetic import draw_noisy
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from policies.values.ranking import best_page
from scripts.timing.cases import Tasks, Value
from scripts.timing.turns import repeated, taken

POLICY, CRAWLS_PER_PAGE = "GreedyNCIS", 0.1
BATCH, WARM_UP, FEW_FETCHES = 1_000, 3_000_000, 100_000
"""Largest batch; most warm-up fetches if fetched in batches, and if fetched one by one."""
SIGNALS_DRAWN = 64
"""Number of batches whose signals are drawn in advance and reused."""
COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate")


def noisy_pages(count: int) -> Instance:
    """Return an instance with ``count`` pages of the law ``noisy``."""
    return draw_noisy(np.random.default_rng(0), count, bandwidth=CRAWLS_PER_PAGE * count)


class Crawl:
    """A crawler that reports fetches and signals, after a warm-up of up to three rounds.

    Args:
        instance: the pages.
        one_by_one: whether to choose pages one by one; False for batches.
    """

    def __init__(self, instance: Instance, one_by_one: bool = False) -> None:
        rng, pages = np.random.default_rng(1), instance.num_pages
        self.now, self.turn, self.batch = 0.0, 0, min(BATCH, pages // 10)
        self.span, self.one_by_one = self.batch / instance.bandwidth, one_by_one
        self.scheduler = CrawlScheduler(POLICY, instance.bandwidth, burst=self.span)
        columns: dict[str, Any] = {name: getattr(instance, name) for name in COLUMNS}
        copies = -rng.random(pages) * pages / instance.bandwidth
        self.scheduler.add(np.arange(pages), last_crawl=copies, **columns)
        rate = columns["recall"] * columns["change_rate"] + columns["false_signal_rate"]
        total = np.cumsum(rate)
        self.signals = [
            (np.searchsorted(total, rng.random(count) * total[-1]), np.sort(rng.random(count)))
            for count in rng.poisson(total[-1] * self.span, SIGNALS_DRAWN)
        ]
        self.play(min(3 * pages, FEW_FETCHES if one_by_one else WARM_UP) // self.batch)

    def play(self, times: int) -> None:
        """Report signals, choose a batch of pages and report their fetches, ``times`` times."""
        for _ in range(times):
            pages, shares = self.signals[self.turn % SIGNALS_DRAWN]
            self.scheduler.signal(pages, self.now + shares * self.span)
            parts = self.batch if self.one_by_one else 1
            for time in self.now + self.span * np.arange(1, parts + 1) / parts:
                if self.one_by_one:
                    ids = [self.scheduler.next(time).id]
                else:
                    ids = self.scheduler.next_batch(time, self.batch)
                self.scheduler.report(ids, time)
            self.now, self.turn = self.now + self.span, self.turn + 1


def scheduler_tasks(pages: int) -> Tasks:
    """Return two tasks: a scheduler's batches, and choosing one page by evaluating all pages."""
    instance = noisy_pages(pages)
    crawl, family = Crawl(instance), policies.find(POLICY)
    policy: Any = family()
    form = policy.compile(instance.problem(), 0, np.random.default_rng(0))
    elapsed = np.random.default_rng(2).random(pages) / CRAWLS_PER_PAGE
    state = form.promises, elapsed, np.floor(elapsed), np.ones(pages, np.bool_)
    return {
        "scheduler": (crawl.play, crawl.batch),
        "dense search": (repeated(ready(best_page), form.value, form.parameters, *state), 1),
    }


def fetch_tasks(pages: int) -> Tasks:
    """Return a task in which a scheduler chooses pages one by one."""
    crawl = Crawl(noisy_pages(pages), one_by_one=True)
    return {"scheduler": (crawl.play, crawl.batch)}


def scheduler_sizes(pages: int) -> Iterator[Value]:
    """Yield bytes per page of a scheduler (without ids) and its snapshot, and snapshot seconds.

    All values are measured after the warm-up.
    """
    scheduler = Crawl(noisy_pages(pages)).scheduler
    arrays = (*scheduler.pages.lazy, *scheduler.pages.choices, *scheduler.pages.columns.values())
    size = sum(array.nbytes for array in arrays) / pages
    yield "memory, without ids", "bytes per page", size
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds = taken(lambda: DurableScheduler(folder, scheduler).close())
        size = sum(path.stat().st_size for path in folder.glob("snapshot-*")) / pages
        yield "snapshot", "bytes per page", size
        yield "writing a snapshot", "s", seconds
        yield "restoring it", "s", taken(lambda: DurableScheduler(folder).close())
