"""Training a generalist."""

from __future__ import annotations

import numpy as np
import pytest

from agents.generalist import training, worlds
from agents.generalist.stored import StoredGeneralist
from agents.generalist.training import CurveRow, GeneralistArguments, train
from agents.runs import CONFIG, CURVE, read_rows

TINY = {"episodes": 1, "hidden": 2, "instance": ("noisy", "deploys"), "hidden_laws": ("noisy",)}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(worlds, "CYCLES", {"parameters": 4, "importance": 4})
    monkeypatch.setattr(training, "TEST_EPISODES", 1)


def test_a_training_writes_its_folder(tmp_path, quick):
    arguments = GeneralistArguments(**TINY)
    agent = train(arguments, tmp_path / "one")
    read = StoredGeneralist.read(tmp_path / "one")
    np.testing.assert_array_equal(read.weights, agent.weights)
    assert read.made["instance"] == [*TINY["instance"]]
    text = (tmp_path / "one" / CONFIG).read_text()
    assert GeneralistArguments.from_json(text) == arguments
    curve = read_rows(tmp_path / "one" / CURVE, CurveRow)
    assert {row.fit for row in curve} == {"staleness", "value"}
    assert all(np.isfinite(row.loss) for row in curve)
    again = train(arguments, tmp_path / "two")
    np.testing.assert_array_equal(again.weights, agent.weights)
    with pytest.raises(ValueError, match="holds an agent already"):
        train(arguments, tmp_path / "one")


def test_worlds_are_the_named_laws_and_sites():
    names = {"instance": ("bursty",), "hidden_laws": ("cold", "late"), "sites": ("rust-blog",)}
    found = [(it.reveal, it.law or it.site) for it in GeneralistArguments(**names).worlds()]
    hidden = [("importance", "cold"), ("importance", "late")]
    sites = [("parameters", "rust-blog"), ("importance", "rust-blog")]
    assert found == [("parameters", "bursty"), *hidden, *sites]
    assert len(GeneralistArguments().worlds()) == 17


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"episodes": 0}, "episodes must be"),
        ({"hidden": 1.5}, "hidden must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"seed": 2**16}, "seed must be an integer in"),
        ({"instance": ("nothing",)}, "instance"),
        ({"hidden_laws": ("nothing",)}, "hidden_laws"),
        ({"sites": ("nothing",)}, "sites"),
        ({"instance": (), "hidden_laws": ()}, "at least one world"),
        ({"start": "stale"}, "start"),
        ({"algorithm": "ppo"}, "algorithm"),
    ],
)
def test_arguments_out_of_range_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        GeneralistArguments(**change)
