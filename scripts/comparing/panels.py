"""Rows to pictures with a panel for each setting: dots, curves, courses over time, shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from crawl_envs.evaluation import Row, mean_and_half_width, summarize
from scripts.comparing.bounds import BASELINE
from scripts.comparing.charts import COLOURS, LINE_COLOUR, bare, save
from scripts.comparing.rows import gathered

DRAWN_INSTANCES = 10
COLOUR_NAMES = {
    "recall": "recall (share of changes with a signal)",
    "change_rate": "change rate (per unit of time)",
    "false_signal_rate": "rate of false signals (per unit of time)",
}
NO_SIGNALS = "rate of BASELINE (no signals)"
"""What BASELINE's rate is called where policies hear signals: it is not the optimum there."""


def rates_against_optimal(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    colour: str | None = None,
    baseline: str = "optimal rate (BASELINE)",
) -> None:
    """Draw each page's crawl rate against its rate in BASELINE, a panel per policy and setting.

    Args:
        rows: those of :mod:`scripts.comparing.page_rates`.
        path: the picture.
        title: what is drawn.
        colour: the parameter of the pages that colours the dots.
        baseline: what the rate in BASELINE is called.
    """
    rates, shades = gathered(rows, "crawl_rate"), gathered(rows, colour or "")
    settings = list(dict.fromkeys(setting for setting, _, _ in rates))
    labels = [label for label in dict.fromkeys(key[1] for key in rates) if label != BASELINE]
    seeds = sorted({seed for _, _, seed in rates})[:DRAWN_INSTANCES]
    size = (1.6 + 3.6 * len(labels), 0.9 + 3.5 * len(settings))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(settings), len(labels), squeeze=False, sharey="row")
    for row, setting in zip(grid, settings, strict=True):
        optimal = np.concatenate([rates[setting, BASELINE, seed] for seed in seeds])
        shade = [shades[setting, BASELINE, seed] for seed in seeds] if colour else None
        for axes, label in zip(row, labels, strict=True):
            found = np.concatenate([rates[setting, label, seed] for seed in seeds])
            dots = axes.scatter(
                optimal,
                found,
                s=3.5,
                **({"color": COLOURS[0]} if shade is None else {"c": np.concatenate(shade)}),
                alpha=0.55,
                linewidths=0.0,
            )
            end = 1.02 * optimal.max()
            axes.plot([0.0, end], [0.0, end], color=COLOURS[1], linewidth=1.0, zorder=0.9)
            axes.set_title(f"{label}, {setting.replace('m=', '')} pages", fontsize=10)
            axes.set_xlabel(f"{baseline},\ncrawls per unit of time")
            bare(axes)
        row[0].set_ylabel("rate, crawls per unit of time")
    if colour:
        bar = figure.colorbar(dots, ax=grid, label=COLOUR_NAMES[colour], aspect=40)
        bar.solids.set_alpha(1.0)
    figure.suptitle(
        f"{title}\na dot per page of {len(seeds)} instances; line: the {baseline}", fontsize=11
    )
    save(figure, path)


