"""The report of a suite as one HTML file, with its charts' code, that loads nothing else."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scripts.study.comparisons import LOWER
from scripts.study.entrants import Candidate
from scripts.study.means import means, table
from scripts.study.rows import replacing
from scripts.suite.entrants import BOUND, BUDGET
from scripts.suite.report import charts, episode
from scripts.suite.report.rendering import TEMPLATES, rendered
from scripts.suite.scores import ABSENT, OVER, PLAYS, by_track, matrix
from scripts.suite.tables import Played
from scripts.suite.tasks import Task

MOST_CHOSEN = 8
BESIDE = ("GreedyNCIS", "Greedy", "RoundRobin")
"""Known policies to compare with."""
LEVELS = np.linspace(-0.25, 1.25, 76)
FEWEST_BUDGETS = 3


def write_report(path: Path, played: Played, candidates: Mapping[str, Candidate]) -> None:
    """Write the report.

    Args:
        path: the file; ``provenance.json`` beside it is quoted.
        played: the suite.
        candidates: its entrants by label, of which some are played once more to record them.
    """
    import vl_convert

    told = path.parent / "provenance.json"
    places = by_track(played.ranked)
    text = rendered(
        "page.html",
        played,
        path.parent,
        style=(TEMPLATES / "style.css").read_text("utf-8"),
        behaviour=(TEMPLATES / "behaviour.js").read_text("utf-8"),
        library=_packed(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")),
        tracks={track: [item.policy for item in items] for track, items in places.items()},
        states=played.scores.groupby(["task", "state"]).policy.unique().to_dict(),
        over=OVER,
        absent=ABSENT,
        told=json.loads(told.read_text("utf-8")) if told.exists() else None,
        setting=episode.ARGUMENTS,
        data={
            "chosen": _chosen(played),
            "mostChosen": MOST_CHOSEN,
            "charts": _charts(played),
            "episode": _recorded(candidates),
        },
    )
    with replacing(path) as unfinished:
        unfinished.write_text(text, "utf-8")


def _packed(code: str) -> str:
    """Return a text as gzip in base64, less than half as long, which browsers since 2023 unpack."""
    return base64.b64encode(gzip.compress(code.encode(), mtime=0)).decode()


def _chosen(played: Played) -> list[str]:
    """Return ``MOST_CHOSEN`` of one's own, ``BESIDE``, and firsts that act in half of the tasks."""
    first = [items[0] for items in by_track(played.ranked).values()]
    best = [item.policy for item in first if 2 * item.tasks >= len(played.tasks)]
    labels = list(dict.fromkeys([*played.own, *BESIDE, *best]))[:MOST_CHOSEN]
    return [item.policy for item in played.ranked if item.policy in labels]


def _charts(played: Played) -> dict[str, charts.Spec]:
    """Return the charts by the id of their place in the page."""
    per_page, bound = "crawls per page and unit of time", ["bound"]
    return {
        **{f"track-{number}": charts.dots(item) for number, item in enumerate(_by_place(played))},
        "profiles": charts.lines(
            _profiles(played),
            ("score s (0: random, 1: bound)", "share of tasks and seeds above s"),
            always=(),
            measured=False,
        ),
        **{f"task-{number}": charts.dots(item) for number, item in enumerate(_by_task(played))},
        **{
            f"budget-{number}": charts.lines(item, (per_page, title), always=bound)
            for number, (title, item) in enumerate(_budgets(played).items())
        },
    }


def _by_place(played: Played) -> list[pd.DataFrame]:
    """Return the mean scores of those that act in a track with their intervals, by track."""
    return [
        pd.DataFrame(
            [(item.policy, *item.tracks[track].score) for item in items],
            columns=["policy", "score", "low", "high"],
        )
        for track, items in by_track(played.ranked).items()
    ]


def _profiles(played: Played) -> pd.DataFrame:
    """Return the share of tasks and seeds above a score, by score and policy."""
    parts = []
    for item in played.ranked:
        above = (matrix(played.scores, item.policy)[..., None] > LEVELS).mean(axis=(0, 1))
        parts.append(pd.DataFrame({"policy": item.policy, "x": LEVELS, "y": above}))
    return pd.concat(parts)


def _by_task(played: Played) -> list[pd.DataFrame]:
    """Return the mean scores of those that play with 95% Student intervals, by task."""
    playing = played.scores[played.scores.state == PLAYS].rename(columns={"score": "value"})
    summary = means(playing, ("task", "policy")).rename(columns={"mean": "score"})
    summary = summary.assign(
        low=summary.score - summary.half, high=summary.score + summary.half
    ).sort_values("score", ascending=False, kind="stable")
    columns = ["policy", "score", "low", "high"]
    return [summary[summary.task == task.name][columns] for task in played.tasks]


def _budgets(played: Played) -> dict[str, pd.DataFrame]:
    """Return the metric by budget and policy, where tasks differ in their budgets only.

    The keys are titles of the vertical axis.
    """
    groups: dict[str, list[Task]] = {}
    for task in played.tasks:
        same = {k: v for k, v in task.arguments.items() if k not in ("bandwidth", "horizon")}
        groups.setdefault(json.dumps([task.id, task.metric, same], sort_keys=True), []).append(task)
    found = {}
    for tasks in groups.values():
        if len(tasks) < FEWEST_BUDGETS:
            continue
        first = min(tasks, key=lambda task: len(task.name))
        better = "less is better" if first.metric in LOWER else "more is better"
        found[f"{first.metric} in {first.name}, {better}"] = _by_budget(tasks, played)
    return found


def _by_budget(tasks: Sequence[Task], played: Played) -> pd.DataFrame:
    """Return the metric of tasks with 95% intervals, by crawls per page and policy."""
    metric = tasks[0].metric
    pages = {task.name: float(task.arguments["num_pages"]) for task in tasks}
    rows = [row for row in played.rows if row.setting in pages]
    budget = means(table(rows, BUDGET)).set_index("setting")["mean"]
    summary = means(table(rows, metric))
    return pd.DataFrame(
        {
            "policy": summary.policy.replace({BOUND: "bound"}),
            "x": summary.setting.map(budget) / summary.setting.map(pages),
            "y": summary["mean"],
            "low": summary["mean"] - summary.half,
            "high": summary["mean"] + summary.half,
        }
    ).sort_values("x", kind="stable")


def _recorded(candidates: Mapping[str, Candidate]) -> dict[str, Any]:
    """Return the timeline and its charts."""
    env = episode.recorder()
    shown = {label: candidates[label].factory for label in episode.SHOWN}
    told = episode.timeline(env, shown)
    pages, events = env.instance.num_pages, told.pop("events")
    told["charts"] = [charts.timeline(events, item, pages, told["end"]) for item in told["played"]]
    env.close()
    return told
