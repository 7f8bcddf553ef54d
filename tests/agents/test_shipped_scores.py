"""Shipped agents score as their ``score.json`` says."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

import agents
from agents.catalog import SHIPPED
from scripts.experiments.agents import noisy

KINDS = {name: noisy.KINDS[label] for label, name in noisy.SAVED_AS.items()}
FIELDS = ("instance", "num_pages", "bandwidth", "horizon", "reveal")


def saved(name: str) -> dict[str, Any]:
    return dict(json.loads((SHIPPED / name / "score.json").read_text("utf-8")))


NAMES = [name for name in agents.names() if "scores" in saved(name)]


def test_the_shipped_agents_have_scores() -> None:
    assert len(NAMES) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_agent_scores_as_it_says(name: str) -> None:
    score = saved(name)["scores"][0]
    config = json.loads((SHIPPED / name / "config.json").read_text("utf-8"))
    arguments = {field: score.get(field, config.get(field)) for field in FIELDS}
    if name.startswith("noisy"):
        arguments |= {"instance": "noisy", "reveal": "parameters"}
    seeds = list(range(*score["seeds"]))
    lanes = gymnasium.make_vec("CrawlNCIS-v0", num_envs=len(seeds), **arguments)
    observations, _ = lanes.reset(seed=seeds)
    agent = KINDS.get(name, noisy.index)(lanes, name=name)
    over = np.zeros(len(seeds), np.bool_)
    while not over.any():
        actions, _ = agent.predict(observations, deterministic=True)
        observations, _, _, over, _ = lanes.step(actions)
    assert over.all()
    core: Any = lanes.unwrapped
    measured = [core.ledger(lane).freshness for lane in range(len(seeds))]
    assert np.mean(measured) == pytest.approx(score["freshness"], abs=1e-6)
