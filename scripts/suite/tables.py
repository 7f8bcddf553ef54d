"""Tables of a leaderboard: CSV files, and texts for the terminal and the pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from rich.table import Table

from crawl_envs.system.files import replacing
from scripts.present.tables import counted
from scripts.suite.costs import COSTS
from scripts.suite.scores import FRESHNESS, Leaderboard, training_means, trainings_of

BOARD = "leaderboard.csv"
STANDING = ("rank", "policy", "score", "low", "high", "gap", "acting", "tasks")
DIGITS: Mapping[str, int] = dict(zip((*FRESHNESS, *COSTS), (3, 3, 0, 0, 0), strict=True))
"""Number of decimals of each metric and cost; they are the last columns of ``REST``."""
HEAD = ("", "policy", "kind", "paper", "score", "95%")
REST = ("gap", "acting", "tasks", "fresh", "tenth", "us", "kB", "trained")
"""Columns of the leaderboard: ``HEAD``, then one column per track, then ``REST``."""
TEXTS = ("policy", "kind", "paper")
"""Columns that contain text and are aligned to the left."""
DROPPED = ("kB", "trained", "us", "tenth", "fresh", "gap", "acting", "tasks", "kind", "95%")
"""Columns that a narrow terminal omits, in this order."""
NUM_PLACES = 3
"""Number of best entrants that are listed per track."""
BEST_HEAD = ("track", "first", "second", "third", "also tied")
YOUR_HEAD = ("entrant", "track", "place", "score", "95%", "behind the first", "95%")
TIES = '"=": tied with the leader (the 95% interval of the paired difference contains 0)'
NO_TIES = "one seed has no intervals and shows no ties"


def write_tables(board: Leaderboard, folder: Path) -> None:
    """Write leaderboard.csv, tracks.csv and scores.csv of a leaderboard to ``folder``."""
    columns = (*STANDING, *DIGITS, *board.places, "kind", "paper")
    ranks = [rank or "" for rank in board.standings["rank"]]
    standings = board.standings[[*columns]].assign(rank=ranks)
    for name in DIGITS:
        standings[name] = ["" if math.isnan(x) else round(x, 4) for x in standings[name]]
    places = pd.concat(board.places, names=["track"]).reset_index("track")
    units = training_means(board.scores, trainings_of(board.scores))
    by_task, by_training = (
        table.groupby(["task", "policy"], sort=False) for table in (board.scores, units)
    )
    by_task = by_task.agg(score=("score", "mean"), state=("state", "first"))
    by_task.insert(1, "error", by_training.score.sem())
    tables = {
        BOARD: standings,
        "tracks.csv": places.drop(columns=["behind", "tied", "tasks"]),
        "scores.csv": by_task.reset_index(),
    }
    for name, table in tables.items():
        with replacing(folder / name) as unfinished:
            table.to_csv(unfinished, index=False, na_rep="nan", lineterminator="\n")


def title_of(board: Leaderboard) -> str:
    """Return a title: the suite's name, its number of tasks, and the number of seeds."""
    seeds = counted(board.scores.seed.nunique(), "seed")
    return f"{board.name}: {counted(len(board.tasks), 'task')}, {seeds}"


def ties_of(board: Leaderboard) -> str:
    """Return what marks a tie, or that a single seed shows none."""
    return TIES if board.scores.seed.nunique() > 1 else NO_TIES


def named(board: Leaderboard, policy: str) -> str:
    """Return the label of an entrant, with an arrow in front if it is the user's."""
    return f"→ {policy}" if policy in board.yours else policy


def best_rows(board: Leaderboard) -> list[list[str]]:
    """Return a row per track: its best entrants, and how many more are tied with the leader."""
    rows = []
    for track, places in board.places.items():
        cells = []
        for item in places[:NUM_PLACES].itertuples():
            tie = "=" if item.Index and item.tied else ""
            texts = tie, named(board, item.policy), number(item.score), ends(item.low, item.high)
            words = f"({board.entrants[item.policy].words})"
            cells.append(" ".join(filter(None, (*texts, words))))
        more = places.tied[NUM_PLACES:].sum()
        cells += [""] * (NUM_PLACES - len(cells))
        rows.append([track, *cells, f"{more} more" if more else ""])
    return rows


def head_of(board: Leaderboard) -> list[str]:
    """Return the headings of the leaderboard's columns."""
    return [*HEAD, *board.places, *REST]


