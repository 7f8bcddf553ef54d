"""The picture of both costs by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from crawl_envs.evaluation import Row
from scripts.experiments.lambdacrawl.setup.costs import COST_NAMES, J_H, PER_URL
from scripts.present import charts
from scripts.study.means import means, table


def cost_bars(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    settings: Sequence[str],
    labels: Sequence[str],
    infinite: Sequence[str] = (),
    alone: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw both costs per page of every policy, in the paper's unit; lower is better.

    Args:
        rows: with the metrics in :data:`scripts.experiments.lambdacrawl.setup.costs.PER_URL`.
        path: the picture.
        title: what is drawn.
        settings: names; the first with rows is drawn.
        labels: the policies, from top to bottom.
        infinite: labels whose harmonic cost is infinite.
        alone: the only cost of a label for which the other is not drawn.
    """
    played = {row.setting for row in rows}
    setting = next(name for name in settings if name in played)
    values = table([row for row in rows if row.setting == setting], *PER_URL.values())
    data = means(values, ("policy", "metric")).set_index(["policy", "metric"])
    every = pd.MultiIndex.from_product([labels, PER_URL.values()], names=["y", "metric"])
    data = data.rename(columns={"mean": "x"}).reindex(every).reset_index()
    metric = data.metric.map({name: metric for metric, name in PER_URL.items()})
    data = data.assign(text=data.x.map("{:,.0f}".format), panel=metric.map(COST_NAMES))
    endless = data.y.isin(list(infinite)) & (metric == J_H)
    other = data.y.map(alone).fillna(metric) != metric
    data.loc[endless, ["x", "text"]] = 0.0, "infinite (starves pages)"
    data.loc[other, ["x", "text"]] = 0.0, "(of the other cost)"
    unit = {name: charts.Axis("per page, in the paper's unit") for name in COST_NAMES.values()}
    charts.bars(
        data.sort_values("panel", ascending=False),
        path,
        charts.Frame(
            f"{title}\n{setting}, {values.seed.nunique()} draws; bars: 95% intervals; "
            "lower is better",
            unit,
            shared="y",
        ),
        names=labels,
    )
