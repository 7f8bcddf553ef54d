"""Pictures of freshness against the budget of crawls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator, PercentFormatter

from crawl_envs.evaluation import Row, Summary
from crawl_envs.types import FloatArray
from scripts.experiments.offers.setup.paper import BUDGETS, Table
from scripts.experiments.offers.setup.tables import OWN_CRAWLS, by_run
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save
from scripts.reporting.intervals import median_of

MEASURES = {
    "click_freshness": "click-weighted freshness",
    "offer_freshness": "offer-level freshness",
    "click_gain": "click-weighted freshness, change over lambda_ml",
    "offer_gain": "offer-level freshness, change over lambda_ml",
}
LOG_TICKS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.9)


def budget_of(name: str) -> float:
    """Return the budget in the name of a setting."""
    return round(float(name.removesuffix("%")) / 100.0, 8)


def lines(
    axes: Axes, rows: Sequence[Row], metric: str, styles: Mapping[str, Mapping[str, Any]]
) -> int:
    """Draw the median over runs with its 95% interval against the budget; return the runs."""
    values, runs = by_run(rows, metric), 0
    for label, style in styles.items():
        budgets = sorted((budget_of(name), name) for name, policy in values if policy == label)
        intervals = [median_of(list(values[name, label].values())) for _, name in budgets]
        if not intervals:
            continue
        value, low, high = np.array(intervals).T
        at = [budget for budget, _ in budgets]
        axes.plot(at, value, label=label, **style)
        axes.fill_between(at, low, high, color=style["color"], alpha=0.2, linewidth=0)
        runs = max(runs, *(len(values[name, label]) for _, name in budgets))
    return runs


def dots(
    axes: Axes,
    items: Sequence[Summary | None],
    height: FloatArray,
    scale: float = 1.0,
    **style: Any,
) -> None:
    """Draw means with their 95% intervals at heights, none for None, in units of 1 / scale."""
    mean, half = (
        [np.nan if item is None else scale * getattr(item, name) for item in items]
        for name in ("mean", "half_width")
    )
    axes.errorbar(mean, height, xerr=np.nan_to_num(half), **style)


def legend_below(figure: Figure) -> None:
    """Add the legend of the first panel below all panels, in one line."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)


def styles_of(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a colour and a marker for each label."""
    return {
        label: {
            "color": (*COLOURS, LINE_COLOUR, "#999999")[position % 8],
            "marker": (*MARKERS, "X", "*")[position % 8],
            "markersize": 5,
            "linewidth": 1.3,
        }
        for position, label in enumerate(labels)
    }


def freshness_by_budget(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metric: str,
    panels: Mapping[str, Sequence[str]],
    paper: Table,
) -> None:
    """Draw a panel per group of labels; dotted lines are the paper's numbers."""
    figure = Figure(figsize=(4.3 * len(panels), 5.6), layout="constrained")
    meant = {own[0]: label for label, own in OWN_CRAWLS.items()}
    runs = 0
    for axes, (name, labels) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        styles = styles_of(labels)
        runs = max(runs, lines(axes, rows, metric, styles))
        for label in labels:
            numbers = paper.get(label, paper.get(meant.get(label, "")))
            if numbers is not None:
                dotted = {"color": styles[label]["color"], "linestyle": ":", "linewidth": 1.3}
                axes.plot(BUDGETS, numbers, **dotted)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("budget, crawls per day and offer")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_ylim(top=1.0)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 3}
        axes.legend(frameon=False, fontsize=8, **place)
        bare(axes)
    figure.axes[0].set_ylabel(f"{MEASURES[metric]} (median)")
    figure.suptitle(
        f"{title}\nmedian over {runs} runs, bands: its 95% interval; dotted: the paper", fontsize=11
    )
    save(figure, path)


def gains_by_budget(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metrics: Sequence[str],
    labels: Sequence[str],
    logarithmic: bool = False,
    paper: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Draw the relative change over lambda_ml against the budget, a panel per metric.

    ``paper``: the paper's gains of KAB5 by metric, at its budgets.
    """
    figure = Figure(figsize=(5.8 * len(metrics), 5.0), layout="constrained")
    styles, runs = styles_of(labels), 0
    for axes, metric in zip(figure.subplots(1, len(metrics)), metrics, strict=True):
        runs = max(runs, lines(axes, rows, metric, styles))
        if paper is not None:
            style = {"color": LINE_COLOUR, "linestyle": ":", "label": "KAB5 in the paper"}
            axes.plot(BUDGETS, paper[metric], **style)
        axes.axhline(0.0, color=LINE_COLOUR, linestyle="--", linewidth=1.0)
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(LOG_TICKS))
            axes.xaxis.set_major_formatter(FixedFormatter([f"{tick:.1%}" for tick in LOG_TICKS]))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel("budget, crawls per day and offer" + " (log scale)" * logarithmic)
        axes.set_ylabel(MEASURES[metric])
        bare(axes)
    figure.suptitle(
        f"{title}\nmedian over {runs} runs, each of its days; bands: 95% interval of the median",
        fontsize=11,
    )
    legend_below(figure)
    save(figure, path)
