"""Measure the speed of the suite against other implementations, in one run on one core.

Thresholds are for ratios and not for seconds, since machines differ; see
:mod:`scripts.timing.turns` for the method. Writes ``speed.csv`` (ratios, speeds and the parts of a
step), ``growth.csv``, ``provenance.json`` (the machine), ``speed.png``, ``parts.png`` and
``growth.png``; with ``--against`` only ``against.csv``, the speed over that of another checkout,
and its entry of ``provenance.json``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from crawl_envs.types import FloatArray
from scripts.cli.commands import command
from scripts.present.tables import console
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance
from scripts.timing import checkouts
from scripts.timing.commands import OUT, QUICK_OUT, load, run_cases, shown
from scripts.timing.comparisons import INSTANCE, Comparison, comparisons
from scripts.timing.first_use import COLD_START_LIMIT, cold_start
from scripts.timing.growth import Cost, cells, cost, draw
from scripts.timing.parts import PARTS, Parts
from scripts.timing.turns import pin, spread, timed

TURNS, SPELL, STARTS = 41, 0.05, 5
QUICK_TURNS, QUICK_SPELL, QUICK_STARTS = 9, 0.01, 2


class Figure(NamedTuple):
    """A measured number with quartiles, and its bound if any.

    ``kind`` is ``ratio``, ``speed``, ``part`` or ``start``; a ratio must reach its bound, a start
    time in seconds must stay below it. ``group`` is the comparison, or the whole of a part.
    ``verdict`` is ``pass``, ``fail``, or empty without a bound.
    """

    kind: str
    group: str
    name: str
    against: str
    unit: str
    median: float
    low: float
    high: float
    bound: float | None = None
    verdict: str = ""


def judged(
    kind: str,
    group: str,
    name: str,
    against: str,
    unit: str,
    values: FloatArray,
    bound: float | None = None,
) -> Figure:
    """Return the figure of values, one per turn."""
    middle, verdict = spread(values), ""
    if bound is not None:
        kept = middle.median < bound if kind == "start" else middle.median >= bound
        verdict = "pass" if kept else "fail"
    return Figure(kind, group, name, against, unit, *middle, bound, verdict)


def measure_comparison(comparison: Comparison, turns: int, spell: float) -> Iterator[Figure]:
    """Run a comparison; yield its ratios, then its speeds."""
    seconds = timed(comparison.tasks(), min(turns, comparison.most_turns or turns), spell)
    for task, baseline, floor in comparison.ratios:
        ratio = seconds[baseline] / seconds[task]
        yield judged("ratio", comparison.name, task, baseline, "times as fast", ratio, floor)
    for name, each in seconds.items():
        speed = comparison.amount / each
        yield judged("speed", comparison.name, name, "", f"{comparison.unit}/s", speed)


def measure_parts(parts: Parts, turns: int, spell: float) -> Iterator[Figure]:
    """Yield the parts of a step: differences between increasingly large parts of it."""
    seconds = timed(parts.tasks(), turns, spell)
    for name, less, more in parts.differences:
        yield judged("part", parts.name, name, "", "s", seconds[more] - seconds[less])


def measure_starts(starts: int) -> Iterator[Figure]:
    """Yield the times of a cold start, after one start that fills the cache of compiled kernels.

    The wall time includes waiting for other processes of the machine; the processor time does not.
    """
    cold_start()
    wall, busy = np.array([cold_start() for _ in range(starts)]).T
    group = "import, make, reset, step"
    yield judged("start", group, "wall time", "", "s", wall, COLD_START_LIMIT)
    yield judged("start", group, "processor time", "", "s", busy)


def measure(quick: bool) -> tuple[list[Figure], list[Cost], int | None]:
    """Measure everything, with a progress bar; also return the core.

    Starts come first, since processes started later would inherit the pinned core.
    """
    turns, spell = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
    starts = run_cases({"cold starts": partial(measure_starts, QUICK_STARTS if quick else STARTS)})
    core = pin()
    cases: dict[str, Any] = {
        each.name: partial(measure_comparison, each, turns, spell) for each in comparisons(quick)
    }
    cases |= {f"parts of {each.name}": partial(measure_parts, each, turns, spell) for each in PARTS}
    figures = run_cases(cases)
    sizes = {f"{pages} pages, {lanes} lanes": (pages, lanes) for pages, lanes in cells(quick)}
    grown = run_cases({name: partial(cost, *size, spell) for name, size in sizes.items()})
    return [*figures, *starts], grown, core


def write(folder: Path, figures: Sequence[Figure], grown: Sequence[Cost]) -> None:
    """Write the tables and the pictures, and print the figures."""
    write_csv(folder / "speed.csv", Figure._fields, figures)
    write_csv(folder / "growth.csv", Cost._fields, grown)
    draw(folder, figures, grown)
    title, groups = "Speed on one core: medians and quartiles", [each.group for each in figures]
    rows = [each[2:] for each in figures]
    console().print(shown(rows, ("", *Figure._fields[3:]), title, groups))


Quick = Annotated[bool, typer.Option("--quick", help="Fewer and shorter measurements.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default=f"{OUT}; {QUICK_OUT} with --quick"),
]
OtherCheckout = Annotated[
    Path | None,
    typer.Option(help="Folder of another checkout; measure the speed over that of it alone."),
]


def main(quick: Quick = False, out: Out = None, against: OtherCheckout = None) -> None:
    """Measure, write and print."""
    folder = out or (QUICK_OUT if quick else OUT)
    start, about = time.perf_counter(), load()
    check_folder(folder)
    if against is None:
        figures, grown, about["pinned_core"] = measure(quick)
        name, about["instance"] = "speed", INSTANCE
        write(folder, figures, grown)
    else:
        name, about["pinned_core"], about["against"] = "against", pin(), str(against)
        timing = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
        ratios = checkouts.compare(against, *timing)
        write_csv(folder / "against.csv", checkouts.Against._fields, ratios)
        console().print(shown(ratios, checkouts.Against._fields, checkouts.TITLE))
    seconds = time.perf_counter() - start
    path, entry = provenance_at(folder, name)
    write_provenance(path, "scripts.speed", seconds, entry, **about)
    typer.echo(f"-> {folder}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
