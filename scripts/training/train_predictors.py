"""Train predictors of price changes, clicks and impressions on a market, and compare their AUCs.

AUCs are means over test markets, which are not used in training and validation, with intervals over
these markets. ``--stored`` measures the predictors of a folder without training; predictors from
one kind of features are never stored, and are trained.

AUCs do not depend on the level of probabilities, which is calibrated on the validation days. As in
the paper, these are January 1 to 9 by default, during winter sales. Most test days are after the
sales, so too many price changes are predicted: see the columns ``predicted`` and ``observed``.
"""

from __future__ import annotations

import itertools
import json
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer import Option

from agents.predictors import FEATURES, MODELS, PROVENANCE, TASKS, load
from agents.predictors.examples import Examples, examples
from agents.predictors.predictor import Predictor
from agents.progress import COUNT, ProgressBar
from agents.runs import replace_text
from crawl_envs.evaluation import mean_and_half_width
from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import one_of, whole
from scripts.cli.commands import command_of, one_line_errors
from scripts.cli.options import without_none
from scripts.data.offer_samples import (
    TABLE_4,
    ClickWeightedSample,
    UniformSample,
    logged,
    split_days,
)
from scripts.study.rows import write_csv

TABLE, SUBSETS = "auc.csv", 20
TEST_PER_DAY, TEST_OFFERS = 5_000, 20_000
QUICK_SETTINGS: dict[str, dict[str, Any]] = {"network": {"epochs": 2}, "trees": {"trees": 20}}
FULL = {"offers": 100_000, "days": 253, "per_day": 8_000, "markets": 10}
QUICK = {"offers": 1_000, "days": 30, "per_day": 500, "markets": 2}


class Row(NamedTuple):
    """Results of a predictor on the test days.

    ``auc`` is the mean over the test markets, with its 95 % Student interval over them: offers of
    one market share merchants, seasons and promotions. Mean and standard deviation over random
    ``subsets`` of the first market are as in the paper. ``predicted`` and ``observed`` are the
    mean probability and the share of positives. ``seconds`` is the wall time of training.
    """

    task: str
    features: str
    auc: float
    low: float
    high: float
    subsets_mean: float
    subsets_deviation: float
    validation_auc: float
    predicted: float
    observed: float
    seconds: float
    paper_auc: float
    paper_deviation: float


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Options of the command."""

    offers: Annotated[
        int | None,
        Option(
            help="Number of training offers; as many others, at most 20000, are for testing.",
            show_default="100000; 1000 with --quick",
        ),
    ] = None
    days: Annotated[
        int | None,
        Option(
            help="Number of days: 153/253 for training, 9/253 for validation, others for testing.",
            show_default="253; 30 with --quick",
        ),
    ] = None
    model: Annotated[str, Option(help="network or trees.")] = "network"
    per_day: Annotated[
        int | None,
        Option(help="Training examples per day, at most.", show_default="8000; 500 with --quick"),
    ] = None
    markets: Annotated[
        int | None, Option(help="Number of test markets, >= 2.", show_default="10; 2 with --quick")
    ] = None
    share: Annotated[float, Option(help="Share of training examples sampled by past clicks.")] = 0.5
    seed: Annotated[
        int, Option(help="Seed of market, events and training; tests use the next seeds.")
    ] = 2018
    threads: Annotated[int, Option(help="Training threads, at most the number of free cores.")] = 1
    stored: Annotated[
        str | None, Option(help="Folder or name of predictors to measure instead of training.")
    ] = None
    out: Annotated[
        Path | None,
        Option(
            help="Folder for the predictors.",
            show_default="runs/predictors-MODEL, or runs/predictors-MODEL-quick with --quick",
        ),
    ] = None
    quick: Annotated[
        bool, Option("--quick", help="Smaller defaults and short training, as a smoke test.")
    ] = False

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that the user set; other sizes are from ``FULL``, or ``QUICK`` with --quick."""
        return (QUICK if self.quick else FULL) | without_none({n: getattr(self, n) for n in FULL})

    def check(self) -> None:
        """Raise ValueError if an option is outside its range."""
        one_of("model", self.model, MODELS)
        whole("seed", self.seed, 0)
        whole("threads", self.threads, 1)
        whole("markets", self.sizes["markets"], 2)


