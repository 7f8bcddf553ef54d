"""Charts of rows, one function per kind of chart.

Colours are the colour-blind safe palette of Okabe and Ito; lines also differ in their markers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from crawl_envs.evaluation import Row, Summary, mean_and_half_width, summarize
from crawl_envs.types import FloatArray
from scripts.reporting.bounds import BASELINE, OPTIMUM
from scripts.reporting.comparisons import LOWER, Comparison
from scripts.reporting.rows import gathered, replacing

DRAWN_INSTANCES = 10
COLOUR_NAMES = {
    "recall": "recall (share of changes with a signal)",
    "change_rate": "change rate (per unit of time)",
    "false_signal_rate": "rate of false signals (per unit of time)",
}
NO_SIGNALS = "rate of BASELINE (no signals)"
"""Name of the rate of BASELINE where policies receive signals: it is not the optimum there."""


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
        rows: rows of :mod:`scripts.experiments.ncis.setup.page_rates`.
        path: file of the picture.
        title: title of the picture.
        colour: parameter of the pages shown by the colour of the dots.
        baseline: name of the rate in BASELINE.
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
            rate = np.concatenate([rates[setting, label, seed] for seed in seeds])
            dots = axes.scatter(
                optimal,
                rate,
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

    Entry k is at time (k + 1) ``times``; ``marks`` are times marked by vertical lines.
    """
    series = gathered(rows, metric)
    settings = list(dict.fromkeys(setting for setting, _, _ in series))
    figure = Figure(figsize=(5.6 * len(settings), 4.6), layout="constrained")
    panels = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    counts = set()
    for axes, setting in zip(panels, settings, strict=True):
        labels = dict.fromkeys(label for name, label, _ in series if name == setting)
        for position, arm in enumerate(labels):
            values = np.array([series[key] for key in series if key[:2] == (setting, arm)])
            counts.add(len(values))
            estimates = [mean_and_half_width(column) for column in values.T]
            mean, half = np.array(estimates).T
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

    ``panels`` maps each setting to its ``title``, the ``end`` of the time axis and ``beta``, whose
    multiples are marked. Values are in units of mu/Delta, the red line.
    """
    curves = gathered(rows, "value")
    figure = Figure(figsize=(5.4 * len(panels), 4.6), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (setting, panel) in zip(grid, panels.items(), strict=True):
        axes.axhline(1.0, color=COLOURS[1], linewidth=1.4, label="mu/Delta")
        for multiple in np.arange(panel["beta"], panel["end"], panel["beta"]):
            axes.axvline(multiple, color="#999999", linestyle=":", linewidth=0.9)
        labels = [label for name, label, _ in curves if name == setting]
        colours = (LINE_COLOUR, COLOURS[0], COLOURS[2], COLOURS[3])
        dashes = ("-", (0, (2, 1.5)), (0, (5, 2)), (0, (8, 2, 2, 2)))
        for label, colour, dash in zip(labels, colours, dashes, strict=False):
            values = curves[setting, label, 0]
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
        rows: rows with policies named by ``cells(precision, recall)``.
        path: file of the picture.
        title: title of the picture.
        metric: metric of the shares.
        cells: function that returns the policy of a cell.
        axes: precisions and recalls.
        beside: a policy outside the grid, and its name in the title of the panel.
        marked: range of shares whose cells are framed.
    """
    summaries = {(item.setting, item.policy): item for item in summarize(rows, metric)}
    precisions, recalls = axes
    settings = [
        name
        for name in dict.fromkeys(key[0] for key in summaries)
        if (name, cells(precisions[0], recalls[0])) in summaries
    ]
    figure = Figure(figsize=(5.9 * len(settings), 5.4), layout="constrained")
    grid = figure.subplots(1, len(settings), squeeze=False)[0]
    for panel, setting in zip(grid, settings, strict=True):
        table = [[summaries[setting, cells(p, r)] for p in precisions] for r in recalls]
        mean = 100.0 * np.array([[cell.mean for cell in line] for line in table])
        image = panel.imshow(mean, origin="lower", cmap="cividis", vmin=0.0, vmax=80.0)
        for (row, column), value in np.ndenumerate(mean):
            half = 100.0 * table[row][column].half_width
            shade = "white" if value < 42.0 else "black"
            text = f"{value:.1f}" if math.isnan(half) else f"{value:.1f}\n±{half:.1f}"
            panel.text(column, row, text, ha="center", va="center", fontsize=8, color=shade)
            if 100.0 * marked[0] <= value <= 100.0 * marked[1]:
                frame = Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, fill=False)
                frame.set(edgecolor=COLOURS[1], linewidth=2.5)
                panel.add_patch(frame)
        aside = summaries[setting, beside[0]]
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


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINE_COLOUR = "#000000"
DPI = 130
METRIC_UNITS = {
    "accuracy": "share of requests served fresh",
    "freshness": "importance-weighted share of page time fresh",
    "divergence": "importance-weighted mean distance of copies from live pages",
}


