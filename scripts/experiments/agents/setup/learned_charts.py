"""Pictures of trained agents beside a formula: accuracy, and learned values.

Labels have the same colour and marker in all pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from crawl_envs.evaluation import Row, Summary, summarize
from crawl_envs.types import FloatArray
from scripts.experiments.agents.setup.learned_values import CYCLES, FEW_SIGNALS, FORMULA, SIGNALS
from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, METRIC_UNITS, bare, save
from scripts.reporting.rows import gathered

GREY = "#777777"
GREYS = ("-", "--", "-.", ":")
NEAR = 0.03
"""Largest difference to the reference that the right panel shows."""


def _styles(labels: Sequence[str], reference: str) -> dict[str, dict[str, object]]:
    """Return colours and markers: agents, whose labels contain a space, have colours."""
    agents = [label for label in labels if " " in label]
    others = [label for label in labels if label not in agents and label != reference]
    styles: dict[str, dict[str, object]] = {
        reference: {"color": LINE_COLOUR, "marker": "*", "linestyle": "-"}
    }
    for place, label in enumerate(agents):
        styles[label] = {"color": COLOURS[place], "marker": MARKERS[place], "linestyle": "-"}
    for place, label in enumerate(others):
        styles[label] = {
            "color": GREY,
            "marker": MARKERS[-1 - place % 2],
            "linestyle": GREYS[place % len(GREYS)],
            "fillstyle": "none",
        }
    return styles


def over_sizes(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    sizes: Mapping[str, int],
    horizons: str,
    metric: str,
    reference: str,
) -> None:
    """Draw a metric over the number of pages, and its paired difference to the reference.

    Args:
        rows: of the settings, and of others.
        path: the picture.
        title: its title.
        sizes: the number of pages of each setting.
        horizons: lengths of the episodes, for the title.
        metric: the metric to draw.
        reference: the label to which there are differences.
    """
    summaries = [item for item in summarize(rows, metric, reference) if item.setting in sizes]
    labels = list(dict.fromkeys(item.policy for item in summaries))
    styles = _styles(labels, reference)
    figure = Figure(figsize=(12.5, 5.6), layout="constrained")
    level, close = figure.subplots(1, 2)
    for place, label in enumerate(labels):
        own = [item for item in summaries if item.policy == label]
        shift = 1.025 ** (place - (len(labels) - 1) / 2)
        where = np.array([sizes[item.setting] for item in own]) * shift
        style = {**styles[label], "capsize": 2.5, "linewidth": 1.3, "markersize": 6}
        _bars(level, where, [(item.mean, item.half_width) for item in own], style, label)
        near = [item for item in own if abs(item.difference) <= NEAR]
        apart = [(item.difference, item.difference_half_width) for item in near]
        if near and label != reference:
            _bars(close, np.array([sizes[n.setting] for n in near]) * shift, apart, style, label)
    close.axhline(0.0, color=LINE_COLOUR, linewidth=1.3)
    _finish(level, sizes, f"{metric} ({METRIC_UNITS[metric]})")
    _finish(close, sizes, f"{metric} minus {reference}, same events")
    close.set_title(f"differences up to {NEAR:g}", fontsize=10)
    level.set_title("means", fontsize=10)
    seeds = _seeds_of(summaries, sizes)
    figure.suptitle(
        f"{title}: noisy pages, R = m, {horizons}\n95% Student intervals over seeds ({seeds})",
        fontsize=11,
    )
    handles, names = level.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    save(figure, path)


def _seeds_of(summaries: Sequence[Summary], sizes: Mapping[str, int]) -> str:
    """Return the number of seeds of each size, as text."""
    most = {
        size: max((item.seeds for item in summaries if item.setting == name), default=0)
        for name, size in sizes.items()
    }
    return ", ".join(f"m = {size:,}: {count}" for size, count in most.items() if count)


def _bars(
    axes: Axes,
    where: FloatArray,
    estimates: Sequence[tuple[float, float]],
    style: Mapping[str, object],
    label: str,
) -> None:
    """Draw means with intervals; unknown intervals are left out."""
    middle, half = np.array(estimates, np.float64).reshape(-1, 2).T
    given: dict[str, object] = dict(style)
    axes.errorbar(where, middle, np.nan_to_num(half), label=label, **given)  # type: ignore[arg-type]


def _finish(axes: Axes, sizes: Mapping[str, int], label: str) -> None:
    """Label a panel over numbers of pages."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([float(size) for size in sizes.values()]))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{size:,}" for size in sizes.values()]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("pages m (logarithmic scale)")
    axes.set_ylabel(label)
    bare(axes)


