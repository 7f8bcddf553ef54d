"""Measure the cost of pages with fragments: bytes per page and steps per second, by size.

``CrawlLongevity-v0`` takes turns with ``CrawlNCIS-v0`` on pages that are updated and crawled as
often (instance ``quality``, 0.1 crawls per page and day, 60 days, crawls of random pages). Times
are processor times on one core; the bytes of a lane are of all arrays of its state. Writes
``cost.csv``, ``provenance.json`` and ``cost.png``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from scripts.reporting.cli import plain_errors, plain_interrupt
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.tables import console
from scripts.timing.fragment_costs import (
    CELLS,
    NCIS,
    PARTS,
    PLAIN,
    QUICK_CELLS,
    READ_LOG,
    VARIANTS,
    Cost,
    costs,
)
from scripts.timing.turns import pin

OUT, QUICK_OUT = Path("results/longevity/cost"), Path("runs/longevity/cost")
TURNS, SPELL = 15, 0.05
QUICK_TURNS, QUICK_SPELL = 3, 0.01
COLUMNS = ("pages", "lanes", "variant", "what", "unit", "median", "low", "high")

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Quick = Annotated[bool, typer.Option("--quick", help="Few pages and turns, as a smoke test.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default=f"{OUT}; {QUICK_OUT} with --quick"),
]


@app.command(help=__doc__)
def main(quick: Quick = False, out: Out = None) -> None:
    """Measure, write and print."""
    folder = out or (QUICK_OUT if quick else OUT)
    start, load_at_start = time.perf_counter(), os.getloadavg()
    with plain_interrupt("stopped; nothing was written"), plain_errors():
        check_folder(folder)
        results, core = measure(quick)
    seconds = time.perf_counter() - start
    about = {"cores": os.cpu_count(), "pinned_core": core, "load_at_start": load_at_start}
    with plain_interrupt(f"stopped while writing; {folder} may lack files of this run"):
        write_csv(folder / "cost.csv", COLUMNS, [(*cost[:-1], *cost.spread) for cost in results])
        write_provenance(
            folder / "provenance.json", "scripts.timing.longevity_scale", seconds, **about
        )
        draw(results, folder / "cost.png")
        show(results)
        typer.echo(f"-> {folder}")


def measure(quick: bool) -> tuple[list[Cost], int | None]:
    """Measure everything, with a progress bar; also return the core."""
    turns, spell = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
    results: list[Cost] = []
    # The bar is drawn between the measurements, not by a thread during them.
    with Progress(console=Console(stderr=True), auto_refresh=False) as progress:
        bar = progress.add_task("timing", total=len(QUICK_CELLS if quick else CELLS))
        core = pin()
        for cell in costs(quick, turns, spell):
            results += cell
            progress.advance(bar)
            progress.refresh()
    return results, core


def show(results: Sequence[Cost]) -> None:
    """Print one row per size and variant."""
    table = Table(title="Cost of fragments: medians")
    titles = ("pages", "lanes", "variant", "env-steps/s", "times CrawlNCIS-v0", "reset, s", "bytes")
    for title in titles:
        table.add_column(title, justify="left" if title == "variant" else "right")
    by_line: dict[tuple[int, int, str], dict[str, float]] = {}
    for cost in results:
        line = by_line.setdefault(cost[:3], {})
        kind = "bytes" if cost.unit == "bytes per page" else cost.what
        line[kind] = line.get(kind, 0.0) + cost.spread.median
    for (pages, lanes, variant), line in by_line.items():
        wanted = ("speed", "time over CrawlNCIS-v0", "reset", "bytes")
        cells = [f"{line[name]:,.4g}" if name in line else "" for name in wanted]
        table.add_row(f"{pages:,}", str(lanes), variant, *cells)
    console().print(table)


def draw(results: Sequence[Cost], path: Path) -> None:
    """Draw the time of a step against the number of pages, and the bytes of a page by part."""
    from matplotlib.figure import Figure

    from scripts.reporting.charts import save

    figure = Figure(figsize=(13.0, 6.4), layout="constrained")
    times, sizes = figure.subplots(1, 2)
    _draw_times(times, results)
    _draw_bytes(sizes, results)
    figure.suptitle(
        "Cost of fragments, on one core: time of a step, and bytes of a page of one lane",
        fontsize=11,
    )
    save(figure, path)


def _draw_times(axes: Any, results: Sequence[Cost]) -> None:
    """Draw microseconds per step of a single environment, with quartiles."""
    from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare

    names = [NCIS, *(variant.name for variant in VARIANTS), PLAIN.name + READ_LOG]
    for place, name in enumerate(names):
        own = [cost for cost in results if cost[1:4] == (1, name, "speed")]
        colour = LINE_COLOUR if place == 0 else COLOURS[(place - 1) % len(COLOURS)]
        middle = [1e6 / cost.spread.median for cost in own]
        axes.errorbar(
            [cost.pages for cost in own],
            middle,
            yerr=[
                [at - 1e6 / cost.spread.high for at, cost in zip(middle, own, strict=True)],
                [1e6 / cost.spread.low - at for at, cost in zip(middle, own, strict=True)],
            ],
            color=colour,
            marker=MARKERS[place % len(MARKERS)],
            linestyle="--" if place in (0, 7, 8) else "-",
            markersize=5,
            fillstyle="none",
            linewidth=1.2,
            capsize=2,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("pages (logarithmic scale)")
    axes.set_ylabel("microseconds per step (logarithmic scale); bars: quartiles")
    axes.set_title("a step of the single environment", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    style = {"bbox_to_anchor": (0.5, -0.13), "loc": "upper center", "ncols": 2}
    axes.legend(handles, labels, frameon=False, fontsize=8, **style)
    bare(axes)


def _draw_bytes(axes: Any, results: Sequence[Cost]) -> None:
    """Draw bytes per page by part, at the middle size of the single environment."""
    from scripts.reporting.charts import COLOURS, bare

    single = sorted({cost.pages for cost in results if cost.lanes == 1})
    pages = single[(len(single) - 1) // 2]
    names = [NCIS, *(variant.name for variant in VARIANTS)][::-1]
    left = [0.0] * len(names)
    for place, part in enumerate((*PARTS, "all else")):
        size = [
            sum(cost.spread.median for cost in results if cost[:4] == (pages, 1, name, part))
            for name in names
        ]
        axes.barh(names, size, 0.62, left=left, color=COLOURS[place], label=part)
        left = [low + more for low, more in zip(left, size, strict=True)]
    axes.set_xlabel(f"bytes per page, of {pages:,} pages, for an episode of 60 days")
    axes.set_title("memory by purpose", fontsize=10)
    axes.legend(frameon=False, fontsize=8, bbox_to_anchor=(0.4, -0.13), loc="upper center", ncols=3)
    bare(axes)


if __name__ == "__main__":
    app()
