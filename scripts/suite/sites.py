"""Means over recorded sites: the freshness of each entrant in tasks that play one site each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.study.entrants import num_trainings
from scripts.study.intervals import mean
from scripts.suite.bounds import BOUND
from scripts.suite.tasks import Task

COLUMNS = ("task", "policy", "sites", "mean", "low", "high")


def site_means(
    tasks: Sequence[Task], rows: Sequence[Row], able: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Return the mean of each entrant over the sites of each task, the best first.

    Args:
        tasks: tasks with variants; the seed of a row is the place of its site.
        rows: rows of all tasks.
        able: descriptions of the entrants, by task and label; those of agents name trainings.

    Returns:
        The columns ``task``, ``policy``, ``sites`` (their number), ``mean`` of the task's metric,
        and the ends ``low`` and ``high`` of its 95% interval over sites. An agent with several
        trainings plays training k mod T on site k; its interval is over trainings.
    """
    table = pd.DataFrame(rows, columns=list(Row._fields))
    means = []
    for task in tasks:
        part = table[(table.setting == task.name) & (table.metric == task.metric)]
        entries = []
        for policy, values in part.groupby("policy", sort=False):
            count = num_trainings(able.get(task.name, {}).get(policy, {}))
            numbers = np.asarray(values.sort_values("seed").value, np.float64)[:, None]
            if policy != BOUND:
                entries.append((task.name, policy, len(values), *mean(numbers, groups=())))
        means += sorted(entries, key=lambda entry: -entry[3])
    return pd.DataFrame(means, columns=COLUMNS)


def means_of(board: pd.DataFrame) -> list[list[str]]:
    """Return a row of texts per entrant: its name, and its mean with interval in each task."""
    tasks = [*dict.fromkeys(board.task)]
    cells = board.assign(
        text=[f"{item.mean:.3f} [{item.low:.3f}, {item.high:.3f}]" for item in board.itertuples()]
    )
    wide = cells.pivot(index="policy", columns="task", values="text").reindex(columns=tasks)
    order = board.groupby("policy")["mean"].agg(["size", "mean"]).sort_values(["size", "mean"])
    wide = wide.fillna("").loc[order.index[::-1]]
    return [
        [str(policy), *texts] for policy, texts in zip(wide.index, wide.to_numpy(), strict=True)
    ]
