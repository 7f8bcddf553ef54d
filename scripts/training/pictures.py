"""Pictures of learning curves and rankings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from scripts.reporting.charts import COLOURS, LINE_COLOUR, bare, save
from scripts.training.jobs import LearningCurve
from scripts.training.ranking import RankedPolicy

LINES = ((COLOURS[1], "--"), (COLOURS[2], "-."), (COLOURS[3], ":"), (COLOURS[4], (0, (5, 1, 1, 1))))
"""Colours and line styles of levels."""


def draw_curve(
    path: Path,
    curve: LearningCurve,
    levels: Sequence[RankedPolicy],
    *,
    agent: str,
    title: str,
    measured: str,
) -> None:
    """Draw a learning curve with the levels of other policies.

    Args:
        path: file of the picture.
        curve: learning curve.
        levels: the other policies, at most four.
        agent: label of the agent.
        title: title of the picture.
        measured: label of the vertical axis.
    """
    figure = Figure(figsize=(7.4, 5.0), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(
        curve.after,
        curve.reached,
        color=COLOURS[0],
        marker="o" if len(curve.after) == 1 else None,
        label=f"{agent}, while learning",
    )
    for item, (colour, style) in zip(levels, LINES, strict=False):
        axes.axhline(item.mean, color=colour, linestyle=style, label=item.policy)
    axes.set_xlabel(curve.unit)
    axes.set_ylabel(measured)
    axes.set_title(title, fontsize=11)
    bare(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    save(figure, path)


def draw_ranking(
    path: Path, ranking: Sequence[RankedPolicy], *, agent: str, title: str, measured: str
) -> None:
    """Draw the mean of every policy with its 95% interval, and the difference to the agent."""
    shown = list(reversed(ranking))
    figure = Figure(figsize=(10.5, 1.9 + 0.32 * len(shown)), layout="constrained")
    level, ahead = figure.subplots(1, 2, sharey=True)
    for height, item in enumerate(shown):
        own = item.policy == agent
        style: dict[str, Any] = {
            "fmt": "D" if own else "o",
            "color": COLOURS[1 if own else 0],
            "capsize": 3,
        }
        level.errorbar(item.mean, height, xerr=np.nan_to_num(item.half_width), **style)
        if not own:
            half = np.nan_to_num(item.difference_half_width)
            ahead.errorbar(item.difference, height, xerr=half, **style)
    level.set_yticks(range(len(shown)), [item.policy for item in shown])
    level.set_ylim(-0.6, len(shown) - 0.4)
    level.set_xlabel(f"{measured}, with 95% intervals")
    ahead.axvline(0.0, color=LINE_COLOUR, linestyle="--", linewidth=1.0)
    ahead.set_xlabel(f"{agent} minus each, on the same seeds")
    ahead.tick_params(axis="y", length=0)
    for axes in (level, ahead):
        axes.xaxis.set_major_locator(MaxNLocator(6))
        bare(axes)
    figure.suptitle(title, fontsize=11)
    save(figure, path)
