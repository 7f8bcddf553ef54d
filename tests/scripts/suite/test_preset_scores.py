"""The command that measures what there is to learn in each preset."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import policies
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from crawl_envs.evaluation import mean_and_half_width
from scripts.suite import preset_scores
from tests.scripts import commands
from tests.scripts.commands import done, records

NAMES = ("CrawlNCIS-Noisy-10-v1", "CrawlHarmonic-Mixed-100-Shares-v0")


def test_rows_are_of_the_best_formula_and_of_random_crawling(tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("<!-- presets -->\n<!-- end of presets -->\n")
    few = {name: preset_scores.PRESETS[name] for name in NAMES}
    monkeypatch.setattr(preset_scores, "PRESETS", few)
    monkeypatch.setattr(preset_scores, "FORMULAS", ("LambdaCrawl", "GreedyNCIS"))
    done(commands.run(preset_scores.app, "--episodes", 2, out=tmp_path))
    rows = records(tmp_path / "presets.csv")
    best = ["GreedyNCIS", "LambdaCrawl"]
    assert [(row["id"], row["formula"]) for row in rows] == list(zip(NAMES, best, strict=True))
    assert [row["steps"] for row in rows] == ["100", "30"]
    for row, chance in zip(rows, ("RandomCrawl", "UniformCrawl"), strict=True):
        arguments = TrainArguments(env_id=row["id"])
        formula, random = (
            mean_rewards(lambda env, name=name: policies.make(name, env), arguments, episodes=2)
            for name in (row["formula"], chance)
        )
        expected = random.mean(), *mean_and_half_width(list(formula - random))
        given = [float(row[name]) for name in ("random", "gain", "gain_half")]
        np.testing.assert_allclose(given, expected)
        assert float(row["best"]) == pytest.approx(formula.mean())
    env = gymnasium.make(NAMES[0])
    seeds = range(FIRST_SEED, FIRST_SEED + 2)
    drawn = [env.reset(seed=seed) and env.unwrapped.instance for seed in seeds]
    optima = [policies.solvers.ncis(instance).objective for instance in drawn]
    assert float(rows[0]["bound"]) == pytest.approx(np.mean(optima))
    assert float(rows[0]["round_robin"]) > float(rows[0]["random"])
    assert rows[1]["round_robin"] == "nan"
    page = (tmp_path / "README.md").read_text("utf-8")
    assert "| `CrawlNCIS-Noisy-10-v1` | (70,) | page of 10 | 100 |" in page