class Curve(NamedTuple):
    """Mean and standard error of a policy by number of pages."""

    num_pages: list[int]
    mean: FloatArray
    error: FloatArray


def accuracy_by_pages(
    rows: Sequence[Row], path: Path, *, title: str, reference: str, metric: str
) -> None:
    """Draw a metric against the number of pages, and its paired difference to the reference.

    Settings are named ``m=<number of pages>``; error bars are standard errors over the seeds.
    """
    rows = [row for row in rows if row.metric == metric]
    policies = dict.fromkeys(row.policy for row in rows)
    labels = [label for label in policies if label not in (reference, OPTIMUM)]
    values = {label: _by_pages(rows, label) for label in (reference, *policies)}
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    level, difference = figure.subplots(1, 2)
    shift = 1.012
    _draw(level, _curve(values[reference]), LINE_COLOUR, {"linestyle": "--", "label": reference})
    if OPTIMUM in values:
        dotted = {"linestyle": ":", "label": OPTIMUM}
        _draw(level, _curve(values[OPTIMUM]), LINE_COLOUR, dotted)
        paired = _differences(values[OPTIMUM], values[reference])
        _draw(difference, _curve(paired), LINE_COLOUR, dotted)
    for position, label in enumerate(labels):
        style = {
            "marker": MARKERS[position % len(MARKERS)],
            "markersize": max(9.0 - 1.5 * position, 4.5),
            "fillstyle": "none",
            "label": label,
        }
        colour = COLOURS[position % len(COLOURS)]
        offset = shift ** (position - (len(labels) - 1) / 2)
        _draw(level, _curve(values[label]), colour, style, offset)
        paired = _differences(values[label], values[reference])
        _draw(difference, _curve(paired), colour, style, offset)
    difference.axhline(0.0, color=LINE_COLOUR, linestyle="--", linewidth=1.3)
    seeds = sorted({len(by_seed) for by_pages in values.values() for by_seed in by_pages.values()})
    spread = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    _finish_pages(level, sorted(values[reference]), f"{metric} ({METRIC_UNITS[metric]})")
    _finish_pages(difference, sorted(values[reference]), f"{metric} minus {reference}, same seeds")
    level.set_ylim(bottom=0.0)
    figure.suptitle(
        f"{title}\nbars, mostly within the marks: one standard error over {spread} repetitions",
        fontsize=11,
    )
    handles, names = level.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


def _by_pages(rows: Sequence[Row], label: str) -> dict[int, dict[int, float]]:
    """Return the values of a policy by number of pages and seed."""
    values: dict[int, dict[int, float]] = {}
    for row in rows:
        if row.policy == label:
            values.setdefault(int(row.setting.removeprefix("m=")), {})[row.seed] = row.value
    return values


