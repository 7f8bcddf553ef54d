"""Policies without an environment: built from a problem and fed by logs, they act as if bound."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Problem
from policies.base.live import Description, LivePages, empty_log


def test_sketches_are_asked_for():
    env = gym.make("CrawlLongevity-v0", num_pages=5, bandwidth=1.5)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="sketches must be given"):
        policies.make("CurveFitting", env.unwrapped.problem).choose(env.unwrapped.tracker())


def test_calls_in_any_order():
    """The first decision needs no log, a repeated log counts once, a new episode starts anew."""
    problem = Problem(num_pages=3, bandwidth=1.0, importance=np.array([1.0, 2.0, 3.0]))
    pages = LivePages(problem)
    policy = policies.make("BeliefNCIS", pages)
    assert policy.choose(pages.tracker()) == 0
    log = empty_log()._replace(
        signal_page=np.array([1]), signal_time=np.array([0.5]), signal_source=np.array([0])
    )
    pages.advance(log, 1.0)
    for _ in range(2):
        policy.update(log, pages.tracker())
    assert policy.choose(pages.tracker()) == 1
    once = policy.learner.memory.pages.copy()
    for begin in ("start", "update"):
        fresh, first = policies.make("BeliefNCIS", problem), LivePages(problem).tracker()
        getattr(fresh, begin)(*([first] if begin == "start" else [empty_log(), first]))
        fresh.update(log, pages.tracker())
        np.testing.assert_array_equal(fresh.learner.memory.pages, once)
    policy.update(empty_log(), LivePages(problem).tracker()._replace(episode=1))
    assert policy.choose(LivePages(problem).tracker()._replace(episode=1)) == 0


def test_a_live_policy_may_join_with_what_is_known():
    problem = Problem(
        num_pages=3,
        bandwidth=1.0,
        importance=np.ones(3),
        **{name: np.full(3, 0.5) for name in ("change_rate", "recall", "false_signal_rate")},
    )
    pages = LivePages(problem)
    log = empty_log()._replace(
        signal_page=np.array([2, 2]),
        signal_time=np.array([0.2, 0.5]),
        signal_source=np.zeros(2, int),
    )
    pages.advance(log, 1.0)
    window = policies.make("GreedyNCIS", problem, delay_window=0.3)
    assert window.choose(pages.tracker()) == 2
    np.testing.assert_array_equal(window.counted, [0.0, 0.0, 2.0])  # their ages are not known


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"problem": 3}, "problem must be a Problem, got int"),
        ({"batch": 0}, "batch must be an integer >= 1, got 0"),
        ({"epoch": 0.0}, "epoch must be finite and > 0"),
        ({"horizon": -1.0}, "horizon must be finite and > 0"),
    ],
)
def test_bad_descriptions(arguments, message):
    problem = Problem(num_pages=3, bandwidth=1.0, importance=np.ones(3))
    with pytest.raises(ValueError, match=message):
        Description(**{"problem": problem, **arguments})


def test_the_horizon_counts_the_crawls_of_every_bandwidth():
    steps = ((10.0, 4.0), (20.0, 1.0))
    problem = Problem(num_pages=3, bandwidth=2.0, importance=np.ones(3), bandwidth_steps=steps)
    assert Description(problem, horizon=5.0).num_slots() == 10
    assert Description(problem, horizon=15.0).num_slots() == 40
    assert Description(problem, horizon=30.0).num_slots() == 70
    assert Description(problem, action_form="rates", epoch=2.0, horizon=30.0).num_slots() == 15


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


def test_lanes_are_apart_if_a_policy_was_started_before_its_first_prediction():
    arguments = {"num_pages": 8, "bandwidth": 9.0, "horizon": 3.0, "instance": "noisy"}
    env = gym.make_vec("CrawlNCIS-v0", num_envs=2, **arguments)
    observation, _ = env.reset(seed=[1, 2])
    early, policy = (policies.make("BeliefNCIS", env) for _ in range(2))
    early.start(env.unwrapped.tracker(0))
    for _ in range(20):
        action = policy.predict(observation)[0]
        assert np.array_equal(early.predict(observation)[0], action)
        observation = env.step(action)[0]
    assert early.of_lane(1).learner is not early.learner


@pytest.mark.parametrize("form", ["dict", "flat_dict"])
def test_masks_are_no_tables_of_pages(form):
    """Where there are as many pages as features, a batch of masks has the shape of a table."""
    env = gym.make_vec("CrawlNCIS-v0", num_envs=3, num_pages=7, observation=form)
    assert len(env.unwrapped.features) == 7
    observation, _ = env.reset(seed=0)
    assert policies.make("GreedyNCIS", env).predict(observation)[0].shape == (3,)


def test_a_live_bandit_passes_every_log_to_its_arms_once():
    problem = gym.make("CrawlNCIS-v0", num_pages=8, instance="noisy")
    problem.reset(seed=0)
    pages = LivePages(problem.unwrapped.problem)

    def greedy(description):
        return policies.make("GreedyNCIS", description, delay_window=1e-9)

    alone, bandit = greedy(pages), policies.make("Exp3", pages, arms={"greedy": greedy})
    for time, signals in ((0.5, [0, 0, 0]), (1.0, [1]), (1.5, [])):
        received = np.array(signals, np.int64)
        log = empty_log()._replace(
            signal_page=received,
            signal_time=np.full(received.size, time - 0.1),
            signal_source=np.zeros(received.size, np.int64),
        )
        pages.advance(log, time)
        for policy in (alone, bandit):
            policy.update(log, pages.tracker())
    for policy in (alone, bandit):
        policy.choose(pages.tracker())
    arm = bandit.arms.policies[0]
    assert alone.counted[:2].tolist() == [3.0, 1.0]
    assert np.array_equal(arm.counted, alone.counted)


@pytest.mark.parametrize("given", [{"bandwidth_steps": ((2.0, 0.0),)}, {"bandwidth": 0.0}])
def test_a_problem_without_bandwidth_is_refused(given):
    arguments = {"num_pages": 2, "bandwidth": 2.0, "importance": np.ones(2)} | given
    with pytest.raises(ValueError, match=r"bandwidth .*got 0"):
        Problem(**arguments)
