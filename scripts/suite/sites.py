"""Means over recorded sites of each entrant in tasks that play one site each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.study.intervals import Interval, crossed_mean
from scripts.suite.bounds import BOUND, POLICY_BOUNDS, bound_label
from scripts.suite.tasks import Task

ZERO = "RoundRobin"
"""The policy that scores 0 on a site; the bound of the task scores 1."""
WAY_OUT = (
    "the command without --score simulates missing rows, with --policies, --agents or --train "
    "those of your entrants; with --fresh it starts over"
)
COLUMNS = ("task", "policy", "sites", "score", "low", "high", "mean")


def site_scores(task: Task, rows: Sequence[Row]) -> pd.DataFrame:
    """Return scores in a task with variants, (sites and trainings, entrants), cut to [-1, 1].

    On a site an entrant scores (x - r) / (c - r) with the metric x of the entrant, r of round robin
    and c of the bound. Sites on which nothing can be gained are left out. The scores of policies
    are repeated for each training; those of trainings that an agent lacks are NaN.
    """
    values = _values(task, rows)
    first = values.xs(0, level="training").reindex(values.index, level="site")
    once = [label for label in values if values[label].count() <= len(values.xs(0))]
    values[once] = first[once]
    span = values[bound_label(task)] - values[ZERO]
    scores = values.sub(values[ZERO], axis=0).div(span, axis=0)[span > 0.0].clip(-1.0, 1.0)
    return scores.drop(columns=[BOUND, *POLICY_BOUNDS], errors="ignore")


def over_sites(scores: pd.Series) -> Interval:
    """Return the mean of scores or differences by site and training, and its interval over both."""
    return crossed_mean(scores.dropna().unstack("training"))


def _values(task: Task, rows: Sequence[Row]) -> pd.DataFrame:
    """Return the metric of a task, (trainings and sites, entrants); ValueError for missing rows."""
    mine = [row for row in rows if (row.setting, row.metric) == (task.name, task.metric)]
    table = pd.DataFrame(mine, columns=list(Row._fields))
    table["training"], table["site"] = np.divmod(table.seed, len(task.variants))
    values = table.pivot(index=["training", "site"], columns="policy", values="value")
    values = values.reindex(columns=values.columns.union([ZERO, bound_label(task)]))
    for label, counts in values.groupby(level="training").count().items():
        if counts.get(0, 0) == 0 or not counts.isin((0, len(task.variants))).all():
            raise ValueError(
                f"task {task.name}, {label}: all {len(task.variants)} sites must have rows in each "
                f"training, got {counts.tolist()}; {WAY_OUT}"
            )
    return values


def site_means(tasks: Sequence[Task], rows: Sequence[Row]) -> pd.DataFrame:
    """Return means of each entrant over the sites of each task with variants, the best score first.

    :class:`scripts.suite.entrants.TaskSetting` numbers the seeds of rows. The table has
    ``COLUMNS``: ``sites`` is their number, ``low`` and ``high`` are the ends of the 95% interval of
    the score over sites and trainings, and ``mean`` is the mean of the task's metric. All trainings
    of an agent play all sites.
    """
    means = []
    for task in tasks:
        levels, entries = _values(task, rows).mean(), []
        for policy, scores in site_scores(task, rows).items():
            count = scores.index.get_level_values("site").nunique()
            entries.append((task.name, policy, count, *over_sites(scores), levels[policy]))
        means += sorted(entries, key=lambda entry: -entry[3])
    return pd.DataFrame(means, columns=COLUMNS)


def mean_of_trainings(tasks: Sequence[Task], rows: Sequence[Row]) -> list[Row]:
    """Return rows in which a site of a task with variants has the mean over all trainings."""
    count = {task.name: len(task.variants) for task in tasks if task.variants}
    table = pd.DataFrame(rows, columns=list(Row._fields))
    table["seed"] %= table.setting.map(count).fillna(len(rows) + 1).astype(int)
    keys = [name for name in Row._fields if name != "value"]
    means = table.groupby(keys, sort=False, as_index=False).value.mean()
    return [Row(*row) for row in means[list(Row._fields)].itertuples(index=False)]


def means_of(board: pd.DataFrame) -> list[list[str]]:
    """Return a row of texts per entrant: its name; for each task score, interval, and freshness."""
    tasks = [*dict.fromkeys(board.task)]
    form = "{0.score:.3f} [{0.low:.3f}, {0.high:.3f}] ({0.mean:.3f})"
    cells = board.assign(text=[form.format(item) for item in board.itertuples()])
    wide = cells.pivot(index="policy", columns="task", values="text").reindex(columns=tasks)
    order = board.groupby("policy")["score"].agg(["size", "mean"]).sort_values(["size", "mean"])
    wide = wide.fillna("").loc[order.index[::-1]]
    return [[str(policy), *texts] for policy, *texts in wide.itertuples()]
