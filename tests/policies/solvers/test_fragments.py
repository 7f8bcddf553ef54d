"""Optimal periods under any divergence: known solvers, a general optimiser, conditions, limits."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.types.contents import Regions
from policies import solvers
from policies.values.divergence.curves import HolisticCurves
from policies.values.divergence.regions import RegionCurves
from policies.values.divergence.tabulated import TabulatedCurves


def mixed(rng, pages):
    """Pages of a static, a churn and a scroll region; every seventh is static."""
    items = np.stack([np.ones(pages), np.ones(pages), rng.integers(2, 12, pages)], 1).astype(int)
    size = rng.integers(1, 30, (pages, 3))
    rate = 10.0 ** rng.uniform(-2.0, 1.0, (pages, 3)) * [0.0, 1.0, 1.0]
    rate[::7] = 0.0
    return RegionCurves(Regions(items, size, rate))


def mean_divergence(curves, importance, rates):
    """Importance-weighted divergence at even intervals."""
    mean = curves.area(1.0 / np.maximum(rates, 1e-12)) * rates
    return float(mean @ importance / importance.sum())


@pytest.mark.parametrize("bandwidth", [0.5, 20.0, 1e3])
def test_holistic_curves_are_the_binary_problem(bandwidth):
    rng = np.random.default_rng(1)
    importance, change_rate = rng.pareto(1.5, 50), 10.0 ** rng.uniform(-3.0, 2.0, 50)
    importance[3], change_rate[5] = 0.0, 0.0
    known = solvers.binary_periodic(importance, change_rate, bandwidth)
    curves = HolisticCurves(change_rate)
    churn = RegionCurves(
        Regions(np.ones((50, 1), int), rng.integers(1, 99, (50, 1)), change_rate[:, None])
    )
    for result in (solvers.fragments(each, importance, bandwidth) for each in (curves, churn)):
        assert result.converged
        np.testing.assert_allclose(result.rates, known.rates, rtol=1e-9, atol=1e-9)
        assert result.multiplier == pytest.approx(known.multiplier, rel=1e-9)
        assert result.objective == pytest.approx(known.objective, rel=1e-12)
        assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    curves, importance = mixed(rng, 30), rng.pareto(1.0, 30)
    importance[seed] = 0.0
    bandwidth = 10.0 ** rng.uniform(-2.0, 3.0)
    result = solvers.fragments(curves, importance, bandwidth)
    shares = importance / importance.sum()
    assert result.converged
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-9)
    crawled = result.rates > 0.0
    gains = shares * curves.utility(result.thresholds)
    np.testing.assert_allclose(gains[crawled], result.multiplier, rtol=1e-8)
    assert np.all((shares * curves.ceiling)[~crawled] <= result.multiplier * (1 + 1e-9))
    assert np.isinf(result.thresholds[~crawled]).all()
    mean = curves.divergence(np.inf)
    periods = np.where(crawled, result.thresholds, 1.0)
    mean[crawled] = (curves.area(periods) / periods)[crawled]
    assert result.objective == pytest.approx(1.0 - shares @ mean, abs=1e-12)


def test_more_to_lose_is_crawled_more():
    regions = Regions([[1, 1], [10, 1]], [[10, 10], [1, 10]], [[9.0, 0.0], [9.0, 0.0]])
    few = solvers.fragments(RegionCurves(regions), 1.0, 0.5)
    assert few.rates[0] < 0.2 * few.rates[1]  # as often updated, but gone at once
    whole = solvers.fragments(HolisticCurves(regions.change_rate), 1.0, 0.5)
    assert whole.rates[0] == pytest.approx(whole.rates[1], rel=1e-9)


def test_stretches_of_equal_utility():
    ages = np.array([1.0, 2.0, 5.0, 6.0])
    curves = TabulatedCurves(ages, [[0.2, 0.4, 0.4, 0.5], [0.3, 0.3, 0.3, 0.6]])
    importance = np.array([2.0, 1.0])
    for bandwidth in [0.1, 0.4, 0.7, 1.2, 5.0]:
        result = solvers.fragments(curves, importance, bandwidth)
        assert result.converged
        assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-12)
        share = np.linspace(0.0, 1.0, 4001)[1:-1]
        split = bandwidth * np.stack([share, 1.0 - share], 1)
        every = [mean_divergence(curves, importance, rates) for rates in split]
        assert 1.0 - result.objective <= min(every) + 1e-12
        assert 1.0 - result.objective == pytest.approx(min(every), abs=1e-4)


def test_bandwidth_beyond_use():
    curves = TabulatedCurves([1.0, 4.0], [[0.0, 0.5], [0.0, 0.2]])
    result = solvers.fragments(curves, 1.0, 10.0)
    assert result.converged
    assert result.multiplier == 0.0
    assert result.objective == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(result.rates, 1.0, rtol=1e-9)


def test_nothing_to_crawl():
    curves = RegionCurves(Regions([[1], [1]], [[3], [4]], [[0.0], [2.0]]))
    result = solvers.fragments(curves, [1.0, 0.0], 1.0)
    assert result.converged
    assert result.multiplier == 0.0
    assert result.objective == 1.0
    np.testing.assert_array_equal(result.rates, [0.0, 0.0])
    one = solvers.fragments(curves, [0.0, 1.0], 1.0)
    np.testing.assert_allclose(one.rates, [0.0, 1.0], rtol=1e-12)
    assert one.objective == pytest.approx(1 - float(curves.area(1.0)[1]), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter(scale):
    rng = np.random.default_rng(5)
    change_rate, importance = rng.random(9), rng.random(9)
    known = solvers.fragments(HolisticCurves(change_rate), importance, 3.0)
    result = solvers.fragments(HolisticCurves(change_rate * scale), importance * scale, 3.0 * scale)
    np.testing.assert_allclose(result.rates, known.rates * scale, rtol=1e-9)
    assert result.objective == pytest.approx(known.objective, rel=1e-12)


@pytest.mark.parametrize(
    ("rates", "budget"), [([1.0, 1.0], 1e-12), ([1.0, 1e-12], 1.0), ([1e-12, 1e-12], 1e-12)]
)
def test_intervals_may_be_longer_than_times_in_the_domain(rates, budget):
    curves = HolisticCurves(np.array(rates))
    allocation = solvers.fragments(curves, np.ones(2), budget)
    assert allocation.rates.sum() == pytest.approx(budget, rel=1e-9)
    longest = HolisticCurves(np.ones(1)).utility(2e12)
    assert longest == pytest.approx(1.0, rel=1e-12)
