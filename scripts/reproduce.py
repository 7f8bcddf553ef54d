"""Reproduce figures of a paper: simulate, summarise, draw, and check what was expected.

Rows are saved as they arrive: the same command resumes an interrupted run; ``--fresh`` starts over.
After each figure, claims.md of the paper is rewritten from all rows that exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, ClassVar

import typer
from rich.console import Console

from crawl_envs.evaluation import Row
from scripts import experiments
from scripts.cli.commands import at_least, command_of
from scripts.present import tables
from scripts.present.claims import rows_of, write_claims
from scripts.present.claims_table import claims_table
from scripts.present.experiment import (
    check_declared,
    paper_and_figure,
    pictures_of,
    repetitions_of,
    sentences_of,
    settings_of,
    tables_of,
    with_derived,
)
from scripts.present.filled_tables import fill
from scripts.present.index import write_index
from scripts.present.verdicts import without_rows
from scripts.study.rows import (
    RESULTS,
    base,
    check_folder,
    provenance_at,
    write_csv,
    write_provenance,
)
from scripts.study.runner import opened, play_missing
from scripts.study.workers import PlayOptions, Workers

QUICK_OUT = Path("runs")

Figures = Annotated[
    list[str],
    typer.Argument(
        help=f"Any of {', '.join(experiments.names())}, or short as fig13; or "
        f"{', '.join(experiments.papers())}: all figures of that paper."
    ),
]


Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        "--repetitions",
        help="Number of seeds of every policy and setting.",
        show_default="set by the experiment",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(PlayOptions):
    """Arguments of ``scripts.reproduce``."""

    POSITIONAL: ClassVar = ("figures",)

    figures: Figures
    quick: bool = False
    """Few pages and short episodes, as a smoke test."""
    seeds: Seeds = None
    score: bool = False
    """Check and draw the existing rows, without simulation."""
    out: Path | None = None
    """Output folder [results; runs with --quick]."""


def chosen(names: Sequence[str]) -> list[ModuleType]:
    """Return the experiments of these names, each once; a paper's name means all of its figures.

    Raises:
        ValueError: an unknown name.
    """
    selected: dict[str, ModuleType] = {}
    for name in names:
        of_it = experiments.of_paper(name) if name in experiments.papers() else ()
        for experiment in of_it or (experiments.find(name),):
            selected[experiment.__name__] = experiment
    return list(selected.values())


def main(options: ReproduceOptions) -> None:
    """Run experiments."""
    if options.seeds is not None:
        at_least(1, seeds=options.seeds)
    if options.fresh and options.score:
        raise ValueError("--fresh and --score exclude each other")
    players = options.players
    jobs = {}
    for experiment in chosen(options.figures):
        paper, figure = paper_and_figure(experiment)
        folder = (options.out or (QUICK_OUT if options.quick else RESULTS)) / paper / figure
        check_declared(experiment)
        check_folder(folder)
        jobs[folder] = experiment
    for folder, experiment in jobs.items():
        reproduce(experiment, folder, options, players)


def reproduce(
    experiment: ModuleType, folder: Path, options: ReproduceOptions, players: Workers
) -> None:
    """Simulate the missing rows of an experiment (not with ``score``), and report."""
    console, settings = tables.console(), settings_of(experiment, options.quick)
    if not options.score:
        for setting in settings:
            setting.check()
    store = opened(folder, experiment.TITLE, settings, fresh=options.fresh)
    console.print(f"\n{experiment.TITLE}\n{experiment.CLAIM}\n")
    if not options.score:
        count = options.seeds or repetitions_of(experiment, options.quick)
        if play_missing(settings, count, store, players, console):
            made = {"workers": players.count, "rows": len(store.rows)}
            path, entry = provenance_at(folder)
            write_provenance(path, "scripts.reproduce", store.seconds, entry, **made)
        else:
            console.print("All rows exist, and one per label was checked; --fresh starts over.")
    if not store.rows:
        raise ValueError(
            f"{folder} has no rows to score: without --score, the same command makes them"
        )
    report(experiment, store.rows, folder, console, quick=options.quick)
    paper, _ = paper_and_figure(experiment)
    page = write_claims(folder.parent, paper, experiments.of_paper(paper), quick=options.quick)
    console.print(f"-> {page}")
    if not options.quick:
        every = [experiments.find(name) for name in experiments.names()]
        console.print(f"-> {write_index(folder.parent.parent, every)}")


def report(
    experiment: ModuleType, kept: Sequence[Row], folder: Path, console: Console, *, quick: bool
) -> None:
    """Write summary, pictures and tables; print which expectations hold."""
    rows = with_derived(experiment, kept)
    metrics = dict.fromkeys(row.metric for row in rows if row.metric == base(row.metric))
    references = [
        getattr(experiment, "REFERENCE", ""),
        *getattr(experiment, "FURTHER_REFERENCES", ()),
    ]
    records = tables.summary_records(rows, references, metrics)
    write_csv(folder / "summary.csv", tables.SUMMARY_COLUMNS, records)
    for name, draw in pictures_of(experiment).items():
        draw(rows, folder / f"{name}.png")
    page, made = folder / "README.md", tables_of(experiment)
    if made and page.exists() and not quick:
        fill(page, {name: table(rows) for name, table in made.items()})
    sentences = sentences_of(experiment, rows, quick)
    console.print()
    if quick:
        whole = RESULTS / "/".join(paper_and_figure(experiment))
        full = sentences_of(experiment, rows_of(whole, experiment), False)
        console.print(claims_table(full, sentences))
        if whole.exists():
            console.print(f"The full run and its pictures: {whole}")
    else:
        console.print(claims_table(sentences))
    tests = [test for each in sentences for test in each.claim.tests]
    if experiment.METRIC not in {row.metric for row in rows}:
        console.print(
            f"METRIC is {experiment.METRIC!r}, of which there are no rows", soft_wrap=True
        )
    named = without_rows(rows, experiment.METRIC, tests)
    if named and not quick:
        console.print(f"named in tests, but without rows: {', '.join(named)}", soft_wrap=True)
    console.print(f"\n-> {folder}")


app = command_of(main, ReproduceOptions, __doc__)

if __name__ == "__main__":
    app()
