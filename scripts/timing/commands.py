"""Run the cases of a measurement with a progress bar; write and print their table."""

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
"""Cases by name: functions that measure and return rows."""

Quick = Annotated[bool, typer.Option("--quick", help="Small, short measurements, as a smoke test.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default=f"{OUT}; {QUICK_OUT} with --quick"),
]
Words = Annotated[
    list[str] | None,
    typer.Option(
        "--case", help=f"Only cases whose name contains this text, into {QUICK_OUT}; repeatable."
    ),
]


class Measurement(NamedTuple):
    """Names and form of the files and the table that a measurement writes.

    Attributes:
        module: name of the module of its command.
        name: stem of the file names, and key of the entry in the provenance.
        row: type of its rows, a NamedTuple.
        title: title of the printed table.
        group: number of the first fields that name a group of rows.
        draw: function of a path and the rows that draws the picture, if any.
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


def select_cases(cases: Cases, words: Sequence[str] | None) -> Cases:
    """Return the cases whose name contains one of the words; ValueError if a word fits none."""
    if not words:
        return cases
    if missing := [word for word in words if not any(word in name for name in cases)]:
        raise ValueError(f"case must be of {'; '.join(cases)}, got {'; '.join(missing)}")
    return {name: cases[name] for name in cases if any(word in name for word in words)}


def table_of(rows: Sequence[Row], fields: Sequence[str], title: str, group: int = 0) -> Table:
    """Return a table of rows for the terminal; texts are aligned left, numbers right.

    The first ``group`` fields are printed as a heading when they change.
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
    """Return a value as text: four digits of a float, all of an integer, empty for None."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def measure(measurement: Measurement, cases: Cases, folder: Path, **about: Any) -> None:
    """Measure cases and write the table, the picture and provenance.json; print the table.

    Args:
        measurement: names and types of the output.
        cases: cases to measure.
        folder: where files are written.
        about: additional entries of the provenance, which has the cores and load of the machine.
    """
    start = time.perf_counter()
    about |= {"cores": os.cpu_count(), "load_at_start": getattr(os, "getloadavg", lambda: None)()}
    check_folder(folder)
    if measurement.pinned:
        about["pinned_core"] = pin()
    rows = run_cases(cases)
    seconds = time.perf_counter() - start
    with one_line_errors(f"stopped while writing; {folder} may lack files of this run"):
        write_csv(folder / f"{measurement.name}.csv", measurement.row._fields, rows)
        path, entry = provenance_at(folder, measurement.name)
        write_provenance(path, measurement.module, seconds, entry, **about)
        if measurement.draw is not None:
            measurement.draw(folder / f"{measurement.name}.png", rows)
        fields = measurement.row._fields
        console().print(table_of(rows, fields, measurement.title, measurement.group))
        typer.echo(f"-> {folder}")


def folder_of(out: Path | None, quick: bool) -> Path:
    """Return the output folder: ``out`` if given, otherwise OUT, or QUICK_OUT if ``quick``."""
    return out or (QUICK_OUT if quick else OUT)
