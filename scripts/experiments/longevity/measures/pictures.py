"""Draw pictures of several experiments: curves by cost, cost ratios, distributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row, mean_and_half_width
from crawl_envs.types import FloatArray
from scripts.experiments import figures
from scripts.experiments.figures import Series
from scripts.experiments.longevity.measures.curves import RATIO, Curves, Points, points_of
from scripts.present import charts
from scripts.study.means import entries, means

STALENESS = "staleness: mean divergence over pages and time"
MAX_COST = 0.72


def mean_curves(curves: Curves) -> pd.DataFrame:
    """Return a table of means over seeds, a row per knob: cost ``x``, staleness ``y``, ``half``.

    ``half`` is the half-width of the interval of ``y``. Panels are settings.
    """
    groups: dict[tuple[str, str], list[Points]] = {}
    for key, points in curves.items():
        groups.setdefault(key[:2], []).append(points)
    parts = []
    for (setting, label), seeds in groups.items():
        cost, stale = np.swapaxes(seeds, 0, 1)
        mean, half = np.transpose([mean_and_half_width(list(column)) for column in stale.T])
        part = {"x": cost.mean(axis=0), "y": mean, "half": np.nan_to_num(half)}
        parts.append(pd.DataFrame(part).assign(label=label, panel=setting))
    return pd.concat(parts)


def curves_by_cost(
    rows: Sequence[Row],
    path: Path,
    *,
    stretch: str,
    title: str,
    labels: Sequence[str],
    black: Sequence[str] = (),
    settings: Sequence[str] = (),
    measures: Mapping[str, str] = MappingProxyType({"staleness": STALENESS}),
) -> None:
    """Draw lines with a point per threshold, in a panel per setting or per measure.

    Args:
        rows: rows of sweeps.
        path: file of the picture.
        stretch: one of STRETCHES, or EPISODE.
        title: title of the figure.
        labels: policies, in order.
        black: references among them, drawn black and dashed.
        settings: settings to draw; empty: all.
        measures: labels of the vertical axes by measure; several need a single setting.
    """
    parts: list[pd.DataFrame] = []
    axes: dict[str, charts.Axis] = {}
    seeds = 0
    for measure, label in measures.items():
        curves = points_of(rows, stretch, measure)
        curves = {key: curves[key] for key in curves if not settings or key[0] in settings}
        data = mean_curves(curves)
        parts.append(data if len(measures) == 1 else data.assign(panel=measure))
        axes |= dict.fromkeys(parts[-1].panel, charts.Axis(label))
        seeds = max(seeds, len({seed for *_, seed in curves}))
    data = pd.concat(parts)
    charts.lines(
        data[data.x <= MAX_COST],
        path,
        charts.Frame(
            f"{title}\na point per threshold, means over {seeds} seeds; bars: 95% intervals",
            charts.Axis("refresh cost (1: every page at every tick)", limits=(0.0, MAX_COST)),
            axes,
            shared="all" if len(measures) == 1 else "x",
        ),
        labels=labels,
        black=black,
    )


def ratios(rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str]) -> None:
    """Draw mean cost ratios with 95% intervals, by setting and policy; note which lack seeds."""
    seeds = len({row.seed for row in rows})
    compared = [row for row in rows if row.policy in labels and row.metric == RATIO]
    notes: dict[str, list[str]] = {row.setting: [row.setting] for row in compared}
    for (setting, label), count in Counter(row[1:3] for row in compared).items():
        if count < seeds:
            notes[setting].append(f"{label}: {count} of {seeds} seeds")
    across = charts.Axis(
        "refresh cost over that of the reference, at equal staleness", limits=(0.0, None)
    )
    figures.dots(
        [Series(RATIO)],
        charts.Frame(
            f"{title}\nmeans and 95% intervals over {seeds} seeds",
            across,
            upright=[charts.Rule(1.0, dash="-")],
        ),
        y={setting: "\n".join(lines) for setting, lines in notes.items()},
        labels=labels,
    )(compared, path)


def distributions(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    settings: Mapping[str, str],
    labels: Sequence[str],
    curves: tuple[str, str],
    grid: FloatArray,
    unit: str,
) -> None:
    """Draw observations as marks with 95% intervals, and theory as lines, a panel per setting.

    Args:
        rows: rows with two indexed metrics, shares at each value of ``grid``.
        path: file of the picture.
        title: title of the picture.
        settings: titles of the panels, by setting.
        labels: labels in order.
        curves: metrics of observations and theory.
        grid: abscissae of the shares.
        unit: label of the horizontal axis.
    """
    parts = []
    for name, step in zip(curves, (max(1, grid.size // 30), 1), strict=True):
        part = means(entries(rows, name), ("setting", "policy", "index"))
        selected = part.setting.isin(list(settings)) & part.policy.isin(list(labels))
        parts.append(part[selected & (part["index"] % step == 0)])
    theory = parts[1].assign(policy="_" + parts[1].policy, half=0.0)
    data = pd.concat([parts[0], theory]).rename(columns={"mean": "y", "policy": "label"})
    looks = {}
    for place, label in enumerate(labels):
        looks[label] = {"linestyle": "none", "fillstyle": "none", "elinewidth": 1.0}
        looks[f"_{label}"] = {"color": charts.COLOURS[place], "marker": "", "linestyle": "-"}
    charts.lines(
        data.assign(x=grid[data["index"]], panel=data.setting.map(settings)),
        path,
        charts.Frame(
            f"{title}\nlines: {curves[1]}; marks: {curves[0]}, with 95% intervals where "
            "there are several runs",
            charts.Axis(unit),
            charts.Axis("share of fragments that live no longer", limits=(0.0, 1.02)),
            columns=3,
            size=(3.8, 3.8),
        ),
        labels=(*labels, *(f"_{label}" for label in labels)),
        looks=looks,
    )
