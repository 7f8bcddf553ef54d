"""Pictures of recorded histories, site by site.

Settings are named ``<site>, <days> days, <importance>``: a crawl per page in this many days.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from crawl_envs.evaluation import Row
from scripts.present import charts
from scripts.study.means import means, paired, table

ASSUMED = {
    "rate_ratio": ("changes per day, played over fitted", 1.0, "log"),
    "persistence": ("rank correlation of pages' rates,\nfitted and played", 1.0, "linear"),
    "bulk": ("share of changes made with\nten pages or more", 0.0, "linear"),
    "clumping": ("variance over mean of\nchanges per week", 1.0, "log"),
    "directory_precision": ("precision of directories' signals", 1.0, "linear"),
    "mention_precision": ("precision of mentions", 1.0, "linear"),
    "mention_recall": ("recall of mentions", 1.0, "linear"),
}
"""Assumptions: title, ideal value, and scale of the axis."""


def parsed(values: pd.DataFrame) -> pd.DataFrame:
    """Add the columns ``site``, ``days`` and ``importance`` of settings, by days."""
    parts = values.setting.str.extract(r"^(.*), ([.\d]+) days, (.*)$")
    parts.columns = ["site", "days", "importance"]
    return values.join(parts.astype({"days": float})).sort_values("days", kind="stable")


def scores(values: pd.DataFrame, path: Path, *, title: str, labels: Sequence[str]) -> None:
    """Draw normalised scores of policies, a panel per budget and importance, a dot per site.

    The score is 0 for round robin and 1 for the clairvoyant.
    """
    data = parsed(values).rename(columns={"policy": "y", "value": "x"})
    data = data.sort_values(["days", "importance"], kind="stable")
    data["panel"] = data.days.map("a crawl per page in {:g} days, ".format) + data.importance
    charts.points(
        data,
        path,
        charts.Frame(
            f"{title}: a dot per site, {data.site.nunique()} sites, arrows below -1;\n"
            "diamonds: medians with 95% intervals; 0: round robin, 1: the clairvoyant",
            charts.Axis("normalised score", limits=(-1.0, 1.05)),
            columns=data.importance.nunique(),
            size=(3.9, 0.0),
            upright=[charts.Rule(0.0, dash="-")],
        ),
        names=labels,
    )


def differences(
    rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str], reference: str
) -> None:
    """Draw freshness minus that of the reference, with 95% intervals, a panel per budget."""
    values = table(rows, "freshness")
    data = parsed(means(paired(values, values[values.policy == reference])))
    data = data.rename(columns={"policy": "label", "mean": "x", "site": "y"})
    charts.dots(
        data.assign(panel=data.days.map("a crawl per page in {:g} days".format)),
        path,
        charts.Frame(
            f"{title}: freshness less that of {reference}\n"
            "bars: 95% intervals over the stretches played",
            charts.Axis("difference in freshness"),
            shared="y",
            upright=[charts.Rule(0.0, dash="-")],
        ),
        labels=labels,
        names=sorted(set(data.y)),
    )


def distances(rows: Sequence[Row], path: Path) -> None:
    """Draw :mod:`~scripts.experiments.real.setup.assumptions`, a dot per site and quarter."""
    data = table(rows, *ASSUMED).rename(columns={"value": "x"})
    titles = {metric: title for metric, (title, _, _) in ASSUMED.items()}
    data = data.assign(y=data.setting.str.partition(",")[0], panel=data.metric.map(titles))
    data = data.sort_values("panel", key=lambda names: names.map(list(titles.values()).index))
    charts.points(
        data,
        path,
        charts.Frame(
            "What formulas assume (dashed), and what sites do: "
            "a dot per quarter of the days played",
            {title: charts.Axis(scale=scale) for title, _, scale in ASSUMED.values()},
            columns=4,
            size=(2.7, 0.0),
            shared="y",
            upright=[charts.Rule(ideal, panel=title) for title, ideal, _ in ASSUMED.values()],
        ),
        names=sorted(set(data.y)),
        medians=False,
    )


def backtests(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw saved crawls by thinned logs, with intervals, against those by the full records.

    There is a panel for each policy; intervals that miss the record are drawn in another colour,
    and very long ones are cut off.
    """
    keys = ["policy", "setting", "seed"]
    values = table(rows, "record", "log", "half width", "contained")
    logs = values.pivot(index=keys, columns="metric", values="value").reset_index()
    names = {1.0: "contains the record's value", 0.0: "misses it"}
    columns = {"record": "x", "log": "y", "half width": "half", "policy": "panel"}
    plain = {"linestyle": "none", "markersize": 4, "elinewidth": 1, "alpha": 0.7, "capsize": 0}
    charts.lines(
        logs.assign(label=logs.contained.map(names)).rename(columns=columns),
        path,
        charts.Frame(
            title,
            charts.Axis("share of crawls saved at equal freshness, by the full record"),
            charts.Axis("by the log, with 95% intervals", limits=(-1.7, 1.3)),
            diagonal=True,
        ),
        labels=tuple(names.values()),
        own=dict.fromkeys(names.values(), plain),
    )


APART = 1.04
"""Ratio of the days at which the points of two labels are drawn."""


def mean_scores(values: pd.DataFrame, path: Path, *, title: str, labels: Sequence[str]) -> None:
    """Draw means with the ends of their intervals against the days per crawl, by importance.

    Args:
        values: rows of one group of sites, with the columns ``value``, ``low`` and ``high``.
        path: of the picture.
        title: of the figure.
        labels: the labels to draw, where present, side by side at each of the days.
    """
    data = parsed(values).rename(columns={"policy": "label", "value": "y", "days": "x"})
    days = sorted(set(data.x))
    place = data.label.map({label: k for k, label in enumerate(labels)}) - (len(labels) - 1) / 2
    beside = data.x.astype(float) * APART**place
    charts.lines(
        data.assign(panel=data.importance + " importance", x=beside),
        path,
        charts.Frame(
            f"{title}\nmeans over sites and splits, and bootstrap 95% intervals over sites",
            charts.Axis("days per crawl of a page", "log", ticks=days),
            charts.Axis("normalised score, round robin 0, clairvoyant 1"),
            across=[charts.Rule(0.0, dash="-")],
        ),
        labels=labels,
    )