def courses(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metric: str,
    times: float,
    label: str,
    marks: Sequence[float] = (),
) -> None:
    """Draw an indexed metric over time, a panel per setting, with 95% bands over the seeds.

    Entry k is at time (k + 1) ``times``; ``marks`` are times at which something happens.
    """
    found = gathered(rows, metric)
    settings = list(dict.fromkeys(setting for setting, _, _ in found))
    figure = Figure(figsize=(5.6 * len(settings), 4.6), layout="constrained")
    panels = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    counts = set()
    for axes, setting in zip(panels, settings, strict=True):
        labels = dict.fromkeys(label for name, label, _ in found if name == setting)
        for position, arm in enumerate(labels):
            values = np.array([found[key] for key in found if key[:2] == (setting, arm)])
            counts.add(len(values))
            told = [mean_and_half_width(column) for column in values.T]
            mean, half = np.array(told).T
            time = times * np.arange(1, mean.size + 1)
            colour = COLOURS[position % len(COLOURS)]
            axes.plot(time, mean, color=colour, linewidth=1.4, label=arm)
            axes.fill_between(time, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
        for mark in marks:
            axes.axvline(mark, color=LINE_COLOUR, linestyle=":", linewidth=1.0)
        axes.set_title(setting, fontsize=10)
        axes.set_xlabel("time (units of the instance)")
        axes.margins(x=0.01)
        bare(axes)
    panels[0].set_ylabel(label)
    figure.suptitle(
        f"{title}\nmean over {max(counts)} repetitions; bands: 95% intervals", fontsize=11
    )
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


def values_over_time(
    rows: Sequence[Row], path: Path, *, title: str, panels: Mapping[str, Mapping[str, Any]]
) -> None:
    """Draw crawl values over the effective elapsed time, a panel per setting.

    ``panels`` gives for each setting its ``title``, the ``end`` of the times and ``beta``, whose
    multiples are marked; values are in units of mu/Delta, which the red line shows.
    """
    found = gathered(rows, "value")
    figure = Figure(figsize=(5.4 * len(panels), 4.6), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (setting, panel) in zip(grid, panels.items(), strict=True):
        axes.axhline(1.0, color=COLOURS[1], linewidth=1.4, label="mu/Delta")
        for multiple in np.arange(panel["beta"], panel["end"], panel["beta"]):
            axes.axvline(multiple, color="#999999", linestyle=":", linewidth=0.9)
        labels = [label for name, label, _ in found if name == setting]
        colours = (LINE_COLOUR, COLOURS[0], COLOURS[2], COLOURS[3])
        dashes = ("-", (0, (2, 1.5)), (0, (5, 2)), (0, (8, 2, 2, 2)))
        for label, colour, dash in zip(labels, colours, dashes, strict=False):
            values = found[setting, label, 0]
            time = np.linspace(0.0, panel["end"], values.size)
            axes.plot(time, values, color=colour, linestyle=dash, linewidth=1.6, label=label)
        axes.set_title(panel["title"], fontsize=9)
        axes.set_xlabel("effective elapsed time (dotted: multiples of beta)")
        axes.set_ylim(0.0, 1.05)
        axes.margins(x=0.0)
        bare(axes)
    grid[0].set_ylabel("crawl value, in units of mu/Delta")
    figure.suptitle(title, fontsize=11)
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


def shares_by_quality(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metric: str,
    cells: Callable[[float, float], str],
    axes: tuple[Sequence[float], Sequence[float]],
    beside: tuple[str, str],
    marked: tuple[float, float],
) -> None:
    """Draw mean shares in a grid of precision and recall, with 95% intervals, a panel per setting.

    Args:
        rows: whose policies are named by ``cells(precision, recall)``.
        path: the picture.
        title: what is drawn.
        metric: the share.
        cells: name of the policy of a cell.
        axes: the precisions and the recalls.
        beside: a policy outside the grid, and what it is called in the title of the panel.
        marked: shares between which a cell is framed.
    """
    found = {(item.setting, item.policy): item for item in summarize(rows, metric)}
    precisions, recalls = axes
    settings = [
        name
        for name in dict.fromkeys(key[0] for key in found)
        if (name, cells(precisions[0], recalls[0])) in found
    ]
    figure = Figure(figsize=(5.9 * len(settings), 5.4), layout="constrained")
    grid = figure.subplots(1, len(settings), squeeze=False)[0]
    for panel, setting in zip(grid, settings, strict=True):
        told = [[found[setting, cells(p, r)] for p in precisions] for r in recalls]
        mean = 100.0 * np.array([[cell.mean for cell in line] for line in told])
        image = panel.imshow(mean, origin="lower", cmap="cividis", vmin=0.0, vmax=80.0)
        for (row, column), value in np.ndenumerate(mean):
            half = 100.0 * told[row][column].half_width
            shade = "white" if value < 42.0 else "black"
            text = f"{value:.1f}" if math.isnan(half) else f"{value:.1f}\n±{half:.1f}"
            panel.text(column, row, text, ha="center", va="center", fontsize=8, color=shade)
            if 100.0 * marked[0] <= value <= 100.0 * marked[1]:
                frame = Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, fill=False)
                frame.set(edgecolor=COLOURS[1], linewidth=2.5)
                panel.add_patch(frame)
        aside = found[setting, beside[0]]
        name = f"{setting.replace('m=', '')} pages"
        panel.set_title(f"{name}; {beside[1]}: {100 * aside.mean:.1f}%", fontsize=10)
        panel.set_xticks(range(len(precisions)), [f"{p:g}" for p in precisions])
        panel.set_yticks(range(len(recalls)), [f"{r:g}" for r in recalls])
        panel.set_xlabel("precision (share of signals that are true)")
        panel.set_ylabel("recall (share of changes with a signal)")
    figure.colorbar(image, ax=grid, label="crawls saved (% of GREEDY's)")
    framed = f"framed: {100 * marked[0]:g} to {100 * marked[1]:g}%; ±: 95% intervals"
    figure.suptitle(f"{title}\nat equal freshness, bandwidth 100; {framed}", fontsize=11)
    save(figure, path)
