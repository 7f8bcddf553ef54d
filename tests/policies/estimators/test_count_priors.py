"""Rates and shares of pages under a distribution that they share, from counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crawl_envs.types import FloatArray, IntArray
from policies.estimators.count_priors import (
    LOG_BOUNDS,
    RatePrior,
    SharePrior,
    fit_rate_prior,
    fit_share_prior,
)


def gamma_likelihood(shape: float, mean: float, counts: IntArray, days: FloatArray) -> float:
    """The same likelihood by scipy: a Gamma mixture of Poissons is negative binomial."""
    inverse = shape / mean
    return float(stats.nbinom.logpmf(counts, shape, inverse / (inverse + days)).sum())


def test_the_gamma_prior_is_the_most_likely_of_its_mean() -> None:
    rng = np.random.default_rng(7)
    days = rng.uniform(5.0, 50.0, 300)
    counts = rng.poisson(rng.gamma(0.7, 0.2, 300) * days)
    prior = fit_rate_prior(counts, days)
    assert prior.mean == pytest.approx(counts.sum() / days.sum())
    best = gamma_likelihood(prior.shape, prior.mean, counts, days)
    for shape in np.exp(np.linspace(*LOG_BOUNDS, 200)):
        assert gamma_likelihood(shape, prior.mean, counts, days) <= best + 1e-8


def test_the_beta_prior_is_the_most_likely_of_its_mean() -> None:
    rng = np.random.default_rng(8)
    total = rng.integers(0, 12, 300)
    yes = rng.binomial(total, rng.beta(2.0, 1.0, 300))
    prior = fit_share_prior(yes, total)
    assert prior.mean == pytest.approx(yes.sum() / total.sum())

    def likelihood(weight: float) -> float:
        a, b = weight * prior.mean, weight * (1.0 - prior.mean)
        return float(stats.betabinom.logpmf(yes, total, a, b).sum())

    best = likelihood(prior.yes + prior.no)
    for weight in np.exp(np.linspace(*LOG_BOUNDS, 200)):
        assert likelihood(weight) <= best + 1e-8


def test_equal_pages_share_one_rate() -> None:
    counts, days = np.full(50, 3), np.full(50, 10.0)
    prior = fit_rate_prior(counts, days)
    assert prior.shape > 1000.0
    assert (prior.shape + 30) / (prior.days + 10.0) == pytest.approx(0.3, rel=0.02)


def test_limits_without_any_event() -> None:
    days = np.array([10.0, 30.0, 0.0])
    prior = fit_rate_prior(np.zeros(3, np.int64), days)
    assert prior.mean == pytest.approx(0.5 / 40.0)
    assert prior.days == pytest.approx(20.0)
    assert fit_share_prior(np.zeros(3, np.int64), np.zeros(3, np.int64)) == SharePrior(0.5, 0.5)
    assert fit_share_prior(np.array([4]), np.array([4])).mean == pytest.approx(1 - 0.5 / 4)
    assert fit_share_prior(np.array([0]), np.array([4])).mean == pytest.approx(0.5 / 4)
    assert RatePrior(2.0, 4.0).mean == 0.5
    with pytest.raises(ValueError, match="nothing to fit"):
        fit_rate_prior(np.zeros(3, np.int64), np.zeros(3))


def test_a_burst_on_a_page_of_minutes_does_not_spoil_the_pool() -> None:
    days = np.append(np.full(50, 500.0), 0.002)
    counts = np.append(np.full(50, 5), 20)
    assert fit_rate_prior(counts, days).mean < 0.012


def test_the_mean_of_a_group_is_shrunk_to_the_mean_of_all_pages() -> None:
    rates = RatePrior(2.0, 20.0)  # mean 0.1
    assert rates.group_mean(np.array([10]), np.array([20.0])) == pytest.approx(14.0 / 60.0)
    few = rates.group_mean(np.array([1, 0]), np.array([0.1, 0.1]))
    assert few == pytest.approx((0.1 * 20.1 + 1.0) / 20.3)
    many = rates.group_mean(np.full(1000, 30), np.full(1000, 60.0))
    assert many == pytest.approx(30_008.0 / 60_080.0)
    shares = SharePrior(3.0, 1.0)
    assert shares.group_mean(np.array([0, 2]), np.array([4, 4])) == pytest.approx(8.0 / 16.0)
    assert shares.group_mean(np.array([0]), np.array([0])) == 0.75


def test_shrunk_means_of_small_groups_are_closer_to_the_truth() -> None:
    """Groups whose means differ as much as pages; the squared error is least with the weight."""
    rng = np.random.default_rng(8)
    prior, days = RatePrior(2.0, 20.0), np.full(3, 30.0)
    errors = []
    for _ in range(4000):
        mean = rng.gamma(2.0, 0.05)
        counts = rng.poisson(rng.gamma(2.0, mean / 2.0, 3) * days)
        for estimate in (prior.group_mean(counts, days), counts.sum() / days.sum(), prior.mean):
            errors.append((estimate - mean) ** 2)
    shrunk, plain, pooled = np.reshape(errors, (-1, 3)).mean(0)
    assert shrunk < 0.8 * min(plain, pooled)
