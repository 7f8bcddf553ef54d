"""Instances of Poisson changes whose revealed delays or signal qualities are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crawl_envs import Instance
from crawl_envs.instances.misspecified import cold, late
from crawl_envs.instances.misspecified.corrupted import corrupted_quality
from crawl_envs.instances.misspecified.instance import Misspecified
from crawl_envs.instances.misspecified.occurrences import travel_times
from crawl_envs.types.delay import Delay
from tests.crawl_envs.instances.misspecified_worlds import (
    BOTH,
    CHANGE,
    SIGNAL,
    assert_law,
    assert_means,
    counts,
    drawn,
)

# late


@pytest.mark.parametrize("mean", [0.05, 0.5])
def test_signals_travel_exponential_times(mean):
    pages = Instance(0.0, np.full(20_000, 0.02), 1.0, bandwidth=1.0)
    world = Misspecified(pages, late.Late(mean))
    tape = world.draw_tape(np.random.default_rng(0), 30.0)
    kind, page = tape.code & 63, tape.code // 64
    changes, signals = (np.bincount(page[kind == k], minlength=20_000) for k in (CHANGE, SIGNAL))
    assert BOTH not in kind
    sent, arrived = np.zeros(20_000), np.zeros(20_000)
    sent[page[kind == CHANGE]], arrived[page[kind == SIGNAL]] = (
        tape.time[kind == k] for k in (CHANGE, SIGNAL)
    )
    once = (changes == 1) & (sent < 20.0)
    assert once.sum() > 4000
    assert np.array_equal(signals[once], changes[once])
    assert_law((arrived - sent)[once] / mean, "expon")


def test_false_signals_travel_too():
    pages = Instance(0.0, 0.0, 0.0, np.full(4000, 2.0), bandwidth=1.0)
    seen = counts(Misspecified(pages, late.Late(1.5)), 4.0, 1, (SIGNAL,))[0]
    # those that are sent at s arrive by 4 with the chance 1 - exp(-(4 - s) / 1.5)
    assert_means(seen[:, None], 2.0 * (4.0 - 1.5 * (1.0 - math.exp(-4.0 / 1.5))))


def test_mean_delays_are_spread_widely_and_hidden():
    lanes = [drawn("late", 2, seed) for seed in range(500)]
    means = np.array([lane.law.delay_mean for lane in lanes])
    assert_law(np.log(means / 0.05) / math.log(40.0), "uniform")
    assert all(lane.delay == lane.problem().delay == Delay() for lane in lanes)
    with pytest.raises(ValueError, match="delay must be None"):
        late.late(drawn("delayed"), np.random.default_rng(0))
    with pytest.raises(ValueError, match="delay_mean must be finite and > 0"):
        late.Late(0.0)


@pytest.mark.parametrize(
    ("delay", "values", "chances"),
    [
        (Delay("none"), [0.0], [1.0]),
        (Delay("constant", 0.3), [0.3], [1.0]),
        (Delay("poisson", 0.02, 0.01), 0.01 * np.arange(8), stats.poisson.pmf(np.arange(8), 2.0)),
    ],
)
def test_revealed_delays_are_drawn_as_revealed(delay, values, chances):
    result = travel_times(np.random.default_rng(0), delay, 5000)
    for value, chance in zip(values, chances, strict=True):
        share = np.isclose(result, value, rtol=1e-12, atol=0.0).mean()
        assert abs(share - chance) <= 4.0 * math.sqrt(chance * (1.0 - chance) / 5000)


# corrupted


def test_revealed_signal_quality_is_half_noise():
    truth, revealed = drawn("noisy", 2000), drawn("corrupted", 2000)
    whole = drawn("corrupted", 2000, corruption=1.0)
    for name in ("precision", "recall"):
        right, wrong, noise = (getattr(each, name) for each in (truth, revealed, whole))
        np.testing.assert_allclose(wrong, 0.5 * right + 0.5 * noise, rtol=1e-9)
        assert_law(noise, "uniform")
    assert np.array_equal(revealed.change_rate, truth.change_rate)


def test_signals_follow_the_true_quality():
    truth, revealed = drawn("noisy"), drawn("corrupted")
    for kind, rate in (
        (BOTH, lambda each: each.recall * each.change_rate),
        (SIGNAL, lambda each: each.false_signal_rate),
    ):
        seen = counts(revealed, 10.0, 1000, (kind,)).sum(0)
        error = np.sqrt(np.maximum(rate(truth) * 10_000.0, 1.0))
        assert np.abs((seen - rate(truth) * 10_000.0) / error).max() < 4.0
        assert np.abs((seen - rate(revealed) * 10_000.0) / error).max() > 40.0


def test_no_corruption_tells_the_truth():
    truth, revealed = drawn("noisy"), drawn("corrupted", corruption=0.0)
    np.testing.assert_allclose(revealed.recall, truth.recall, rtol=1e-12)
    np.testing.assert_allclose(revealed.false_signal_rate, truth.false_signal_rate, rtol=1e-6)


def test_the_noise_is_the_same_for_every_corruption():
    quarter, half = (drawn("corrupted", corruption=share) for share in (0.25, 0.5))
    truth = drawn("noisy")
    np.testing.assert_allclose(half.recall - truth.recall, 2.0 * (quarter.recall - truth.recall))


def test_pages_without_signals_and_no_share_stay():
    recall, false = corrupted_quality(
        np.array([1.0, 1.0]), np.zeros(2), np.array([0.0, 0.3]), 0.0, np.full((2, 2), 0.5)
    )
    assert recall.tolist() == [0.0, 0.0]
    assert false.tolist() == [0.0, 0.3]


# cold


def test_cold_rates_are_log_normal_over_three_decades():
    rates = drawn("cold", 20_000).change_rate
    spread = math.log(1000.0) / (2.0 * stats.norm.ppf(0.975))
    assert pytest.approx(spread, rel=1e-12) == cold.SPREAD
    middle = math.log(0.5) - 0.5 * spread**2
    assert_law((np.log(rates) - middle) / spread, "norm")
    assert_means(rates[:, None], 0.5)
    low, high = np.quantile(rates, [0.025, 0.975])
    assert 700.0 < high / low < 1400.0
