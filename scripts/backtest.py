"""Backtest policies on a crawl log: how fresh would each have kept the pages.

The first half of the log is what policies know. In the second half they crawl instead of the log's
own crawler, at several budgets, and so do agents in folders (--agents). Changes between two crawls
are not known; they are drawn several times so that they agree with the log, and the intervals tell
how much that leaves open. Signals are those of the log. RoundRobin is always played, as what a
crawler reaches without knowing anything.

The same command goes on after an interruption; with another log or seed it needs another folder, or
``--fresh``.

First it says what the log contains, and how long slow plays take. Writes summary.csv and log.png
with the former, rows.parquet (freshness of every draw), backtest.csv, backtest.png and
provenance.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from scripts.cli.commands import command_of
from scripts.cli.options import at_least, input_folder
from scripts.live import backtesting
from scripts.live.backtest_report import less, report
from scripts.live.backtest_runs import names_of, played_in
from scripts.live.learning import check_hindsight
from scripts.live.options import ReadingOptions, read_log, weights_and_groups
from scripts.live.summary import print_summary, write_summary
from scripts.present.tables import console
from scripts.study.rows import check_folder
from scripts.study.workers import PlayOptions


@dataclass(frozen=True, kw_only=True)
class BacktestOptions(PlayOptions, ReadingOptions):
    """Arguments of ``scripts.backtest``."""

    policies: Annotated[
        str | None,
        Option(
            help="Comma-separated list of Name, Name:key=value, or module:Class of your own.",
            show_default="RoundRobin,Greedy,BeliefNCIS, and GreedyNCIS with signals",
        ),
    ] = None
    agents: Annotated[
        str | None,
        Option(help="Agents too: folders, as of scripts.train index --log, or shipped names."),
    ] = None
    start: Annotated[
        float | None, Option(help="First played day of the log.", show_default="its middle")
    ] = None
    draws: Annotated[
        int | None,
        Option(help="Draws of unknown changes.", show_default="20; 6 of large logs"),
    ] = None
    seed: Annotated[int, Option(min=0, help="Seed of the draws.")] = 0
    out: Annotated[Path | None, Option(help="Folder.", show_default="runs/backtest-LOG")] = None


def main(options: BacktestOptions) -> None:
    """Run the backtest."""
    folder = options.out or input_folder("backtest", options.log[0])
    if options.draws is not None:
        at_least(2, draws=options.draws)
    players = options.players
    recorded = read_log(options)
    effort = backtesting.effort_for(recorded)
    names = names_of(options.policies, options.agents, recorded, effort)
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
        console().print(less(effort, options.policies is not None), soft_wrap=True)
    store = played_in(folder, test, names, effort, players, seed=options.seed, fresh=options.fresh)
    rows = [row for row in store.rows if row.seed < effort.draws]
    outcomes = backtesting.outcomes(rows, names, effort.shares, test.widening)
    write_summary(recorded, options.title, folder)
    report(test, outcomes, options.title, folder)
    store.sign("scripts.backtest")
    console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


app = command_of(main, BacktestOptions, __doc__)

if __name__ == "__main__":
    app()
