"""Measure the live scheduler by numbers of pages, and simulated crawls beside a dense search.

Pages are those of the law ``noisy``, a tenth of which are crawled per unit of time. The scheduler
takes note of all signals and fetches, and answers in batches; only its calls are timed, after as
many crawls as there are pages, but for the largest numbers. ``simulate`` draws all events as well.
A dense search evaluates every page for each crawl; one such choice is timed. Writes
``scheduler.csv``, ``scheduler.png`` and ``provenance.json``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import simulate
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.types.compiling import ready
from policies.base.index import best_page
from policies.scheduler import CrawlScheduler, DurableScheduler
from scripts.reporting.cli import plain_errors, plain_interrupt
from scripts.reporting.rows import check_folder, replacing, write_csv, write_provenance
from scripts.reporting.tables import console

OUT, QUICK_OUT = Path("results/speed/scheduler"), Path("runs/scheduler")
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000), (1_000, 10_000)
MOST_SIMULATED = 1_000_000
NAMES = ("Greedy", "GreedyNCIS")
BATCH, WARM_UP, TIMED = 1_000, 3_000_000, 300_000
COLORS = {"Greedy": "#0072B2", "GreedyNCIS": "#D55E00"}
COLUMNS_SHOWN = (
    *("policy", "pages", "scheduled", "simulated", "dense", "ratio", "values", "bytes"),
    *("on disk", "written", "restored"),
)
COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate")


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


class Live(NamedTuple):
    """Figures of a live scheduler, as in :class:`Scale`."""

    scheduled: float
    values: float
    bytes_per_page: float
    snapshot_bytes_per_page: float
    snapshot_seconds: float
    restore_seconds: float


def scheduled(policy: str, instance: Instance) -> Live:
    """Return the figures of a live scheduler of an instance."""
    rng, num_pages = np.random.default_rng(1), instance.num_pages
    scheduler = CrawlScheduler(policy, instance.bandwidth, burst=BATCH)
    columns: dict[str, Any] = {name: getattr(instance, name) for name in COLUMNS}
    copies = -rng.random(num_pages) * num_pages / instance.bandwidth
    scheduler.add(np.arange(num_pages), last_crawl=copies, **columns)
    rate = columns["recall"] * columns["change_rate"] + columns["false_signal_rate"]
    total, batch = np.cumsum(rate), min(BATCH, num_pages // 10)
    now, spent, evaluated = 0.0, 0.0, 0
    warm_up, timed = min(3 * num_pages, WARM_UP) // batch, TIMED // batch
    for turn in range(warm_up + timed):
        if turn == warm_up:
            spent, evaluated = 0.0, scheduler.lazy.search[0]["evaluated"]
        signals = rng.poisson(total[-1] * batch / instance.bandwidth)
        pages = np.searchsorted(total, rng.random(signals) * total[-1])
        times = now + np.sort(rng.random(signals)) * batch / instance.bandwidth
        now += batch / instance.bandwidth
        start = time.perf_counter()
        if policy != "Greedy":
            scheduler.signal(pages, times)
        scheduler.report(scheduler.next_batch(now, batch), now)
        spent += time.perf_counter() - start
    values = scheduler.lazy.search[0]["evaluated"] - evaluated
    held = (*scheduler.lazy, *scheduler.choices, *scheduler.columns.values())
    size = sum(array.nbytes for array in held) / scheduler.ids.capacity
    crawls = timed * batch
    return Live(crawls / spent, float(values) / crawls, size, *kept(scheduler))


def kept(scheduler: CrawlScheduler) -> tuple[float, float, float]:
    """Return the bytes per page of a snapshot, and the seconds to write and to restore it."""
    with tempfile.TemporaryDirectory() as name:
        folder, start = Path(name), time.perf_counter()
        DurableScheduler(folder, scheduler).close()
        written = time.perf_counter() - start
        size = sum(path.stat().st_size for path in folder.glob("snapshot-*"))
        start = time.perf_counter()
        DurableScheduler(folder).close()
        return size / len(scheduler), written, time.perf_counter() - start


def measured(policy: str, num_pages: int) -> Scale:
    """Return the figures of a policy."""
    bandwidth = num_pages / 10.0
    instance = draw_noisy(np.random.default_rng(0), num_pages, bandwidth=bandwidth)
    live = scheduled(policy, instance)
    player: Any = policies.find(policy)
    player = player(features=("elapsed", "signals", *player.needs))
    simulated = np.nan
    if num_pages <= MOST_SIMULATED:
        slots = max(3 * num_pages, TIMED)
        start = time.perf_counter()
        simulate(instance, player, slots / bandwidth, requests=False)
        simulated = slots / (time.perf_counter() - start)
    form = player.compile(instance.problem(), 0, np.random.default_rng(0))
    elapsed = np.random.default_rng(2).random(num_pages) * 10.0
    state = elapsed, np.floor(elapsed), np.ones(num_pages, np.bool_)
    dense = []
    for _ in range(5):
        start = time.perf_counter()
        ready(best_page)(form.value, form.parameters, *state)
        dense.append(time.perf_counter() - start)
    speeds = live.scheduled, simulated, 1.0 / min(dense)
    return Scale(policy, num_pages, *speeds, *live[1:])


def draw(path: Path, rows: list[Scale]) -> None:
    """Draw crawls per second by numbers of pages, as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.6), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for policy in NAMES:
        own = [row for row in rows if row.policy == policy]
        sizes = [row.pages for row in own]
        for column, style, label in (
            ("scheduled", "o-", "live scheduler"),
            ("simulated", "s--", "simulated, with all events"),
            ("dense", "x:", "dense search"),
        ):
            heights = [getattr(row, column) for row in own]
            axes.plot(sizes, heights, style, color=COLORS[policy], label=f"{policy}, {label}")
    axes.set(xscale="log", yscale="log", xlabel="pages", ylabel="crawls per second, one core")
    axes.set_title("Exact choices by the largest crawl value", loc="left", weight="bold")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png")


