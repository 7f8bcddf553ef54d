"""Learners in compiled code: rollouts crawl as steps do, and are told the same."""

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs
from crawl_envs.evaluation import play, simulate
from crawl_envs.rollouts import Episode, play_form
from tests.policies.counting_learner import CountingLearner

SETTINGS = {
    "noisy": ("CrawlNCIS-v0", {"instance": "noisy", "num_pages": 7, "bandwidth": 9.0}),
    "sources": ("CrawlNCIS-v0", {"instance": "sources", "num_pages": 7, "bandwidth": 9.0}),
    "delayed": ("CrawlNCIS-v0", {"instance": "delayed", "num_pages": 7, "bandwidth": 9.0}),
    "trace": ("CrawlTrace-v0", {"days_per_crawl": 60.0}),
    "trace, both": ("CrawlTrace-v0", {"days_per_crawl": 90.0, "signals": "both"}),
}


def made(name):
    family, arguments = SETTINGS[name]
    return gym.make(family, **arguments)


@pytest.mark.parametrize("name", SETTINGS)
def test_rollouts_crawl_as_steps_do(name):
    env = made(name)
    env.reset(seed=5)
    policy = CountingLearner(env)
    quick = play(env, policy, 5)
    env.reset(seed=5)
    slow = play(env, policy, 5, compiled=False)
    assert quick.crawls > 50
    assert quick == slow


@pytest.mark.parametrize("name", SETTINGS)
def test_both_are_told_the_same(name):
    env = made(name)
    observation, _ = env.reset(seed=6)
    core = env.unwrapped
    policy = CountingLearner(env)
    form = policy.compile(core.problem, 0, core.coins())
    over, crawls = False, 0
    while not over:
        action, _ = policy.predict(observation)
        policy.observe(core.last_log())  # there is nothing left to learn
        observation, _, _, over, _ = env.step(action)
        crawls += 1
    lanes = core.lanes
    play_form(Episode(core.instance, lanes.horizon, 6, lanes.tape), form, crawls)
    told = policy._seats[0].learner.memory
    for own, other in zip(told, form.memory, strict=True):
        np.testing.assert_array_equal(own, other)
    assert told.pages[:3].any()


def test_simulate_plays_it():
    instance = crawl_envs.instances.make("noisy", num_pages=5, bandwidth=4.0, seed=1)
    env = gym.make("CrawlNCIS-v0", instance="noisy", num_pages=5, bandwidth=4.0, horizon=20.0)
    rollout = simulate(instance, CountingLearner(env), 20.0, seed=3)
    assert rollout.crawl_counts.sum() == 80


def test_one_that_joins_late_hears_what_is_known():
    env = gym.make("CrawlNCIS-v0", instance="noisy", num_pages=5, bandwidth=4.0, horizon=20.0)
    env.reset(seed=2)
    for _ in range(30):
        observation, *_ = env.step(0)
    policy = CountingLearner(env)
    policy.predict(observation)
    heard = policy._seats[0].learner.memory.pages[1]
    np.testing.assert_array_equal(heard, env.unwrapped.tracker().signals)
    assert heard[1:].any()


def test_it_cannot_work_from_columns_alone():
    with pytest.raises(ValueError, match="got both or neither"):
        CountingLearner(None)
