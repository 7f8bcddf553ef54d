"""The leaderboard as tables for the terminal, a page and pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.table import Table

from crawl_envs.evaluation import Row
from scripts.reporting.intervals import profile
from scripts.reporting.tables import counted
from scripts.suite.details import HEADINGS, Detail
from scripts.suite.entrants import BOUND, BUDGET, FIXED, PLAYED, YOURS
from scripts.suite.scores import OVER, PLAYS, Standing, by_track, matrix
from scripts.suite.tasks import BOUNDS, MEASURED, WINDOW, Task

HEAD = ("", "policy", "kind", "score", "±", "gap", "acting", "tasks", *HEADINGS)
DROPPED = ("kB", "trained", "us", "tenth", "fresh", "gap", "acting", "tasks", "kind")
"""Columns that a narrow terminal does without, one after the other."""
SHOWN = 3
"""Number of entrants that are named for a track."""
BEST, DRAWN = 6, 5
"""Number of entrants in the picture of a track, and of performance profiles."""
TEMPLATES = Path(__file__).with_name("report")
BEST_HEAD = ("track", "first", "second", "third", "also tied")
OWN_HEAD = ("entrant", "track", "place", "score", "±", "behind the first", "±")
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
        kinds: what each entrant is, by label.
        own: labels of the reader's own entrants: those given, and those not shipped.
    """

    name: str
    tasks: Sequence[Task]
    rows: Sequence[Row]
    scores: pd.DataFrame
    ranked: Sequence[Standing]
    details: Mapping[str, Detail]
    kinds: Mapping[str, str]
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
        fixed = mine[[played.kinds.get(policy) in FIXED for policy in mine.index]]
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
            score, kind = item.tracks[track].score, played.kinds.get(item.policy, "")
            told = f"{tie}{played.named(item.policy)} {_number(score.estimate)}"
            half = f" ± {_number(score.half)}" if score.half == score.half else ""
            cells.append(f"{told}{half}{f' ({kind})' if kind else ''}")
        more = sum(item.tracks[track].tied for item in items[SHOWN:])
        rows.append([track, *cells, *[""] * (SHOWN - len(cells)), f"{more} more" if more else ""])
    return rows


def reasons_of(played: Played) -> dict[str, str]:
    """Return why the first of a track leads, by track, where this is known of this suite."""
    found = {}
    for entry in json.loads((TEMPLATES / "reasons.json").read_text("utf-8")):
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
        "0 is random crawling, 1 the bound; ± half of the 95% interval over seeds. README.md "
        "beside the report has the others, and explains all columns."
    )
    shown = [item for item in played.ranked if item.rank is not None or item.policy in played.own]
    rows = [_cells(item, played)[: len(HEAD)] for item in shown]
    widths = {
        column: 3 + max(map(len, (column, *cells)))
        for column, *cells in zip(HEAD, *rows, strict=True)
    }
    for column in DROPPED:
        if 1 + sum(widths.values()) > width:
            del widths[column]
    for column in widths:
        left = column in ("policy", "kind")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for item, row in zip(shown, rows, strict=True):
        cells = [cell for name, cell in zip(HEAD, row, strict=True) if name in widths]
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
        rows.append([name, "all tasks", place, *_cells(mine, played)[3:5], "", ""])
        for track, items in by_track(played.ranked).items():
            if mine in items:
                place = f"{items.index(mine) + 1} of {len(items)}"
                score, behind, _ = mine.tracks[track]
                tie = " =" if mine.tracks[track].tied and mine is not items[0] else ""
                numbers = (score.estimate, score.half, behind.estimate, behind.half)
                rows.append([name, track, place + tie, *map(_number, numbers)])
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


def draw(played: Played, folder: Path) -> None:
    """Draw the best of each track, and the performance profiles of the best in all tasks."""
    from scripts.reporting import charts

    records = []
    for track, items in by_track(played.ranked).items():
        for place, item in enumerate(items):
            if place < BEST or item.policy in played.own:
                kind = YOURS if item.policy in played.own else played.kinds[item.policy]
                records.append((track, played.named(item.policy), *item.tracks[track].score, kind))
    data = pd.DataFrame(records, columns=["panel", "y", "x", "low", "high", "label"])
    ends = min(-0.05, data.low.min() - 0.02), max(1.1, data.high.max() + 0.02)
    frame = charts.Frame(
        f"{played.title}\nthe best {BEST} of each track, 95% intervals over seeds",
        charts.Axis("mean score over the tasks", limits=ends),
        shared="x",
        upright=[charts.Rule(0.0, "random crawling", ":"), charts.Rule(1.0, "bound")],
    )
    charts.dots(data, folder / "ranking.png", frame)
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
    charts.lines(pd.concat(curves), folder / "profiles.png", frame, bands=True)


def page_of(played: Played) -> str:
    """Return the page of the leaderboard."""
    return rendered(
        "leaderboard.md",
        played,
        table=_table,
        best_head=BEST_HEAD,
        head=[*HEAD, *played.ranked[0].tracks],
        board=[_cells(item, played) for item in played.ranked],
        own_head=OWN_HEAD,
        own=own_rows(played),
        over=sorted(set(played.scores[played.scores.state == OVER].policy)),
    )


def rendered(template: str, played: Played, **contents: Any) -> str:
    """Return a file of the folder ``report`` with its contents, which HTML escapes."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters["number"] = _number
    return environment.get_template(template).render(
        played=played,
        best=best_rows(played),
        reasons=reasons_of(played),
        ties=TIES,
        gains=gains_of(played),
        seeds=counted(played.scores.seed.nunique(), "seed"),
        bounds=BOUNDS,
        measured=MEASURED,
        **contents,
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float, digits: int = 3) -> str:
    return "" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def _cells(item: Standing, played: Played) -> list[str]:
    """Return a line of the leaderboard as text; what is of all tasks only for those ranked."""
    overall = (item.score, (item.high - item.low) / 2.0, item.gap)
    tie = " =" if item.tied and item.rank != 1 else ""
    return [
        *(f"{item.rank}{tie}" if item.rank else "", played.named(item.policy)),
        played.kinds.get(item.policy, ""),
        *(_number(value) if item.rank else "" for value in overall),
        *(_number(item.acting), str(item.tasks), *played.details[item.policy].words()),
        *(
            _number(place.score.estimate, 2) if place.tasks else ""
            for place in item.tracks.values()
        ),
    ]
