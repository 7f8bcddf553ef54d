"""Rank all shipped policies and agents in a suite of tasks, and those of your own beside them.

The result is a leaderboard: README.md, leaderboard.csv, tracks.csv, scores.csv, pictures, and
report.html, one file to open in a browser, whose path is printed last. The rows of the shipped
entrants are taken from the committed leaderboard, if there is one. The same command goes on after
an interruption.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from crawl_envs.types.arguments import one_of
from scripts.cli.commands import at_least, command_of, default_folder, one_line_errors, words_of
from scripts.present import tables
from scripts.study.runner import STOPPED
from scripts.study.workers import PlayOptions
from scripts.suite.tasks import SUITES

SEEDS = {"crawl-v1": 10, "mini": 3}
OTHER_SEEDS = 20
"""Number of seeds of other suites than ``SEEDS`` has."""
Suite = Annotated[str, typer.Argument(help=f"Suite of tasks: {' or '.join(SUITES)}.")]


@dataclass(frozen=True, kw_only=True)
class RankOptions(PlayOptions):
    """Arguments of ``scripts.rank``."""

    POSITIONAL: ClassVar = ("suite",)

    suite: Suite
    policies: str | None = None
    """Policies to rank besides the shipped ones: comma-separated list of Name:key=value or
    module:Class [none]."""
    agents: str | None = None
    """Agents to rank besides the shipped ones: comma-separated list of output folders of
    scripts.train [none]."""
    seeds: int | None = None
    """Number of seeds [10 of crawl-v1, 3 of mini, 20 of others]."""
    score: bool = False
    """Make tables, pictures and report anew of the rows, leaderboard.csv and provenance.json that
    an earlier run wrote; nothing is played."""
    out: Path | None = None
    """Output folder [results/SUITE; runs/SUITE with entrants or seeds of your own]."""


def main(options: RankOptions, module: str = "scripts.rank") -> None:
    """Rank a suite and write its leaderboard; ``module`` is the command, for the provenance."""
    from scripts.suite.leaderboard import REPORT, rank_suite

    one_of("suite", options.suite, tuple(SUITES))
    if options.fresh and options.score:
        raise ValueError("--fresh and --score exclude each other")
    count = SEEDS.get(options.suite, OTHER_SEEDS) if options.seeds is None else options.seeds
    at_least(1, seeds=count)
    entrants = [
        *words_of("--policies", options.policies),
        *words_of("--agents", options.agents),
    ]
    shared = not entrants and options.seeds is None
    default = Path("results") / options.suite if shared else default_folder(options.suite)
    folder, workers, console = options.out or default, options.players, tables.console()
    with one_line_errors(STOPPED.format(folder)):
        store = rank_suite(
            options.suite,
            entrants,
            count,
            folder,
            workers,
            console,
            fresh=options.fresh,
            score=options.score,
            module=module,
        )
    console.print(f"\n{tables.took(store.run_seconds, workers.count)} -> {folder}")
    console.print(f"{folder / REPORT}", soft_wrap=True, markup=False)


app = command_of(main, RankOptions, __doc__)

if __name__ == "__main__":
    app()
