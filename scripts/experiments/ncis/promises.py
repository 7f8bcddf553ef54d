"""Measure the freshness that promises of longest intervals between crawls cost."""

from __future__ import annotations

from collections.abc import Mapping

from crawl_envs import instances
from crawl_envs.evaluation import simulate
from policies import GreedyNCIS, solvers
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range
from scripts.study.specs import spec

TITLE = "Freshness lost when no page waits longer than some rounds (of m / R) for a crawl"
NUM_PAGES, ROUNDS, LENGTH = 500, (5, 10, 20), 50.0
SHARES = {"R = .3 m": 0.3, "R = .1 m": 0.1}
CELLS = {f"{name}, {n} rounds": (share, n) for name, share in SHARES.items() for n in ROUNDS}
PROMISES, LOST = "promises", "lost"


@spec("ncis-freshness-lost-by-promises")
def measure(seed: int, *, share: float, most_rounds: float, rounds: float) -> Mapping[str, float]:
    """Return the freshness that GREEDY-NCIS loses by promises, on the same events.

    ``least`` is the loss of the optimum of Theorem 1 when the promised rates are its floor.
    ``never`` and ``never_important`` are the shares of pages and of importance that are not crawled
    without promises; ``late`` is the largest excess of an interval over the promise, at most 0.
    """
    pages = {"num_pages": NUM_PAGES, "bandwidth": share * NUM_PAGES}
    instance = instances.make("noisy", seed=seed, **pages)
    free, kept = (
        simulate(instance, GreedyNCIS(most_rounds=most), rounds / share, seed)
        for most in (None, most_rounds)
    )
    never, importance = free.crawl_counts == 0, instance.importance
    floored = solvers.ncis(instance, floor=share / most_rounds).objective
    return {
        LOST: free.freshness - kept.freshness,
        "least": solvers.ncis(instance).objective - floored,
        "never": float(never.mean()),
        "never_important": float(importance[never].sum() / importance.sum()),
    }


def _lost(high: float, cell: str) -> Range:
    return Range(PROMISES, -1.0, high, (cell,), "the goal", LOST)


EXPERIMENT = Experiment(
    name="ncis-promises",
    title=TITLE,
    claim="That no page is forgotten costs little freshness.",
    metric=LOST,
    repetitions=60,
    settings=measure_settings(
        {
            name: {"share": share, "most_rounds": float(most), "rounds": LENGTH}
            for name, (share, most) in CELLS.items()
        },
        {PROMISES: measure},
        quick={"rounds": 10.0},
    ),
    claims=(
        Claim(
            "X",
            "not in the paper",
            (_lost(0.001, "R = .3 m, 20 rounds"), _lost(0.004, "R = .3 m, 10 rounds")),
        ),
    ),
    expected=(Range(PROMISES, 0.15, 0.5, tuple(CELLS), "our measurement", "never"),),
    pictures={
        LOST: figures.lines(
            [
                Series(LOST, label={cell: cell.partition(",")[0] for cell in CELLS}, factor=100.0),
                Series("least", label="{setting}", factor=100.0),
            ],
            Frame(
                f"{TITLE}\n{NUM_PAGES} pages; bars: 95% intervals over {{seeds}} seeds",
                Axis("longest interval (rounds)", "log", ticks=ROUNDS),
                Axis("freshness lost (points of 100)"),
                across=[Rule(0.0)],
            ),
            positions={cell: most for cell, (_, most) in CELLS.items()},
        )
    },
)
