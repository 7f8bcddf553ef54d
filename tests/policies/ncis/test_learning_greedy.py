"""The policy that learns while it crawls, in environments."""

import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs.envs.wrappers import Observing
from crawl_envs.evaluation import evaluate
from crawl_envs.instances import make as make_instance
from crawl_envs.types import CrawlLog, Instance
from policies.ncis.learning_greedy import Learner, one_source
from tests.worlds import single_of, stepped

PAGES, BANDWIDTH = 30, 32.0


def noisy(horizon=10.0, **arguments):
    arguments = {"num_pages": PAGES, "bandwidth": BANDWIDTH, "reveal": "importance"} | arguments
    return gym.make("CrawlNCIS-v0", horizon=horizon, instance="noisy", **arguments)


def test_near_the_informed_policy_and_above_round_robin():
    freshness = {}
    names = "LearningGreedyNCIS", "GreedyNCIS", "RoundRobin"
    players = {name: partial(policies.make, name) for name in names}
    arguments = {"num_pages": PAGES, "bandwidth": BANDWIDTH, "instance": "noisy", "horizon": 30.0}
    for row in evaluate("CrawlNCIS-v0", players, range(4), **arguments):
        if row.metric == "freshness":
            freshness.setdefault(row.policy, []).append(row.value)
    learning, informed, fair = (np.array(freshness[label]) for label in names)
    assert np.all(learning > fair)
    assert (informed - learning).mean() < 0.03
    assert (learning - fair).mean() > 2.0 * (informed - learning).mean()


def test_episodes_start_with_no_data_unless_kept():
    env = noisy(horizon=6.0)
    both = [policies.make("LearningGreedyNCIS", env, keep=keep) for keep in (False, True)]
    once = [stepped(env, policy, seed=1) for policy in both]
    assert once[0] == once[1]
    twice = [stepped(env, policy, seed=1) for policy in both]
    assert twice[0] == once[0]
    assert twice[1] != once[1]


def rounded(seed):
    """An instance whose importance float32 holds exactly, as it does times of 1 / 32."""
    instance = make_instance("noisy", num_pages=PAGES, bandwidth=BANDWIDTH, seed=seed)
    return Instance(
        instance.importance.astype(np.float32),
        instance.change_rate,
        instance.recall,
        instance.false_signal_rate,
        bandwidth=BANDWIDTH,
    )


def test_policy_of_columns_with_the_wrapper_does_what_a_bound_one_does():
    env = noisy(horizon=8.0)
    options = {"instance": rounded(2)}
    bound = stepped(env, policies.make("LearningGreedyNCIS", env), seed=0, options=options)
    policy = policies.make("LearningGreedyNCIS", features=env.unwrapped.features)
    seeing = Observing(env, policy)
    assert stepped(seeing, policy, seed=0, options=options) == bound
    assert stepped(seeing, policy, seed=0, options=options) == bound  # a reset starts with no data
    unseeing = policies.make("LearningGreedyNCIS", features=env.unwrapped.features)
    assert stepped(env, unseeing, seed=0, options=options) != bound


def test_several_sources_have_different_evidence():
    rng = np.random.default_rng(8)
    importance, change_rate = rng.random((2, 12))
    recall = np.stack([np.full(12, 0.7), np.zeros(12)])
    instance = Instance(importance, change_rate + 0.3, recall, np.full((2, 12), 0.2), bandwidth=12)
    env = single_of(instance, horizon=60.0, reveal="importance")
    policy = policies.make("LearningGreedyNCIS", env)
    stepped(env, policy, seed=0)
    telling, idle = np.median(policy.of_lane().estimates()["evidence"], axis=1)
    assert telling > 4.0 * idle


def test_groups_reach_the_beliefs():
    env = noisy(horizon=3.0)
    policy = policies.make("LearningGreedyNCIS", env, groups=np.arange(PAGES) % 3)
    stepped(env, policy, seed=0)
    assert policy.of_lane().learner.beliefs[0].shape.shape == (3, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": 1.0}, "memory must be > 1 crawl, .* got 1.0"),
        ({"memory": ()}, r"memory must be > 1 crawl, .* got \(\)"),
        ({"memory": (np.nan, 5.0)}, "memory must be > 1 crawl"),
        (
            {"groups": [0.5, 1.0]},
            "groups must be a whole number >= 0 for each of 2 pages",
        ),
        ({"groups": [[0, 1]]}, r"groups must be .* shape \(1, 2\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        policies.make("LearningGreedyNCIS", noisy(), **arguments)


def test_bad_input_elsewhere():
    make = partial(policies.make, "LearningGreedyNCIS")
    with pytest.raises(ValueError, match="needs the columns importance, features has elapsed, s"):
        make(features=("elapsed", "signals"))
    with pytest.raises(ValueError, match="needs the columns signals"):
        make(features=("elapsed", "importance"))
    env = noisy()
    policy = policies.make("LearningGreedyNCIS", env, groups=[0, 1])
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match="groups must be of 30 pages, got 2"):
        policy.predict(observation)
    with pytest.raises(ValueError, match="lane must be one that predict was called for, got 1"):
        policy.of_lane(1)
    with pytest.raises(ValueError, match="env must be a single crawl environment, got object"):
        Observing(object(), policy)
    with pytest.raises(ValueError, match=r"must have a method observe\(log\), got Bound"):
        Observing(env, policies.make("RoundRobin", env))


def test_learner_believes_the_memory_that_predicts_best():
    rng = np.random.default_rng(19)
    learner = Learner(np.ones(4), 1, 1.0, np.zeros(4, np.int64), (math.inf, 10.0), True)
    none = np.zeros(0, np.int64)

    def crawl(rate, crawls):
        for page in np.tile(np.arange(4), crawls):
            elapsed = rng.exponential(1.0, 1)
            changed = rng.poisson(rate * elapsed) > 0
            row = (np.array([page]), np.zeros(1), elapsed, np.zeros(1, np.int64), changed)
            learner.learn(CrawlLog(*row, none, np.zeros(0), none))

    crawl(2.0, 200)
    assert learner.best == 0
    crawl(0.1, 15)
    assert learner.best == 1


def test_one_source_in_place_of_several():
    rng = np.random.default_rng(23)
    alpha, evidence = rng.exponential(size=50), rng.exponential(2.0, (3, 50))
    rate = rng.exponential(size=(3, 50))
    page = one_source(alpha, evidence, rate)
    true = (rate * (1.0 - np.exp(-evidence))).sum(axis=0)
    np.testing.assert_allclose(page.change_rate, alpha + true)
    seen = page.recall * page.change_rate
    np.testing.assert_allclose(seen, true)
    jump = np.log1p(seen / page.false_signal_rate)
    signal_rate = seen + page.false_signal_rate
    np.testing.assert_allclose(signal_rate * jump, (rate * evidence).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(page.signal_weight * jump, evidence, rtol=1e-9)


def test_a_single_source_stays_itself_and_weak_ones_are_finite():
    page = one_source(np.array([0.2]), np.array([[1.5]]), np.array([[0.8]]))
    assert page.signal_weight == 1.0
    assert page.false_signal_rate == pytest.approx(0.8 * math.exp(-1.5))
    weak = one_source(np.array([0.2]), np.array([[1e-12], [1e-13]]), np.ones((2, 1)))
    assert all(np.all(np.isfinite(field)) for field in weak)
