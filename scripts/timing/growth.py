"""Cost of a step by numbers of pages and lanes, and the picture of all timings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.timing.parts import PARTS
from scripts.timing.stepped import NCIS, Case, stepping
from scripts.timing.turns import timed

SIZES = (10, 100, 1_000, 10_000, 100_000)
LANES = (1, 4, 16, 64, 256, 1024)
QUICK_SIZES, QUICK_LANES = (10, 100, 1_000), (1, 16)
MOST_CELLS = 2_000_000
"""Largest product of pages and lanes that is timed, to limit memory."""

PASSED, FAILED, PLAIN, INK = "#0072B2", "#D55E00", "#767676", "#222222"
"""Okabe and Ito's colours, safe for colour-blind readers."""


class Cost(NamedTuple):
    """Seconds of an env-step at a number of pages and lanes."""

    pages: int
    lanes: int
    seconds: float


def cells(quick: bool) -> list[tuple[int, int]]:
    """Return the timed pairs (pages, lanes)."""
    sizes, lanes = (QUICK_SIZES, QUICK_LANES) if quick else (SIZES, LANES)
    return [(pages, many) for pages in sizes for many in lanes if pages * many <= MOST_CELLS]


def cost(pages: int, lanes: int, spell: float) -> list[Cost]:
    """Return the cost of a number of pages and lanes: the best of three measurements."""
    arguments = {**NCIS, "num_pages": pages, "bandwidth": float(pages)}
    case = Case("CrawlNCIS", arguments, lanes=lanes)
    seconds = timed({"step": stepping(case)}, 3, spell)["step"]
    return [Cost(pages, lanes, float(seconds.min()) / lanes)]


def draw(path: Path, figures: Sequence[Any], grown: Sequence[Cost]) -> None:
    """Draw ratios with thresholds, the parts of a step of 64 lanes, and the growth, as PNG."""
    from matplotlib.figure import Figure

    from scripts.present.charts import bare, save

    bars = [each for each in figures if each.kind == "ratio"]
    parts = [each for each in figures if each[:2] == ("part", PARTS[0].name)]
    heights = [1.0 + 0.25 * (len(bars) + len({bar.group for bar in bars})), 2.2, 4.0]
    figure = Figure(figsize=(10.0, sum(heights)), layout="constrained")
    panels = figure.subplots(3, 1, height_ratios=heights)
    _draw_ratios(panels[0], bars)
    _draw_parts(panels[1], parts)
    _draw_growth(panels[2], grown)
    for axes in panels:
        bare(axes)
        axes.title.set(fontsize=11, weight="bold", ha="left", x=0.0)
    save(figure, path)


def _draw_ratios(axes: Any, bars: Sequence[Any]) -> None:
    """Draw each ratio as a bar from 1, with its quartiles and its threshold, below its group."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    rows: list[Any] = []
    for bar in bars:
        rows += [bar.group] * (bar.group not in rows) + [bar]
    for row, bar in ((row, bar) for row, bar in enumerate(rows) if not isinstance(bar, str)):
        colour = PLAIN if bar.bound is None else PASSED if bar.median >= bar.bound else FAILED
        axes.barh(row, bar.median - 1.0, 0.62, left=1.0, color=colour)
        axes.plot([bar.low, bar.high], [row, row], color=INK, linewidth=1.5)
        ends, side = (1.0, bar.median, bar.high, bar.bound or 0.0), bar.median >= 1.0
        ratio = f"{bar.median:.1f}" if bar.median >= 0.95 else f"{bar.median:.1g}"
        place = {"va": "center", "ha": "left" if side else "right", "fontsize": 9}
        axes.text(max(ends) if side else bar.low, row, f"  {ratio}x  ", weight="bold", **place)
        if bar.bound is not None:
            axes.plot([bar.bound, bar.bound], [row - 0.4, row + 0.4], color=INK, linewidth=2.5)
    labels = [row if isinstance(row, str) else f"{row.name} / {row.against}" for row in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=9)
    for row, label in zip(rows, axes.get_yticklabels(), strict=True):
        label.set_weight("bold" if isinstance(row, str) else "normal")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    legend = "thick: threshold, thin: quartiles; blue: reached, orange: not reached, grey: none"
    title = "Speed over that of other programs, on one core"
    axes.set(xlabel=f"times as fast (logarithmic scale)\n{legend}", title=title)
    axes.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100])
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.14)


def _draw_parts(axes: Any, parts: Sequence[Any]) -> None:
    """Draw the parts of a step as bars with quartiles, in microseconds."""
    total = sum(part.median for part in parts)
    for row, part in enumerate(parts):
        axes.barh(row, 1e6 * part.median, 0.62, color=PASSED)
        axes.plot([1e6 * part.low, 1e6 * part.high], [row, row], color=INK, linewidth=1.5)
        label = f"  {1e6 * part.median:.1f} µs, {part.median / total:.0%}"
        axes.text(1e6 * max(part.high, 0.0), row, label, va="center", fontsize=9)
    axes.set_yticks(range(len(parts)), [part.name for part in parts], fontsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="microseconds per step of 64 lanes", title="Parts of a step")
    axes.margins(x=0.15)


def _draw_growth(axes: Any, grown: Sequence[Cost]) -> None:
    """Draw the cost of an env-step against pages, a line per number of lanes."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    from scripts.present.charts import style

    lanes = sorted({cost.lanes for cost in grown})
    for rank, many in enumerate(lanes):
        chosen = [cost for cost in grown if cost.lanes == many]
        axes.loglog(
            [cost.pages for cost in chosen],
            [1e9 * cost.seconds for cost in chosen],
            **style(rank),
            label=f"{many:,} lane{'s' * int(many > 1)}",
        )
    axes.set(
        xlabel="pages",
        ylabel="nanoseconds per env-step",
        title="Cost of an env-step by size, best of three",
    )
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.legend(frameon=False, fontsize=9)