def board_rows(board: Leaderboard) -> list[list[str]]:
    """Return a row of texts per entrant; overall scores are empty for entrants without a rank."""
    rows = []
    for item in board.standings.itertuples():
        entrant = board.entrants[item.policy]
        tie = " =" if item.tied and item.rank != 1 else ""
        overall = (number(item.score), ends(item.low, item.high), number(item.gap))
        score, interval, gap = overall if item.rank else ("", "", "")
        details = [number(getattr(item, name) or math.nan, DIGITS[name]) for name in DIGITS]
        rows.append(
            [
                *(f"{item.rank}{tie}" if item.rank else "", named(board, item.policy)),
                *(entrant.words, entrant.paper, score, interval),
                *(_track_score(places, item.policy) for places in board.places.values()),
                *(gap, number(item.acting), str(item.tasks), *details),
            ]
        )
    return rows


def _track_score(places: pd.DataFrame, policy: str) -> str:
    """Return the score of a policy in a track as text; empty if the policy has no score."""
    return "".join(number(score, 2) for score in places.score[places.policy == policy])


def your_rows(board: Leaderboard) -> list[list[str]]:
    """Return rows with the places and scores of the user's entrants, overall and by track."""
    rows = []
    ranked = board.standings["rank"].notna().sum()
    for item, cells in zip(board.standings.itertuples(), board_rows(board), strict=True):
        if item.policy not in board.yours:
            continue
        acts = f"acts in {item.tasks} of {len(board.tasks)} tasks"
        place = f"{item.rank} of {ranked}" if item.rank else acts
        rows.append([cells[1], "all tasks", place, *cells[4:6], "", ""])
        for track, places in board.places.items():
            for entry in places[places.policy == item.policy].itertuples():
                tie = " =" if entry.tied and entry.Index else ""
                score = [number(entry.score), ends(entry.low, entry.high)]
                behind = [number(entry.behind), ends(entry.behind_low, entry.behind_high)]
                place = f"{entry.Index + 1} of {len(places)}{tie}"
                rows.append([cells[1], track, place, *score, *behind])
    return rows


def tables_of(board: Leaderboard, width: int) -> list[Table]:
    """Return tables for a terminal of ``width`` columns: tracks, your entrants, all entrants."""
    tables = []
    for title, head, rows in (
        (f"{title_of(board)}: the best by track", BEST_HEAD, best_rows(board)),
        ("Your entrants", YOUR_HEAD, your_rows(board)),
    ):
        table = Table(*head, title=title, title_justify="left", caption=ties_of(board))
        for row in rows:
            table.add_row(*(f"[bold]{cell}[/]" if "→" in cell else cell for cell in row))
        tables += [table] * bool(rows)
    return [*tables, table_of(board, width)]


def table_of(board: Leaderboard, width: int) -> Table:
    """Return a table, ``width`` columns wide: entrants of all tasks, and the user's entrants."""
    title = f"{title_of(board)}: entrants that act in all tasks"
    table = Table(title=title, title_justify="left", caption_justify="left")
    intervals = "95% intervals are over seeds" if ties_of(board) == TIES else NO_TIES
    table.caption = (
        f"0 is random crawling, 1 the bound; {intervals}. README.md in the same folder has all "
        "entrants and explains the columns."
    )
    head, ranks = head_of(board), board.standings["rank"].notna()
    yours = board.standings.policy.isin(board.yours)
    lines = zip(board_rows(board), yours, ranks | yours, strict=True)
    rows = [(cells, bold) for cells, bold, listed in lines if listed]
    widths = {
        column: 3 + max(map(len, (column, *cells)))
        for column, *cells in zip(head, *(cells for cells, _ in rows), strict=True)
    }
    for column in ("paper", *board.places, *DROPPED):
        if 1 + sum(widths.values()) > width:
            del widths[column]
    for column in widths:
        table.add_column(column, justify="left" if column in TEXTS else "right", no_wrap=True)
    for cells, bold in rows:
        texts = [cell for name, cell in zip(head, cells, strict=True) if name in widths]
        table.add_row(*texts, style="bold" if bold else None)
    return table


def number(value: float, digits: int = 3) -> str:
    """Return a number as text with ``digits`` decimals; empty for NaN."""
    return "" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def ends(low: float, high: float) -> str:
    """Return an interval as text, ``[low, high]``; empty if its ends are NaN (a single seed)."""
    return "" if math.isnan(low) else f"[{number(low)}, {number(high)}]"
