"""Environments that users register, in the commands."""

from __future__ import annotations

import sys
from functools import partial

import gymnasium
import pytest

import policies
from agents.sb3.arguments import TrainArguments
from agents.sb3.lanes import make_lanes
from crawl_envs import evaluation
from crawl_envs.envs.vector import vectorized
from scripts import benchmark, evaluate, train
from scripts.study.rows import read_rows
from tests.scripts.commands import done, refused, run

MODULE = """
import gymnasium
from crawl_envs.families.ncis import CrawlNCIS
from crawl_envs.families.longevity import CrawlLongevity

small = {"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0}

class MyCrawl(CrawlNCIS):
    def __init__(self, **arguments):
        super().__init__(**{**small, "instance": "noisy", **arguments})

class Half(gymnasium.ObservationWrapper):
    def observation(self, observation):
        return observation / 2

def wrapped(**arguments):
    return Half(MyCrawl(**arguments))

class Doubled(MyCrawl):
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, 2.0 * reward, *rest

class Reversed(MyCrawl):
    # Crawls another page than the action says, so it has another ledger.

    def step(self, action):
        return super().step(self.action_space.n - 1 - action)

class Started(MyCrawl):
    def reset(self, **arguments):
        return super().reset(**arguments)

class Narrow(MyCrawl):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.action_space = gymnasium.spaces.Discrete(2)

gymnasium.register("Doubled-v0", entry_point=Doubled)
gymnasium.register("Reversed-v0", entry_point=Reversed)
gymnasium.register("Started-v0", entry_point=Started)
gymnasium.register("Narrow-v0", entry_point=Narrow)
gymnasium.register("MyCrawl-v0", entry_point=MyCrawl)
gymnasium.register("Small-v0", entry_point=CrawlNCIS, kwargs=small)
gymnasium.register("Pages-v0", entry_point=CrawlLongevity, kwargs={"num_pages": 4, "horizon": 20.0})
gymnasium.register("Half-v0", entry_point=wrapped)
gymnasium.register("Short-v0", entry_point=MyCrawl, max_episode_steps=3)
"""
IDS = ["own_crawls:MyCrawl-v0", "own_crawls:Small-v0", "mine/Native-v0"]
FEW = ["--episodes", "2", "--policies", "GreedyNCIS"]


