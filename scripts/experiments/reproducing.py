"""Simulate an experiment and report: summary, pictures, tables, and which expectations hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from crawl_envs.evaluation import Row
from scripts import experiments
from scripts.present import tables
from scripts.present.claims import rows_of, write_claims
from scripts.present.claims_table import claims_table
from scripts.present.experiment import Experiment
from scripts.present.filled_tables import fill
from scripts.present.index import write_index
from scripts.present.verdicts import without_rows
from scripts.study.rows import RESULTS, base, provenance_at, write_csv, write_provenance
from scripts.study.runner import opened, play_missing
from scripts.study.workers import Workers


def reproduce(
    experiment: Experiment,
    folder: Path,
    players: Workers,
    *,
    seeds: int | None,
    quick: bool,
    fresh: bool,
    score: bool,
) -> None:
    """Simulate the missing rows of an experiment, report, and write the claims of its paper.

    Args:
        experiment: the experiment.
        folder: folder of the experiment, in that of the paper.
        players: workers that simulate.
        seeds: number of seeds; None for that of the experiment.
        quick: whether it is a smoke test, with few pages and short episodes.
        fresh: whether to discard the rows of an earlier run.
        score: whether to report the existing rows, without simulation.

    Raises:
        ValueError: there are no rows to score, or rows of an older version or another experiment.
    """
    console, settings = tables.console(), experiment.playables(quick)
    if not score:
        for setting in settings:
            setting.check()
    store = opened(folder, experiment.name, settings, fresh=fresh)
    if score and store.changed:
        raise ValueError(
            f"{store.path}: rows of {min(store.changed)} are of an older version; "
            "run without --score to simulate them again"
        )
    console.print(f"\n{experiment.title}\n{experiment.claim}\n")
    if not score:
        count = seeds or (experiment.quick_repetitions if quick else experiment.repetitions)
        if play_missing(settings, count, store, players, console):
            counts = {"workers": players.count, "rows": len(store.rows)}
            path, entry = provenance_at(folder)
            write_provenance(path, "scripts.reproduce", store.seconds, entry, **counts)
        else:
            console.print("All rows exist, and one per label was checked; --fresh starts over.")
    if not store.rows:
        raise ValueError(f"{folder} has no rows to score; run without --score to simulate them")
    rows = experiment.current(store.rows, quick)
    if former := {row.policy for row in store.rows} - {row.policy for row in rows}:
        console.print(f"ignored, no longer in the experiment: {', '.join(sorted(former))}")
    report(experiment, rows, folder, console, quick=quick)
    paper = experiment.paper
    page = write_claims(folder.parent, paper, experiments.of_paper(paper), quick=quick)
    console.print(f"-> {page}")
    if not quick:
        every = [experiments.find(name) for name in experiments.names()]
        console.print(f"-> {write_index(folder.parent.parent, every)}")


def report(
    experiment: Experiment, raw_rows: Sequence[Row], folder: Path, console: Console, *, quick: bool
) -> None:
    """Write summary, pictures and tables of an experiment; print which expectations hold."""
    rows = experiment.with_derived(raw_rows)
    metrics = dict.fromkeys(row.metric for row in rows if row.metric == base(row.metric))
    records = tables.summary_records(rows, experiment.references or ("",), metrics)
    write_csv(folder / "summary.csv", tables.SUMMARY_COLUMNS, records)
    for name, draw in experiment.pictures.items():
        draw(rows, folder / f"{name}.png")
    page = folder / "README.md"
    if experiment.tables and page.exists() and not quick:
        fill(page, {name: table(rows) for name, table in experiment.tables.items()})
    sentences = experiment.sentences(rows, quick)
    console.print()
    if quick:
        full_folder = RESULTS / experiment.paper / experiment.figure
        full = experiment.sentences(rows_of(full_folder, experiment), False)
        console.print(claims_table(full, sentences))
        if full_folder.exists():
            console.print(f"The full run and its pictures: {full_folder}")
    else:
        console.print(claims_table(sentences))
    tests = [test for sentence in sentences for test in sentence.claim.tests]
    if experiment.metric not in {row.metric for row in rows}:
        console.print(f"there are no rows of the metric {experiment.metric!r}", soft_wrap=True)
    every = experiment.settings(False) if quick else ()
    planned = {x for setting in every for x in (setting.name, *setting.labels)}
    if named := without_rows(rows, experiment.metric, tests, planned):
        console.print(f"in tests, but without rows: {', '.join(named)}", soft_wrap=True)
    console.print(f"\n-> {folder}")
