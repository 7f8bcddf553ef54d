"""Reproduce figures of a paper: simulate, summarise, draw, and check what was expected.

Rows are saved as they arrive: the same command resumes an interrupted run; ``--fresh`` starts over.
After each figure, claims.md of the paper is rewritten from all rows that exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from crawl_envs.evaluation import Row
from scripts import experiments
from scripts.cli.commands import Fresh, command, one_line_errors
from scripts.present import tables
from scripts.present.claims import rows_of, write_claims
from scripts.present.claims_table import claims_table
from scripts.present.experiment import (
    expected_of,
    judged,
    paper_and_figure,
    pictures_of,
    repetitions_of,
    settings_of,
    tables_of,
    with_derived,
)
from scripts.present.filled_tables import fill
from scripts.present.index import write_index
from scripts.present.verdicts import Verdict
from scripts.study.rows import base, check_folder, write_csv, write_provenance
from scripts.study.runner import STOPPED, Store, check_kept, run
from scripts.study.workers import DEFAULT_BACKEND, Backend, WorkerCount, Workers, chosen_workers

OUT, QUICK_OUT = Path("results"), Path("runs")

Figures = Annotated[
    list[str],
    typer.Argument(
        help=f"Any of {', '.join(experiments.names())}, or short as fig13; or "
        f"{', '.join(experiments.papers())}: all figures of that paper."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Few pages and short episodes, as a smoke test.")
]
Repetitions = Annotated[
    int | None,
    typer.Option(help="Seeds per policy and setting.", show_default="set by the experiment"),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default="results; runs with --quick"),
]
Score = Annotated[
    bool, typer.Option("--score", help="Check and draw the existing rows, without simulation.")
]


class Job(NamedTuple):
    """An experiment, the options of its run, and the ``folder`` of its files."""

    experiment: ModuleType
    folder: Path
    quick: bool
    repetitions: int
    workers: Workers


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


def main(
    figures: Figures,
    quick: Quick = False,
    repetitions: Repetitions = None,
    workers: WorkerCount = None,
    backend: Backend = DEFAULT_BACKEND,
    out: Out = None,
    fresh: Fresh = False,
    score: Score = False,
) -> None:
    """Run experiments."""
    console = tables.console()
    if repetitions is not None and repetitions < 1:
        raise ValueError(f"--repetitions must be >= 1, got {repetitions}")
    players = chosen_workers(backend, workers)
    if fresh and score:
        raise ValueError("--fresh and --score exclude each other")
    jobs = []
    for experiment in chosen(figures):
        paper, figure = paper_and_figure(experiment)
        folder = (out or (QUICK_OUT if quick else OUT)) / paper / figure
        check_folder(folder)
        count = repetitions if repetitions is not None else repetitions_of(experiment, quick)
        jobs.append(Job(experiment, folder, quick, count, players))
    for job in jobs:
        reproduce(job, console, fresh=fresh, score=score)


def reproduce(job: Job, console: Console, *, fresh: bool, score: bool) -> None:
    """Simulate the missing rows of an experiment (not with ``score``), and report."""
    experiment, folder = job.experiment, job.folder
    settings = settings_of(experiment, job.quick)
    if not score:
        for setting in settings:
            setting.check()
    store = Store(folder / "rows.parquet", experiment.TITLE, settings)
    store.load(keep=not fresh)
    console.print(f"\n{experiment.TITLE}\n{experiment.CLAIM}\n")
    if not score:
        check_kept(settings, job.repetitions, store)
    if not score:
        with one_line_errors(STOPPED.format(folder)):
            played = run(settings, job.repetitions, store, job.workers, console)
        if played:
            made = {"workers": job.workers.count, "rows": len(store.rows)}
            path, module = folder.parent / "provenance.json", "scripts.reproduce"
            write_provenance(path, module, store.seconds, folder.name, **made)
        else:
            console.print("All rows exist, and one per label was checked; --fresh starts over.")
    if store.rows:
        report(experiment, store.rows, folder, console, quick=job.quick)
    else:
        raise ValueError(
            f"{folder} has no rows to score: without --score, the same command makes them"
        )
    paper, _ = paper_and_figure(experiment)
    page = write_claims(folder.parent, paper, experiments.of_paper(paper), quick=job.quick)
    console.print(f"-> {page}")
    if not job.quick:
        every = [experiments.find(name) for name in experiments.names()]
        console.print(f"-> {write_index(folder.parent.parent, every)}")


def report(
    experiment: ModuleType, kept: Sequence[Row], folder: Path, console: Console, *, quick: bool
) -> None:
    """Write summary, verdicts, pictures and tables; print which expectations hold."""
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
    expected = expected_of(experiment)
    write_csv(folder / "verdicts.csv", Verdict._fields, judged(experiment, rows, expected, quick))
    console.print()
    if quick:
        whole = OUT / "/".join(paper_and_figure(experiment))
        console.print(claims_table(experiment, rows_of(whole, experiment), rows))
        console.print(f"The full run and its pictures: {whole}")
    else:
        console.print(claims_table(experiment, rows))
    console.print(f"\n-> {folder}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
