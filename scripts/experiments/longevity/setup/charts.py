"""Pictures of staleness over refresh cost, and of comparisons at equal cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from crawl_envs.evaluation import Row, mean_and_half_width
from scripts.experiments.lambdacrawl.setup.charts import style_of
from scripts.experiments.longevity.setup.curves import RATIO, Curves, mean_points
from scripts.reporting.charts import COLOURS, LINE_COLOUR, bare, save

STALENESS = "staleness: mean divergence over pages and time"
DIFFERENCE = "staleness less that of uniform refreshing"
COST = "refresh cost (1: every page at every tick)"
MOST_COST, MOST_RELATIVE = 0.72, 2.5


def _style(label: str, labels: Sequence[str], black: Sequence[str]) -> dict[str, Any]:
    """Return colour, marker and dashes of a label; references are black."""
    if label not in black:
        return style_of([name for name in labels if name not in black].index(label))
    place = list(black).index(label) % 2
    return {"color": LINE_COLOUR, "marker": "x+"[place], "linestyle": ("--", ":")[place]}


def curves_by_cost(
    panels: Mapping[str, Curves],
    path: Path,
    *,
    title: str,
    labels: Sequence[str],
    black: Sequence[str] = (),
    y_label: str = STALENESS,
) -> None:
    """Draw a point per threshold, and lines between, a panel per name and setting.

    Args:
        panels: curves by the title of their panels.
        path: of the picture.
        title: of the figure.
        labels: policies, in order.
        black: references among them, drawn black and dashed.
        y_label: label of the vertical axis.
    """
    parts = [(name, *item) for name, curves in panels.items() for item in curves.items()]
    figure = Figure(figsize=(max(7.4, 1.0 + 5.6 * len(parts)), 5.8), layout="constrained")
    counts: set[int] = set()
    grid = figure.subplots(1, len(parts), squeeze=False, sharey=True)[0]
    for axes, (name, setting, by_label) in zip(grid, parts, strict=True):
        for label in labels:
            if label not in by_label:
                continue
            counts.add(len(by_label[label]))
            points, half = mean_points(by_label[label])
            style = _style(label, labels, black)
            shown = np.flatnonzero(points.cost <= MOST_COST)
            axes.errorbar(
                points.cost[shown],
                points.staleness[shown],
                half[shown],
                linewidth=1.2,
                markersize=5,
                capsize=2,
                label=label,
                **style,
            )
        if len(parts) > 1:
            axes.set_title(name or setting, fontsize=10)
        axes.set_xlabel(COST)
        axes.set_xlim(0.0, MOST_COST)
        bare(axes)
    grid[0].set_ylabel(y_label)
    seeds = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    figure.suptitle(
        f"{title}\na point per threshold, means over {seeds} seeds; bars: 95% intervals",
        fontsize=11,
    )
    handles, names = grid[0].get_legend_handles_labels()
    columns = min(len(names), 3 * len(parts) + 1)
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
    save(figure, path)


def ratios(rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str]) -> None:
    """Draw cost ratios with 95% intervals, a line per setting and a colour per policy."""
    by_setting: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.metric == RATIO and row.policy in labels:
            by_setting.setdefault(row.setting, {}).setdefault(row.policy, []).append(row.value)
    settings = list(by_setting)
    figure = Figure(figsize=(9.0, 1.8 + 0.45 * len(settings)), layout="constrained")
    axes = figure.subplots()
    for place, label in enumerate(labels):
        kept = [
            (height, by_setting[name][label])
            for height, name in enumerate(settings)
            if label in by_setting[name]
        ]
        intervals = np.array([mean_and_half_width(values) for _, values in kept]).reshape(-1, 2)
        axes.errorbar(
            intervals[:, 0],
            [height + 0.18 * (place - (len(labels) - 1) / 2) for height, _ in kept],
            xerr=np.nan_to_num(intervals[:, 1]),
            capsize=2.5,
            label=label,
            **(style_of(place) | {"linestyle": "none"}),
        )
    _ratio_axes(axes, settings)
    figure.suptitle(f"{title}\nmeans and 95% intervals over seeds", fontsize=11)
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


def _ratio_axes(axes: Axes, settings: Sequence[str]) -> None:
    axes.axvline(1.0, color=LINE_COLOUR, linewidth=1.0)
    axes.set_yticks(range(len(settings)), settings, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("refresh cost over that of the reference, at equal staleness")
    axes.set_xlim(left=0.0)
    bare(axes)


def budgets(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    labels: Sequence[str],
    metric: str,
    black: Sequence[str] = (),
    reference: str | None = None,
) -> None:
    """Draw a metric of policies against the budget, a panel per kind of setting.

    Settings are named ``<panel>, budget <crawls per page and day>``. With a reference, draw the
    difference to that policy on the same seeds.
    """
    kept = [row for row in rows if row.metric == metric and ", budget " in row.setting]
    base = {(row.setting, row.seed): row.value for row in kept if row.policy == reference}
    by_panel: dict[str, dict[str, dict[float, list[float]]]] = {}
    for row in kept:
        panel, _, budget = row.setting.partition(", budget ")
        by_budget = by_panel.setdefault(panel, {}).setdefault(row.policy, {})
        value = row.value - base.get((row.setting, row.seed), 0.0)
        by_budget.setdefault(float(budget), []).append(value)
    columns = min(len(by_panel), 2)
    lines = -(-len(by_panel) // columns)
    figure = Figure(figsize=(1.0 + 5.8 * columns, 1.4 + 4.4 * lines), layout="constrained")
    grid = np.ravel(figure.subplots(lines, columns, squeeze=False, sharex=True))
    for axes, (panel, by_label) in zip(grid, by_panel.items(), strict=False):
        for label in labels:
            if label not in by_label:
                continue
            at = sorted(by_label[label])
            intervals = np.array([mean_and_half_width(by_label[label][budget]) for budget in at])
            style = _style(label, labels, black)
            axes.errorbar(
                at,
                intervals[:, 0],
                np.nan_to_num(intervals[:, 1]),
                linewidth=1.2,
                capsize=2,
                label=label,
                markersize=5,
                **style,
            )
        if len(at) > 1:
            axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(at))
        axes.xaxis.set_major_formatter(FixedFormatter([f"{budget:g}" for budget in at]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(labelbottom=True)
        axes.set_title(panel, fontsize=10)
        axes.set_xlabel("crawls per page and day (logarithmic scale)")
        axes.set_ylabel(STALENESS if reference is None else DIFFERENCE, fontsize=9)
        bare(axes)
    figure.suptitle(f"{title}\nmeans and 95% intervals over seeds", fontsize=11)
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    save(figure, path)


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
    played = {
        name: [
            row
            for row in rows
            if row.metric == metric
            and row.setting.endswith(end)
            and not row.setting.startswith("all sites")
        ]
        for name, end in panels.items()
    }
    played = {name: kept for name, kept in played.items() if kept}
    size = (3.2 + 2.9 * max(len(played), 1), 1.7 + 0.34 * len(labels))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(1, max(len(played), 1), squeeze=False, sharey=True)[0]
    count = 0
    for axes, (name, kept) in zip(grid, played.items(), strict=False):
        for height, label in enumerate(reversed(labels)):
            values = [row.value for row in kept if row.policy == label]
            count = max(count, len(values))
            if not values:
                continue
            inside = np.minimum(values, MOST_RELATIVE)
            axes.plot(inside, np.full(len(values), height), "o", color=COLOURS[5], ms=4)
            axes.plot(np.median(inside), height, "|", color=COLOURS[1], ms=15, mew=2.5)
        axes.axvline(1.0, color=LINE_COLOUR, linewidth=1.0)
        axes.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=8)
        axes.set_xlim(0.0, 1.02 * MOST_RELATIVE)
        axes.set_title(name, fontsize=9)
        bare(axes)
    figure.supxlabel(
        f"staleness over that of uniform refreshing (1: as stale; cut at {MOST_RELATIVE:g})"
    )
    figure.suptitle(f"{title}: a dot per site, {count} at most; bar: their median", fontsize=11)
    save(figure, path)
