"""The pictures of a leaderboard: the best of each track, and performance profiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from scripts.reporting import charts
from scripts.reporting.intervals import profile
from scripts.suite.kinds import YOURS
from scripts.suite.scores import by_track, matrix
from scripts.suite.tables import Played

BEST, DRAWN = 6, 5
"""Number of entrants in the picture of a track, and of performance profiles."""


def draw_ranking(played: Played, path: Path) -> None:
    """Draw the best of each track with intervals; each track has its own axis."""
    records = []
    for track, items in by_track(played.ranked).items():
        for place, item in enumerate(items):
            if place < BEST or item.policy in played.own:
                kind = YOURS if item.policy in played.own else played.entrants[item.policy].kind
                tie = "= " if place and item.tracks[track].tied else ""
                name = tie + played.named(item.policy)
                records.append((track, name, *item.tracks[track].score, kind))
    data = pd.DataFrame(records, columns=["panel", "y", "x", "low", "high", "label"])
    frame = charts.Frame(
        f"{played.title}: the best {BEST} of each track, 95% intervals over seeds\n"
        "each track has its own axis; =: tied with the first on the same events",
        charts.Axis("mean score (0: random crawling, 1: the bound)"),
        shared="none",
    )
    charts.dots(data, path, frame, black=[YOURS])


def draw_profiles(played: Played, path: Path) -> None:
    """Draw the performance profiles of the best in all tasks, if any act there."""
    levels = np.linspace(-0.25, 1.25, 151)
    curves = []
    for item in [item for item in played.ranked if item.rank is not None][:DRAWN]:
        share, low, high = profile(matrix(played.scores, item.policy), levels)
        curve = {"x": levels, "y": share, "low": low, "high": high}
        curves.append(pd.DataFrame({**curve, "label": played.named(item.policy)}))
    if not curves:
        return
    frame = charts.Frame(
        f"{played.title}\nthe best {len(curves)} of those that act in all tasks, 95% bands",
        charts.Axis("score s"),
        charts.Axis("share of tasks and seeds above s", limits=(-0.02, 1.02)),
        size=(6.4, 4.2),
        upright=[charts.Rule(0.0, "random crawling", ":"), charts.Rule(1.0, "bound")],
    )
    charts.lines(pd.concat(curves), path, frame, bands=True)
