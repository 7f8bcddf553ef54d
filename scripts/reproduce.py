"""Reproduce figures of a paper: simulate, draw, and check the paper's claims.

Results are saved as they arrive: the same command resumes an interrupted run, ``--fresh`` starts
over. After each figure, claims.md of the paper is written from all results that exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from scripts import experiments
from scripts.cli.commands import command_of
from scripts.cli.options import check_counts
from scripts.experiments.reproducing import reproduce
from scripts.study.rows import RESULTS, check_folder
from scripts.study.workers import PlayOptions

QUICK_OUT = Path("runs")

Figures = Annotated[
    list[str],
    Argument(
        help=f"Any of {', '.join(experiments.names())}; short, fig13, if only one paper has it; "
        f"or a paper, for all of its figures: {', '.join(experiments.papers())}."
    ),
]


Seeds = Annotated[
    int | None,
    Option(
        "--seeds",
        "--repetitions",
        help="Number of seeds of every policy and setting.",
        show_default="set by the experiment",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(PlayOptions):
    """Arguments of ``scripts.reproduce``."""

    figures: Figures
    quick: Annotated[
        bool, Option("--quick", help="Few pages and short episodes, as a smoke test.")
    ] = False
    seeds: Seeds = None
    score: Annotated[
        bool, Option("--score", help="Check and draw existing results; simulate nothing.")
    ] = False
    out: Annotated[
        Path | None, Option(help="Output folder.", show_default="results; runs with --quick")
    ] = None


def main(options: ReproduceOptions) -> None:
    """Run experiments."""
    if options.seeds is not None:
        check_counts(1, seeds=options.seeds)
    if options.fresh and options.score:
        raise ValueError("--fresh must be left out with --score")
    players = options.players
    jobs = {}
    for experiment in experiments.select(options.figures):
        out = options.out or (QUICK_OUT if options.quick else RESULTS)
        folder = out / experiment.paper / experiment.figure
        experiment.playables(options.quick)  # raises its errors before any work
        check_folder(folder)
        jobs[folder] = experiment
    for folder, experiment in jobs.items():
        reproduce(
            experiment,
            folder,
            players,
            seeds=options.seeds,
            quick=options.quick,
            fresh=options.fresh,
            score=options.score,
        )


app = command_of(main, ReproduceOptions, __doc__)

if __name__ == "__main__":
    app()
