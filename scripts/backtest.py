"""Backtest policies on a crawl log: estimate how fresh each would have kept the pages.

Policies and agents (--agents) learn from the first half of the log. In the second half they replace
the crawler, at several budgets, and receive the signals of the log. When a page changed between two
crawls is unknown: changes that agree with the log are drawn several times, and the intervals cover
this uncertainty. RoundRobin, which knows nothing, is always included. With --cost, budgets are
shares of what the log spent, and the answer is what a policy would have spent.

Prints a summary of the log and how long slow policies take. Writes summary.csv and log.png (the
summary), rows.parquet (freshness of every draw), backtest.csv, backtest.png and provenance.json.

The same command resumes an interrupted run. Another log or seed needs another folder or --fresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from scripts.cli.commands import command_of
from scripts.cli.options import check_counts, input_folder
from scripts.live import backtesting
from scripts.live.backtest_report import less, report
from scripts.live.backtest_runs import names_of, played_in
from scripts.live.learning import check_hindsight
from scripts.live.options import Cost, ReadingOptions, read_log, weights_and_groups
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
        Option(help="Agents: folders of scripts.train index --log, or names of shipped agents."),
    ] = None
    start: Annotated[
        float | None, Option(help="First simulated day of the log.", show_default="its middle")
    ] = None
    cost: Cost = None
    draws: Annotated[
        int | None,
        Option(help="Draws of the unknown changes.", show_default="20; 6 for large logs"),
    ] = None
    seed: Annotated[int, Option(min=0, help="Seed of the draws.")] = 0
    out: Annotated[Path | None, Option(help="Folder.", show_default="runs/backtest-LOG")] = None


def main(options: BacktestOptions) -> None:
    """Run the backtest."""
    folder = options.out or input_folder("backtest", options.log[0])
    if options.draws is not None:
        check_counts(2, draws=options.draws)
    players = options.players
    recorded = read_log(options, options.cost)
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
    outcomes = backtesting.outcomes(rows, names, effort.shares, test.widening, test.costs)
    write_summary(recorded, options.title, folder)
    report(test, outcomes, options.title, folder)
    store.sign("scripts.backtest")
    console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


app = command_of(main, BacktestOptions, __doc__)

if __name__ == "__main__":
    app()
