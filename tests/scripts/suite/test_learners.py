from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crawl_envs.evaluation import make_env
from scripts.rank import app
from scripts.study.entrants import Candidate, candidate_of
from scripts.study.rows import read_rows
from scripts.suite import leaderboard, learners, tasks
from scripts.training.jobs import Job
from scripts.training.requests import Request
from tests.agents.test_catalog_trainings import index_in
from tests.scripts.commands import done, refused, run

SOURCE = """
import json
import policies
from stable_baselines3 import DQN

class Mine(DQN):
    pass

def train(worlds, seed, folder):
    (folder / "formula.json").write_text(json.dumps([worlds, seed]))

def load(folder, env):
    seed = json.loads((folder / "formula.json").read_text())[1]
    return policies.make("Greedy" if seed else "GreedyNCIS", env)

def fail(worlds, seed, folder):
    raise KeyError("no weights")

def leave(worlds, seed, folder):
    raise SystemExit(0)

number = 3
"""
PAGES: Mapping[str, Any] = {
    **{"num_pages": 10, "bandwidth": 10.0, "horizon": 2.0, "instance": "noisy"},
    **{"pages": "test", "start": "crawled"},
}
MODULE = "scripts_suite_learner"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Make a suite of two tasks with held-out pages, few shipped entrants, and no report."""
    first = tasks.Task("first", "pages", tasks.NCIS, PAGES)
    refresh = {**PAGES, "action": "rates"}
    second = tasks.Task("second", "rates", tasks.NCIS, refresh, random="UniformCrawl")
    monkeypatch.setitem(leaderboard.SUITES, "small", (first, second))
    monkeypatch.setattr(leaderboard, "COMMITTED", tmp_path / "committed")
    monkeypatch.setattr(leaderboard, "entrants", few)
    monkeypatch.setattr(leaderboard, "write_report", lambda *_: None)
    monkeypatch.setattr(learners, "train_seeds", in_this_process)
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop(MODULE, None)


def few(given: list[str]) -> dict[str, Candidate]:
    names = ("RandomCrawl", "UniformCrawl", "GreedyNCIS", "Greedy", "noisy-index", *given)
    candidates = [candidate_of(name) for name in names]
    return {candidate.label: candidate for candidate in candidates}


def in_this_process(runs: Mapping[Path, Request], jobs: Mapping[Path, Job]) -> None:
    for folder in runs:
        jobs[folder].run(folder, progress=False)


def ranked(*words: str, seeds: int = 4) -> tuple[str, pd.DataFrame]:
    line = ["small", "--seeds", str(seeds), "--backend", "local", *words]
    return done(run(app, *line)).output, pd.read_csv(
        "runs/small/leaderboard.csv", index_col="policy"
    )


def values(policy: str) -> dict[int, float]:
    rows, _ = read_rows(Path("runs/small/rows.parquet"))
    wanted = ("first", policy, "freshness")
    return {row.seed: row.value for row in rows if (row.setting, row.policy, row.metric) == wanted}


def test_a_function_trains_one_agent_and_each_training_plays_its_repetitions(small: Path) -> None:
    name = f"{MODULE}:train"
    _, board = ranked("--train", name, "--trainings", "2", "--tasks", "first")
    runs = small / "runs" / "small" / "trainings" / f"{MODULE}-train"
    worlds, seed = json.loads((runs / "seed-1" / "formula.json").read_text())
    world = ["CrawlNCIS-v0", {**PAGES, "pages": "train", "resample": True}]
    assert (worlds, seed) == ([world], 1000)
    declared = json.loads((runs / "seed-1" / "training.json").read_text())
    assert declared.pop("code")
    assert declared == {"worlds": [{"id": world[0], "arguments": world[1]}]}
    mine, best, worse = values(name), values("GreedyNCIS"), values("Greedy")
    assert mine == {0: best[0], 1: worse[1], 2: best[2], 3: worse[3]}
    assert best[1] != worse[1]
    assert board.training_seconds[name] >= 0.0
    assert f"[→ {name}]" not in (text := (small / "runs/small/README.md").read_text())
    assert f"→ {name} | {name}, one for all, 2 trainings |" in text
    assert "noisy-index" not in board.index  # it saw page sets of tests
    modified = (runs / "seed-0" / "formula.json").stat().st_mtime_ns
    output, board = ranked("--train", name, "--trainings", "2", "--tasks", "first")
    assert (runs / "seed-0" / "formula.json").stat().st_mtime_ns == modified
    assert "has changed" not in output
    words = ["small", "--train", name, "--trainings", "2"]
    refused(run(app, *words), "has another training", "--fresh")
    assert values(name) == mine
    source = small / f"{MODULE}.py"
    source.write_text(source.read_text() + "# changed\n")
    refused(run(app, *words, "--tasks", "first"), "has another training", "--fresh")


def test_intervals_of_a_board_are_over_trainings(small: Path) -> None:
    name = f"{MODULE}:train"
    _, board = ranked("--train", name, "--trainings", "2", "--tasks", "first", seeds=12)
    mine, best = board.loc[name], board.loc["GreedyNCIS"]
    assert mine.high - mine.low > 3.0 * (best.high - best.low)  # two trainings tell little
    scores = pd.read_csv("runs/small/scores.csv", index_col="policy")
    by_seed = pd.Series(values(name))
    halves = [by_seed[seed::2].mean() for seed in range(2)]
    assert scores.error[name] > 0.0
    assert scores.error[name] != pytest.approx(by_seed.sem(), rel=0.1)
    assert halves[0] != halves[1]


def test_an_algorithm_is_trained_for_each_task_that_it_fits(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--train", "dqn", "--trainings", "2", "--steps", "64")
    output, board = ranked(*words)
    assert "dqn cannot be trained for second" in output
    assert "dqn cannot act in second: it was not trained for this task" in output
    assert board.tasks["dqn"] == 1
    assert board.training_seconds["dqn"] > 0.0
    assert {*values("dqn")} == {0, 1, 2, 3}
    text = (small / "runs" / "small" / "README.md").read_text()
    assert "DQN, per task, 2 trainings, 64 steps" in text
    runs = small / "runs" / "small" / "trainings" / "dqn" / "first"
    assert {run.name for run in runs.glob("seed-*")} == {"seed-0", "seed-1"}
    config = json.loads((runs / "seed-1" / "config.json").read_text())
    assert config["env_args"]["pages"] == "train"
    assert config["env_args"]["start"] == "crawled"
    assert (config["steps"], config["seed"]) == (64, 1000)
    monkeypatch.setattr(learners, "train_seeds", None)  # finished trainings are not repeated
    assert "dqn" in ranked(*words)[1].index
    refused(run(app, "small", *words[:-1], "65"), "has another training")


def test_a_class_of_ones_own_is_imported_where_its_agent_plays(small: Path) -> None:
    name = f"{MODULE}:Mine"
    _, board = ranked("--train", name, "--trainings", "1", "--steps", "64", "--tasks", "first")
    assert board.tasks[name] == 1
    text = (small / "runs" / "small" / "README.md").read_text()
    assert f"| {name}, per task, 1 training, 64 steps |" in text
    runs = small / "runs" / "small" / "trainings" / f"{MODULE}-Mine" / "first"
    del sys.modules[MODULE]
    env = make_env("CrawlNCIS-v0", **PAGES)
    env.reset(seed=0)
    words = {"folder": str(runs), "file_digest": "", "trainings": ["seed-0"]}
    assert callable(learners.own_agent(name, env, **words).predict)


def test_a_folder_of_several_trainings_is_ranked_if_it_saw_no_tests(small: Path) -> None:
    for seed, weight in enumerate((0.0, 0.01)):
        index_in(small / "mine" / f"seed-{seed}", weight)
    _, board = ranked("--agents", "mine", "--tasks", "first")
    assert board.tasks["mine"] == 1
    assert "yours, one for all, 2 trainings" in (small / "runs/small/README.md").read_text()
    described = read_rows(Path("runs/small/rows.parquet"))[1]["settings"]["first"]["labels"]
    assert described["mine"]["trainings"] == ["seed-0", "seed-1"]
    mine = values("mine")
    assert mine[0] != mine[2]
    index_in(small / "mine" / "seed-1", 0.02)
    output, _ = ranked("--agents", "mine", "--tasks", "first")
    assert "mine has changed: its rows are simulated again" in output
    index_in(small / "mine" / "seed-1", 0.02, instance="periodic")
    words = ("mine must not be trained on worlds of tests", "instance='periodic'")
    refused(run(app, "small", "--agents", "mine"), *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["small", "--train", "ppp"], "--train must be one of a2c, dqn"),
        (["small", "--train", f"{MODULE}:number"], "--train must be module:Class"),
        (["small", "--train", "builtins:print"], "--train must be module:Class"),
        (["small", "--train", "no_such_module:train"], "cannot be imported"),
        (["small", "--train", f"{MODULE}:train", "--steps", "5"], "--steps must be left out"),
        (["small", "--train", "ppo", "--steps", "2000001"], "from 1 to 2,000,000"),
        (["small", "--train", "ppo", "--trainings", "0"], "trainings must be an integer >= 1"),
        (["small", "--train", "dqn,dqn", "--steps", "64", "--trainings", "1"], "got 'dqn' twice"),
        (["small", "--train", "ppo", "--score"], "--train must be left out with --score"),
        (["mini", "--train", "ppo"], "--train must be used with crawl-v2, got 'mini'"),
        (["small", "--train", f"{MODULE}:train", "--seeds", "4"], "--seeds must be at least 5"),
        (["small", "--tasks", "first,second,first"], "--tasks must name each once, got 'first'"),
        (["small", "--tasks", "third"], "task of small must be one of first, second"),
        (["small", "--train", "sac", "--tasks", "first"], "must fit one of the tasks"),
        (["small", "--agents", "noisy-index"], "noisy-index must not be trained on worlds of"),
    ],
)
def test_wrong_words_are_refused(small: Path, words: list[str], message: str) -> None:
    refused(run(app, *words), message)


def test_a_module_without_load_is_refused_before_training(small: Path) -> None:
    (small / f"{MODULE}.py").write_text("def train(worlds, seed, folder): raise OSError")
    refused(run(app, "small", "--train", f"{MODULE}:train"), "must have a function load(folder")


def test_all_learners_are_checked_before_one_is_trained(small: Path) -> None:
    good = ("small", "--tasks", "first", "--trainings", "1", "--train")
    for bad, message in (
        ("ppp", "--train must be one of"),
        (f"{MODULE}:number", "--train must be module:Class"),
        ("sac", "sac must fit one of the tasks"),
    ):
        refused(run(app, *good, f"{MODULE}:train,{bad}"), message)
    names = f"{MODULE}:train,{MODULE}:fail"
    folder = small / "runs" / "small" / "trainings" / f"{MODULE}-fail" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "training.json").write_text('{"worlds": []}')
    refused(run(app, *good, names), "has another training")
    assert not (folder.parents[1] / f"{MODULE}-train").exists()


@pytest.mark.parametrize(
    ("function", "message"), [("fail", "KeyError: 'no weights'"), ("leave", "SystemExit: 0")]
)
def test_an_error_in_a_training_names_the_learner(small: Path, function: str, message: str) -> None:
    name = f"{MODULE}:{function}"
    result = run(app, "small", "--train", name, "--tasks", "first")
    errors_name(result, f"error: learner {name} failed: {message}", f"in {function}")


@pytest.mark.parametrize(
    ("statement", "message"),
    [("raise KeyError('no weights')", "KeyError: 'no weights'"), ("exit(0)", "SystemExit: 0")],
)
def test_an_error_in_load_names_the_learner(small: Path, statement: str, message: str) -> None:
    source = small / f"{MODULE}.py"
    source.write_text(f"{source.read_text()}\ndef load(folder, env):\n    {statement}\n")
    name = f"{MODULE}:train"
    result = run(app, "small", "--train", name, "--tasks", "first")
    errors_name(result, f"error: learner {name} failed: {message}", "in load")


def test_a_load_that_refuses_an_environment_cannot_act_there(small: Path) -> None:
    source = small / f"{MODULE}.py"
    source.write_text(
        f"{source.read_text()}\n"
        "def load(folder, env):\n"
        "    if env.unwrapped.action_form != 'page':\n"
        "        raise ValueError('pages only')\n"
        "    return policies.make('Greedy', env)\n"
    )
    output, board = ranked("--train", f"{MODULE}:train", "--trainings", "2")
    assert f"{MODULE}:train cannot act in second: pages only" in output
    assert board.tasks[f"{MODULE}:train"] == 1


def test_an_error_in_the_training_of_a_class_names_the_learner(small: Path) -> None:
    source = small / f"{MODULE}.py"
    broken = "class Mine(DQN):\n    def learn(self, *args, **more):\n        exit(3)"
    source.write_text(source.read_text().replace("class Mine(DQN):\n    pass", broken))
    words = ("--train", f"{MODULE}:Mine", "--trainings", "1", "--steps", "64", "--tasks", "first")
    errors_name(run(app, "small", *words), f"learner {MODULE}:Mine failed: SystemExit: 3", "learn")


def test_a_module_that_ends_the_program_cannot_be_imported(small: Path) -> None:
    (small / f"{MODULE}.py").write_text("import sys\nsys.exit(0)\n")
    refused(run(app, "small", "--train", f"{MODULE}:train"), "cannot be imported", "SystemExit")


def errors_name(result: Any, line: str, frame: str) -> None:
    """Check the one error of a command, and that the traceback begins in the user's module."""
    assert result.exit_code == 2, result.output
    assert result.stderr.count("error: ") == 1
    assert line in result.stderr.splitlines()[-1]
    assert frame in result.stderr
    assert f"{MODULE}.py" in result.stderr


def test_an_agent_of_more_trainings_than_seeds_is_refused(small: Path) -> None:
    for seed in range(3):
        index_in(small / "mine" / f"seed-{seed}", 0.01 * seed)
    words = ("--seeds must be at least 3", "trainings of mine", "got 2")
    refused(run(app, "small", "--agents", "mine", "--seeds", "2"), *words)


def test_one_seed_shows_no_ties_and_says_so(small: Path) -> None:
    output, _ = ranked("--policies", "RoundRobin", "--tasks", "first", seeds=1)
    pages = output, (small / "runs/small/README.md").read_text()
    assert all("one seed has no intervals and shows no ties" in " ".join(p.split()) for p in pages)
    assert all("tied with the leader" not in page for page in pages)
    assert "| = " not in pages[1]
    assert " = |" not in pages[1]
