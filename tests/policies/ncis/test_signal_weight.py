"""Signals of different weights: by their age, in steps and rollouts; and the assumed problem."""

from __future__ import annotations

import dataclasses
import math

import gymnasium
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs import instances
from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled
from crawl_envs.evaluation import simulate
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Instance
from policies.base.index import SignalPolicy
from tests.policies.replay import SIGNAL, ReplayCore, random_lane
from tests.worlds import single_of, stepped


@compiled(VALUE.signature)
def urgency(parameters, page, elapsed, signals):
    return parameters[page, 0] * (elapsed + signals)


@compiled(SIGNAL_WEIGHT.signature)
def by_age(parameters, page, age, source):
    return 3.0 if math.isinf(age) else 3.0 * age / (age + parameters[page, 1])


class AgeWeighting(SignalPolicy):
    """A signal counts up to 3, the more the longer after a crawl it comes."""

    needs = ("importance", "change_rate")

    def _index(self, problem):
        return urgency, np.column_stack([problem.importance, problem.change_rate])

    def _signal_weight(self, problem):
        return by_age


@pytest.mark.parametrize("window", [0.0, 0.2])
@pytest.mark.parametrize("instance", ["noisy", "delayed"])
def test_steps_and_rollouts_weigh_signals_alike(instance, window):
    arguments = {"num_pages": 40, "bandwidth": 20.0, "instance": instance}
    env = gymnasium.make("CrawlNCIS-v0", horizon=12.0, **arguments)
    env.reset(seed=2)
    policy = AgeWeighting(delay_window=window)
    pages = stepped(env, policies.bind(policy, env), seed=2)
    drawn = instances.make(instance, num_pages=40, bandwidth=20.0, seed=2)
    rollout = simulate(drawn, policy, 12.0, seed=2)
    np.testing.assert_array_equal(rollout.crawls, pages)
    assert rollout.ledger == env.unwrapped.ledger()


@pytest.mark.parametrize("seed", range(4))
def test_steps_and_rollouts_weigh_signals_alike_where_pages_are_reborn(seed):
    rng = np.random.default_rng(seed)
    lists = {
        name: (rng.uniform(0.0, 30.0, count), rng.integers(0, 6, count))
        for name, count in (("births", 60), ("deaths", 60), ("signals", 300), ("changes", 60))
    }
    tape = Tape.of_events(6, alive=rng.random(6) < 0.5, **lists)
    drawn = Instance(rng.random(6), rng.random(6), 0.6, 0.5, bandwidth=2.0)
    env = single_of(drawn, horizon=30.0, tape=tape)
    env.reset(seed=0)
    pages = stepped(env, policies.bind(AgeWeighting(), env), seed=0)
    rollout = simulate(drawn, AgeWeighting(), 30.0, tape=tape)
    np.testing.assert_array_equal(rollout.crawls, pages)


def test_signals_count_by_their_age_from_the_definition():
    lane = random_lane(5, 8, horizon=10.0)
    core = ReplayCore(lane)
    policy = policies.bind(AgeWeighting(), core)
    observation = core.reset()
    signals = [(time, page) for time, kind, page in lane.events if kind == SIGNAL]
    importance, scale = lane.instance.importance, lane.instance.change_rate
    for _ in range(99):
        action, _ = policy.predict(observation)
        counted, crawled = np.zeros(5), lane.time - lane.tracker().elapsed
        for time, page in signals:
            if crawled[page] < time < lane.time:
                age = time - crawled[page]
                counted[page] += 3.0 * age / (age + scale[page])
        assert action[0] == np.argmax(importance * (lane.tracker().elapsed + counted))
        observation = core.step(action)


def test_age_is_unknown_to_who_joins_or_sees_only_columns():
    lane = random_lane(5, 14, horizon=10.0)
    core = ReplayCore(lane)
    core.reset()
    for page in (0, 1, 2, 0, 1, 2, 0, 1, 2):
        observation = core.step([page])
    known = lane.tracker()
    expected = np.argmax(lane.instance.importance * (known.elapsed + 3.0 * known.signals))
    assert known.signals.sum() > 0
    assert policies.bind(AgeWeighting(), core).predict(observation)[0][0] == expected
    from_columns = policies.FromColumns(AgeWeighting(), core.features)
    assert from_columns.predict(observation)[0][0] == expected


def test_policy_acts_on_what_it_believes():
    drawn = instances.make("noisy", num_pages=30, bandwidth=10.0, seed=1)

    def without_recall(problem):
        return dataclasses.replace(problem, recall=0.0 * problem.recall)

    informed = simulate(drawn, policies.GreedyNCIS(), 20.0, seed=1).crawls
    assuming_policy = policies.GreedyNCIS(believed=without_recall)
    assuming = simulate(drawn, assuming_policy, 20.0, seed=1).crawls
    greedy = simulate(drawn, policies.Greedy(), 20.0, seed=1).crawls
    np.testing.assert_array_equal(assuming, greedy)
    assert not np.array_equal(informed, greedy)
