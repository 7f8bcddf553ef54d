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
