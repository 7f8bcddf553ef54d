"""Commands that measure: run cases with a progress bar, write and print their table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table

from agents.progress import COUNT, ProgressBar
from scripts.cli.commands import one_line_errors
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
Words = Annotated[
    list[str] | None,
    typer.Option(
        "--case", help=f"Measure only the cases with this in their name, into {QUICK_OUT}."
    ),
]


class Measurement(NamedTuple):
    """What a measurement writes.

    Attributes:
        module: name of the module of its command.
        name: stem of its files, and the entry of the provenance.
        row: the type of its rows, a NamedTuple.
        title: title of the printed table.
        group: number of the first fields that name a group of rows.
        draw: draws the picture, if any, of the path and the rows.
        pinned: whether all cases run on one core.
    """

    module: str
    name: str
    row: Any
    title: str
    group: int = 0
    draw: Callable[[Path, list[Any]], None] | None = None
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


def chosen(cases: Cases, words: Sequence[str] | None) -> Cases:
    """Return the cases with one of the words in their name; ValueError if a word is in none."""
    if not words:
        return cases
    if missing := [word for word in words if not any(word in name for name in cases)]:
        raise ValueError(f"case must be of {'; '.join(cases)}, got {'; '.join(missing)}")
    return {name: cases[name] for name in cases if any(word in name for word in words)}


def shown(rows: Sequence[Row], fields: Sequence[str], title: str, group: int = 0) -> Table:
    """Return a table of rows for the terminal, texts to the left and numbers to the right.

    The first ``group`` fields stand in a line of their own wherever they change.
    """
    table, before = Table(title=title), None
    for name, value in zip(fields[group:], (rows[0] if rows else fields)[group:], strict=True):
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        texts = [_text(value) for value in row]
        if group and texts[:group] != before:
            before = texts[:group]
            table.add_section()
            table.add_row(f"[bold]{', '.join(before)}[/]")
        table.add_row(*texts[group:])
    return table


def _text(value: Any) -> str:
    """Return a cell: four digits of a float, all of an integer, nothing for None."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def measure(of: Measurement, cases: Cases, folder: Path, **about: Any) -> None:
    """Measure cases and write the table, the picture and provenance.json; print the table.

    Args:
        of: what is written.
        cases: what is measured.
        folder: where files are written.
        about: further entries of the provenance, beside the cores and the load of the machine.
    """
    start = time.perf_counter()
    about |= {"cores": os.cpu_count(), "load_at_start": getattr(os, "getloadavg", lambda: None)()}
    check_folder(folder)
    if of.pinned:
        about["pinned_core"] = pin()
    rows = run_cases(cases)
    seconds = time.perf_counter() - start
    with one_line_errors(f"stopped while writing; {folder} may lack files of this run"):
        write_csv(folder / f"{of.name}.csv", of.row._fields, rows)
        path, entry = provenance_at(folder, of.name)
        write_provenance(path, of.module, seconds, entry, **about)
        if of.draw is not None:
            of.draw(folder / f"{of.name}.png", rows)
        console().print(shown(rows, of.row._fields, of.title, of.group))
        typer.echo(f"-> {folder}")


def folder_of(out: Path | None, quick: bool) -> Path:
    """Return the folder that is named, or else the one of all commands."""
    return out or (QUICK_OUT if quick else OUT)
