"""Charts of the report as Vega-Lite specifications, without their common style.

Colours are variables of the page's style sheet, which has a light and a dark form. The parameter
``chosen`` is the list of policies that the reader has ticked. A chart with ``usermeta.always``
shows only these and the policies named there; the page fills in its colours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from scripts.study.comparisons import LOWER
from scripts.study.means import means, table
from scripts.suite.bounds import BOUND, BUDGET
from scripts.suite.episodes import KINDS
from scripts.suite.scores import ACTS, Leaderboard, matrix, training_means, trainings_of
from scripts.suite.tasks import Task

Spec = dict[str, Any]
COLOURS = [f"var(--colour-{number})" for number in range(1, 9)]
IS_TICKED = "indexof(chosen, datum.policy) >= 0"
TICKED: Spec = {"name": "chosen", "value": []}
DIGITS = 4
SCORE = "score (0: random, 1: bound)"
ROW = 14
"""Height of a line of a chart, in pixels."""
LEVELS = np.linspace(-0.25, 1.25, 76)
"""Scores at which performance profiles are evaluated."""
MIN_BUDGETS = 3


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values; numbers that are not finite become None."""
    text = table.to_json(orient="records", double_precision=DIGITS) or "[]"
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def _quantity(field: str, title: str | None, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _tips(*fields: str) -> list[Spec]:
    return [
        {"field": field, "format": ".3f"} if field != "policy" else {"field": field}
        for field in fields
    ]


def of_board(board: Leaderboard) -> dict[str, Spec]:
    """Return the charts of a leaderboard, by the id of the page's element that shows the chart."""
    per_page, bound = "crawls per page and unit of time", ["bound"]
    shares = ("score s (0: random, 1: bound)", "share of tasks and seeds above s")
    tracks = [dots(places) for places in board.places.values()]
    profiles = lines(_profiles(board), shares, always=(), measured=False)
    budgets = [
        lines(table, (per_page, title), always=bound) for title, table in _budgets(board).items()
    ]
    playing = training_means(board.scores, trainings_of(board.scores))
    playing = playing[playing.state == ACTS].rename(columns={"score": "value"})
    scores = means(playing, ("task", "policy")).rename(columns={"mean": "score"})
    scores = scores.assign(low=scores.score - scores.half, high=scores.score + scores.half)
    scores = scores.sort_values("score", ascending=False, kind="stable")
    tasks = [dots(scores[scores.task == task.name]) for task in board.tasks]
    return {
        **{f"track-{number}": chart for number, chart in enumerate(tracks)},
        "profiles": profiles,
        **{f"task-{number}": chart for number, chart in enumerate(tasks)},
        **{f"budget-{number}": chart for number, chart in enumerate(budgets)},
    }


def _profiles(board: Leaderboard) -> pd.DataFrame:
    """Return a table of the share ``y`` of tasks and seeds with scores above ``x``, by policy."""
    parts = []
    for policy in board.standings.policy:
        above = (matrix(board.scores, policy)[..., None] > LEVELS).mean(axis=(0, 1))
        parts.append(pd.DataFrame({"policy": policy, "x": LEVELS, "y": above}))
    return pd.concat(parts)


def _budgets(board: Leaderboard) -> dict[str, pd.DataFrame]:
    """Return tables of a metric by crawls per page and policy; keys are titles of the axis.

    Tables have 95% intervals. The tasks of one table differ in their budgets only.
    """
    groups: dict[str, list[Task]] = {}
    for task in board.tasks:
        same = {k: v for k, v in task.arguments.items() if k not in ("bandwidth", "horizon")}
        kind = json.dumps([task.id, task.metric, same, task.most_rounds], sort_keys=True)
        groups.setdefault(kind, []).append(task)
    budgets = {}
    for tasks in groups.values():
        if len(tasks) < MIN_BUDGETS:
            continue
        first = min(tasks, key=lambda task: len(task.name))
        better = "less is better" if first.metric in LOWER else "more is better"
        names = [task.name for task in tasks]
        rows = [row for row in board.rows if row.setting in names]
        crawls = means(table(rows, BUDGET)).set_index("setting")["mean"]
        values = training_means(table(rows, first.metric), trainings_of(board.scores))
        points = means(values).replace({"policy": {BOUND: "bound"}})
        points = points.assign(
            x=points.setting.map(crawls) / float(first.arguments["num_pages"]),
            y=points["mean"],
            low=points["mean"] - points.half,
            high=points["mean"] + points.half,
        )[["policy", "x", "y", "low", "high"]]
        title = f"{first.metric} in {first.name}, {better}"
        budgets[title] = points.sort_values("x", kind="stable")
    return budgets


def dots(scores: pd.DataFrame) -> Spec:
    """Return a chart with a dot and interval per row: columns policy, score, low and high."""
    tinted = {"condition": {"test": IS_TICKED, "value": "var(--accent)"}, "value": "var(--ink)"}
    step = 0.25 if scores.low.min() > -0.3 else 0.5
    ticks = {"values": [step * tick for tick in range(-4, 7)], "format": ".2~f"}
    base = _quantity("low", SCORE, scale={"zero": False}, axis=ticks)
    return {
        "width": "container",
        "height": ROW * len(scores),
        "params": [TICKED],
        "data": {"values": records(scores[["policy", "score", "low", "high"]])},
        "encoding": {
            "y": {"field": "policy", "type": "nominal", "sort": None, "title": None},
            "tooltip": _tips("policy", "score", "low", "high"),
        },
        "layer": [
            *(
                {
                    "data": {"values": [{"at": position}]},
                    "mark": {"type": "rule", "color": "var(--soft)", "strokeDash": [3, 3]},
                    "encoding": {"x": _quantity("at", SCORE), "y": None, "tooltip": None},
                }
                for position in (0, 1)
            ),
            {
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": {"x": base, "x2": {"field": "high"}, "color": tinted},
            },
            {
                "mark": {"type": "circle", "size": 45, "opacity": 1},
                "encoding": {"x": _quantity("score", SCORE), "color": tinted},
            },
        ],
    }


def lines(
    table: pd.DataFrame,
    titles: tuple[str, str],
    *,
    always: Sequence[str],
    measured: bool = True,
) -> Spec:
    """Return a chart with a line per policy: columns policy, x, y and, for intervals, low and high.

    The policies ``always`` are drawn even if they are not ticked. Points that are ``measured`` are
    marked, and are the ticks of a logarithmic axis; others are scores, with ticks at quarters.
    """
    quarters = [0.25 * tick for tick in range(-1, 6)]
    look: Spec = {"scale": {"zero": False, "nice": False}, "axis": {"values": quarters}}
    if measured:
        look["scale"] = {"type": "log", "nice": False, "padding": 8}
        look["axis"] = {"values": sorted(set(table.x)), "format": ".2~g"}
    encoding = {
        "x": _quantity("x", titles[0], **look),
        "y": _quantity("y", titles[1], scale={"zero": False}),
        "color": {
            "field": "policy",
            "type": "nominal",
            "sort": None,
            "title": None,
            "scale": {"range": COLOURS},
        },
        "tooltip": _tips("policy", "x", "y"),
    }
    line = {"type": "line", "strokeWidth": 1.7, "point": {"size": 30} if measured else False}
    layers: list[Spec] = [{"mark": line, "encoding": {}}]
    if "low" in table:
        ends = {"y": _quantity("low", titles[1]), "y2": {"field": "high"}}
        layers.append({"mark": {"type": "rule"}, "encoding": ends})
    return {
        "width": "container",
        "height": 280,
        "data": {"values": records(table)},
        "encoding": encoding,
        "layer": layers,
        "usermeta": {"always": list(always)},
    }


def of_episode(recorded: dict[str, Any]) -> dict[str, Any]:
    """Replace the events of an episode from ``episodes.record`` by a chart per policy."""
    events, num_pages = recorded.pop("events"), len(recorded["weights"])
    items = [_timeline(events, item, num_pages, recorded["end"]) for item in recorded["played"]]
    return {**recorded, "charts": items}


def _timeline(events: Sequence[Spec], episode: Spec, pages: int, end: float) -> Spec:
    """Return a chart of an episode: stale times, changes, signals and crawls of each page."""
    time: Spec = {"type": "quantitative", "title": "time"}
    time["scale"] = {"domain": [0, end], "nice": False}
    past: Spec = {"condition": {"test": "datum.time <= now", "value": 1}, "value": 0.12}
    by_time: Spec = {"x": {**time, "field": "time"}, "opacity": past}
    rows = {"field": "page", "type": "ordinal", "scale": {"domain": list(range(1, pages + 1))}}
    cursor: Spec = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "color": "var(--accent)", "strokeWidth": 1.5},
        "encoding": {"x": {**time, "datum": {"expr": "now"}}, "y": None},
    }
    return {
        "width": "container",
        "height": 16 * pages,
        "params": [{"name": "now", "value": end}],
        "encoding": {"y": {**rows, "title": "page", "axis": {"grid": True}}},
        "layer": [
            _stale(episode["spells"], time),
            _crawled(episode["crawls"], by_time),
            _happened(events, by_time),
            cursor,
        ],
    }


