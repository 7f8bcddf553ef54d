"""Measure the live scheduler by numbers of pages, and simulated crawls beside a dense search.

Pages are those of the law ``noisy``, a tenth of which are crawled per unit of time. The scheduler
takes note of all signals and fetches, and answers in batches; only its calls are timed, after as
many crawls as there are pages, but for the largest numbers. ``simulate`` draws all events as well.
A dense search evaluates every page for each crawl; one such choice is timed. Writes
``scheduler.csv``, ``scheduler.png`` and ``provenance.json``.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import policies
from crawl_envs import Instance
from crawl_envs.compiled.compiling import ready
from crawl_envs.evaluation import simulate
from crawl_envs.instances.synthetic import draw_noisy
from policies.base.index import best_page
from policies.scheduler import CrawlScheduler, DurableScheduler
from scripts.timing.commands import Cases, Measurement, compiling, measuring
from scripts.timing.live_crawls import Crawl
from scripts.timing.turns import taken

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000), (1_000, 10_000)
MOST_SIMULATED = 1_000_000
NAMES = ("Greedy", "GreedyNCIS")
BATCH, WARM_UP, TIMED = 1_000, 3_000_000, 300_000
SEARCHES = {
    "scheduled": "live scheduler",
    "simulated": "simulated, with all events",
    "dense": "dense search",
}


class Scale(NamedTuple):
    """Figures of a policy at a number of pages.

    Crawls per second of the scheduler, simulated, and by a dense search; values per crawl of the
    scheduler; its bytes per page, without ids; bytes per page of a snapshot, and seconds to write
    and to restore it.
    """

    policy: str
    pages: int
    scheduled: float
    simulated: float
    dense: float
    values: float
    bytes_per_page: float
    snapshot_bytes_per_page: float
    snapshot_seconds: float
    restore_seconds: float


def scheduled(policy: str, instance: Instance) -> tuple[float, ...]:
    """Return the figures of a live scheduler: scheduled, and those from values on."""
    scheduler = CrawlScheduler(policy, instance.bandwidth, burst=BATCH / instance.bandwidth)
    crawl = Crawl(scheduler, instance, BATCH, signals=policy != "Greedy")
    crawl.turns(min(3 * instance.num_pages, WARM_UP) // crawl.batch)
    evaluated, timed = scheduler.pages.lazy.search[0]["evaluated"], TIMED // crawl.batch
    seconds, crawls = crawl.turns(timed).seconds, timed * crawl.batch
    values = float(scheduler.pages.lazy.search[0]["evaluated"] - evaluated)
    held = (*scheduler.pages.lazy, *scheduler.pages.choices, *scheduler.pages.columns.values())
    size = sum(array.nbytes for array in held) / scheduler.pages.ids.capacity
    return crawls / seconds, values / crawls, size, *kept(scheduler)


def kept(scheduler: CrawlScheduler) -> tuple[float, float, float]:
    """Return the bytes per page of a snapshot, and the seconds to write and to restore it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = taken(lambda: DurableScheduler(folder, scheduler).close())
        size = sum(path.stat().st_size for path in folder.glob("snapshot-*"))
        return size / len(scheduler), written, taken(lambda: DurableScheduler(folder).close())


def measured(policy: str, num_pages: int) -> list[Scale]:
    """Return the figures of a policy, as a row."""
    bandwidth = num_pages / 10.0
    instance = draw_noisy(np.random.default_rng(0), num_pages, bandwidth=bandwidth)
    live = scheduled(policy, instance)
    player: Any = policies.find(policy)
    player = player(features=("elapsed", "signals", *player.needs))
    simulated = np.nan
    if num_pages <= MOST_SIMULATED:
        slots = max(3 * num_pages, TIMED)
        playing = partial(simulate, requests=False)
        simulated = slots / taken(playing, instance, player, slots / bandwidth)
    form = player.compile(instance.problem(), 0, np.random.default_rng(0))
    elapsed = np.random.default_rng(2).random(num_pages) * 10.0
    state = elapsed, np.floor(elapsed), np.ones(num_pages, np.bool_)
    search = ready(best_page), form.value, form.parameters, *state
    dense = 1.0 / min(taken(*search) for _ in range(5))
    return [Scale(policy, num_pages, live[0], simulated, dense, *live[1:])]


def draw(path: Path, rows: list[Scale]) -> None:
    """Draw crawls per second by numbers of pages, as PNG."""
    import pandas as pd

    from scripts.present.charts import Axis, Frame, lines

    every = pd.DataFrame(rows)
    data = pd.concat(
        every.assign(x=every.pages, y=every[column], label=every.policy + f", {label}")
        for column, label in SEARCHES.items()
    )
    frame = Frame(
        "Exact choices by the largest crawl value",
        x=Axis("pages (logarithmic scale)", "log"),
        y=Axis("crawls per second, one core (logarithmic scale)", "log"),
    )
    lines(data, path, frame)


def cases(quick: bool) -> Cases:
    """Return a case per policy and size, after one of each policy that compiles."""

    def of(sizes: tuple[int, ...]) -> Cases:
        return {
            f"{policy}, {pages:,} pages": partial(measured, policy, pages)
            for policy in NAMES
            for pages in sizes
        }

    return {**compiling(of(QUICK_SIZES[:1])), **of(QUICK_SIZES if quick else SIZES)}


OF = Measurement(
    "scripts.timing.scheduler_scale",
    {"scheduler": Scale},
    "Crawls per second of one core",
    draw=draw,
)
app = measuring(OF, __doc__, cases)

if __name__ == "__main__":
    app()
