"""Pictures of page contents over time, divergence of copies, and lifetimes of fragments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.present import charts
from scripts.study.means import entries, means, table
from scripts.study.rows import gathered


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
    frame = charts.Frame(
        f"{title}\na stripe lasts from birth to death; grey: always present; "
        "blue and orange only separate neighbours",
        charts.Axis("time (days)"),
        charts.Axis("fragments, in order of first appearance"),
        shared="none",
    )
    with charts.panels(path, [titles[key] for key in keys], frame) as every:
        for key in keys:
            sides = zip(first[key], birth[key], death[key], size[key], strict=True)
            boxes = [Rectangle((start, low), end - start, tall) for low, start, end, tall in sides]
            end, top = float(death[key].max()), float((first[key] + size[key]).max())
            stays = (birth[key] <= 0.0) & (death[key] >= end)
            other = (np.diff(birth[key]) != 0.0) | (np.diff(death[key]) != 0.0)
            number = np.concatenate(([0], np.cumsum(other)))
            colours = np.where(stays, "#999999", np.where(number % 2, *charts.COLOURS[:2]))
            axes = every[titles[key]]
            axes.add_collection(
                PatchCollection(boxes, facecolor=colours.tolist(), linewidth=0.0, rasterized=True)
            )
            axes.set_xlim(0.0, end)
            axes.set_ylim(0.0, top)


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
    keys = [key for key in titles if key in occurred]
    frame = charts.Frame(
        f"{title}\nshaded: the utility of a refresh now, at the right end, by what occurred",
        charts.Axis("days since the crawl", limits=(0.0, None)),
        charts.Axis("divergence (fragment staleness)", limits=(0.0, None)),
        shared="y",
        legend="each",
    )
    with charts.panels(path, [titles[key] for key in keys], frame) as every:
        for key in keys:
            axes, curve = every[titles[key]], occurred[key]
            time = step * np.arange(curve.size)
            axes.fill_between(
                time, curve, curve[-1], color=charts.COLOURS[5], alpha=0.4, linewidth=0, step="pre"
            )
            text = f"occurred, utility {realised[key]:.2f} days"
            axes.plot(time, curve, color=charts.COLOURS[0], drawstyle="steps-pre", label=text)
            if key in expected:
                text = f"expected (D*), utility {expected_utility[key]:.2f} days"
                axes.plot(time, expected[key], "--", color=charts.COLOURS[1], label=text)


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
    page = ["setting", "policy", "seed", "index"]
    across, upwards = (entries(rows, name).set_index(page)["value"] for name in axes)
    data = pd.DataFrame({"x": across, "y": upwards}).reset_index()
    data = data[(data.seed == 0) & data.setting.isin(list(settings))]
    about = means(table(rows, metric), ("setting",)).set_index("setting")
    titles = {
        name: f"{name}, {count:,} pages: {about['mean'][name]:.3f} ± {about.half[name]:.3f}"
        for name, count in data.setting.value_counts(sort=False).items()
    }
    # Frequencies are multiples of 1/29: jitter separates the dots.
    aside = np.random.default_rng(0).uniform(-0.012, 0.012, len(data))
    charts.scatter(
        data.assign(x=data.x + aside, panel=data.setting.map(titles)),
        path,
        charts.Frame(
            f"{title}, and their correlation over runs\na dot per page of one run, with jitter; "
            "pages without a lifetime from birth to death are excluded",
            charts.Axis("change frequency\n(share of snapshots that differ)", limits=(-0.03, 1.03)),
            charts.Axis("longevity: mean lifetime of fragments (days)", limits=(0.0, None)),
            columns=3,
            size=(3.6, 3.6),
            legend="none",
        ),
        size=8.0,
    )


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
    """
    parts, own = [], {}
    for name in curves:
        part = means(entries(rows, name), ("setting", "policy", "index"))
        part = part[part.setting.isin(list(settings)) & part.policy.isin(list(labels))]
        part = part.assign(x=grid[part["index"]])
        every = 1 if name == curves[1] else max(1, grid.size // 30)
        part = part[part["index"] % every == 0]
        hidden = part.policy if name == curves[0] else "_" + part.policy
        parts.append(part.assign(label=hidden, half=part.half if name == curves[0] else 0.0))
    for place, label in enumerate(labels):
        own[label] = {"linestyle": "none", "fillstyle": "none", "elinewidth": 1.0}
        own[f"_{label}"] = {"color": charts.COLOURS[place], "marker": "", "linestyle": "-"}
    data = pd.concat(parts).rename(columns={"mean": "y"})
    charts.lines(
        data.assign(panel=data.setting.map(settings)),
        path,
        charts.Frame(
            f"{title}\nlines: {curves[1]}; marks: {curves[0]}, with 95% intervals where "
            "there are several runs",
            charts.Axis(unit),
            charts.Axis("share of fragments that live no longer", limits=(0.0, 1.02)),
            columns=3,
            size=(3.8, 3.8),
        ),
        labels=(*labels, *(f"_{label}" for label in labels)),
        own=own,
    )


def means_of_settings(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metric: str,
    label: str,
    labels: Sequence[str] = (),
    line: tuple[float, str] | None = None,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw means with 95% intervals, a line for each setting, a mark for each label.

    Args:
        rows: the rows.
        path: the picture.
        title: what is drawn.
        metric: drawn metric.
        label: label of the horizontal axis.
        labels: in order; empty: the only one, without a legend.
        line: abscissa of a vertical line, and its label.
        limits: of the horizontal axis.
    """
    names = {"setting": "y", "mean": "x"} | ({"policy": "label"} if labels else {})
    charts.dots(
        means(table(rows, metric)).rename(columns=names),
        path,
        charts.Frame(
            title,
            charts.Axis(label, limits=limits),
            upright=[charts.Rule(*line, ":")] if line else (),
        ),
        labels=labels,
    )
