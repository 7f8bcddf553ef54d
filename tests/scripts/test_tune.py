"""The search for hyperparameters: trials, going on, the file of the best, the picture."""

from __future__ import annotations

import math
import sqlite3
import sys
from contextlib import closing

import pytest
import yaml

import agents
from agents.catalog import ALGORITHMS
from agents.sb3.arguments import TrainArguments
from agents.sb3.hyperparameters import entry_of, read_entry
from scripts.training.jobs import job_of
from scripts.training.options import TuneOptions
from scripts.training.requests import Request
from scripts.training.trials import draw_trials, write_trials
from scripts.training.tuning import (
    STAGES,
    Ended,
    Tuning,
    best_of,
    settings_of,
    suggested,
    tuning_of,
)
from scripts.tune import app
from tests.scripts import commands
from tests.scripts.commands import SMALL, done, files_in, records, refused

pytest.importorskip("optuna")
NOISY = ["--env-arg", "instance=noisy"]
FEW = ["--steps", "8", "--episodes", "2"]
SAME = ("best.yml", "trials.csv", "trials.png")


def run(*arguments, out):
    return commands.run(app, *arguments, out=out)


def bytes_of(folder):
    return [(folder / name).read_bytes() for name in SAME]


@pytest.fixture
def cheap(monkeypatch):
    """Trials whose mean reward is a formula of their settings."""

    def score(self, drawn, stage, folder):
        return stage - abs(math.log(drawn["learning_rate"] / 1e-3)) - abs(drawn["gamma"] - 0.95)

    monkeypatch.setattr(Tuning, "score", score)


def test_a_search_from_end_to_end(tmp_path):
    out = tmp_path / "out"
    result = done(run("a2c", "CrawlNCIS-v0", *SMALL, *NOISY, *FEW, "--trials", 2, out=out))
    assert "mean reward" in result.stdout
    assert files_in(out) == {*SAME, "study.db"}
    assert (out / "trials.png").read_bytes().startswith(b"\x89PNG")
    done(run("a2c", "CrawlNCIS-v0", *SMALL, *NOISY, *FEW, "--trials", 2, out=tmp_path / "two"))
    assert bytes_of(out) == bytes_of(tmp_path / "two")
    entry = yaml.safe_load((out / "best.yml").read_text())["CrawlNCIS-v0"]
    request = Request(
        kind="a2c",
        env_id="CrawlNCIS-v0",
        hyperparameters=read_entry(out / "best.yml", "CrawlNCIS-v0"),
    )
    arguments = job_of(request).arguments
    assert (arguments.learning_rate, arguments.steps) == (entry["learning_rate"], 8)


def test_a_trial_of_ppo_is_trained_and_measured(tmp_path):
    args = {"num_pages": 4, "bandwidth": 4, "horizon": 5}
    tuned = tuning_of(
        TuneOptions(
            algorithm="ppo", env_id="CrawlNCIS-v0", env_arg=SMALL[1::2], steps=400, episodes=2
        )
    )
    drawn = {
        "learning_rate": 0.001,
        "gamma": 0.9,
        "lanes": 16,
        "width": 16,
        "rollout": 16,
        "ent_coef": 0.01,
        "minibatches": 2,
        "n_epochs": 1,
    }
    assert 0.0 < tuned.score(drawn, 1, tmp_path) < 1.0
    first = agents.load(tmp_path).model.num_timesteps
    tuned.score(drawn, 2, tmp_path)
    agent = agents.load(tmp_path)
    assert agent.model.num_timesteps > first
    assert (agent.model.n_steps, agent.model.batch_size, agent.model.ent_coef) == (6, 48, 0.01)
    trial = Ended(0, 0.5, STAGES, drawn)
    write_trials(tmp_path, tuned, [trial])
    request = Request(
        kind="ppo",
        env_id="CrawlNCIS-v0",
        env_args=args,
        hyperparameters=read_entry(tmp_path / "best.yml", "CrawlNCIS-v0"),
    )
    best = job_of(request).arguments
    assert isinstance(best, TrainArguments)
    assert (best.lanes, best.rollout, best.width, best.gamma, best.steps) == (16, 6, 16, 0.9, 400)
    assert best.model_args["batch_size"] == 48
    assert best.network == "pages"