def at_bandwidths(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    settings: Mapping[str, str],
    metric: str,
    reference: str,
) -> None:
    """Draw paired differences to the reference, a panel per bandwidth.

    Args:
        rows: of the settings, and of others.
        path: the picture.
        title: its title.
        settings: the titles of the panels by setting.
        metric: the metric to draw.
        reference: the label to which there are differences.
    """
    summaries = summarize(rows, metric, reference)
    labels = list(dict.fromkeys(item.policy for item in summaries if item.setting in settings))
    labels = [label for label in labels if label != reference]
    styles = _styles(labels, reference)
    size = (3.0 + 3.4 * len(settings), 1.6 + 0.36 * len(labels))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0]
    for axes, (name, heading) in zip(panels, settings.items(), strict=True):
        own = {item.policy: item for item in summaries if item.setting == name}
        for height, label in enumerate(reversed(labels)):
            if label in own:
                item, style = own[label], styles[label]
                bar = np.nan_to_num(item.difference_half_width)
                axes.errorbar(
                    item.difference,
                    height,
                    xerr=bar,
                    fmt=str(style["marker"]),
                    color=str(style["color"]),
                    markersize=6,
                    capsize=3,
                )
                axes.annotate(
                    f"{item.difference:+.4f}",
                    (item.difference, height),
                    (0, 7),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7.5,
                )
        axes.axvline(0.0, color=LINE_COLOUR, linewidth=1.0)
        axes.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=9)
        axes.set_ylim(-0.6, len(labels) - 0.2)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0.15)
        level = f"{reference} {own[reference].mean:.3f}" if reference in own else ""
        axes.set_title(f"{heading}: {level}", fontsize=10)
        bare(axes)
    figure.supxlabel(f"{metric} minus {reference}, same events, 95% intervals", fontsize=10)
    figure.suptitle(f"{title}: scarce, usual and ample budgets", fontsize=11)
    save(figure, path)


def values_of_pages(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw values over elapsed time, a line per number of signals: agents' and the formula's.

    There is a row of panels per agent and a column per page; thin lines are the levels at which
    pages are crawled, medians of the values at crawls.
    """
    values = {label: each for (_, label, _), each in gathered(rows, "value").items()}
    [parameters] = list(gathered(rows, "page").values())
    levels = {row.policy: row.value for row in rows if row.metric == "level" and row.seed == 0}
    pages = parameters.reshape(-1, 4)
    shape = (len(pages), len(SIGNALS), CYCLES.size)
    formula = values[FORMULA].reshape(shape)
    labels = [label for label in values if label != FORMULA]
    figure = Figure(figsize=(3.5 * len(pages), 1.4 + 2.6 * len(labels)), layout="constrained")
    grid = figure.subplots(len(labels), len(pages), squeeze=False, sharex=True, sharey="col")
    for panels, label in zip(grid, labels, strict=True):
        own = values[label].reshape(shape)
        for column, axes in enumerate(panels):
            _lines(axes, own[column], formula[column], (levels[label], levels[FORMULA]))
        panels[0].set_ylabel(label.replace(", ", ",\n"), fontsize=9)
    for axes, page in zip(grid[0], pages, strict=True):
        axes.set_title(
            "importance {:.2f}, changes {:.2f}\nrecall {:.2f}, false signals {:.2f}".format(*page),
            fontsize=9,
        )
    for axes in grid[-1]:
        axes.set_xlabel("elapsed, in units of m / R", fontsize=9)
    figure.suptitle(
        f"{title}: solid, learned values, mapped by one function for all pages; dotted, "
        "V_GREEDY_NCIS;\nhorizontal: the level at which pages are crawled, by each",
        fontsize=11,
    )
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)


def _lines(axes: Axes, own: FloatArray, formula: FloatArray, levels: tuple[float, float]) -> None:
    """Draw a page: (S, A) values of an agent and of the formula, and the levels of both."""
    for place, signals in enumerate(SIGNALS):
        colour = COLOURS[place]
        word = f"{signals} signal" + ("" if signals == 1 else "s")
        axes.plot(CYCLES, own[place], color=colour, linewidth=1.6, label=word)
        axes.plot(CYCLES, formula[place], color=colour, linewidth=1.9, linestyle=":")
    for level, dash in zip(levels, ("-", ":"), strict=True):
        axes.axhline(level, color=LINE_COLOUR, linewidth=0.9, linestyle=dash)
    axes.set_ylim(0.0, 1.2 * float(formula.max()))
    bare(axes)


def crawl_instants(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw for all pages of an instance when values reach the level at which pages are crawled.

    The formula's instant is on the horizontal axis, an agent's on the vertical one, a panel per
    agent and number of signals; levels that are not reached in the table lie at its end.
    """
    end = float(CYCLES[-1])
    instants = {label: each for (_, label, _), each in gathered(rows, "instant").items()}
    size = max(each.size for each in instants.values())
    whole = {label: np.full(size, np.nan) for label in instants}
    for label, each in instants.items():
        whole[label][: each.size] = each
    formula = whole.pop(FORMULA).reshape(-1, len(FEW_SIGNALS))
    figure = Figure(
        figsize=(3.6 * len(whole), 0.8 + 3.4 * len(FEW_SIGNALS)),
        layout="constrained",
    )
    grid = figure.subplots(len(FEW_SIGNALS), len(whole), squeeze=False, sharex=True, sharey=True)
    for place, signals in enumerate(FEW_SIGNALS):
        word = f"{signals} signal" + ("" if signals == 1 else "s")
        for number, (label, flat) in enumerate(whole.items()):
            axes, own = grid[place][number], flat.reshape(-1, len(FEW_SIGNALS))
            axes.plot([0.0, end], [0.0, end], color=LINE_COLOUR, linewidth=0.8)
            axes.plot(
                np.nan_to_num(formula[:, place], nan=end),
                np.nan_to_num(own[:, place], nan=end),
                MARKERS[number],
                color=COLOURS[number],
                markersize=4,
                alpha=0.7,
            )
            axes.set_title(f"{label}\nafter {word}", fontsize=9)
            bare(axes)
    figure.supxlabel(
        "elapsed time at which GREEDY-NCIS would crawl, in units of m / R", fontsize=10
    )
    figure.supylabel("at which the agent would", fontsize=10)
    figure.suptitle(
        f"{title}: a mark per page; at {end:g}: not before; at {CYCLES[0]:g}: at once", fontsize=11
    )
    save(figure, path)
