"""Freshness from audits: the band against plain arithmetic, simulations, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from policies.estimators import measure_freshness
from policies.estimators.measured_freshness import DRAWS, GRID, WEIGHTS


def wealth(d, total, sign, draws):
    """Return the mixed supermartingale, with a sum of the means of d, one audit after the other."""
    mixed = 0.0
    for rate, weight in zip(GRID, WEIGHTS, strict=True):
        log, earlier = -sign * rate * total, 0.0
        for count, each in enumerate(d, start=1):
            mean = min(max(earlier / count, -0.5), 0.5)
            log += math.log(1.0 + sign * rate * (each - mean)) + sign * rate * mean
            log -= draws * rate**2 / (8.0 * DRAWS)
            earlier += each
        mixed += weight * math.exp(log)
    return mixed


def ends(low_d, high_d, draws):
    """Return where the supermartingales of both signs are 40."""
    bounds = [
        brentq(lambda total: math.log(wealth(low_d, total, 1.0, draws) / 40.0), -300.0, sum(low_d)),
        brentq(
            lambda total: math.log(wealth(high_d, total, -1.0, draws) / 40.0), sum(high_d), 300.0
        ),
    ]
    return np.array(bounds) / len(low_d)


def drawn(seed, count=60):
    rng = np.random.default_rng(seed)
    believed = rng.beta(0.5, 2.0, count)
    return rng.random(count) < believed, believed, rng.beta(0.5, 2.0, (count, DRAWS)).mean(axis=1)


def test_the_band_ends_where_the_supermartingales_are_40():
    stale, believed, mean = drawn(1)
    measured, d = measure_freshness(stale, believed, mean), (stale - believed).tolist()
    expected = 1.0 - mean.mean() - ends(d, d, 1.0)[::-1]
    assert [measured.low, measured.high] == pytest.approx(expected)
    assert [measured.gap_low, measured.gap_high] == pytest.approx(ends(d, d, 0.0))
    assert measured.estimate == pytest.approx(1.0 - np.mean(mean + stale - believed))
    assert measured.believed == pytest.approx(1.0 - mean.mean())
    assert measured.belief_gap == pytest.approx(measured.believed - measured.estimate)
    plain = np.diff(ends(*[stale.astype(float).tolist()] * 2, 0.0))[0]
    assert measured.gain == pytest.approx(plain / (measured.high - measured.low))


def test_weights_are_of_sum_1_and_rates_leave_all_factors_positive():
    assert WEIGHTS.sum() == pytest.approx(1.0)
    assert GRID.max() * 1.5 < 1.0


def test_a_missed_audit_counts_for_the_worst_at_both_ends():
    stale, believed, mean = drawn(2)
    missed = np.arange(60) % 10 == 3
    measured = measure_freshness(stale, believed, mean, missed)
    least, largest = (np.where(missed, end, stale) - believed for end in (0.0, 1.0))
    expected = 1.0 - mean.mean() - ends(least.tolist(), largest.tolist(), 1.0)[::-1]
    assert [measured.low, measured.high] == pytest.approx(np.minimum(expected, 1.0).tolist())
    assert measured.missed == 6
    other = measure_freshness(stale ^ missed, believed, mean, missed)
    assert np.array_equal(measured[:-1], other[:-1])  # what a missed one says is not used


def test_an_unsure_answer_counts_for_the_estimate_but_not_for_the_band():
    stale, believed, mean = drawn(3)
    unsure = np.arange(60) % 7 == 2
    measured = measure_freshness(stale, believed, mean, False, unsure)
    as_missed = measure_freshness(stale, believed, mean, unsure)
    assert (measured.low, measured.high) == (as_missed.low, as_missed.high)
    assert measured.estimate == pytest.approx(1.0 - np.mean(mean + stale - believed))
    assert measured.missed == 0
    assert np.array_equal(measured.calibration, as_missed.calibration)


def test_a_band_without_a_width_has_no_gain_and_gaps_are_at_most_1():
    wrong = measure_freshness(np.zeros(500), np.ones(500), np.zeros(500))
    assert (wrong.low, wrong.high) == (1.0, 1.0)
    assert math.isnan(wrong.gain)
    short = measure_freshness([1.0], [0.1], [0.1])
    assert (short.gap_low, short.gap_high) == (-1.0, 1.0)


def test_beliefs_that_are_right_make_the_band_narrow_and_wrong_ones_are_told():
    rng = np.random.default_rng(3)
    truth = rng.choice([0.01, 0.9], p=[0.9, 0.1], size=1000)
    stale, mean = rng.random(1000) < truth, rng.choice(truth, (1000, DRAWS)).mean(axis=1)
    right, wrong = (
        measure_freshness(stale, b, m) for b, m in ((truth, mean), (truth / 3, mean / 3))
    )
    assert right.gain > 1.5
    assert not right.is_off
    assert wrong.is_off
    assert wrong.belief_gap == pytest.approx(np.mean(stale - truth / 3))
    assert right.low <= 1.0 - truth.mean() <= right.high
    assert wrong.low <= 1.0 - truth.mean() <= wrong.high
    rows = right.calibration
    assert rows[:, 0] == pytest.approx([0.01, 0.9])
    assert rows[:, 1] == pytest.approx([stale[truth < 0.5].mean(), stale[truth > 0.5].mean()])
    assert rows[:, 2].sum() == 1000


def test_the_band_has_the_running_mean_at_every_audit():
    """P jumps after the audits, and the worst of all audits counts."""
    misses = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = np.repeat(rng.random(4) * 0.4, 50)
        stale, believed = rng.random(200) < truth, np.full(200, 0.3)
        means = np.cumsum(truth) / np.arange(1, 201)
        bands = [measure_freshness(stale[:n], believed[:n], believed[:n]) for n in (5, 20, 80, 200)]
        misses += any(not b.low <= 1.0 - means[b.audits - 1] <= b.high for b in bands)
    assert misses <= 10


def test_no_audit_and_no_answer_say_nothing():
    nothing = measure_freshness([], [], [])
    assert (nothing.low, nothing.high, nothing.audits, nothing.is_off) == (0.0, 1.0, 0, False)
    assert math.isnan(nothing.estimate)
    missed = measure_freshness([0.0], [0.2], [0.3], [True])
    assert math.isnan(missed.estimate)
    assert (missed.low, missed.high, missed.missed) == (0.0, 1.0, 1)


@pytest.mark.parametrize("name", ["stale", "believed", "mean_belief", "missed", "unsure"])
def test_numbers_that_are_no_probabilities_are_refused(name):
    arrays = {"stale": [0.0], "believed": [0.5], "mean_belief": [0.5], name: [math.nan]}
    with pytest.raises(ValueError, match=f"{name} must lie in"):
        measure_freshness(**arrays)
