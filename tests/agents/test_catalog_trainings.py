"""A folder of several trainings is one agent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import agents
from agents import catalog
from agents.index import StoredIndex
from agents.index.inputs import number_of_weights


def index_in(folder: Path, weight: float = 0.0, **made: object) -> Path:
    """Write an index whose networks have equal weights, with the arguments of its training."""
    arguments = {"instance": "noisy", "pages": "train", "num_pages": 100} | made
    StoredIndex(np.full(number_of_weights(1), weight), arguments).save(folder)
    (folder / "config.json").write_text(json.dumps(arguments))
    return folder


def test_trainings_are_in_the_order_of_their_seeds(tmp_path: Path) -> None:
    assert catalog.trainings(tmp_path) == ()
    for seed in (0, 2, 10):
        index_in(tmp_path / "several" / f"seed-{seed}")
    several = tmp_path / "several"
    assert [run.name for run in catalog.trainings(several)] == ["seed-0", "seed-2", "seed-10"]
    assert catalog.agent_file(several) == several / "seed-0" / "index.json"
    assert catalog.trainings(several / "seed-2") == (several / "seed-2",)


def test_an_unfinished_training_makes_no_agent(tmp_path: Path) -> None:
    index_in(tmp_path / "seed-0")
    (tmp_path / "seed-1").mkdir()
    assert catalog.trainings(tmp_path) == ()
    with pytest.raises(ValueError, match=r"there is no model\.zip"):
        agents.load(tmp_path)


def test_shipped_trainings_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "SHIPPED", tmp_path)
    index_in(tmp_path / "one")
    for seed in range(3):
        index_in(tmp_path / "several" / f"seed-{seed}")
    assert agents.names() == ("one", "several")
    assert agents.agent_file("several") == tmp_path / "several" / "seed-0" / "index.json"
