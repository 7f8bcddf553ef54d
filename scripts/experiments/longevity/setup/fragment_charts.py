"""Pictures of page contents over time, divergence of copies, and lifetimes of fragments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from crawl_envs.evaluation import Row, mean_and_half_width, summarize
from crawl_envs.types import FloatArray
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save
from scripts.reporting.rows import gathered


def _drawn(rows: Sequence[Row], name: str) -> dict[tuple[str, str], FloatArray]:
    """Return an indexed metric by setting and label, of seed 0."""
    return {key[:2]: values for key, values in gathered(rows, name).items() if key[2] == 0}


def _numbers(rows: Sequence[Row], name: str) -> dict[tuple[str, str], float]:
    """Return a metric by setting and label, of seed 0."""
    return {row[1:3]: row.value for row in rows if row.metric == name and row.seed == 0}


def stripes_over_time(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    columns: Sequence[str],
    titles: Mapping[tuple[str, str], str],
) -> None:
    """Draw a stripe for each set of fragments from its birth to its death, a panel per page.

    Args:
        rows: with four indexed metrics of seed 0.
        path: the picture.
        title: what is drawn.
        columns: names of the metrics: lowest row, birth, death and number of fragments.
        titles: of the panels, by setting and label.
    """
    first, birth, death, size = (_drawn(rows, name) for name in columns)
    keys = [key for key in titles if key in first]
    settings = list(dict.fromkeys(key[0] for key in keys))
    figure = Figure(figsize=(11.0, 0.8 + 4.2 * len(settings)), layout="constrained")
    grid = figure.subplots(len(settings), -(-len(keys) // len(settings)), squeeze=False)
    for axes, key in zip(grid.flat, keys, strict=False):
        sides = zip(first[key], birth[key], death[key], size[key], strict=True)
        boxes = [Rectangle((start, low), end - start, height) for low, start, end, height in sides]
        end, top = float(death[key].max()), float((first[key] + size[key]).max())
        stays = (birth[key] <= 0.0) & (death[key] >= end)
        other = (np.diff(birth[key]) != 0.0) | (np.diff(death[key]) != 0.0)
        number = np.concatenate(([0], np.cumsum(other)))
        colours = np.where(stays, "#999999", np.where(number % 2, *COLOURS[:2]))
        axes.add_collection(
            PatchCollection(boxes, facecolor=colours.tolist(), linewidth=0.0, rasterized=True)
        )
        axes.set_xlim(0.0, end)
        axes.set_ylim(0.0, top)
        axes.set_title(titles[key], fontsize=10)
        axes.set_xlabel("time (days)")
        axes.set_ylabel("fragments, in order of first appearance")
        bare(axes)
    figure.suptitle(
        f"{title}\na stripe lasts from birth to death; grey: always present; "
        "blue and orange only separate neighbours",
        fontsize=11,
    )
    save(figure, path)


def divergence_curves(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    step: float,
    curves: tuple[str, str],
    utilities: tuple[str, str],
    titles: Mapping[tuple[str, str], str],
) -> None:
    """Draw divergence since a crawl, a panel per page, the utility of a refresh shaded.

    Args:
        rows: with two indexed metrics of seed 0, at every ``step`` from 0 on.
        path: the picture.
        title: what is drawn.
        step: days.
        curves: the realised curve, and the expected one where it is known.
        utilities: metrics of the utility of both.
        titles: of the panels, by setting and label; a row of panels for each setting.
    """
    occurred, expected = (_drawn(rows, name) for name in curves)
    realised, expected_utility = (_numbers(rows, name) for name in utilities)
    shown = list(dict.fromkeys(key[0] for key in titles if key in occurred))
    labels = list(dict.fromkeys(key[1] for key in titles))
    figure = Figure(figsize=(10.5, 1.0 + 3.6 * len(shown)), layout="constrained")
    grid = figure.subplots(len(shown), len(labels), squeeze=False, sharey="row")
    for line, setting in zip(grid, shown, strict=True):
        for axes, label in zip(line, labels, strict=True):
            curve = occurred[setting, label]
            time = step * np.arange(curve.size)
            shade = {"color": COLOURS[5], "alpha": 0.4, "linewidth": 0, "step": "pre"}
            axes.fill_between(time, curve, curve[-1], **shade)
            text = f"occurred, utility {realised[setting, label]:.2f} days"
            style = {"color": COLOURS[0], "drawstyle": "steps-pre", "linewidth": 1.4}
            axes.plot(time, curve, label=text, **style)
            if (setting, label) in expected:
                text = f"expected (D*), utility {expected_utility[setting, label]:.2f} days"
                style = {"color": COLOURS[1], "linestyle": "--", "linewidth": 1.4}
                axes.plot(time, expected[setting, label], label=text, **style)
            axes.set_title(titles[setting, label], fontsize=10)
            axes.margins(x=0.0)
            axes.set_xlabel("days since the crawl")
            axes.legend(frameon=False, fontsize=8, loc="lower right")
            bare(axes)
        line[0].set_ylabel("divergence (fragment staleness)")
        line[0].set_ylim(bottom=0.0)
    figure.suptitle(
        f"{title}\nshaded: the utility of a refresh now, at the right end, by what occurred",
        fontsize=11,
    )
    save(figure, path)


def frequency_and_longevity(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    axes: tuple[str, str],
    metric: str,
    settings: Sequence[str],
) -> None:
    """Draw a dot per page of seed 0, a panel per setting, with the mean correlation in its title.

    Args:
        rows: with two indexed metrics.
        path: the picture.
        title: what is drawn.
        axes: the metrics, across and upwards.
        metric: the correlation.
        settings: in order.
    """
    across, upwards = (_drawn(rows, name) for name in axes)
    labels = {key[0]: key[1] for key in across}
    shown = [name for name in settings if name in labels]
    figure = Figure(figsize=(1.2 + 3.9 * len(shown), 4.6), layout="constrained")
    summaries = {item.setting: item for item in summarize(rows, metric)}
    for panel, setting in zip(
        figure.subplots(1, len(shown), squeeze=False, sharey=True)[0], shown, strict=True
    ):
        key = (setting, labels[setting])
        # Frequencies are multiples of 1/29: jitter separates the dots.
        aside = np.random.default_rng(0).uniform(-0.012, 0.012, across[key].size)
        count = across[key].size
        style = {"s": 4.0 if count > 500 else 18.0, "alpha": 0.25 if count > 500 else 0.7}
        panel.scatter(across[key] + aside, upwards[key], color=COLOURS[0], linewidths=0, **style)
        name = f"{setting}, {count:,} pages"
        if setting in summaries:
            item = summaries[setting]
            half = item.half_width
            spread = "" if np.isnan(half) else f" ± {half:.3f}"
            name += f"\ncorrelation {item.mean:.3f}{spread} ({item.seeds} runs)"
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("change frequency\n(share of snapshots that differ from the last)")
        panel.set_xlim(-0.03, 1.03)
        panel.set_ylim(0.0, None)
        bare(panel)
    figure.axes[0].set_ylabel("longevity: mean lifetime of fragments (days)")
    figure.suptitle(
        f"{title}\na dot per page of one run, with horizontal jitter; "
        "pages without a lifetime from birth to death are excluded",
        fontsize=11,
    )
    save(figure, path)


def distributions(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    settings: Mapping[str, str],
    labels: Sequence[str],
    curves: tuple[str, str],
    grid: FloatArray,
    unit: str,
    counts: tuple[str, str] | None = None,
) -> None:
    """Draw observations as marks with 95% intervals, and theory as lines, a panel per setting.

    Args:
        rows: with two indexed metrics, shares at each of ``grid``.
        path: the picture.
        title: what is drawn.
        settings: titles of the panels.
        labels: in order.
        curves: metrics of observations and theory.
        grid: abscissae of the shares.
        unit: label of the horizontal axis.
        counts: metrics of the numbers of pages and fragments, for the legend.
    """
    observed, theory = gathered(rows, curves[0]), gathered(rows, curves[1])
    shown = [name for name in settings if any(key[0] == name for key in observed)]
    figure = Figure(figsize=(1.0 + 4.6 * max(len(shown), 1.3), 4.9), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axes, setting in zip(panels, shown, strict=True):
        for place, label in enumerate(labels):
            samples = [value for key, value in observed.items() if key[:2] == (setting, label)]
            if not samples:
                continue
            mean, half = _mean_of(samples)
            line, _ = _mean_of([v for k, v in theory.items() if k[:2] == (setting, label)])
            name = label + _counted(rows, setting, label, counts)
            axes.plot(grid, line, color=COLOURS[place], linewidth=1.4)
            every = max(1, grid.size // 30)
            axes.errorbar(
                grid[::every],
                mean[::every],
                np.nan_to_num(half)[::every],
                fmt=MARKERS[place],
                color=COLOURS[place],
                fillstyle="none",
                markersize=4.5,
                elinewidth=1.0,
                label=name,
            )
        axes.set_title(settings[setting], fontsize=10)
        axes.set_xlabel(unit)
        axes.set_ylim(0.0, 1.02)
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        bare(axes)
    panels[0].set_ylabel("share of fragments that live no longer")
    figure.suptitle(
        f"{title}\nlines: {curves[1]}; marks: {curves[0]}, with 95% intervals where "
        "there are several runs",
        fontsize=11,
    )
    save(figure, path)


def _mean_of(samples: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return means and half-widths of 95% intervals over runs, elementwise."""
    intervals = [mean_and_half_width(column) for column in np.array(samples).T]
    mean, half = np.array(intervals).T
    return mean, half


