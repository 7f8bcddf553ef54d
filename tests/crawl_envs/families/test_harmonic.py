"""``CrawlHarmonic-v0``: rewards, infos, spaces, and what is shown."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.spaces.rewards import metrics
from tests.environments import HARMONIC, NCIS, assert_same, bare, batch
from tests.naive.divergence import penalty

RATED = {"num_pages": 8, "bandwidth": 6.0, "horizon": 12.0}


def test_rewards_are_what_changes_cost():
    """By the crawls and the changes of a tape: all pages have complete observation."""
    env = bare(HARMONIC, instance="mixed", bandwidth=3.0, horizon=10.0, num_pages=2)
    instance = Instance([1.0, 3.0], [1.0, 2.0], 1.0, bandwidth=3.0)
    env.reset(seed=0, options={"instance": instance})
    undetected, total, harmonic = [0, 0], 0.0, penalty("harmonic")
    for epoch in range(10):
        _, reward, *_ = env.step(np.array([0.5, 0.3]))
        log = env.last_log()
        crawled = set(zip(log.page.tolist(), log.time.tolist(), strict=True))
        before, cost = float(epoch), 0.0

        def owed(undetected=undetected):
            return 1.0 * harmonic(undetected[0]) + 3.0 * harmonic(undetected[1])

        for page, time in zip(log.signal_page.tolist(), log.signal_time.tolist(), strict=True):
            cost += (time - before) * owed()
            before = time
            undetected[page] = 0 if (page, time) in crawled else undetected[page] + 1
        cost += (epoch + 1.0 - before) * owed()
        assert reward == pytest.approx(-cost / 4.0, rel=1e-12)
        total += cost
    assert env.ledger().cost == pytest.approx(total / 10.0, rel=1e-12)
    assert total > 0.0


@pytest.mark.parametrize("form", ["rates", "page", "scores", "refresh"])
def test_infos(form):
    env = bare(HARMONIC, action=form, crawl_cost=0.5)
    _, first = env.reset(seed=0)
    assert not any(first.values())
    env.action_space.seed(0)
    for _ in range(2):
        _, reward, _, _, info = env.step(env.action_space.sample())
        rated = {"denied", "declared"} if form == "rates" else set()
        assert set(first) == set(info) == {"reward/penalty", "reward/crawl_cost", "crawls"} | rated
        assert info["crawls"] == env.last_log().page.size
        assert info["reward/crawl_cost"] == -0.5 * info["crawls"]
        assert info["reward/penalty"] <= 0.0
        assert reward == info["reward/penalty"] + info["reward/crawl_cost"]


def test_freshness_can_be_the_reward():
    env = bare(HARMONIC, reward="freshness")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.full(6, 0.5))
    assert 0.0 < reward == info["reward/freshness"] <= 1.0
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


def test_arguments_can_be_written_as_json():
    given = {
        **RATED,
        "instance": "mixed",
        "objective": [0.0, 1.0, 1.5],
        "bandwidth_steps": [[2.0, 3.0]],
        "delay": {"kind": "exponential", "mean": 0.2},
        "bucket": 3.0,
        "epoch": 0.5,
        "overspend": "error",
        "reveal": "importance",
        "reward": "freshness",
    }
    envs = [gym.make(HARMONIC, **one) for one in (given, json.loads(json.dumps(given)))]
    for env in envs:
        env.reset(seed=0)
    action = np.full(8, 0.1)
    assert_same(envs[0].step(action), envs[1].step(action))


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
