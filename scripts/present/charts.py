"""Charts of tables: lines, dots, points, bars, scatter plots and heat maps, in one style.

A table has a row per mark. ``x`` and ``y`` are its position: numbers, or the names of text lines.
``half`` is the half-width of an interval (NaN for none), or ``low`` and ``high`` are its ends.
``label`` sets colour, marker and legend; ``panel`` is the title of the panel.

Colours are the colour-blind safe palette of Okabe and Ito. Lines also differ in their markers.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator, PercentFormatter
from PIL import Image, ImageChops

from crawl_envs.system.files import replacing
from scripts.study.intervals import median_of

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINE_COLOUR = "#000000"
DASHES = ("--", ":", "-.")
ALIKE = ("all", "row", "y")
"""Values of ``shared`` with which panels side by side have the same vertical axis."""
DPI = 130
PALETTES = (32, 64, 128, 256)
"""Numbers of colours to try for a saved picture; a palette makes the file four times smaller."""
MAX_ERROR, MAX_SHARE = 16, 0.002
"""Error of a colour, in levels of 255, that at most this share of the pixels may exceed."""


class Axis(NamedTuple):
    """An axis: its label, scale, limits and ticks, None for automatic ones.

    The scale is ``linear``, ``log``, or ``symlog``, which is linear below ``linear``.
    ``names`` are the texts of the ticks; ``percent`` is the number of decimals of percentages.
    """

    label: str = ""
    scale: str = "linear"
    limits: tuple[float | None, float | None] | None = None
    ticks: Sequence[float] | None = None
    names: Sequence[str] | None = None
    linear: float = 1e-3
    percent: int | None = None


class Rule(NamedTuple):
    """A straight line at ``value`` of an axis, in one panel or all; a label enters the legend.

    ``dash`` is a line style of Matplotlib.
    """

    value: float
    label: str | None = None
    dash: Any = "--"
    panel: str | None = None


class Frame(NamedTuple):
    """Everything around the marks of a chart.

    Attributes:
        title: title of the picture.
        x: horizontal axis, or one by panel.
        y: vertical axis, or one by panel.
        columns: largest number of panels side by side.
        size: width and height of a panel, in inches.
        shared: ``all``, ``row``, ``x``, ``y`` or ``none``: axes that panels share.
        across: horizontal lines, at values of the vertical axis.
        upright: vertical lines, at values of the horizontal axis.
        legend: ``below`` (one for all panels), ``each`` (one per panel, with separate labels and
            styles) or ``none``.
        grid: whether there is a grid.
        diagonal: whether there is a line of equality.
    """

    title: str
    x: Axis | Mapping[str, Axis] = Axis()
    y: Axis | Mapping[str, Axis] = Axis()
    columns: int = 2
    size: tuple[float, float] = (4.8, 3.8)
    shared: str = "all"
    across: Sequence[Rule] = ()
    upright: Sequence[Rule] = ()
    legend: str = "below"
    grid: bool = True
    diagonal: bool = False


def style(position: int, black: bool = False) -> dict[str, Any]:
    """Return colour, marker and dashes of the label at a position; ``black`` is for references."""
    turn = position // len(COLOURS)
    if black:
        marker, colour, dash = "x+."[position % 3], LINE_COLOUR, DASHES[position % 3]
    else:
        marker = MARKERS[position % len(MARKERS)]
        colour, dash = COLOURS[position % len(COLOURS)], ("-", *DASHES)[turn % 4]
    return {"color": colour, "marker": marker, "linestyle": dash, "markersize": 5.0}


def styles(labels: Sequence[str], black: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the colour, marker and dashes of every label."""
    coloured = [label for label in labels if label not in black]
    return {label: style(place) for place, label in enumerate(coloured)} | {
        label: style(place, black=True)
        for place, label in enumerate([label for label in black if label in labels])
    }


