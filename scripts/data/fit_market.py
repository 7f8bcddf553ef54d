"""Compare simulated markets with the published numbers of Han et al. 2020.

Three shares of offers (section 4.1.1) and nine AUCs (Table 4) are compared. As in the paper,
predictors are trained on the days from August 1 to the end of the year, selected on the next nine
days and tested on the following 91. Training and test offers are different offers of the same
world: as among the paper's 1.3 million offers, brand and merchant do not identify an offer. Nothing
is fitted; ``--set`` tries other shapes of a market. Writes ``market.csv`` and ``provenance.json``.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table
from typer import Option

from agents.predictors import FEATURES, MODELS, TASKS
from agents.predictors.examples import Examples, examples
from agents.predictors.predictor import Predictor
from agents.progress import tracked
from crawl_envs.instances.market import MarketShape
from crawl_envs.types.arguments import one_of, whole
from crawl_envs.worlds.offers.log import MarketLog
from scripts.cli.commands import command_of, one_line_errors
from scripts.cli.options import named_values
from scripts.data.offer_samples import FIRST_DAY, TABLE_4, UniformSample, logged, split_days
from scripts.present.tables import console
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance

OUT, QUICK_OUT = Path("results/offers/market"), Path("runs/market")
POSITIVES = {"price": 1 / 21, "click": 1 / 76, "impression": 1 / 7}
"""Shares of offers with an event per day: 1:20, 1:75 and 1:6 (Han et al. 2020, section 4.1.1)."""
POSITIVES_BAND, AUC_BAND = 0.2, 0.03
"""Tolerances of a share (relative) and of an AUC (absolute); both are our choice."""
FULL = {"offers": 100_000, "days": 253, "per_day": 4_000}
QUICK = {"offers": 1_000, "days": 40, "per_day": 300}
QUICK_SETTINGS: dict[str, dict[str, Any]] = {"network": {"epochs": 1}, "trees": {"trees": 10}}


class Figure(NamedTuple):
    """A number measured on a simulated market, and the same number in the paper.

    ``what`` is ``positives``, a share of offers per day, or ``auc``; ``model`` and ``features``
    describe the predictor of an AUC. ``band`` is the tolerated difference.
    """

    what: str
    task: str
    model: str
    features: str
    measured: float
    paper: float
    band: float

    @property
    def near(self) -> bool:
        """Whether measured and paper's number differ by at most ``band``."""
        return abs(self.measured - self.paper) <= self.band


class Tables(NamedTuple):
    """Examples for training, validation and test, and the log that the test examples come from."""

    train: Examples
    validation: Examples
    test: Examples
    log: MarketLog


def make_tables(
    shape: MarketShape, offers: int, days: int, per_day: int, seed: int, train_seed: int
) -> Tables:
    """Simulate a training and a test market of the same world, and return examples from them.

    The two are one market if their seeds are equal.

    Args:
        shape: shape of the world and the markets.
        offers: number of offers in each market.
        days: number of days of the record, >= 3.
        per_day: examples per training day; twice as many per validation or test day.
        seed: seed of the test market.
        train_seed: seed of the market for training and validation.

    Raises:
        ValueError: an argument outside its range.
    """
    once, twice = UniformSample(per_day), UniformSample(2 * per_day)
    split = split_days(days)
    test_log = logged(seed, offers, days, shape=shape)
    log = test_log if train_seed == seed else logged(train_seed, offers, days, shape=shape)
    return Tables(
        examples(log, split.train, sample=once, seed=seed),
        examples(log, split.validation, sample=twice, seed=seed),
        examples(test_log, split.test, sample=twice, seed=seed),
        test_log,
    )


def shares(log: MarketLog, days: range) -> Iterator[Figure]:
    """Yield three figures: shares of offers with a price change, click or impression per day."""
    labels = [log.labels(day) for day in days]
    for number, task in enumerate(TASKS):
        share, paper = float(np.mean([day[number].mean() for day in labels])), POSITIVES[task]
        yield Figure("positives", task, "", "", share, paper, POSITIVES_BAND * paper)


