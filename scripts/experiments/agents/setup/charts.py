"""Pictures of agents beside the best analytic policies, by setting and together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crawl_envs.evaluation import Row, Summary, summarize
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save

GREY = "#777777"
COLUMNS = 2
MARGIN = 0.35
"""Margin of a panel on either side, as a share of the width of the intervals."""


class Panel(NamedTuple):
    """A setting, its reference label, and the labels to draw, top to bottom.

    Labels in ``far`` that lie outside are arrows at the edge, with their numbers.
    """

    setting: str
    best: str
    labels: tuple[str, ...]
    far: tuple[str, ...] = ()


def over_best(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    panels: Sequence[Panel],
    ours: Sequence[str],
    reference: str,
) -> None:
    """Draw freshness less that of the reference with 95% intervals, a panel per setting."""
    items = {(item.setting, item.policy): item for item in summarize(rows, "freshness", reference)}
    lines = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(13.0, 0.9 + 2.1 * lines), layout="constrained")
    grid = figure.subplots(lines, COLUMNS, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        shown = [
            items[panel.setting, label]
            for label in dict.fromkeys(panel.labels)
            if (panel.setting, label) in items
        ]
        _panel(axes, shown, ours, panel.far)
        seeds = max((item.seeds for item in shown), default=0)
        axes.set_title(f"{panel.setting}: less {panel.best}, {seeds} seeds", fontsize=10)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(
        f"{title}: freshness less that of the {reference} policy, which is chosen afterwards\n"
        "dots: means over paired seeds; bars: 95% Student intervals",
        fontsize=11,
    )
    save(figure, path)


def _panel(axes: Axes, shown: Sequence[Summary], ours: Sequence[str], far: Sequence[str]) -> None:
    """Draw a dot with a bar per policy, the first on top."""
    near = [item for item in shown if item.policy not in far] or shown
    half = np.nan_to_num([item.difference_half_width for item in near])
    middle = np.array([item.difference for item in near])
    low, high = min(0.0, (middle - half).min()), max(0.0, (middle + half).max())
    margin = MARGIN * max(high - low, 1e-6)
    left, right = low - margin, high + margin
    for height, item in enumerate(reversed(shown)):
        colour, marker = _style(item.policy, ours)
        if item.difference < left:
            axes.plot(left, height, "<", color=colour, markersize=7, clip_on=False)
            axes.annotate(
                f"{item.difference:.3f}",
                (left, height),
                (8, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
            continue
        bar = np.nan_to_num(item.difference_half_width)
        axes.errorbar(
            item.difference, height, xerr=bar, fmt=marker, color=colour, markersize=6, capsize=3
        )
    axes.axvline(0.0, color=LINE_COLOUR, linewidth=1.0)
    axes.set_xlim(left, right)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_yticks(range(len(shown)), [item.policy for item in reversed(shown)], fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    bare(axes)


def _style(label: str, ours: Sequence[str]) -> tuple[str, str]:
    """Return colour and marker of a label: its own for ours, grey for all others."""
    if label in ours:
        place = list(ours).index(label)
        return COLOURS[place], MARKERS[place]
    return GREY, MARKERS[3]


def aggregate(
    rows: Sequence[Row], path: Path, *, title: str, metric: str, count: str, ours: Sequence[str]
) -> None:
    """Draw an aggregate over settings with its interval, the best on top.

    Args:
        rows: rows of one setting; each label has ``metric``, the ends of its interval as
            ``<metric>, low`` and ``<metric>, high``, and ``count``, the number of settings.
        path: of the picture.
        title: of the figure.
        metric: the metric to draw.
        count: the metric that counts settings.
        ours: labels that are drawn in colours.
    """
    value = {(row.policy, row.metric): row.value for row in rows}
    labels = sorted(
        (label for label, name in value if name == metric), key=lambda label: value[label, metric]
    )
    largest = max((value[label, count] for label in labels), default=0.0)
    figure = Figure(figsize=(9.0, 1.6 + 0.27 * len(labels)), layout="constrained")
    axes = figure.subplots()
    for height, label in enumerate(labels):
        middle = value[label, metric]
        bar = [
            [middle - value[label, f"{metric}, low"]],
            [value[label, f"{metric}, high"] - middle],
        ]
        colour, marker = _style(label, ours)
        axes.errorbar(middle, height, xerr=bar, fmt=marker, color=colour, markersize=6, capsize=3)
    named = [
        label
        if value[label, count] == largest
        else f"{label} ({value[label, count]:.0f} of {largest:.0f} settings)"
        for label in labels
    ]
    axes.set_yticks(range(len(labels)), named, fontsize=8)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    for level in (0.0, 1.0):
        axes.axvline(level, color=LINE_COLOUR, linestyle="--", linewidth=1.0)
    axes.set_xlabel(f"{metric}: round robin 0, best analytic policy of each setting 1")
    bare(axes)
    figure.suptitle(
        f"{title}: interquartile mean over settings and seeds, 95% bootstrap intervals", fontsize=11
    )
    save(figure, path)
