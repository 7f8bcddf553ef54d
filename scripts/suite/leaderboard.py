"""The leaderboard of a suite: its tasks are played and scored, and the results written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.progress import tracked
from crawl_envs.types.files import replacing
from scripts.study.entrants import Candidate, candidate_of
from scripts.study.rows import write_csv, write_provenance
from scripts.study.runner import ROWS, Store, opened, play_missing
from scripts.study.workers import Workers
from scripts.suite.details import Detail, costs_of, kept_costs, with_freshness
from scripts.suite.entrants import TaskSetting, entrants, setting_of
from scripts.suite.kinds import YOURS, entrant_of
from scripts.suite.ranking import draw
from scripts.suite.report.page import write_report
from scripts.suite.report.rendering import page_of
from scripts.suite.scores import Standing, by_track, scores_of, standings
from scripts.suite.tables import Played, table_of, tables_of
from scripts.suite.tasks import SUITES

COMMITTED = Path(__file__).parents[2] / "results"
"""Results of the checkout; a wheel has none."""
BOARD = "leaderboard.csv"
PROVENANCE, REPORT = "provenance.json", "report.html"


def play_suite(
    name: str,
    given: Sequence[str],
    count: int,
    folder: Path,
    workers: Workers,
    console: Console,
    *,
    fresh: bool,
    score: bool = False,
    module: str = "scripts.rank",
) -> Store:
    """Play all tasks of a suite that have no rows yet; one kept unit per entrant must agree.

    With entrants of one's own, the rows of the shipped ones are taken from the committed
    leaderboard, if there is one; ``fresh`` then plays those of one's own anew. With ``score``,
    nothing is played or timed: tables, pictures and report are made of what the folder has.
    ``module`` is the command, for the provenance.

    Raises:
        ValueError: an unknown entrant, one of one's own that fails, kept rows that disagree, rows
            that lack what scores need, or no leaderboard with ``score``.
    """
    candidates, own = entrants(given), [candidate_of(each).label for each in given]
    more: dict[str, Any] = {}
    if score:
        store = Store(folder / ROWS, name, [])
        costs, more["costs"] = _kept(folder)
        store.load()
    else:
        settings = _settings(name, candidates, own, console)
        base = COMMITTED / name / ROWS if given or not fresh else None
        store = opened(folder, name, settings, fresh=fresh, begin_with=base)
        for setting in settings:
            store.drop(setting.name, setting.refused)
        play_missing(settings, count, store, workers, console)
        costs = costs_of(SUITES[name], candidates, settings, console)
    store.rows = [row for row in store.rows if row.seed < count]
    played = _scored(name, store, costs, own)
    publish(played, folder, console)
    more |= {"seeds": int(played.scores.seed.nunique()), "runs": store.runs}
    write_provenance(folder / PROVENANCE, module, store.seconds, **more)
    with console.status("the report"):
        write_report(folder / REPORT, played, candidates)
    return store


def _kept(folder: Path) -> tuple[dict[str, Detail], dict[str, Any]]:
    """Return the costs that the leaderboard of a folder has, and when and where they were measured.

    Raises:
        ValueError: a file is missing or damaged.
    """
    again = "the command without --score makes it"
    for name in (BOARD, PROVENANCE):
        if not (folder / name).exists():
            raise ValueError(f"{folder} has no leaderboard to score, as {name} is missing: {again}")
    try:
        costs = kept_costs(folder / BOARD)
        told = json.loads((folder / PROVENANCE).read_text("utf-8"))
        return costs, told.get("costs") or {key: told[key] for key in ("date", "commit", "cpu")}
    except (AttributeError, KeyError, ValueError):
        said = f"{folder}: {BOARD} or {PROVENANCE} is damaged"
        raise ValueError(f"{said}; {again} anew") from None


def _settings(
    name: str, candidates: Mapping[str, Candidate], own: Sequence[str], console: Console
) -> list[TaskSetting]:
    """Return the tasks with those that can act there; print where one's own cannot, and why.

    Raises:
        ValueError: an entrant of one's own can act nowhere.
    """
    tasks_of_suite = tracked(SUITES[name], "tasks: which entrants can act", console)
    settings = [setting_of(task, candidates) for task in tasks_of_suite]
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
    return settings


def _scored(name: str, store: Store, costs: Mapping[str, Detail], own: Sequence[str]) -> Played:
    able = {task: described["labels"] for task, described in store.settings.items()}
    scores = scores_of(SUITES[name], store.rows, able)
    ranked = standings(scores)
    labels = [item.policy for item in ranked]
    known = {label: entrant_of(label) for label in labels}
    own = list(dict.fromkeys([*own, *(label for label in labels if known[label].kind == YOURS)]))
    details = with_freshness(costs, store.rows, labels)
    return Played(name, SUITES[name], store.rows, scores, ranked, details, known, own)


COLUMNS = ("rank", *Standing._fields[:6], "tasks", *Detail._fields)


def publish(played: Played, folder: Path, console: Console) -> None:
    """Print the leaderboard; write scores, the page and the pictures."""
    tracks = list(played.ranked[0].tracks)
    records = [
        (
            item.rank or "",
            *item[:6],
            item.tasks,
            *_numbers(played.details[item.policy]),
            *(item.tracks[track].score.estimate for track in tracks),
            *played.entrants[item.policy][:2],
        )
        for item in played.ranked
    ]
    write_csv(folder / BOARD, [*COLUMNS, *tracks, "kind", "paper"], records)
    places = [
        (track, item.policy, *item.tracks[track].score, *item.tracks[track].behind[1:])
        for track, items in by_track(played.ranked).items()
        for item in items
    ]
    columns = ["track", "policy", "score", "low", "high", "behind_low", "behind_high"]
    write_csv(folder / "tracks.csv", columns, places)
    by_task = played.scores.groupby(["task", "policy"], sort=False).agg(
        score=("score", "mean"), error=("score", "sem"), state=("state", "first")
    )
    columns = ["task", "policy", "score", "error", "state"]
    write_csv(folder / "scores.csv", columns, by_task.reset_index().itertuples(index=False))
    console.print(*tables_of(played), table_of(played, console.width))
    draw(played, folder / "ranking.png")
    with replacing(folder / "README.md") as unfinished:
        unfinished.write_text(page_of(played, folder), "utf-8")


def _numbers(detail: Detail) -> list[float | str]:
    """Return the details as a file has them, empty where they are not known."""
    return ["" if math.isnan(number) else round(number, 4) for number in detail]
