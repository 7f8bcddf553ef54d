"""Rank all shipped policies and agents, and your own, in a suite of tasks; train learners for it.

Writes a leaderboard: README.md, leaderboard.csv, tracks.csv, scores.csv, pictures, and report.html,
which opens in a browser without a network. Results of the shipped entrants are taken from the
committed leaderboard, if there is one. The same command resumes an interrupted run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command_of, one_line_errors
from scripts.cli.options import check_counts, default_folder, words_of
from scripts.present import tables
from scripts.study.runner import STOPPED
from scripts.study.workers import PlayOptions
from scripts.suite.protocol import STEPS, TRAININGS, Training
from scripts.suite.suites import SUITES, holds_out

SEEDS = {"crawl-v2": 10, "crawl-v1": 10, "mini": 3}
OTHER_SEEDS = 20
"""Default number of seeds of suites that are not in ``SEEDS``."""
Suite = Annotated[str, Argument(help=f"Suite of tasks: {' or '.join(SUITES)}.")]


@dataclass(frozen=True, kw_only=True)
class RankOptions(PlayOptions):
    """Arguments of ``scripts.rank``."""

    suite: Suite
    policies: Annotated[
        str | None,
        Option(
            help="Additional policies: comma-separated list of Name:key=value or module:Class.",
            show_default="none",
        ),
    ] = None
    agents: Annotated[
        str | None,
        Option(
            help="Additional agents: comma-separated output folders of scripts.train.",
            show_default="none",
        ),
    ] = None
    train: Annotated[
        str | None,
        Option(
            help="Learners to train and rank in crawl-v2: comma-separated list of ppo and the "
            "like, module:Class in the form of Stable-Baselines3, or module:function.",
            show_default="none",
        ),
    ] = None
    tasks: Annotated[
        str | None,
        Option(help="Rank in these tasks only: comma-separated list.", show_default="all"),
    ] = None
    trainings: Annotated[
        int, Option(help="Number of trainings of a learner, at most --seeds; the protocol has 5.")
    ] = TRAININGS
    steps: Annotated[
        int | None,
        Option(
            help="Steps of a training, at most 2,000,000, of an algorithm for each task.",
            show_default="2,000,000, or fewer if the algorithm's default is smaller",
        ),
    ] = None
    seeds: Annotated[
        int | None,
        Option(help="Number of seeds.", show_default="crawl: 10; mini: 3; recorded-dev: its sites"),
    ] = None
    score: Annotated[
        bool,
        Option("--score", help="Rebuild tables, pictures and report; simulate nothing."),
    ] = False
    out: Annotated[
        Path | None,
        Option(
            help="Output folder.",
            show_default="results/SUITE; runs/SUITE with entrants or seeds of your own",
        ),
    ] = None


def main(options: RankOptions) -> None:
    """Rank a suite and write its leaderboard."""
    from scripts.suite.leaderboard import REPORT, rank_suite

    one_of("suite", options.suite, tuple(SUITES))
    training = training_of(options)
    count = SEEDS.get(options.suite, OTHER_SEEDS) if options.seeds is None else options.seeds
    check_counts(1, seeds=count)
    entrants = words_of("--policies", options.policies) + words_of("--agents", options.agents)
    task_names = words_of("--tasks", options.tasks)
    shared = not (entrants or training.names or task_names) and options.seeds is None
    default = Path("results") / options.suite if shared else default_folder(options.suite)
    folder, workers, console = options.out or default, options.players, tables.console()
    with one_line_errors(STOPPED.format(folder)):
        plan = options.suite, entrants, count, folder, workers, console, training
        store = rank_suite(*plan, score=options.score, task_names=task_names)
    console.print(f"\n{tables.took(store.run_seconds, workers.count)} -> {folder}")
    console.print(f"{folder / REPORT}", soft_wrap=True, markup=False)


def training_of(options: RankOptions) -> Training:
    """Return the learners to train; ValueError for options that exclude each other."""
    names = words_of("--train", options.train)
    if options.score and (options.fresh or names):
        raise ValueError(f"--{'fresh' if options.fresh else 'train'} must be left out with --score")
    if names and not holds_out(options.suite):
        raise ValueError(f"--train must be used with crawl-v2, got {options.suite!r}")
    check_counts(1, trainings=options.trainings)
    if options.steps is not None and not 1 <= options.steps <= STEPS:
        raise ValueError(f"--steps must be an integer from 1 to {STEPS:,}, got {options.steps}")
    return Training(names, options.trainings, options.steps, options.fresh)


app = command_of(main, RankOptions, __doc__)

if __name__ == "__main__":
    app()
