"""Train predictors of price changes, clicks and impressions on a market, and compare their AUCs.

AUCs do not depend on the level of probabilities, which is calibrated on the validation days. By
default these are January 1 to 9, as in the paper, during the winter sales of the market's calendar;
the test days are mostly after them. There, price changes are predicted some 12 % too often (the
network with both kinds of features predicts .0508, and .0454 is observed). See the columns
``predicted`` and ``observed`` of the table.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import TaskID
from rich.table import Table

from agents.predictors import FEATURES, MODELS, TASKS
from agents.predictors.auc import Interval, Subsets, auc, bootstrap, over_subsets
from agents.predictors.examples import (
    ClickWeightedSample,
    Examples,
    UniformSample,
    examples,
    split_days,
)
from agents.predictors.predictor import Predictor
from agents.predictors.saving import PROVENANCE, write_provenance
from agents.progress import ProgressBar
from crawl_envs.instances.market import market
from crawl_envs.types.arguments import one_of, whole
from crawl_envs.worlds.offers.log import record
from scripts.experiments.offers.setup.paper import TABLE_4
from scripts.reporting.commands import command, one_line_errors
from scripts.reporting.rows import write_csv

TABLE = "auc.csv"
TEST_PER_DAY, TEST_OFFERS = 5_000, 20_000
FIRST_DAY = 212
"""Day of the year of the first training day: August 1, as in the paper."""
FULL = {"offers": 100_000, "days": 253, "per_day": 8_000}
QUICK = {"offers": 1_000, "days": 30, "per_day": 500}
QUICK_SETTINGS: dict[str, dict[str, Any]] = {"network": {"epochs": 2}, "trees": {"trees": 20}}


class Row(NamedTuple):
    """Results of a predictor on the test days.

    ``subsets`` is as in the paper; ``interval`` resamples offers with all of their days.
    ``predicted`` and ``observed`` are the mean probability and the share of positives.
    """

    task: str
    features: str
    interval: Interval
    subsets: Subsets
    validation: float
    predicted: float
    observed: float
    seconds: float

    def flat(self) -> dict[str, Any]:
        """Return plain values by name."""
        paper = TABLE_4[self.task][self.features]
        return {
            "task": self.task,
            "features": self.features,
            "auc": self.interval.estimate,
            "low": self.interval.low,
            "high": self.interval.high,
            "subsets_mean": self.subsets.mean,
            "subsets_deviation": self.subsets.deviation,
            "validation_auc": self.validation,
            "predicted": self.predicted,
            "observed": self.observed,
            "seconds": self.seconds,
            "paper_auc": paper[0],
            "paper_deviation": paper[1],
        }


class Tables(NamedTuple):
    """Examples of the training, validation and test days."""

    train: Examples
    validation: Examples
    test: Examples

    def shares(self) -> dict[str, dict[str, float]]:
        """Return the share of positives by table and task."""
        return {
            name: {task: float(table.labels(task).mean()) for task in TASKS}
            for name, table in self._asdict().items()
        }


def make_tables(offers: int, days: int, per_day: int, share: float, seed: int) -> Tables:
    """Record two markets of one world and make examples from them.

    Days of the first market are for training, sampled in part by past clicks. Later days of the
    second, with other offers of the same merchants, are for validation and tests, sampled uniformly
    (section 4.1.1). Offers of training and tests are disjoint: with few offers, metadata would
    identify them.

    Raises:
        ValueError: an argument outside its range.
    """
    sample = ClickWeightedSample(per_day, share)
    split = split_days(days)
    past = market(offers, seed=seed, first_day=FIRST_DAY)
    log = record(past, split.train.stop, seed)
    train = examples(log, split.train, sample=sample, seed=seed)
    other = market(min(offers, TEST_OFFERS), seed=seed + 1, first_day=FIRST_DAY)
    log = record(other, days, seed + 1)
    return Tables(
        train,
        examples(log, split.validation, seed=seed),
        examples(log, split.test, sample=UniformSample(TEST_PER_DAY), seed=seed),
    )


def measured(predictor: Predictor, test: Examples, seconds: float) -> Row:
    """Return the results of a predictor on the test days."""
    labels, probabilities = test.labels(predictor.task), predictor.probabilities(test)
    return Row(
        predictor.task,
        predictor.features,
        bootstrap(labels, probabilities, test.page, draws=100),
        _subsets(labels, probabilities),
        predictor.validation_auc,
        float(probabilities.mean()),
        float(labels.mean()),
        seconds,
    )


def _subsets(labels: Any, probabilities: Any) -> Subsets:
    """Return the paper's mean and deviation; NaN if a subset lacks a class, in small runs."""
    try:
        return over_subsets(labels, probabilities)
    except ValueError:
        return Subsets(auc(labels, probabilities), float("nan"))


def trained(
    tables: Tables, model: str, settings: dict[str, Any], seed: int, bar: ProgressBar
) -> Iterator[tuple[Predictor, Row]]:
    """Train all nine predictors in turn."""
    for task in TASKS:
        for features in FEATURES:
            what = f"{task} from {features}"
            line = bar.add_task(what, total=1.0)

            def report(done: float, text: str, what: str = what, line: TaskID = line) -> None:
                bar.update(line, completed=done, description=f"{what}, {text}")

            start = time.perf_counter()
            predictor = Predictor(task, features, model, seed=seed, **settings)
            predictor.fit(tables.train, tables.validation, report)
            row = measured(predictor, tables.test, time.perf_counter() - start)
            bar.update(line, completed=1.0)
            yield predictor, row


