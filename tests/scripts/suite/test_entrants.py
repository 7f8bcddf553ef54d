from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import agents
import policies
from agents import catalog
from agents.catalog import SHIPPED
from agents.index import StoredIndex
from agents.index.inputs import number_of_weights
from policies.base import registry
from scripts.study.entrants import candidate_of, num_trainings, training_of
from scripts.study.specs import describe
from scripts.suite import crawl_v2
from scripts.suite.entrants import (
    COMPOSITE,
    KINDS,
    TRAINED,
    YOURS,
    Entrant,
    entrant_of,
    entrants,
    trained_entrant,
)
from scripts.suite.protocol import check_worlds
from tests.agents.test_catalog_trainings import index_in

ROOT = Path(__file__).parents[3]


def test_every_shipped_entrant_is_of_a_kind_and_of_a_file() -> None:
    known = [*policies.names(fragments=True, oracle=False), *agents.names()]
    for label in known:
        found = entrant_of(label)
        assert found.kind in KINDS, label
        assert (ROOT / found.file).is_file(), label
        assert not found.page or (ROOT / found.page.partition("#")[0]).is_file(), label
        learned = found.kind in (TRAINED, COMPOSITE)
        assert learned == (label in agents.names()) == bool(found.by)
    assert entrant_of("my_module:MyPolicy") == Entrant(YOURS)


def test_the_words_of_an_agent_are_by_what_and_on_what() -> None:
    made = json.loads((SHIPPED / "noisy-clone" / "score.json").read_text())["made"]
    found = entrant_of("noisy-clone")
    assert found[4:] == ("cloning", "noisy", "imitates GreedyNCIS", f"`{made['command']}`")
    assert entrant_of("noisy-clone").words == "trained: cloning on noisy"
    assert entrant_of("noisy-pages").words == "trained: PPO on noisy"
    assert entrant_of("generalist").words == "composite: crawl outcomes on 14 laws"
    assert Entrant(YOURS, by="PPO", on="per task").words == "PPO, per task"
    assert Entrant(YOURS, on="one for all").words == "yours, one for all"
    assert entrant_of("BeliefNCIS").words == "learning formula"


def written(folder: Path, config: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_an_index_was_trained_by_outcomes_of_crawls(tmp_path: Path) -> None:
    weights = np.zeros(number_of_weights(1))
    StoredIndex(weights).save(written(tmp_path, {"instance": "bursty"}))
    assert trained_entrant(tmp_path)[4:] == ("crawl outcomes", "bursty", "", "")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"algorithm": "ppo", "env_args": {"instance": "late"}}, ("PPO", "late")),
        ({"algorithm": "crawl outcomes", "instance": ["a", "b"]}, ("crawl outcomes", "a, b")),
        ({"algorithm": "crawl outcomes", "instance": list("abcd")}, ("crawl outcomes", "4 laws")),
        ({"stages": [{"algorithm": "ppo"}, {"algorithm": "a2c"}]}, ("A2C", "")),
    ],
)
def test_a_configuration_says_by_what_and_on_what(
    tmp_path: Path, config: dict[str, Any], words: tuple[str, str]
) -> None:
    assert trained_entrant(written(tmp_path, config))[4:6] == words


def test_a_configuration_without_an_algorithm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json must name the algorithm of the training"):
        trained_entrant(written(tmp_path, {"seed": 0}))


def test_shipped_trainings_are_one_entrant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "SHIPPED", tmp_path)
    for seed in range(3):
        run = index_in(tmp_path / "several" / f"seed-{seed}", 0.01 * seed)
        (run / "score.json").write_text('{"made": {"processor_seconds": 5.0}}')
    found = trained_entrant(tmp_path / "several")
    assert found.words == "trained: crawl outcomes on noisy, 3 trainings"
    assert found.file == "agents/trained/several/seed-0/config.json"
    candidate = candidate_of("several")
    assert candidate.training_seconds == 15.0
    assert [run.name for run in candidate.trainings] == ["seed-0", "seed-1", "seed-2"]
    described = describe(candidate.factory)
    assert described["folder"] == "several"
    assert num_trainings(described) == 3
    assert candidate.digest != candidate_of(tmp_path / "several" / "seed-0").digest
    loaded: list[str] = []
    monkeypatch.setattr(agents, "load", lambda folder, env: loaded.append(Path(folder).name))
    for repetition in range(5):
        training_of(candidate.factory, repetition)(None)
    assert loaded == ["seed-0", "seed-1", "seed-2", "seed-0", "seed-1"]


@pytest.mark.parametrize(("formulas", "word"), [(True, "composite"), (False, "trained")])
def test_a_generalist_with_formulas_is_a_composite(
    tmp_path: Path, formulas: bool, word: str
) -> None:
    config = {"algorithm": "crawl outcomes", "instance": ["noisy"], "formulas": formulas}
    (written(tmp_path, config) / "generalist.json").touch()
    found = trained_entrant(tmp_path)
    assert found.words == f"{word}: crawl outcomes on noisy"
    assert ("formula" in found.formula) == formulas


def test_agents_trained_per_task_are_one_entrant() -> None:
    ppo, described = entrants(())["ppo-per-task"], entrant_of("ppo-per-task")
    assert ppo.by_task is not None
    assert {*ppo.by_task} <= {task.name for task in crawl_v2.TASKS}
    assert len(ppo.trainings) == 5 * len(ppo.by_task)
    assert described.words == "trained: PPO per task, 5 trainings"
    assert (ROOT / described.file).is_file()
    check_worlds("ppo-per-task", ppo.trainings)
    bursty, deploys = (ppo.in_task(name) for name in ("bursty", "deploys"))
    assert deploys is None
    assert bursty is not None
    world = {"num_pages": 30, "bandwidth": 30.0, "horizon": 2.0, "instance": "bursty"}
    env = gymnasium.make("CrawlNCIS-v0", start="crawled", **world)
    observation, _ = env.reset(seed=0)
    assert 0 <= bursty.factory(env).predict(observation)[0] < 30


def test_a_registered_policy_of_the_user_is_not_shipped() -> None:
    about = {"__doc__": "Crawl.", "__module__": __name__}
    registry.registered()(type("Mine", (policies.RoundRobin,), about))
    try:
        assert "Mine" in policies.names(fragments=True)
        assert "Mine" not in entrants(())
    finally:
        del registry.POLICIES["Mine"], registry.TAGS["Mine"]
