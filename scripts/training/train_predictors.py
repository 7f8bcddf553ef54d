"""Train predictors of price changes, clicks and impressions on a market, and compare their AUCs.

AUCs are means over test markets, which took no part in training and validation, with intervals over
these markets. With ``--stored`` the predictors of a folder are measured, not trained anew; those of
one kind of features, which no folder has, are trained.

AUCs do not depend on the level of probabilities, which is calibrated on the validation days. By
default these are January 1 to 9, as in the paper, during the winter sales of the market's calendar;
the test days are mostly after them, so that too many price changes are predicted. See the columns
``predicted`` and ``observed`` of the table.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import TaskID
from rich.table import Table

from agents.predictors import FEATURES, MODELS, TASKS
from agents.predictors.auc import Interval, Subsets, auc, over_markets, over_subsets
from agents.predictors.examples import (
    ClickWeightedSample,
    Examples,
    UniformSample,
    examples,
    split_days,
)
from agents.predictors.predictor import Predictor
from agents.predictors.saving import PROVENANCE, load, write_provenance
from agents.progress import ProgressBar
from crawl_envs.instances.market import market
from crawl_envs.types.arguments import one_of, whole
from crawl_envs.worlds.offers.log import MarketLog, record
from scripts.experiments.offers.setup.paper import TABLE_4
from scripts.reporting.commands import command, one_line_errors
from scripts.reporting.rows import write_csv

TABLE = "auc.csv"
TEST_PER_DAY, TEST_OFFERS = 5_000, 20_000
FIRST_DAY = 212
"""Day of the year of the first training day: August 1, as in the paper."""
FULL = {"offers": 100_000, "days": 253, "per_day": 8_000, "markets": 10}
QUICK = {"offers": 1_000, "days": 30, "per_day": 500, "markets": 2}
QUICK_SETTINGS: dict[str, dict[str, Any]] = {"network": {"epochs": 2}, "trees": {"trees": 20}}


class Row(NamedTuple):
    """Results of a predictor on the test days.

    ``interval`` is over the test markets; ``subsets`` is as in the paper, of the first of them.
    ``predicted`` and ``observed`` are the mean probability and the share of positives; ``seconds``
    are of training, none for a stored predictor.
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
    """Examples of the training and validation days, and of the test days of each test market."""

    train: Examples
    validation: Examples
    tests: tuple[Examples, ...]

    def named(self) -> dict[str, tuple[Examples, ...]]:
        """Return the tables by name."""
        return {"train": (self.train,), "validation": (self.validation,), "test": self.tests}

    def shares(self) -> dict[str, dict[str, float]]:
        """Return the share of positives by name and task."""
        return {
            name: {
                task: float(np.mean([one.labels(task).mean() for one in each])) for task in TASKS
            }
            for name, each in self.named().items()
        }


def make_tables(
    offers: int, days: int, per_day: int, markets: int, share: float, seed: int
) -> Tables:
    """Record markets of one world and make examples from them.

    Days of the first market are for training, sampled in part by past clicks. Later days of the
    second, with other offers of the same merchants, are for validation, and still later days of the
    others for tests, sampled uniformly (section 4.1.1). Offers of training and tests are disjoint:
    with few offers, metadata would identify them.

    Raises:
        ValueError: an argument outside its range.
    """
    sample, uniform = ClickWeightedSample(per_day, share), UniformSample(TEST_PER_DAY)
    split, numbers = split_days(days), range(2, 2 + whole("markets", markets, 2))

    def logged(number: int, size: int, until: int) -> MarketLog:
        return record(market(size, seed=number, first_day=FIRST_DAY), until, number)

    log = logged(seed, offers, split.train.stop)
    train = examples(log, split.train, sample=sample, seed=seed)
    size = min(offers, TEST_OFFERS)
    log = logged(seed + 1, size, split.validation.stop)
    validation = examples(log, split.validation, seed=seed)
    tests = (logged(seed + number, size, days) for number in numbers)
    return Tables(
        train,
        validation,
        tuple(examples(log, split.test, sample=uniform, seed=seed) for log in tests),
    )


def measured(predictor: Predictor, tests: Sequence[Examples], seconds: float) -> Row:
    """Return the results of a predictor on the test days of all test markets."""
    labels = [test.labels(predictor.task) for test in tests]
    probabilities = [predictor.probabilities(test) for test in tests]
    areas = [auc(*each) for each in zip(labels, probabilities, strict=True)]
    return Row(
        predictor.task,
        predictor.features,
        over_markets(areas),
        _subsets(labels[0], probabilities[0]),
        predictor.validation_auc,
        float(np.mean([each.mean() for each in probabilities])),
        float(np.mean([each.mean() for each in labels])),
        seconds,
    )


