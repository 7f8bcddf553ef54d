"""Measure the speed of the suite against other implementations, in one run on one core.

Thresholds are for ratios and not for seconds, since machines differ; see
:mod:`scripts.timing.turns` for the method. Writes ``speed.csv`` (ratios, speeds and the parts of a
step), ``growth.csv``, ``provenance.json`` (the machine) and ``speed.png``; with ``--against`` only
``against.csv`` and ``against.json`` (the machine), the speed over that of another checkout.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from scripts.reporting.cli import plain_errors, plain_interrupt
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.tables import console
from scripts.timing import checkouts
from scripts.timing.comparisons import (
    COLD_START_LIMIT,
    COMPARISONS,
    INSTANCE,
    PARTS,
    Comparison,
    Parts,
    cold_start,
)
from scripts.timing.growth import Bar, Cost, cells, costs, draw
from scripts.timing.solver_comparisons import solver_comparisons
from scripts.timing.stepped import CASES
from scripts.timing.turns import Spread, pin, spread, take_turns

OUT, QUICK_OUT = Path("results/speed"), Path("runs/speed")
TURNS, SPELL, STARTS = 41, 0.05, 5
QUICK_TURNS, QUICK_SPELL, QUICK_STARTS = 9, 0.01, 2


class Figure(NamedTuple):
    """A measured number with quartiles, and its bound if any.

    ``kind`` is ``ratio``, ``speed``, ``part`` or ``start``; a ratio must reach its bound, a start
    time in seconds must stay below it. ``group`` is the comparison, or the whole of a part.
    """

    kind: str
    group: str
    name: str
    against: str
    unit: str
    spread: Spread
    bound: float | None = None

    @property
    def verdict(self) -> str:
        """``pass``, ``fail``, or empty without a bound."""
        if self.bound is None:
            return ""
        median = self.spread.median
        kept = median < self.bound if self.kind == "start" else median >= self.bound
        return "pass" if kept else "fail"


def turns_of(comparison: Comparison, turns: int) -> int:
    """Return how many turns of a contest are taken where ``turns`` are asked for."""
    return turns if comparison.most_turns is None else min(turns, comparison.most_turns)


def measure_comparison(
    comparison: Comparison, turns: int, spell: float, tick: Callable[[], None]
) -> Iterator[Figure]:
    """Run a contest; yield its ratios, then its speeds."""
    taken = []
    for turn in take_turns(comparison.tasks(), turns_of(comparison, turns), spell):
        taken.append(turn)
        tick()
    seconds = {name: np.array([turn[name] for turn in taken]) for name in taken[0]}
    for task, baseline, floor in comparison.ratios:
        ratio = spread(seconds[baseline] / seconds[task])
        yield Figure("ratio", comparison.name, task, baseline, "times as fast", ratio, floor)
    for name, each in seconds.items():
        speed = spread(comparison.amount / each)
        yield Figure("speed", comparison.name, name, "", f"{comparison.unit}/s", speed)


def measure_parts(
    parts: Parts, turns: int, spell: float, tick: Callable[[], None]
) -> Iterator[Figure]:
    """Yield the parts of a step: differences between increasingly large parts of it."""
    taken = []
    for turn in take_turns(parts.tasks(), turns, spell):
        taken.append(turn)
        tick()
    for name, less, more in parts.differences:
        difference = np.array([turn[more] - turn[less] for turn in taken])
        yield Figure("part", parts.name, name, "", "s", spread(difference))


def measure_starts(starts: int, tick: Callable[[], None]) -> Iterator[Figure]:
    """Yield the times of a cold start, after one start that fills the cache of compiled kernels.

    The wall time includes waiting for other processes of the machine; the processor time does not.
    """
    cold_start()
    taken = []
    for _ in range(starts):
        taken.append(cold_start())
        tick()
    wall, busy = (spread(np.array(times)) for times in zip(*taken, strict=True))
    group = "import, make, reset, step"
    yield Figure("start", group, "wall time", "", "s", wall, COLD_START_LIMIT)
    yield Figure("start", group, "processor time", "", "s", busy)


def measure(quick: bool, terminal: Console) -> tuple[list[Figure], list[Cost], int | None]:
    """Measure everything, with a progress bar; also return the core.

    Starts come first, since processes started later would inherit the pinned core.
    """
    turns, spell, starts = (
        (QUICK_TURNS, QUICK_SPELL, QUICK_STARTS) if quick else (TURNS, SPELL, STARTS)
    )
    comparisons = (*COMPARISONS, *solver_comparisons(quick))
    rounds = sum(turns_of(comparison, turns) for comparison in comparisons)
    total = rounds + turns * len(PARTS) + starts + len(cells(quick))
    # The bar is drawn between the measurements, not by a thread during them.
    with Progress(console=terminal, auto_refresh=False) as progress:
        bar = progress.add_task("timing", total=total)

        def tick() -> None:
            progress.advance(bar)
            progress.refresh()

        started = list(measure_starts(starts, tick))
        core = pin()
        figures = []
        for comparison in comparisons:
            figures += measure_comparison(comparison, turns, spell, tick)
        for parts in PARTS:
            figures += measure_parts(parts, turns, spell, tick)
        grown = []
        for cost in costs(quick, spell):
            grown.append(cost)
            tick()
    return figures + started, grown, core


def measure_against(
    other: Path, quick: bool, terminal: Console
) -> tuple[list[checkouts.Against], int | None]:
    """Compare with another checkout, with a progress bar; also return the core."""
    turns, spell = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
    with Progress(console=terminal, auto_refresh=False) as progress:
        bar = progress.add_task("timing", total=len(CASES))

        def tick() -> None:
            progress.advance(bar)
            progress.refresh()

        core = pin()
        return checkouts.compare(other, turns, spell, tick), core


def spelled(value: float) -> str:
    """Format a value with an SI prefix."""
    for scale, prefix in ((1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value * 1e9:.3g} n"


def show(figures: list[Figure], terminal: Console) -> None:
    """Print two tables: figures with a baseline or a bound, and the rest."""
    verdicts = Table(title="Speed on one core: medians and quartiles")
    for name in ("", "against", "measured", "quartiles", "floor", ""):
        verdicts.add_column(name)
    plain = Table(title="Speeds, and the parts of a step")
    for name in ("", "median", "quartiles"):
        plain.add_column(name)
    groups: dict[int, str] = {}
    for figure in figures:
        table = plain if figure.kind in ("speed", "part") else verdicts
        if groups.get(id(table)) != figure.group:
            groups[id(table)] = figure.group
            table.add_section()
            table.add_row(f"[bold]{figure.group}[/]")
        table.add_row(*_cells(figure))
    terminal.print(verdicts)
    terminal.print(plain)


def _cells(figure: Figure) -> tuple[str, ...]:
    """Return a figure's row of its table."""
    median, low, high = figure.spread
    if figure.kind in ("speed", "part"):
        return (
            figure.name,
            spelled(median) + (" " if figure.kind == "speed" else "") + figure.unit,
            f"{spelled(low)} to {spelled(high)}",
        )
    unit = "x" if figure.kind == "ratio" else " s"
    sign = "" if figure.kind == "ratio" else "< "
    bound = "" if figure.bound is None else f"{sign}{figure.bound:g}{unit}"
    colour = {"pass": "green", "fail": "bold red"}.get(figure.verdict, "default")
    return (
        figure.name,
        figure.against,
        f"{median:.2f}{unit}",
        f"{low:.2f} to {high:.2f}",
        bound,
        f"[{colour}]{figure.verdict}[/]",
    )


