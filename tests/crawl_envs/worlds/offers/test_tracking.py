"""Held prices, crawls and clicks equal the twin's, step by step; samples of a fixed size."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from crawl_envs.worlds.offers.law import RING, STEPS_PER_DAY, DayEvents
from crawl_envs.worlds.offers.market import draw_day, initial_state
from crawl_envs.worlds.offers.tracking import (
    CHANGES,
    CLICK_TIME,
    CLICKS,
    CRAWLS,
    EXPECTED_CLICKS,
    EXPECTED_TIME,
    FRESH_CLICKS,
    FRESH_OFFERS,
    HITS,
    OBSERVED_CHANGES,
    OFFER_TIME,
    begin_day,
    choose_at_random,
    new_tracking,
    play_day,
    play_step,
    systematic,
)
from tests.crawl_envs.worlds.offers.markets import KINDS, changes_by_step, clicks_by_step, market_of
from tests.naive import market as naive_market
from tests.naive import pages as naive

DAYS, SEED = 40, 5
RATES = {"none": (0.0, 0.0), "few": (0.0, 0.5), "some": (0.0, 9.0), "all": (12.0, 20.0)}
EXACT = 2.0**-10
"""Sums of multiples of this are not rounded."""


def rng_of(root):
    return np.array(naive.Stream(root, 0).state, np.uint64)


class Pair:
    """A tracker and its twin that play the same days."""

    def __init__(self, law, seed=SEED):
        self.law, self.market = law, initial_state(law, seed, 0)
        self.twin_market = naive_market.Market(law, seed, 0)
        offers = self.twin_market.offers
        logged = [{day: len(steps) for day, steps in offer.changes.items()} for offer in offers]
        prices = self.market.price.copy()
        self.events = draw_day(law, self.market, 0)  # which notes the changes of the day before
        self.tracking = new_tracking(prices, self.market.changes, self.market.last_change)
        self.twin = naive_market.Tracker(
            prices.tolist(), logged, [offer.last_change(0) for offer in offers]
        )
        self.day = 0
        self.integrals = np.zeros(3)
        begin_day(self.tracking, 0, self.events.click_mean)

    def play_step(self, step, chosen):
        """Play a step in both and compare the logs of crawls."""
        elapsed, changed = np.empty(len(chosen)), np.empty(len(chosen), np.bool_)
        numbers = np.array(chosen, np.int64)
        play_step(self.tracking, self.events, self.day, step, numbers, elapsed, changed)
        changes, clicks = changes_by_step(self.events)[step], clicks_by_step(self.events)[step]
        log = self.twin.play_step(self.day, step, changes, chosen, clicks)
        assert list(zip(chosen, elapsed.tolist(), changed.tolist(), strict=True)) == log
        means = self.events.click_mean.tolist()
        fresh = self.twin.fresh()
        now = np.array([math.fsum(means[o] for o in fresh), math.fsum(means), len(fresh)])
        self.integrals += now / STEPS_PER_DAY
        totals = self.tracking.totals
        assert totals[FRESH_OFFERS] == len(fresh)
        shown = totals[[FRESH_CLICKS, EXPECTED_CLICKS, FRESH_OFFERS]]
        np.testing.assert_allclose(shown, now, rtol=1e-9, atol=1e-9)

    def go_on(self):
        """Enter the next day."""
        self.day += 1
        self.events = draw_day(self.law, self.market, self.day)
        begin_day(self.tracking, self.day, self.events.click_mean)

    def assert_same(self):
        """All that is kept is what the twin's lists say."""
        tracking, twin, totals = self.tracking, self.twin, self.tracking.totals
        assert tracking.true.tolist() == list(twin.true.values())
        assert tracking.held.tolist() == list(twin.held.values())
        latest = [crawls[-1] if crawls else (0.0, -1) for crawls in twin.crawls.values()]
        assert tracking.last_crawl.tolist() == [time for time, _ in latest]
        assert tracking.changed.tolist() == [changed for _, changed in latest]
        counts = [twin.clicks, twin.hits, twin.num_crawls(), twin.num_detected(), twin.changes]
        assert totals[[CLICKS, HITS, CRAWLS, OBSERVED_CHANGES, CHANGES]].tolist() == counts
        shown = totals[[CLICK_TIME, EXPECTED_TIME, OFFER_TIME]]
        np.testing.assert_allclose(shown, self.integrals, rtol=1e-9, atol=1e-9)
        offers = range(len(twin.true))
        for day in range(self.day - 30, self.day + 1):
            changed = [twin.detected_on(offer, day) for offer in offers]
            assert tracking.observed_changes[day % RING].tolist() == changed
        last = [twin.last_detected(offer, self.day) for offer in offers]
        assert tracking.last_observed.tolist() == last


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("kind", KINDS)
def test_tracking_is_the_twins(kind, rates):
    """Also the random choices of offers."""
    pair = Pair(market_of(kind, SEED).law)
    rng, choice_rng, stream = np.random.default_rng(SEED), rng_of(3), naive.Stream(3, 0)
    for day in range(DAYS):
        wanted = rng.uniform(*RATES[rates], len(pair.twin.true))
        for step in range(STEPS_PER_DAY):
            chosen = choose_at_random(choice_rng, wanted).tolist()
            chances = [min((1.0 / STEPS_PER_DAY) * rate, 1.0) for rate in wanted.tolist()]
            assert chosen == naive_market.systematic(chances, stream.uniform())
            pair.play_step(step, chosen)
        pair.assert_same()
        if day < DAYS - 1:
            pair.go_on()
            pair.assert_same()
    assert pair.twin.num_crawls() > 0 or rates == "none" or len(pair.twin.true) == 1


