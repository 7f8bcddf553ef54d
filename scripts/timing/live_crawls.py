"""Crawls of a live scheduler, with signals and reports, of which only its calls are timed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crawl_envs import Instance
from policies.scheduler import CrawlScheduler

COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate")


class Turns(NamedTuple):
    """Seconds by the clock, processor seconds of the longest path, and the batches."""

    seconds: float
    path: float
    batches: list[list[int]]


class Crawl:
    """A crawl of the pages of an instance; the same signals for every scheduler.

    Args:
        scheduler: an empty scheduler, to which the pages are added.
        instance: the pages.
        batch: number of pages of a batch, at most a tenth of all.
        signals: whether the scheduler is told of signals.
    """

    def __init__(
        self, scheduler: CrawlScheduler, instance: Instance, batch: int, signals: bool = True
    ) -> None:
        self.scheduler, self.rng, self.signals = scheduler, np.random.default_rng(1), signals
        columns: dict[str, Any] = {name: getattr(instance, name) for name in COLUMNS}
        num_pages = instance.num_pages
        copies = -self.rng.random(num_pages) * num_pages / instance.bandwidth
        scheduler.add(np.arange(num_pages), last_crawl=copies, **columns)
        rate = columns["recall"] * columns["change_rate"] + columns["false_signal_rate"]
        self.total, self.now, self.batch = np.cumsum(rate), 0.0, min(batch, num_pages // 10)
        self.span = self.batch / instance.bandwidth

    def turns(self, count: int) -> Turns:
        """Choose and report some batches, with the signals between them."""
        spent, path, batches, shards = 0.0, 0.0, [], self.shard_seconds()
        for _ in range(count):
            signals = self.rng.poisson(self.total[-1] * self.span)
            pages = np.searchsorted(self.total, self.rng.random(signals) * self.total[-1])
            times = self.now + np.sort(self.rng.random(signals)) * self.span
            self.now += self.span
            start, used = time.perf_counter(), time.process_time()
            if self.signals:
                self.scheduler.signal(pages, times)
            chosen = self.scheduler.next_batch(self.now, self.batch)
            self.scheduler.report(chosen, self.now)
            spent, path = spent + time.perf_counter() - start, path + time.process_time() - used
            batches.append(chosen.tolist())
        return Turns(spent, path + float((self.shard_seconds() - shards).max()), batches)

    def shard_seconds(self) -> np.ndarray:
        """Return the processor seconds of each shard's process so far; NaN for actors of Ray."""
        workers = getattr(self.scheduler, "_workers", [])
        pids = [worker.pid for worker in workers if hasattr(worker, "pid")]
        if any(hasattr(worker, "actor") for worker in workers):
            return np.full(1, np.nan)
        return np.array([_ticks(pid) for pid in pids] or [0]) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int:
    """Return the processor time of a process in ticks of the clock, 0 if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    return int(stat[11]) + int(stat[12])
