"""Measure the shards of a live scheduler: what they lose, how fast they are, and how they restart.

*Freshness*: pages without signals in four shards, one of which has the more important pages; the
expected freshness of one scheduler, of shards with equal shares of the bandwidth, and with shares
that are exchanged. *Speed*: crawls per second of pages of the law ``noisy``, with all signals and
reports, of one scheduler and of shards in processes and in Ray, if that is installed; all take
turns. Other work on the machine slows several processes more than one, so there are also the crawls
per second of the longest path: the processor seconds of this process and of its busiest shard.
*Restart*: a shard's process is killed; time until the next batch is there, and whether later
batches differ from those of shards that were not killed. Writes ``shards.csv`` and
``provenance.json``.
"""

from __future__ import annotations

import importlib.util
import math
import os
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.instances.synthetic import draw_noisy
from policies.scheduler import CrawlScheduler, ShardedScheduler
from policies.scheduler.ids import shards_of
from scripts.timing.commands import Cases, Measurement, measuring
from scripts.timing.live_crawls import Crawl

SHARDS, FEW, TURN = 4, 2_000, 40
PAGES, QUICK_PAGES = 1_000_000, 5_000
BATCH, ROUNDS, TURNS = 2_000, 5, 20


class Row(NamedTuple):
    """A figure: of a part of the measurement, a case and a scheduler."""

    part: str
    case: str
    scheduler: str
    value: float


def freshness(
    scheduler: CrawlScheduler | ShardedScheduler, important: float, horizon: float
) -> float:
    """Return the expected freshness in the second half, if one shard has the important pages."""
    rng, names = np.random.default_rng(0), np.array([f"host{k}" for k in range(99)])
    hosts = np.array([names[shards_of(names, SHARDS) == k][0] for k in range(SHARDS)])
    shard = np.arange(FEW) % SHARDS
    importance = rng.random(FEW) * np.where(shard == 0, important, 1.0)
    rate, last, fresh = rng.random(FEW), np.zeros(FEW), 0.0
    columns: dict[str, Any] = {"importance": importance, "change_rate": rate}
    scheduler.add(np.arange(FEW), host=hosts[shard], last_crawl=0.0, **columns)
    for turn in range(1, int(horizon * scheduler.bandwidth / TURN) + 1):
        now = turn * TURN / scheduler.bandwidth
        pages = scheduler.next_batch(now, TURN)
        scheduler.report(pages, now)
        if now > 0.5 * horizon:
            lost = np.expm1(-rate[pages] * (now - last[pages])) / rate[pages]
            fresh -= float((importance[pages] * lost).sum())
        last[pages] = now
    return fresh / (0.5 * horizon * importance.sum())


def losses(horizon: float) -> Iterator[Row]:
    """Yield the freshness of one scheduler, and of shards with equal and with exchanged shares."""
    bandwidth = FEW / 10.0
    for important in (1.0, 10.0, 100.0):
        case = f"one shard {important:g} times as important"
        for name, scheduler in (
            ("one scheduler", CrawlScheduler("Greedy", bandwidth, burst=TURN / bandwidth)),
            ("equal shares", sharded("Greedy", bandwidth, TURN, SHARDS, balance=math.inf)),
            ("exchanged shares", sharded("Greedy", bandwidth, TURN, SHARDS)),
        ):
            yield Row("freshness", case, name, freshness(scheduler, important, horizon))


def sharded(
    policy: str, bandwidth: float, burst: int, shards: int, **more: Any
) -> ShardedScheduler:
    """Return shards of a scheduler."""
    return ShardedScheduler(policy, bandwidth, burst=burst / bandwidth, shards=shards, **more)


def crawl(scheduler: CrawlScheduler | ShardedScheduler, num_pages: int) -> Crawl:
    """Return a crawl of pages of the law ``noisy``."""
    instance = draw_noisy(np.random.default_rng(0), num_pages, bandwidth=num_pages / 10.0)
    return Crawl(scheduler, instance, BATCH)


def speeds(num_pages: int) -> Iterator[Row]:
    """Yield the crawls per second of one scheduler and of shards, the medians of some rounds."""
    bandwidth, cases = num_pages / 10.0, [("local", 2), ("processes", 1), ("processes", 2)]
    if importlib.util.find_spec("ray") is not None:
        cases.append(("ray", 2))
    plain = CrawlScheduler("GreedyNCIS", bandwidth, burst=BATCH / bandwidth)
    shards = [sharded("GreedyNCIS", bandwidth, BATCH, n, backend=b) for b, n in cases]
    names = ["one scheduler", *(f"{number} {backend}" for backend, number in cases)]
    crawls = [crawl(scheduler, num_pages) for scheduler in (plain, *shards)]
    for one in crawls:
        one.turns(num_pages // one.batch)
    spent = np.array([[one.turns(TURNS)[:2] for one in crawls] for _ in range(ROUNDS)])
    for scheduler in shards:
        scheduler.close()
    speed, case = TURNS * crawls[0].batch / np.median(spent, axis=0), f"{num_pages:,} pages"
    for part, column in (("crawls per second", 0), ("crawls per second of the path", 1)):
        for name, value in zip(names, speed[:, column], strict=True):
            if np.isfinite(value):
                yield Row(part, case, name, float(value))


def restarts(num_pages: int) -> Iterator[Row]:
    """Yield the seconds of a batch after a shard was killed, and the pages that differ then."""
    bandwidth, case = num_pages / 10.0, f"{num_pages:,} pages, one of two shards killed"
    with tempfile.TemporaryDirectory() as folder:
        kept = sharded("GreedyNCIS", bandwidth, BATCH, 2, backend="processes", folder=folder)
        with kept, sharded("GreedyNCIS", bandwidth, BATCH, 2) as plain:
            one, other = crawl(kept, num_pages), crawl(plain, num_pages)
            kept.save()
            before = one.turns(TURNS).seconds
            other.turns(TURNS)
            os.kill(kept._workers[0].pid, signal.SIGKILL)
            first, _, batch = one.turns(1)
            later = one.turns(TURNS).batches
            differ = batch + later != other.turns(1).batches + other.turns(TURNS).batches
    yield Row("seconds of a batch", case, "before", before / TURNS)
    yield Row("seconds of a batch", case, "after the kill", first)
    yield Row("batches that differ", case, "after the kill", float(differ))


def cases(quick: bool) -> Cases:
    """Return the parts of the measurement."""
    num_pages, horizon = (QUICK_PAGES, 20.0) if quick else (PAGES, 200.0)
    return {
        "freshness": partial(losses, horizon),
        "speed": partial(speeds, num_pages),
        "restart": partial(restarts, num_pages),
    }


OF = Measurement("scripts.timing.shards", {"shards": Row}, "Shards of a live scheduler")
app = measuring(OF, __doc__, cases)

if __name__ == "__main__":
    app()
