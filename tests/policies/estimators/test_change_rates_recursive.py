"""Stochastic approximation: step by step, and where it settles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies.estimators import StochasticApproximation
from tests.policies.rate_scores import check_scores


def step_by_step(x, p, events, step, decay, momentum):
    """Stochastic approximation as it is printed."""
    before = x
    for k, hit in enumerate(events, 1):
        moved = x + step / k**decay * (hit * (x + p) - x) + momentum * (x - before)
        x, before = max(moved, 0.0), x
    return x


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_approximation_steps_as_printed(momentum):
    rng = np.random.default_rng(11)
    m, k = 20, 30
    events, speed = rng.random((m, k)) < 0.4, rng.uniform(0.5, 2.0, m)
    estimator = StochasticApproximation(
        m, crawl_rate=speed, step=0.8, decay=0.6, momentum=momentum, initial=2.0
    )
    for column in np.array_split(np.arange(k), 4):
        page = np.tile(np.arange(m), len(column))
        estimator.update(page, np.ones(len(page)), events[:, column].T.ravel())
    expected = [step_by_step(2.0, speed[i], events[i], 0.8, 0.6, momentum) for i in range(m)]
    np.testing.assert_allclose(estimator.estimate_, expected, rtol=1e-12)
    assert (estimator.estimate_ >= 0.0).all()


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_approximation_settles_about_the_truth(momentum, decay):
    """Small steps: no bias, and the spread that is stated; heavy-ball steps count 1/(1 - beta)."""
    rng = np.random.default_rng([12, decay > 0])
    m, k = 3000, 4000
    rate, speed = rng.uniform(0.5, 1.5, m), rng.uniform(0.7, 1.5, m)
    estimator = StochasticApproximation(
        m,
        crawl_rate=speed,
        step=(0.01 if decay == 0.0 else 1.0) * (1.0 - momentum),
        decay=decay,
        momentum=momentum,
    )
    for _ in range(8):
        hits = rng.random((k // 8, m)) < rate / (rate + speed)
        page = np.tile(np.arange(m), k // 8)
        estimator.update(page, np.ones(len(page)), hits.ravel())
    last = 0.01 if decay == 0.0 else k**-decay
    check_scores(estimator, rate, np.sqrt(last * rate * (rate + speed) / 2.0), 0.1, 0.07)


def test_a_bound_has_no_error_and_is_not_the_default():
    """A step of 1 goes to 0 at a crawl that finds no change; less does not."""
    for step, estimate in ((1.0, 0.0), (0.25, 1.5)):
        estimator = StochasticApproximation(1, crawl_rate=1.0, step=step, initial=2.0)
        estimator.update([0], [1.0], [False])
        assert estimator.estimate_[0] == estimate
        assert math.isnan(estimator.stderr_[0]) == (estimate == 0.0)
    usual = StochasticApproximation(3)
    usual.update([0, 1, 1], [1.0, 1.0, 2.0], [False, False, True])
    assert np.all(usual.estimate_ > 0.0)
    assert np.all(usual.stderr_[:2] > 0.0)


def test_approximation_is_told_like_the_others():
    told, same = StochasticApproximation(2), StochasticApproximation(2)
    crawls = [0, 1, 0], [1.0, 2.0, 3.0], [True, False, True]
    told.update(*crawls, time=[1.0, 2.0, 4.0], now=5.0)
    same.update(*crawls)
    np.testing.assert_array_equal(told.estimate_, same.estimate_)


def test_approximation_counts_crawls_over_time():
    """Without a crawl rate: p is the crawls so far over the time so far."""
    estimator = StochasticApproximation(2, step=0.5, decay=0.0, initial=2.0)
    estimator.update([0, 1, 0], [4.0, 0.0, 1.0], [True, False, True])
    first = 2.0 + 0.5 * 0.25
    assert estimator.estimate_[0] == pytest.approx(first + 0.5 * 0.4)
    assert estimator.estimate_[1] == 2.0
    assert math.isnan(estimator.stderr_[1])


@pytest.mark.parametrize("crawls", [20, 300])
def test_the_standard_error_is_the_spread(crawls):
    """Root mean square error of many pages, also while steps are large and the start is near."""
    rng = np.random.default_rng(0)
    m, change_rate, speed = 4000, 0.7, 0.4
    estimator = StochasticApproximation(m, crawl_rate=speed, initial=1.0)
    for _ in range(crawls):
        elapsed = rng.exponential(1.0 / speed, m)
        changed = rng.random(m) < -np.expm1(-change_rate * elapsed)
        estimator.update(np.arange(m), elapsed, changed)
    errors = estimator.estimate_ - change_rate
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(estimator.stderr_.mean(), rel=0.1)
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * estimator.stderr_) <= 1.0
