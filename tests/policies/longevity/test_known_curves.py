"""Arguments of policies of known curves: curves, regions, or nothing; and bad input."""

from __future__ import annotations

import gymnasium as gym
import pytest

from policies import bind
from policies.longevity.offline import CurrentDivergence, FragmentStatic, HolisticStatic
from policies.values.divergence.regions import RegionCurves
from policies.values.divergence.tabulated import TabulatedCurves
from tests.policies.longevity.fragment_play import crawls, fragments

BY_REGIONS = pytest.mark.parametrize("policy", [FragmentStatic, CurrentDivergence])


def recorded(action="page", **more):
    given = {"instance": "garden-handbook", "window": [100.0, 130.0], **more}
    return gym.make("CrawlLongevity-v0", action=action, **given)


@BY_REGIONS
def test_recorded_pages_want_measured_curves(policy):
    env = recorded()
    env.reset(seed=0)
    curves = TabulatedCurves.of_contents(env.unwrapped.contents(), 1.0, 30.0)
    assert len(crawls(env, bind(policy(curves=curves), env))) > 5
    assert len(crawls(env, bind(HolisticStatic(), env))) > 5


@pytest.mark.parametrize("dynamic", [False, True])
def test_current_divergence_refreshes_at_importance_times_divergence(dynamic):
    env = fragments(horizon=20.0, reveal="importance" if dynamic else "parameters")
    observation, _ = env.reset(seed=1)
    core = env.unwrapped
    policy = bind(CurrentDivergence(threshold=0.2, dynamic=dynamic), env)
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


def test_the_oracle_of_current_divergence_plays_recorded_pages():
    env = recorded()
    assert len(crawls(env, bind(CurrentDivergence(dynamic=True), env))) > 5
