from __future__ import annotations

import importlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import policies
from agents.catalog import SHIPPED
from crawl_envs.evaluation import make_env
from crawl_envs.system.worker_processes import pool
from policies import solvers
from scripts.rank import app
from scripts.study import workers
from scripts.study.entrants import Candidate, candidate_of
from scripts.study.rows import read_rows, write_rows
from scripts.study.runner import Store
from scripts.suite import leaderboard, tasks
from scripts.suite.bounds import BOUND, BUDGET, bound_of
from scripts.suite.costs import COSTS
from scripts.suite.entrants import YOURS, Entrant, entrants, setting_of
from scripts.suite.episodes import least_served
from scripts.suite.report.page import REASONS
from scripts.suite.scores import FRESHNESS, PLACE, Leaderboard
from scripts.suite.tables import STANDING, table_of, tables_of
from tests.scripts.commands import done, refused, run

RESULTS = Path(__file__).parents[3] / "results"
OWN = "scripts_suite_own:Eager"
SOURCE = """
import policies

class Eager(policies.GreedyNCIS):
    name = "Eager"
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make a suite of two small tasks and a policy of one's own."""
    pages = {"num_pages": 10, "bandwidth": 10.0, "horizon": 2.0, "instance": "noisy"}
    page = tasks.Task("noisy", "known", tasks.NCIS, pages)
    scores = tasks.Task("scores", "known", tasks.NCIS, {**pages, "action": "scores", "batch": 5})
    monkeypatch.setitem(leaderboard.SUITES, "small", (page, scores))
    monkeypatch.setattr(leaderboard, "COMMITTED", tmp_path / "committed")
    (tmp_path / "scripts_suite_own.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("scripts_suite_own", None)


@pytest.fixture
def quick(small: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have few shipped entrants, and no report."""
    monkeypatch.setattr(leaderboard, "entrants", few)
    monkeypatch.setattr(leaderboard, "write_report", lambda *_: None)
    return small


def ranked(*words: str) -> tuple[str, pd.DataFrame]:
    given = ["small", "--seeds", "2", "--backend", "local", *words]
    result = done(run(app, *given))
    return result.output, pd.read_csv("runs/small/leaderboard.csv")


def test_a_leaderboard_is_played_and_goes_on_with_a_policy_of_ones_own(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "entrants", lambda given: few(["Greedy", *given]))
    _, before = ranked()
    (small / "committed").mkdir()
    (small / "runs" / "small").rename(small / "committed" / "small")
    output, after = ranked("--policies", OWN)
    assert {*after.policy} - {*before.policy} == {OWN}
    own, theirs = (after.set_index("policy").loc[name] for name in (OWN, "GreedyNCIS"))
    assert own.score == theirs.score
    assert own.tasks == 2
    assert own.microseconds > 0.0
    assert 0.0 < own.kilobytes < 1e3
    assert 0.0 < own.least_served < own.freshness < 1.0
    assert own.least_served == theirs.least_served
    assert own.training_seconds == 0.0
    _, kept = ranked("--policies", "RoundRobin")
    assert np.isnan(kept.set_index("policy").microseconds[OWN])
    assert kept.set_index("policy").least_served[OWN] == own.least_served
    assert f"→ {OWN}" in output
    assert "Your entrants" in output
    assert {"README.md", "ranking.png", "scores.csv", "provenance.json"} <= {
        path.name for path in (small / "runs" / "small").iterdir()
    }
    assert OWN in (small / "runs" / "small" / "report.html").read_text("utf-8")
    assert output.splitlines()[-1] == "runs/small/report.html"
    assert OWN in (small / "runs" / "small" / "README.md").read_text("utf-8")
    assert "GreedyNCIS" in output


def test_what_is_there_is_scored_anew_without_playing(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked()
    folder = quick / "runs" / "small"
    names = ("leaderboard.csv", "scores.csv", "tracks.csv", "README.md", "provenance.json")
    before = {name: (folder / name).read_text("utf-8") for name in names}
    for name in ("opened", "play_missing", "settings_of", "measure_costs"):
        monkeypatch.setattr(leaderboard, name, None)
    for _ in range(2):
        ranked("--score")
        for name in names[:-1]:
            assert (folder / name).read_text("utf-8") == before[name], name
        old, new = (
            json.loads(before["provenance.json"]),
            json.loads((folder / "provenance.json").read_text("utf-8")),
        )
        assert new["costs"] == {name: old[name] for name in ("date", "commit", "cpu")}
        assert new["runs"] == old["runs"]


def test_ones_own_is_marked_though_it_is_not_given_again(quick: Path) -> None:
    assert f"→ {OWN}" in ranked("--policies", OWN)[0]
    output, _ = ranked("--score")
    assert f"→ {OWN}" in output
    assert "→ GreedyNCIS" not in output
    assert "2 tasks, 2 seeds" in output
    output, _ = ranked("--score", "--seeds", "1")
    assert "2 tasks, 1 seed:" in output
    assert "1 seed each" in (quick / "runs" / "small" / "README.md").read_text("utf-8")


CANNOT_BE_SCORED = (
    ("leaderboard.csv", None, "as leaderboard.csv is missing: the command without --score"),
    ("leaderboard.csv", "", "leaderboard.csv or provenance.json is damaged"),
    ("leaderboard.csv", "policy,score\nA,1\n", "leaderboard.csv or provenance.json is damaged"),
    ("provenance.json", None, "as provenance.json is missing: the command without --score"),
    ("provenance.json", "{", "leaderboard.csv or provenance.json is damaged"),
    ("provenance.json", "{}", "leaderboard.csv or provenance.json is damaged"),
    ("provenance.json", "[]", "leaderboard.csv or provenance.json is damaged"),
    (
        "rows.parquet",
        None,
        "task noisy, bound, seed 0 must have rows, got none; the command without --score",
    ),
    ("rows.parquet", "", "rows.parquet must be a complete Parquet file; delete it to start over"),
)


def test_a_folder_that_cannot_be_scored_gets_one_line(quick: Path) -> None:
    ranked()
    for name, text, message in CANNOT_BE_SCORED:
        file = quick / "runs" / "small" / name
        before = file.read_bytes()
        file.unlink()
        if text is not None:
            file.write_text(text)
        refused(run(app, "small", "--seeds", 2, "--score"), message)
        file.write_bytes(before)


def test_rows_of_another_version_are_not_scored(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound whose declared version rises, and a policy whose file changes."""
    ranked("--policies", OWN)
    ranked("--policies", OWN, "--score")
    given = ["small", "--seeds", 2, "--score", "--policies", OWN]
    monkeypatch.setitem(bound_of.spec, "version", 2)  # type: ignore[attr-defined]
    refused(run(app, *given), "bound has changed since its rows in noisy", "--score")
    monkeypatch.setitem(bound_of.spec, "version", 1)  # type: ignore[attr-defined]
    (quick / "scripts_suite_own.py").write_text(SOURCE + "\n\n")
    sys.modules.pop("scripts_suite_own")
    refused(run(app, *given), f"{OWN} has changed since its rows in noisy", "--score")


def test_an_entrant_that_has_lost_its_rows_of_a_task_is_named(quick: Path) -> None:
    ranked()
    path = quick / "runs" / "small" / "rows.parquet"
    rows, about = read_rows(path)
    write_rows(path, [row for row in rows if row[1:3] != ("scores", "GreedyNCIS")], about)
    refused(
        run(app, "small", "--seeds", "2", "--score"),
        "task scores, GreedyNCIS, seed 0 must have rows, got none; the command without --score",
        "--fresh",
    )


def test_a_policy_of_ones_own_that_changed_is_played_anew(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "entrants", lambda given: few(["RoundRobin", *given]))
    _, before = ranked("--policies", OWN)
    source = quick / "scripts_suite_own.py"
    source.write_text(SOURCE.replace("GreedyNCIS", "RoundRobin"))
    sys.modules.pop("scripts_suite_own")
    output, after = ranked("--policies", OWN)
    assert f"{OWN} has changed: its rows are simulated again" in output
    old, new, same = (table.set_index("policy").score for table in (before, after, after))
    assert old[OWN] == old["GreedyNCIS"] != old["RoundRobin"]
    assert new[OWN] == new["RoundRobin"]
    others = [name for name in old.index if name != OWN]
    assert (old[others] == same[others]).all()
    again, _ = ranked("--policies", OWN)
    assert "has changed" not in again


REFUSING = """
import policies

class Eager(policies.GreedyNCIS):
    def _index(self, problem):
        if len(problem.importance) < 99:
            {slip}
        return super()._index(problem)
"""


def test_it_says_where_a_policy_of_ones_own_cannot_act_and_why(quick: Path) -> None:
    page, scores = leaderboard.SUITES["small"]
    large = replace(scores, arguments={**scores.arguments, "num_pages": 100})
    leaderboard.SUITES["small"] = (page, large)  # type: ignore[index]
    source = quick / "scripts_suite_own.py"
    source.write_text(REFUSING.format(slip="raise ValueError('too few pages for me')"))
    output, table = ranked("--policies", OWN)
    assert f"{OWN} cannot act in noisy: too few pages for me" in output
    assert table.set_index("policy").tasks[OWN] == 1
    leaderboard.SUITES["small"] = (page,)  # type: ignore[index]
    given = ["small", "--seeds", "2", "--backend", "local", "--policies", OWN]
    refused(
        run(app, *given, "--out", "nowhere"),
        "cannot act in any task of the suite: too few pages for me",
    )
    source.write_text(REFUSING.format(slip="raise SystemExit"))
    sys.modules.pop("scripts_suite_own")
    refused(run(app, *given, out="nowhere"), f"{OWN} in CrawlNCIS-v0 failed: SystemExit")
    source.write_text(REFUSING.format(slip="{}['typo']"))
    sys.modules.pop("scripts_suite_own")
    result = run(app, *given, out="nowhere")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: task noisy, first choice: {OWN} in CrawlNCIS-v0 failed: KeyError: 'typo' "
        "(scripts_suite_own.py, line 7)\n"
    )
    assert not Path("nowhere").exists()


FAILING = """
import policies

class Eager(policies.RoundRobin):
    seeds = 0

    def __init__(self):
        super().__init__()
        Eager.seeds += 1
        if Eager.seeds > 3:
            self.fail()

    def fail(self):
        raise {error}
"""


@pytest.mark.parametrize(
    ("error", "given"),
    [
        ("ValueError('two\\nlines')", ["--backend", "local"]),
        ("ZeroDivisionError", ["--workers", "2"]),
        ("SystemExit", ["--backend", "local"]),
    ],
)
def test_a_policy_of_ones_own_that_fails_ends_the_suite_with_one_line(
    small: Path, error: str, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "entrants", few)
    monkeypatch.setattr(workers, "pool", lambda count: pool(1))
    monkeypatch.setenv("PYTHONPATH", str(small), prepend=os.pathsep)
    (small / "scripts_suite_own.py").write_text(FAILING.format(error=error))
    result = run(app, "small", "--seeds", "9", *given, "--policies", OWN)
    assert result.exit_code == 2
    told = "ValueError: two lines" if "two" in error else f"{error}: "
    assert re.fullmatch(
        rf"error: {OWN} in (noisy|scores), seed \d failed: {told.strip()} "
        r"\(scripts_suite_own.py, line 14\); runs/small has the rows so far\n",
        result.stderr,
    ), result.stderr
    assert read_rows(small / "runs" / "small" / "rows.parquet")[0]


REPAIRED = """
import policies

class Eager(policies.GreedyNCIS):
    def check(self):
        if self.form.action == "scores":
            raise ValueError("pages alone")
        super().check()
"""


def test_a_policy_that_failed_is_ranked_once_it_is_repaired(quick: Path) -> None:
    source = quick / "scripts_suite_own.py"
    source.write_text(FAILING.format(error="ValueError('not yet')"))
    given = ["small", "--seeds", "2", "--backend", "local", "--policies", OWN]
    refused(run(app, *given), "not yet", "has the rows so far")
    kept = read_rows(quick / "runs" / "small" / "rows.parquet")[0]
    refused(run(app, *given[:-2], "--score", "--out", "runs/small"), "no leaderboard to score")
    for wanted in (True, False):
        source.write_text(REPAIRED)
        sys.modules.pop("scripts_suite_own", None)
        output, table = ranked("--policies", OWN)
        assert (f"{OWN} has changed: its rows are simulated again" in output) == wanted
        assert f"{OWN} cannot act in scores: pages alone (scripts_suite_own.py, line 7)" in output
        mine = table.set_index("policy").loc[OWN]
        assert mine.tasks == 1
        rows = read_rows(quick / "runs" / "small" / "rows.parquet")[0]
        assert {*rows} > {row for row in kept if row.policy != OWN}
        assert {row.setting for row in rows if row.policy == OWN} == {"noisy"}


def test_a_task_that_an_own_policy_refuses_since_is_not_scored_by_old_rows(quick: Path) -> None:
    helper = quick / "scripts_suite_helper.py"
    helper.write_text("LIMIT = 10")
    (quick / "scripts_suite_own.py").write_text(
        SOURCE
        + """
    def check(self):
        import scripts_suite_helper
        if self.form.batch > scripts_suite_helper.LIMIT:
            raise ValueError("large batch")
        super().check()
"""
    )
    _, table = ranked("--policies", OWN)
    assert table.set_index("policy").tasks[OWN] == 2
    helper.write_text("LIMIT = 1")
    sys.modules.pop("scripts_suite_helper")
    importlib.invalidate_caches()
    output, table = ranked("--policies", OWN)
    sys.modules.pop("scripts_suite_helper")
    assert f"{OWN} cannot act in scores: large batch" in output
    assert table.set_index("policy").tasks[OWN] == 1


def test_an_action_of_another_form_ends_the_suite_before_it_begins(quick: Path) -> None:
    (quick / "scripts_suite_own.py").write_text(
        "class Eager:\n"
        "    def __init__(self, env): pass\n"
        "    def predict(self, *_, **__): return 3, None\n"
    )
    given = ["small", "--seeds", "2", "--backend", "local", "--policies", OWN]
    refused(
        run(app, *given),
        f"task scores, first choice: {OWN} in CrawlNCIS-v0 failed: ",
        "an action in Box(-1.0, 1.0, (10,), float32), got 3: ",
        "(scripts_suite_own.py, line 3)",
    )
    assert not (quick / "runs").exists()


def test_the_error_of_a_shipped_policy_is_raised(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("RoundRobin in noisy, seed 0 failed: KeyError: 1")

    monkeypatch.setattr(leaderboard, "settings_of", fail)
    given = ["small", "--policies", "RoundRobin"]
    assert isinstance(run(app, *given).exception, RuntimeError)


def few(given: Sequence[str]) -> dict[str, Candidate]:
    """Return random crawling, a formula and entrants of one's own."""
    return {label: candidate_of(label) for label in ("RandomCrawl", "GreedyNCIS", *given)}


def test_agents_of_one_name_are_refused(small: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(SHIPPED / "noisy-index", small / name / "mine")
    given = ["small", "--agents", "a/mine,b/mine"]
    refused(run(app, *given), "entrants must have different names, got 'mine' twice")


NAME = "P" * 12
MINE = f"my:{NAME}"


def made_up(yours: tuple[str, ...] = ()) -> Leaderboard:
    """Return a leaderboard of two entrants: one acts in both tasks, the second in one."""
    details = (0.911, 0.432, 56.0, 78.0, 90.0)
    columns = [*STANDING, "tied", *FRESHNESS, *COSTS]
    first = (1, NAME, 0.123, 0.1, 0.2, 0.5, 0.777, 42, True, *details)
    second = (None, MINE, 0.1, 0.1, 0.2, 0.5, 0.88, 1, True, *details)
    board = pd.DataFrame([first, second], columns=columns)
    board["rank"] = pd.Series([1, None], dtype=object)
    best = (NAME, 0.9, 0.85, 0.95, 0.0, 0.0, 0.0, True)
    other = (MINE, 0.88, 0.8, 0.9, 0.02, -0.01, 0.05, True)
    places = {
        "known": pd.DataFrame([best, other], columns=["policy", *PLACE, "tied"]),
        "other": pd.DataFrame([best], columns=["policy", *PLACE, "tied"]),
    }
    task = tasks.Task("noisy", "known", tasks.NCIS, {})
    scores = pd.DataFrame({"seed": [0, 1], "policy": NAME, "task": "noisy", "score": 0.5})
    known = {NAME: Entrant("formula"), MINE: Entrant(YOURS)}
    return Leaderboard("made up", [task], [], scores, board, places, known, yours)


def printed(*tables: Any, width: int = 200) -> str:
    text = io.StringIO()
    Console(file=text, width=width, force_terminal=True).print(*tables)
    return text.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_narrow_terminal_shows_fewer_columns_and_every_cell_whole(width: int) -> None:
    shown = re.sub(r"\x1b\[[\d;]*m", "", printed(table_of(made_up(), width), width=width))
    assert "…" not in shown
    assert all(word in shown for word in (NAME, "0.123", "score"))
    assert MINE not in shown  # which does not act in all tasks
    assert max(map(len, shown.splitlines())) <= width
    known = {
        "[0.100, 0.200]": 60,
        "kind": 60,
        "acting": 80,
        "fresh": 120,
        "tenth": 120,
        "kB": 120,
        "trained": 120,
    }
    for heading, least in known.items():
        assert (heading in shown) == (width >= least), heading


def test_ones_own_entrant_is_marked_and_told_its_places() -> None:
    played = made_up((MINE,))
    best, own, _ = tables_of(played, 200)
    assert f"\x1b[1m= → {MINE} 0.880 [0.800, 0.900] (yours)\x1b[0m" in printed(best)
    assert re.search(
        rf"→ {MINE}.*known.*2 of 2 =.*0.880.*\[0.800, 0.900\].*0.020.*\[-0.010, 0.050\]",
        printed(own),
    )
    assert re.search(rf"→ {MINE}.*all tasks.*acts in 1 of 1 tasks", printed(own))
    assert "│ other" not in printed(own)
    board = printed(table_of(played, 200))
    assert re.search(rf"\x1b\[1m[^\n]*→ {MINE}", board)
    assert f"→ {NAME}" not in board
    assert len(tables_of(made_up(), 200)) == 2


def test_the_reasons_are_of_the_committed_leaderboard() -> None:
    """Every track has one, for its first, with scores of entrants that act there."""
    board = pd.read_csv(RESULTS / "crawl-v1" / "tracks.csv")
    first = board.groupby("track", sort=False).first().policy.to_dict()
    told = json.loads(REASONS.read_text("utf-8"))
    assert {(entry["suite"], entry["track"], entry["first"]) for entry in told} == {
        ("crawl-v1", *item) for item in first.items()
    }
    for entry in told:
        scores = board[board.track == entry["track"]].set_index("policy").score
        assert entry["reason"].format(**scores)


def test_committed_rows_are_those_of_any_checkout() -> None:
    """Rows of another checkout are taken: what they were played by does not name its folder."""
    tasks_of = leaderboard.SUITES["crawl-v1"]
    rows = RESULTS / "crawl-v1" / "rows.parquet"
    settings = [setting_of(tasks_of[0], entrants([]))]
    assert str(RESULTS.parent) not in json.dumps(settings[0].described())
    store = Store(rows, "crawl-v1", settings)
    store.load()
    assert store.rows


def test_bounds_are_those_of_the_instances() -> None:
    shipped = {task.name: task for task in leaderboard.SUITES["crawl-v1"]}
    known = {name: entrants([])[name] for name in ("GreedyNCIS", "RandomCrawl", "RoundRobin")}
    for name in ("noisy", "harmonic", "offers-scores", "garden-none-4", "quality"):
        task = shipped[name]
        setting = setting_of(task, known)
        rows = {row.metric: row.value for row in setting.play(BOUND, 3)}
        env = make_env(task.id, **setting.arguments_of(3))
        env.reset(seed=tasks.FIRST_SEED + 3)
        instance = env.unwrapped.instance  # type: ignore[attr-defined]
        assert rows[BUDGET] == instance.bandwidth
        if name == "noisy":
            assert rows["freshness"] == solvers.ncis(instance).objective
        if name == "harmonic":
            given = instance.importance, instance.change_rate, instance.bandwidth
            cost = solvers.harmonic_periodic(*given, complete=instance.complete).objective
            assert rows["penalty"] == pytest.approx(cost / instance.importance.sum())
        if name == "offers-scores":
            assert rows["freshness"] == 1.0


def test_bounds_are_those_of_the_true_pages() -> None:
    """Three tasks have the same pages: revealed as they are, with late signals, and corrupted."""
    known = {"RoundRobin": entrants([])["RoundRobin"]}
    bounds = []
    for task in leaderboard.SUITES["crawl-v1"]:
        if task.name in ("noisy", "late", "corrupted"):
            rows = setting_of(task, known).play(BOUND, 2)
            bounds.append({row.metric: row.value for row in rows})
    assert len(bounds) == 3
    assert bounds[0] == bounds[1] == bounds[2]


def test_the_clairvoyant_is_fresher_than_all_and_windows_come_in_turn() -> None:
    task = next(
        task for task in leaderboard.SUITES["crawl-v1"] if task.name == "garden-directory-4"
    )
    setting = setting_of(task, {name: entrants([])[name] for name in ("RoundRobin", "GreedyNCIS")})
    assert {*setting.policies} == {"RoundRobin", "GreedyNCIS", tasks.CLAIRVOYANT}
    fresh = {
        label: np.mean([_freshness(setting, label, seed) for seed in range(3)])
        for label in setting.policies
    }
    assert max(fresh, key=lambda label: fresh[label]) == tasks.CLAIRVOYANT
    assert setting.arguments_of(13)["window"] == setting.arguments_of(1)["window"] == [108.0, 116.0]


def test_the_least_served_tenth_is_what_steps_show() -> None:
    """Freshness is sampled at decisions, from the state that observations do not show."""
    arguments = {"num_pages": 20, "bandwidth": 40.0, "horizon": 30.0, "instance": "noisy"}
    found = least_served(tasks.NCIS, arguments, partial(policies.make, "RoundRobin"), seed=4)
    env = make_env(tasks.NCIS, **arguments)
    observation, _ = env.reset(seed=4)
    policy, fresh, over = policies.make("RoundRobin", env), [], False
    while not over:
        pages = env.unwrapped.lanes.world.state.pages[0]  # type: ignore[attr-defined]
        fresh.append(pages["changes"] == 0)
        action, _ = policy.predict(observation)
        observation, _, _, over, _ = env.step(action)
    share = np.sort(np.mean(fresh, axis=0))
    assert found == pytest.approx(share[:2].mean(), abs=0.02)
    assert found < share.mean() - 0.1


def test_threshold_policies_have_no_least_served_tenth() -> None:
    given = {"num_pages": 5, "bandwidth": 5.0, "horizon": 4.0}
    assert np.isnan(
        least_served(tasks.NCIS, given, partial(policies.make, "ThresholdNCIS"), seed=0)
    )


def _freshness(setting: object, label: str, seed: int) -> float:
    rows = setting.play(label, seed)  # type: ignore[attr-defined]
    return float(next(row.value for row in rows if row.metric == "freshness"))