def _counted(rows: Sequence[Row], setting: str, label: str, counts: tuple[str, str] | None) -> str:
    """Return the mean numbers of pages and fragments as text."""
    if counts is None:
        return ""
    means = [
        np.mean([row.value for row in rows if row[1:3] == (setting, label) and row[4] == name])
        for name in counts
    ]
    return f" ({means[0]:,.0f} pages, {means[1]:,.0f} fragments)"


def means_of_settings(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metric: str,
    label: str,
    labels: Sequence[str] = (),
    line: tuple[float, str] | None = None,
    least: tuple[str, float] | None = None,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw means with 95% intervals, a line for each setting, a mark for each label.

    Args:
        rows: the rows.
        path: the picture.
        title: what is drawn.
        metric: drawn metric.
        label: label of the horizontal axis.
        labels: in order; empty: all.
        line: abscissa of a vertical line, and its label.
        least: a metric, and its least value for a mark to be drawn.
        limits: of the horizontal axis.
    """
    enough = {
        row[1:3] for row in rows if least and row.metric == least[0] and row.value >= least[1]
    }
    summaries = [item for item in summarize(rows, metric) if not least or item[0:2] in enough]
    shown = list(labels) or list(dict.fromkeys(item.policy for item in summaries))
    settings = list(dict.fromkeys(item.setting for item in summaries))[::-1]
    figure = Figure(figsize=(9.0, 1.9 + 0.4 * len(settings)), layout="constrained")
    axes: Any = figure.subplots()
    for place, name in enumerate(shown):
        own = {item.setting: item for item in summaries if item.policy == name}
        height = [settings.index(setting) for setting in own]
        aside = 0.5 * (0.5 - (place + 0.5) / len(shown))
        axes.errorbar(
            [item.mean for item in own.values()],
            np.array(height) + aside,
            xerr=np.nan_to_num([item.half_width for item in own.values()]),
            fmt=MARKERS[place],
            color=COLOURS[place],
            markersize=5.5,
            capsize=2.5,
            label=name if len(shown) > 1 else None,
        )
    if line is not None:
        axes.axvline(line[0], color=LINE_COLOUR, linestyle=":", label=line[1])
    axes.set_yticks(range(len(settings)), settings, fontsize=9)
    axes.set_xlabel(label)
    axes.set_xlim(limits)
    bare(axes)
    figure.suptitle(title, fontsize=11)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
    )
    save(figure, path)
