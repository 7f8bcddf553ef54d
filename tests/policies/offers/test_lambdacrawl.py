"""LambdaCrawl in discrete time: the paper's rates, steps and days, and what it is best at."""

from __future__ import annotations

import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Instance
from policies import solvers
from policies.offers.rates import HistoryRates, OfferRates
from policies.offers.strategies import change_within
from tests.policies.offers.offer_core import OfferCore, OfferLane, features_of
from tests.policies.replay import ReplayCore, ReplayLane

NAME = "DiscreteLambdaCrawl"
EITHER = pytest.mark.parametrize("granularity", ["step", "day"])


def offers(count=2, seed=0, num_pages=8):
    rng = np.random.default_rng(seed)
    return [features_of(day, *rng.random((3, num_pages))) for day in range(count)]


def action_of(core, **arguments):
    (action,), _ = policies.make(NAME, core, **arguments).predict(core.reset())
    return action


def simulated(importance, change, rates, epoch, days, seed):
    """Importance-weighted freshness of steps: a price changes, then the offer may be crawled."""
    rng = np.random.default_rng(seed)
    fresh, total = np.ones(len(change), bool), 0.0
    chance = 1.0 - (1.0 - change) ** epoch
    for _ in range(round(days / epoch)):
        fresh &= rng.random(len(change)) >= chance
        fresh |= rng.random(len(change)) < rates * epoch
        total += importance @ fresh
    return total * epoch / days / importance.sum()


@pytest.mark.parametrize("weight", ["click", "impression"])
def test_steps_are_solved_for_steps(weight):
    core = OfferCore(OfferLane(offers()), bandwidth=3.0)
    rates = HistoryRates()(started(core).tracker())
    chance = 1.0 - (1.0 - rates.change) ** (1.0 / 12.0)
    result = solvers.binary_discrete(getattr(rates, weight), chance, 3.0 / 12.0)
    np.testing.assert_allclose(action_of(core, weight=weight), result.rates * 12.0, rtol=1e-9)


@pytest.mark.parametrize("weight", ["click", "impression"])
def test_days_are_solved_for_days(weight):
    core = OfferCore(OfferLane(offers()), bandwidth=3.0)
    rates = HistoryRates()(started(core).tracker())
    result = solvers.binary_discrete(getattr(rates, weight), rates.change, 3.0)
    action = action_of(core, weight=weight, granularity="day")
    np.testing.assert_allclose(action, result.rates, rtol=1e-12)
    assert action.max() <= 1.0


def started(core):
    core.reset()
    return core


def test_table_2_by_hand():
    click, change = np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.4, 0.6])
    core = OfferCore(OfferLane([features_of(0, [1.0] * 3)]), bandwidth=1.0)
    source = lambda tracker: OfferRates(click, click, change)  # noqa: E731
    root = (np.sqrt(click * change) / (1 - change)).sum() / (1.0 + (change / (1 - change)).sum())
    rates = (np.sqrt(click * change) / root - change) / (1 - change)
    assert rates.min() > 0.0
    assert rates.max() < 1.0
    np.testing.assert_allclose(action_of(core, rates=source, granularity="day"), rates, rtol=1e-12)


def test_no_other_strategy_is_fresher_where_rates_are_true():
    rng = np.random.default_rng(3)
    click, change = rng.pareto(1.2, 300), rng.beta(0.3, 2.0, 300)
    core = OfferCore(OfferLane([features_of(0, np.ones(300))]), bandwidth=60.0)
    source = lambda tracker: OfferRates(click, click, change)  # noqa: E731
    result = {}
    for name, arguments in {
        "step": (NAME, {"rates": source}),
        "day": (NAME, {"rates": source, "granularity": "day"}),
        "click": ("ClickWeightedCrawl", {"rates": source}),
        "change": ("ChangeWeightedCrawl", {"rates": source}),
        "uniform": ("UniformCrawl", {}),
    }.items():
        (action,), _ = policies.make(arguments[0], core, **arguments[1]).predict(core.reset())
        result[name] = simulated(click, change, action, 1.0 / 12.0, 200.0, seed=5)
    chance = 1.0 - (1.0 - change) ** (1.0 / 12.0)
    predicted = solvers.binary_discrete(click, chance, 5.0).objective
    assert result["step"] == pytest.approx(predicted, abs=5e-3)
    assert max(result, key=result.get) == "step"
    assert result["step"] > result["click"] + 0.01 > result["uniform"]


@EITHER
@pytest.mark.parametrize("nothing", ["click", "change", "both at once"])
def test_without_anything_to_gain_rates_are_equal(granularity, nothing):
    click, change = np.array([1.0, 0.0, 2.0, 0.0]), np.array([0.0, 0.5, 0.0, 0.2])
    if nothing != "both at once":
        click = np.zeros(4) if nothing == "click" else click
        change = np.zeros(4) if nothing == "change" else change
    source = lambda tracker: OfferRates(click, click, change)  # noqa: E731
    core = OfferCore(OfferLane([features_of(0, np.ones(4))]), bandwidth=2.0)
    np.testing.assert_array_equal(action_of(core, rates=source, granularity=granularity), [0.5] * 4)


def test_chances_within_parts_of_a_day():
    chance = np.array([0.0, 1e-12, 0.3, 1.0])
    parts = change_within(chance, 1.0 / 12.0)
    np.testing.assert_allclose(1.0 - (1.0 - parts) ** 12, chance, rtol=1e-3, atol=1e-15)
    np.testing.assert_allclose(parts[1], 1e-12 / 12.0, rtol=1e-11)
    np.testing.assert_allclose(parts[2], 1.0 - 0.7 ** (1.0 / 12.0), rtol=1e-13)
    assert parts[0] == 0.0
    assert parts[3] == 1.0
    assert change_within(chance, 1.0) is chance


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": "clicks"}, r"weight must be one of click, impression, got 'clicks'"),
        ({"granularity": "hour"}, r"granularity must be one of step, day, got 'hour'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        policies.make(NAME, OfferCore(OfferLane(offers())), **arguments)


def test_without_offers_the_revealed_rates_are_used():
    instance = Instance([1.0, 3.0, 2.0], [0.5, 0.1, 2.0], bandwidth=1.5)
    core = ReplayCore(ReplayLane(instance), action_form="rates", epoch=0.5)
    chance = 1.0 - np.exp(-instance.change_rate * 0.5)
    result = solvers.binary_discrete(instance.importance, chance, 0.75)
    np.testing.assert_allclose(action_of(core), result.rates / 0.5, rtol=1e-9)