def _differences(
    values: Mapping[int, Mapping[int, float]], base: Mapping[int, Mapping[int, float]]
) -> dict[int, dict[int, float]]:
    return {
        num_pages: {
            seed: value - base[num_pages][seed]
            for seed, value in by_seed.items()
            if seed in base.get(num_pages, {})
        }
        for num_pages, by_seed in values.items()
    }


def _curve(values: Mapping[int, Mapping[int, float]]) -> Curve:
    num_pages = sorted(pages for pages, by_seed in values.items() if by_seed)
    samples = [np.array(list(values[pages].values())) for pages in num_pages]
    errors = [
        sample.std(ddof=1) / np.sqrt(sample.size) if sample.size > 1 else 0.0 for sample in samples
    ]
    return Curve(num_pages, np.array([s.mean() for s in samples]), np.array(errors))


def _draw(
    axes: Axes, curve: Curve, colour: str, style: Mapping[str, Any], offset: float = 1.0
) -> None:
    """Draw a curve, shifted by a factor so that equal curves stay distinguishable."""
    axes.errorbar(
        np.array(curve.num_pages) * offset,
        curve.mean,
        curve.error,
        color=colour,
        linewidth=1.3,
        capsize=2.5,
        **style,
    )


def _finish_pages(axes: Axes, num_pages: Sequence[int], label: str) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([float(pages) for pages in num_pages]))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{pages:,}" for pages in num_pages]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_xlabel("pages m (logarithmic scale), bandwidth 100 crawls per unit of time")
    axes.set_ylabel(label)
    bare(axes)


def policies_as_dots(rows: Sequence[Row], path: Path, compared: Comparison) -> None:
    """Draw the first metric of every policy with 95% intervals, best on top, and its differences.

    Differences to the first reference are paired. Bounds are lines, policies are dots.
    """
    metric, reference, bounds = compared.metrics[0], compared.references[0], compared.setting.bounds
    summaries = {item.policy: item for item in summarize(rows, metric, reference)}
    named = [summaries[label] for label in compared.setting.policies]
    dots = sorted(named, key=attrgetter("mean"), reverse=metric in LOWER)
    count = max(item.seeds for item in dots)
    figure = Figure(figsize=(10.5, 1.9 + 0.34 * len(dots)), layout="constrained")
    level, difference = figure.subplots(1, 2, sharey=True)
    _dots(level, dots, "mean", "half_width", f"mean, 95% interval over {count} {compared.over}")
    _dots(difference, dots, "difference", "difference_half_width", "")
    for label in bounds:
        style = {"color": COLOURS[1], "linestyle": "--"}
        if label != reference:
            style = {"color": LINE_COLOUR, "linestyle": ":"}
        level.axvline(summaries[label].mean, label=compared.lines[label], **style)
    zero = COLOURS[1] if reference in bounds else LINE_COLOUR
    difference.axvline(0.0, color=zero, linestyle="--")
    difference.tick_params(axis="y", length=0)
    level.set_xlabel(f"{metric} ({METRIC_UNITS[metric]})")
    difference.set_xlabel(f"{metric} minus {reference}, on the same {compared.over}")
    figure.suptitle(compared.title, fontsize=11)
    handles, names = level.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


def _dots(axes: Axes, dots: Sequence[Summary], centre: str, half: str, label: str) -> None:
    """Draw a dot for each policy, with its interval if any."""
    height = np.arange(len(dots))
    axes.errorbar(
        [getattr(item, centre) for item in dots],
        height,
        xerr=np.nan_to_num([getattr(item, half) for item in dots]),
        fmt="o",
        color=COLOURS[0],
        markersize=6,
        capsize=3,
        label=label,
    )
    axes.set_yticks(height, [item.policy for item in dots])
    axes.xaxis.set_major_locator(MaxNLocator(7))
    bare(axes)


def bare(axes: Axes) -> None:
    """Remove the top and right spines and add a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(color="#dddddd", linewidth=0.6)


def save(figure: Figure, path: Path) -> None:
    """Write a picture atomically."""
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=DPI, metadata={"Software": None})