class Tables(NamedTuple):
    """Examples of the training and validation days, and of the test days of each test market."""

    train: Examples
    validation: Examples
    tests: tuple[Examples, ...]

    def account(self) -> dict[str, dict[str, Any]]:
        """Return the number of examples of each part, and its share of positives by task."""
        named = {"train": (self.train,), "validation": (self.validation,), "test": self.tests}
        return {
            "examples": {name: sum(map(len, parts)) for name, parts in named.items()},
            "positives": {
                name: {
                    task: float(np.mean([part.labels(task).mean() for part in parts]))
                    for task in TASKS
                }
                for name, parts in named.items()
            },
        }


def make_tables(arguments: Arguments) -> Tables:
    """Record markets of one world and make examples from them.

    Days of the first market are for training, sampled in part by past clicks. Later days of the
    second market, with different offers of the same merchants, are for validation. Still later
    days of all further markets are for testing, sampled uniformly (section 4.1.1). Training and
    test offers are disjoint, since metadata would identify a few offers.

    Raises:
        ValueError: an argument outside its range.
    """
    (offers, days, per_day, markets), seed = arguments.sizes.values(), arguments.seed
    test_offers, split = min(offers, TEST_OFFERS), split_days(days)
    uniform = UniformSample(TEST_PER_DAY)
    sample = ClickWeightedSample(per_day, arguments.share)
    first = logged(seed, offers, split.train.stop)
    train = examples(first, split.train, sample=sample, seed=seed)
    second = logged(seed + 1, test_offers, split.validation.stop)
    validation = examples(second, split.validation, seed=seed)
    tests = (logged(seed + 2 + number, test_offers, days) for number in range(markets))
    return Tables(
        train,
        validation,
        tuple(examples(log, split.test, sample=uniform, seed=seed) for log in tests),
    )


def measured(predictor: Predictor, tests: Sequence[Examples], seconds: float) -> Row:
    """Return the results of a predictor on all test markets; training took ``seconds``."""
    from sklearn.metrics import roc_auc_score  # slow to import

    task, features = predictor.task, predictor.features
    labels = [test.labels(task) for test in tests]
    chances = [predictor.predict(test) for test in tests]
    areas = [float(roc_auc_score(*pair)) for pair in zip(labels, chances, strict=True)]
    mean, half = mean_and_half_width(areas)
    return Row(
        *(task, features, mean, mean - half, mean + half),
        *over_subsets(labels[0], chances[0]),
        predictor.validation_auc,
        float(np.mean([pair.mean() for pair in chances])),
        float(np.mean([pair.mean() for pair in labels])),
        seconds,
        *TABLE_4[task][features],
    )


def over_subsets(labels: BoolArray, scores: FloatArray) -> tuple[float, float]:
    """Return the AUC's mean and standard deviation over random parts (Han et al. 2020, §5.1).

    If a part lacks a class, as in small runs, return the AUC of all examples and NaN.
    """
    from sklearn.metrics import roc_auc_score  # slow to import

    parts = np.array_split(np.random.default_rng(0).permutation(len(labels)), SUBSETS)
    if not all(labels[part].any() and not labels[part].all() for part in parts):
        return float(roc_auc_score(labels, scores)), float("nan")
    areas = [roc_auc_score(labels[part], scores[part]) for part in parts]
    return float(np.mean(areas)), float(np.std(areas, ddof=1))


def trained(
    tables: Tables, arguments: Arguments, bar: ProgressBar
) -> Iterator[tuple[Predictor, Row]]:
    """Train the nine predictors, except stored ones; yield each predictor with its results."""
    stored = {} if arguments.stored is None else load(arguments.stored)
    settings = {"threads": arguments.threads, "seed": arguments.seed}
    settings |= QUICK_SETTINGS[arguments.model] if arguments.quick else {}
    line = bar.add_task("training", total=len(TASKS) * len(FEATURES))
    for task, features in itertools.product(TASKS, FEATURES):
        bar.update(line, description=f"{task} from {features}")
        start = time.perf_counter()
        if features == "both" and task in stored:
            predictor = stored[task]
        else:
            predictor = Predictor(task, features, arguments.model, **settings)
            predictor.fit(tables.train, tables.validation)
        row = measured(predictor, tables.tests, time.perf_counter() - start)
        bar.advance(line)
        yield predictor, row


