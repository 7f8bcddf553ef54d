"""Write an example of a crawl log: crawls of a recorded site.

Pages are crawled from time to time, and a crawl shows only whether the page has changed since the
last one. Writes log.csv (url, time, changed, status, bytes) and signals.csv (url, time, source: an
announcement named the page). The bytes are drawn: log-normal by page, with small changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option

from crawl_envs.instances import traces
from crawl_envs.instances.traces import Trace
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import one_of
from policies.live.logs.crawl_log import CrawlLog, crawls_before
from policies.live.logs.imputation import Changes
from scripts.cli.commands import command
from scripts.study.rows import check_folder, write_csv

SCHEDULES = ("regular", "Poisson")
SITE = "garden-handbook"
FIRST_DAY = np.datetime64("2026-01-01T00:00:00")


def main(
    trace: Annotated[str, Option(help="Folder of a trace, or name of a shipped one.")] = SITE,
    days: Annotated[float, Option(min=0.01, help="Mean days between crawls of a page.")] = 5.0,
    schedule: Annotated[str, Option(help="Times of crawls: regular or Poisson.")] = "regular",
    seed: Annotated[int, Option(min=0, help="Seed of the times.")] = 0,
    out: Annotated[Path, Option(help="Folder.")] = Path(),
) -> None:
    """Write log.csv and signals.csv of a simulated crawl of a recorded site."""
    one_of("schedule", schedule, SCHEDULES)
    record = traces.load(traces.find(trace))
    log, _ = thinned_log(record, days, schedule, np.random.default_rng(seed))
    check_folder(out)
    urls = [f"https://{record.name}.example/{d}/{k}" for k, d in enumerate(record.directory)]
    size = sizes_of(log, np.random.default_rng([seed, 1]))
    crawls = zip(log.page, log.time, log.changed, log.gone, size, strict=True)
    rows: Iterable[tuple[object, ...]] = (
        (urls[page], _date(time), int(changed), 404 if gone else 200, count)
        for page, time, changed, gone, count in crawls
    )
    write_csv(out / "log.csv", ("url", "time", "changed", "status", "bytes"), rows)
    signals = zip(log.signal_page, log.signal_time, strict=True)
    rows = ((urls[page], _date(time), "mentions") for page, time in signals)
    write_csv(out / "signals.csv", ("url", "time", "source"), rows)
    print(f"{log.page.size} crawls, {log.signal_page.size} signals -> {out}/log.csv, signals.csv")


def sizes_of(log: CrawlLog, rng: np.random.Generator) -> IntArray:
    """Draw the bytes of each crawl, (n,): medians of 20 kB by page, and 1 kB of gone pages."""
    size = 20_000.0 * np.exp(rng.standard_normal(log.num_pages))[log.page]
    size *= np.exp(0.1 * rng.standard_normal(log.page.size))
    return np.where(log.gone, 1_000, np.rint(size)).astype(np.int64)


def _date(day: float) -> str:
    """Return a day of the record, a number, as a date and time in ISO 8601."""
    return f"{FIRST_DAY + np.timedelta64(round(day * 86400.0), 's')}Z"


def thinned_log(
    trace: Trace, days_per_crawl: float, schedule: str, rng: np.random.Generator
) -> tuple[CrawlLog, Changes]:
    """Return a log of simulated crawls of a recorded site, and the true changes of its pages.

    Each page is crawled when it is created, and then until a crawl finds it gone. The times between
    crawls are even after a random first one, or exponential. Mentions are signals.

    Args:
        trace: the record.
        days_per_crawl: mean days between crawls of a page.
        schedule: ``regular`` or ``Poisson``.
        rng: source of randomness.
    """
    born = np.maximum(trace.created, 0.0)
    page, time = _visits(born, trace.days, days_per_crawl, schedule, rng)
    late = time >= trace.deleted[page]
    order = np.lexsort((time, page))
    page, time, late = page[order], time[order], late[order]
    first = np.append(True, page[1:] != page[:-1])
    seen_alive = ~late | first | ~np.append(False, late[:-1])
    page, time, gone = page[seen_alive], time[seen_alive], late[seen_alive]
    after = trace.change_time > born[trace.change_page]
    true = Changes(trace.change_page[after], trace.change_time[after])
    changed = changes_found(page, time, true) & ~gone
    order = np.argsort(time, kind="stable")
    log = CrawlLog(
        urls=np.array([str(number) for number in range(born.size)], np.object_),
        page=page[order],
        time=time[order],
        changed=changed[order],
        gone=gone[order],
        signal_page=trace.mention_page,
        signal_time=trace.mention_time,
        signal_source=np.zeros(trace.mention_page.size, np.int64),
        sources=("mentions",),
        timed=np.ones(1, np.bool_),
    )
    return log, true


def _visits(
    born: FloatArray, days: float, days_per_crawl: float, schedule: str, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return the page and the day of each visit from creation to the end of the record."""
    page = [np.arange(born.size)]
    time = [born]
    step = rng.random(born.size) * days_per_crawl
    while True:
        if schedule != "regular":
            step = rng.exponential(days_per_crawl, page[-1].size)
        following = time[-1] + step
        alive = following <= days
        if not alive.any():
            return np.concatenate(page), np.concatenate(time)
        page.append(page[-1][alive])
        time.append(following[alive])
        step = np.full(page[-1].size, days_per_crawl)


def changes_found(page: IntArray, time: FloatArray, true: Changes) -> BoolArray:
    """Return whether each crawl (sorted by page, then time) found a change since the last one."""
    before = crawls_before(true.page, true.time, page, time)
    after_change = np.zeros(page.size + 1, np.bool_)
    after_change[before[before >= 0] + 1] = True
    same_page: BoolArray = np.diff(page, prepend=-1) == 0
    return after_change[:-1] & same_page


app = command(main, __doc__)

if __name__ == "__main__":
    app()
