"""Estimates of pages under a distribution that they share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from policies import estimators
from policies.estimators import GammaPrior
from policies.estimators.gamma_prior import EXTRA_EVENTS, PSEUDO_PAGES
from tests.policies.crawl_histories import crawled
from tests.policies.estimators.prior_fits import fit_with_prior


def population(rng, m, k, shape=(0.8, 1.5), mean=(0.4, 0.9)):
    """Pages drawn from Gamma distributions, each crawled k times."""
    alpha = rng.gamma(shape[0], mean[0] / shape[0], m)
    b = rng.gamma(shape[1], mean[1] / shape[1], m)
    gamma = rng.uniform(0.3, 1.5, m)
    page, elapsed, signals, changed = crawled(
        rng, alpha, b[None], gamma[None], rng.exponential(1.0, (m, k))
    )
    return (alpha, b, gamma), page, elapsed, signals[0], changed


def squared_error(estimate, truth):
    """Mean squared error of precisions, an undetermined one counted as 1/2."""
    return np.mean((np.where(np.isnan(estimate), 0.5, estimate) - truth) ** 2)


@pytest.mark.parametrize(("crawls", "most"), [(4, 0.6), (12, 0.6), (200, 1.05)])
def test_neighbours_help_short_histories_and_do_not_hurt_long_ones(crawls, most):
    rng = np.random.default_rng([1, crawls])
    (alpha, b, _), page, elapsed, signals, changed = population(rng, 1500, crawls)
    mle = estimators.signal_quality_mle(elapsed, signals, changed, page=page)
    pooled = estimators.empirical_bayes(elapsed, signals, changed, page=page)
    assert pooled.converged
    assert np.isfinite(pooled.fit.evidence).all()
    truth = -np.expm1(-b)
    own, shared = (squared_error(f.quality().precision, truth) for f in (mle, pooled.fit))
    assert shared < most * own
    # the rate of unsignalled changes: where the MLE is infinite its error is left out
    finite = np.isfinite(mle.unsignalled_rate)
    gaps = [np.mean((f.unsignalled_rate - alpha)[finite] ** 2) for f in (mle, pooled.fit)]
    assert gaps[1] < most * gaps[0]


def test_distributions_are_recovered_from_long_histories():
    rng = np.random.default_rng(2)
    (alpha, b, _), page, elapsed, signals, changed = population(rng, 1500, 150)
    result = estimators.empirical_bayes(elapsed, signals, changed, page=page)
    np.testing.assert_allclose(result.groups.mean[0], [alpha.mean(), b.mean()], rtol=0.03)
    np.testing.assert_allclose(result.groups.shape[0], [0.8, 1.5], rtol=0.15)


def test_marginal_likelihood_is_near_its_maximum():
    """Change rates alone, integrated numerically: the fit is within a nat in 200 of the best."""
    rng = np.random.default_rng(3)
    m, k = 150, 8
    rate = rng.gamma(1.2, 0.5, m)
    intervals = rng.exponential(1.0, (m, k))
    changed = rng.random((m, k)) < -np.expm1(-rate[:, None] * intervals)
    result = estimators.empirical_bayes(
        intervals.ravel(), None, changed.ravel(), page=np.repeat(np.arange(m), k)
    )
    first = (changed.sum() + EXTRA_EVENTS) / (intervals * np.where(changed, 0.5, 1.0)).sum()
    logs = np.linspace(-12.0, 5.0, 1500)
    grid = np.exp(logs)
    likelihood = np.ones((m, len(grid)))
    for j in range(k):
        missed = np.exp(-grid * intervals[:, j, None])
        likelihood *= np.where(changed[:, j, None], 1.0 - missed, missed)

    def loss(parameters):
        shape, mean = np.exp(parameters)
        density = np.exp(
            shape * logs + shape * np.log(shape / mean) - shape / mean * grid - gammaln(shape)
        )
        total = -np.log((likelihood * density).sum(axis=1) * (logs[1] - logs[0])).sum()
        # the imagined page: what is expected of its log density
        expected = shape * (math.log(shape / mean) + math.log(first) + digamma(1))
        return total - PSEUDO_PAGES * (expected - shape / mean * first - gammaln(shape))

    best = minimize(loss, [0.0, -0.5], method="Nelder-Mead")
    mine = loss(np.log([result.groups.shape[0, 0], result.groups.mean[0, 0]]))
    assert best.fun <= mine < best.fun + 0.5
    assert result.groups.mean[0, 0] == pytest.approx(math.exp(best.x[1]), rel=0.05)


def test_posterior_of_a_page_by_integration():
    """The estimate under a prior, the mode in ln theta, is within .1 errors of the mean."""
    intervals, changed = np.array([0.5, 1.0, 2.0, 0.7]), np.array([True, False, True, True])
    prior = GammaPrior(1.5, 2.0)
    result = fit_with_prior(intervals, None, changed, prior)

    def density(rate):
        missed = np.exp(-rate * intervals)
        return math.exp(-2.0 * rate) * rate**0.5 * np.prod(np.where(changed, 1 - missed, missed))

    mean = quad(lambda x: x * density(x), 0, 40)[0] / quad(density, 0, 40)[0]
    assert abs(result.unsignalled_rate[0] - mean) < 0.1 * result.unsignalled_rate_stderr[0]


def test_groups_have_distributions_of_their_own():
    rng = np.random.default_rng(5)
    parts = [population(rng, 400, 10, mean=mean) for mean in ((0.1, 2.0), (1.5, 0.3))]
    page = np.concatenate([parts[0][1], parts[1][1] + 400])
    elapsed, signals, changed = (
        np.concatenate([part[position] for part in parts]) for position in (2, 3, 4)
    )
    groups = np.repeat([1, 0], 400)
    result = estimators.empirical_bayes(elapsed, signals, changed, page=page, groups=groups)
    alone = estimators.empirical_bayes(*parts[0][2:], page=parts[0][1])
    np.testing.assert_allclose(result.groups.mean[1], alone.groups.mean[0], rtol=5e-3)
    np.testing.assert_allclose(result.fit.evidence[:400], alone.fit.evidence, rtol=0.02)
    b = np.concatenate([part[0][1] for part in parts])
    single = estimators.empirical_bayes(elapsed, signals, changed, page=page)
    gaps = [np.mean((-np.expm1(-f.fit.evidence) + np.expm1(-b)) ** 2) for f in (result, single)]
    assert gaps[0] < gaps[1]


def test_degenerate_groups():
    """A page alone, a page without crawls, and pages that all or never changed."""
    lone = estimators.empirical_bayes([1.0, 2.0], [0, 1], [False, True], page=[0, 0])
    assert lone.converged
    silent = estimators.empirical_bayes(
        [1.0] * 4, [0] * 4, [False] * 4, page=[0, 0, 1, 1], num_pages=3
    )
    everything = estimators.empirical_bayes([1.0] * 4, [1] * 4, [True] * 4, page=[0, 0, 1, 1])
    for result in (lone, silent, everything):
        for values in (result.fit.unsignalled_rate, result.fit.evidence):
            assert np.isfinite(values).all()
            assert (values > 0.0).all()
    assert silent.fit.unsignalled_rate[2] == pytest.approx(silent.groups.mean[0, 0], rel=1e-6)
    assert silent.fit.unsignalled_rate[0] < everything.fit.unsignalled_rate[0]