def table_of(rows: list[Row]) -> Table:
    """Return the table that is printed at the end."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("task", "features"):
        table.add_column(name)
    for name in ("AUC", "95 %", "20 subsets", "paper"):
        table.add_column(name, justify="right")
    for row in rows:
        mean, deviation = TABLE_4[row.task][row.features]
        table.add_row(
            row.task,
            row.features,
            f"{row.interval.estimate:.3f}",
            f"{row.interval.low:.3f} - {row.interval.high:.3f}",
            f"{row.subsets.mean:.3f} ({row.subsets.deviation:.3f})",
            f"{mean:.3f} ({deviation:.3f})",
        )
    return table


def account(tables: Tables, settings: Any, rows: list[Row]) -> dict[str, Any]:
    """Return the settings and the results of all predictors, as plain values."""
    return {
        "command": shlex.join(["python", "-m", "scripts.training.train_predictors", *sys.argv[1:]]),
        "examples": {name: len(table) for name, table in tables._asdict().items()},
        "positives": tables.shares(),
        "settings": asdict(settings),
        "table": [row.flat() for row in rows],
    }


def train_all(
    out: Path,
    rows: list[Row],
    *,
    model: str,
    offers: int,
    days: int,
    per_day: int,
    share: float,
    seed: int,
    threads: int,
    quick: bool,
) -> None:
    """Train, measure and save; only the predictors from both kinds of features are saved.

    The folder receives ``auc.csv`` and one file per task as they are finished, and
    ``provenance.json`` at the end; ``rows`` receives the rows of the table as they are finished.

    Raises:
        ValueError: an argument outside its range, or ``out`` has predictors already.
        OSError: ``out`` cannot be written.
    """
    one_of("model", model, MODELS)
    whole("seed", seed, 0)
    whole("threads", threads, 1)
    if (out / PROVENANCE).exists():
        raise ValueError(f"out must hold no predictors yet, got {out} with its {PROVENANCE}")
    out.mkdir(parents=True, exist_ok=True)
    start, console = time.perf_counter(), Console(stderr=True)
    with console.status(f"logging {offers} offers for {days} days"):
        tables = make_tables(offers, days, per_day, share, seed)
    settings = {"threads": threads, **(QUICK_SETTINGS[model] if quick else {})}
    with ProgressBar("{task.percentage:.0f}%", console=console) as bar:
        for predictor, row in trained(tables, model, settings, seed, bar):
            if predictor.features == "both":
                predictor.save(out / f"{predictor.task}.npz")
            records = [each.flat() for each in (*rows, row)]
            write_csv(out / TABLE, list(records[0]), [list(each.values()) for each in records])
            rows.append(row)
    given: dict[str, Any] = {"model": model, "seed": seed, "offers": offers, "days": days}
    given |= {"per_day": per_day, "share_by_clicks": share}
    seconds = time.perf_counter() - start
    outcome = account(tables, predictor.settings, rows)
    write_provenance(out, {**given, **outcome, "seconds": round(seconds, 1)})


def stopped(folder: Path, rows: list[Row]) -> str:
    """Return the message after an interrupt: which files were written, and which are missing."""
    if not rows:
        return "stopped; nothing was measured"
    ready = [f"{row.task}.npz" for row in rows if row.features == "both"]
    files = ", ".join([TABLE, *ready])
    return f"stopped after {len(rows)} of 9 predictors; {folder} has {files}, but no {PROVENANCE}"


def sizes_shown(name: str) -> str:
    """Return the text of the default of an option."""
    return f"{FULL[name]}; {QUICK[name]} with --quick"


Offers = Annotated[
    int | None,
    typer.Option(
        help=f"Number of training offers; as many others, at most {TEST_OFFERS}, are for tests.",
        show_default=sizes_shown("offers"),
    ),
]
Days = Annotated[
    int | None,
    typer.Option(
        help="Number of days: 153/253 for training, 9/253 for validation, the rest for tests.",
        show_default=sizes_shown("days"),
    ),
]
PerDay = Annotated[
    int | None,
    typer.Option(help="Training examples per day, at most.", show_default=sizes_shown("per_day")),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the predictors.",
        show_default="runs/predictors-MODEL, or runs/predictors-MODEL-quick with --quick",
    ),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="Smaller defaults and short training, as a smoke test."),
]


def main(
    offers: Offers = None,
    days: Days = None,
    model: Annotated[str, typer.Option(help="network or trees.")] = "network",
    per_day: PerDay = None,
    share: Annotated[
        float, typer.Option(help="Share of training examples sampled by past clicks.")
    ] = 0.5,
    seed: Annotated[
        int, typer.Option(help="Seed of market, events and training; tests use the next.")
    ] = 2018,
    threads: Annotated[
        int, typer.Option(help="Number of training threads; more than free cores are slower.")
    ] = 1,
    out: Out = None,
    quick: Quick = False,
) -> None:
    """Train, measure and save."""
    folder = out or Path("runs") / f"predictors-{model}{'-quick' if quick else ''}"
    given = {"offers": offers, "days": days, "per_day": per_day}
    sizes = (QUICK if quick else FULL) | {k: v for k, v in given.items() if v is not None}
    rows: list[Row] = []
    try:
        train_all(
            *(folder, rows),
            **{"model": model, "share": share, "seed": seed, "threads": threads, "quick": quick},
            **sizes,
        )
    except KeyboardInterrupt:
        with one_line_errors(stopped(folder, rows)):
            raise
    console = Console()
    console.print(table_of(rows))
    console.print(f"testing AUC, {len(rows)} predictors -> {folder}", soft_wrap=True)


app = command(main, "Train predictors of price changes, clicks and impressions on a market.")

if __name__ == "__main__":
    app()