def write(folder: Path, figures: list[Figure], grown: list[Cost]) -> None:
    """Write the tables and the picture."""
    names = (*Figure._fields[:5], *Spread._fields, "bound", "verdict")
    rows = [(*figure[:5], *figure.spread, figure.bound, figure.verdict) for figure in figures]
    write_csv(folder / "speed.csv", names, rows)
    write_csv(folder / "growth.csv", Cost._fields, grown)
    bars = [
        Bar(
            f"{figure.group}\n{figure.name}, against {figure.against}",
            *figure.spread,
            figure.bound,
        )
        for figure in figures
        if figure.kind == "ratio"
    ]
    parts = [
        (figure.name, figure.spread.median)
        for figure in figures
        if figure.kind == "part" and figure.group == PARTS[0].name
    ]
    draw(folder / "speed.png", bars, parts, grown)


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Quick = Annotated[bool, typer.Option("--quick", help="Fewer and shorter measurements.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default=f"{OUT}; {QUICK_OUT} with --quick"),
]
OtherCheckout = Annotated[
    Path | None,
    typer.Option(help="Folder of another checkout; measure the speed over that of it alone."),
]


@app.command(help=__doc__)
def main(quick: Quick = False, out: Out = None, against: OtherCheckout = None) -> None:
    """Measure, write and print."""
    folder, terminal = out or (QUICK_OUT if quick else OUT), Console(stderr=True)
    with plain_errors():
        check_folder(folder)
    start, load = time.perf_counter(), os.getloadavg() if hasattr(os, "getloadavg") else None
    about: dict[str, Any] = {"cores": os.cpu_count(), "load_at_start": load}
    with plain_interrupt("stopped; nothing was written"), plain_errors():
        if against is None:
            figures, grown, about["pinned_core"] = measure(quick, terminal)
            about |= {"instance": INSTANCE}
        else:
            ratios, about["pinned_core"] = measure_against(against, quick, terminal)
            about |= {"against": str(against)}
    seconds = time.perf_counter() - start
    if against is None:
        write(folder, figures, grown)
        write_provenance(folder / "provenance.json", "scripts.speed", seconds, **about)
        show(figures, console())
    else:
        checkouts.write(folder / "against.csv", ratios)
        write_provenance(folder / "against.json", "scripts.speed", seconds, **about)
        console().print(checkouts.table(ratios))
    typer.echo(f"-> {folder}")


if __name__ == "__main__":
    app()
