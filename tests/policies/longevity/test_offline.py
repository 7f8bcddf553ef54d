"""Uniform refreshing, policies with known curves, and oracles."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import policies
from policies import bind
from policies.longevity.offline import (
    CurrentDivergence,
    FragmentDynamic,
    FragmentStatic,
    HolisticDynamic,
    HolisticStatic,
    UniformRefresh,
)
from policies.values.divergence.curves import HolisticCurves
from policies.values.divergence.regions import RegionCurves
from tests.policies.longevity.fragment_play import cost, crawls, fragments, mean_divergence, play


@pytest.mark.parametrize("interval", [0.5, 1.3, 4.0])
@pytest.mark.parametrize("stagger", [False, True])
def test_uniform_refreshes_each_changing_page_equally_often(interval, stagger):
    env = fragments(horizon=26.0)
    uniform = bind(UniformRefresh(interval=interval, stagger=stagger), env)
    counts = Counter(page for page, _ in crawls(env, uniform))
    changing = np.flatnonzero(env.unwrapped.instance.change_rate > 0.0)
    assert 0 < changing.size < 40
    assert sorted(counts) == changing.tolist()
    last = env.unwrapped.tracker(0).time
    for count in counts.values():
        assert abs(count - last / interval) <= 1.0 + 1e-9


def test_uniform_takes_turns():
    env = fragments(horizon=20.0)
    when = {}
    for page, time in crawls(env, bind(UniformRefresh(interval=8.0), env)):
        when.setdefault(page, []).append(time)
    n = len(when)
    for k, page in enumerate(sorted(when)):
        moment = (k + 1) / n * 8.0
        assert when[page][0] == pytest.approx(np.ceil(moment / 0.5 - 1e-9) * 0.5)


def test_uniform_skips_known_static_pages():
    static = np.zeros(40, bool)
    static[5:] = True
    hidden = fragments(reveal="importance")
    assert {page for page, _ in crawls(hidden, bind(UniformRefresh(interval=2.0), hidden))} == set(
        range(40)
    )
    known = bind(UniformRefresh(interval=2.0, static=static), hidden)
    assert {page for page, _ in crawls(hidden, known)} == set(range(5))


def test_uniform_with_a_budget_is_round_robin():
    env = fragments("page", reveal="importance", horizon=15.0)
    assert crawls(env, bind(UniformRefresh(), env)) == crawls(env, policies.make("RoundRobin", env))


def test_holistic_static_with_a_budget_is_greedy():
    env = fragments("page", horizon=15.0)
    assert crawls(env, bind(HolisticStatic(), env)) == crawls(env, policies.make("Greedy", env))


@pytest.mark.parametrize("policy", [FragmentStatic, HolisticStatic])
def test_known_curves_refresh_at_the_period(policy):
    env = fragments(horizon=40.0)
    env.reset(seed=0)
    instance = env.unwrapped.instance
    curves = (
        RegionCurves(instance.regions)
        if policy is FragmentStatic
        else HolisticCurves(instance.change_rate)
    )
    period = curves.period(0.3 / instance.importance)
    waits = []

    def each(log, _):
        waits.extend(zip(log.page, log.elapsed, strict=True))

    play(env, bind(policy(threshold=0.3), env), 0, each)
    assert len(waits) > 50
    for page, elapsed in waits:
        assert elapsed == pytest.approx(np.ceil(period[page] / 0.5 - 1e-6) * 0.5)


def test_known_curves_can_be_given():
    env = fragments(reveal="importance")
    revealed = fragments()
    revealed.reset(seed=0)
    curves = RegionCurves(revealed.unwrapped.instance.regions)
    given = crawls(env, bind(FragmentStatic(threshold=0.3, curves=curves), env))
    assert given == crawls(revealed, bind(FragmentStatic(threshold=0.3), revealed))


def test_dynamic_utilities_are_integrals_of_what_came_to_pass():
    """U = int x dD(x), summed over fine ticks without a refresh, and x at the first change."""
    env = fragments(horizon=6.0, bandwidth=200.0)
    env.reset(seed=2)
    core = env.unwrapped
    fragment, holistic = FragmentDynamic(threshold=1e9), HolisticDynamic(threshold=1e9)
    before, total, first = np.zeros(40), np.zeros(40), np.zeros(40)
    done = False
    while not done:
        truth, tracker = core.true_divergence(0), core.tracker(0)
        total += tracker.elapsed * (truth.divergence - before)
        before = truth.divergence
        first = np.where(truth.changed & (first == 0.0), tracker.elapsed, first)
        last = truth, tracker.elapsed
        _, _, terminated, truncated, _ = env.step(np.zeros(40, np.int8))
        done = terminated or truncated
    result = fragment._utility(*last)
    assert np.ptp(result) > 0.5
    assert result == pytest.approx(total, abs=0.006)
    assert holistic._utility(*last) == pytest.approx(first, abs=0.006)
    assert np.count_nonzero(first) > 5


@pytest.mark.parametrize("policy", [FragmentDynamic, HolisticDynamic])
def test_dynamic_policies_refresh_what_has_reached_the_threshold(policy):
    env = fragments(horizon=20.0)
    observation, _ = env.reset(seed=1)
    made = bind(policy(threshold=0.1), env)
    count = 0
    for _ in range(30):
        truth, tracker = env.unwrapped.true_divergence(0), env.unwrapped.tracker(0)
        utility = (
            tracker.elapsed * truth.divergence - truth.area
            if policy is FragmentDynamic
            else np.where(truth.changed, truth.first_change, 0.0)
        )
        action, _ = made.predict(observation)
        assert action.tolist() == (tracker.problem.importance * utility >= 0.1).tolist()
        count += int(action.sum())
        observation, *_ = env.step(action)
    assert count > 10


def test_who_beats_whom_with_a_budget():
    """Section 2.3 and figure 6: the naive form loses to uniform, and to know more is better."""
    env = fragments("page", m=100, bandwidth=10.0, horizon=40.0)
    result = {
        policy: mean_divergence(policy, env, range(3))
        for policy in (UniformRefresh, FragmentStatic, HolisticStatic, FragmentDynamic)
    }
    naive = mean_divergence(CurrentDivergence, env, range(3))
    assert result[FragmentDynamic] < 0.95 * result[FragmentStatic]
    assert result[FragmentStatic] < 0.95 * result[HolisticStatic]
    assert result[FragmentStatic] < 0.9 * result[UniformRefresh]
    assert naive > 1.05 * result[UniformRefresh]


def test_who_beats_whom_by_threshold():
    env = fragments(m=100, bandwidth=1.0, horizon=40.0)
    uniform = play(env, bind(UniformRefresh(interval=8.0), env))
    static = play(env, bind(FragmentStatic(threshold=0.4), env))
    dynamic = play(env, bind(FragmentDynamic(threshold=0.2), env))
    assert cost(dynamic, 100) < cost(static, 100) < cost(uniform, 100)
    assert dynamic.divergence < static.divergence < uniform.divergence