def _subsets(labels: Any, probabilities: Any) -> Subsets:
    """Return the paper's mean and deviation; NaN if a subset lacks a class, in small runs."""
    try:
        return over_subsets(labels, probabilities)
    except ValueError:
        return Subsets(auc(labels, probabilities), float("nan"))


def trained(
    tables: Tables,
    model: str,
    settings: dict[str, Any],
    seed: int,
    stored: Mapping[str, Predictor],
    bar: ProgressBar,
) -> Iterator[tuple[Predictor, Row]]:
    """Train all nine predictors in turn, but for those stored, and measure them."""
    for task in TASKS:
        for features in FEATURES:
            what = f"{task} from {features}"
            line = bar.add_task(what, total=1.0)

            def report(done: float, text: str, what: str = what, line: TaskID = line) -> None:
                bar.update(line, completed=done, description=f"{what}, {text}")

            start = time.perf_counter()
            if features == "both" and task in stored:
                predictor = stored[task]
            else:
                predictor = Predictor(task, features, model, seed=seed, **settings)
                predictor.fit(tables.train, tables.validation, report)
            row = measured(predictor, tables.tests, time.perf_counter() - start)
            bar.update(line, completed=1.0)
            yield predictor, row


def table_of(rows: list[Row]) -> Table:
    """Return the table that is printed at the end."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("task", "features"):
        table.add_column(name)
    for name in ("AUC", "95 %, markets", "20 subsets", "paper"):
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
        "examples": {name: sum(map(len, each)) for name, each in tables.named().items()},
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
    markets: int,
    share: float,
    seed: int,
    threads: int,
    quick: bool,
    stored: str | None = None,
) -> None:
    """Train, measure and save; only the predictors from both kinds of features are saved.

    The folder receives ``auc.csv`` and one file per task as they are finished, and
    ``provenance.json`` at the end; ``rows`` receives the rows of the table as they are finished.

    Raises:
        ValueError: an argument outside its range, ``out`` has predictors already, or ``stored`` has
            none, or those of another model.
        OSError: ``out`` cannot be written.
    """
    one_of("model", model, MODELS)
    whole("seed", seed, 0)
    whole("threads", threads, 1)
    if (out / PROVENANCE).exists():
        raise ValueError(f"out must hold no predictors yet, got {out} with its {PROVENANCE}")
    known: Mapping[str, Predictor] = {} if stored is None else load(stored)
    for predictor in known.values():
        if predictor.model != model:
            raise ValueError(f"stored must hold predictors of {model}, got of {predictor.model}")
    out.mkdir(parents=True, exist_ok=True)
    start, console = time.perf_counter(), Console(stderr=True)
    with console.status(f"logging {offers} offers for {days} days"):
        tables = make_tables(offers, days, per_day, markets, share, seed)
    settings = {"threads": threads, **(QUICK_SETTINGS[model] if quick else {})}
    with ProgressBar("{task.percentage:.0f}%", console=console) as bar:
        for predictor, row in trained(tables, model, settings, seed, known, bar):
            if predictor.features == "both":
                predictor.save(out / f"{predictor.task}.npz")
            records = [each.flat() for each in (*rows, row)]
            write_csv(out / TABLE, list(records[0]), [list(each.values()) for each in records])
            rows.append(row)
    given: dict[str, Any] = {"model": model, "seed": seed, "offers": offers, "days": days}
    given |= {"per_day": per_day, "share_by_clicks": share, "test_markets": markets}
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
Markets = Annotated[
    int | None,
    typer.Option(help="Number of test markets, >= 2.", show_default=sizes_shown("markets")),
]
Stored = Annotated[
    str | None,
    typer.Option(help="Folder or name of predictors to measure in place of training them."),
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
    markets: Markets = None,
    share: Annotated[
        float, typer.Option(help="Share of training examples sampled by past clicks.")
    ] = 0.5,
    seed: Annotated[
        int, typer.Option(help="Seed of market, events and training; tests use the following.")
    ] = 2018,
    threads: Annotated[
        int, typer.Option(help="Number of training threads; more than free cores are slower.")
    ] = 1,
    stored: Stored = None,
    out: Out = None,
    quick: Quick = False,
) -> None:
    """Train, measure and save."""
    folder = out or Path("runs") / f"predictors-{model}{'-quick' if quick else ''}"
    given = {"offers": offers, "days": days, "per_day": per_day, "markets": markets}
    sizes = (QUICK if quick else FULL) | {k: v for k, v in given.items() if v is not None}
    rows: list[Row] = []
    try:
        train_all(
            *(folder, rows),
            **{"model": model, "share": share, "seed": seed, "threads": threads, "quick": quick},
            stored=stored,
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
