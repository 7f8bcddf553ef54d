"""Pictures of recorded histories, site by site.

Settings are named ``<site>, <days> days, <importance>``: a crawl per page in this many days.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from crawl_envs.evaluation import Row, summarize
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save

ASSUMED = {
    "rate_ratio": ("changes per day,\nplayed over fitted (log)", 1.0, True),
    "persistence": ("rank correlation of\npages' rates, fitted, played", 1.0, False),
    "bulk": ("share of changes made\nwith ten pages or more", 0.0, False),
    "clumping": ("variance over mean of\nchanges per week (log)", 1.0, True),
    "directory_precision": ("precision of\ndirectories' signals", 1.0, False),
    "mention_precision": ("precision of\nmentions", 1.0, False),
    "mention_recall": ("recall of\nmentions", 1.0, False),
}
"""Assumptions: axis label, ideal value, and whether the axis is logarithmic."""


def _site(setting: str) -> str:
    return setting.split(", ")[0]


def _days(setting: str) -> int:
    return int(setting.split(", ")[1].removesuffix(" days"))


def _importance(setting: str) -> str:
    return setting.split(", ")[2]


def scores(rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str]) -> None:
    """Draw normalised scores of policies, a panel per budget and importance, a dot per site.

    The score is 0 for round robin and 1 for the clairvoyant.
    """
    kept = [row for row in rows if row.metric == "normalised score"]
    labels = [label for label in labels if any(row.policy == label for row in kept)]
    budgets = sorted({_days(row.setting) for row in kept})
    drawn = list(dict.fromkeys(_importance(row.setting) for row in kept))
    size = (2.6 + 2.9 * len(budgets), 1.5 + (0.5 + 0.32 * len(labels)) * len(drawn))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(drawn), len(budgets), squeeze=False, sharex=True, sharey=True)
    for row_of, importance in zip(grid, drawn, strict=True):
        for axes, days in zip(row_of, budgets, strict=True):
            for height, label in enumerate(reversed(labels)):
                values = [
                    row.value
                    for row in kept
                    if row.policy == label
                    and _days(row.setting) == days
                    and _importance(row.setting) == importance
                ]
                inside = np.clip(values, -1.0, 1.0)
                axes.plot(inside, np.full(len(values), height), "o", color=COLOURS[5], ms=4)
                axes.plot(np.median(inside), height, "|", color=COLOURS[1], ms=15, mew=2.5)
            axes.axvline(0.0, color=LINE_COLOUR, linewidth=1.0)
            axes.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=8)
            axes.set_xlim(-1.05, 1.05)
            axes.set_title(f"a crawl per page in {days} days, {importance}", fontsize=9)
            bare(axes)
    figure.supxlabel("normalised score, round robin 0, clairvoyant 1, clipped at -1", fontsize=10)
    count = len({_site(row.setting) for row in kept})
    figure.suptitle(f"{title}: a dot per site, {count} sites; bar: their median", fontsize=11)
    save(figure, path)


def differences(
    rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str], reference: str
) -> None:
    """Draw freshness minus that of the reference, with 95% intervals, a panel per budget."""
    summaries = {
        (_site(item.setting), _days(item.setting), item.policy): item
        for item in summarize(rows, "freshness", reference)
    }
    sites = sorted({site for site, _, _ in summaries}, reverse=True)
    budgets = sorted({days for _, days, _ in summaries})
    figure = Figure(
        figsize=(2.4 + 2.9 * len(budgets), 1.6 + 0.42 * len(sites)), layout="constrained"
    )
    for axes, days in zip(
        figure.subplots(1, len(budgets), squeeze=False, sharey=True)[0], budgets, strict=True
    ):
        for position, label in enumerate(labels):
            kept = [
                (height, summaries[site, days, label])
                for height, site in enumerate(sites)
                if (site, days, label) in summaries
            ]
            axes.errorbar(
                [item.difference for _, item in kept],
                [height + 0.22 * (1 - position) for height, _ in kept],
                xerr=np.nan_to_num([item.difference_half_width for _, item in kept]),
                fmt=MARKERS[position],
                color=COLOURS[position],
                markersize=4.5,
                capsize=2,
                linewidth=1.0,
                label=label,
            )
        axes.axvline(0.0, color=LINE_COLOUR, linewidth=1.0)
        axes.set_yticks(range(len(sites)), sites, fontsize=8)
        axes.set_title(f"a crawl per page in {days} days", fontsize=9)
        axes.set_xlabel("difference in freshness", fontsize=9)
        bare(axes)
    figure.suptitle(
        f"{title}: freshness less that of {reference}\n"
        "bars: 95% intervals over the stretches played",
        fontsize=11,
    )
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


def distances(rows: Sequence[Row], path: Path) -> None:
    """Draw :mod:`~scripts.experiments.real.setup.assumptions`, a dot per site and quarter."""
    sites = sorted({_site(row.setting) for row in rows}, reverse=True)
    figure = Figure(figsize=(14.0, 1.6 + 0.36 * len(sites)), layout="constrained")
    panels = figure.subplots(1, len(ASSUMED), squeeze=False, sharey=True)[0]
    for axes, (metric, (label, ideal, logarithmic)) in zip(panels, ASSUMED.items(), strict=True):
        drawn = [row for row in rows if row.metric == metric]
        axes.plot(
            [row.value for row in drawn],
            [sites.index(_site(row.setting)) for row in drawn],
            "o",
            color=COLOURS[0],
            alpha=0.7,
            markersize=5,
        )
        axes.axvline(ideal, color=LINE_COLOUR, linestyle="--", linewidth=1.0)
        if logarithmic:
            axes.set_xscale("log")
        axes.set_xlabel(label, fontsize=9)
        axes.set_yticks(range(len(sites)), sites, fontsize=9)
        bare(axes)
    figure.suptitle(
        "What formulas assume (dashed), and what sites do: a dot per quarter of the days played",
        fontsize=11,
    )
    save(figure, path)


def backtests(rows: Sequence[Row], path: Path, *, title: str, policies: Sequence[str]) -> None:
    """Draw saved crawls by thinned logs, with intervals, against those by the full records.

    There is a panel for each policy; intervals that miss the record are drawn in another colour,
    and very long ones are cut off.
    """
    values = {(row.policy, row.setting, row.seed, row.metric): row.value for row in rows}
    figure = Figure(figsize=(4.2 * len(policies), 4.6), layout="constrained")
    panels = figure.subplots(1, len(policies), squeeze=False, sharex=True, sharey=True)[0]
    for axes, policy in zip(panels, policies, strict=True):
        logs = [key[1:3] for key in values if key[0] == policy and key[3] == "log"]
        names = ("record", "log", "half width", "contained")
        points = np.array([[values[policy, *log, name] for name in names] for log in logs])
        for held, colour, marker in ((1.0, COLOURS[0], "o"), (0.0, COLOURS[1], "s")):
            record, mean, half, _ = points[points[:, 3] == held].T
            label = "contains the record's value" if held else "misses it"
            style = {"fmt": marker, "color": colour, "markersize": 4, "elinewidth": 1}
            axes.errorbar(record, mean, half, label=f"{label} ({record.size})", alpha=0.7, **style)
        axes.axline((0.0, 0.0), slope=1.0, color="0.6", linewidth=1, zorder=0)
        axes.set_title(policy, fontsize=10)
        axes.set_ylim(-1.7, 1.3)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
        bare(axes)
    figure.supxlabel("share of crawls saved at equal freshness, by the full record", fontsize=10)
    figure.supylabel("by the log, with 95% intervals", fontsize=10)
    figure.suptitle(title, fontsize=11)
    save(figure, path)
