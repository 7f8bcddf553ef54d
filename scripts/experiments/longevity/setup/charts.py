"""Pictures of staleness by refresh cost or budget, and of comparisons at equal cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.setup.curves import RATIO, Curves, mean_points
from scripts.present import charts
from scripts.study.means import means, numbered, paired, table

STALENESS = "staleness: mean divergence over pages and time"
MOST_COST, MOST_RELATIVE = 0.72, 2.5


def curves_by_cost(
    curves: Curves,
    path: Path,
    *,
    title: str,
    labels: Sequence[str],
    black: Sequence[str] = (),
    y_label: str = STALENESS,
) -> None:
    """Draw a point per threshold, and lines between, a panel per setting.

    Args:
        curves: by setting, label and seed.
        path: of the picture.
        title: of the figure.
        labels: policies, in order.
        black: references among them, drawn black and dashed.
        y_label: label of the vertical axis.
    """
    parts, counts = [], set()
    for setting, by_label in curves.items():
        for label, by_seed in by_label.items():
            counts.add(len(by_seed))
            points, half = mean_points(by_seed)
            each = {"x": points.cost, "y": points.staleness, "half": half, "label": label}
            parts.append(pd.DataFrame(each).assign(panel=setting))
    data = pd.concat(parts)
    charts.lines(
        data[data.x <= MOST_COST],
        path,
        charts.Frame(
            f"{title}\na point per threshold, means over {max(counts)} seeds; bars: 95% intervals",
            charts.Axis("refresh cost (1: every page at every tick)", limits=(0.0, MOST_COST)),
            charts.Axis(y_label),
        ),
        labels=labels,
        black=black,
    )


def ratios(rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str]) -> None:
    """Draw cost ratios with 95% intervals, by setting and policy."""
    data = means(table([row for row in rows if row.policy in labels], RATIO))
    charts.dots(
        data.rename(columns={"setting": "y", "policy": "label", "mean": "x"}),
        path,
        charts.Frame(
            f"{title}\nmeans and 95% intervals over seeds",
            charts.Axis(
                "refresh cost over that of the reference, at equal staleness", limits=(0.0, None)
            ),
            upright=[charts.Rule(1.0, dash="-")],
        ),
        labels=labels,
    )


def budgets(
    rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str], metric: str
) -> None:
    """Draw a metric of policies against the budget, a panel per kind of setting.

    Settings are named ``<panel>, budget <crawls per page and day>``; the last label is black.
    """
    data = means(table([row for row in rows if row.policy in labels], metric))
    data = data.assign(panel=data.setting.str.partition(", budget ")[0])
    data = numbered(data, "budget ").rename(columns={"policy": "label", "mean": "y"})
    charts.lines(
        data,
        path,
        charts.Frame(
            f"{title}\nmeans and 95% intervals over seeds",
            charts.Axis("crawls per page and day", "log", ticks=sorted(set(data.x))),
            charts.Axis(STALENESS),
            shared="row",
        ),
        labels=labels,
        black=labels[-2:],
    )


def by_budget(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    labels: Sequence[str],
    metric: str,
    reference: str,
) -> None:
    """Draw a metric less that of a reference, by policy and budget, a panel per kind of setting."""
    values = table(rows, metric)
    data = means(paired(values, values[values.policy == reference]))
    parts = data.setting.str.partition(", budget ")
    data = data.assign(panel=parts[0], label=parts[2]).rename(columns={"policy": "y", "mean": "x"})
    data = data[(data.label != "") & (data.y != reference)]
    charts.dots(
        data.assign(label=data.label + " crawls per page and day"),
        path,
        charts.Frame(
            f"{title}\nmeans and 95% intervals over seeds; below 0: fresher",
            charts.Axis(f"staleness less that of {reference}"),
            shared="row",
            upright=[charts.Rule(0.0, dash="-")],
        ),
        names=labels,
    )


def sites(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    labels: Sequence[str],
    panels: Mapping[str, str],
    metric: str,
) -> None:
    """Draw a metric relative to uniform refreshing, a dot per site, a panel per end of a setting.

    Args:
        rows: settings are named by a site and an end.
        path: of the picture.
        title: of the figure.
        labels: policies, from the top.
        panels: ends of settings, by title.
        metric: drawn metric, clipped at MOST_RELATIVE.
    """
    values = table([row for row in rows if not row.setting.startswith("all sites")], metric)
    parts = [
        values[values.setting.str.endswith(end)].assign(panel=name) for name, end in panels.items()
    ]
    data = pd.concat(parts).rename(columns={"policy": "y", "value": "x"})
    count = data.setting.str.split(",").str[0].nunique()
    charts.points(
        data,
        path,
        charts.Frame(
            f"{title}: a dot per site, {count} at most; diamond: their median with a 95% interval\n"
            f"staleness over that of uniform refreshing (1: as stale; cut at {MOST_RELATIVE:g})",
            charts.Axis("relative staleness", limits=(0.0, MOST_RELATIVE)),
            columns=4,
            size=(2.6, 0.0),
            upright=[charts.Rule(1.0, dash="-")],
        ),
        names=labels,
    )