def work(sizes: tuple[int, ...]) -> Iterator[Scale]:
    """Yield the figures of all policies and sizes."""
    for policy in NAMES:
        measured(policy, QUICK_SIZES[0])  # compiles
        for num_pages in sizes:
            yield measured(policy, num_pages)


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Out = Annotated[Path | None, typer.Option(help="Output folder.", show_default=str(OUT))]
Quick = Annotated[bool, typer.Option("--quick", help="Small numbers of pages.")]


@app.command(help=__doc__)
def main(out: Out = None, quick: Quick = False) -> None:
    """Measure, write, draw and print."""
    start, rows = time.perf_counter(), []
    folder = out or (QUICK_OUT if quick else OUT)
    numbers = QUICK_SIZES if quick else SIZES
    with plain_interrupt("stopped; nothing was written"), plain_errors():
        check_folder(folder)
        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("measuring", total=len(NAMES) * len(numbers))
            for row in work(numbers):
                rows.append(row)
                bar.advance(task)
    write_csv(folder / "scheduler.csv", Scale._fields, rows)
    draw(folder / "scheduler.png", rows)
    taken = time.perf_counter() - start
    write_provenance(folder / "provenance.json", "scripts.timing.scheduler_scale", taken)
    table = Table(title="Crawls per second of one core")
    for name in COLUMNS_SHOWN:
        table.add_column(name, justify="left" if name == "policy" else "right")
    for row in rows:
        speeds = [f"{speed:,.0f}" for speed in row[2:5]]
        ratio = f"{row.scheduled / row.dense:,.0f}"
        last = (
            f"{row.values:.1f}",
            f"{row.bytes_per_page:.0f}",
            f"{row.snapshot_bytes_per_page:.0f}",
        )
        last += (f"{row.snapshot_seconds:.2f} s", f"{row.restore_seconds:.2f} s")
        table.add_row(row.policy, f"{row.pages:,}", *speeds, ratio, *last)
    console().print(table)
    typer.echo(f"-> {folder}")


if __name__ == "__main__":
    app()
