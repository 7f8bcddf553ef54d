"""Systematic sampling: every offer with exactly its chance, in a number fixed but for rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from crawl_envs.worlds.offers.law import STEPS_PER_DAY
from crawl_envs.worlds.offers.sampling import sample_offers, systematic
from tests.naive import market as naive_market
from tests.naive import pages as naive


def sample(chances, offset, factor=1.0):
    """The offers chosen with chances per step, given as rates per day."""
    room = np.full(len(chances) + 1, -1, np.int64)
    rates = STEPS_PER_DAY * np.array(chances, float)
    number, total = systematic(rates, factor, offset, room)
    assert (room[number:] == -1).all()
    capped = [factor * min(chance, 1.0) for chance in chances]
    assert total == pytest.approx(math.fsum(capped), abs=1e-12)
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


def test_a_factor_scales_rates_after_they_are_capped():
    chances = [0.25, 0.0, 2.0, 0.75, 1.0]
    for offset in (0.1, 0.2, 0.6, 1.0):
        scaled = sample([0.5 * min(chance, 1.0) for chance in chances], offset)
        assert sample(chances, offset, factor=0.5) == scaled


def test_sure_offers_are_chosen_and_impossible_ones_not_however_sums_are_rounded():
    rng = np.random.default_rng(2)
    for _ in range(200):
        chances = rng.choice([0.0, 0.1, 1 / 3, 0.7, 1.0], 60)
        total = math.fsum(chances)
        for offset in (2.0**-53, 0.1, 1.0 - rng.random(), 1.0 - 2.0**-53, 1.0):
            chosen = set(sample(chances, offset))
            assert set(np.flatnonzero(chances == 1.0)) <= chosen <= set(np.flatnonzero(chances))
            assert math.floor(total - 1e-9) <= len(chosen) <= math.ceil(total + 1e-9)


def test_samples_have_their_chances_within_the_budget():
    """At 3 per day, of 12 steps, and at half of it; 4 standard deviations of 6000 samples."""
    rates, number = np.array([[3.0, 0.6, 12.0, 0.0, 8.0, 30.0]] * 3), 6000
    budgets, idle = np.array([35.6, 17.8, 40.0]), np.array([False, False, True])
    rng = np.array([naive.Stream(8, lane).state for lane in range(3)], np.uint64)
    chosen, counts, seen = np.empty((3, 6), np.int64), np.empty(3, np.int64), np.zeros((3, 6))
    for _ in range(number):
        made = sample_offers(rates, budgets, False, rng, idle, chosen, counts)
        assert made == (-1, 0.0)
        for lane in range(3):
            seen[lane, chosen[lane, : counts[lane]]] += 1
    chances = np.minimum(rates / 12, 1.0) * [[1.0], [0.5], [0.0]]
    error = np.sqrt(number * chances * (1.0 - chances))
    assert (np.abs(seen - number * chances) <= 4.0 * error + 1e-9).all()
    assert rng[2].tolist() == naive.Stream(8, 2).state


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_rates_that_are_none_stop_at_their_lane(bad):
    rates = np.array([[1.0, -0.0], [2.0, bad]])
    rng, room = np.ones((2, 4), np.uint64), (np.zeros((2, 2), np.int64), np.zeros(2, np.int64))
    budgets, idle = np.full(2, 30.0), np.zeros(2, np.bool_)
    lane, spent = sample_offers(rates, budgets, False, rng, idle, *room)
    assert lane == 1
    assert np.isnan(spent)
    rates[1, 1] = 29.0
    lane, spent = sample_offers(rates, np.array([30.0, 13.0]), True, rng, idle, *room)
    assert (lane, spent) == (1, pytest.approx(14.0))