def test_the_markets_put_tracking_to_the_test():
    """Prices come back to what is held, clicks miss, crawls find nothing and something."""
    pair = Pair(market_of("ordinary", SEED).law)
    for day in range(30):
        for step in range(STEPS_PER_DAY):
            pair.play_step(step, [(day + step) % len(pair.twin.true)])
        pair.go_on()
    assert 0 < pair.twin.hits < pair.twin.clicks
    assert 0 < pair.twin.num_detected() < pair.twin.num_crawls()


@pytest.mark.parametrize("rates", RATES)
def test_a_day_at_once_is_its_twelve_steps(rates):
    law = market_of("ordinary", SEED).law
    steps, at_once = Pair(law), Pair(law)
    rng, choice_rng, other = np.random.default_rng(2), rng_of(1), rng_of(1)
    for day in range(5):
        wanted = rng.uniform(*RATES[rates], len(steps.twin.true))
        for step in range(STEPS_PER_DAY):
            steps.play_step(step, choose_at_random(choice_rng, wanted).tolist())
        play_day(at_once.tracking, at_once.events, day, wanted, other)
        assert choice_rng.tolist() == other.tolist()
        for one, two in zip(steps.tracking, at_once.tracking, strict=True):
            np.testing.assert_array_equal(one, two)
        steps.go_on()
        at_once.go_on()


