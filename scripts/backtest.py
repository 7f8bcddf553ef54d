"""Backtest policies on a crawl log: how fresh would each have kept the pages.

The first half of the log is what policies know. In the second half they crawl instead of the log's
own crawler, at several budgets, and so do agents in folders (--agents). Changes between two crawls
are not known; they are drawn several times so that they agree with the log, and the intervals tell
how much that leaves open. Signals are those of the log. RoundRobin is always played, as what a
crawler reaches without knowing anything.

The same command goes on after an interruption; with another log or seed it needs another folder, or
``--fresh``.

First it says what the log contains. Writes summary.csv and log.png with that, rows.parquet
(freshness of every draw), backtest.csv, backtest.png and provenance.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from rich.console import Console

from crawl_envs.logs import CrawlLog
from scripts.cli.commands import (
    at_least,
    command_of,
    default_folder,
    one_line_errors,
    words_of,
)
from scripts.logs import backtesting
from scripts.logs.backtest_report import SLOW, less, report
from scripts.logs.backtesting import REFERENCE, SHARES, Backtest, Effort
from scripts.logs.learning import check_hindsight
from scripts.logs.options import ReadingOptions, read_log, weights_and_groups
from scripts.logs.summary import print_summary, write_summary
from scripts.present import tables
from scripts.study.entrants import candidate_of
from scripts.study.rows import check_folder
from scripts.study.runner import STOPPED, Store, opened, play_missing
from scripts.study.workers import PlayOptions, Workers

POLICIES = "Greedy,BeliefNCIS"
WITH_SIGNALS = "Greedy,GreedyNCIS,BeliefNCIS"
ARCHIVES = ("cdx", "cdxj")


@dataclass(frozen=True, kw_only=True)
class BacktestOptions(PlayOptions, ReadingOptions):
    """Arguments of ``scripts.backtest``."""

    POSITIONAL: ClassVar = ("log",)

    policies: str | None = None
    """Policies: a comma-separated list of Name, Name:key=value, or module:Class for one of your
    own [RoundRobin,Greedy,BeliefNCIS; with signals RoundRobin,Greedy,GreedyNCIS,BeliefNCIS]."""
    agents: str | None = None
    """Folders of agents to play too, such as of python -m scripts.train index --log, or names of
    shipped ones."""
    start: float | None = None
    """First played day of the log [its middle]."""
    draws: int | None = None
    """Draws of the unknown changes [20, or fewer of a large log]."""
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0
    out: Path | None = None
    """Folder [runs/backtest-LOG]."""


def main(options: BacktestOptions) -> None:
    """Run the backtest."""
    folder = options.out or default_folder("backtest", options.title)
    if options.draws is not None:
        at_least(2, draws=options.draws)
    players = options.players
    recorded = read_log(options)
    effort = backtesting.effort_for(recorded)
    names = names_of(options, recorded, effort)
    effort = effort._replace(draws=effort.draws if options.draws is None else options.draws)
    importance, group = weights_and_groups(recorded, options)
    print_summary(recorded, options.title)
    test = backtesting.backtest(
        recorded, start=options.start, importance=importance, group=group, draws=0
    )
    test.check(names)
    check_hindsight(names, recorded, test.start)
    check_folder(folder)
    if effort.above:
        left_out = options.policies is None and effort.shares != SHARES
        tables.console().print(less(effort, left_out), soft_wrap=True)
    store = played_in(folder, test, names, effort, options, players)
    rows = [row for row in store.rows if row.seed < effort.draws]
    outcomes = backtesting.outcomes(rows, names, effort.shares, test.widening)
    suffixes = set(options.log[0].suffixes)
    archive = options.format in ARCHIVES or bool({f".{name}" for name in ARCHIVES} & suffixes)
    write_summary(recorded, options.title, folder)
    report(test, outcomes, options.title, folder, archive)
    store.sign("scripts.backtest")
    tables.console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


def names_of(options: BacktestOptions, log: CrawlLog, effort: Effort) -> list[str]:
    """Return the names of policies and agents, the reference first.

    Raises:
        ValueError: an unknown name.
    """
    usual = WITH_SIGNALS if log.sources else POLICIES
    names = words_of("--policies", usual if options.policies is None else options.policies)
    if options.policies is None and effort.shares != SHARES:
        names.remove(SLOW)
    names += words_of("--agents", options.agents)
    chosen = list(dict.fromkeys([REFERENCE, *names]))
    for name in chosen:
        candidate_of(name)
    return chosen


def played_in(
    folder: Path,
    test: Backtest,
    names: Sequence[str],
    effort: Effort,
    options: BacktestOptions,
    players: Workers,
) -> Store:
    """Play the policies where no rows are there yet, and return the rows.

    The draws are kept in the folder until all are played.
    """
    saved, digest = folder / "backtest.npz", test.digest(options.seed)
    played = backtesting.measurements(saved, digest, names, effort.shares)
    store = opened(folder, "backtest", played, fresh=options.fresh)
    every = {
        (of.name, name, k) for of in played for name in of.labels for k in of.seeds(effort.draws)
    }
    if not every <= store.done:
        with one_line_errors(STOPPED.format(folder)):
            if not backtesting.has(saved, digest, effort.draws):
                backtesting.save(saved, test.drawn(effort.draws, options.seed), digest)
        play_missing(played, effort.draws, store, players, Console(stderr=True))
    saved.unlink(missing_ok=True)
    return store


app = command_of(main, BacktestOptions, __doc__)

if __name__ == "__main__":
    app()
