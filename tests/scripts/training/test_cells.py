"""A cell of a study is a run of the command, with its curve and scores."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from agents.runs import read_rows
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from agents.sb3.validation import VALIDATION_SEED, ValidationRow
from policies import make
from scripts.train import app
from scripts.training.cells import train_cell
from tests.scripts import commands
from tests.scripts.commands import SMALL, done

ARGS = {"num_pages": 4, "bandwidth": 4, "horizon": 5}
NAMES = ("Greedy", "UniformCrawl")


def test_a_cell_is_a_run_of_the_command(tmp_path):
    cell = train_cell(
        "a2c",
        "CrawlNCIS-v0",
        tmp_path / "cell",
        seed=2,
        steps=4000,
        env_args=ARGS,
        policies=NAMES,
        episodes=3,
    )
    options = ["--seed", 2, "--steps", 4000, "--episodes", 3, "--policies", ",".join(NAMES)]
    done(commands.run(app, "a2c", "CrawlNCIS-v0", *SMALL, *options, out=tmp_path / "run"))
    with (tmp_path / "run" / "ranking.csv").open(encoding="utf-8") as file:
        ranking = {row["policy"]: row for row in csv.DictReader(file)}
    assert set(cell.scores) == {"a2c", "a2c, drawn"}
    for label, score in cell.scores.items():
        assert float(ranking[label]["normalised_score"]) == pytest.approx(score)
    assert cell.best == "Greedy"
    assert cell.seconds > 0.0
    arguments = TrainArguments(env_args=ARGS)
    random, best = (
        mean_rewards(
            lambda env, name=name: make(name, env), arguments, episodes=8, seed=VALIDATION_SEED
        ).mean()
        for name in ("RandomCrawl", "Greedy")
    )
    rows = read_rows(tmp_path / "run" / "validation.csv", ValidationRow)
    expected = [(row.steps, (row.mean_reward - random) / (best - random)) for row in rows]
    np.testing.assert_allclose(cell.curve, expected)
