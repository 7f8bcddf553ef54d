"""Draw the picture of a leaderboard: the best entrants of each track."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from scripts.present import charts
from scripts.suite.entrants import YOURS
from scripts.suite.scores import Leaderboard
from scripts.suite.tables import named, title_of

BEST = 6
"""Number of entrants that are drawn per track."""


def draw(board: Leaderboard, path: Path) -> None:
    """Draw the scores of each track's best entrants with intervals, one panel per track."""
    records = []
    for track, places in board.places.items():
        for item in places.itertuples():
            yours = item.policy in board.yours
            if item.Index < BEST or yours:
                kind = YOURS if yours else board.entrants[item.policy].kind
                name = f"{'= ' * (item.Index > 0 and item.tied)}{named(board, item.policy)}"
                records.append((track, name, item.score, item.low, item.high, kind))
    data = pd.DataFrame(records, columns=["panel", "y", "x", "low", "high", "label"])
    frame = charts.Frame(
        f"{title_of(board)}: the best {BEST} of each track, 95% intervals over seeds\n"
        "own axes, 0 is random crawling and 1 the bound; =: tied with the first on the same events",
        charts.Axis("mean score"),
        shared="none",
    )
    charts.dots(data, path, frame, black=[YOURS])
