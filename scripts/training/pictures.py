"""Pictures of learning curves and rankings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from scripts.reporting import charts
from scripts.training.ranking import RankedPolicy

OWN, OTHER = "agent", "policy"


def draw_curve(
    path: Path,
    curves: pd.DataFrame,
    levels: Sequence[RankedPolicy],
    *,
    unit: str,
    title: str,
    measured: str,
) -> None:
    """Draw learning curves, with bands of their intervals, and the levels of other policies.

    Args:
        path: file of the picture.
        curves: ``x``, ``y``, ``half`` and ``label``.
        levels: the other policies.
        unit: label of the horizontal axis.
        title: title of the picture.
        measured: label of the vertical axis.
    """
    dashes = (*charts.DASHES, (0, (5, 1, 1, 1)), (0, (1, 3)))
    rules = [
        charts.Rule(item.mean, item.policy, dash)
        for item, dash in zip(levels, dashes, strict=False)
    ]
    short = curves.label.value_counts().min() < 3
    charts.lines(
        curves,
        path,
        charts.Frame(title, charts.Axis(unit), charts.Axis(measured), across=rules),
        bands=not short,
    )


def draw_ranking(
    path: Path, ranking: Sequence[RankedPolicy], *, agent: str, title: str, measured: str
) -> None:
    """Draw the mean of every policy with its 95% interval, and the difference to the agent."""
    level, ahead = f"{measured}, with 95% intervals", f"{agent} minus each, on the same seeds"
    data = pd.DataFrame(ranking)
    data = data.assign(y=data.policy, label=(data.policy == agent).map({True: OWN, False: OTHER}))
    shown = data.assign(x=data["mean"], half=data.half_width, panel=level)
    apart = data.assign(x=data.difference, half=data.difference_half_width, panel=ahead)
    charts.dots(
        pd.concat([shown, apart[apart.policy != agent]]),
        path,
        charts.Frame(
            title,
            shared="y",
            upright=[charts.Rule(0.0, panel=ahead)],
            legend="none",
        ),
        labels=(OTHER, OWN),
    )
