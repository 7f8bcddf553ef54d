"""The belief that the generalist corrects: its inputs, and pages that are born and die."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import policies
from agents.generalist.belief import kernels
from agents.generalist.belief.inputs import INPUTS
from agents.generalist.policy import LearnedBelief
from crawl_envs.evaluation import play
from crawl_envs.instances import STRESS
from policies.ncis.belief.kernels import read_page
from policies.ncis.belief.policy import places_of
from tests.agents.generalist.belief_twin import Twin
from tests.agents.generalist.test_stored import stored

SMALL = {"num_pages": 20, "bandwidth": 20.0, "horizon": 5.0}


def env_of(setting: str, seed: int = 3, **changes):
    env = gymnasium.make("CrawlNCIS-v0", **{**STRESS[setting], **SMALL, **changes})
    env.reset(seed=seed)
    return env


def inputs_of(policy):
    """The inputs of all pages at the decision at hand, (K, m), and their values."""
    tracker = policy._follow(0)
    memory = policy.learner.memory
    count = tracker.elapsed.size
    values, believed = np.empty(count), np.empty((3, count))
    features = np.zeros((len(INPUTS), count))
    kernels.value_all(tuple(memory), tracker.time, tracker.elapsed, tracker.alive, values, believed)
    kernels.describe(
        tuple(memory), tracker.time, tracker.elapsed, np.arange(count), believed, features
    )
    return features, values


@pytest.mark.parametrize("setting", STRESS)
def test_inputs_are_what_their_twin_computes(setting):
    env = env_of(setting)
    policy, twin = LearnedBelief(env, stored=stored()), Twin(env)
    observation, over = env.reset(seed=3)[0], False
    step = 0
    while not over:
        action, _ = policy.predict(observation)
        twin.follow()
        if step % 7 == 0:
            features, _ = inputs_of(policy)
            expected = np.array([twin.inputs(page) for page in range(20)]).T
            np.testing.assert_allclose(features, expected, rtol=1e-6, atol=1e-6)
            assert np.abs(features).max() < 6.0
        observation, _, _, over, _ = env.step(action)
        step += 1
    assert step == 100
    assert any(crawl.changed for crawl in twin.crawls)
    assert twin.signals or twin.broadcasts


def test_reading_a_page_without_groups_is_reading_any_page():
    env = env_of("bursty", num_pages=60)
    policy = LearnedBelief(env, stored=stored())
    observation, _ = env.reset(seed=1)
    for _ in range(60):
        observation, *_ = env.step(policy.predict(observation)[0])
    tracker = policy._follow(0)
    memory = policy.learner.memory
    at, floor = places_of(policy.core.problem), memory.shared[4]
    weights = np.empty(at.channels)
    columns = at.channels, at.believed, at.signals, at.rate
    seen = 0.0
    for page, row in enumerate(memory.pages):
        elapsed = tracker.elapsed[page]
        read = read_page(row, memory.groups[0], memory.shared, at, tracker.time, elapsed, weights)
        assert kernels.read_alone(row, elapsed, *columns, floor) == read
        seen += weights[0]
    assert seen > 0.0


@pytest.mark.parametrize("signals", ["both", "mentions"])
def test_pages_that_are_born_and_die(signals):
    env = gymnasium.make("CrawlTrace-v0", days_per_crawl=90.0, signals=signals, reveal="importance")
    env.reset(seed=0)
    compiled = play(env, LearnedBelief(env, stored=stored()), 0)
    stepped = play(env, LearnedBelief(env, stored=stored()), 0, compiled=False)
    assert compiled.freshness == stepped.freshness
    assert compiled.freshness != play(env, policies.BeliefNCIS(env), 0).freshness
