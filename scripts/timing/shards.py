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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table

from crawl_envs.instances.synthetic import draw_noisy
from policies.scheduler import CrawlScheduler, ShardedScheduler
from policies.scheduler.ids import shards_of
from scripts.reporting.cli import plain_errors, plain_interrupt
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.tables import console

OUT, QUICK_OUT = Path("results/speed/shards"), Path("runs/shards")
COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate")
SHARDS, FEW, TURN = 4, 2_000, 40
PAGES, QUICK_PAGES = 1_000_000, 5_000
BATCH, ROUNDS, TURNS = 2_000, 5, 20


class Row(NamedTuple):
    """A figure: of a part of the measurement, a case and a scheduler."""

    part: str
    case: str
    scheduler: str
    value: float


def freshness(scheduler: CrawlScheduler, important: float, horizon: float) -> float:
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
            ("one scheduler", CrawlScheduler("Greedy", bandwidth, burst=TURN)),
            ("equal shares", sharded("Greedy", bandwidth, TURN, SHARDS, balance=math.inf)),
            ("exchanged shares", sharded("Greedy", bandwidth, TURN, SHARDS)),
        ):
            yield Row("freshness", case, name, freshness(scheduler, important, horizon))


def sharded(
    policy: str, bandwidth: float, burst: int, shards: int, **more: Any
) -> ShardedScheduler:
    """Return shards of a scheduler."""
    return ShardedScheduler(policy, bandwidth, burst=burst, shards=shards, **more)


class Crawl:
    """A crawl of pages of the law ``noisy``; the same signals for every scheduler."""

    def __init__(self, scheduler: CrawlScheduler, num_pages: int) -> None:
        instance = draw_noisy(np.random.default_rng(0), num_pages, bandwidth=num_pages / 10.0)
        self.scheduler, self.rng = scheduler, np.random.default_rng(1)
        columns: dict[str, Any] = {name: getattr(instance, name) for name in COLUMNS}
        copies = -10.0 * self.rng.random(num_pages)
        scheduler.add(np.arange(num_pages), last_crawl=copies, **columns)
        rate = columns["recall"] * columns["change_rate"] + columns["false_signal_rate"]
        self.total, self.now, self.batch = np.cumsum(rate), 0.0, min(BATCH, num_pages // 10)
        self.span = self.batch / instance.bandwidth

    def turns(self, count: int) -> tuple[float, float, list[list[int]]]:
        """Return the seconds of some batches with signals and reports, and the batches.

        The seconds are those by the clock, and those of processors on the longest path.
        """
        spent, path, batches, shards = 0.0, 0.0, [], self.shard_seconds()
        for _ in range(count):
            signals = self.rng.poisson(self.total[-1] * self.span)
            pages = np.searchsorted(self.total, self.rng.random(signals) * self.total[-1])
            times = self.now + np.sort(self.rng.random(signals)) * self.span
            self.now += self.span
            start, used = time.perf_counter(), time.process_time()
            self.scheduler.signal(pages, times)
            chosen = self.scheduler.next_batch(self.now, self.batch)
            self.scheduler.report(chosen, self.now)
            spent, path = spent + time.perf_counter() - start, path + time.process_time() - used
            batches.append(chosen.tolist())
        return spent, path + float((self.shard_seconds() - shards).max()), batches

    def shard_seconds(self) -> np.ndarray:
        """Return the processor seconds of each shard's process so far; NaN for actors of Ray."""
        workers = getattr(self.scheduler, "_workers", [])
        pids = [worker.process.pid for worker in workers if hasattr(worker, "process")]
        if any(hasattr(worker, "actor") for worker in workers):
            return np.full(1, np.nan)
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
        ticks = [int(stat[11]) + int(stat[12]) for stat in stats]
        return np.array(ticks or [0]) / os.sysconf("SC_CLK_TCK")


def speeds(num_pages: int) -> Iterator[Row]:
    """Yield the crawls per second of one scheduler and of shards, the medians of some rounds."""
    bandwidth, cases = num_pages / 10.0, [("local", 2), ("processes", 1), ("processes", 2)]
    if importlib.util.find_spec("ray") is not None:
        cases.append(("ray", 2))
    plain = CrawlScheduler("GreedyNCIS", bandwidth, burst=BATCH)
    shards = [sharded("GreedyNCIS", bandwidth, BATCH, n, backend=b) for b, n in cases]
    names = ["one scheduler", *(f"{number} {backend}" for backend, number in cases)]
    crawls = [Crawl(scheduler, num_pages) for scheduler in (plain, *shards)]
    for crawl in crawls:
        crawl.turns(num_pages // crawl.batch)
    spent = np.array([[crawl.turns(TURNS)[:2] for crawl in crawls] for _ in range(ROUNDS)])
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
            one, other = Crawl(kept, num_pages), Crawl(plain, num_pages)
            kept.save()
            before = one.turns(TURNS)[0]
            other.turns(TURNS)
            process: Any = kept._workers[0]
            os.kill(process.process.pid, signal.SIGKILL)
            first, _, batch = one.turns(1)
            later = one.turns(TURNS)[2]
            differ = batch + later != other.turns(1)[2] + other.turns(TURNS)[2]
    yield Row("seconds of a batch", case, "before", before / TURNS)
    yield Row("seconds of a batch", case, "after the kill", first)
    yield Row("batches that differ", case, "after the kill", float(differ))


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Out = Annotated[Path | None, typer.Option(help="Output folder.", show_default=str(OUT))]
Quick = Annotated[bool, typer.Option("--quick", help="Few pages and a short time.")]


@app.command(help=__doc__)
def main(out: Out = None, quick: Quick = False) -> None:
    """Measure, write and print."""
    start, rows = time.perf_counter(), list[Row]()
    folder = out or (QUICK_OUT if quick else OUT)
    num_pages, horizon = (QUICK_PAGES, 20.0) if quick else (PAGES, 200.0)
    table = Table(title="Shards of a live scheduler")
    for name in Row._fields:
        table.add_column(name, justify="right" if name == "value" else "left")
    with plain_interrupt("stopped; nothing was written"), plain_errors():
        check_folder(folder)
        with console().status("measuring"):
            for part in (losses(horizon), speeds(num_pages), restarts(num_pages)):
                rows.extend(part)
    write_csv(folder / "shards.csv", Row._fields, rows)
    taken = time.perf_counter() - start
    write_provenance(folder / "provenance.json", "scripts.timing.shards", taken)
    for row in rows:
        table.add_row(*row[:3], f"{row.value:,.4g}")
    console().print(table)
    typer.echo(f"-> {folder}")


if __name__ == "__main__":
    app()
