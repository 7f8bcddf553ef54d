"""Measure the first use of each family: processor seconds of make, reset and one step.

Each measurement has a process of its own. The first of a family compiles the simulator into an
empty cache, the second finds it there. Imports are measured apart. Writes ``first_use.csv`` and
``provenance.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from scripts.reporting.cli import plain_errors, plain_interrupt
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.tables import console
from scripts.timing.checkouts import HERE
from scripts.timing.stepped import newest

OUT = Path("results/speed/first_use")
FAMILIES = ("CrawlNCIS", "CrawlHarmonic", "CrawlTrace", "CrawlLongevity", "CrawlOffers")
MEASURED = """
import json, sys, time
start = time.process_time()
import gymnasium, crawl_envs
imported = time.process_time()
env = gymnasium.make(sys.argv[1])
env.reset(seed=0)
env.step(env.action_space.sample())
print(json.dumps([imported - start, time.process_time() - imported]))
"""


class FirstUse(NamedTuple):
    """Processor seconds of a family: imports, and make, reset and step in two processes."""

    family: str
    imports: float
    first: float
    second: float


def seconds(family: str, cache: str) -> list[float]:
    """Return the seconds of imports, and of make, reset and step, in a new process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-P", "-c", MEASURED, newest(family)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the process that used {family} failed, see above")
    taken: list[float] = json.loads(done.stdout)
    return taken


def first_use(family: str) -> FirstUse:
    """Return the seconds of a family with an empty cache, and then with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        _, first = seconds(family, cache)
        imports, second = seconds(family, cache)
    return FirstUse(family, imports, first, second)


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Out = Annotated[Path, typer.Option(help="Output folder.")]


@app.command(help=__doc__)
def main(out: Out = OUT) -> None:
    """Measure, write and print."""
    start, rows = time.perf_counter(), []
    with plain_interrupt("stopped; nothing was written"), plain_errors():
        check_folder(out)
        with Progress(console=Console(stderr=True)) as bar:
            for family in bar.track(FAMILIES, description="compiling"):
                rows.append(first_use(family))
    write_csv(out / "first_use.csv", FirstUse._fields, rows)
    taken = time.perf_counter() - start
    cores = os.cpu_count()
    write_provenance(out / "provenance.json", "scripts.timing.first_use", taken, cores=cores)
    table = Table(title="Processor seconds of a first use")
    for name in FirstUse._fields:
        table.add_column(name, justify="left" if name == "family" else "right")
    for family, *values in rows:
        table.add_row(family, *(f"{value:.2f}" for value in values))
    console().print(table)
    typer.echo(f"-> {out}")


if __name__ == "__main__":
    app()
