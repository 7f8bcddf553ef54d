"""Commands train on the page sets of training, and compare on others."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from agents.catalog import SHIPPED
from agents.generalist.training import GeneralistArguments
from agents.generalist.worlds import World, explored
from agents.index.arguments import IndexArguments
from agents.sb3.arguments import TrainArguments
from agents.sb3.lanes import make_lanes
from crawl_envs import instances
from crawl_envs.sim.streams import PageSets
from scripts.training.jobs import job_of
from scripts.training.options import CloneOptions, IndexOptions, LearnOptions, TuneOptions
from scripts.training.requests import request_of, save_request
from scripts.training.tuning import tuning_of

WORLD: dict[str, Any] = {"num_pages": 4, "bandwidth": 4.0, "horizon": 2.0, "instance": "noisy"}
PAIRS = [f"{name}={value}" for name, value in WORLD.items()]


def drawn(seed: int, pages: PageSets) -> list[float]:
    rates = instances.make("noisy", num_pages=4, bandwidth=4.0, seed=seed, pages=pages).change_rate
    return list(rates)


def rates_of(arguments: TrainArguments, training: bool) -> list[list[float]]:
    """The change rates of the two lanes of a run."""
    env = make_lanes(arguments, 2, training=training)
    env.seed(3)
    env.reset()
    return [list(env.vector.lanes.instance(lane).change_rate) for lane in range(2)]


@pytest.mark.parametrize(
    ("kind", "options"), [("ppo", LearnOptions), ("clone", CloneOptions), ("index", IndexOptions)]
)
def test_commands_train_on_the_page_sets_of_training(kind: str, options: Any) -> None:
    job = job_of(request_of(kind, options(env_id="CrawlNCIS-v0", env_arg=PAIRS)))
    assert job.arguments.pages == "train"
    if kind == "index":
        assert list(job.arguments.draw(2**40).change_rate) == drawn(2**40, "train")
    else:
        few = TrainArguments(**{**vars(job.arguments), "train_pages": 0})
        assert rates_of(few, True) == [drawn(3, "train"), drawn(4, "train")]
    assert rates_of(job.environment, False) == [drawn(3, "any"), drawn(4, "any")]
    before = options(env_id="CrawlNCIS-v0", env_arg=PAIRS, set=["pages=any"])
    assert job_of(request_of(kind, before)).arguments.pages == "any"


def test_the_environments_argument_is_respected() -> None:
    for pages in ("any", "test"):
        named = TrainArguments(env_args={**WORLD, "pages": pages}, pages="train")
        assert rates_of(named, True) == rates_of(named, False) == [drawn(3, pages), drawn(4, pages)]


def test_trials_train_on_the_page_sets_of_training() -> None:
    options = TuneOptions(algorithm="ppo", env_id="CrawlNCIS-v0", env_arg=PAIRS)
    assert tuning_of(options).job({"learning_rate": 0.1}).arguments.pages == "train"


def test_a_resumed_run_keeps_its_page_sets(tmp_path: Any) -> None:
    request = request_of("ppo", LearnOptions(env_id="CrawlNCIS-v0", env_arg=PAIRS))
    for settings, pages in ((request.settings, "train"), ({}, "any")):
        save_request(tmp_path, request.__class__(**{**vars(request), "settings": settings}))
        again = request_of("ppo", LearnOptions(resume=tmp_path))
        assert job_of(again).arguments.pages == pages


def test_configurations_of_shipped_agents_name_the_general_stream() -> None:
    index = IndexArguments.from_json((SHIPPED / "noisy-index" / "config.json").read_text())
    assert list(index.draw(7).importance) == list(
        instances.make("noisy", num_pages=100, bandwidth=index.bandwidth_of(7), seed=7).importance
    )
    config = json.loads((SHIPPED / "generalist" / "config.json").read_text())
    assert GeneralistArguments(**config).pages == "any"


def test_the_generalist_explores_the_named_page_sets() -> None:
    world = World("parameters", "noisy")
    records = [explored(world, 5, pages) for pages in ("any", "train")]
    default = explored(world, 5)
    for name in default._fields:
        value = getattr(default, name)
        if isinstance(value, np.ndarray) and value.size:
            np.testing.assert_array_equal(value, getattr(records[0], name))
    assert any(
        isinstance(value, np.ndarray) and not np.array_equal(value, getattr(records[1], name))
        for name, value in zip(default._fields, default, strict=True)
    )
    with pytest.raises(ValueError, match="pages must be one of any, train, test, got 'dev'"):
        GeneralistArguments(pages="dev")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pages must be one of any, train, test, got 'dev'"):
        TrainArguments(pages="dev")  # type: ignore[arg-type]
