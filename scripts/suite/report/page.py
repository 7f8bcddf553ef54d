"""The report of a suite as one HTML file, with its charts' code, that loads nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.reporting.means import means, table
from scripts.reporting.rows import replacing
from scripts.suite.details import HEADINGS, Detail
from scripts.suite.entrants import BOUND, BUDGET
from scripts.suite.report import charts, episode, evidence
from scripts.suite.scores import ABSENT, OVER, PLAYS, Standing, matrix
from scripts.suite.tasks import BOUNDS, LOWER, MEASURED, Task
from scripts.training.evaluation import Candidate

HERE = Path(__file__).parent
MOST_CHOSEN = 8
CHOSEN = 3
"""Number of the best that are ticked at first, beside ``BESIDE`` and entrants of one's own."""
BESIDE = ("GreedyNCIS", "Greedy", "RoundRobin")
"""Known policies to compare with."""
BEST = 8
"""Number of the best in the map of pages, beside the same."""
LEVELS = np.linspace(-0.25, 1.25, 76)
FEWEST_BUDGETS = 3


class Played(NamedTuple):
    """A suite that was played.

    Attributes:
        name: name of the suite.
        tasks: its tasks.
        rows: rows of all tasks.
        scores: of :func:`scripts.suite.scores.scores_of`.
        ranked: the leaderboard, best first.
        details: of all entrants, by label.
    """

    name: str
    tasks: Sequence[Task]
    rows: Sequence[Row]
    scores: pd.DataFrame
    ranked: Sequence[Standing]
    details: Mapping[str, Detail]


def write_report(
    path: Path,
    played: Played,
    candidates: Mapping[str, Candidate],
    own: Sequence[str],
    results: Path,
) -> None:
    """Write the report.

    Args:
        path: the file; ``provenance.json`` beside it is quoted.
        played: the suite.
        candidates: its entrants by label, of which some are played once more to record them.
        own: labels of the reader's own entrants.
        results: folder of the results of other commands; what it lacks is left out.
    """
    told = path.parent / "provenance.json"
    recorded = _recorded(played, candidates, own)
    specs = {**_charts(played, results), "pages": charts.heat(recorded.pop("cells"))}
    text = _filled(
        name=played.name,
        ranked=played.ranked,
        details=played.details,
        columns=[(heading, "number") for heading in HEADINGS],
        measured=MEASURED,
        tracks=_tracks(played),
        seeds=played.scores.seed.nunique(),
        sections=_sections(played),
        bounds=BOUNDS,
        papers=evidence.papers(results),
        told=json.loads(told.read_text("utf-8")) if told.exists() else None,
        setting=episode.ARGUMENTS,
        repetitions=episode.REPETITIONS,
        data={
            "chosen": _beside(played, CHOSEN, own)[:MOST_CHOSEN],
            "mostChosen": MOST_CHOSEN,
            "charts": {name: spec for name, spec in specs.items() if spec is not None},
            "episode": recorded,
        },
    )
    with replacing(path) as unfinished:
        unfinished.write_text(text, "utf-8")


def _filled(**contents: Any) -> str:
    """Return the page with its contents, which are escaped, its style and its code."""
    import jinja2
    import vl_convert

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.get_template("page.html").render(
        style=(HERE / "style.css").read_text("utf-8"),
        behaviour=(HERE / "behaviour.js").read_text("utf-8"),
        library=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"),
        **contents,
    )


def _beside(played: Played, best: int, own: Sequence[str]) -> list[str]:
    """Return so many of the best, the reader's own and ``BESIDE``, in the order of their ranks."""
    ranked = [item.policy for item in played.ranked]
    return [label for label in ranked if label in {*ranked[:best], *own, *BESIDE}]


def _tracks(played: Played) -> dict[str, list[str]]:
    """Return the policies that play in any task of a track, by track."""
    acting = played.scores[played.scores.state == PLAYS]
    tracks = dict.fromkeys(task.track for task in played.tasks)
    return {track: sorted(set(acting[acting.track == track].policy)) for track in tracks}


def _charts(played: Played, results: Path) -> dict[str, charts.Spec | None]:
    """Return the charts by the id of their place in the page; None for those without numbers."""
    ranked = pd.DataFrame(
        [(item.policy, item.score, item.low, item.high) for item in played.ranked],
        columns=["policy", "score", "low", "high"],
    )
    per_page, bound = "crawls per page and unit of time", ["bound"]
    grown, accurate = evidence.growth(results), evidence.accuracies(results)
    freshness = (per_page, "accuracy (share of requests served fresh)")
    step = ("pages", "microseconds of a step, per environment")
    return {
        "ranking": charts.dots(ranked),
        "profiles": charts.lines(
            _profiles(played),
            ("score s", "share of tasks and seeds above s"),
            always=(),
            points=False,
        ),
        **{f"task-{number}": charts.dots(item) for number, item in enumerate(_by_task(played))},
        **{
            f"budget-{number}": charts.lines(item, (per_page, title), logarithmic="x", always=bound)
            for number, (title, item) in enumerate(_budgets(played).items())
        },
        "accuracy": charts.lines(accurate, freshness, logarithmic="x") if len(accurate) else None,
        "growth": charts.lines(grown, step, logarithmic="xy") if len(grown) else None,
    }


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


def _sections(played: Played) -> list[dict[str, Any]]:
    """Return what the page says of each task."""
    states = played.scores.groupby(["task", "policy"], sort=False).state.first().reset_index()
    sections = []
    for task, scores in zip(played.tasks, _by_task(played), strict=True):
        mine = states[states.task == task.name]
        sections.append(
            {
                "task": task,
                "best": scores.iloc[0] if len(scores) else None,
                "count": len(scores),
                "absent": list(mine[mine.state == ABSENT].policy),
                "over": list(mine[mine.state == OVER].policy),
            }
        )
    return sections


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


def _recorded(
    played: Played, candidates: Mapping[str, Candidate], own: Sequence[str]
) -> dict[str, Any]:
    """Return the timeline, its charts, and the cells of the map of pages."""
    env = episode.recorder()
    able = [label for label in _beside(played, BEST, own) if label in candidates]
    mapped = {label: candidates[label].factory for label in able}
    cells = episode.by_page(env, mapped)
    shown = {label: candidates[label].factory for label in episode.SHOWN}
    told = episode.timeline(env, shown)
    pages, events = env.instance.num_pages, told.pop("events")
    told["charts"] = [charts.timeline(events, item, pages, told["end"]) for item in told["played"]]
    env.close()
    return {**told, "cells": cells}
