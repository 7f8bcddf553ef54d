"""Reproduce a figure of a paper: simulate, summarise, draw, and judge what was expected of it.

Rows are kept as they come: the same command goes on where it was stopped. ``--fresh`` starts anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from scripts import experiments
from scripts.comparing import tables
from scripts.comparing.endings import plain_errors, plain_interrupt
from scripts.comparing.made import write_made
from scripts.comparing.rows import check_folder, write_csv
from scripts.comparing.runner import Store, check_kept, run
from scripts.comparing.settings import Setting
from scripts.comparing.verdicts import Level, Trend, Verdict, judge

OUT, QUICK_OUT = Path("results"), Path("runs")
QUICK_SETTINGS, QUICK_HORIZON, QUICK_REPETITIONS = 3, 20.0, 5
REPETITIONS = 100

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Figure = Annotated[str, typer.Argument(help=f"Of {', '.join(experiments.names())}; fig6 will do.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Few pages, short episodes: to see that it works.")
]
Repetitions = Annotated[
    int | None,
    typer.Option(help="Seeds of each policy and setting.", show_default=f"{REPETITIONS}"),
]
Workers = Annotated[int | None, typer.Option(help="Processes.", show_default="one per processor")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of results.", show_default="results/PAPER; runs/PAPER if --quick"),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Simulate anew what is there already.")]


def settings_of(experiment: ModuleType, quick: bool) -> list[Setting]:
    """The settings of an experiment; ``quick`` takes the first few, and short episodes."""
    named = list(experiment.SETTINGS.items())[: QUICK_SETTINGS if quick else None]
    shorter = {"horizon": QUICK_HORIZON} if quick else {}
    policies, bounds = experiment.policies(), experiment.bounds()
    return [
        Setting(name, experiment.ID, {**arguments, **shorter}, policies, bounds)
        for name, arguments in named
    ]


@app.command(help=__doc__)
def main(
    figure: Figure,
    quick: Quick = False,
    repetitions: Repetitions = None,
    workers: Workers = None,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Run an experiment."""
    console = tables.console()
    count = repetitions if repetitions is not None else QUICK_REPETITIONS if quick else REPETITIONS
    processes = workers if workers is not None else os.cpu_count() or 1
    with plain_errors():
        experiment = experiments.find(figure)
        for name, value in (("repetitions", count), ("workers", processes)):
            if value < 1:
                raise ValueError(f"--{name} must be >= 1, got {value}")
        paper, _, short = experiment.__name__.rpartition(".")[2].partition("_")
        folder = (out or (QUICK_OUT if quick else OUT) / paper) / short
        check_folder(folder)
        settings = settings_of(experiment, quick)
        for setting in settings:
            setting.check()
        store = Store(folder / "rows.parquet", experiment.TITLE, settings)
        store.load(keep=not fresh)
        console.print(f"{experiment.TITLE}\n{experiment.CLAIM}\n")
        check_kept(settings, count, store)
    with plain_interrupt(f"stopped; {folder} keeps what was done: the same command goes on"):
        played = run(settings, count, store, processes, console)
    if played:
        made = {"workers": processes, "rows": len(store.rows)}
        write_made(folder / "made.json", "scripts.reproduce", store.seconds, **made)
    else:
        console.print("All rows were there, and one per policy was checked; --fresh starts anew.")
    report(experiment, store, folder, console, quick=quick)


def report(
    experiment: ModuleType, store: Store, folder: Path, console: Console, *, quick: bool
) -> None:
    """Write summary, verdicts and picture, and print what of the expected holds."""
    metrics = dict.fromkeys(row.metric for row in store.rows)
    records = tables.summary_records(store.rows, [experiment.REFERENCE], metrics)
    write_csv(folder / "summary.csv", tables.SUMMARY_COLUMNS, records)
    experiment.plot(store.rows, folder / f"{experiment.METRIC}.png")
    trends = [item for item in experiment.EXPECTED if isinstance(item, Trend)]
    levels = [item for item in experiment.EXPECTED if isinstance(item, Level) and not quick]
    judged = [judge(store.rows, experiment.METRIC, part) for part in (trends, levels)]
    write_csv(folder / "verdicts.csv", Verdict._fields, [*judged[0], *judged[1]])
    console.print()
    console.print(tables.trend_table(judged[0], f"Differences in {experiment.METRIC}"))
    if levels:
        console.print(tables.level_table(judged[1], f"Mean {experiment.METRIC} +/- 95%"))
    console.print(f"\n-> {folder}")


if __name__ == "__main__":
    app()
