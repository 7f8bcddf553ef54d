"""What the tables of a leaderboard say, for the terminal and its pages."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich.table import Table

from crawl_envs.evaluation import Row
from scripts.present.tables import counted
from scripts.suite.details import HEADINGS, Detail
from scripts.suite.entrants import BOUND, BUDGET, PLAYED
from scripts.suite.kinds import FIXED, Entrant
from scripts.suite.scores import PLAYS, Standing, by_track
from scripts.suite.tasks import WINDOW, Task

HEAD = ("", "policy", "kind", "paper", "score", "95%")
REST = ("gap", "acting", "tasks", *HEADINGS)
"""Columns of the leaderboard before and after those of the tracks."""
TEXTS = ("policy", "kind", "paper")
"""Those that hold no numbers."""
DROPPED = ("kB", "trained", "us", "tenth", "fresh", "gap", "acting", "tasks", "kind", "95%")
"""Columns that a narrow terminal does without, one after the other."""
SHOWN = 3
"""Number of entrants that are named for a track."""
REASONS = Path(__file__).with_name("report") / "reasons.json"
BEST_HEAD = ("track", "first", "second", "third", "also tied")
OWN_HEAD = ("entrant", "track", "place", "score", "95%", "behind the first", "95%")
TRAINING_HEAD = ("agent", "by", "on", "formula", "processor seconds", "command")
TIES = "=: tied with the first, as the 95% interval of the paired difference contains 0"


class Played(NamedTuple):
    """A suite that was played.

    Attributes:
        name: name of the suite.
        tasks: its tasks.
        rows: rows of all tasks.
        scores: of :func:`scripts.suite.scores.scores_of`.
        ranked: the leaderboard.
        details: of all entrants, by label.
        entrants: what each entrant is, by label.
        own: labels of the reader's own entrants: those given, and those not shipped.
    """

    name: str
    tasks: Sequence[Task]
    rows: Sequence[Row]
    scores: pd.DataFrame
    ranked: Sequence[Standing]
    details: Mapping[str, Detail]
    entrants: Mapping[str, Entrant]
    own: Sequence[str]

    @property
    def title(self) -> str:
        """Name, number of tasks and number of seeds."""
        seeds = counted(self.scores.seed.nunique(), "seed")
        return f"{self.name}: {len(self.tasks)} tasks, {seeds}"

    def named(self, policy: str) -> str:
        """Return a label, with an arrow if it is the reader's own."""
        return f"→ {policy}" if policy in self.own else policy


class Gain(NamedTuple):
    """What can be gained in a task: values of its metric, and best scores.

    Attributes:
        random: mean value of random crawling.
        bound: mean value of the bound.
        crawls: crawls per page in an episode, NaN if unknown.
        fixed: entrant that does not learn with the best score, and this; empty and NaN if none.
        best: entrant with the best score, and this.
    """

    random: float
    bound: float
    crawls: float
    fixed: tuple[str, float]
    best: tuple[str, float]


def gains_of(played: Played) -> dict[str, Gain]:
    """Return what can be gained, by task."""
    table = pd.DataFrame(played.rows, columns=list(Row._fields))
    values = table.groupby(["setting", "policy", "metric"]).value.mean()
    acting = played.scores[played.scores.state == PLAYS]
    means = acting.groupby(["task", "policy"]).score.mean()
    gains = {}
    for task in played.tasks:
        mine = means[task.name]
        fixed = mine[[played.entrants[policy].kind in FIXED for policy in mine.index]]
        given, bound = task.arguments, task.bound if task.bound in PLAYED else BOUND
        crawls = values[task.name, BOUND, BUDGET] / given.get("num_pages", math.nan)
        if "days_per_crawl" in given:
            crawls = 1.0 / given["days_per_crawl"]
        gains[task.name] = Gain(
            float(values[task.name, task.random, task.metric]),
            float(values[task.name, bound, task.metric]),
            float(crawls * given.get("horizon", WINDOW)),
            (str(fixed.idxmax()), float(fixed.max())) if len(fixed) else ("", math.nan),
            (str(mine.idxmax()), float(mine.max())),
        )
    return gains


def best_rows(played: Played) -> list[list[str]]:
    """Return the best of each track and, if more are tied with the first, their number."""
    rows = []
    for track, items in by_track(played.ranked).items():
        cells = []
        for place, item in enumerate(items[:SHOWN]):
            tie = "= " if place and item.tracks[track].tied else ""
            score, words = item.tracks[track].score, played.entrants[item.policy].words
            told = [f"{tie}{played.named(item.policy)}", number(score.estimate), ends(score)]
            cells.append(" ".join(filter(None, [*told, f"({words})"])))
        more = sum(item.tracks[track].tied for item in items[SHOWN:])
        rows.append([track, *cells, *[""] * (SHOWN - len(cells)), f"{more} more" if more else ""])
    return rows


