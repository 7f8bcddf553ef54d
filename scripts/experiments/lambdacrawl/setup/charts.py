"""Pictures of costs: bars by policy, curves over the budget, courses of learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crawl_envs.evaluation import Row, mean_and_half_width
from scripts.experiments.lambdacrawl.setup.costs import J_B, J_H, PER_URL, by_label
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save

MORE_MARKERS = ("X", "<", ">", "*", "p", "h")
COST_NAMES = {J_H: "harmonic cost J_h", J_B: "binary cost J_b"}


def style_of(position: int) -> dict[str, Any]:
    """Return colour, marker and dashes of one of up to 12 lines; each colour is used twice."""
    more = position >= len(COLOURS)
    return {
        "color": COLOURS[position % len(COLOURS)],
        "marker": (*MARKERS, *MORE_MARKERS)[position],
        "fillstyle": "none" if more else "full",
        "linestyle": (0, (2, 1.5)) if more else "-",
    }


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
    figure = Figure(figsize=(11.0, 1.6 + 0.42 * len(labels)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    height = np.arange(len(labels))[::-1]
    count = 0
    for panel, (metric, name) in zip(panels, PER_URL.items(), strict=True):
        data = by_label(rows, setting, name)
        count = max(count, *(len(values) for values in data.values()))
        intervals = [
            mean_and_half_width(data.get(label, ()) if alone.get(label, metric) == metric else ())
            for label in labels
        ]
        means, halves = np.nan_to_num(np.array(intervals)).T
        panel.barh(
            height, means, xerr=halves, height=0.6, color=COLOURS[0], ecolor=LINE_COLOUR, capsize=3
        )
        for label, level, mean in zip(labels, height, means, strict=True):
            text = f"  {mean:,.0f}"
            if alone.get(label, metric) != metric:
                text = "  (of the other cost)"
            elif metric == J_H and label in infinite:
                text = "  infinite (starves pages)"
            panel.text(mean, level, text, va="center", fontsize=9)
        panel.set_xlim(0.0, 1.16 * means.max())
        panel.set_xlabel(f"{COST_NAMES[metric]} per page, in the paper's unit of importance")
        bare(panel)
        panel.grid(visible=False, axis="y")
    panels[0].set_yticks(height, labels)
    below = f"{setting}, {count} draws; bars: 95% intervals; lower is better"
    figure.suptitle(f"{title}\n{below}", fontsize=11)
    save(figure, path)


def curve(
    axes: Axes,
    at: Sequence[float],
    samples: Sequence[Sequence[float]],
    style: Mapping[str, Any],
) -> None:
    """Draw means with 95% intervals at given positions."""
    mean, half = np.array([mean_and_half_width(list(sample)) for sample in samples]).T
    axes.errorbar(at, mean, np.nan_to_num(half), capsize=2.5, linewidth=1.3, **style)


def band(axes: Axes, at: Sequence[float], values: np.ndarray, style: Mapping[str, Any]) -> None:
    """Draw the mean of courses, (repetitions, K), and a band of its 95% interval."""
    mean, half = np.array([mean_and_half_width(list(column)) for column in values.T]).T
    half = np.nan_to_num(half)
    axes.plot(at, mean, linewidth=1.5, **style)
    axes.fill_between(at, mean - half, mean + half, color=style["color"], alpha=0.2, linewidth=0)
