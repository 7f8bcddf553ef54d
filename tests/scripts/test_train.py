"""The command trains, compares and draws; bad input gets one line."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

import agents
from scripts import train
from scripts.train import app, parse_env_args, score

SMALL = ["--env-arg", "num_pages=4", "--env-arg", "bandwidth=4", "--env-arg", "horizon=5"]
SHORT = ["--steps", "600", "--lanes", "4", "--episodes", "3"]


def run(*arguments, out):
    return CliRunner().invoke(app, [*map(str, arguments), "--out", str(out)])


def refused(result, *words):
    assert result.exit_code == 1, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert all(word in lines[0] for word in words), lines[0]
    assert "Traceback" not in result.output


def test_a_run_from_end_to_end(tmp_path):
    out = tmp_path / "runs" / "one"
    result = run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, "--env-arg", "instance=noisy", out=out)
    assert result.exit_code == 0, result.output
    for name in ("ppo", "RandomCrawl", "RoundRobin", "3 seeds"):
        assert name in result.stdout
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json",
        "curve.csv",
        "curve.png",
        "model.zip",
    ]
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    config = json.loads((out / "config.json").read_text())
    assert config["env_args"] == {
        "num_pages": 4,
        "bandwidth": 4,
        "horizon": 5,
        "instance": "noisy",
    }
    assert agents.load(out).arguments.lanes == 4

    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=out), "holds an agent already")
    longer = [*SMALL, "--env-arg", "instance=noisy", "--lanes", 4, "--episodes", 3]
    result = run("ppo", "CrawlNCIS-v0", *longer, "--steps", 1200, "--resume", out=out)
    assert result.exit_code == 0, result.output
    assert agents.load(out).model.num_timesteps >= 1200


def test_a_run_on_one_instance_from_a_file(tmp_path):
    instance = tmp_path / "instance.json"
    instance.write_text('{"importance": [1, 2, 3, 4], "change_rate": 1.0, "bandwidth": 2.0}')
    out = tmp_path / "out"
    options = [*SMALL, *SHORT, "--instance", instance, "--env-arg", "reveal=importance"]
    result = run("a2c", "crawl_envs:CrawlNCIS-v0", *options, out=out)
    assert result.exit_code == 0, result.output
    assert agents.load(out).arguments.instance["bandwidth"] == 2.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sarsa", "CrawlNCIS-v0"], ["algorithm", "'sarsa'", "ppo"]),
        (["ppo", "CrawlNothing-v0"], ["env_id", "'CrawlNothing-v0'", "CrawlNCIS-v0"]),
        (["ppo", "CrawlNCIS-v0", "--steps", "0"], ["steps", ">= 1", "got 0"]),
        (["ppo", "CrawlNCIS-v0", "--lanes", "0"], ["lanes", ">= 1", "got 0"]),
        (["ppo", "CrawlNCIS-v0", "--episodes", "0"], ["episodes", ">= 1", "got 0"]),
        (["ppo", "CrawlNCIS-v0", "--env-arg", "num_pages"], ["name=value", "'num_pages'"]),
        (["ppo", "CrawlNCIS-v0", "--env-arg", "pages=3"], ["pages", "'num_pages'", "3"]),
        (["ppo", "CrawlNCIS-v0", "--env-arg", "num_pages=0"], ["num_pages", "got 0"]),
        (["dqn", "CrawlNCIS-v0", "--env-arg", "action=scores"], ["dqn", "page"]),
        (["ppo", "CrawlNCIS-v0", "--instance", "/nowhere.json"], ["/nowhere.json"]),
    ],
)
def test_bad_input_gets_one_line(arguments, words, tmp_path):
    out = tmp_path / "out"
    refused(run(*arguments, out=out), *words)
    assert not out.exists()


def test_a_folder_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=blocked / "out"), "cannot write")
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=blocked), "cannot write")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    refused(run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=tmp_path), "cannot write")


def test_a_foreign_model_is_not_resumed(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"something else")
    result = run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, "--resume", out=tmp_path)
    refused(result, "is not an agent of this suite")
    assert (tmp_path / "model.zip").read_bytes() == b"something else"


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train", interrupt)
    result = run("ppo", "CrawlNCIS-v0", *SMALL, *SHORT, out=tmp_path)
    assert result.exit_code == 130
    assert "--resume" in result.stderr


def test_values_are_json_or_words():
    pairs = ["num_pages=20", "bandwidth=2.5", "instance=noisy", 'delay={"kind": "none"}', "a=b=c"]
    assert parse_env_args(pairs) == {
        "num_pages": 20,
        "bandwidth": 2.5,
        "instance": "noisy",
        "delay": {"kind": "none"},
        "a": "b=c",
    }


def test_scores_have_standard_errors():
    one = score("x", np.array([0.2, 0.4]))
    assert (one.mean, one.error) == (pytest.approx(0.3), pytest.approx(0.1))
    assert np.isnan(score("x", np.array([0.2])).error)
