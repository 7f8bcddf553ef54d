"""Scores of entrants: by task, by track, and over all tasks.

The score of an entrant in a task is R = mean(x - r) / mean(b - r) over repetitions, with the metric
x of the entrant, r of random crawling and b of the bound: 0 is random crawling, 1 the bound. A
repetition has the score R + (x - r - R (b - r)) / mean(b - r). The mean of these is R, and their
spread is that of a ratio estimated from pairs (Cochran 1977, section 6.4), without the part that
is common to all entrants.

An agent with T trainings plays training k mod T in repetition k. Its intervals are over trainings
(:mod:`scripts.study.intervals`), and so are those of differences to it. Differences between agents
with T and T' trainings have gcd(T, T') independent parts.

A task across sites scores each repetition alone, from round robin to the clairvoyant. In tasks with
variants the mean over the trainings of an agent counts (:mod:`scripts.suite.sites`).

Entrants that exceed the budget (:mod:`scripts.study.budget`) or cannot act in a task score 0 there.
So do those that break the promise of a task with ``most_rounds``: in some repetition a copy gets
older than that, by more than a slot. Promises of one interval for all pages that cost the same are
proved to be kept without any delay (docs/promises.md); the slot is for policies that count in
whole slots.
Scores below -1 count as -1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crawl_envs.evaluation import BUDGET_SHARE, Row
from crawl_envs.types import FloatArray
from scripts.study.budget import OVER, is_over
from scripts.study.entrants import groups_of, num_trainings
from scripts.study.intervals import PAIRED_REPETITIONS, interquartile_lead, interquartile_mean, mean
from scripts.suite.bounds import BOUND, BUDGET, POLICY_BOUNDS, bound_label
from scripts.suite.entrants import LARGEST_AGE, LEAST_SERVED, YOURS, Entrant
from scripts.suite.sites import WAY_OUT, mean_of_trainings, site_means
from scripts.suite.tasks import MEASURED, SITES, Task

MIN_SCORE, CRAWL_RATE = -1.0, "crawl_rate"
ROUNDING = 1e-6
"""Tolerance of ages, which are whole slots, as a part of a slot."""
ACTS, ABSENT, LATE = "plays", "cannot act", "breaks the promise"
PLACE = ("score", "low", "high", "behind", "behind_low", "behind_high")
FRESHNESS = ("freshness", LEAST_SERVED)
"""Metrics of the task ``MEASURED`` in the leaderboard: the mean freshness of all pages, weighted by
importance, and of the tenth of pages that are least fresh in an episode."""


class Leaderboard(NamedTuple):
    """A suite with its results.

    Attributes:
        scores: table from :func:`scores_of`.
        standings: table of :func:`standings`, with the metrics ``FRESHNESS``, NaN if unknown, the
            costs of :func:`scripts.suite.costs.measure_costs`, scores by track, kind and paper.
        places: tables of :func:`standings`, by track.
        entrants: descriptions by label.
        yours: labels of the user's entrants: all that the command names or that are not shipped.
        of_sites: the tasks that play a recorded site per repetition.
        sites: table of :func:`scripts.suite.sites.site_means` in these.
    """

    name: str
    tasks: Sequence[Task]
    rows: Sequence[Row]
    scores: pd.DataFrame
    standings: pd.DataFrame
    places: Mapping[str, pd.DataFrame]
    entrants: Mapping[str, Entrant]
    yours: Sequence[str]
    of_sites: Sequence[Task] = ()
    sites: pd.DataFrame = pd.DataFrame()


def leaderboard_of(
    name: str,
    rows: Sequence[Row],
    able: Mapping[str, Mapping[str, Any]],
    entrants: Mapping[str, Entrant],
    costs: pd.DataFrame,
    yours: Sequence[str],
    tasks: Sequence[Task],
) -> Leaderboard:
    """Return the leaderboard of ``tasks``; ``able`` has the labels that can act, by task.

    Labels come with descriptions of their factories. An entrant that has rows and is not in
    ``entrants`` is the user's. A ValueError of :func:`check_rows` says that rows are missing or
    damaged.
    """
    of_sites = [task for task in tasks if task.variants]
    sites = site_means(of_sites, rows)
    tasks = [task for task in tasks if not task.variants] or tasks
    scores = scores_of(tasks, rows, able)
    board, places = standings(scores, [task.name for task in tasks if task.averaged] or None)
    measured = [row for row in rows if row.setting == MEASURED and row.metric in FRESHNESS]
    table = pd.DataFrame(measured, columns=list(Row._fields))
    freshness = table.pivot_table(index="policy", columns="metric", values="value")
    entrants = {label: entrants.get(label, Entrant(YOURS)) for label in board.policy}
    board = board.join(freshness.reindex(columns=FRESHNESS), on="policy").join(costs, on="policy")
    board["kind"] = [entrant.kind for entrant in entrants.values()]
    board["paper"] = [entrant.paper for entrant in entrants.values()]
    users = [label for label, entrant in entrants.items() if entrant.kind == YOURS]
    yours = list(dict.fromkeys([*yours, *users]))
    return Leaderboard(name, tasks, rows, scores, board, places, entrants, yours, of_sites, sites)


def scores_of(
    tasks: Sequence[Task], rows: Sequence[Row], able: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Return the score of each entrant in each task and seed, from the rows of all tasks.

    Returns:
        The columns task, track, policy, seed, score, plain, state (``plays``, ``over budget``,
        ``breaks the promise`` or ``cannot act``) and trainings; a row for every task, entrant and
        seed. ``plain`` is (x - mean r) / mean(b - r), which has the order of x and compares
        entrants on the same events. ``trainings`` is the number of trainings of the entrant, 0
        unless there are several.

    Raises:
        ValueError: of :func:`check_rows`.
    """
    names = {task.name for task in tasks}
    rows = [row for row in rows if row.setting in names]
    if any(task.variants for task in tasks):
        rows = mean_of_trainings(tasks, rows)
    check_rows(tasks, rows, able)
    table = pd.DataFrame(rows, columns=list(Row._fields)).drop(columns="id")
    wide = table.pivot_table(index=["setting", "policy", "seed"], columns="metric", values="value")
    labels = [name for name in dict.fromkeys(table.policy) if name not in (BOUND, *POLICY_BOUNDS)]
    parts = [_score_task(task, wide, labels, able.get(task.name, {})) for task in tasks]
    return pd.concat(parts, ignore_index=True)


