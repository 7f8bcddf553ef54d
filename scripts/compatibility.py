"""Try the environments in other libraries, each with its own wrapper.

Libraries that are not installed are skipped. Writes ``rows.csv`` (library, version, id, outcome and
message), ``README.md`` and ``provenance.json``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from crawl_envs.types.arguments import one_of
from crawl_envs.types.files import replacing
from scripts.cli.commands import command
from scripts.cli.options import default_folder, words_of
from scripts.libraries.interfaces import IDS, LIBRARIES, Outcome, tried
from scripts.libraries.report import failures, page_of, table_of
from scripts.present.tables import console
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance
from scripts.timing.commands import run_cases

OUT = Path("results/compatibility")
Only = Annotated[
    str | None,
    typer.Option(help="Comma-separated libraries.", show_default=f"all: {', '.join(LIBRARIES)}"),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default=f"{OUT}; a folder of runs with --only"),
]


def main(only: Only = None, out: Out = None) -> None:
    """Try, write and print."""
    chosen = list(dict.fromkeys(words_of("--only", only))) or list(LIBRARIES)
    for name in chosen:
        one_of("only", name, tuple(LIBRARIES))
    folder, start = out or (default_folder("compatibility") if only else OUT), time.perf_counter()
    check_folder(folder)
    rows = [Outcome(*row) for row in run_cases({name: partial(_of, name) for name in chosen})]
    write_csv(folder / "rows.csv", Outcome._fields, rows)
    with replacing(folder / "README.md") as unfinished:
        unfinished.write_text(page_of(rows), "utf-8")
    path, entry = provenance_at(folder)
    write_provenance(path, "scripts.compatibility", time.perf_counter() - start, entry)
    console().print(table_of(rows))
    for line in failures(rows):
        console().print(line, markup=False)
    typer.echo(f"-> {folder}")


def _of(name: str) -> Iterable[Outcome]:
    return [tried(name, id) for id in IDS]


app = command(main, __doc__)

if __name__ == "__main__":
    app()
