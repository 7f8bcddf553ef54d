"""Pictures of freshness against the budget of crawls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from crawl_envs.evaluation import Row
from scripts.experiments.offers.setup.paper import BUDGETS, Table
from scripts.experiments.offers.setup.tables import OWN_CRAWLS
from scripts.present import charts
from scripts.study.means import medians, table

MEASURES = {
    "click_freshness": "click-weighted freshness",
    "offer_freshness": "offer-level freshness",
    "click_gain": "click-weighted freshness",
    "offer_gain": "offer-level freshness",
}
LOG_TICKS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.9)
PAPER = {"marker": "*", "linestyle": "none", "fillstyle": "none", "markersize": 7.0}
"""Look of the paper's values; labels with an underscore are not in the legend."""


def budget_of(name: str) -> float:
    """Return the budget in the name of a setting."""
    return round(float(name.removesuffix("%")) / 100.0, 8)


def _by_budget(rows: Sequence[Row], *metrics: str) -> pd.DataFrame:
    """Return medians over runs with their intervals, by budget, policy and metric."""
    data = medians(table(rows, *metrics), ("setting", "policy", "metric"))
    names = {"policy": "label", "median": "y"}
    return data.assign(x=data.setting.map(budget_of)).rename(columns=names)


def freshness_by_budget(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metric: str,
    panels: Mapping[str, Sequence[str]],
    paper: Table,
) -> None:
    """Draw a panel per group of labels; stars are the paper's numbers."""
    meant = {own[0]: label for label, own in OWN_CRAWLS.items()}
    measured, parts, own = _by_budget(rows, metric), [], {}
    for name, labels in panels.items():
        parts.append(measured[measured.label.isin(list(labels))].assign(panel=name))
        for place, label in enumerate(labels):
            numbers = paper.get(label, paper.get(meant.get(label, "")))
            if numbers is not None:
                hidden = f"_{label}"
                own[hidden] = PAPER | {"color": charts.style(place)["color"]}
                told = {"x": BUDGETS, "y": numbers, "label": hidden, "panel": name}
                parts.append(pd.DataFrame(told).assign(low=numbers, high=numbers))
    order = [label for labels in panels.values() for label in labels]
    charts.lines(
        pd.concat(parts),
        path,
        charts.Frame(
            f"{title}\nmedian over {len({row.seed for row in rows})} runs with its 95% interval; "
            "stars: the paper",
            charts.Axis("budget, crawls per day and offer", percent=0),
            charts.Axis(f"{MEASURES[metric]} (median)", limits=(None, 1.0)),
            shared="none",
            legend="each",
        ),
        labels=(*dict.fromkeys(order), *own),
        own=own,
    )


def gains_by_budget(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metrics: Sequence[str],
    labels: Sequence[str],
    logarithmic: bool = False,
    paper: Mapping[str, Sequence[float]],
) -> None:
    """Draw the relative change over lambda_ml against the budget, a panel per metric.

    ``paper``: the paper's gains of KAB5 by metric, at its budgets.
    """
    theirs = "KAB5 in the paper"
    parts = [_by_budget(rows, *metrics)]
    for metric in metrics:
        told = {"x": BUDGETS, "y": paper[metric], "low": paper[metric], "high": paper[metric]}
        parts.append(pd.DataFrame(told).assign(label=theirs, metric=metric))
    data = pd.concat(parts)
    budget = charts.Axis("budget, crawls per day and offer", percent=0)
    if logarithmic:
        names = [f"{tick:.1%}" for tick in LOG_TICKS]
        budget = budget._replace(scale="log", ticks=LOG_TICKS, names=names)
    charts.lines(
        data.assign(panel=data.metric.map(MEASURES)),
        path,
        charts.Frame(
            f"{title}\nmedian over {len({row.seed for row in rows})} runs, each of its days; "
            "its 95% interval",
            budget,
            charts.Axis("change over lambda_ml", percent=1),
            shared="x",
            across=[charts.Rule(0.0)],
        ),
        labels=(*labels, theirs),
        own={theirs: PAPER | {"color": charts.LINE_COLOUR}},
    )
