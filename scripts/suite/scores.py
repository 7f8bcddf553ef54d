"""Scores of entrants: by task, by track, and over all tasks.

The score of an entrant in a task is R = mean(x - r) / mean(b - r) over repetitions, with the metric
x of the entrant, r of random crawling and b of the bound: 0 is random crawling, 1 the bound. That
of a repetition is R + (x - r - R (b - r)) / mean(b - r). Their mean is R, and their spread that of
the estimate of a ratio from pairs (Cochran 1977, section 6.4): repetitions whose pages are easy or
hard for all entrants do not add to it.

Entrants whose crawls exceed the budget, and those that cannot act in a task, score 0 there. Scores
below -1 count as -1. :mod:`scripts.study.budget` says who exceeds the budget.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.study.budget import OVER, is_over
from scripts.study.intervals import (
    MANY,
    Interval,
    interquartile_lead,
    interquartile_mean,
    mean,
)
from scripts.suite.entrants import BOUND, BUDGET, PLAYED
from scripts.suite.tasks import Task

LEAST = -1.0
PLAY = (
    "the command without --score plays what is missing, with --policies or --agents for entrants "
    "of your own; with --fresh it starts anew"
)
PLAYS, ABSENT = "plays", "cannot act"


class Place(NamedTuple):
    """What an entrant reaches in a track.

    Attributes:
        score: mean of its scores over the tasks and repetitions, with its 95% interval.
        behind: score of the first of the track minus its own, over the same repetitions.
        tasks: number of tasks of the track in which it can act within the budget.
    """

    score: Interval
    behind: Interval
    tasks: int

    @property
    def tied(self) -> bool:
        """Whether the interval of the difference to the first contains 0."""
        return not self.behind.low > 0.0


class Standing(NamedTuple):
    """A row of the leaderboard.

    Attributes:
        policy: label of the entrant.
        score: interquartile mean of its scores over repetitions of all tasks.
        low: lower end of its 95% interval, over repetitions of the same tasks.
        high: upper end.
        gap: optimality gap, the mean of 1 - score, or 0 where the score is above 1.
        acting: interquartile mean of its scores in the tasks in which it acts, NaN if in none.
        tracks: what it reaches by track.
        tasks: number of tasks in which it can act within the budget.
        rank: place among those that act in all tasks, None for others.
        tied: whether the interval of the paired difference to the first contains 0.
    """

    policy: str
    score: float
    low: float
    high: float
    gap: float
    acting: float
    tracks: Mapping[str, Place]
    tasks: int
    rank: int | None
    tied: bool


def scores_of(
    tasks: Sequence[Task], rows: Sequence[Row], able: Mapping[str, Collection[str]]
) -> pd.DataFrame:
    """Return the scores of all entrants in all tasks; who is ``able`` to act in one has rows there.

    Returns:
        The columns task, track, policy, seed, score, plain and state (``plays``, ``over budget`` or
        ``cannot act``); a row for every task, entrant and seed. ``plain`` is (x - mean r) /
        mean(b - r), which has the order of x and compares entrants on the same events.

    Raises:
        ValueError: of :func:`check_rows`.
    """
    check_rows(tasks, rows, able)
    table = pd.DataFrame(rows, columns=list(Row._fields)).drop(columns="id")
    wide = table.pivot_table(index=["setting", "policy", "seed"], columns="metric", values="value")
    labels = [label for label in dict.fromkeys(table.policy) if label not in (BOUND, *PLAYED)]
    parts = [_of_task(task, wide, labels) for task in tasks]
    return pd.concat(parts, ignore_index=True)


def check_rows(
    tasks: Sequence[Task], rows: Sequence[Row], able: Mapping[str, Collection[str]]
) -> None:
    """Check that scores can be made of rows.

    A task needs its bound and random crawling; they, each entrant with rows there and those that
    are ``able`` to act there, by its name, need finite numbers of every seed that any task has.

    Raises:
        ValueError: rows are missing or damaged.
    """
    values = {row[1:5]: row.value for row in rows}  # by setting, policy, seed and metric
    played = {key[:3] for key in values}
    seeds = sorted({seed for *_, seed in played}) or [0]
    for task in tasks:
        acting = {label for name, label, _ in played if name == task.name}
        acting = (acting | {*able.get(task.name, ())}) - {BOUND, *PLAYED}
        needed = [
            (BOUND, BUDGET),
            (task.bound if task.bound in PLAYED else BOUND, task.metric),
            *product(sorted({task.random, *acting}), (task.metric, "crawl_rate")),
        ]
        for (label, metric), seed in product(needed, seeds):
            where = f"task {task.name}, {label}, seed {seed}"
            if (task.name, label, seed) not in played:
                raise ValueError(f"{where}: no rows; {PLAY}")
            value = values.get((task.name, label, seed, metric), math.nan)
            if not math.isfinite(value):
                said = f"{where}: {metric} must be a finite number in the rows, got {value}"
                raise ValueError(f"{said}; start anew with --fresh")


def _of_task(task: Task, wide: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    values = wide.loc[task.name]
    budget = values.loc[BOUND, BUDGET]
    bound = values.loc[task.bound if task.bound in PLAYED else BOUND, task.metric]
    random = values.loc[task.random, task.metric]
    parts = []
    for label in labels:
        part = pd.DataFrame({"seed": budget.index, "score": 0.0, "plain": 0.0, "state": ABSENT})
        if label in values.index:
            mine = values.loc[label].reindex(budget.index)
            part["state"] = PLAYS
            if is_over(mine["crawl_rate"] / budget):
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
    """Return the entrants: those that act in all tasks, best first, then others by their tasks."""
    from scipy.stats import trim_mean  # slow to import

    tracks = _places(scores)
    drawn = {policy: matrix(scores, policy) for policy in tracks}
    middle = {policy: interquartile_mean(values) for policy, values in drawn.items()}
    acts = {policy: part.score for policy, part in _acting(scores).groupby("policy")}
    acting = {policy: float(trim_mean(acts.get(policy, [math.nan]), 0.25)) for policy in tracks}
    tasks = {policy: sum(place.tasks for place in tracks[policy].values()) for policy in tracks}
    everywhere = {policy for policy in tracks if tasks[policy] == scores.task.nunique()}

    def order(policy: str) -> tuple[float, float]:
        return -tasks[policy], -(
            middle[policy].estimate if policy in everywhere else acting[policy]
        )

    ranked = sorted(tracks, key=order)
    return [
        Standing(
            policy,
            *middle[policy],
            gap=float(np.maximum(1.0 - drawn[policy], 0.0).mean()),
            acting=acting[policy],
            tracks=tracks[policy],
            tasks=tasks[policy],
            rank=place if policy in everywhere else None,
            tied=not interquartile_lead(drawn[ranked[0]], drawn[policy]).low > 0.0,
        )
        for place, policy in enumerate(ranked, 1)
    ]


def _acting(scores: pd.DataFrame) -> pd.DataFrame:
    return scores[scores.state == PLAYS]


def _places(scores: pd.DataFrame) -> dict[str, dict[str, Place]]:
    """Return what every entrant reaches in every track."""
    places: dict[str, dict[str, Place]] = {str(policy): {} for policy in scores.policy.unique()}
    for track, part in scores.groupby("track", sort=False):
        drawn = {policy: matrix(part, policy) for policy in places}
        acts = _acting(part).groupby("policy").task.nunique()
        first = drawn[max(acts.index, key=lambda policy: drawn[policy].mean())]
        for policy, values in drawn.items():
            place = Place(mean(values), mean(first - values, MANY), int(acts.get(policy, 0)))
            places[policy][str(track)] = place
    return places


def by_track(ranked: Sequence[Standing]) -> dict[str, list[Standing]]:
    """Return the entrants that act in any task of a track, best first, by track."""
    return {
        track: sorted(
            (item for item in ranked if item.tracks[track].tasks),
            key=lambda item: -item.tracks[track].score.estimate,
        )
        for track in ranked[0].tracks
    }