def trainings_of(scores: pd.DataFrame) -> dict[str, int]:
    """Return the number of trainings of each entrant whose repetitions depend on them; else 0."""
    return {str(name): math.gcd(*part) for name, part in scores.groupby("policy").trainings}


def training_means(values: pd.DataFrame, trainings: Mapping[str, int]) -> pd.DataFrame:
    """Return a table with means over the seeds of each training, of ``score`` or ``value``."""
    count = values.policy.map(trainings).fillna(0).astype(int)
    seed = values.seed.where(count == 0, values.seed % count.clip(lower=1))
    keys = [name for name in values.columns if name not in ("score", "plain", "value")]
    return values.assign(seed=seed).groupby(keys, sort=False).mean().reset_index()


def check_rows(
    tasks: Sequence[Task], rows: Sequence[Row], able: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise ValueError unless the rows suffice for scores.

    Each task needs rows of its bound, of random crawling, of all entrants with any rows in it, and
    of all labels that are ``able`` to act in it: finite numbers for every seed that any task has.

    Raises:
        ValueError: rows are missing or damaged.
    """
    values = {row[1:5]: row.value for row in rows}  # by setting, policy, seed and metric
    units = {key[:3] for key in values}
    seeds = sorted({seed for *_, seed in units}) or [0]
    for task in tasks:
        acting = {label for name, label, _ in units if name == task.name}
        acting = (acting | {*able.get(task.name, ())}) - {BOUND, *POLICY_BOUNDS}
        promised = task.most_rounds is not None
        measured = (task.metric, spending_of(task), *(LARGEST_AGE,) * promised)
        needed = [
            (BOUND, BUDGET),
            (bound_label(task), task.metric),
            *product(sorted({task.random, *acting}), measured),
        ]
        for (label, metric), seed in product(needed, seeds):
            where = f"task {task.name}, {label}, seed {seed}"
            if (task.name, label, seed) not in units:
                raise ValueError(f"{where} must have rows, got none; {WAY_OUT}")
            value = values.get((task.name, label, seed, metric), math.nan)
            if not math.isfinite(value):
                message = f"{where}: {metric} must be a finite number in the rows, got {value}"
                raise ValueError(f"{message}; start over with --fresh")


def _score_task(
    task: Task, wide: pd.DataFrame, labels: Sequence[str], able: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the scores of the labels in one task, a row per label and seed."""
    values = wide.loc[task.name]
    budget = values.loc[BOUND, BUDGET]
    bound = values.loc[bound_label(task), task.metric]
    random = values.loc[task.random, task.metric]
    span = bound - random
    parts = []
    for label in labels:
        part = pd.DataFrame({"seed": budget.index, "score": 0.0, "plain": 0.0, "state": ABSENT})
        part["trainings"] = 0 if task.variants else num_trainings(able.get(label, {}))
        if label in values.index:
            metrics = values.loc[label].reindex(budget.index)
            part["state"] = ACTS
            spent = metrics[spending_of(task)]
            if is_over(spent / budget if spending_of(task) == CRAWL_RATE else spent):
                part["state"] = OVER
            elif is_late(task, metrics):
                part["state"] = LATE
            else:
                plain, score = _plain_and_score(task, metrics[task.metric], random, span)
                part["score"] = np.maximum(score.to_numpy(), MIN_SCORE)
                part["plain"] = plain.to_numpy()
        parts.append(part.assign(task=task.name, track=task.track, policy=label))
    return pd.concat(parts, ignore_index=True)


def _plain_and_score(
    task: Task, values: pd.Series, random: pd.Series, span: pd.Series
) -> tuple[pd.Series, pd.Series]:
    """Return the plain scores and the scores of the values of an entrant, by repetition.

    In a task across sites each repetition has a site, a window and a budget of its own, and is
    scored alone as recorded sites are: cut to [-1, 1], and 0 where nothing can be gained.
    """
    if task.id == SITES:
        score = ((values - random) / span).where(span > 0.0, 0.0).clip(-1.0, 1.0)
        return score, score
    plain = (values - random.mean()) / span.mean()
    expected = random - random.mean() + plain.mean() * (span - span.mean())
    return plain, plain - expected / span.mean()


def spending_of(task: Task) -> str:
    """Return the metric of what an entrant spends: crawls, or with costs the budget's share."""
    return BUDGET_SHARE if "cost_spread" in task.arguments else CRAWL_RATE


def is_late(task: Task, metrics: pd.DataFrame) -> bool:
    """Return whether a copy gets older than a task allows, by more than a slot."""
    if task.most_rounds is None:
        return False
    slot = (1.0 + ROUNDING) / task.arguments["num_pages"]
    return bool(metrics[LARGEST_AGE].max() > task.most_rounds + slot)


def matrix(scores: pd.DataFrame, policy: str, column: str = "score") -> FloatArray:
    """Return an entrant's scores, or values of another column, as an array (seeds, tasks)."""
    rows = scores[scores.policy == policy]
    return np.asarray(rows.pivot(index="seed", columns="task", values=column), np.float64)


def standings(
    scores: pd.DataFrame, averaged: Sequence[str] | None = None
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Return the standings of all entrants over the tasks ``averaged``, or all, and by track.

    Entrants that act in all these tasks come first, by score, then the others by their number of
    tasks. Tracks have all their tasks.

    Returns:
        A row per entrant: ``rank``, None for entrants that do not act in all tasks; ``policy``;
        ``score``, the interquartile mean of its scores over repetitions of all tasks, with the ends
        ``low`` and ``high`` of its 95% interval over repetitions of the same tasks; ``gap``, the
        optimality gap: the mean of max(0, 1 - score); ``acting``, the interquartile mean of its
        scores in the tasks in which it acts, NaN if in none; ``tasks``, the number of these; the
        mean score by track; ``tied``, whether the 95% interval of the paired difference to the
        leader contains 0, False with a single seed. Also the tables of :func:`track_places` by
        track, the best first.
    """
    from scipy.stats import trim_mean  # slow to import

    places = {str(track): track_places(part) for track, part in scores.groupby("track", sort=False)}
    scores = scores if averaged is None else scores[scores.task.isin(averaged)]
    values = {str(policy): matrix(scores, policy) for policy in scores.policy.unique()}
    trainings = trainings_of(scores)
    acting_rows = scores[scores.state == ACTS]
    acting = {policy: trim_mean(part.score, 0.25) for policy, part in acting_rows.groupby("policy")}
    board = pd.DataFrame(
        [
            (policy, *interquartile_mean(points, _groups(points, trainings[policy])))
            for policy, points in values.items()
        ],
        columns=["policy", "score", "low", "high"],
    )
    board["gap"] = [np.maximum(1.0 - points, 0.0).mean() for points in values.values()]
    board["acting"] = board.policy.map(acting)
    counts = acting_rows.groupby("policy").task.nunique()
    board["tasks"] = counts.reindex(board.policy, fill_value=0).to_numpy()
    for track, part in places.items():
        board[track] = part.score.reindex(board.policy).to_numpy()
    ranked = board.tasks == scores.task.nunique()
    order = board.assign(order=board.score.where(ranked, board.acting))
    order = order.sort_values(["tasks", "order"], ascending=False, kind="stable")
    board = board.loc[order.index].reset_index(drop=True)
    ranks = [place if place <= ranked.sum() else None for place in range(1, len(board) + 1)]
    board.insert(0, "rank", pd.Series(ranks, dtype=object))
    first, of_first = values[board.policy[0]], trainings[board.policy[0]]
    leads = [
        interquartile_lead(first, values[policy], _groups(first, of_first, trainings[policy]))
        for policy in board.policy
    ]
    board["tied"] = [len(first) > 1 and not lead.low > 0.0 for lead in leads]
    for track, part in places.items():
        part = part.reindex(board.policy).rename_axis("policy").reset_index()
        part = part[part.tasks > 0].sort_values("score", ascending=False, kind="stable")
        places[track] = part.reset_index(drop=True)
    return board, places


def _groups(points: FloatArray, *trainings: int) -> tuple[int, ...]:
    """Return the group of each seed in scores (seeds, tasks) of entrants with these trainings."""
    return groups_of(range(len(points)), math.gcd(*trainings))


def track_places(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a table of the entrants' mean scores in one track, indexed by policy.

    Returns:
        ``score``, the mean of its scores over tasks and repetitions, with the ends ``low`` and
        ``high`` of its 95% interval; ``behind``, the score of the leader minus that of the entrant
        over the same repetitions, with ``behind_low`` and ``behind_high``; ``tied``, whether this
        interval contains 0, False with a single seed; ``tasks``, the number of tasks in which it
        acts.
    """
    values = {policy: matrix(scores, policy) for policy in scores.policy.unique()}
    tasks = scores[scores.state == ACTS].groupby("policy").task.nunique()
    leader = max(tasks.index, key=lambda policy: values[policy].mean())
    trainings, places = trainings_of(scores), []
    for policy, points in values.items():
        both = _groups(points, trainings[leader], trainings[policy])
        behind = mean(values[leader] - points, PAIRED_REPETITIONS, both)
        places.append((*mean(points, groups=_groups(points, trainings[policy])), *behind))
    table = pd.DataFrame(places, index=[*values], columns=PLACE)
    tasks = tasks.reindex(table.index, fill_value=0)
    tied = ~(table.behind_low > 0.0) & (scores.seed.nunique() > 1)
    return table.assign(tied=tied, tasks=tasks)
