"""Means over recorded sites of each entrant in tasks that play one site each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crawl_envs.evaluation import Row
from scripts.study.entrants import groups_of, num_trainings
from scripts.study.intervals import mean
from scripts.suite.bounds import BOUND, POLICY_BOUNDS, bound_label
from scripts.suite.tasks import Task

ZERO = "RoundRobin"
"""The policy that scores 0 on a site; the bound of the task scores 1."""
COLUMNS = ("task", "policy", "sites", "score", "low", "high", "mean")


def site_scores(task: Task, rows: Sequence[Row]) -> pd.DataFrame:
    """Return the scores of entrants in a task with variants, (sites, entrants), cut to [-1, 1].

    On a site an entrant scores (x - r) / (c - r) with the metric x of the entrant, r of round robin
    and c of the bound. Sites on which nothing can be gained are left out.
    """
    values = _values(task, rows)
    span = values[bound_label(task)] - values[ZERO]
    scores = values.sub(values[ZERO], axis=0).div(span, axis=0)[span > 0.0].clip(-1.0, 1.0)
    return scores.drop(columns=[BOUND, *POLICY_BOUNDS], errors="ignore")


def _values(task: Task, rows: Sequence[Row]) -> pd.DataFrame:
    """Return the metric of a task, (sites, entrants)."""
    mine = [row for row in rows if (row.setting, row.metric) == (task.name, task.metric)]
    table = pd.DataFrame(mine, columns=list(Row._fields))
    return table.pivot(index="seed", columns="policy", values="value")


def site_means(
    tasks: Sequence[Task], rows: Sequence[Row], able: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Return means of each entrant over the sites of each task with variants, the best score first.

    The seed of a row is the place of its site. ``able`` has the descriptions of the entrants, by
    task and label. The table has ``COLUMNS``: ``sites`` is their number, ``low`` and ``high`` are
    the ends of the 95% interval of the score, over sites or over trainings, and ``mean`` is the
    mean of the task's metric.
    """
    means = []
    for task in tasks:
        levels, entries = _values(task, rows).mean(), []
        for policy, scores in site_scores(task, rows).items():
            trainings = num_trainings(able.get(task.name, {}).get(policy, {}))
            interval = mean(scores.to_numpy()[:, None], groups=groups_of(scores.index, trainings))
            entries.append((task.name, policy, len(scores), *interval, levels[policy]))
        means += sorted(entries, key=lambda entry: -entry[3])
    return pd.DataFrame(means, columns=COLUMNS)


def means_of(board: pd.DataFrame) -> list[list[str]]:
    """Return a row of texts per entrant: its name; for each task score, interval, and freshness."""
    tasks = [*dict.fromkeys(board.task)]
    form = "{0.score:.3f} [{0.low:.3f}, {0.high:.3f}] ({0.mean:.3f})"
    cells = board.assign(text=[form.format(item) for item in board.itertuples()])
    wide = cells.pivot(index="policy", columns="task", values="text").reindex(columns=tasks)
    order = board.groupby("policy")["score"].agg(["size", "mean"]).sort_values(["size", "mean"])
    wide = wide.fillna("").loc[order.index[::-1]]
    return [[str(policy), *texts] for policy, *texts in wide.itertuples()]
