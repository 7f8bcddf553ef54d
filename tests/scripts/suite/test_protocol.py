from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import agents
from agents.catalog import SHIPPED
from agents.sb3.arguments import TrainArguments
from agents.sb3.training import train
from crawl_envs.evaluation import make_env
from crawl_envs.instances import traces
from scripts.suite.crawl_v2 import TRAINING_LAWS
from scripts.suite.protocol import check_worlds, declared_worlds, training_world
from scripts.suite.suites import SUITES
from tests.agents.test_catalog_trainings import index_in

NCIS = "CrawlNCIS-v0"
TRAIN = {"instance": "noisy", "pages": "train"}


def declare(folder: Path, *worlds: tuple[str, dict[str, Any]]) -> Path:
    named = [{"id": id, "arguments": arguments} for id, arguments in worlds]
    (folder / "training.json").write_text(json.dumps({"worlds": named}))
    return folder


@pytest.mark.parametrize(
    "world",
    [
        (NCIS, TRAIN),
        (f"crawl_envs:{NCIS}", {**TRAIN, "num_pages": 300, "instance": "bursty"}),
        ("CrawlHarmonic-v0", {"pages": "train"}),
        ("CrawlLongevity-v0", {"pages": "train", "instance": "random"}),
        ("CrawlNCIS-Late-100-v0", {"pages": "train"}),
        ("CrawlSites-v0", {}),
        ("CrawlSites-v0", {"split": ["go-website", "browser-compat"]}),
        ("CrawlTrace-v0", {"trace": "browser-compat"}),
        ("my_module:MyCrawl-v0", {"size": 3}),
    ],
)
def test_worlds_of_training_are_allowed(tmp_path: Path, world: tuple[str, dict[str, Any]]) -> None:
    check_worlds("mine", [declare(tmp_path, world)])


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        ((NCIS, {"instance": "noisy"}), "pages='any'"),
        ((NCIS, {**TRAIN, "pages": "test"}), "pages='test'"),
        ((NCIS, {**TRAIN, "instance": "periodic"}), "instance='periodic'"),
        ((NCIS, {**TRAIN, "num_pages": 301}), "num_pages=301"),
        (("CrawlOffers-v1", {"pages": "train"}), "num_pages=1000"),
        (("CrawlNCIS-Periodic-100-v0", {"pages": "train"}), "instance='periodic'"),
        (("CrawlSites-v0", {"split": "test"}), "'test' of the split test"),
        (("CrawlSites-v0", {"split": ["go-website", "cloud-prices"]}), "'cloud-prices'"),
        (("CrawlTrace-v0", {"trace": str(traces.find("cloud-prices"))}), "'cloud-prices'"),
    ],
)
def test_worlds_of_tests_are_refused(
    tmp_path: Path, world: tuple[str, dict[str, Any]], reason: str
) -> None:
    declare(tmp_path, (NCIS, TRAIN), world)
    with pytest.raises(ValueError, match="must not be trained on worlds of tests") as error:
        check_worlds("mine", [tmp_path])
    for text in ("agent mine", world[0], reason, str(tmp_path), "the laws uniform, partial"):
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (("CrawlNCSI-v0", TRAIN), "id 'CrawlNCSI-v0' is unknown; did you mean CrawlNCIS-v0"),
        (
            (NCIS, {**TRAIN, "num_page": 3}),
            "argument 'num_page' is unknown; did you mean num_pages",
        ),
        ((NCIS, {**TRAIN, "num_pages": "many"}), "num_pages must be an integer .* got 'many'"),
        ((NCIS, {**TRAIN, "instance": "noisyy"}), "'noisyy' is unknown; did you mean noisy"),
        ((NCIS, {**TRAIN, "pages": "trian"}), "pages must be one of any, train, test, got 'trian'"),
        (("CrawlSites-v0", {"split": "trian"}), "split must be train, dev or test .* got 'trian'"),
        (("CrawlSites-v0", {"split": 3}), "split must be train, dev or test .* got 3"),
        (("CrawlTrace-v0", {"trace": 3}), "trace must be a path, got 3"),
    ],
)
def test_a_world_that_its_environment_refuses_is_an_error_of_the_file(
    tmp_path: Path, world: tuple[str, dict[str, Any]], reason: str
) -> None:
    declare(tmp_path, (NCIS, TRAIN), world)
    with pytest.raises(ValueError, match=rf"training\.json, world {world[0]}: .*{reason}"):
        check_worlds("mine", [tmp_path])


def test_an_agent_without_a_declaration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"mine must declare .* got none .* training\.json"):
        check_worlds("mine", [tmp_path])
    (tmp_path / "training.json").write_text('{"worlds": ["CrawlNCIS-v0"]}')
    with pytest.raises(ValueError, match=r"training\.json is damaged: it must be of the form"):
        check_worlds("mine", [tmp_path])