@contextmanager
def panels(path: Path, names: Sequence[str], frame: Frame) -> Iterator[dict[str, Axes]]:
    """Yield the axes of each panel, by its title; once they are drawn, write the picture."""
    columns = min(len(names), frame.columns)
    rows = -(-len(names) // columns)
    width, height = frame.size
    if len(names) == 1:
        width, height = 1.45 * width, 1.2 * height
    figure = Figure(figsize=(width * columns, 0.9 + height * rows), layout="constrained")
    share: tuple[bool, Any] = {
        "all": (True, True),
        "row": (False, "row"),
        "x": (True, False),
        "y": (False, True),
    }.get(frame.shared, (False, False))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share[0], sharey=share[1])
    every = dict(zip(names, grid.flat, strict=False))
    yield every
    for place, (name, axes) in enumerate(every.items()):
        _rules(axes, name, frame)
        bare(axes, frame.grid)
        _scale(axes, "x", _axis_of(frame.x, name))
        _scale(axes, "y", _axis_of(frame.y, name))
        if share[0] and place + columns < len(names):
            axes.set_xlabel("")
        axes.tick_params(labelbottom=True)
        if share[1] and place % columns:
            axes.set_ylabel("")
        if len(names) > 1:
            axes.set_title(_wrapped(name, 9.5 * width), fontsize=10)
        if frame.legend == "each":
            placement = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": 3}
            axes.legend(frameon=False, fontsize=8, **placement)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    figure.suptitle(_wrapped(frame.title, 12.0 * columns * width), fontsize=11)
    if frame.legend == "below":
        _legend(figure, columns * width)
    save(figure, path)


def _wrapped(text: str, width: float) -> str:
    """Wrap a text to lines of at most ``width`` characters."""
    lines = [textwrap.wrap(line, max(int(width), 20)) for line in text.splitlines()]
    return "\n".join(line for wrapped in lines for line in wrapped)


def _axis_of(axis: Axis | Mapping[str, Axis], panel: str) -> Axis:
    return axis if isinstance(axis, Axis) else axis[panel]


def _rules(axes: Axes, panel: str, frame: Frame) -> None:
    if frame.diagonal:
        axes.axline((0.0, 0.0), slope=1.0, color=COLOURS[1], linewidth=1.0, zorder=1.5)
    for draw, rules in ((axes.axhline, frame.across), (axes.axvline, frame.upright)):
        for rule in rules:
            if rule.panel in (None, panel):
                draw(
                    rule.value,
                    color=LINE_COLOUR,
                    linestyle=rule.dash,
                    linewidth=1.1,
                    label=rule.label,
                    zorder=1.5,
                )


def _scale(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Set the label, scale, limits and ticks of an axis."""
    getattr(axes, f"set_{which}label")(axis.label, fontsize=9.5)
    if axis.scale != "linear":
        more = {"linthresh": axis.linear} if axis.scale == "symlog" else {}
        getattr(axes, f"set_{which}scale")(axis.scale, **more)
        axes.autoscale(axis=which)  # with margins of this scale
    if axis.ticks is not None:
        side = getattr(axes, f"{which}axis")
        side.set_major_locator(FixedLocator([float(tick) for tick in axis.ticks]))
        side.set_minor_locator(NullLocator())
        names = axis.names or [f"{tick:,g}" if tick < 1e6 else f"{tick:g}" for tick in axis.ticks]
        side.set_major_formatter(FixedFormatter(names))
        if which == "x" and len(axis.ticks) > 6:
            axes.tick_params("x", labelrotation=45)
    if axis.percent is not None and axis.ticks is None:
        getattr(axes, f"{which}axis").set_major_formatter(PercentFormatter(1.0, axis.percent))
    if axis.limits is not None:
        getattr(axes, f"set_{which}lim")(*axis.limits)


def _legend(figure: Figure, width: float) -> None:
    """Write one legend of all labels below the panels, in as many columns as fit."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    if entries:
        longest = max(map(len, entries))
        columns = max(1, min(len(entries), int(width / (0.55 + 0.082 * longest))))
        figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize=9.5,
        )


def bare(axes: Axes, grid: bool = True) -> None:
    """Remove the top and right spines of axes, and add a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(color="#dddddd", linewidth=0.6)


def save(figure: Figure, path: Path) -> None:
    """Write a picture as PNG with a palette; the file appears only when it is complete."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI)
    with replacing(path) as unfinished:
        with_palette(Image.open(drawn)).save(unfinished, "png", optimize=True)


