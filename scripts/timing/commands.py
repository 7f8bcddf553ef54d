"""Commands that measure: cases with a progress bar, rows as CSV, provenance, a picture, a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table

from agents.progress import COUNT, ProgressBar
from scripts.cli.commands import command, one_line_errors
from scripts.present.tables import console
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance
from scripts.timing.turns import pin

OUT, QUICK_OUT = Path("results/speed"), Path("runs/speed")

Row = tuple[Any, ...]
Cases = Mapping[str, Callable[[], Iterable[Row]]]
"""By name, functions that measure and return rows."""

Quick = Annotated[bool, typer.Option("--quick", help="Small, short measurements, as a smoke test.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default=f"{OUT}; {QUICK_OUT} with --quick"),
]


Case = Annotated[
    list[str] | None,
    typer.Option(help=f"Measure only the cases with this in their name, into {QUICK_OUT}."),
]


class Measurement(NamedTuple):
    """What a measurement writes.

    Attributes:
        module: name of the module of its command.
        tables: by stem of the file, the type of its rows, a NamedTuple. The first is printed, and
            its name is the entry of the provenance.
        title: title of the printed table.
        draw: draws the picture, if any, given its path and the rows.
        shown: makes the printed table of the rows, by default one of all rows.
        pinned: whether all cases run on one core.
    """

    module: str
    tables: Mapping[str, Any]
    title: str
    draw: Callable[[Path, list[Any]], None] | None = None
    shown: Callable[[list[Any]], Table] | None = None
    pinned: bool = False


def run_cases(cases: Cases) -> list[Row]:
    """Measure cases one after the other, with a progress bar, and return their rows."""
    rows: list[Row] = []
    with ProgressBar(COUNT, timed=True) as progress:
        bar = progress.add_task("", total=len(cases))
        for name, case in cases.items():
            progress.update(bar, description=name)
            rows += case()
            progress.update(bar, advance=1)
    return rows


def chosen(cases: Cases, names: Sequence[str]) -> Cases:
    """Return the cases with one of the names in theirs; ValueError if a name is in none."""
    if lost := [name for name in names if not any(name in case for case in cases)]:
        raise ValueError(f"case must be of {'; '.join(cases)}, got {'; '.join(lost)}")
    return {case: cases[case] for case in cases if any(name in case for name in names)}


def compiling(cases: Cases) -> Cases:
    """Return cases that compile what others measure, and have no rows."""

    def unmeasured(case: Callable[[], Iterable[Row]]) -> list[Row]:
        return [*case()][:0]

    return {f"compiling: {name}": partial(unmeasured, case) for name, case in cases.items()}


def shown(
    rows: Sequence[Row], fields: Sequence[str], title: str, groups: Sequence[str] = ()
) -> Table:
    """Return a table of rows for the terminal, texts to the left and numbers to the right.

    A row with the group of the rows below it stands wherever ``groups``, one per row, changes.
    """
    table = Table(title=title)
    for name, value in zip(fields, rows[0] if rows else fields, strict=True):
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for number, row in enumerate(rows):
        if groups and (number == 0 or groups[number] != groups[number - 1]):
            table.add_section()
            table.add_row(f"[bold]{groups[number]}[/]")
        cells = (f"{value:,.4g}" if isinstance(value, float) else value for value in row)
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells))
    return table


def measure(
    of: Measurement, cases: Cases, folder: Path, unpinned: Cases | None = None, **about: Any
) -> None:
    """Measure cases and write NAME.csv of each table, the picture and provenance.json; print.

    Args:
        of: what is written.
        cases: what is measured.
        folder: where files are written.
        unpinned: cases that are measured before the core is pinned; their rows come last.
        about: further entries of the provenance, beside the cores and the load of the machine.
    """
    name, start = next(iter(of.tables)), time.perf_counter()
    about |= {"cores": os.cpu_count(), "load_at_start": getattr(os, "getloadavg", lambda: None)()}
    check_folder(folder)
    last = run_cases(unpinned) if unpinned else []
    if of.pinned:
        about["pinned_core"] = pin()
    rows = run_cases(cases) + last
    seconds = time.perf_counter() - start
    of_kind = {kind: [row for row in rows if isinstance(row, kind)] for kind in of.tables.values()}
    with one_line_errors(f"stopped while writing; {folder} may lack files of this run"):
        for stem, kind in of.tables.items():
            write_csv(folder / f"{stem}.csv", kind._fields, of_kind[kind])
        path, entry = provenance_at(folder, name)
        write_provenance(path, of.module, seconds, entry, **about)
        if of.draw is not None:
            of.draw(folder / f"{name}.png", rows)
        kind = of.tables[name]
        table = of.shown(rows) if of.shown else shown(of_kind[kind], kind._fields, of.title)
        console().print(table)
        typer.echo(f"-> {folder}")


def folder_of(out: Path | None, quick: bool) -> Path:
    """Return the folder that is named, or else the one of all commands."""
    return out or (QUICK_OUT if quick else OUT)


def measuring(of: Measurement, about: str | None, cases: Callable[[bool], Cases]) -> typer.Typer:
    """Return the command of a measurement, with its help.

    ``cases`` returns those of the whole measurement, or of a quick one if true.
    """

    def main(quick: Quick = False, case: Case = None, out: Out = None) -> None:
        folder = folder_of(out, quick or bool(case))
        if not case:
            measure(of, cases(quick), folder)
        else:
            measure(of._replace(draw=None), chosen(cases(quick), case), folder)

    return command(main, about)