def test_a_price_that_comes_back_is_a_hit_without_a_crawl():
    """One offer of 3 clicks per day: its price goes at step 2 and is back at step 5."""
    clicks = np.zeros(STEPS_PER_DAY, np.int32)
    start = np.array([0, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3])
    at = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    until = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2])
    mean = np.array([3.0], np.float32)
    events = DayEvents(
        *(np.zeros(2, np.int32), np.array([90, 100], np.int32), at, until),
        *(clicks[:3], start, mean, mean, mean),
    )
    never = np.full(1, -np.inf, np.float32)
    tracking = new_tracking(np.array([100], np.int32), np.zeros((RING, 1), np.uint8), never)
    begin_day(tracking, 0, mean)
    fresh = []
    for step in range(STEPS_PER_DAY):
        play_step(tracking, events, 0, step, np.empty(0, np.int64), np.empty(0), np.empty(0, bool))
        fresh.append(tracking.totals[FRESH_OFFERS])
    assert fresh == [1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    totals = tracking.totals
    assert (totals[CLICKS], totals[HITS], totals[CHANGES], totals[CRAWLS]) == (3, 1, 2, 0)
    assert totals[OFFER_TIME] == pytest.approx(9 / 12)
    assert totals[CLICK_TIME] == pytest.approx(3.0 * 9 / 12)
    assert tracking.changed.tolist() == [-1]


# Systematic sampling


def sample(chances, offset, scale=1.0):
    room = np.full(len(chances) + 1, -1, np.int64)
    number = systematic(np.array(chances, float), scale, offset, room)
    assert (room[number:] == -1).all()
    return room[:number].tolist()


CHANCES = {
    "empty": [],
    "single": [0.375],
    "single sure": [1.0],
    "nothing": [0.0, 0.0, 0.0],
    "all sure": [1.0] * 5,
    "some sure": [0.5, 1.0, 0.0, 1.0, 0.25, 0.125, 1.0],
    "a whole sum": [0.5, 0.25, 0.25, 0.75, 0.25],
    "hardly above": [0.5, 0.5, 2.0**-9],
    "hardly below": [0.5, 0.5 - 2.0**-9, 0.0],
    "too much": [1.5, 0.25, 7.0],
    "many": [((7 * k) % 64) / 64 for k in range(40)],
}


@pytest.mark.parametrize("chances", CHANCES.values(), ids=CHANCES)
def test_every_offer_has_exactly_its_chance(chances):
    """The sample is the same for all offsets between two multiples of 2**-9, the upper one too.

    So the share of the offsets that choose an offer is a count of those multiples.
    """
    grid = 512
    assert all(chance * grid == int(chance * grid) for chance in chances)
    samples = [sample(chances, (k + 1) / grid) for k in range(grid)]
    assert samples == [sample(chances, (k + 0.5) / grid) for k in range(grid)]
    assert samples == [naive_market.systematic(chances, Fraction(k + 1, grid)) for k in range(grid)]
    capped = [min(chance, 1.0) for chance in chances]
    for offer, chance in enumerate(capped):
        assert sum(offer in chosen for chosen in samples) == chance * grid
    total = sum(capped)
    assert {len(chosen) for chosen in samples} == {math.floor(total), math.ceil(total)}
    assert all(chosen == sorted(set(chosen)) for chosen in samples)


def test_samples_are_the_twins():
    rng = np.random.default_rng(1)
    for _ in range(300):
        size = int(rng.integers(0, 30))
        chances = np.round(rng.uniform(0.0, rng.uniform(0.1, 1.6), size) / EXACT) * EXACT
        offset = 1.0 - rng.random()
        assert sample(chances, offset) == naive_market.systematic(chances.tolist(), offset)


def test_a_scale_is_the_unit_of_the_chances():
    rates = [3.0, 0.0, 40.0, 6.5, 2.0]
    for offset in (0.1, 0.2, 0.6, 1.0):
        scaled = sample([rate / 16 for rate in rates], offset)
        assert sample(rates, offset, scale=1 / 16) == scaled


def test_sure_offers_are_chosen_and_impossible_ones_not_however_sums_are_rounded():
    rng = np.random.default_rng(2)
    for _ in range(200):
        chances = rng.choice([0.0, 0.1, 1 / 3, 0.7, 1.0], 60)
        total = math.fsum(chances)
        for offset in (2.0**-53, 0.1, 1.0 - rng.random(), 1.0 - 2.0**-53, 1.0):
            chosen = set(sample(chances, offset))
            assert set(np.flatnonzero(chances == 1.0)) <= chosen <= set(np.flatnonzero(chances))
            assert math.floor(total - 1e-9) <= len(chosen) <= math.ceil(total + 1e-9)


def test_random_choices_have_the_chances():
    """At 3 per day, of 12 steps; 4 standard deviations of the numbers of 6000 samples."""
    rates = np.array([3.0, 0.6, 12.0, 0.0, 8.0, 30.0])
    choice_rng, counts, samples = rng_of(8), np.zeros(6), 6000
    for _ in range(samples):
        counts[choose_at_random(choice_rng, rates)] += 1
    chances = np.minimum(rates / 12, 1.0)
    error = np.sqrt(samples * chances * (1.0 - chances))
    assert (np.abs(counts - samples * chances) <= 4.0 * error).all()