@pytest.fixture(autouse=True, scope="module")
def registered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "own_crawls.py").write_text(MODULE)
    before = dict(gymnasium.registry)
    gymnasium.register(
        "mine/Native-v0",
        entry_point="crawl_envs.families.ncis:CrawlNCIS",
        vector_entry_point="crawl_envs.families.ncis:CrawlNCISVector",
        kwargs={"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


@pytest.mark.parametrize("env_id", IDS)
def test_an_id_of_ones_own_is_trained_on_and_evaluated(env_id, tmp_path):
    out = tmp_path / "run"
    few = ["--steps", "64", "--lanes", "2", "--set", "rollout=16", *FEW]
    assert "GreedyNCIS" in done(run(train.app, "ppo", env_id, *few, out=out)).stdout
    shown = done(run(evaluate.app, out, env_id, *FEW, "--workers", "1", out=tmp_path / "two"))
    assert env_id in shown.stdout
    assert "run" in {row.policy for row in read_rows(tmp_path / "two" / "rows.parquet")[0]}


def test_ids_of_ones_own_are_settings(tmp_path):
    named = ["--settings", ",".join(IDS[:2]), "--policies", "GreedyNCIS", "--seeds", "2"]
    done(run(benchmark.app, *named, "--workers", "1", out=tmp_path / "out"))
    rows, _ = read_rows(tmp_path / "out" / "rows.parquet")
    assert {row[:2] for row in rows} == {(name, name) for name in IDS[:2]}
    assert {row.policy for row in rows} == {"RoundRobin", "GreedyNCIS"}


def test_a_batch_of_a_single_environment_is_that_of_its_family():
    shape = {"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0, "instance": "noisy"}
    arguments = [
        TrainArguments(env_id="CrawlNCIS-v0", env_args=shape),
        TrainArguments(env_id=IDS[0]),
    ]
    lanes = [make_lanes(one, 3, training=True) for one in arguments]
    for one in lanes:
        one.seed(5)
    assert (lanes[0].reset() == lanes[1].reset()).all()
    for _ in range(30):
        (shown, reward, *_), (other, paid, *_) = (one.step([0, 1, 2]) for one in lanes)
        assert (shown == other).all()
        assert (reward == paid).all()
    pages = make_lanes(TrainArguments(env_id="own_crawls:Pages-v0"), 2, training=True)
    pages.reset()
    assert pages.vector.contents(1).num_pages == 4


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("CartPole-v1", ["a crawling environment", "CartPole-v1", "CartPoleEnv"]),
        ("MyMoon-v0", ["another registered id", "MyMoon"]),
        ("no_such_module:MyCrawl-v0", ["another registered id", "no_such_module"]),
    ],
)
def test_other_ids_are_refused(env_id, words, tmp_path):
    out = tmp_path / "out"
    refused(run(train.app, "ppo", env_id, out=out), *words)
    refused(run(evaluate.app, "RoundRobin", env_id, out=out), *words)
    result = run(benchmark.app, "--settings", env_id, out=out)
    assert result.exit_code != 0
    assert all(word in " ".join(result.output.split()) for word in words)


@pytest.mark.parametrize("name", ["Half-v0", "Short-v0"])
def test_wrapped_environments_are_not_trained_on(name):
    with pytest.raises(ValueError, match="env_id must have no wrappers or max_episode_steps"):
        make_lanes(TrainArguments(env_id=f"own_crawls:{name}"), 1, training=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Doubled-v0", "Doubled.step"),
        ("Started-v0", "Started.reset"),
        ("Narrow-v0", "Narrow.action_space"),
    ],
)
def test_what_a_batch_would_not_do_is_not_trained_on(name, words, tmp_path):
    with pytest.raises(ValueError, match=f"leave step, reset .* to CrawlEnv.*with {words}"):
        make_lanes(TrainArguments(env_id=f"own_crawls:{name}"), 1, training=True)
    few = ["--steps", "64", "--lanes", "2", "--set", "rollout=16", *FEW]
    out = tmp_path / "out"
    refused(run(train.app, "ppo", f"own_crawls:{name}", *few, out=out), "env_id", words)


def test_a_batch_refuses_a_class_that_replaces_steps():
    import own_crawls

    batch = vectorized(own_crawls.Doubled)
    with pytest.raises(ValueError, match=r"single must leave its steps.*got Doubled\.step"):
        batch(2)
    assert vectorized(own_crawls.MyCrawl)(2).num_envs == 2


def test_what_is_replaced_is_played_step_by_step(tmp_path):
    """Rankings are of the environment as it is: a limit, a wrapper of actions, and its own step."""
    policy = {"one": partial(policies.make, "GreedyNCIS")}
    seen = {}
    for name in ("MyCrawl-v0", "Reversed-v0", "Short-v0"):
        given = {"id": f"own_crawls:{name}", "policies": policy, "seeds": [0]}
        both = [list(evaluation.evaluate(**given, compiled=flag)) for flag in (True, False)]
        values = [[row.value for row in rows] for rows in both]
        assert values[0] == pytest.approx(values[1], nan_ok=True)
        seen[name] = {row.metric: row.value for row in both[0]}["freshness"]
    assert len(set(seen.values())) == 3


@pytest.mark.parametrize("name", ["Reversed-v0", "Short-v0", "Half-v0"])
def test_a_policy_that_chooses_its_own_times_is_not_played_past_them(name):
    env = evaluation.make_env(f"own_crawls:{name}")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="chooses the times of its crawls"):
        evaluation.play(env, policies.make("ThresholdNCIS", env), 0)
    whole = evaluation.make_env("own_crawls:MyCrawl-v0", max_episode_steps=20)
    whole.reset(seed=0)
    assert evaluation.play(whole, policies.make("ThresholdNCIS", whole), 0).crawls > 0


def test_reading_arguments_imports_nothing():
    TrainArguments.from_json('{"env_id": "antigravity:MyCrawl-v0"}')
    assert "antigravity" not in sys.modules
