from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from scripts.reporting import intervals
from scripts.reporting.intervals import Interval

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from rliable import metrics

OFFSETS = np.array([0.0, 100.0, -30.0])


def scores(seeds: int, spread: float = 1.0, seed: int = 0) -> np.ndarray:
    return OFFSETS + spread * np.random.default_rng(seed).standard_normal((seeds, 3))


def test_the_mean_has_the_interval_of_its_standard_error_within_settings() -> None:
    given = scores(80)
    interval = intervals.mean(given)
    # The spread between settings, which is 30 times as large, must not count.
    half = 1.96 * np.sqrt((given.var(axis=0) / 80).sum()) / 3
    assert interval.estimate == pytest.approx(given.mean(), abs=1e-12)
    assert interval.high - interval.estimate == pytest.approx(half, rel=0.1)
    assert interval.estimate - interval.low == pytest.approx(half, rel=0.1)


def test_a_single_setting_is_one_sample() -> None:
    given = np.random.default_rng(3).exponential(size=(200, 1))
    interval = intervals.mean(given)
    half = 1.96 * given.std() / np.sqrt(200)
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.1)


@pytest.mark.parametrize("seeds", [2, 5, 30])
def test_the_interquartile_mean_is_that_of_the_library(seeds: int) -> None:
    given = scores(seeds)
    interval = intervals.interquartile_mean(given)
    assert interval.estimate == pytest.approx(metrics.aggregate_iqm(given), rel=1e-12)
    assert interval.low <= interval.estimate <= interval.high
    assert interval.low < interval.high


def test_probability_of_improvement_counts_all_pairs_of_seeds_and_half_the_ties() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 5, (7, 2)).astype(float), rng.integers(0, 4, (9, 2)) * 1.0
    counted = [
        np.mean([(x > y) + 0.5 * (x == y) for x in first[:, k] for y in second[:, k]])
        for k in (0, 1)
    ]
    interval = intervals.probability_of_improvement(first, second)
    assert interval.estimate == pytest.approx(np.mean(counted), abs=1e-12)
    library = metrics.probability_of_improvement(first, second)
    assert interval.estimate == pytest.approx(library, abs=1e-12)
    assert 0.0 < interval.low < interval.estimate < interval.high < 1.0


def test_paired_seeds_tell_more_than_unpaired_ones() -> None:
    base = np.random.default_rng(6).standard_normal((30, 2))
    assert intervals.probability_of_improvement(base + 0.01, base).low < 0.5
    assert intervals.share_improved((base + 0.01) - base) == Interval(1.0, 1.0, 1.0)
    assert intervals.share_improved(np.array([[1.0, 0.0], [-1.0, 0.0]])).estimate == 0.5


@pytest.mark.parametrize(
    "estimate", [intervals.mean, intervals.interquartile_mean, intervals.share_improved]
)
def test_the_same_scores_give_the_same_interval(
    estimate: Callable[[np.ndarray], Interval],
) -> None:
    given = scores(10, spread=60.0)
    first = estimate(given)
    _, before, position, *_ = np.random.get_state()  # noqa: NPY002
    assert estimate(given) == first
    _, after, then, *_ = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(after, before)
    assert then == position


@pytest.mark.parametrize("given", [[1.0, 2.0], [[np.nan]], [[]]])
def test_scores_that_are_none(given: list[object]) -> None:
    with pytest.raises(ValueError, match="scores must be finite numbers"):
        intervals.mean(np.array(given))


def test_scores_of_other_settings() -> None:
    with pytest.raises(ValueError, match="numbers of settings must be equal"):
        intervals.probability_of_improvement(np.zeros((3, 2)), np.zeros((3, 1)))


def test_a_profile_is_the_share_of_scores_above_each_level_with_its_binomial_spread() -> None:
    given = np.random.default_rng(7).standard_normal((200, 3))
    levels = np.array([-9.0, -1.0, 0.0, 0.5, 9.0])
    share, low, high = intervals.profile(given, levels)
    counted = np.array([np.mean(given.ravel() > level) for level in levels])
    np.testing.assert_allclose(share, counted, atol=1e-12)
    by_setting = (given[..., None] > levels).mean(axis=0)
    half = 1.96 * np.sqrt((by_setting * (1.0 - by_setting) / 200).sum(axis=0)) / 3
    np.testing.assert_allclose((high - low) / 2, half, rtol=0.12, atol=1e-12)
    assert np.all((low <= share) & (share <= high))
