"""Pictures of means over recorded sites against the budget.

Settings are named ``<group of sites>, <days> days, <importance>``: a crawl per page in this many
days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from crawl_envs.evaluation import Row
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save

STEP = 1.045
"""Factor between the positions of two labels, so that their bars do not overlap."""

Point = tuple[float, float, float]
"""An estimate, and the ends of its interval."""


def mean_scores(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    labels: Sequence[str],
    metric: str,
) -> None:
    """Draw a metric with its interval against the days per crawl, a panel per importance.

    Args:
        rows: rows of one group of sites; each label has ``metric``, and the ends of its interval
            as ``<metric>, low`` and ``<metric>, high``.
        path: of the picture.
        title: of the figure.
        labels: the labels to draw, where present.
        metric: the metric to draw.
    """
    value = {(row.setting, row.policy, row.metric): row.value for row in rows}
    by_importance: dict[str, dict[str, dict[int, Point]]] = {}
    for setting, label, name in value:
        if name == metric:
            _, days, importance = setting.split(", ")
            low, high = (value[setting, label, f"{name}, {end}"] for end in ("low", "high"))
            points = by_importance.setdefault(importance, {}).setdefault(label, {})
            points[int(days.removesuffix(" days"))] = value[setting, label, name], low, high
    shown = [
        label for label in labels if any(label in by_label for by_label in by_importance.values())
    ]
    figure = Figure(figsize=(max(1.0 + 5.6 * len(by_importance), 9.0), 6.0), layout="constrained")
    panels = figure.subplots(1, len(by_importance), squeeze=False, sharey=True)[0]
    for axes, importance in zip(panels, by_importance, strict=True):
        _panel(axes, by_importance[importance], shown)
        axes.set_title(f"{importance} importance", fontsize=10)
    panels[0].set_ylabel("normalised score, round robin 0, clairvoyant 1")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(
        f"{title}\nmeans over sites, and bootstrap 95% intervals over them", fontsize=11
    )
    save(figure, path)


def _panel(axes: Axes, by_label: Mapping[str, Mapping[int, Point]], shown: Sequence[str]) -> None:
    """Draw a line per label."""
    for place, label in enumerate(shown):
        points = sorted(by_label.get(label, {}).items())
        shift = STEP ** (place - (len(shown) - 1) / 2)
        axes.errorbar(
            [days * shift for days, _ in points],
            [middle for _, (middle, _, _) in points],
            yerr=[
                [middle - low for _, (middle, low, _) in points],
                [high - middle for _, (middle, _, high) in points],
            ],
            fmt=MARKERS[place % len(MARKERS)] + "-",
            color=COLOURS[place % len(COLOURS)],
            markersize=5.5,
            capsize=2.5,
            linewidth=1.1,
            label=label,
        )
    axes.axhline(0.0, color=LINE_COLOUR, linewidth=0.8)
    ticks = sorted({days for points in by_label.values() for days in points})
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([str(days) for days in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("days per crawl of a page")
    bare(axes)
