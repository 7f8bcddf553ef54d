"""Make the leaderboard of a suite: simulate its tasks, score the entrants, write all files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from scripts.present.tables import counted
from scripts.study.entrants import Candidate, candidate_of
from scripts.study.rows import PROVENANCE, write_provenance
from scripts.study.runner import ROWS, Store, opened, play_missing
from scripts.study.specs import describe
from scripts.study.workers import Workers
from scripts.suite.bounds import BOUND, POLICY_BOUNDS, bound_of
from scripts.suite.costs import measure_costs, read_costs
from scripts.suite.entrants import (
    YOURS,
    Entrant,
    entrant_of,
    entrants,
    factory_in,
    settings_of,
)
from scripts.suite.headroom import draw_headroom, headrooms
from scripts.suite.picture import draw
from scripts.suite.protocol import Training, check_worlds
from scripts.suite.report.page import write_page, write_report
from scripts.suite.scores import Leaderboard, leaderboard_of
from scripts.suite.suites import SUITES, holds_out, tasks_of
from scripts.suite.tables import BOARD, tables_of, write_tables

COMMITTED = Path(__file__).parents[2] / "results"
"""Folder of results in the checkout; an installed wheel does not have it."""
REPORT = "report.html"
TRAINING_RUNS = "trainings"
"""Folder of the runs of learners that the command trains."""


def rank_suite(
    name: str,
    names: Sequence[str],
    count: int,
    folder: Path,
    workers: Workers,
    console: Console,
    training: Training,
    *,
    score: bool,
    task_names: Sequence[str],
) -> Store:
    """Simulate the entrants that have no rows yet in a suite's tasks, and write its leaderboard.

    With entrants of the user, the rows of the shipped ones are taken from the committed
    leaderboard, if there is one; ``training.fresh`` then discards the rows of the user's only.

    Entrants are the shipped ones, ``names`` and the learners of ``training``. There are ``count``
    seeds. ``score`` uses the rows and costs in the folder, and simulates and times nothing.
    Without ``task_names``, all tasks of the suite are ranked.

    Raises:
        ValueError: an unknown entrant or task, an entrant of the user that fails, was trained on
            worlds of tests or has more trainings than seeds, stored rows that disagree or do not
            suffice for scores, or no leaderboard with ``score``.
    """
    tasks, yours = tasks_of(name, task_names), [candidate_of(entrant).label for entrant in names]
    candidates = _admitted(name, entrants(names), yours, console)
    descriptions = {label: _described(candidate) for label, candidate in candidates.items()}
    for label in yours:
        _check_seeds(label, len(candidates[label].trainings), count)
    for label in training.names:
        _check_seeds(label, training.repeats, count)
        if label in candidates:
            raise ValueError(f"entrants must have different names, got {label!r} twice")
    if training.names:
        from scripts.suite.learners import train_learners  # it needs torch

        trained = train_learners(tasks, training, folder / TRAINING_RUNS, console)
        for label, (candidates[label], descriptions[label]) in trained.items():
            check_worlds(label, candidates[label].trainings)
    yours += training.names
    about: dict[str, Any] = {}
    if score:
        store, costs, about["costs"] = _scored_before(name, candidates, folder)
        tasks = [task for task in tasks if task.name in store.settings] or tasks
    else:
        settings = settings_of(tasks, candidates, yours, console)
        shared = yours or task_names or not training.fresh
        base = COMMITTED / name / ROWS if shared else None
        store = opened(folder, name, settings, fresh=training.fresh, begin_with=base)
        for setting in settings:
            store.drop(setting.name, setting.refused)
        play_missing(settings, count, store, workers, console)
        costs = measure_costs(candidates, settings, console)
    sites = {task.name for task in tasks if task.variants}
    store.rows = [row for row in store.rows if row.seed < count or row.setting in sites]
    able: dict[str, dict[str, Any]] = {task: {} for task in store.settings}
    with_rows = {(row.setting, row.policy) for row in store.rows}
    for task, described in store.settings.items():
        for label, description in described["labels"].items():
            if label in candidates or (task, label) in with_rows:
                able[task][label] = description
    board = leaderboard_of(name, store.rows, able, descriptions, costs, yours, tasks)
    about |= {"seeds": int(board.scores.seed.nunique()), "runs": store.runs}
    write_provenance(folder / PROVENANCE, "scripts.rank", store.seconds, **about)
    _publish(board, candidates, folder, console)
    return store


def _publish(
    board: Leaderboard, candidates: Mapping[str, Candidate], folder: Path, console: Console
) -> None:
    """Write tables, pictures and pages of a leaderboard, and print its tables."""
    write_tables(board, folder)
    console.print(*tables_of(board, console.width))
    draw(board, folder / "ranking.png")
    draw_headroom(headrooms(board), folder / "headroom.png")
    write_page(board, folder)
    with console.status("the report"):
        write_report(folder / REPORT, board, candidates)


def _check_seeds(label: str, trainings: int, count: int) -> None:
    """Raise ValueError if fewer repetitions than trainings of an entrant would be simulated."""
    if trainings > count:
        raise ValueError(
            f"--seeds must be at least {trainings}, as each of the {trainings} trainings of "
            f"{label} plays its own seeds, got {count}"
        )


def _admitted(
    name: str, candidates: Mapping[str, Candidate], yours: Sequence[str], console: Console
) -> dict[str, Candidate]:
    """Return the entrants of a suite by label, without shipped agents that are not for it.

    Agents of several trainings are not for suites that start fresh, whose shipped entrants never
    change; agents that saw the test worlds of a suite are not for that. Raises ValueError if one
    of ``yours`` did.
    """
    fresh = not any("start" in task.arguments for task in SUITES[name])
    admitted, refused = {}, []
    for label, candidate in candidates.items():
        if fresh and len(candidate.trainings) > 1 and label not in yours:
            continue
        try:
            if holds_out(name):
                check_worlds(label, candidate.trainings)
            admitted[label] = candidate
        except ValueError:
            if label in yours:
                raise
            refused.append(label)
    if refused:
        text = f"left out, as they saw worlds of the tests: the shipped agents {', '.join(refused)}"
        console.print(text, soft_wrap=True, markup=False)
    return admitted


def _described(candidate: Candidate) -> Entrant:
    """Return the description of an entrant."""
    entrant = entrant_of(candidate.label)
    if entrant.kind == YOURS and candidate.trainings:
        count = counted(len(candidate.trainings), "training")
        return entrant._replace(on=f"one for all, {count}")
    return entrant


def _scored_before(
    name: str, candidates: Mapping[str, Candidate], folder: Path
) -> tuple[Store, pd.DataFrame, dict[str, Any]]:
    """Read the rows and costs in a folder, and date, commit and processor of the costs.

    Raises:
        ValueError: a file is missing or damaged, or an entrant has changed since its rows.
    """
    way_out = "the command without --score writes it"
    try:
        costs = read_costs(folder / BOARD)
        origin = json.loads((folder / PROVENANCE).read_text("utf-8"))
        measured = origin.get("costs") or {key: origin[key] for key in ("date", "commit", "cpu")}
    except FileNotFoundError as error:
        reason = f"has no leaderboard to score, as {Path(error.filename).name} is missing"
        raise ValueError(f"{folder} {reason}: {way_out}") from None
    except (AttributeError, KeyError, ValueError):
        text = f"{folder}: {BOARD} or {PROVENANCE} is damaged; {way_out} again"
        raise ValueError(text) from None
    store = Store(folder / ROWS, name, [])
    store.load()
    for task in SUITES[name]:
        bound = partial(bound_of, kind=task.bound, metric=task.metric)
        parts = {label: candidate.in_task(task.name) for label, candidate in candidates.items()}
        factories = {label: part.factory for label, part in parts.items() if part is not None}
        factories |= POLICY_BOUNDS
        every = {label: factory_in(task, factory) for label, factory in factories.items()}
        now = describe({**every, BOUND: bound})
        for label, then in store.settings.get(task.name, {"labels": {}})["labels"].items():
            if now.get(label, then) != then:
                raise ValueError(
                    f"{store.path}: {label} has changed since its rows in {task.name}; the command "
                    "without --score simulates them again"
                )
    return store, costs, measured