def _stale(spells: Sequence[Spec], time: Spec) -> Spec:
    """Return a chart layer with a bar for each stale period that has begun by ``now``."""
    return {
        "data": {"values": list(spells)},
        "transform": [
            {"filter": "datum.start < now"},
            {"calculate": "min(datum.end, now)", "as": "until"},
        ],
        "mark": {"type": "bar", "color": "var(--stale)", "height": {"band": 0.8}},
        "encoding": {
            "x": {**time, "field": "start"},
            "x2": {"field": "until"},
            "tooltip": [{"field": "page"}, *_tips("start", "end")],
        },
    }


def _crawled(crawls: Sequence[Spec], by_time: Spec) -> Spec:
    """Return a chart layer with a stroke for each crawl."""
    tooltip = [{"field": "page"}, {"field": "changed"}, *_tips("time")]
    return {
        "data": {"values": list(crawls)},
        "mark": {"type": "tick", "color": "var(--crawl)", "thickness": 2.2, "bandSize": 13},
        "encoding": {**by_time, "tooltip": tooltip},
    }


def _happened(events: Sequence[Spec], by_time: Spec) -> Spec:
    """Return a chart layer with a point for each change or signal; its shape shows the kind."""
    ink, hollow = "var(--ink)", "transparent"
    return {
        "data": {"values": list(events)},
        "mark": {"type": "point", "size": 32, "strokeWidth": 1.3},
        "encoding": {
            **by_time,
            "shape": _by_kind("triangle-up", "diamond", "triangle-down"),
            "color": _by_kind(ink, ink, "var(--false)"),
            "fill": _by_kind(ink, hollow, hollow),
            "tooltip": [{"field": "kind"}, {"field": "page"}, *_tips("time")],
        },
    }


def _by_kind(*values: str) -> Spec:
    scale = {"domain": list(KINDS), "range": list(values)}
    return {"field": "kind", "type": "nominal", "scale": scale, "legend": None}