def aucs(
    tables: Tables, models: Sequence[str], settings: dict[str, dict[str, Any]]
) -> Iterator[Figure]:
    """Train nine predictors of each model (three tasks, three kinds of features); yield AUCs."""
    from sklearn.metrics import roc_auc_score  # slow to import

    kinds = list(itertools.product(models, TASKS, FEATURES))
    for model, task, features in tracked(kinds, "predictors"):
        paper, _ = TABLE_4[task][features]
        predictor = Predictor(task, features, model, **settings.get(model, {}))
        predictor.fit(tables.train, tables.validation)
        area = float(roc_auc_score(tables.test.labels(task), predictor.predict(tables.test)))
        yield Figure("auc", task, model, features, area, paper, AUC_BAND)


def shape_of(changes: Sequence[str]) -> MarketShape:
    """Return the default shape of a market, with ``name=value`` texts replacing its arguments.

    Raises:
        ValueError: a word of another form, an unknown name, or a value outside its range.
    """
    values = named_values(changes, "set")
    for name in values:
        one_of("set", name, tuple(field.name for field in fields(MarketShape)))
    return MarketShape(**values)


def table_of(figures: Sequence[Figure]) -> Table:
    """Return a table for the terminal with each measured number and the paper's number."""
    table = Table(
        *Figure._fields, "near", title="A market of this shape, and that of Han et al. 2020"
    )
    for figure in figures:
        numbers = (f"{value:.3f}" for value in figure[4:])
        table.add_row(*figure[:4], *numbers, "[green]✓[/]" if figure.near else "[bold red]✗[/]")
    return table


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the command."""

    seed: Annotated[int, Option(help="Seed of the test market.")] = 0
    train_seed: Annotated[
        int | None, Option(help="Seed of the training market.", show_default="--seed plus 1")
    ] = None
    model: Annotated[
        list[str] | None, Option(help="trees or network; can be repeated.", show_default="trees")
    ] = None
    set: Annotated[list[str] | None, Option(help="NAME=NUMBER of the shape; can be repeated.")] = (
        None
    )
    quick: Annotated[bool, Option("--quick", help="Few offers and days, as a smoke test.")] = False
    out: Annotated[
        Path | None,
        Option(
            help="Output folder.", show_default="results/offers/market; runs/market with --quick"
        ),
    ] = None


def main(options: Options) -> None:
    """Measure shares and AUCs of simulated markets, and write and print them."""
    seed, size = options.seed, QUICK if options.quick else FULL
    folder = options.out or (QUICK_OUT if options.quick else OUT)
    train_seed = seed + 1 if options.train_seed is None else options.train_seed
    models = tuple(dict.fromkeys(options.model or ["trees"]))
    for word in models:
        one_of("model", word, MODELS)
    shape, start = shape_of(options.set or ()), time.perf_counter()
    whole("seed", seed, 0)
    whole("train_seed", train_seed, 0)
    check_folder(folder)
    tables = make_tables(shape, **size, seed=seed, train_seed=train_seed)
    settings, test_days = QUICK_SETTINGS if options.quick else {}, split_days(size["days"]).test
    figures = [*shares(tables.log, test_days), *aucs(tables, models, settings)]
    about: dict[str, Any] = {**size, "first_day": FIRST_DAY, "seed": seed, "train_seed": train_seed}
    with one_line_errors(f"stopped while writing; {folder} may lack files of this run"):
        rows = [(*figure, figure.near) for figure in figures]
        write_csv(folder / "market.csv", (*Figure._fields, "near"), rows)
        path, entry = provenance_at(folder)
        seconds = time.perf_counter() - start
        about["shape"] = asdict(shape)
        write_provenance(path, "scripts.data.fit_market", seconds, entry, **about)
    console().print(table_of(figures))
    typer.echo(f"-> {folder}")


app = command_of(main, Options, __doc__)

if __name__ == "__main__":
    app()
