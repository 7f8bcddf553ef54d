"""Rows to pictures, one function per kind of chart; see also :mod:`scripts.comparing.panels`.

Colours are Okabe and Ito's, which those who see colours differently can tell apart; every line
also has a marker of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from crawl_envs.evaluation import Row, Summary, summarize
from crawl_envs.types import FloatArray
from scripts.comparing.bounds import OPTIMUM
from scripts.comparing.comparisons import LOWER, Comparison
from scripts.comparing.rows import replacing

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
    """Numbers of pages, and the mean and standard error of a policy at each."""

    num_pages: list[int]
    mean: FloatArray
    error: FloatArray


def accuracy_by_pages(
    rows: Sequence[Row], path: Path, *, title: str, reference: str, metric: str
) -> None:
    """Draw a metric against the number of pages, and its paired difference to the reference.

    Settings are named ``m=<number of pages>``; bars are standard errors over the seeds.
    """
    rows = [row for row in rows if row.metric == metric]
    found = dict.fromkeys(row.policy for row in rows)
    labels = [label for label in found if label not in (reference, OPTIMUM)]
    values = {label: _by_pages(rows, label) for label in (reference, *found)}
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
    """Values of one policy by number of pages and seed."""
    found: dict[int, dict[int, float]] = {}
    for row in rows:
        if row.policy == label:
            found.setdefault(int(row.setting.removeprefix("m=")), {})[row.seed] = row.value
    return found


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
    """Draw a curve, a little to the side so that those that agree can be told apart."""
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

    Differences are paired, to the first reference. Bounds are lines, policies are dots.
    """
    metric, reference, bounds = compared.metrics[0], compared.references[0], compared.setting.bounds
    found = {item.policy: item for item in summarize(rows, metric, reference)}
    named = [found[label] for label in compared.setting.policies]
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
        level.axvline(found[label].mean, label=compared.lines[label], **style)
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
    """Draw a dot with an interval, where there is one, for each policy."""
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
    """Leave out what does not speak, and lay a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(color="#dddddd", linewidth=0.6)


def save(figure: Figure, path: Path) -> None:
    """Write a picture, whole or not at all."""
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=DPI, metadata={"Software": None})
