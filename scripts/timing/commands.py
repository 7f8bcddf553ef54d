"""Commands that measure: cases with a progress bar, rows as CSV, provenance, a picture, a table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from scripts.cli.commands import command, one_line_errors
from scripts.present.tables import console
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance
from scripts.timing.turns import pin

OUT, QUICK_OUT = Path("results/speed"), Path("runs/speed")

Row = tuple[Any, ...]
Cases = Mapping[str, Callable[[], Iterable[Row]]]
"""By name, functions that measure and return rows."""


Quick = Annotated[bool, typer.Option("--quick", help="Small, short measurements, as a smoke test.")]


def run_cases(cases: Cases) -> list[Row]:
    """Measure cases one after the other, with a progress bar, and return their rows."""
    rows: list[Row] = []
    # The bar is drawn between the measurements, not by a thread during them.
    with Progress(console=Console(stderr=True), auto_refresh=False) as progress:
        bar = progress.add_task("", total=len(cases))
        for name, case in cases.items():
            progress.update(bar, description=name, refresh=True)
            rows += case()
            progress.update(bar, advance=1, refresh=True)
    return rows


def unmeasured(case: Callable[[], Any]) -> list[Row]:
    """Run a case that compiles what others measure; return no rows."""
    case()
    return []


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


def measuring(
    module: str,
    about: str | None,
    cases: Callable[[bool], Cases],
    fields: Sequence[str],
    *,
    name: str,
    title: str,
    draw: Callable[[Path, list[Row]], None] | None = None,
    table: Callable[[list[Row]], Table] | None = None,
    pinned: bool = False,
) -> typer.Typer:
    """Return a command that measures cases and writes NAME.csv, NAME.png and provenance.json.

    All commands write to one folder, ``OUT`` or ``QUICK_OUT``, if none is named.

    Args:
        module: name of its module.
        about: its help.
        cases: cases of the whole measurement, or those of a quick one if true.
        fields: names of the columns of a row.
        name: stem of the files, and entry of the provenance.
        title: title of the printed table.
        draw: draws the picture, if any, given its path and the rows.
        table: makes the printed table, by default of all rows.
        pinned: whether all cases run on one core.
    """
    default = f"{OUT}; {QUICK_OUT} with --quick"
    option = typer.Option(None, "--out", help="Output folder.", show_default=default)

    def main(quick: Quick = False, folder: Path | None = option) -> None:
        folder = folder or (QUICK_OUT if quick else OUT)
        start, machine = time.perf_counter(), load()
        check_folder(folder)
        if pinned:
            machine["pinned_core"] = pin()
        rows = run_cases(cases(quick))
        seconds = time.perf_counter() - start
        with one_line_errors(f"stopped while writing; {folder} may lack files of this run"):
            write_csv(folder / f"{name}.csv", fields, rows)
            path, entry = provenance_at(folder, name)
            write_provenance(path, module, seconds, entry, **machine)
            if draw is not None:
                draw(folder / f"{name}.png", rows)
            console().print(table(rows) if table else shown(rows, fields, title))
            typer.echo(f"-> {folder}")

    return command(main, about)


def load() -> dict[str, Any]:
    """Return the number of cores and the load of the machine, if known."""
    average = os.getloadavg() if hasattr(os, "getloadavg") else None
    return {"cores": os.cpu_count(), "load_at_start": average}
