"""Curve fits: exact data, the kind of curve, and SciPy's least squares from many starts."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.special import gammaln, xlogy
from scipy.stats import poisson

from policies.estimators.divergence import curve_fit as fitting
from policies.estimators.divergence.curve_fit import ITEMS
from policies.values.divergence.one_region import region_utility
from tests.policies.curve_fits import fit_curve

AGES = np.array([0.5, 1.0, 2.0, 3.5, 5.0, 8.0, 12.0, 17.0, 25.0, 40.0])


def curve(items, share, rate, ages):
    """Expected divergence, by summing over the number of updates."""
    gone = np.arange(items + 1)
    lost = 2 * share * gone / (items + share * gone)
    mean, number = rate * np.asarray(ages)[:, None], gone[:-1]
    chances = np.exp(xlogy(number, mean) - mean - gammaln(number + 1.0))  # of Poisson
    return chances @ lost[:-1] + (1 - chances.sum(1)) * lost[-1]


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize(("share", "turnover"), [(0.1, 0.2), (0.6, 0.05), (0.9, 0.5)])
def test_exact_data_give_the_curve_back(items, share, turnover):
    fit = fit_curve(AGES, curve(items, share, turnover * items, AGES))
    assert fit.items == items
    assert fit.share == pytest.approx(share, rel=1e-3)
    assert fit.rate == pytest.approx(turnover * items, rel=1e-3)
    assert fit.residual < 1e-9


def test_amplitude_of_churn_is_that_of_the_jaccard_distance():
    fit = fit_curve(AGES, 0.4 * (1 - np.exp(-0.25 * AGES)))
    assert fit.items == 1
    assert 2 * fit.share / (1 + fit.share) == pytest.approx(0.4, rel=1e-6)
    assert fit.rate == pytest.approx(0.25, rel=1e-6)


def test_the_residual_is_that_of_the_curve():
    rng = np.random.default_rng(4)
    values = np.clip(curve(5, 0.4, 1.0, AGES) + rng.normal(0, 0.05, AGES.size), 0, 1)
    fit = fit_curve(AGES, values)
    left = curve(fit.items, fit.share, fit.rate, AGES) - values
    assert fit.residual == pytest.approx((left**2).sum(), rel=1e-10)


def test_a_page_that_never_differs_is_static():
    assert fit_curve(AGES, np.zeros(AGES.size)) == (1, 0.0, 0.0, 0.0)
    assert fit_curve([], []) == (1, 0.0, 0.0, 0.0)


def test_one_observation_is_fitted_by_churn():
    fit = fit_curve([3.0], [0.2])
    assert fit.items == 1
    assert curve(1, fit.share, fit.rate, [3.0])[0] == pytest.approx(0.2, abs=1e-6)


def test_a_page_that_has_long_turned_over_keeps_the_slowest_rate_it_may_have():
    fit = fit_curve(AGES[4:], np.full(6, 0.3))
    assert fit.rate * AGES[4] <= fitting.MAX_UPDATES * fit.items * (1 + 1e-12)


def by_scipy(ages, values, items, most):
    """Least sum of squares for a K, from several starts, with so many updates at first at most."""
    low, high, best = -20.0, np.log(most / ages.min()), np.inf
    for turnover in (0.02, 0.2, 1.0):
        start = [0.5, min(np.log(turnover * items), high - 0.01)]
        result = least_squares(
            lambda p: curve(items, p[0], np.exp(p[1]), ages) - values,
            start,
            bounds=([0, low], [1, high]),
            **dict.fromkeys(("ftol", "xtol", "gtol"), 1e-6),
        )
        best = min(best, 2 * result.cost)
    return best


def test_as_close_as_least_squares_of_scipy():
    """Its kind is as close as any without a bound, but for ties; so is the fit within its own."""
    rng = np.random.default_rng(9)
    bounds = dict(zip(ITEMS, fitting.shapes().bounds, strict=True))
    close = kinds = bounded = 0
    for trial in range(25):
        ages = np.sort(rng.uniform(0.2, 20.0, rng.integers(3, 40)))
        truth = curve(rng.choice(ITEMS), rng.uniform(0.02, 1), 10 ** rng.uniform(-2, 0.5), ages)
        noise = rng.normal(0, (0.0, 0.02, 0.1)[trial % 3], ages.size)
        values = np.clip(truth + noise, 0, 1)
        free = {k: by_scipy(ages, values, k, fitting.TURNED_OVER * k) for k in ITEMS}
        fit, least = fit_curve(ages, values), min(free.values())
        assert free[fit.items] <= 1.02 * least + 2e-4
        tie = max(least / (1.0 - fitting.MIN_GAIN_SHARE), least + fitting.MIN_GAIN)
        kinds += free[fit.items] <= tie + 1e-6
        best = by_scipy(ages, values, fit.items, bounds[fit.items])
        assert fit.residual <= 1.02 * best + 2e-4
        close += fit.residual <= best + 1e-6
        bounded += fit.rate * ages.min() >= bounds[fit.items] * (1.0 - 1e-9)
    print(f"kind {kinds}, residual {close}, at the bound {bounded} of 25")
    assert min(close, kinds) >= 24
    assert 0 < bounded < 25


@pytest.mark.parametrize("rate", [2.0, 3.0, 6.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_fast_churn_that_is_looked_at_late_is_churn_at_the_bound(rate, share):
    """So its utility is about half the age of the first observation times its divergence."""
    ages = np.arange(2.0, 26.0, 2.0)
    height = 2 * share / (1 + share)
    fit = fit_curve(ages, height * (1 - np.exp(-rate * ages)))
    assert fit.items == 1
    assert fit.rate == pytest.approx(1.0, rel=1e-9)
    assert region_utility(*fit[:3], np.inf) == pytest.approx(height, rel=0.02)


@pytest.mark.parametrize("items", [3, 5, 7])
def test_fast_scroll_that_is_looked_at_late_keeps_its_kind_too(items):
    ages = np.arange(2.0, 26.0, 2.0)
    fit = fit_curve(ages, curve(items, 0.3, 0.6 * items, ages))
    assert fit.items == items
    bound = fitting.shapes().bounds[ITEMS.index(items)]
    assert fit.rate == pytest.approx(min(bound / 2.0, 0.6 * items), rel=1e-9)


def test_bounds_are_equally_saturated():
    for items, most in zip(ITEMS, fitting.shapes().bounds, strict=True):
        gone = np.minimum(np.arange(400), items) @ poisson.pmf(np.arange(400), most)
        assert gone / items == pytest.approx(1 - np.exp(-2.0), rel=1e-10)


def test_clean_data_with_noise_show_their_kind():
    rng = np.random.default_rng(5)
    ages = np.linspace(1.0, 60.0, 30)
    kinds = {1: [], 20: []}
    for items, result in kinds.items():
        for _ in range(20):
            values = curve(items, 0.5, 0.1 if items == 1 else 0.6, ages)
            fit = fit_curve(ages, np.clip(values + rng.normal(0, 0.005, ages.size), 0, 1))
            result.append(fit.items)
    assert np.mean(np.array(kinds[20]) >= 10) == 1.0
    assert np.mean(np.array(kinds[1]) <= 3) == 1.0


def test_a_fit_takes_some_microseconds():
    rng = np.random.default_rng(6)
    values = np.clip(curve(10, 0.2, 4.0, AGES) + rng.normal(0, 0.02, AGES.size), 0, 1)
    table = fitting.shapes()
    fitting.fit_observations(AGES, values, table)
    laps = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(20):
            fitting.fit_observations(AGES, values, table)
        laps.append((time.perf_counter() - start) / 20)
    assert min(laps) < 300e-6
