"""The belief that the generalist corrects: its inputs, and pages that are born and die."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import policies
from agents.generalist.inputs import INPUTS, write_inputs
from agents.generalist.policy import LearnedBelief
from crawl_envs.evaluation import play
from crawl_envs.instances import STRESS
from policies import bind
from policies.ncis.belief.kernels import write_values
from tests.agents.generalist.belief_twin import Twin
from tests.agents.generalist.test_stored import stored
from tests.agents.generalist.twins import further_inputs

SMALL = {"num_pages": 20, "bandwidth": 20.0, "horizon": 5.0}


def env_of(setting: str, seed: int = 3, **changes):
    env = gymnasium.make("CrawlNCIS-v0", **{**STRESS[setting], **SMALL, **changes})
    env.reset(seed=seed)
    return env


def inputs_of(policy):
    """The inputs of all pages at the decision at hand, (K, m), and their values."""
    tracker, memory = policy.core.tracker(), policy.update().learner.memory
    count = tracker.elapsed.size
    values, believed = np.empty(count), np.empty((3, count))
    inputs, now = np.zeros((len(INPUTS), count)), (memory, tracker.time, tracker.elapsed)
    write_values(*now, tracker.alive, values, believed)
    write_inputs(*now, np.arange(count), believed, values, inputs)
    return inputs, values


@pytest.mark.parametrize("setting", STRESS)
def test_inputs_are_what_their_twin_computes(setting):
    env = env_of(setting)
    policy, twin = bind(LearnedBelief(stored=stored()), env), Twin(env)
    observation, over = env.reset(seed=3)[0], False
    step = 0
    while not over:
        action, _ = policy.predict(observation)
        twin.follow()
        if step % 7 == 0:
            inputs, values = inputs_of(policy)
            values /= env.unwrapped.problem.importance
            expected = [twin.inputs(k) + further_inputs(twin, k, values[k]) for k in range(20)]
            np.testing.assert_allclose(inputs, np.array(expected).T, rtol=1e-6, atol=1e-6)
            assert np.abs(inputs).max() < 7.0
        observation, _, _, over, _ = env.step(action)
        step += 1
    assert step == 100
    assert any(crawl.changed for crawl in twin.crawls)
    assert twin.signals or twin.broadcasts


@pytest.mark.parametrize("signals", ["both", "mentions"])
def test_pages_that_are_born_and_die(signals):
    env = gymnasium.make("CrawlTrace-v0", days_per_crawl=90.0, signals=signals, reveal="importance")
    env.reset(seed=0)
    compiled = play(env, bind(LearnedBelief(stored=stored()), env), 0)
    stepped = play(env, bind(LearnedBelief(stored=stored()), env), 0, compiled=False)
    assert compiled.freshness == stepped.freshness
    assert compiled.freshness != play(env, policies.make("BeliefNCIS", env), 0).freshness