def test_a_search_that_was_stopped_goes_on_as_one_that_was_not(cheap, tmp_path, monkeypatch):
    """Stopped by its number of trials, and then in the midst of one, which does not count."""
    options = ["ppo", "CrawlNCIS-v0", *SMALL, *FEW]
    done(run(*options, "--trials", 11, out=tmp_path / "whole"))
    done(run(*options, "--trials", 3, out=tmp_path / "parts"))
    score, calls = Tuning.score, []

    def interrupted(self, drawn, stage, folder):
        calls.append(stage)
        if len(calls) > 8 and stage > 1:
            raise KeyboardInterrupt
        return score(self, drawn, stage, folder)

    with monkeypatch.context() as patch:
        patch.setattr(Tuning, "score", interrupted)
        result = run(*options, "--trials", 11, out=tmp_path / "parts")
    assert result.exit_code == 130
    assert "the same command resumes" in result.stderr
    assert "Traceback" not in result.output
    done(run(*options, "--trials", 11, out=tmp_path / "parts"))
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "parts")
    rows = records(tmp_path / "whole" / "trials.csv")
    assert len(rows) == 11
    assert {row["stages"] for row in rows} > {str(STAGES)}
    for changed in (["--seed", 1], ["--env-arg", "horizon=6"], ["--steps", 12]):
        result = run(*options, *changed, "--trials", 11, out=tmp_path / "parts")
        refused(result, "study.db", "--fresh")
    done(run(*options, "--seed", 1, "--trials", 2, "--fresh", out=tmp_path / "parts"))
    assert len(records(tmp_path / "parts" / "trials.csv")) == 2


def test_a_database_of_others_is_left_alone(tmp_path):
    file = tmp_path / "theirs.db"
    with closing(sqlite3.connect(file)) as theirs:
        theirs.execute("create table accounts (name text)")
        theirs.commit()
    before = file.read_bytes()
    for more in ([], ["--fresh"]):
        result = run("ppo", "CrawlNCIS-v0", *SMALL, *FEW, "--storage", file, *more, out=tmp_path)
        refused(result, "storage must be a file of studies")
    assert file.read_bytes() == before


def test_the_search_finds_what_is_better(cheap, tmp_path):
    done(run("a2c", "CrawlNCIS-v0", *SMALL, *FEW, "--trials", 24, out=tmp_path))
    entry = yaml.safe_load((tmp_path / "best.yml").read_text())["CrawlNCIS-v0"]
    assert float(entry["learning_rate"].removeprefix("lin_")) == pytest.approx(1e-3, rel=0.4)


def test_numbers_that_run_away_end_a_trial(tmp_path, monkeypatch):
    def score(self, drawn, stage, folder):
        raise ValueError("Expected parameter logits to satisfy the constraint, found nan")

    monkeypatch.setattr(Tuning, "score", score)
    result = done(run("ppo", "CrawlNCIS-v0", *SMALL, *FEW, "--trials", 2, out=tmp_path))
    assert "no trial was completed" in result.stdout
    assert not (tmp_path / "best.yml").exists()


def test_other_errors_are_raised(tmp_path, monkeypatch):
    def score(self, drawn, stage, folder):
        raise ValueError("something is wrong")

    monkeypatch.setattr(Tuning, "score", score)
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *FEW, out=tmp_path), "something is wrong")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_draw_makes_a_run(algorithm):
    class Highest:
        def suggest_float(self, name, low, high, *, log=False):
            assert 0.0 < low < high
            return high

        def suggest_categorical(self, name, choices):
            return choices[-1]

    drawn = suggested(Highest(), algorithm)
    form = ["action=scores"] if algorithm == "sac" else []
    given = {"algorithm": algorithm, "env_id": "CrawlNCIS-v0", "steps": 100_000}
    tuned = tuning_of(TuneOptions(env_arg=[*SMALL[1::2], *form], **given))
    assert tuned.job(drawn).label == algorithm
    assert entry_of(algorithm, "CrawlNCIS-v0", 100_000, settings_of(drawn, 100_000))


def test_minibatches_are_whole():
    drawn = {"lanes": 16, "rollout": 64, "minibatches": 8, "learning_rate": 0.01}
    size = {"lanes": 16, "learning_rate": "lin_0.01"}
    assert settings_of(drawn, 100_000) == {**size, "rollout": 64, "batch_size": 128}
    assert settings_of(drawn, 48 * STAGES) == {**size, "rollout": 3, "batch_size": 6}
    assert settings_of({**drawn, "lanes": 3, "rollout": 3}, 100)["batch_size"] == 9


def test_the_best_was_played_to_its_end():
    trials = [Ended(0, 0.5, STAGES, {}), Ended(1, 0.9, 1, {}), Ended(2, 0.5, STAGES, {})]
    assert best_of(trials) == trials[0]
    assert best_of(trials[1:2]) is None


def test_a_picture_of_few_trials(tmp_path):
    for trials in ([], [Ended(0, math.nan, 0, {"gamma": 0.9})]):
        draw_trials(tmp_path / "x.png", trials, {}, title="nothing yet")
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_storage_that_is_none(tmp_path):
    file = tmp_path / "study.db"
    file.write_text("no database at all, but text that is long enough" * 50)
    result = run("ppo", "CrawlNCIS-v0", *SMALL, *FEW, out=tmp_path)
    refused(result, "storage", "study.db")


def test_without_optuna_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *FEW, out=tmp_path), "optuna", "crawl-envs[tune]")
