"""Policies without an environment: built from a problem and fed by logs, they act as if bound."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Problem
from policies.base.live import LivePages, empty_log


def test_sketches_are_asked_for():
    env = gym.make("CrawlLongevity-v0", num_pages=5, bandwidth=1.5)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="sketches must be given"):
        policies.CurveFitting().start(LivePages(env.unwrapped.problem))


def signal_log(pages, times):
    received = np.array(pages, np.int64)
    return empty_log()._replace(
        signal_page=received,
        signal_time=np.array(times, np.float64),
        signal_source=np.zeros(received.size, np.int64),
    )


def test_a_policy_learns_from_logs_and_starts_again_without_them():
    """The first decision needs no log. A copy that has not chosen learns the same."""
    problem = Problem(num_pages=3, bandwidth=1.0, importance=np.array([1.0, 2.0, 3.0]))
    pages = LivePages(problem)
    policy, silent = policies.BeliefNCIS(), policies.BeliefNCIS()
    for each in (policy, silent):
        each.start(pages)
    assert policy.choose(pages.tracker()) == 0
    log = signal_log([1], [0.5])
    pages.advance(log, 1.0)
    for each in (policy, silent):
        each.update(log, pages.tracker())
    assert policy.choose(pages.tracker()) == 1
    once = policy.learner.memory.pages.copy()
    np.testing.assert_array_equal(silent.learner.memory.pages, once)
    policy.start(LivePages(problem))
    assert policy.choose(LivePages(problem).tracker()) == 0
    assert not np.array_equal(policy.learner.memory.pages, once)


def test_a_live_policy_may_join_with_what_is_known():
    """Ages of signals are known from a complete log, and unknown after it."""
    problem = Problem(
        num_pages=3,
        bandwidth=1.0,
        importance=np.ones(3),
        **{name: np.full(3, 0.5) for name in ("change_rate", "recall", "false_signal_rate")},
    )
    pages = LivePages(problem)
    for log, counts in ((signal_log([2, 2], [0.2, 0.5]), 1.0), (empty_log(), 2.0)):
        pages.advance(log, pages.time + 1.0)
        window = policies.GreedyNCIS(delay_window=0.3)
        window.start(pages)
        assert window.choose(pages.tracker()) == 2
        np.testing.assert_array_equal(window.counts, [0.0, 0.0, counts])


@pytest.mark.parametrize(
    ("problem", "settings", "message"),
    [
        (3, {}, "problem must be a Problem, got int"),
        (None, {"horizon": -1.0}, "horizon must be finite and > 0"),
    ],
)
def test_bad_live_pages(problem, settings, message):
    three = Problem(num_pages=3, bandwidth=1.0, importance=np.ones(3))
    with pytest.raises(ValueError, match=message):
        LivePages(problem or three, **settings)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (("scores", 0), "batch must be an integer >= 1, got 0"),
        (("page", 1, 0.0), "epoch must be finite and > 0"),
        (("rates",), "action_form of Greedy must be one of .*got 'rates'"),
    ],
)
def test_bad_forms(form, message):
    with pytest.raises(ValueError, match=message):
        policies.Greedy().in_form(*form)


def test_the_horizon_counts_the_crawls_of_every_bandwidth():
    steps = ((10.0, 4.0), (20.0, 1.0))
    problem = Problem(num_pages=3, bandwidth=2.0, importance=np.ones(3), bandwidth_steps=steps)
    for horizon, crawls in ((5.0, 10), (15.0, 40), (30.0, 70)):
        assert LivePages(problem, horizon=horizon).num_slots() == crawls
    assert LivePages(problem, horizon=30.0).num_slots(2.0) == 15


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"births": {7: 1.5}}, r"births must have pages in \[0, 3\)"),
        ({"births": {1: 9.0}}, r"births must have times in \[0, 2.0\]"),
        ({"deaths": [-1]}, r"deaths must have pages in \[0, 3\)"),
        ({"log": empty_log(2)}, "log must have signals of 1 sources"),
        ({"time": -1.0}, "time must be finite and >= 1.0"),
        ({"time": 0.5}, r"time must be finite and >= 1\.0, got 0\.5"),
        (
            {"log": empty_log()._replace(signal_page=np.array([3]))},
            r"log must have pages in \[0, 3",
        ),
    ],
)
def test_live_pages_refuse_what_cannot_be_and_stay_as_they_are(changes, message):
    pages = LivePages(Problem(num_pages=3, importance=np.ones(3), bandwidth=1.0))
    pages.advance(empty_log(), 1.0)
    before = pages.tracker()
    with pytest.raises(ValueError, match=message):
        pages.advance(**{"log": empty_log(), "time": 2.0, **changes})
    after = pages.tracker()
    assert after.time == before.time
    assert np.array_equal(after.alive, before.alive)
    with pytest.raises(ValueError, match=r"alive must have shape \(3,\)"):
        LivePages(pages.problem, alive=np.ones(5, np.bool_))


def test_lanes_are_apart_if_one_was_updated_before_the_first_prediction():
    arguments = {"num_pages": 8, "bandwidth": 9.0, "horizon": 3.0, "instance": "noisy"}
    env = gym.make_vec("CrawlNCIS-v0", num_envs=2, **arguments)
    observation, _ = env.reset(seed=[1, 2])
    early, policy = (policies.make("BeliefNCIS", env) for _ in range(2))
    early.update(0)
    for _ in range(20):
        action = policy.predict(observation)[0]
        assert np.array_equal(early.predict(observation)[0], action)
        observation = env.step(action)[0]
    assert early.of_lane(1).learner is not early.of_lane(0).learner


@pytest.mark.parametrize("form", ["dict", "flat_dict"])
def test_masks_are_no_tables_of_pages(form):
    """Where there are as many pages as features, a batch of masks has the shape of a table."""
    env = gym.make_vec("CrawlNCIS-v0", num_envs=3, num_pages=7, observation=form)
    assert len(env.unwrapped.features) == 7
    observation, _ = env.reset(seed=0)
    assert policies.make("GreedyNCIS", env).predict(observation)[0].shape == (3,)


def test_a_live_bandit_passes_every_log_to_its_arms_once():
    env = gym.make("CrawlNCIS-v0", num_pages=8, instance="noisy")
    env.reset(seed=0)
    pages = LivePages(env.unwrapped.problem)
    alone = policies.GreedyNCIS(delay_window=1e-9)
    bandit = policies.Exp3(arms={"greedy": policies.GreedyNCIS(delay_window=1e-9)})
    for policy in (alone, bandit):
        policy.start(pages)
    for time, signals in ((0.5, [0, 0, 0]), (1.0, [1]), (1.5, [])):
        log = signal_log(signals, [time - 0.1] * len(signals))
        pages.advance(log, time)
        for policy in (alone, bandit):
            policy.update(log, pages.tracker())
    for policy in (alone, bandit):
        policy.choose(pages.tracker())
    assert alone.counts[:2].tolist() == [3.0, 1.0]
    assert np.array_equal(bandit.arms.policies[0].counts, alone.counts)


@pytest.mark.parametrize("given", [{"bandwidth_steps": ((2.0, 0.0),)}, {"bandwidth": 0.0}])
def test_a_problem_without_bandwidth_is_refused(given):
    arguments = {"num_pages": 2, "bandwidth": 2.0, "importance": np.ones(2)} | given
    with pytest.raises(ValueError, match=r"bandwidth .*got 0"):
        Problem(**arguments)