def test_an_index_declares_its_law_and_pages(tmp_path: Path) -> None:
    check_worlds("index", [index_in(tmp_path / "a")])
    with pytest.raises(ValueError, match="pages='any'"):
        check_worlds("index", [tmp_path / "a", index_in(tmp_path / "b", pages="any")])
    with pytest.raises(ValueError, match=r"instance=\{'change_rate'"):
        check_worlds("index", [index_in(tmp_path / "c", pinned={"change_rate": [1.0]})])
    with pytest.raises(ValueError, match="must declare"):
        check_worlds("index", [index_in(tmp_path / "d", instance=None, log=["log.csv"])])
    check_worlds("index", [declare(tmp_path / "d", ("my_module:Log-v0", {}))])


def test_a_generalist_declares_its_laws_and_sites(tmp_path: Path) -> None:
    made: dict[str, Any] = {"instance": ["noisy"], "hidden_laws": ["late"], "pages": "train"}
    made["sites"] = "train"
    (tmp_path / "generalist.json").write_text(json.dumps({"made": made}))
    assert declared_worlds(tmp_path) == [
        (NCIS, {"pages": "train", "instance": "noisy"}),
        (NCIS, {"pages": "train", "instance": "late"}),
        ("CrawlSites-v0", {"split": "train"}),
    ]
    check_worlds("g", [tmp_path])
    made["sites"] = ["browser-compat", "cloud-prices"]
    (tmp_path / "generalist.json").write_text(json.dumps({"made": made}))
    with pytest.raises(ValueError, match="CrawlSites-v0 with 'cloud-prices'"):
        check_worlds("g", [tmp_path])
    made |= {"sites": [], "hidden_laws": ["periodic"]}
    (tmp_path / "generalist.json").write_text(json.dumps({"made": made}))
    with pytest.raises(ValueError, match="instance='periodic'"):
        check_worlds("g", [tmp_path])


@pytest.mark.parametrize("name", ["generalist", "noisy-clone", "noisy-index", "noisy-pages"])
def test_agents_of_the_first_suite_saw_all_page_sets(name: str) -> None:
    assert name in agents.names()
    with pytest.raises(ValueError, match="pages='any'"):
        check_worlds(name, [SHIPPED / name])


def test_a_model_declares_its_environment_and_that_of_its_start(tmp_path: Path) -> None:
    small = {"num_pages": 4, "bandwidth": 4.0, "horizon": 1.0, "instance": "noisy"}
    values: dict[str, Any] = {"steps": 8, "lanes": 2, "rollout": 4, "model_args": {"batch_size": 8}}
    train(TrainArguments(env_args=small, pages="any", **values), tmp_path / "first")
    start = str(tmp_path / "first")
    train(TrainArguments(env_args=small, pages="train", **values, start=start), tmp_path / "next")
    assert declared_worlds(tmp_path / "next") == [
        (NCIS, {**small, "pages": "any"}),
        (NCIS, {**small, "pages": "train"}),
    ]
    with pytest.raises(ValueError, match="pages='any'"):
        check_worlds("ppo", [tmp_path / "next"])
    (tmp_path / "first").rename(tmp_path / "moved")
    with pytest.raises(ValueError, match="must declare the worlds of its training, got none"):
        check_worlds("ppo", [tmp_path / "next"])
    fewer = {**small, "num_pages": 400, "bandwidth": 400.0}
    few = TrainArguments(env_args=fewer, pages="train", train_pages=4, **values)
    train(few, tmp_path / "few")
    check_worlds("ppo", [tmp_path / "few"])


def test_every_task_has_a_world_of_training(tmp_path: Path) -> None:
    tests = {*traces.sites("test")}
    for task in SUITES["crawl-v2"]:
        id, arguments = training_world(task)
        check_worlds(task.name, [declare(tmp_path, (id, arguments))])
        env: Any = make_env(id, **arguments)
        env.reset(seed=0)
        assert env.unwrapped.problem.num_pages <= 300
        for name in ("reveal", "days_per_crawl", "signals", "start", "cost_spread", "action"):
            assert arguments.get(name) == task.arguments.get(name)
        if id == NCIS:
            law = task.arguments["instance"]
            assert arguments["instance"] == (law if law in TRAINING_LAWS else "noisy")
        if id == "CrawlSites-v0":
            assert arguments["split"] == "train"
            assert not tests & {*traces.sites("train")}
        else:
            assert arguments["pages"] == "train"
    tasks = {task.name: task for task in SUITES["crawl-v2"]}
    many = training_world(tasks["bursty-hidden-1000"])[1]
    assert (many["num_pages"], many["bandwidth"]) == (100, 25.0)
    assert training_world(tasks["recorded-30-nothing"])[1]["num_pages"] == 100