def table_of(rows: list[Row]) -> Table:
    """Return a table of the predictors' AUCs for the terminal."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("task", "features"):
        table.add_column(name)
    for name in ("AUC", "95 %, markets", "20 subsets", "paper"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            *(row.task, row.features, f"{row.auc:.3f}", f"{row.low:.3f} - {row.high:.3f}"),
            f"{row.subsets_mean:.3f} ({row.subsets_deviation:.3f})",
            f"{row.paper_auc:.3f} ({row.paper_deviation:.3f})",
        )
    return table


def train_all(out: Path, rows: list[Row], arguments: Arguments) -> None:
    """Train and measure all predictors; save those that use both kinds of features.

    The folder receives ``auc.csv`` and one file per task as they are finished, and
    ``provenance.json`` at the end; ``rows`` receives the rows of the table as they are finished.

    Raises:
        ValueError: an argument is outside its range, ``out`` has predictors already, or ``stored``
            has none or those of another model.
        OSError: ``out`` cannot be written.
    """
    arguments.check()
    if (out / PROVENANCE).exists():
        raise ValueError(f"out must have no predictors yet, got {out} with {PROVENANCE}")
    for predictor in load(arguments.stored).values() if arguments.stored is not None else ():
        if predictor.model != arguments.model:
            raise ValueError(
                f"stored must have predictors of {arguments.model}, got those of {predictor.model}"
            )
    out.mkdir(parents=True, exist_ok=True)
    start, console = time.perf_counter(), Console(stderr=True)
    sizes = arguments.sizes
    with console.status(f"logging {sizes['offers']} offers for {sizes['days']} days"):
        tables = make_tables(arguments)
    with ProgressBar(COUNT, console=console) as bar:
        for predictor, row in trained(tables, arguments, bar):
            if predictor.features == "both":
                predictor.save(out / f"{predictor.task}.npz")
            rows.append(row)
            write_csv(out / TABLE, Row._fields, rows)
    about = {
        **{"model": arguments.model, "seed": arguments.seed},
        **{name: sizes[name] for name in ("offers", "days", "per_day")},
        **{"share_by_clicks": arguments.share, "test_markets": sizes["markets"]},
        "command": shlex.join(["python", "-m", "scripts.training.train_predictors", *sys.argv[1:]]),
        **tables.account(),
        "settings": asdict(predictor.settings),
        "table": [row._asdict() for row in rows],
        "seconds": round(time.perf_counter() - start, 1),
    }
    replace_text(out / PROVENANCE, json.dumps(about, indent=2) + "\n")


def stopped(folder: Path, rows: list[Row]) -> str:
    """Return the message after an interrupt: which files were written, and which are missing."""
    if not rows:
        return "stopped; nothing was measured"
    ready = [f"{row.task}.npz" for row in rows if row.features == "both"]
    files = ", ".join([TABLE, *ready])
    return f"stopped after {len(rows)} of 9 predictors; {folder} has {files}, but no {PROVENANCE}"


def main(arguments: Arguments) -> None:
    """Train the predictors, measure and save them, and print the table."""
    named = f"predictors-{arguments.model}{'-quick' if arguments.quick else ''}"
    folder, rows = arguments.out or Path("runs") / named, list[Row]()
    try:
        train_all(folder, rows, arguments)
    except KeyboardInterrupt:
        with one_line_errors(stopped(folder, rows)):
            raise
    console = Console()
    console.print(table_of(rows))
    console.print(f"testing AUC, {len(rows)} predictors -> {folder}", soft_wrap=True)


app = command_of(main, Arguments, __doc__)

if __name__ == "__main__":
    app()
