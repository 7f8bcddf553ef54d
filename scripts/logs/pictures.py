"""Pictures of backtests, audits and schedules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from crawl_envs.types import FloatArray
from policies.estimators import SignalAudit
from scripts.logs.backtesting import OWN, Outcome
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save


def draw_backtest(
    path: Path, outcomes: Sequence[Outcome], crawls_per_day: float, title: str
) -> None:
    """Draw freshness against crawls per day, with intervals, and the log's own crawls."""
    figure = Figure(figsize=(7.4, 4.8), layout="constrained")
    axes = figure.add_subplot()
    own = outcomes[0]
    assert own.policy == OWN
    names = list(dict.fromkeys(item.policy for item in outcomes[1:]))
    for name, colour, marker in zip(names, COLOURS * 4, MARKERS * 4, strict=False):
        kept = [item for item in outcomes if item.policy == name]
        crawls = np.array([item.share for item in kept]) * crawls_per_day
        mean, half = np.array([item.freshness for item in kept]).T
        axes.plot(crawls, mean, color=colour, marker=marker, markersize=5, label=name)
        axes.fill_between(crawls, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.errorbar(
        crawls_per_day,
        own.freshness.mean,
        own.freshness.half_width,
        fmt="D",
        color="black",
        capsize=4,
        label=OWN,
        zorder=5,
    )
    axes.axhline(own.freshness.mean, color=LINE_COLOUR, linestyle="--", linewidth=1.0)
    axes.set_xscale("log")
    ticks = sorted({item.share * crawls_per_day for item in outcomes})
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{tick:.3g}" for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("crawls per day (logarithmic scale)")
    axes.set_ylabel("share of time fresh, with 95% intervals")
    axes.set_title(title, fontsize=11)
    axes.legend(frameon=False, loc="lower right")
    bare(axes)
    save(figure, path)


def draw_budgets(
    path: Path, bandwidths: FloatArray, expected: FloatArray, bandwidth: float
) -> None:
    """Draw the largest long-run freshness against the fetches per day, and mark one budget."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(bandwidths, expected, color=COLOURS[0], marker="o", markersize=5)
    axes.axvline(bandwidth, color=LINE_COLOUR, linestyle="--", linewidth=1.0)
    axes.annotate(" this schedule", (bandwidth, expected.min()), fontsize=9, annotation_clip=False)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(bandwidths)))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{value:,.4g}" for value in bandwidths]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("fetches per day (logarithmic scale)")
    axes.set_ylabel("largest long-run freshness")
    axes.set_title("Expected freshness by budget", fontsize=11)
    bare(axes)
    save(figure, path)


def draw_audit(path: Path, sources: Sequence[str], found: SignalAudit) -> None:
    """Draw precision, recall and delay of each source, with 95% intervals."""
    figure = Figure(figsize=(9.0, 1.8 + 0.45 * len(sources)), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    labels = {"precision": "precision", "recall": "recall", "delay": "mean delay (days)"}
    height = np.arange(len(sources))[::-1]
    for axes, (name, label) in zip(panels, labels.items(), strict=True):
        value, (low, high) = getattr(found, name), getattr(found, f"{name}_interval").T
        spread = np.nan_to_num(np.stack([value - low, high - value])).clip(min=0.0)
        axes.errorbar(value, height, xerr=spread, fmt="o", color=COLOURS[0], capsize=3)
        axes.set_xlabel(label)
        if name != "delay":
            axes.set_xlim(-0.03, 1.03)
        bare(axes)
    verdicts = zip(sources, found.verdict, strict=True)
    panels[0].set_yticks(height, [f"{source}: {verdict}" for source, verdict in verdicts])
    panels[0].set_ylim(-0.6, len(sources) - 0.4)
    figure.suptitle("Audit of signals, with 95% intervals", fontsize=11)
    save(figure, path)
