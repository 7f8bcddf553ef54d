"""The picture of a leaderboard: the best of each track."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from scripts.present import charts
from scripts.suite.kinds import YOURS
from scripts.suite.scores import by_track
from scripts.suite.tables import Played

BEST = 6
"""Number of entrants of a track that are drawn."""


def draw(played: Played, path: Path) -> None:
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
        "own axes, 0 is random crawling and 1 the bound; =: tied with the first on the same events",
        charts.Axis("mean score"),
        shared="none",
    )
    charts.dots(data, path, frame, black=[YOURS])