def with_palette(picture: Image.Image) -> Image.Image:
    """Return a picture with the smallest palette that shows its colours, without dithering."""
    cover, plain = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    picture = picture.convert("RGB")
    for colours in PALETTES:
        reduced = picture.quantize(colours, method=cover, kmeans=1, dither=plain)
        error = np.asarray(ImageChops.difference(picture, reduced.convert("RGB"))).max(axis=-1)
        if (error > MAX_ERROR).mean() <= MAX_SHARE:
            break
    return reduced


def _by_panel(data: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Split a table into one part per panel, in the order in which panels first appear."""
    if "panel" not in data or data.empty:
        return {"": data}
    return {str(name): part for name, part in data.groupby("panel", sort=False)}


def _labels(data: pd.DataFrame, labels: Sequence[str]) -> list[str]:
    if "label" not in data:
        return [""]
    return [label for label in labels or dict.fromkeys(data.label) if label in set(data.label)]


def _errors(part: pd.DataFrame, column: str) -> Any:
    """Return the lengths of intervals around a column: (n,), (2, n) for both sides, or None."""
    if "low" in part:
        return np.array([part[column] - part["low"], part["high"] - part[column]])
    half = np.nan_to_num(part["half"]) if "half" in part else np.zeros(len(part))
    return half if half.any() else None


def _labelled(part: pd.DataFrame, label: str) -> pd.DataFrame:
    return part[part.label == label] if "label" in part else part


def lines(
    data: pd.DataFrame,
    path: Path,
    frame: Frame,
    *,
    labels: Sequence[str] = (),
    black: Sequence[str] = (),
    bands: bool = False,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Draw a line with intervals per label, in a panel for each value of ``panel``.

    Args:
        data: ``x`` and ``y``; optional ``half``, ``label`` and ``panel``.
        path: file of the picture.
        frame: everything around the lines.
        labels: labels in order; empty: all.
        black: references among them, drawn black and dashed.
        bands: draw intervals as bands without markers, instead of bars.
        looks: line properties by label, which replace those of the style.
    """
    with panels(path, list(parts := _by_panel(data)), frame) as every:
        for name, part in parts.items():
            drawn_labels = _labels(part if frame.legend == "each" else data, labels)
            defaults = styles(drawn_labels, black)
            for label in drawn_labels:
                line = _labelled(part, label).sort_values("x")
                if line.empty:
                    continue
                look = {**defaults[label], **(looks or {}).get(label, {})}
                _line(every[name], line, look, label, bands)


def _line(axes: Axes, line: pd.DataFrame, look: dict[str, Any], label: str, bands: bool) -> None:
    x, y = line["x"].to_numpy(), line["y"].to_numpy()
    half = _errors(line, "y")
    if bands:
        plain = {key: value for key, value in look.items() if not key.startswith("marker")}
        axes.plot(x, y, **{"linewidth": 1.5, **plain}, label=label or None)
        if half is not None:
            low, high = y - np.atleast_2d(half)[0], y + np.atleast_2d(half)[-1]
            axes.fill_between(x, low, high, color=look["color"], alpha=0.2, linewidth=0)
    else:
        bars = {"linewidth": 1.3, "capsize": 2.5, **look}
        axes.errorbar(x, y, half, **bars, label=label or None)


def dots(
    data: pd.DataFrame,
    path: Path,
    frame: Frame,
    *,
    labels: Sequence[str] = (),
    names: Sequence[str] = (),
    black: Sequence[str] = (),
) -> None:
    """Draw a dot with an interval per text line and label; labels are side by side.

    Args:
        data: ``y`` (the text) and ``x``; optional ``half``, ``label`` and ``panel``.
        path: file of the picture.
        frame: everything around the dots.
        labels: labels in order; empty: all.
        names: texts from the top; empty: all.
        black: references among the labels.
    """
    drawn_labels = _labels(data, labels)
    looks = styles(drawn_labels, black)
    parts = _by_panel(data)
    side_by_side = any(part.y.duplicated().any() for part in parts.values())
    texts = {
        name: _names(data if frame.shared in ALIKE else part, names) for name, part in parts.items()
    }
    max_lines = max(map(len, texts.values()))
    height = max(1.6, 0.55 + max_lines * max(0.24, 0.16 * len(drawn_labels) * side_by_side))
    with panels(path, list(parts), frame._replace(size=(frame.size[0], height))) as every:
        for name, part in parts.items():
            axes, rows = every[name], texts[name]
            for place, label in enumerate(drawn_labels):
                marks = _labelled(part, label)
                marks = marks[marks.y.isin(rows)]
                aside = 0.6 * ((place + 0.5) / len(drawn_labels) - 0.5) if side_by_side else 0.0
                heights = np.array([rows.index(text) for text in marks.y]) + aside
                look = {**looks[label], "linestyle": "none", "capsize": 2.5}
                errors = _errors(marks, "x")
                axes.errorbar(marks.x, heights, xerr=errors, **look, label=label or None)
            _text_lines(axes, rows)


def _names(data: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the distinct text lines of the data; if ``names`` is not empty, in its order."""
    there = dict.fromkeys(data.y)
    return [name for name in names if name in there] if names else list(there)


def _text_lines(axes: Axes, rows: Sequence[str]) -> None:
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)


def points(
    data: pd.DataFrame, path: Path, frame: Frame, *, names: Sequence[str] = (), medians: bool = True
) -> None:
    """Draw the values of each text line as points, with their median and its 95% interval.

    Values beyond the limits of the horizontal axis are arrows at its ends.

    Args:
        data: ``y`` (the text) and ``x``; optional ``panel``.
        path: file of the picture.
        frame: everything around the points.
        names: texts from the top; empty: all.
        medians: whether to draw medians; with fewer than 6 values they have no interval.
    """
    rows = _names(data, names)
    size = (frame.size[0], 0.55 + 0.27 * len(rows))
    with panels(path, list(parts := _by_panel(data)), frame._replace(size=size)) as every:
        for name, part in parts.items():
            axes, limits = every[name], _axis_of(frame.x, name).limits
            for height, text in enumerate(rows):
                values = part[part.y == text].x.to_numpy()
                if values.size == 0:
                    continue
                clipped = np.clip(values, *limits) if limits else values
                look: dict[str, Any] = {"color": COLOURS[0], "markersize": 4.5, "alpha": 0.55}
                for marker, sign in (("o", 0), ("<", 1), (">", -1)):
                    x = clipped[np.sign(clipped - values) == sign]
                    level = np.full(x.size, height - 0.13 * medians)
                    [drawn] = axes.plot(x, level, marker, clip_on=False, mew=0.0, **look)
                    drawn.set_in_layout(False)
                if medians:
                    middle, *ends = median_of(clipped)
                    axes.plot(ends, [height + 0.22] * 2, color=COLOURS[1], linewidth=1.5)
                    axes.plot(middle, height + 0.22, "D", color=COLOURS[1], markersize=4)
            _text_lines(axes, rows)


def bars(
    data: pd.DataFrame,
    path: Path,
    frame: Frame,
    *,
    names: Sequence[str] = (),
    texts: Callable[[float], str] = "{:,.3g}".format,
) -> None:
    """Draw a horizontal bar for each text line, with its value next to it; skip NaN.

    Args:
        data: ``y`` (the text) and ``x``; optional ``half``, ``panel``, and ``text``, which
            replaces ``texts``.
        path: file of the picture.
        frame: everything around the bars.
        names: texts from the top; empty: all.
        texts: function of a value that returns the text next to its bar.
    """
    rows = list(names or dict.fromkeys(data.y))
    size = (frame.size[0], 0.55 + 0.33 * len(rows))
    with panels(path, list(parts := _by_panel(data)), frame._replace(size=size)) as every:
        for place, (name, part) in enumerate(parts.items()):
            axes = every[name]
            heights = [rows.index(text) for text in part.y]
            half = np.nan_to_num(part["half"]) if "half" in part else None
            colour = COLOURS[place % len(COLOURS)]
            axes.barh(heights, np.nan_to_num(part.x), xerr=half, color=colour, height=0.62)
            value_texts = part["text"] if "text" in part else part.x.map(texts)
            for height, x, text in zip(heights, np.nan_to_num(part.x), value_texts, strict=True):
                note = axes.annotate(text, (x, height), (7, 0), textcoords="offset points")
                note.set(fontsize=8.5, va="center")
            _text_lines(axes, rows)
            axes.margins(x=0.2)


def scatter(
    data: pd.DataFrame, path: Path, frame: Frame, *, shade: Axis | None = None, size: float = 3.5
) -> None:
    """Draw a dot for each row of a table, at its ``x`` and ``y``.

    Args:
        data: ``x`` and ``y``; optional ``shade`` and ``panel``.
        path: file of the picture.
        frame: everything around the dots.
        shade: axis of the colour bar of ``shade``; None for dots of one colour.
        size: size of the dots.
    """
    span = (data["shade"].min(), data["shade"].max()) if shade else (0.0, 1.0)
    dots = None
    with panels(path, list(parts := _by_panel(data)), frame) as every:
        for name, part in parts.items():
            axes = every[name]
            look: dict[str, Any] = {"color": COLOURS[0]}
            if shade:
                look = {"c": part["shade"], "cmap": "viridis", "vmin": span[0], "vmax": span[1]}
            dots = axes.scatter(part.x, part.y, s=size, alpha=0.55, linewidths=0.0, **look)
        if shade is not None and dots is not None:
            figure: Any = next(iter(every.values())).figure
            bar = figure.colorbar(dots, ax=list(every.values()), label=shade.label, aspect=40)
            bar.solids.set_alpha(1.0)
            if shade.ticks is not None:
                bar.set_ticks(list(shade.ticks), labels=list(shade.names or shade.ticks))


def _in_order(values: pd.Series[Any]) -> list[Any]:
    """Return distinct values: numbers in increasing order, names in order of first appearance."""
    distinct = list(dict.fromkeys(values))
    return distinct if isinstance(distinct[0], str) else sorted(distinct)


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def heat_map(
    data: pd.DataFrame,
    path: Path,
    frame: Frame,
    *,
    values: str,
    texts: Callable[[float, float], str],
    framed: tuple[float, float] | None = None,
    limits: tuple[float, float],
) -> None:
    """Draw a grid of coloured cells, with a number in each cell.

    Args:
        data: ``x`` and ``y`` (numbers or names), ``value`` and ``half``; optional ``panel``.
        path: file of the picture.
        frame: everything around the grids.
        values: label of the colour bar.
        texts: function of a value and its half-width that returns the text of the cell.
        framed: range of values whose cells get a frame.
        limits: limits of the colours.
    """
    parts = _by_panel(data)
    image = None
    with panels(path, list(parts), frame._replace(legend="none", grid=False)) as every:
        for name, part in parts.items():
            axes = every[name]
            columns, rows = _in_order(part.x), _in_order(part.y)
            grid = part.pivot(index="y", columns="x", values="value").loc[rows, columns]
            image = axes.imshow(
                grid, origin="lower", cmap="cividis", vmin=limits[0], vmax=limits[1], aspect="auto"
            )
            for cell in part.itertuples():
                position = columns.index(cell.x), rows.index(cell.y)
                dark = cell.value < 0.5 * sum(limits)
                shade = "white" if dark else "black"
                text = axes.text(*position, texts(cell.value, cell.half), color=shade, fontsize=8)
                text.set(ha="center", va="center")
                if framed and framed[0] <= cell.value <= framed[1]:
                    edge = Rectangle(
                        (position[0] - 0.47, position[1] - 0.47), 0.94, 0.94, fill=False
                    )
                    edge.set(edgecolor=COLOURS[1], linewidth=2.5)
                    axes.add_patch(edge)
            turned = 45 if isinstance(columns[0], str) else 0
            axes.set_xticks(range(len(columns)), map(_spelled, columns), rotation=turned)
            axes.set_yticks(range(len(rows)), map(_spelled, rows))
        figure: Any = next(iter(every.values())).figure
        figure.colorbar(image, ax=list(every.values()), label=values)
