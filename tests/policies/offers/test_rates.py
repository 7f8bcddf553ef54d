"""Sources of rates: what they read, how often they are asked, and how long they are remembered."""

from __future__ import annotations

import numpy as np
import pytest

import policies
from crawl_envs.types import Instance
from policies.offers.rates import (
    HistoryRates,
    OfferRates,
    RevealedRates,
    StaleRates,
    default_source,
    rates_of,
)
from tests.policies.offers.offer_core import CountedSource, OfferCore, OfferLane, features_of
from tests.policies.replay import ReplayCore, ReplayLane


def days(count, seed=0):
    rng = np.random.default_rng(seed)
    return [features_of(day, *rng.random((2, 4)), rng.random(4) * 1.5) for day in range(count)]


def started(*lanes):
    core = OfferCore(*lanes)
    core.reset()
    return core


def revealed_tracker(reveal="parameters"):
    lane = ReplayLane(Instance([1.0, 3.0], [0.0, 2.0], bandwidth=1.0))
    lane.reveal = reveal
    core = ReplayCore(lane, action_form="rates")
    core.reset()
    return core.tracker()


# What they read


def test_history_is_that_of_thirty_days():
    features = features_of(0, [0.0, 1.0, 2.5], [3.0, 0.5, 0.0], [0.0, 0.25, 4.0])
    rates = HistoryRates()(started(OfferLane([features])).tracker())
    np.testing.assert_array_equal(rates.click, [0.0, 1.0, 2.5])
    np.testing.assert_array_equal(rates.impression, [3.0, 0.5, 0.0])
    np.testing.assert_array_equal(rates.change, [0.0, 0.25, 1.0])
    assert all(array.dtype == np.float64 for array in rates)


def test_history_needs_offers():
    with pytest.raises(ValueError, match=r"tracker\.offers must be .* got None"):
        HistoryRates()(revealed_tracker())


def test_revealed_is_what_the_problem_says():
    rates = RevealedRates()(revealed_tracker())
    np.testing.assert_array_equal(rates.click, [1.0, 3.0])
    np.testing.assert_array_equal(rates.impression, [1.0, 3.0])
    np.testing.assert_allclose(rates.change, [0.0, 1.0 - np.exp(-2.0)], rtol=1e-15)
    with pytest.raises(ValueError, match="change_rate must be revealed for RevealedRates"):
        RevealedRates()(revealed_tracker("importance"))


def test_the_usual_source_depends_on_the_family():
    offers = started(OfferLane(days(1))).tracker()
    assert isinstance(default_source(offers), HistoryRates)
    assert isinstance(default_source(revealed_tracker()), RevealedRates)


# How often they are asked


