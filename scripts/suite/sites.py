"""Means over recorded sites of each entrant in tasks that play one site each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.study.entrants import groups_of, num_trainings
from scripts.study.intervals import mean
from scripts.suite.bounds import BOUND, POLICY_BOUNDS, bound_label
from scripts.suite.tasks import Task

ZERO = "RoundRobin"
"""The policy that scores 0 on a site; the bound of the task scores 1."""
COLUMNS = ("task", "policy", "sites", "score", "low", "high", "mean")


def site_means(
    tasks: Sequence[Task], rows: Sequence[Row], able: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Return means of each entrant over the sites of each task, the best score first.

    On a site an entrant scores (x - r) / (c - r) with the metric x of the entrant, r of round robin
    and c of the bound, cut to [-1, 1], as c - r is small on sites that hardly change.

    Args:
        tasks: tasks with variants; the seed of a row is the place of its site.
        rows: rows of all tasks.
        able: descriptions of the entrants, by task and label; those of agents name trainings.

    Returns:
        The columns ``task``, ``policy``, ``sites`` (their number), ``score``, the ends ``low`` and
        ``high`` of its 95% interval over sites, and ``mean``, the mean of the task's metric. An
        agent with several trainings plays training k mod T on site k, and its interval is over
        trainings.
    """
    table = pd.DataFrame(rows, columns=list(Row._fields))
    means = []
    for task in tasks:
        part = table[(table.setting == task.name) & (table.metric == task.metric)]
        values = part.pivot(index="seed", columns="policy", values="value")
        zero, span = values[ZERO], values[bound_label(task)] - values[ZERO]
        entries = []
        for policy in values.columns.difference([BOUND, *POLICY_BOUNDS], sort=False):
            scores = ((values[policy] - zero) / span.where(span > 0.0)).clip(-1.0, 1.0).dropna()
            trainings = num_trainings(able.get(task.name, {}).get(policy, {}))
            groups = groups_of(scores.index, trainings)
            interval = mean(np.asarray(scores, np.float64)[:, None], groups=groups)
            entries.append((task.name, policy, len(scores), *interval, values[policy].mean()))
        means += sorted(entries, key=lambda entry: -entry[3])
    return pd.DataFrame(means, columns=COLUMNS)


def means_of(board: pd.DataFrame) -> list[list[str]]:
    """Return a row of texts per entrant: its name; for each task score, interval, and freshness."""
    tasks = [*dict.fromkeys(board.task)]
    cells = board.assign(
        text=[
            f"{item.score:.3f} [{item.low:.3f}, {item.high:.3f}] ({item.mean:.3f})"
            for item in board.itertuples()
        ]
    )
    wide = cells.pivot(index="policy", columns="task", values="text").reindex(columns=tasks)
    order = board.groupby("policy")["score"].agg(["size", "mean"]).sort_values(["size", "mean"])
    wide = wide.fillna("").loc[order.index[::-1]]
    return [
        [str(policy), *texts] for policy, texts in zip(wide.index, wide.to_numpy(), strict=True)
    ]
