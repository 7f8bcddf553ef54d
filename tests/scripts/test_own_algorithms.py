"""Algorithms and models of one's own get their training, and their row in a ranking."""

from __future__ import annotations

import json
import re
from pathlib import Path

import gymnasium
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from typer.testing import CliRunner

from agents.sb3.bridge import CrawlVecEnv
from scripts import evaluate, train, tune
from tests.scripts.commands import SMALL, done, records, refused, run

PAGE = Path(__file__).parents[2] / "docs" / "train.md"
SHORT = ["--steps", "600", "--lanes", "4", "--episodes", "3", "--policies", "GreedyNCIS,Greedy"]


def example(words):
    """Return the module of the page that has these words."""
    [text] = [
        text for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if words in text
    ]
    return text


def ranked(folder):
    return [row["policy"] for row in records(folder / "ranking.csv")]


def row_of(policy, out):
    few = [*SMALL, "--workers", 1, "--episodes", 2, "--policies", "Greedy"]
    done(run(evaluate.app, policy, "CrawlNCIS-v0", *few, out=out))
    return {*ranked(out)}


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{PAGE.parents[1]}")  # of workers
    name = f"own_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(example("class MyPPO") + example("class Outside"))
    return name


class Counting(BaseCallback):
    """A callback of one's own."""

    def _on_step(self) -> bool:
        return True


def test_an_algorithm_of_ones_own_from_training_to_its_row(module, tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # a worker trains both seeds
    own, out = f"{module}:MyPPO", tmp_path / "runs" / "mine"
    options = [*SMALL, *SHORT, "--set", "fade=.9", "--seeds", 2]
    options += ["--callback", "tests.scripts.test_own_algorithms:Counting"]
    result = done(run(train.app, own, "CrawlNCIS-v0", *options, out=out))
    assert {"MyPPO", "MyPPO, drawn", "RandomCrawl", "GreedyNCIS"} <= {*ranked(out)}
    assert "over runs" in result.stdout
    config = json.loads((out / "seed-0" / "config.json").read_text())
    assert (config["algorithm"], config["model_args"]) == (own, {"fade": 0.9})
    refused(CliRunner().invoke(train.app, ["--resume", str(out)]), f"{own} --resume")

    (out / "seed-0" / "model.zip").rename(out / "model.zip")
    assert row_of(f"{module}:Mine", tmp_path / "row") == {f"{module}:Mine", "Greedy"}


def test_a_model_from_elsewhere_gets_its_row(module, tmp_path):
    given = {"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0}
    lanes = gymnasium.make_vec(
        "crawl_envs:CrawlNCIS-v0", num_envs=4, autoreset_mode="SameStep", **given
    )
    PPO("MlpPolicy", CrawlVecEnv(lanes), n_steps=16, batch_size=16, device="cpu").save("outside")
    assert row_of(f"{module}:Outside", tmp_path / "row") == {f"{module}:Outside", "Greedy"}


def test_an_algorithm_of_ones_own_is_tuned(module, tmp_path):
    pytest.importorskip("optuna")
    few = ["--trials", 1, "--steps", 600, "--episodes", 1]
    done(run(tune.app, f"{module}:MyPPO", "CrawlNCIS-v0", *SMALL, *few, out=tmp_path / "tuned"))
    assert "n_epochs" in (tmp_path / "tuned" / "best.yml").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere:PPO", "CrawlNCIS-v0"], ["algorithm 'nowhere:PPO' cannot be imported"]),
        (["json:dumps", "CrawlNCIS-v0"], ["algorithm", "module:Class of a BaseAlgorithm"]),
        (["stable_baselines3:PPO", "CrawlNCIS-v0", "--set", "fade=1"], ["model_args", "fade=1"]),
        (["stable_baselines3:PPO", "CrawlNCIS-v0", "--teacher", "x"], ["option", "--teacher"]),
        (["stable_baselines3:PPO"], ["stable_baselines3:PPO must be followed by ENV_ID"]),
        ([], ["followed by an algorithm", "ppo", "module:Class", "--resume FOLDER"]),
    ],
)
def test_bad_input_gets_one_line(arguments, words):
    refused(CliRunner().invoke(train.app, arguments), *words)