@pytest.mark.parametrize("name", ["ClickWeightedCrawl", "DiscreteLambdaCrawl"])
def test_a_policy_asks_its_source_once_per_day_of_a_lane(name):
    core = OfferCore(OfferLane(days(3)), OfferLane(days(3, seed=1)))
    source = CountedSource(HistoryRates())
    policy = policies.make(name, core, rates=source)
    for episode in range(2):
        observation = core.reset()
        for step in range(30):
            policy.predict(observation)
            assert source.asked == 6 * episode + 2 * (1 + step // 12)
            observation = core.step()


# Staleness


def test_one_stale_source_serves_lanes_and_policies_apart():
    books = [days(3, seed=seed) for seed in range(4)]
    core = OfferCore(OfferLane(books[0], books[2]), OfferLane(books[1], books[3]))
    counted = CountedSource(HistoryRates())
    source = StaleRates(StaleRates(counted))
    arms = [policies.make("ClickWeightedCrawl", core, rates=source) for _ in range(2)]
    for first in (0, 2):
        observation = core.reset()
        for _ in range(36):
            for arm in arms:
                for lane, action in enumerate(arm.predict(observation)[0]):
                    clicks = books[first + lane][0].clicks_30.astype(np.float64)
                    np.testing.assert_allclose(action, 2.0 * clicks / clicks.sum(), rtol=1e-12)
            observation = core.step()
    assert counted.asked == 8


class First:
    """One's own source that remembers: the clicks of the first book that it sees."""

    def __init__(self, copies):
        self.copies, self.kept = copies, None

    def fresh(self):
        self.copies.append(First(self.copies))
        return self.copies[-1]

    def __call__(self, tracker):
        rates = HistoryRates()(tracker)
        self.kept = rates.click if self.kept is None else self.kept
        return rates._replace(click=self.kept)


@pytest.mark.parametrize("within", [lambda source: source, StaleRates])
def test_a_custom_source_with_state_is_reset(within):
    books = [days(3, seed=seed) for seed in range(4)]
    core = OfferCore(OfferLane(books[0], books[2]), OfferLane(books[1], books[3]))
    copies = []
    policy = policies.make("ClickWeightedCrawl", core, rates=within(First(copies)))
    for first in (0, 2):
        observation = core.reset()
        for _ in range(30):
            for lane, action in enumerate(policy.predict(observation)[0]):
                clicks = books[first + lane][0].clicks_30.astype(np.float64)
                np.testing.assert_allclose(action, 2.0 * clicks / clicks.sum(), rtol=1e-12)
            observation = core.step()
    assert len(copies) == 4


# Bad sources, and bad answers


@pytest.mark.parametrize(
    ("source", "got"),
    [
        (3, "got 3"),
        (None, "got None"),
        ("history", "got 'history'"),
        (HistoryRates, r"got .*HistoryRates.*; pass an instance, not a class"),
    ],
)
def test_what_is_no_source_is_refused_at_once(source, got):
    with pytest.raises(ValueError, match=f"^source must be a function of a tracker, {got}"):
        StaleRates(source)
    if source is None:
        return
    core = OfferCore(OfferLane(days(1)))
    for name in ("ClickWeightedCrawl", "DiscreteLambdaCrawl"):
        with pytest.raises(ValueError, match=f"^rates must be a function of a tracker, {got}"):
            policies.make(name, core, rates=source)
    for name in ("Exp3", "ContextualBandit"):
        with pytest.raises(ValueError, match=f"^weights must be a function of a tracker, {got}"):
            policies.make(name, core, weights=source)


def test_fresh_must_return_a_source():
    class Bad(HistoryRates):
        def fresh(self):
            return None

    core = OfferCore(OfferLane(days(1)))
    policy = policies.make("ClickWeightedCrawl", core, rates=Bad())
    with pytest.raises(
        ValueError, match=r"Bad\.fresh\(\) must be a function of a tracker, got None"
    ):
        policy.predict(core.reset())


GOOD = OfferRates(np.ones(4), np.ones(4), np.ones(4))


def unfit(tracker):
    return unfit.said


@pytest.mark.parametrize(
    ("said", "got"),
    [
        (None, "None$"),
        (1.5, r"1\.5$"),
        (tuple(GOOD), r"\(array"),
        (np.ones((3, 4)), "array"),
        ([[1.0] * 4] * 3, r"\[\[1.0"),
        ("rates", "'rates'$"),
    ],
)
def test_an_answer_that_is_no_rates(said, got):
    tracker = started(OfferLane(days(1))).tracker()
    unfit.said = said
    wanted = r"^unfit must return OfferRates\(click, impression, change\), arrays of shape \(4,\)"
    with pytest.raises(ValueError, match=f"{wanted}, got {got}"):
        rates_of(unfit, tracker)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("click", np.ones(3), r"finite and >= 0, got array\(\[1"),
        ("click", ["a"] * 4, r"finite and >= 0, got \['a'"),
        ("click", [[1.0], [1.0, 2.0]], r"finite and >= 0, got \[\[1.0\]"),
        ("impression", None, "finite and >= 0, got None"),
        ("impression", 1.0, "finite and >= 0, got 1.0"),
        ("click", [0.0, 1.0, np.inf, 1.0], "finite and >= 0, got .*inf"),
        ("impression", [0.0, -1.0, 1.0, 1.0], "finite and >= 0, got .*-1.0"),
        ("change", [0.0, 0.5, 1.5, 0.0], r"in \[0, 1\], got .*1.5"),
        ("change", [0.0, 0.5, np.nan, 0.5], r"in \[0, 1\], got .*nan"),
    ],
)
def test_bad_answers(field, value, message):
    tracker = started(OfferLane(days(1))).tracker()
    unfit.said = GOOD._replace(**{field: value})
    with pytest.raises(ValueError, match=f"^{field} of unfit must be 4 numbers {message}"):
        rates_of(unfit, tracker)


def test_numbers_of_other_kinds_are_converted():
    tracker = started(OfferLane(days(1))).tracker()
    said = OfferRates([0, 1, 2, 3], np.arange(4, dtype=np.int8), np.full(4, 0.25, np.float16))
    rates = rates_of(lambda tracker: said, tracker)
    assert all(array.dtype == np.float64 for array in rates)
    np.testing.assert_array_equal(rates.click, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(rates.impression, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(rates.change, [0.25] * 4)
    assert rates_of(lambda tracker: GOOD, tracker) is GOOD
    single = OfferRates(*(np.ones(4, np.float32) for _ in range(3)))
    assert rates_of(lambda tracker: single, tracker) is single
