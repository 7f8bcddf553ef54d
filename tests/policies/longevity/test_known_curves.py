"""Arguments of policies of known curves: curves, regions, or nothing; and bad input."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from policies.longevity.offline import CurrentDivergence, FragmentStatic, HolisticStatic
from policies.values.divergence.regions import RegionCurves
from policies.values.divergence.tabulated import TabulatedCurves
from tests.policies.longevity.fragment_play import crawls, fragments, play

BY_REGIONS = pytest.mark.parametrize("policy", [FragmentStatic, CurrentDivergence])
OF_CURVES = pytest.mark.parametrize("policy", [FragmentStatic, HolisticStatic, CurrentDivergence])


def recorded(action="page", **more):
    given = {"instance": "garden-handbook", "window": [100.0, 130.0], **more}
    return gym.make("CrawlLongevity-v0", action=action, **given)


@OF_CURVES
def test_what_is_no_curves_is_refused_at_once(policy):
    for bad in (3, "curves", [0.1, 0.2], np.ones(40)):
        with pytest.raises(ValueError, match="curves must be divergence curves"):
            policy(fragments("page"), curves=bad)


@OF_CURVES
def test_hidden_parameters_are_missed_at_once(policy):
    with pytest.raises(ValueError, match=rf"given to {policy.__name__} .* reveal='parameters'"):
        policy(fragments("page", reveal="importance"))


@BY_REGIONS
def test_recorded_pages_want_measured_curves(policy):
    env = recorded()
    with pytest.raises(ValueError, match=rf"given to {policy.__name__}.* no regions.*of_contents"):
        policy(env)
    with pytest.raises(ValueError, match=r"reveal='parameters'"):
        policy(recorded(reveal="importance"))
    env.reset(seed=0)
    curves = TabulatedCurves.of_contents(env.unwrapped.contents(), 1.0, 30.0)
    assert len(crawls(env, policy(env, curves=curves))) > 5
    assert len(crawls(env, HolisticStatic(env))) > 5


@BY_REGIONS
def test_pages_that_are_no_fragments_have_no_regions(policy):
    env = gym.make("CrawlNCIS-v0", num_pages=4, bandwidth=4.0, horizon=2.0)
    with pytest.raises(ValueError, match=rf"given to {policy.__name__}.* no regions"):
        play(env, policy(env))


@pytest.mark.parametrize("dynamic", [False, True])
def test_current_divergence_refreshes_at_importance_times_divergence(dynamic):
    env = fragments(horizon=20.0, reveal="importance" if dynamic else "parameters")
    observation, _ = env.reset(seed=1)
    core = env.unwrapped
    policy = CurrentDivergence(env, threshold=0.2, dynamic=dynamic)
    curves, count = RegionCurves(core.instance.regions), 0
    for _ in range(30):
        expected = curves.divergence(core.tracker().elapsed)
        divergence = core.true_divergence().divergence if dynamic else expected
        action, _ = policy.predict(observation)
        due = core.instance.importance * divergence >= 0.2 * (1.0 - 1e-9)
        assert action.tolist() == due.tolist()
        count += int(action.sum())
        observation, *_ = env.step(action)
    assert count > 10


def test_the_oracle_of_current_divergence_takes_no_curves():
    env = fragments("page")
    env.reset(seed=0)
    curves = RegionCurves(env.unwrapped.instance.regions)
    with pytest.raises(ValueError, match="curves must be None with dynamic=True"):
        CurrentDivergence(env, curves=curves, dynamic=True)
    with pytest.raises(ValueError, match="fragments for CurrentDivergence"):
        CurrentDivergence(gym.make("CrawlNCIS-v0"), dynamic=True)
    with pytest.raises(ValueError, match="dynamic"):
        CurrentDivergence(env, dynamic=1)
    world = recorded()
    assert len(crawls(world, CurrentDivergence(world, dynamic=True))) > 5
