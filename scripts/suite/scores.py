"""Scores of entrants: by task, by track, and over all tasks.

The score of an entrant in a task is R = mean(x - r) / mean(b - r) over repetitions, with the metric
x of the entrant, r of random crawling and b of the bound: 0 is random crawling, 1 the bound. That
of a repetition is R + (x - r - R (b - r)) / mean(b - r). Their mean is R, and their spread that of
the estimate of a ratio from pairs (Cochran 1977, section 6.4): repetitions whose pages are easy or
hard for all entrants do not add to it.

Entrants whose crawls exceed the budget, and those that cannot act in a task, score 0 there. Scores
below -1 count as -1. A crawl rate counts as excess if it is more than 1% and three standard errors
above the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import trim_mean

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.reporting.intervals import interquartile_mean
from scripts.suite.entrants import BOUND, BUDGET, PLAYED
from scripts.suite.tasks import Task

LEAST = -1.0
EXCESS, ERRORS = 0.01, 3.0
"""Share of the budget, and standard errors of the crawl rate, that are not counted as excess."""
PLAYS, OVER, ABSENT = "plays", "over budget", "cannot act"


class Standing(NamedTuple):
    """A row of the leaderboard.

    Attributes:
        policy: label of the entrant.
        score: interquartile mean of its scores over repetitions of all tasks.
        low: lower end of its 95% interval, over repetitions of the same tasks.
        high: upper end.
        gap: optimality gap, the mean of 1 - score, or 0 where the score is above 1.
        below: share of tasks and seeds in which the first of the leaderboard is better on the same
            events, by plain scores; ties count half.
        acting: interquartile mean of its scores in the tasks in which it acts, NaN if in none.
        tracks: mean score by track.
        tasks: number of tasks in which it can act within the budget.
    """

    policy: str
    score: float
    low: float
    high: float
    gap: float
    below: float
    acting: float
    tracks: Mapping[str, float]
    tasks: int


def scores_of(tasks: Sequence[Task], rows: Sequence[Row]) -> pd.DataFrame:
    """Return the scores of all entrants in all tasks.

    Returns:
        The columns task, track, policy, seed, score, plain and state (``plays``, ``over budget`` or
        ``cannot act``); a row for every task, entrant and seed. ``plain`` is (x - mean r) /
        mean(b - r), which has the order of x and compares entrants on the same events.

    Raises:
        ValueError: a task without rows of its bound or of random crawling.
    """
    table = pd.DataFrame(rows, columns=list(Row._fields)).drop(columns="id")
    wide = table.pivot_table(index=["setting", "policy", "seed"], columns="metric", values="value")
    labels = [label for label in dict.fromkeys(table.policy) if label not in (BOUND, *PLAYED)]
    parts = [_of_task(task, wide, labels) for task in tasks]
    return pd.concat(parts, ignore_index=True)


def _of_task(task: Task, wide: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    if task.name not in wide.index:
        raise ValueError(f"task {task.name} has no rows")
    values = wide.loc[task.name]
    budget = values.loc[BOUND, BUDGET]
    bound = values.loc[task.bound if task.bound in PLAYED else BOUND, task.metric]
    random = values.loc[task.random, task.metric]
    parts = []
    for label in labels:
        part = pd.DataFrame({"seed": budget.index, "score": 0.0, "plain": 0.0, "state": ABSENT})
        if label in values.index:
            mine = values.loc[label].reindex(budget.index)
            excess = mine["crawl_rate"] / budget - 1.0
            part["state"] = PLAYS
            if excess.mean() > EXCESS + ERRORS * np.nan_to_num(excess.sem()):
                part["state"] = OVER
            else:
                part["score"], part["plain"] = _scores(mine[task.metric], random, bound)
        parts.append(part.assign(task=task.name, track=task.track, policy=label))
    return pd.concat(parts, ignore_index=True)


def _scores(
    mine: pd.Series[float], random: pd.Series[float], bound: pd.Series[float]
) -> tuple[FloatArray, FloatArray]:
    """Return the scores of repetitions, and the plain ones."""
    span = bound - random
    plain = (mine - random.mean()) / span.mean()
    expected = random - random.mean() + plain.mean() * (span - span.mean())
    score = plain - expected / span.mean()
    return np.maximum(score.to_numpy(), LEAST), plain.to_numpy()


def matrix(scores: pd.DataFrame, policy: str, column: str = "score") -> FloatArray:
    """Return the scores of an entrant, or another column, (seeds, tasks)."""
    mine = scores[scores.policy == policy]
    return np.asarray(mine.pivot(index="seed", columns="task", values=column), np.float64)


def standings(scores: pd.DataFrame) -> list[Standing]:
    """Return the entrants, best first."""
    drawn = {str(policy): matrix(scores, str(policy)) for policy in scores.policy.unique()}
    middle = {policy: interquartile_mean(values) for policy, values in drawn.items()}
    ranked = sorted(drawn, key=lambda policy: -middle[policy].estimate)
    first = matrix(scores, ranked[0], "plain")
    found = []
    for policy in ranked:
        mine, values = scores[scores.policy == policy], drawn[policy]
        tracks = mine.groupby("track", sort=False).score.mean()
        below = np.heaviside(first - matrix(scores, policy, "plain"), 0.5)
        acts = mine[mine.state == PLAYS]
        found.append(
            Standing(
                policy,
                *middle[policy],
                gap=float(np.maximum(1.0 - values, 0.0).mean()),
                below=float(below.mean()),
                acting=_middle_half(acts.score),
                tracks={str(name): float(value) for name, value in tracks.items()},
                tasks=acts.task.nunique(),
            )
        )
    return found


def _middle_half(values: pd.Series[float]) -> float:
    """Return the mean of the middle half of values, NaN without any."""
    return float(trim_mean(values, 0.25)) if len(values) else math.nan
