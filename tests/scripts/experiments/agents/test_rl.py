from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import agents
import policies
from crawl_envs.evaluation import Row, evaluate, make_env
from scripts.experiments.agents import rl
from scripts.experiments.agents.setup import checkpoints, trainings
from scripts.study.rows import write_rows
from scripts.suite.tasks import AS_REWARD


def rows_of(task: str) -> list[Row]:
    rewards = {rl.RANDOM: 0.5, rl.ROUND_ROBIN: 0.6, rl.BEST: 0.85, "ppo": 0.8, rl.BOUND: 0.9}
    rows = [
        Row("", task, label, seed, "reward", value + (0.02 * seed if label != "ppo" else 0.0))
        for label, value in rewards.items()
        for seed in range(3)
    ]
    rows += [Row("", task, label, 0, "validated", rewards[label]) for label in list(rewards)[:3]]
    for seed in range(3):
        reached = (0.4, 0.5 + 0.35 * 0.91, 0.5 + 0.35 * (0.94 if seed else 0.97))
        rows += [Row("", task, "ppo", seed, f"steps[{k}]", 100.0 * k) for k in range(3)]
        rows += [Row("", task, "ppo", seed, f"validated[{k}]", v) for k, v in enumerate(reached)]
        rows.append(Row("", task, "ppo", seed, "seconds", 50.0))
    return rows


def test_scores_are_shares_of_the_way_to_the_bound() -> None:
    rows = rl.derive(rows_of("noisy"))
    score = {(row.policy, row.seed): row.value for row in rows if row.metric == "score"}
    assert score[rl.BOUND, 1] == pytest.approx(1.0)
    assert score[rl.RANDOM, 2] == pytest.approx(0.0)
    assert score["ppo", 2] == pytest.approx((0.8 - 0.54) / 0.4)


def test_runs_that_reach_a_share_have_a_first_time() -> None:
    rows = rl.derive(rows_of("noisy"))
    found = {(row.metric, row.seed): row.value for row in rows if "best formula" in row.metric}
    assert [found["steps to 0.90 of the best formula", seed] for seed in range(3)] == [100.0] * 3
    assert found["seconds to 0.90 of the best formula", 1] == pytest.approx(25.0)
    assert {key[1] for key in found if "0.95" in key[0]} == {0}


def test_the_mean_over_tasks_needs_all_of_them() -> None:
    tasks = [task for task in rl.ALL if task != rl.OF_SCORES]
    rows = [row for task in tasks for row in rows_of(task)]
    together = {row[2:5:2]: row.value for row in rl.derive(rows) if row.setting == rl.TOGETHER}
    expected = np.mean([(0.8 - 0.5 - 0.02 * seed) / 0.4 for seed in range(3)])
    assert together["ppo", "score"] == pytest.approx(expected)
    assert together["ppo", "score, low"] < expected < together["ppo", "score, high"]
    fewer = [row for row in rows if row.setting != tasks[0]]
    assert not [row for row in rl.derive(fewer) if row.setting == rl.TOGETHER]


def test_tables_and_pictures(tmp_path: Path, drawn: list[Figure]) -> None:
    rows = [row for task in rl.ALL for row in rows_of(task)]
    rows = [*rows, *rl.derive(rows)]
    tables = {name: make(rows).splitlines() for name, make in rl.EXPERIMENT.tables.items()}
    assert ".70 ± .1" in tables["larger budget"][2]
    assert "0k, 50 s (1 of 3)" in tables["times"][2]
    assert [line.split(" | ")[3][:3] for line in tables["memory"][2:]] == [".70", ".70"]
    assert tables["memory"][2].startswith("| noisy-unknown | - | - | .70")
    for name, draw in rl.EXPERIMENT.pictures.items():
        draw(rows, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").exists()
    assert all(any(axes.has_data() for axes in figure.axes) for figure in drawn)


@pytest.mark.parametrize("task", ["quality", "harmonic", "garden-directory-4"])
def test_rewards_are_those_of_episodes(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainings, "EPISODES", 2)
    it = trainings.TASKS[task]
    windows = trainings.setting_of(it, {}).windows
    values = []
    for number in range(len(windows) or 2):
        window = {"window": list(windows[number])} if windows else {}
        seed = trainings.FIRST_SEED + 2 * 3 + number
        made = {"RoundRobin": partial(policies.make, "RoundRobin")}
        rows = evaluate(it.id, made, [seed], **it.arguments, **window)
        values += [AS_REWARD[it.metric](row.value) for row in rows if row.metric == it.metric]
    reward = trainings.task_rewards(3, task=task, policy="RoundRobin")["reward"]
    assert reward == pytest.approx(np.mean(values), abs=2e-3)
    assert trainings.bound(3, task=task)["reward"] > reward


@pytest.mark.parametrize("low", [0.0, 1.0])
def test_a_short_training_and_its_checkpoint(
    low: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trainings, "EPISODES", 2)
    values = trainings.trained(
        0, task="quality", algorithm="a2c", steps=600, belief=False, curve=True
    )
    assert values["steps[0]"] == 0.0
    assert 0.8 < values["reward"] < 1.0
    assert 0.8 < values["validated[0]"] < 1.0
    write_rows(tmp_path / "rows.parquet", [Row("", "quality", rl.RANDOM, 0, "validated", low)], {})
    checkpoints.main(trainings.RUNS, tmp_path)
    with zipfile.ZipFile(tmp_path / checkpoints.ARCHIVE) as archive:
        archive.extractall(tmp_path / "kept")
        assert archive.namelist() == (["quality/a2c/model.zip"] if low == 0.0 else [])
    if low == 0.0:
        kept = tmp_path / "kept" / "quality" / "a2c" / "model.zip"
        whole = next(trainings.RUNS.rglob("model.zip"))
        assert kept.stat().st_size < 0.6 * whole.stat().st_size
        env = make_env("CrawlLongevity-v0", **trainings.TASKS["quality"].arguments)
        observation, _ = env.reset(seed=1)
        [one], [two] = (
            agents.load(each.parent, env).scores(observation)[None] for each in (kept, whole)
        )
        np.testing.assert_array_equal(one, two)
    again = trainings.trained(
        0, task="quality", algorithm="a2c", steps=600, belief=False, curve=False
    )
    assert again["reward"] == values["reward"]
