"""Conventions of Gymnasium and Stable-Baselines3, and what observations show."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import crawl_envs
from crawl_envs import Instance
from tests.environments import EVERY_ID, EVERY_ID_AND_FORM, HARMONIC, NCIS, arguments, bare, batch
from tests.worlds import single_of

# Gymnasium's and Stable-Baselines3's conventions


@EVERY_ID_AND_FORM
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")
def test_gymnasium_finds_no_fault(name, form):
    env = gym.make(name, **arguments(name, form))
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@EVERY_ID_AND_FORM
@pytest.mark.filterwarnings("ignore:Your observation .* has an unconventional shape")
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")
@pytest.mark.filterwarnings("ignore:Your action space has dtype float64")
def test_stable_baselines_finds_no_fault(name, form):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(gym.make(name, **arguments(name, form)).unwrapped)


@EVERY_ID_AND_FORM
def test_an_episode_ends_by_truncation_after_its_last_crawl(name, form):
    env = gym.make(name, **arguments(name, form))
    observation, _ = env.reset(seed=4)
    env.action_space.seed(0)
    core = env.unwrapped
    space, reward_sum, steps = env.observation_space, 0.0, 0
    truncated = False
    while not truncated:
        assert observation in space
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert terminated is False
        assert type(reward) is float
        assert reward <= 0.0 if name == HARMONIC else 0.0 <= reward <= 1.0
        assert reward == sum(v for name, v in info.items() if name.startswith("reward_"))
        reward_sum += abs(reward)
        steps += 1
    assert observation in space
    longest = env.spec.max_episode_steps
    assert steps == core.num_slots() // core.batch <= longest
    assert steps == longest or name == "CrawlSites-v0"  # whose instances differ in length
    assert batch(2, name, **arguments(name, form)).spec.max_episode_steps == longest
    assert core.tracker().time > core.lanes.horizon - 1.0 / core.instance.bandwidth
    assert 0.0 < reward_sum < (steps if name != HARMONIC else math.inf)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        core.step(env.action_space.sample())


@EVERY_ID
def test_vector_environments_are_native(name):
    env = batch(3, name)
    assert type(env.unwrapped).__name__ == type(bare(name)).__name__ + "Vector"
    assert env.observation_space.shape[0] == 3
    assert env.single_observation_space == bare(name).observation_space
    assert env.single_action_space == bare(name).action_space
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


def test_registering_again_changes_nothing():
    before = dict(gym.registry)
    crawl_envs.register_envs()
    assert dict(gym.registry) == before
    for name, entry in crawl_envs.FAMILIES.items():
        assert gym.registry[name].entry_point == entry
        assert gym.registry[name].vector_entry_point == entry + "Vector"


def test_defaults_of_the_contract():
    env = gym.make(NCIS)
    env.reset(seed=0)
    core = env.unwrapped
    assert env.observation_space.shape == (100, 7)
    assert core.instance.bandwidth == 100.0
    assert core.num_slots() == 1000
    assert core.features == (
        "elapsed",
        "signals",
        "changed",
        "importance",
        "change_rate",
        "recall",
        "false_signal_rate",
    )


# Observations


RATES = st.sampled_from([0.0, 1e-3, 1.0, 300.0, 3e6])


@settings(max_examples=40, deadline=None)
@given(
    importance=st.lists(RATES, min_size=2, max_size=3),
    change_rate=RATES,
    recall=st.sampled_from([0.0, 0.5, 1.0]),
    false_rate=RATES,
    reveal=st.sampled_from(["parameters", "importance"]),
    seed=st.integers(0, 2**63),
)
def test_observations_lie_in_their_space(importance, change_rate, recall, false_rate, reveal, seed):
    """Rates up to a thousand events per slot and beyond every cap."""
    instance = Instance(importance, change_rate, recall, false_rate, bandwidth=2000.0)
    env = single_of(instance, horizon=0.002, reveal=reveal)
    observation, _ = env.reset(seed=seed)
    assert env.observation_space.contains(observation)
    for _ in range(4):
        observation, reward, _, truncated, _ = env.step(0)
        assert env.observation_space.contains(observation)
        assert 0.0 <= reward <= 1.0
    assert truncated


def test_elapsed_signals_and_rates_saturate():
    instance = Instance([2e6, 1.0], [2e6, 1.0], 0.0, [5e6, 0.0], bandwidth=1000.0)
    env = single_of(instance, horizon=0.002)
    env.reset(seed=0)
    env.step(1)
    observation, *_ = env.step(1)
    page = dict(zip(env.features, observation[0].tolist(), strict=True))
    assert page["elapsed"] == np.float32(0.002)
    assert env.tracker().elapsed[0] == 0.003
    assert page["signals"] == 1000.0 < env.tracker().signals[0]
    assert page["importance"] == page["change_rate"] == page["false_signal_rate"] == 1e6
    assert np.array_equal(env.tracker().problem.importance, [2e6, 1.0])


def test_what_is_not_revealed_is_not_shown():
    env = bare(reveal="importance")
    observation, _ = env.reset(seed=0)
    assert env.features == ("elapsed", "signals", "changed", "importance")
    assert observation.shape == (6, 4)
    problem = env.tracker().problem
    hidden = (problem.change_rate, problem.recall, problem.false_signal_rate, problem.delay)
    assert hidden == (None, None, None, None)
    assert np.array_equal(problem.importance, env.instance.importance)
    revealed = bare()
    revealed.reset(seed=0)
    assert np.array_equal(revealed.problem.change_rate, revealed.instance.change_rate)


def test_the_reward_counts_requests_or_freshness_and_the_cost_of_crawls():
    more = {"action": "refresh", "crawl_cost": 0.25}
    fresh, served = bare(**more), bare(reward="requests", **more)
    fresh.reset(seed=0)
    served.reset(seed=0)
    for _ in range(12):
        bits = np.array([1, 0, 0, 1, 1, 0], np.int8)
        _, reward, *_, info = fresh.step(bits)
        _, other, *_, other_info = served.step(bits)
        assert list(info)[:2] == ["reward_freshness", "reward_crawl_cost"]
        assert info["reward_crawl_cost"] == other_info["reward_crawl_cost"] == -0.75
        assert reward == info["reward_freshness"] - 0.75
        assert other_info["reward_requests"] == other_info["hits"]
        assert other == other_info["hits"] - 0.75
        assert info["hits"] == other_info["hits"]
    assert served.ledger().hits > 0
    assert served.ledger() == fresh.ledger()
