"""The suite's own checks pass on what ships, and fail on what breaks the contract."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import crawl_envs
import policies
from crawl_envs.checks import check_crawl_env, check_policy, check_state, check_tape, check_tracker
from crawl_envs.compiled.compiling import VALUE, compiled
from tests.environments import HAS_WINDOW

SETTINGS = {
    "uniform": {"id": "CrawlNCIS-v0"},
    "delayed": {"id": "CrawlNCIS-v0", "instance": "delayed"},
    "requests": {"id": "CrawlNCIS-v0", "reward": "requests", "reveal": "importance"},
    "scores": {"id": "CrawlNCIS-v0", "instance": "noisy", "action": "scores", "batch": 7},
    "refresh": {"id": "CrawlNCIS-v0", "action": "refresh", "crawl_cost": 0.01},
    "sources": {"id": "CrawlNCIS-v0", "instance": "sources"},
    "sources with delays": {
        "id": "CrawlNCIS-v0",
        "instance": "sources",
        "num_sources": 3,
        "delay": {"kind": "exponential", "mean": 0.5},
        "reveal": "importance",
    },
    "rates": {"id": "CrawlHarmonic-v0"},
    "rates, hidden": {
        "id": "CrawlHarmonic-v0",
        "reveal": "importance",
        "bucket": 10.0,
        "epoch": 0.5,
        "objective": [0.0, 1.0, 1.5],
        "bandwidth_steps": [[2.25, 40.0]],
    },
    "harmonic": {"id": "CrawlHarmonic-v0", "action": "page", "instance": "lambdacrawl"},
    "noisy": {"id": "CrawlNCIS-v0", "objective": "harmonic", "instance": "noisy"},
    "offers": {"id": "CrawlOffers-v1", "num_pages": 60, "reveal": "parameters"},
    "offers, scores": {
        "id": "CrawlOffers-v1",
        "num_pages": 60,
        "bandwidth": 100.0,
        "action": "scores",
        "reveal": "parameters",
        "objective": "offers",
        "price_history": "crawled",
        "reward": "requests",
        "crawl_cost": 0.01,
    },
    "longevity": {"id": "CrawlLongevity-v0", "num_pages": 30, "signals": "noisy"},
    "longevity, sketches": {
        "id": "CrawlLongevity-v0",
        "num_pages": 30,
        "action": "refresh",
        "objective": "holistic",
        "crawl_cost": 0.01,
        "base_versions": 3,
        "sketch_size": 8,
        "reveal": "importance",
        "bandwidth": 1.0,
    },
    "trace with two sources": {"id": "CrawlTrace-v0", "signals": "both"},
    "sites": {
        "id": "CrawlSites-v0",
        "split": "garden-handbook",
        "num_pages": 65,
        "days": 20.0,
        "resample": True,
    },
    "trace": {"id": "CrawlTrace-v0", "days_per_crawl": 10.0},
    "crawled": {"id": "CrawlNCIS-v0", "instance": "noisy", "cost_spread": 0.5, "start": "crawled"},
    "crawled, rates": {"id": "CrawlHarmonic-v0", "reveal": "importance", "start": "crawled"},
    "crawled, offers": {"id": "CrawlOffers-v1", "num_pages": 60, "start": "crawled"},
    "crawled, longevity": {"id": "CrawlLongevity-v0", "num_pages": 30, "start": "crawled"},
    "crawled, trace": {"id": "CrawlTrace-v0", "start": "crawled"},
}


def maker(setting: str):
    return lambda: gymnasium.make(**SETTINGS[setting])


def test_every_family_is_checked():
    assert {setting["id"] for setting in SETTINGS.values()} == set(crawl_envs.FAMILIES)


@pytest.mark.parametrize("setting", SETTINGS)
def test_environments_pass(setting):
    check_crawl_env(maker(setting), render=HAS_WINDOW)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        (name, setting)
        for setting in (
            *("uniform", "delayed", "scores", "refresh", "trace", "rates", "harmonic"),
            *("offers", "offers, scores", "crawled", "crawled, longevity"),
        )
        for name in policies.names(
            SETTINGS[setting].get("action", "rates" if setting in ("rates", "offers") else "page")
        )
    ],
)
def test_policies_pass(name, setting):
    check_policy(lambda env: policies.make(name, env), maker(setting))


class Broken(gymnasium.Wrapper):
    """Breaks one clause of the contract."""

    def __init__(self, how: str) -> None:
        super().__init__(gymnasium.make("CrawlNCIS-v0"))
        self.how = how

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self.how == "reward":
            reward += 1.0
        if self.how == "observation":
            observation = observation + 0.5
        if self.how == "bounds":
            observation = observation * np.float32(-1e9)
        return observation, reward, terminated, truncated, info

    def reset(self, *, seed=None, options=None):
        if self.how == "seed":
            seed = int(np.random.default_rng().integers(1000))
        return self.env.reset(seed=seed, options=options)


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("reward", check_tape),
        ("bounds", check_tape),
        ("seed", check_tape),
        ("observation", check_tracker),
    ],
)
def test_broken_environments_fail(how, check):
    with pytest.raises(AssertionError):
        check(lambda: Broken(how))


def test_a_state_that_is_not_taken_back_fails(monkeypatch):
    env = gymnasium.make("CrawlNCIS-v0", instance="noisy")
    monkeypatch.setattr(type(env.unwrapped), "set_state", lambda self, state: None)
    with pytest.raises(AssertionError, match="set_state"):
        check_state(lambda: env)


class Careless:
    """A policy whose choices are not decided by the seed."""

    def __init__(self, env) -> None:
        self.num_pages = env.observation_space.shape[0]
        self.rng = np.random.default_rng()

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        page = self.rng.integers(self.num_pages)
        return (np.array([page]) if observation.ndim == 3 else page), state


def test_careless_policies_fail():
    with pytest.raises(AssertionError, match="same seed"):
        check_policy(Careless, maker("uniform"))


@compiled(VALUE.signature)
def undefined(parameters, page, elapsed, signals):
    return np.nan if page == 3 and elapsed > 0.0 else elapsed


class Undefined(policies.Greedy):
    def _index(self, problem):
        return undefined, np.zeros((len(problem.importance), 1))


def test_an_index_that_is_no_number_fails():
    with pytest.raises(AssertionError, match=r"the index must be a number, got .*nan.* for page 3"):
        check_policy(lambda env: policies.bind(Undefined(), env), maker("uniform"))
