"""Sources of rates: what they read, how often they are asked, and how long they are remembered."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest

import policies
from crawl_envs.types import Instance
from policies.offers import rates as offer_rates
from policies.offers.rates import (
    HistoryRates,
    OfferRates,
    RevealedRates,
    StaleRates,
    cached_rates,
    default_source,
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
    assert default_source(offers) is default_source(offers)


# How often they are asked


def test_a_source_is_asked_once_per_book():
    core = started(OfferLane(days(3)), OfferLane(days(3, seed=1)))
    source = CountedSource(HistoryRates())
    for step in range(30):
        for _ in range(3):
            for lane in range(2):
                tracker = core.tracker(lane)
                assert cached_rates(source, tracker) is cached_rates(source, tracker)
                own = HistoryRates()(tracker)
                np.testing.assert_array_equal(cached_rates(source, tracker).click, own.click)
        assert source.asked == 2 * (1 + step // 12)
        core.step()


def test_lanes_that_share_a_book_share_the_answer():
    books = days(1)
    core = started(OfferLane(books), OfferLane(books))
    source = CountedSource(HistoryRates())
    assert cached_rates(source, core.tracker(0)) is cached_rates(source, core.tracker(1))
    assert source.asked == 1


def test_another_episode_has_another_answer_even_for_the_same_day():
    core = started(OfferLane(days(1), days(1, seed=1)))
    source = CountedSource(HistoryRates())
    first = cached_rates(source, core.tracker())
    core.reset()
    assert not np.array_equal(cached_rates(source, core.tracker()).click, first.click)
    assert source.asked == 2


def test_lanes_on_different_days_are_served():
    ahead, behind = OfferLane(days(3)), OfferLane(days(3, seed=1))
    core = started(ahead, behind)
    source = HistoryRates()
    for time in (0.0, 1.0, 2.0):
        ahead.time = time
        for lane in range(2):
            own = source(core.tracker(lane))
            np.testing.assert_array_equal(cached_rates(source, core.tracker(lane)).click, own.click)


def test_policies_that_share_a_source_ask_it_once_a_day():
    core = OfferCore(OfferLane(days(2)))
    source = CountedSource(HistoryRates())
    arms = [
        policies.ClickWeightedCrawl(core, rates=source),
        policies.ChangeWeightedCrawl(core, rates=source),
        policies.DiscreteLambdaCrawl(core, rates=source),
        policies.DiscreteLambdaCrawl(core, rates=source, granularity="day"),
    ]
    observation = core.reset()
    for step in range(24):
        for arm in arms:
            arm.predict(observation)
        assert source.asked == 1 + step // 12
        observation = core.step()


def test_old_books_and_forgotten_sources_are_let_go():
    core = started(OfferLane(days(2)))
    source = CountedSource(HistoryRates())
    rates = weakref.ref(cached_rates(source, core.tracker()).click)
    gc.collect()
    assert rates() is not None
    core.lanes[0].time = 1.0
    cached_rates(source, core.tracker())
    gc.collect()
    assert rates() is None
    known, gone = len(offer_rates._CACHE), weakref.ref(source)
    del source
    gc.collect()
    assert gone() is None
    assert len(offer_rates._CACHE) == known - 1


class Slotted:
    """It cannot be referred to weakly."""

    __slots__ = ("asked",)

    def __init__(self):
        self.asked = 0

    def __call__(self, tracker):
        self.asked += 1
        return HistoryRates()(tracker)


def test_sources_that_cannot_be_remembered_are_asked_each_time():
    tracker = started(OfferLane(days(1))).tracker()
    source = Slotted()
    for count in (1, 2):
        np.testing.assert_array_equal(cached_rates(source, tracker).click, tracker.offers.clicks_30)
        assert source.asked == count


def test_sources_without_a_hash_are_remembered():
    tracker = started(OfferLane(days(1))).tracker()

    class Unhashable(CountedSource):
        __hash__ = None

    source = Unhashable(HistoryRates())
    assert cached_rates(source, tracker) is cached_rates(source, tracker)
    assert source.asked == 1


@dataclass(frozen=True)
class Named:
    """Sources of one name are equal, whatever they say."""

    name: str
    factor: float = field(compare=False)

    def __call__(self, tracker):
        rates = HistoryRates()(tracker)
        return rates._replace(click=self.factor * rates.click)


def test_equal_sources_are_distinguished():
    tracker = started(OfferLane(days(1))).tracker()
    one, other = Named("mine", 1.0), Named("mine", 3.0)
    assert one == other
    for source in (one, other, one):
        clicks = source.factor * tracker.offers.clicks_30.astype(np.float64)
        np.testing.assert_array_equal(cached_rates(source, tracker).click, clicks)


# Staleness


@pytest.mark.parametrize(
    ("kept", "asked"), [(None, [0] * 7), (1, range(7)), (3, [0] * 3 + [3] * 3 + [6])]
)
def test_stale_rates_are_those_of_an_earlier_day(kept, asked):
    books = days(7)
    core = started(OfferLane(books))
    source = StaleRates(HistoryRates(), kept)
    for day, since in enumerate(asked):
        core.lanes[0].time = float(day)
        rates = source(core.tracker())
        np.testing.assert_array_equal(rates.click, books[since].clicks_30)


def test_stale_rates_are_reset_in_an_episode():
    first, second = days(2), days(2, seed=1)
    core = started(OfferLane(first, second))
    source = StaleRates(HistoryRates())
    np.testing.assert_array_equal(source(core.tracker()).click, first[0].clicks_30)
    core.reset()
    core.lanes[0].time = 1.0  # joined late
    np.testing.assert_array_equal(source(core.tracker()).click, second[1].clicks_30)


def test_one_stale_source_serves_lanes_and_policies_apart():
    books = days(3), days(3, seed=1)
    core = OfferCore(*(OfferLane(each) for each in books))
    counted = CountedSource(HistoryRates())
    source = StaleRates(counted)
    arms = [policies.ClickWeightedCrawl(core, rates=source) for _ in range(2)]
    observation = core.reset()
    for _ in range(36):
        for arm in arms:
            actions, _ = arm.predict(observation)
            for action, own in zip(actions, books, strict=True):
                clicks = own[0].clicks_30.astype(np.float64)
                np.testing.assert_allclose(action, 2.0 * clicks / clicks.sum(), rtol=1e-12)
        observation = core.step()
    assert counted.asked == 2


def test_stale_rates_of_stale_rates():
    books = days(7)
    core = started(OfferLane(books))
    source = StaleRates(StaleRates(HistoryRates(), 2), 3).fresh()
    for day, since in enumerate([0, 0, 0, 3, 3, 3, 6]):
        core.lanes[0].time = float(day)
        np.testing.assert_array_equal(source(core.tracker()).click, books[since].clicks_30)


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


@pytest.mark.parametrize("within", [lambda source: source, lambda source: StaleRates(source, 1)])
def test_a_custom_source_with_state_is_reset(within):
    books = [days(3, seed=seed) for seed in range(4)]
    core = OfferCore(OfferLane(books[0], books[2]), OfferLane(books[1], books[3]))
    copies = []
    policy = policies.ClickWeightedCrawl(core, rates=within(First(copies)))
    for first in (0, 2):
        observation = core.reset()
        for _ in range(30):
            for lane, action in enumerate(policy.predict(observation)[0]):
                clicks = books[first + lane][0].clicks_30.astype(np.float64)
                np.testing.assert_allclose(action, 2.0 * clicks / clicks.sum(), rtol=1e-12)
            observation = core.step()
    assert len(copies) == 4


@pytest.mark.parametrize("kept", [0, -1, 1.5, True, "a week"])
def test_days_are_whole(kept):
    with pytest.raises(ValueError, match="days must be an integer >= 1, got"):
        StaleRates(HistoryRates(), kept)


# Bad sources, and bad answers


@pytest.mark.parametrize(
    ("source", "got"),
    [
        (3, "got 3"),
        (None, "got None"),
        ("history", "got 'history'"),
        (HistoryRates, r"got the class HistoryRates: give an instance"),
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
    policy = policies.ClickWeightedCrawl(core, rates=Bad())
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
        (1.5, r"float 1\.5$"),
        ((np.ones(4), np.ones(4)), "tuple "),
        (tuple(GOOD), "tuple "),
        (np.ones((3, 4)), r"an array of float64 of shape \(3, 4\)$"),
        ([[1.0] * 4] * 3, "list "),
        ({"click": 1.0}, "dict "),
        ("rates", "str 'rates'$"),
        (True, "bool True$"),
    ],
)
def test_an_answer_that_is_no_rates(said, got):
    tracker = started(OfferLane(days(1))).tracker()
    unfit.said = said
    wanted = r"^unfit must return OfferRates\(click, impression, change\), arrays of shape \(4,\)"
    with pytest.raises(ValueError, match=f"{wanted}, got {got}"):
        cached_rates(unfit, tracker)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("click", np.ones(3), r"numbers of shape \(4,\), got an array of float64 of shape \(3,\)"),
        ("click", np.ones(4, bool), r"numbers of shape \(4,\), got an array of bool of shape"),
        ("click", ["a"] * 4, r"numbers of shape \(4,\), got list \['a'"),
        ("click", [[1.0], [1.0, 2.0]], r"numbers of shape \(4,\), got list \[\[1.0\]"),
        ("impression", None, r"numbers of shape \(4,\), got None"),
        ("impression", 1.0, r"numbers of shape \(4,\), got float 1.0"),
        ("click", [0.0, 1.0, np.inf, 1.0], "finite and >= 0, got inf"),
        ("impression", [0.0, -1.0, 1.0, 1.0], "finite and >= 0, got -1.0"),
        ("change", [0.0, 0.5, 1.5, np.nan], r"in \[0, 1\], got 1.5"),
        ("change", [0.0, 0.5, np.nan, 1.5], r"in \[0, 1\], got nan"),
    ],
)
def test_bad_answers(field, value, message):
    tracker = started(OfferLane(days(1))).tracker()
    unfit.said = GOOD._replace(**{field: value})
    with pytest.raises(ValueError, match=f"^{field} of unfit must be {message}"):
        cached_rates(unfit, tracker)


def test_numbers_of_other_kinds_are_converted():
    tracker = started(OfferLane(days(1))).tracker()
    said = OfferRates([0, 1, 2, 3], np.arange(4, dtype=np.int8), np.full(4, 0.25, np.float32))
    rates = cached_rates(lambda tracker: said, tracker)
    assert all(array.dtype == np.float64 for array in rates)
    np.testing.assert_array_equal(rates.click, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(rates.impression, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(rates.change, [0.25] * 4)
    assert cached_rates(lambda tracker: GOOD, tracker) is GOOD
