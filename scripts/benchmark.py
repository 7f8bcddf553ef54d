"""Benchmark: policies on the same events in several settings; tables, rows and pictures.

Writes rows.parquet, rows.csv, summary.csv, provenance.json and a picture per setting. Pages with
fragments (quality, random) are played in CrawlLongevity-v0 and judged by the divergence of copies,
of which less is better.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crawl_envs.evaluation import Row
from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, LAWS
from scripts.reporting import tables
from scripts.reporting.cli import plain_errors, plain_interrupt
from scripts.reporting.comparisons import (
    BANDWIDTH,
    Comparison,
    Sizes,
    choices,
    compare,
    policy_factories,
)
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.runner import Store, check_kept, run

SETTINGS = "uniform,noisy,garden-handbook"
OUT, QUICK_OUT = Path("results/benchmark"), Path("runs/benchmark")
SEEDS, QUICK_SEEDS = 20, 5
HORIZON, QUICK_HORIZON = 200.0, 20.0

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Settings = Annotated[
    str | None,
    typer.Option(
        help=f"Of {', '.join(choices())}; with commas.", show_default=f"{SETTINGS}; none by --trace"
    ),
]
Policies = Annotated[
    str | None,
    typer.Option(help="Name or Name:key=value; with commas.", show_default="those that differ"),
]
Seeds = Annotated[int | None, typer.Option(help="Seeds.", show_default=f"{SEEDS}")]
Pages = Annotated[int, typer.Option(help="Pages of a synthetic setting.")]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        help="Its crawls per unit of time.",
        show_default=f"{BANDWIDTH:g}; {CRAWLS_PER_PAGE:g} per page of {' and '.join(LAWS)}",
    ),
]
Horizon = Annotated[
    float | None, typer.Option(help="Its length in units of time.", show_default=f"{HORIZON:g}")
]
TraceFolder = Annotated[
    str | None, typer.Option("--trace", help="Folder of a recorded trace with fitted parameters.")
]
Signals = Annotated[
    str, typer.Option(help="Signals used on traces: directory, mentions, both or none.")
]
DaysPerCrawl = Annotated[
    float, typer.Option(help="On traces, days between crawls of a page if all get as many.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Few seeds, short episodes: to see that it works.")
]
Workers = Annotated[int | None, typer.Option(help="Processes.", show_default="one per processor")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of results.", show_default=f"{OUT}; {QUICK_OUT} if --quick"),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep rows that are there, and add to them.")
]


def check_numbers(**named: float) -> None:
    """Raise ValueError unless whole numbers are >= 1, and others positive and finite."""
    for name, value in named.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, int) and value < 1:
            raise ValueError(f"{option} must be >= 1, got {value}")
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{option} must be finite and > 0, got {value:g}")


def words(text: str | None) -> list[str]:
    """Split at commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def comparisons(
    names: Sequence[str], trace: str | None, specs: Sequence[str], sizes: Sizes
) -> list[Comparison]:
    """What is compared in the named settings, and in a trace of one's own.

    Raises:
        ValueError: an unknown setting or policy, or one that its environment objects to.
    """
    for name in names:
        if name not in choices():
            raise ValueError(f"setting must be one of {', '.join(choices())}, got {name!r}")
    policy_factories(specs)
    if not (names or trace):
        raise ValueError("--settings names no setting")
    chosen = [
        compare(name, specs, sizes) for name in dict.fromkeys((*names, *filter(None, [trace])))
    ]
    taken = [item.setting.name for item in chosen]
    if len(set(taken)) < len(taken):
        raise ValueError(f"--trace {trace} is named {taken[-1]!r}, as another setting is")
    for item in chosen:
        item.setting.check()
    return chosen


@app.command(help=__doc__)
def main(
    settings: Settings = None,
    policies: Policies = None,
    seeds: Seeds = None,
    num_pages: Pages = 100,
    bandwidth: Bandwidth = None,
    horizon: Horizon = None,
    trace: TraceFolder = None,
    signals: Signals = "directory",
    days_per_crawl: DaysPerCrawl = 5.0,
    quick: Quick = False,
    workers: Workers = None,
    out: Out = None,
    resume: Resume = False,
) -> None:
    """Run the benchmark."""
    console = tables.console()
    folder = out or (QUICK_OUT if quick else OUT)
    count = seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS
    length = horizon if horizon is not None else QUICK_HORIZON if quick else HORIZON
    processes = workers if workers is not None else os.cpu_count() or 1
    with plain_errors():
        check_numbers(seeds=count, num_pages=num_pages, workers=processes)
        check_numbers(horizon=length, days_per_crawl=days_per_crawl)
        if bandwidth is not None:
            check_numbers(bandwidth=bandwidth)
        names = words(settings if settings is not None or trace else SETTINGS)
        sizes = Sizes(num_pages, bandwidth, length, days_per_crawl, signals)
        compared = comparisons(names, trace, words(policies), sizes)
        played = [item.setting for item in compared]
        check_folder(folder)
        store = Store(folder / "rows.parquet", "benchmark", played)
        store.load(keep=resume)
        check_kept(played, count, store)
    with plain_interrupt(f"stopped; {folder} keeps what was done, to go on with by --resume"):
        run(played, count, store, processes, console)
    report(compared, store, folder, console)
    write_provenance(
        folder / "provenance.json", "scripts.benchmark", store.seconds, rows=len(store.rows)
    )
    console.print(f"\n{store.seconds:.0f} s on {processes} workers -> {folder}")


def report(compared: Sequence[Comparison], store: Store, folder: Path, console: Console) -> None:
    """Print a table and draw a picture of each setting; write rows and summary as CSV."""
    from scripts.reporting.charts import policies_as_dots

    records = []
    for item in compared:
        name = item.setting.name
        rows = [row for row in store.rows if row.setting == name]
        console.print()
        console.print(tables.comparison_table(rows, item))
        policies_as_dots(rows, folder / f"{name.replace(os.sep, '-')}.png", item)
        records += tables.summary_records(rows, item.references, item.metrics)
    write_csv(folder / "summary.csv", tables.SUMMARY_COLUMNS, records)
    write_csv(folder / "rows.csv", Row._fields, store.rows)


if __name__ == "__main__":
    app()
