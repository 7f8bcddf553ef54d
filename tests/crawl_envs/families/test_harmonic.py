"""``CrawlHarmonic-v0``: rewards, infos, spaces, and what is shown."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.spaces.rewards import metrics
from tests.environments import HARMONIC, NCIS, assert_same, bare, batch

RATED = {"num_pages": 8, "bandwidth": 6.0, "horizon": 12.0}


@pytest.mark.parametrize("form", ["rates", "page", "scores", "refresh"])
def test_infos(form):
    env = bare(HARMONIC, action=form, crawl_cost=0.5)
    _, first = env.reset(seed=0)
    assert not any(first.values())
    env.action_space.seed(0)
    for _ in range(2):
        _, reward, _, _, info = env.step(env.action_space.sample())
        rated = {"denied", "declared"} if form == "rates" else set()
        assert set(first) == set(info) == {"reward_penalty", "reward_crawl_cost", "crawls"} | rated
        assert info["crawls"] == env.last_log().page.size
        assert info["reward_crawl_cost"] == -0.5 * info["crawls"]
        assert info["reward_penalty"] <= 0.0
        assert reward == info["reward_penalty"] + info["reward_crawl_cost"]


def test_freshness_can_be_the_reward():
    env = bare(HARMONIC, reward="freshness")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.full(6, 0.5))
    assert 0.0 < reward == info["reward_freshness"] <= 1.0
    assert env.ledger().freshness == pytest.approx(reward, rel=1e-12)
    assert env.ledger().cost > 0.0


@pytest.mark.parametrize("reveal", ["parameters", "importance"])
def test_who_has_complete_observation_is_public(reveal):
    env = bare(HARMONIC, instance="mixed", reveal=reveal, num_pages=10)
    observation, _ = env.reset(seed=0)
    assert env.problem.complete.tolist() == env.instance.complete.tolist()
    assert env.tracker().problem.complete.sum() == 5
    column = env.features.index("complete")
    assert observation[:, column].tolist() == env.problem.complete.tolist()
    hidden = ("change_rate", "recall", "false_signal_rate")
    assert all((name in env.features) == (reveal == "parameters") for name in hidden)
    assert env.observation_space.contains(observation)


def test_the_space_of_rates():
    env = bare(HARMONIC, bandwidth=4.0, bandwidth_steps=[(3.0, 9.0)], num_pages=5)
    assert env.action_space == gym.spaces.Box(0.0, 9.0, (5,), np.float64)
    assert bare(HARMONIC, bandwidth=0.25).action_space.high[0] == 1.0
    lanes = batch(3, HARMONIC)
    assert lanes.action_space.shape == (3, 6)
    assert lanes.action_space.dtype == np.float64


def test_the_families_have_the_same_changes_without_requests():
    """Those of NCIS are drawn with the requests, in one stream: they differ, and must."""
    harmonic_env, ncis = (
        bare(name, action="page", instance="noisy", **RATED) for name in (HARMONIC, NCIS)
    )
    for env in (harmonic_env, ncis):
        env.reset(seed=0)
        env.step(0)
    assert_same(harmonic_env.instance.change_rate, ncis.instance.change_rate)
    assert harmonic_env.ledger().requests == 0
    assert metrics(harmonic_env.ledger())["cost"] == harmonic_env.ledger().cost


def test_importance_may_be_as_large_as_it_likes():
    """It is a weight: no requests are played, so that no number of them is too large."""
    env = bare(HARMONIC, **RATED)
    env.reset(seed=0, options={"instance": Instance(np.full(8, 1e12), 1.0, bandwidth=6.0)})
    _, reward, *_ = env.step(np.full(8, 0.5))
    assert np.isfinite(reward)
