"""Learners in compiled code: rollouts and steps make the same crawls, from the same events."""

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs
from crawl_envs.evaluation import simulate
from crawl_envs.worlds.rollouts import play_form
from policies import FromColumns, bind
from policies.base.live import is_complete
from tests.policies.base.counting_learner import CountingLearner

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
def test_both_get_the_same_events(name):
    env = made(name)
    observation, _ = env.reset(seed=6)
    core = env.unwrapped
    policy = bind(CountingLearner(), env)
    form = policy.compile(core.problem, 0, core.rng())
    over, crawls = False, 0
    while not over:
        action, _ = policy.predict(observation)
        policy.update()  # predict has read the log already
        observation, _, _, over, _ = env.step(action)
        crawls += 1
    lanes = core.lanes
    play_form(form, core.instance, lanes.horizon, 6, tape=lanes.tape)
    memory = policy.of_lane().learner.memory
    for stepped, compiled in zip(memory, form.memory, strict=True):
        np.testing.assert_array_equal(stepped, compiled)
    assert memory.pages[:3].any()


def test_simulate_plays_it():
    instance = crawl_envs.instances.make("noisy", num_pages=5, bandwidth=4.0, seed=1)
    rollout = simulate(instance, CountingLearner(), 20.0, seed=3)
    assert rollout.crawl_counts.sum() == 80


def test_one_that_joins_late_reads_the_known_signals():
    env = gym.make("CrawlNCIS-v0", instance="noisy", num_pages=5, bandwidth=4.0, horizon=20.0)
    env.reset(seed=2)
    for _ in range(30):
        observation, *_ = env.step(0)
    policy = bind(CountingLearner(), env)
    policy.predict(observation)
    signals = policy.of_lane().learner.memory.pages[1]
    np.testing.assert_array_equal(signals, env.unwrapped.tracker().signals)
    assert signals[1:].any()


def test_one_that_joins_at_a_state_reads_the_known_signals():
    env = made("noisy")
    observation, _ = env.reset(seed=3)
    core, bound = env.unwrapped, bind(CountingLearner(), env)
    for k in range(80):
        if k == 30:
            state, known = core.get_state(), core.tracker()
        observation, *_ = env.step(bound.predict(observation)[0])
    assert bound.of_lane().learner.memory.shared[0] > 0.0  # it has learned from crawls
    core.set_state(state)
    policy = bound.update()
    np.testing.assert_array_equal(policy.learner.memory.pages[1], known.signals)
    np.testing.assert_array_equal(policy.since, core.tracker().time - known.elapsed)
    assert policy.learner.memory.shared[0] == 0.0
    assert known.signals.any()


def test_one_that_joins_after_a_slot_without_crawls_reads_the_known_signals():
    env = gym.make(
        "CrawlNCIS-v0", instance="noisy", num_pages=5, bandwidth=4.0, horizon=20.0, action="refresh"
    )
    env.reset(seed=2)
    for k in range(30):
        action = np.zeros(5, np.int8)
        action[0] = k < 29
        env.step(action)
    core = env.unwrapped
    assert core.last_log().page.size == 0
    assert core.last_log().signal_page.size < core.tracker().signals.sum()
    memory = bind(CountingLearner(), env).update().learner.memory
    np.testing.assert_array_equal(memory.pages[1], core.tracker().signals)
    assert not memory.pages[2].any()  # no page is taken for a new one


@pytest.mark.parametrize("name", SETTINGS)
def test_only_the_first_log_is_complete(name):
    env = made(name)
    for seed in range(5):
        env.reset(seed=seed)
        core = env.unwrapped
        assert is_complete(core.last_log(), core.tracker())
        env.step(core.tracker().alive.argmax())
        assert not is_complete(core.last_log(), core.tracker())


def test_it_cannot_work_from_columns_alone():
    with pytest.raises(ValueError, match="features must be None for CountingLearner"):
        FromColumns(CountingLearner(), ("elapsed", "signals"))
