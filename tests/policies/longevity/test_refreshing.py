"""Common behaviour of refresh policies: due pages, their order, and bad input."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs.checks import check_policy
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.offline import (
    CurrentDivergence,
    FragmentDynamic,
    FragmentStatic,
    HolisticDynamic,
    HolisticStatic,
    UniformRefresh,
)
from policies.longevity.refreshing import Urgency, most_urgent
from tests.policies.longevity.fragment_play import crawls, fragments, play

THRESHOLDS = (
    CurveFitting,
    DivergenceBounds,
    ChoGarciaMolina,
    CurrentDivergence,
    FragmentDynamic,
    FragmentStatic,
    HolisticDynamic,
    HolisticStatic,
)
EVERY_ONE = pytest.mark.parametrize("policy", [*THRESHOLDS, UniformRefresh])
LEARNERS = pytest.mark.parametrize("policy", [CurveFitting, DivergenceBounds, ChoGarciaMolina])


def made(policy, env):
    given = {"interval": 4.0} if policy is UniformRefresh else {"threshold": 0.2}
    return policy(env, **given)


def naive_order(urgency, elapsed, alive):
    def rank(page):
        late = urgency.overdue is not None and urgency.overdue[page] >= 1.0
        first = (0, -urgency.overdue[page]) if late else (1, -urgency.utility[page])
        return (*first, -elapsed[page], page)

    return sorted(np.flatnonzero(alive).tolist(), key=rank)


@pytest.mark.parametrize("late", [False, True])
def test_most_urgent_first(late):
    rng = np.random.default_rng(int(late))
    for _ in range(200):
        m = int(rng.integers(1, 12))
        overdue = rng.choice([0.0, 0.5, 1.0, 1.5, 2.0], m) if late else None
        urgency = Urgency(rng.choice([0.0, 1.0, 2.5], m), overdue)
        elapsed = rng.choice([1.0, 2.0, 3.0], m)
        alive = rng.random(m) < 0.8
        expected = naive_order(urgency, elapsed, alive)
        for count in (1, 3, 12):
            result = most_urgent(urgency, elapsed, alive, count).tolist()
            assert result == (expected[:count] or [0])


@EVERY_ONE
@pytest.mark.parametrize("action", ["page", "scores", "refresh"])
def test_the_contract_of_policies(policy, action):
    more = {"batch": 3} if action == "scores" else {}
    check_policy(
        lambda env: made(policy, env), lambda: fragments(action, m=12, horizon=6.0, **more)
    )


@EVERY_ONE
def test_an_episode_repeats(policy):
    env = fragments(horizon=10.0)
    first = crawls(env, made(policy, env), seed=3)
    again = crawls(env, made(policy, env), seed=3)
    assert first == again
    assert len(first) > 5


@LEARNERS
def test_observing_changes_nothing_but_when_it_learns(policy):
    env = fragments(horizon=10.0)
    alone = crawls(env, made(policy, env), seed=1)
    observing = made(policy, env)
    result = []

    def each(log, tracker):
        observing.observe(log)
        observing.observe(log)
        result.extend(zip(log.page.tolist(), log.time.tolist(), strict=True))

    play(env, observing, 1, each)
    assert result == alone


@LEARNERS
def test_learners_use_importance_alone(policy):
    revealed, hidden = fragments(horizon=10.0), fragments(horizon=10.0, reveal="importance")
    assert crawls(revealed, made(policy, revealed)) == crawls(hidden, made(policy, hidden))


@pytest.mark.parametrize("policy", THRESHOLDS)
def test_the_form_refresh_needs_a_threshold(policy):
    env = fragments()
    with pytest.raises(ValueError, match=r"threshold must be a number > 0 .* got None"):
        policy(env)
    for bad in (0.0, -1.0, np.nan, "1"):
        with pytest.raises(ValueError, match="threshold"):
            policy(env, threshold=bad)
    assert policy(fragments("page")).threshold is None


@EVERY_ONE
def test_needs_an_environment(policy):
    with pytest.raises(ValueError, match="env"):
        policy(None)


def test_bad_input():
    env = fragments()
    with pytest.raises(ValueError, match="interval"):
        UniformRefresh(env)
    with pytest.raises(ValueError, match="static"):
        UniformRefresh(env, interval=1.0, static=[0, 1])
    with pytest.raises(ValueError, match="estimator"):
        ChoGarciaMolina(env, threshold=1.0, estimator="naive")
    with pytest.raises(ValueError, match="warm_up"):
        ChoGarciaMolina(env, threshold=1.0, warm_up=0.0)
    with pytest.raises(ValueError, match="risk needs a threshold"):
        CurveFitting(fragments("page"), risk=10.0)
    for name in ("histories", "length", "learning", "risk", "sketch_size"):
        with pytest.raises(ValueError, match=name):
            CurveFitting(env, threshold=1.0, **{name: 0})
    with pytest.raises(ValueError, match="risk"):
        DivergenceBounds(env, threshold=1.0, risk=0.5)
    with pytest.raises(ValueError, match="lane"):
        CurveFitting(env, threshold=1.0).footprint()


def test_pages_without_fragments_are_refused():
    env = gym.make("CrawlNCIS-v0", num_pages=4, bandwidth=4.0, horizon=2.0)
    for policy in (CurveFitting, DivergenceBounds, FragmentDynamic, HolisticDynamic):
        with pytest.raises(ValueError, match="fragments"):
            policy(env)


def test_made_by_name():
    env = fragments("page")
    expected = {policy.__name__ for policy in (*THRESHOLDS, UniformRefresh)}
    assert expected <= {*policies.names(family="fragments")}
    assert list(policies.names(family="fragments")) == sorted(policies.names(family="fragments"))
    for name in expected:
        assert policies.make(name, env).name == name
        assert getattr(policies, name).__name__ == name
    with pytest.raises(ValueError, match=r"did you mean CurveFitting\?"):
        policies.make("CurveFiting", env)


@LEARNERS
def test_lanes_are_those_of_single_environments(policy):
    given = {"num_pages": 12, "bandwidth": 2.0, "horizon": 12.0, "action": "refresh"}
    lanes = gym.make_vec("CrawlLongevity-v0", num_envs=2, **given)
    together = made(policy, lanes)
    observation, _ = lanes.reset(seed=5)
    actions = []
    for _ in range(20):
        action, _ = together.predict(observation)
        actions.append(action)
        observation, *_ = lanes.step(action)
    for lane in range(2):
        single = gym.make("CrawlLongevity-v0", **given)
        alone = made(policy, single)
        seen, _ = single.reset(seed=5 + lane)
        for action in actions:
            assert alone.predict(seen)[0].tolist() == action[lane].tolist()
            seen, *_ = single.step(action[lane])
    assert sum(action.sum() for action in actions) > 10


@LEARNERS
def test_small_sketches_of_the_environment_serve(policy):
    env = fragments(m=20, horizon=15.0, sketch_size=4)
    whole = fragments(m=20, horizon=15.0)
    few, all_of_them = (crawls(world, made(policy, world)) for world in (env, whole))
    assert len(few) > 5
    if policy is ChoGarciaMolina:
        assert few == all_of_them
    else:
        assert made(policy, env).sketch_size is None


@EVERY_ONE
@pytest.mark.parametrize("action", ["page", "refresh"])
def test_pages_that_do_not_exist_are_not_chosen(policy, action):
    env = fragments(action, m=12, horizon=10.0)
    observation, _ = env.reset(seed=0)
    core, rng = env.unwrapped, np.random.default_rng(1)
    original = core.tracker
    chosen = 0
    alive = np.ones(12, bool)
    core.tracker = lambda lane=0: original(lane)._replace(alive=alive.copy())
    made_one = made(policy, env)
    for _ in range(12):
        alive = rng.random(12) < 0.6
        alive[3] = True
        picked, _ = made_one.predict(observation)
        pages = [int(picked)] if action == "page" else np.flatnonzero(picked).tolist()
        assert all(alive[page] for page in pages)
        chosen += len(pages)
        observation, *_ = env.step(picked)
    assert chosen > 2
    alive = np.zeros(12, bool)
    core.tracker = lambda lane=0: original(lane)._replace(alive=alive, episode=99)
    picked, _ = made(policy, env).predict(observation)
    assert np.count_nonzero(picked) == 0