def reasons_of(played: Played) -> dict[str, str]:
    """Return why the first of a track leads, by track, where this is known of this suite."""
    found = {}
    for entry in json.loads(REASONS.read_text("utf-8")):
        items = by_track(played.ranked).get(entry["track"], [])
        if entry["suite"] == played.name and items and items[0].policy == entry["first"]:
            scores = {item.policy: item.tracks[entry["track"]].score.estimate for item in items}
            found[entry["track"]] = entry["reason"].format(**scores)
    return found


def table_of(played: Played, width: int) -> Table:
    """Return those that act in all tasks, and the reader's own, for a terminal of some width."""
    title = f"{played.title}: those that act in all tasks"
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.caption = (
        "0 is random crawling, 1 the bound; 95% intervals are over seeds. README.md beside the "
        "report has the others, and explains all columns."
    )
    shown = [item for item in played.ranked if item.rank is not None or item.policy in played.own]
    head, rows = head_of(played), [cells_of(item, played) for item in shown]
    widths = {
        column: 3 + max(map(len, (column, *cells)))
        for column, *cells in zip(head, *rows, strict=True)
    }
    for column in ("paper", *played.ranked[0].tracks, *DROPPED):
        if 1 + sum(widths.values()) > width:
            del widths[column]
    for column in widths:
        table.add_column(column, justify="left" if column in TEXTS else "right", no_wrap=True)
    for item, row in zip(shown, rows, strict=True):
        cells = [cell for name, cell in zip(head, row, strict=True) if name in widths]
        table.add_row(*cells, style="bold" if item.policy in played.own else None)
    return table


def own_rows(played: Played) -> list[list[str]]:
    """Return the places of the reader's own entrants, overall and by track."""
    rows = []
    everywhere = sum(item.rank is not None for item in played.ranked)
    for mine in (item for item in played.ranked if item.policy in played.own):
        name = played.named(mine.policy)
        acts = f"acts in {mine.tasks} of {len(played.tasks)} tasks"
        place = f"{mine.rank} of {everywhere}" if mine.rank else acts
        rows.append([name, "all tasks", place, *cells_of(mine, played)[4:6], "", ""])
        for track, items in by_track(played.ranked).items():
            if mine in items:
                place = f"{items.index(mine) + 1} of {len(items)}"
                score, behind, _ = mine.tracks[track]
                tie = " =" if mine.tracks[track].tied and mine is not items[0] else ""
                numbers = [[number(each.estimate), ends(each)] for each in (score, behind)]
                rows.append([name, track, place + tie, *numbers[0], *numbers[1]])
    return rows


def tables_of(played: Played) -> list[Table]:
    """Return the best of each track, and the places of one's own entrants, for the terminal."""
    tables = []
    for title, head, rows in (
        (f"{played.title}: the best by track", BEST_HEAD, best_rows(played)),
        ("Your entrants", OWN_HEAD, own_rows(played)),
    ):
        table = Table(*head, title=title, title_justify="left", caption=TIES)
        for row in rows:
            table.add_row(*(f"[bold]{cell}[/]" if "→" in cell else cell for cell in row))
        tables += [table] * bool(rows)
    return tables


def training_rows(played: Played) -> list[list[str]]:
    """Return how the trained agents were trained."""
    return [
        [label, *item[4:7], number(played.details[label].training_seconds, 0), item.command]
        for label, item in played.entrants.items()
        if item.by
    ]


def number(value: float, digits: int = 3) -> str:
    """Return a number as text, empty for NaN."""
    return "" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def ends(interval: tuple[float, float, float]) -> str:
    """Return the ends of an interval as text, empty if it has none: a single seed."""
    _, low, high = interval
    return f"[{number(low)}, {number(high)}]" if low == low else ""


def head_of(played: Played) -> list[str]:
    """Return the columns of the leaderboard."""
    return [*HEAD, *played.ranked[0].tracks, *REST]


def cells_of(item: Standing, played: Played) -> list[str]:
    """Return a line of the leaderboard as text; what is of all tasks only for those ranked."""
    entrant, places = played.entrants[item.policy], item.tracks.values()
    tie = " =" if item.tied and item.rank != 1 else ""
    overall = (number(item.score), ends(item[1:4]), number(item.gap))
    score, interval, gap = overall if item.rank else ("", "", "")
    return [
        *(f"{item.rank}{tie}" if item.rank else "", played.named(item.policy)),
        *(entrant.words, entrant.paper, score, interval),
        *(number(place.score.estimate, 2) if place.tasks else "" for place in places),
        *(gap, number(item.acting), str(item.tasks), *played.details[item.policy].words()),
    ]
