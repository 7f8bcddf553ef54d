"""Shipped agents score as their ``score.json`` says."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from agents.catalog import SHIPPED
from crawl_envs import evaluation
from scripts.experiments.agents import noisy

KINDS = {name: noisy.KINDS[label] for label, name in noisy.SAVED_AS.items()}
FIELDS = ("instance", "num_pages", "bandwidth", "horizon", "reveal")


def saved(name: str) -> dict[str, Any]:
    return dict(json.loads((SHIPPED / name / "score.json").read_text("utf-8")))


NAMES = [folder.name for folder in sorted(SHIPPED.iterdir()) if "scores" in saved(folder.name)]


def test_the_shipped_agents_have_scores() -> None:
    assert len(NAMES) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_agent_scores_as_it_says(name: str) -> None:
    score = saved(name)["scores"][0]
    config = json.loads((SHIPPED / name / "config.json").read_text("utf-8"))
    arguments = {field: score.get(field, config.get(field)) for field in FIELDS}
    if name.startswith("noisy"):
        arguments |= {"instance": "noisy", "reveal": "parameters"}
    made = partial(KINDS.get(name, noisy.index), name=name)
    seeds = range(*score["seeds"])
    rows = evaluation.evaluate("CrawlNCIS-v0", {name: made}, seeds, **arguments)
    measured = [row.value for row in rows if row.metric == "freshness"]
    assert len(measured) == len(seeds)
    assert np.mean(measured) == pytest.approx(score["freshness"], abs=1e-6)
