"""What the leaderboard says of entrants beside scores: costs, and how evenly they serve pages."""

from __future__ import annotations

import gc
import math
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich.console import Console

from agents.progress import tracked
from crawl_envs.evaluation import PolicyFactory, Row, make_env, play
from scripts.study.entrants import Candidate
from scripts.study.means import table
from scripts.suite.entrants import LEAST_SERVED, TaskSetting
from scripts.suite.tasks import FIRST_SEED, MEASURED, Task

SHORT = 1.0
"""Horizon of the episodes in which kernels are compiled and memory is counted."""


class Detail(NamedTuple):
    """Freshness of an entrant in the task ``MEASURED``, and its costs; NaN if unknown.

    Attributes:
        freshness: mean freshness of all pages, weighted by importance.
        least_served: mean freshness of the tenth of pages that are least fresh in an episode.
        microseconds: of a decision with the environment's step.
        kilobytes: held by the policy, as Python and NumPy count memory.
        training_seconds: processor seconds, 0 for policies.
    """

    freshness: float = math.nan
    least_served: float = math.nan
    microseconds: float = math.nan
    kilobytes: float = math.nan
    training_seconds: float = math.nan

    def words(self) -> list[str]:
        """Return the numbers as text in the order of ``HEADINGS``, empty if unknown or 0."""
        return [
            "" if math.isnan(value) or value == 0.0 else f"{value:.{digits}f}"
            for value, digits in zip(self, DIGITS, strict=True)
        ]


HEADINGS, DIGITS = ("fresh", "tenth", "us", "kB", "trained"), (3, 3, 0, 0, 0)
"""Headings of the columns of details, and their decimals."""


def costs_of(
    tasks: Sequence[Task],
    candidates: Mapping[str, Candidate],
    settings: Sequence[TaskSetting],
    console: Console,
) -> dict[str, Detail]:
    """Return the costs of every entrant; one episode is timed, in this process."""
    costs = {
        label: Detail(training_seconds=candidate.training_seconds)
        for label, candidate in candidates.items()
    }
    gc.collect()
    gc.freeze()  # collections then need not look at what was there before
    try:
        for task, setting in zip(tasks, settings, strict=True):
            timed = setting.policies if task.name == MEASURED else ()
            for label in tracked(timed, "entrants timed", console, timed=True):
                seconds, size = _costs(task, candidates[label].factory)
                costs[label] = costs[label]._replace(
                    microseconds=1e6 * seconds, kilobytes=size / 1e3
                )
    finally:
        gc.unfreeze()
    return costs


def kept_costs(path: Path) -> dict[str, Detail]:
    """Return the details that a file of the leaderboard has, by label."""
    kept = pd.read_csv(path).set_index("policy")[list(Detail._fields)]
    return {str(label): Detail(*map(float, row)) for label, *row in kept.itertuples()}


def with_freshness(
    costs: Mapping[str, Detail], rows: Sequence[Row], labels: Sequence[str]
) -> dict[str, Detail]:
    """Return the details of the labels, with their mean freshness over the rows."""
    means = {
        metric: table(rows, metric).query("setting == @MEASURED").groupby("policy").value.mean()
        for metric in ("freshness", LEAST_SERVED)
    }
    return {
        label: costs.get(label, Detail())._replace(
            **{metric: float(values.get(label, math.nan)) for metric, values in means.items()}
        )
        for label in labels
    }


def _costs(task: Task, factory: PolicyFactory) -> tuple[float, float]:
    """Return the seconds per decision and the bytes held of an entrant."""
    short = {**task.arguments, "horizon": SHORT}
    _played(task, short, factory)
    tracemalloc.start()
    try:
        memory = _played(task, short, factory)[1]
    finally:
        tracemalloc.stop()
    return _played(task, task.arguments, factory)[0], memory


def _played(
    task: Task, arguments: Mapping[str, object], factory: PolicyFactory
) -> tuple[float, float]:
    """Return the seconds per slot of an episode, and the bytes then held by the policy."""
    env = make_env(task.id, **arguments)
    env.reset(seed=FIRST_SEED)
    policy = factory(env)
    start = time.perf_counter()
    play(env, policy, FIRST_SEED, compiled=False)
    seconds = time.perf_counter() - start
    held = 0
    if tracemalloc.is_tracing():
        gc.collect()
        together = tracemalloc.get_traced_memory()[0]
        del policy
        gc.collect()
        held = together - tracemalloc.get_traced_memory()[0]
    return seconds / env.unwrapped.num_slots(), held  # type: ignore[attr-defined]  # a CrawlEnv
