"""The leaderboard of a suite: its tasks are played and scored, and the results written."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from crawl_envs.types.files import replacing
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.runner import Store, check_kept, run
from scripts.reporting.workers import Workers
from scripts.suite.details import Detail, costs_of, with_freshness
from scripts.suite.entrants import TaskSetting, entrants, setting_of
from scripts.suite.presentation import best_of, draw, page_of, table_of
from scripts.suite.report.page import Played, write_report
from scripts.suite.scores import Standing, scores_of, standings
from scripts.suite.tasks import SUITES, Task
from scripts.training.evaluation import candidate_of

COMMITTED = Path(__file__).parents[2] / "results"
"""Results of the checkout; a wheel has none."""
REPORT = "report.html"


def play_suite(
    name: str,
    given: Sequence[str],
    count: int,
    folder: Path,
    workers: Workers,
    console: Console,
    *,
    fresh: bool,
) -> Store:
    """Play all tasks of a suite that have no rows yet; one kept unit per entrant must agree.

    With entrants of one's own, the rows of the shipped ones are taken from the committed
    leaderboard, if there is one; ``fresh`` then plays those of one's own anew.

    Raises:
        ValueError: an unknown entrant, or kept rows that disagree.
    """
    tasks, candidates = SUITES[name], entrants(given)
    with console.status("which entrants can act in which tasks"):
        settings = [setting_of(task, candidates) for task in tasks]
    own = [candidate_of(each).label for each in given]
    _tell_refusals(own, settings, console)
    path, committed = folder / "rows.parquet", COMMITTED / name / "rows.parquet"
    check_folder(folder)
    store = Store(path, name, settings)
    store.load(keep=not fresh)
    if (given or not fresh) and not store.rows and committed.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(committed, path)
        store.load()
    with console.status("kept rows: one of every entrant is played again"):
        check_kept(settings, count, store)
    run(settings, count, store, workers, console)
    store.rows = [row for row in store.rows if row.seed < count]
    costs = costs_of(tasks, candidates, settings)
    played = publish(name, tasks, store, costs, folder, console)
    with console.status("the report"):
        write_report(folder / REPORT, played, candidates, own, COMMITTED)
    return store


def _tell_refusals(own: Sequence[str], settings: Sequence[TaskSetting], console: Console) -> None:
    """Print where entrants of one's own cannot act, and why; ValueError if one can act nowhere."""
    for label in own:
        tasks: dict[str, list[str]] = {}
        for setting in settings:
            if label in setting.refused:
                tasks.setdefault(setting.refused[label], []).append(setting.name)
        if sum(map(len, tasks.values())) == len(settings):
            raise ValueError(
                f"entrant {label} cannot act in any task of the suite: {next(iter(tasks))}"
            )
        for reason, names in tasks.items():
            said = f"{label} cannot act in {', '.join(names)}: {reason}"
            console.print(said, soft_wrap=True, markup=False)


COLUMNS = ("rank", *Standing._fields[:7], "tasks", *Detail._fields)


def publish(
    name: str,
    tasks: Sequence[Task],
    store: Store,
    costs: Mapping[str, Detail],
    folder: Path,
    console: Console,
) -> Played:
    """Print the leaderboard; write scores, the page and the pictures; return what they show."""
    scores = scores_of(tasks, store.rows)
    ranked = standings(scores)
    details = with_freshness(costs, store.rows, [item.policy for item in ranked])
    tracks = list(dict.fromkeys(task.track for task in tasks))
    before = _ranks(folder / "leaderboard.csv")
    records = [
        (
            place,
            *item[:7],
            item.tasks,
            *_numbers(details[item.policy]),
            *(item.tracks[track] for track in tracks),
        )
        for place, item in enumerate(ranked, 1)
    ]
    write_csv(folder / "leaderboard.csv", [*COLUMNS, *tracks], records)
    by_task = scores.groupby(["task", "policy"], sort=False).agg(
        score=("score", "mean"), error=("score", "sem"), state=("state", "first")
    )
    write_csv(
        folder / "scores.csv",
        ["task", "policy", "score", "error", "state"],
        by_task.reset_index().itertuples(index=False),
    )
    seeds = int(scores.seed.nunique())
    title = f"{name}: {len(tasks)} tasks, {seeds} seeds"
    console.print(table_of(ranked, details, title, console.width))
    console.print(best_of(ranked))
    for line in _changes(before, ranked):
        console.print(line)
    draw(scores, ranked, title, folder)
    page = page_of(name, tasks, ranked, details, scores)
    with replacing(folder / "README.md") as unfinished:
        unfinished.write_text(page, "utf-8")
    more = {"seeds": seeds, "runs": store.runs}
    write_provenance(folder / "provenance.json", "scripts.benchmark", store.seconds, **more)
    return Played(name, tasks, store.rows, scores, ranked, details)


def _numbers(detail: Detail) -> list[float | str]:
    """Return the details as a file has them, empty where they are not known."""
    return ["" if math.isnan(number) else round(number, 4) for number in detail]


def _ranks(path: Path) -> dict[str, int]:
    if not path.exists():
        return {}
    table = pd.read_csv(path)
    return dict(zip(table.policy, table["rank"].astype(int), strict=True))


def _changes(before: Mapping[str, int], ranked: Sequence[Standing]) -> list[str]:
    """Return what changed since the last leaderboard of the folder, as text."""
    lines = []
    for place, item in enumerate(ranked, 1):
        if not before:
            break
        if item.policy not in before:
            lines.append(f"new: {item.policy}, rank {place}")
        elif before[item.policy] != place:
            lines.append(f"{item.policy}: rank {before[item.policy]} -> {place}")
    return lines
