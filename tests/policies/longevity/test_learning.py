"""The policy that learns how pages diverge, as it crawls."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from policies import bind
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.learning import LearningLongevity
from policies.longevity.offline import UniformRefresh
from tests.policies.longevity.fragment_play import cost, fragments, mean_divergence, play

HIDDEN = {"reveal": "importance"}
SCORES = {"m": 150, "horizon": 60.0, "batch": 15, **HIDDEN}


@cache
def learned(instance, **more):
    """Return the mean divergence of three episodes, which several tests compare."""
    env = fragments("scores", instance=instance, **SCORES, **more)
    return mean_divergence(LearningLongevity, env, range(3))


@pytest.mark.parametrize("instance", ["quality", "random"])
def test_it_beats_the_policies_of_the_paper_on_a_budget(instance):
    env = fragments("scores", instance=instance, **SCORES)
    ours = learned(instance)
    assert ours < mean_divergence(UniformRefresh, env, range(3))
    for other in (CurveFitting, DivergenceBounds, ChoGarciaMolina):
        assert ours < mean_divergence(other, env, range(3)), other.__name__


def test_it_learns_which_pages_are_static():
    env = fragments("scores", **SCORES)
    counts = np.zeros((2, 2))
    shares = []

    def each(log, tracker):
        shares.append(np.mean(env.unwrapped.instance.change_rate == 0.0))
        static = env.unwrapped.instance.change_rate[log.page] == 0.0
        counts[int(tracker.time > 30.0)] += static.sum(), (~static).sum()

    play(env, bind(LearningLongevity(), env), 0, each)
    early, late = counts[:, 0] / counts.sum(axis=1)
    assert late < early
    assert late < 0.4 * np.mean(shares)


def test_signals_of_a_quality_that_is_learned_make_it_better():
    """Those without false ones."""
    assert learned("quality", signals="partial") < 0.97 * learned("quality")


def test_a_quality_that_is_revealed_is_taken():
    env = fragments("scores", **{**SCORES, "reveal": "parameters"}, signals="noisy")
    env.reset(seed=0)
    policy, problem = bind(LearningLongevity(), env), env.unwrapped.problem
    policy.predict(env.unwrapped.current_observation())
    belief = policy.of_lane().belief
    assert belief.quality is None
    assert np.array_equal(belief.recall, problem.recall)
    assert np.array_equal(belief.false_rate, problem.false_signal_rate)
    assert np.ptp(belief.recall) > 0.0
    assert np.ptp(belief.false_rate) > 0.0


def test_crawls_are_remembered_with_their_signals():
    env = fragments("scores", m=10, horizon=20.0, batch=2, signals="noisy", **HIDDEN)
    policy, seen = bind(LearningLongevity(), env), [[] for _ in range(10)]

    def each(log, _):
        for page, signals in zip(log.page, log.signals.reshape(-1), strict=True):
            seen[page].append(signals)

    play(env, policy, 0, each)
    for page, signals in enumerate(seen):
        (known,) = policy.of_lane().belief.histories.of_page(page, "signals")
        assert known.tolist() == signals[: known.size]
        assert known.size >= len(signals) - 1
    assert len({signals for of_page in seen for signals in of_page}) > 2


def test_a_higher_threshold_costs_less_and_is_staler():
    result = []
    for threshold in (0.2, 1.0):
        env = fragments(m=80, horizon=60.0, **HIDDEN)
        result.append(play(env, bind(LearningLongevity(threshold=threshold), env)))
    low, high = result
    assert cost(low, 80) > 1.5 * cost(high, 80)
    assert low.divergence < high.divergence


def test_pages_of_no_importance_are_not_refreshed():
    env = fragments(m=20, horizon=30.0, **HIDDEN)
    env.reset(seed=0)
    drawn = env.unwrapped.instance
    importance = np.where(np.arange(20) < 10, 0.0, 1.0)
    pinned = type(drawn)(importance, drawn.regions, bandwidth=drawn.bandwidth)
    env.reset(seed=0, options={"instance": pinned})
    policy = bind(LearningLongevity(threshold=0.2), env)
    for _ in range(20):
        action, _ = policy.predict(np.zeros(env.observation_space.shape))
        assert not action[:10].any()
        env.step(action)


@pytest.mark.parametrize("versions", [0, 1, 4])
def test_any_number_of_base_versions_serves(versions):
    env = fragments("scores", m=20, horizon=20.0, batch=2, base_versions=versions, **HIDDEN)
    policy = bind(LearningLongevity(memory=6), env)
    play(env, policy)
    stored, counted = policy.of_lane().footprint()
    assert stored == 6 * (7 + 5 * versions) + 161
    assert 0.0 < counted <= 8 * 6 * max(versions, 1)
