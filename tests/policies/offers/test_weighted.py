"""Proportional strategies: exact shares, caps, renewal once a day, and other families."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Instance
from policies.offers.rates import HistoryRates, OfferRates
from policies.offers.strategies import proportional_rates
from tests.policies.offers.offer_core import OfferCore, OfferLane, features_of
from tests.policies.replay import ReplayCore, ReplayLane

COLUMNS = {
    "ChangeWeightedCrawl": "change",
    "ClickWeightedCrawl": "click",
    "ImpressionWeightedCrawl": "impression",
}
EVERY_ONE = pytest.mark.parametrize("name", COLUMNS)


def by_sorting(weights, bandwidth, highest):
    """The twin: the largest weights are held one after the other until the next needs no cap."""
    weights = [float(weight) for weight in weights]
    if not any(weights):
        return np.full(len(weights), min(bandwidth / len(weights), highest))
    rates = [0.0] * len(weights)
    order = sorted(range(len(weights)), key=lambda i: -weights[i])
    left = bandwidth
    for place, i in enumerate(order):
        if weights[i] == 0.0:
            break
        rest = sum(weights[j] / weights[i] for j in order[place:])
        rates[i] = min(left / rest, highest)
        if left / rest > highest:
            left = max(left - highest, 0.0)
            continue
        for j in order[place:]:
            rates[j] = weights[j] / weights[i] * (left / rest)
        break
    return np.array(rates)


# Shares


@settings(max_examples=400, deadline=None)
@given(
    weights=st.lists(
        st.one_of(st.just(0.0), st.sampled_from([1.0, 2.0]), st.floats(1e-300, 1e300)),
        min_size=1,
        max_size=30,
    ),
    bandwidth=st.floats(1e-3, 1e3),
    highest=st.floats(1e-2, 1e2),
)
def test_twin_that_sorts(weights, bandwidth, highest):
    result = proportional_rates(weights, bandwidth, highest)
    twin = by_sorting(weights, bandwidth, highest)
    np.testing.assert_allclose(result, twin, rtol=1e-9, atol=1e-12 * bandwidth)
    assert result.max() <= highest
    capacity = highest * (np.count_nonzero(weights) or len(weights))
    assert result.sum() == pytest.approx(min(bandwidth, capacity), rel=1e-9)
    assert result.sum() <= bandwidth * (1.0 + 1e-12)


# Policies, with offers


def offers(count=3, seed=0, num_pages=6):
    rng = np.random.default_rng(seed)
    return [features_of(day, *rng.random((3, num_pages))) for day in range(count)]


@EVERY_ONE
def test_actions_follow_the_book_of_the_day(name):
    books = offers(), offers(seed=1)
    core = OfferCore(*(OfferLane(each) for each in books), bandwidth=3.0)
    policy, observation = policies.make(name, core), core.reset()
    for step in range(36):
        actions, state = policy.predict(observation)
        assert actions.shape == (2, 6)
        assert actions.dtype == np.float64
        assert state is None
        for lane, each in enumerate(books):
            rates = HistoryRates()(core.tracker(lane))
            assert core.tracker(lane).offers is each[step // 12]
            weights = getattr(rates, COLUMNS[name])
            np.testing.assert_allclose(actions[lane], 3.0 * weights / weights.sum(), rtol=1e-12)
        observation = core.step()


@EVERY_ONE
def test_no_offer_is_crawled_more_than_once_a_step(name):
    features = features_of(0, *[[1.0, 1e-3, 0.0, 1e-3]] * 3)
    core = OfferCore(OfferLane([features]), bandwidth=14.0)
    (action,), _ = policies.make(name, core).predict(core.reset())
    np.testing.assert_allclose(action, [12.0, 1.0, 0.0, 1.0], rtol=1e-12)


def test_actions_are_planned_once_a_day(monkeypatch):
    core = OfferCore(OfferLane(offers()))
    policy = policies.make("ClickWeightedCrawl", core)
    planned, plan = [], policy.policy.allocate
    monkeypatch.setattr(policy.policy, "allocate", lambda *args: planned.append(1) or plan(*args))
    observation = core.reset()
    for step in range(36):
        policy.predict(observation)
        assert len(planned) == 1 + step // 12
        observation = core.step()


def test_an_action_is_not_changed_by_who_receives_it():
    core = OfferCore(OfferLane(offers()))
    policy, observation = policies.make("ClickWeightedCrawl", core), core.reset()
    action, _ = policy.predict(observation)
    kept = action.copy()
    action[:] = -1.0
    np.testing.assert_array_equal(policy.predict(observation)[0], kept)


def test_bandwidth_steps_are_followed():
    core = OfferCore(OfferLane(offers(1)), bandwidth=2.0, steps=((0.25, 4.0), (0.5 + 1 / 24, 6.0)))
    policy, observation = policies.make("ClickWeightedCrawl", core), core.reset()
    for step in range(12):
        spent = policy.predict(observation)[0].sum()
        expected = 2.0 if step < 3 else 4.0 if step < 6 else 5.0 if step == 6 else 6.0
        assert spent == pytest.approx(expected, rel=1e-12)
        observation = core.step()


# Other families


@EVERY_ONE
def test_without_offers_the_revealed_rates_are_used(name):
    instance = Instance([1.0, 3.0, 0.0], [0.5, 0.0, 2.0], bandwidth=4.0)
    core = ReplayCore(ReplayLane(instance), action_form="rates")
    (action,), _ = policies.make(name, core).predict(core.reset())
    change = -np.expm1(-instance.change_rate)
    weights = change if name == "ChangeWeightedCrawl" else instance.importance
    np.testing.assert_allclose(action, 4.0 * weights / weights.sum(), rtol=1e-12)


@EVERY_ONE
def test_pages_with_complete_observation_take_shares_of_their_signals(name):
    instance = Instance([1.0, 1.0, 2.0], [4.0, 0.1, 0.5], [1.0, 1.0, 0.0], bandwidth=2.0)
    core = ReplayCore(ReplayLane(instance), action_form="rates")
    source = lambda tracker: OfferRates(*[np.array([1.0, 1.0, 2.0]) / 4] * 3)  # noqa: E731
    (action,), _ = policies.make(name, core, rates=source).predict(core.reset())
    np.testing.assert_allclose(action, [0.5 / 4.0, 1.0, 1.0], rtol=1e-12)


def test_hidden_change_rates_are_missed():
    lane = ReplayLane(Instance([1.0, 1.0], 0.5, [1.0, 0.0], bandwidth=2.0))
    lane.reveal = "importance"
    core = ReplayCore(lane, action_form="rates")
    source = lambda tracker: OfferRates(*np.ones((3, 2)))  # noqa: E731
    with pytest.raises(ValueError, match="ClickWeightedCrawl needs change_rate where pages have"):
        policies.make("ClickWeightedCrawl", core, rates=source).predict(core.reset())
