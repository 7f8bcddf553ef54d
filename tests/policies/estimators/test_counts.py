"""Estimates from counts: means by simulation and exact expectations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from policies.estimators import (
    complete_observation_rates,
    improved_rate,
    last_modified_rate,
    naive_rate,
)

MEANS = {1.0: (0.63, 1.003, 1.009), 2.0: (0.86, 1.94, 2.01)}
"""Means of the naive, improved and last-modified estimates of 10 visits at interval 1, rounded."""


@pytest.mark.parametrize("rate", MEANS)
def test_means(rate):
    """By simulation of 400,000 histories, and exactly where only counts matter.

    Half of the last digit, and four standard errors of the simulation, are let pass.
    """
    rng = np.random.default_rng([6, int(rate)])
    n, trials = 10, 400_000
    age = rng.exponential(1.0 / rate, (trials, n))
    changed = age < 1.0
    result = changed.sum(axis=1)
    time = np.where(changed, age, 1.0).sum(axis=1)
    estimates = (
        naive_rate(result, n),
        improved_rate(result, n, n),
        last_modified_rate(result, n, time),
    )
    means = [estimate.mean() for estimate in estimates]
    errors = [4.0 * estimate.std() / math.sqrt(trials) for estimate in estimates]
    for mean, error, rounded in zip(means, errors, MEANS[rate], strict=True):
        digits = len(str(rounded).partition(".")[2])
        assert mean == pytest.approx(rounded, abs=0.5 * 10.0**-digits + error)
    counts = np.arange(n + 1)
    weights = binom.pmf(counts, n, -math.expm1(-rate))
    for k, values in enumerate((naive_rate(counts, n), improved_rate(counts, n, n))):
        assert means[k] == pytest.approx(weights @ values, abs=errors[k])


def test_last_modified_has_no_bias_of_first_order():
    """At 50 visits, within .1%; X / T', the maximum of the likelihood, is 1 / n above."""
    rng = np.random.default_rng(7)
    age = rng.exponential(1.0, (100_000, 50))
    result, time = (age < 1.0).sum(axis=1), np.minimum(age, 1.0).sum(axis=1)
    assert last_modified_rate(result, 50, time).mean() == pytest.approx(1.0, abs=0.003)
    assert naive_rate(result, time).mean() > 1.012


def test_counts_by_hand():
    np.testing.assert_allclose(naive_rate([0, 3, 3], [2.0, 2.0, 0.0]), [0.0, 1.5, np.nan])
    improved = improved_rate([0, 3, 4, 0], [4, 4, 4, 0], [2.0, 2.0, 2.0, 0.0])
    expected = [0.0, -math.log(1.5 / 4.5) / 0.5, -math.log(0.5 / 4.5) / 0.5, np.nan]
    np.testing.assert_allclose(improved, expected)
    modified = last_modified_rate([0, 2, 4, 1, 0], [4, 4, 4, 1, 0], [2.0, 2.0, 2.0, 2.0, 0.0])
    expected = [0.0, (1.0 + 2.0 / (4.0 * math.log(2.0))) / 2.0, 1.5, 0.0, np.nan]
    np.testing.assert_allclose(modified, expected)
    complete = complete_observation_rates([0, 3], [4.0, 4.0])
    np.testing.assert_allclose(complete, [0.5 / 4.5, 3.5 / 4.5])
    assert np.isnan(complete_observation_rates(3, 0.0, extra_time=0.0))
    for result in (naive_rate(0, 1.0), improved_rate(0, 3, 1.0), last_modified_rate(0, 3, 1.0)):
        assert not np.signbit(result)
