"""Intervals of medians and the signed-rank test, against counting by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, rankdata

from scripts.study.intervals import median_of, signed_rank


@pytest.mark.parametrize("count", [6, 7, 31, 100, 3100])
def test_the_interval_is_the_narrowest_that_covers_enough(count: int) -> None:
    values = np.random.default_rng(count).permutation(np.arange(count)).astype(float)
    median = median_of(values)
    rank = int(median.low) + 1  # values are 0, 1, ...: the r-th smallest is r - 1
    assert median.estimate == (count - 1) / 2
    assert median.high == count - rank
    assert 1.0 - 2.0 * binom.cdf(rank - 1, count, 0.5) >= 0.95
    assert 1.0 - 2.0 * binom.cdf(rank, count, 0.5) < 0.95


def test_the_interval_of_a_hundred_is_near_the_normal_approximation() -> None:
    median = median_of(np.arange(1.0, 101.0))
    assert (median.low, median.high) == (40.0, 61.0)
    assert median.low == pytest.approx(50.0 - 1.96 * 5.0, abs=1.0)


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    runs, count = 4000, 25
    medians = [median_of(rng.exponential(size=count)) for _ in range(runs)]
    covered = np.mean([item.low <= np.log(2.0) <= item.high for item in medians])
    exact = 1.0 - 2.0 * binom.cdf(7, count, 0.5)
    assert exact >= 0.95
    assert covered == pytest.approx(exact, abs=4.0 * np.sqrt(exact * (1.0 - exact) / runs))


def test_few_values_have_no_interval_and_none_no_median() -> None:
    median = median_of([3.0, 1.0, 2.0, np.nan])
    assert median.estimate == 2.0
    assert np.isnan([median.low, median.high]).all()
    assert np.isnan(median_of([])).all()


def test_signed_ranks_are_counted_over_all_signs() -> None:
    first = np.array([5.0, 7.0, 3.0, 9.0, 4.0, 2.0, 8.0])
    apart = np.array([0.5, 1.5, -0.25, 2.0, 3.0, -1.0, 0.75])
    ranks = rankdata(np.abs(apart))
    seen = ranks[apart > 0.0].sum()
    sums = np.array([ranks[np.array(signs)].sum() for signs in product([True, False], repeat=7)])
    middle = ranks.sum() / 2.0
    exact = np.mean(np.abs(sums - middle) >= abs(seen - middle))
    assert signed_rank(first, first - apart) == pytest.approx(exact, rel=1e-12)


def test_equal_and_missing_pairs_are_left_out() -> None:
    first = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, np.nan, 7.0])
    second = np.array([0.0, 1.5, 2.9, 3.8, 4.7, 5.6, 1.0, 7.0])
    assert signed_rank(first, second) == pytest.approx(2.0 / 2.0**6)
    assert signed_rank([1.0, 2.0], [1.0, 2.0]) == 1.0
