"""Curves of pages made of regions: 50 digits, simulated fragments, limits, periods."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import gammainc
from scipy.stats import poisson

from crawl_envs.types.contents import Regions
from policies.values.divergence.curves import HolisticCurves
from policies.values.divergence.region_series import region_terms
from policies.values.divergence.regions import RegionCurves, mean_of_sums
from tests.policies.values.divergence import naive_regions as naive


def page(items, size, rate):
    """Curves of a single page."""
    return RegionCurves(Regions([items], [size], [rate]))


@pytest.mark.parametrize("seed", range(6))
def test_divergence_against_all_states(seed):
    rng = np.random.default_rng(seed)
    regions = naive.random_page(rng, regions=2 + seed % 4)
    curves = page(*regions)
    for elapsed in [1e-6 / sum(regions[2]), 1e-3, 0.1, 1.0, 6.0, 50.0]:
        with mpmath.workdps(50):
            known = naive.divergence(*regions, elapsed)
            assert abs(curves.divergence(elapsed)[0] / known - 1) < 1e-13


@pytest.mark.parametrize("seed", range(6))
def test_utility_against_integration(seed):
    rng = np.random.default_rng(seed)
    regions = naive.random_page(rng, regions=2 + seed % 3, most=3)
    curves = page(*regions)
    for elapsed in [1e-6 / sum(regions[2]), 1e-2, 1.0, 6.0]:
        with mpmath.workdps(30):
            known = naive.utility(*regions, elapsed)
            assert abs(curves.utility(elapsed)[0] / known - 1) < 1e-12
            area = elapsed * naive.divergence(*regions, elapsed) - known
            assert abs(curves.area(elapsed)[0] / area - 1) < 1e-12


def test_divergence_of_simulated_fragments():
    items, size, rate = [1, 1, 4], [12, 5, 3], [0.0, 1.5, 0.8]
    elapsed, rng = 1.7, np.random.default_rng(11)
    drawn = []
    for _ in range(20_000):
        live = naive.Page(items, size, rate, rng)
        copy = live.fragments()
        live.pass_by(elapsed)
        drawn.append(naive.jaccard_distance(copy, live.fragments()))
    error = np.std(drawn) / np.sqrt(len(drawn))
    expected = page(items, size, rate).divergence(elapsed)[0]
    assert error < 0.02 * expected
    assert abs(np.mean(drawn) - expected) < 4.0 * error


def test_weights_are_positive_and_fall():
    regions = Regions([[1, 3, 10, 2]] * 2, [[9, 2, 3, 4]] * 2, [[0, 1.0, 30.0, 0.01]] * 2)
    terms = region_terms(regions)
    assert terms.first.tolist() == [0, 7, 14]
    assert np.all(terms.weight > 0.0)
    for low, high in zip(terms.start[:-1], terms.start[1:], strict=True):
        assert np.all(np.diff(terms.weight[low:high]) <= 1e-15 * terms.weight[low])
    lost = 6 + 30 + 8
    top = np.add.reduceat(terms.weight, terms.start[terms.first[:-1]])
    np.testing.assert_allclose(top, 2 * lost / (9 + 2 * lost), rtol=1e-14)


@pytest.mark.parametrize("length", [1, 2, 10, 90, 900])
def test_means_of_sums_against_the_poisson_law(length):
    weight = np.sort(np.random.default_rng(length).random(length))[::-1].copy()
    for x in [0.0, 1e-5, 0.3, 1.0, 0.6 * length, 1.5 * length, 699.0, 750.0, 1e4]:
        k = np.arange(3 * length + 200)
        reached = np.concatenate([[0.0], np.cumsum(weight)])[np.minimum(k, length)]
        steps = np.cumsum(weight * (1.0 + np.arange(length)))
        gained = np.concatenate([[0.0, 0.0], steps])[np.minimum(k, length + 1)]
        falling = np.append(weight, 0.0)[np.minimum(k, length)]
        law = poisson.pmf(k, x)
        law[-1] += poisson.sf(k[-1], x)
        divergence, slope, utility = mean_of_sums(weight, x)
        assert divergence == pytest.approx(law @ reached, rel=1e-11, abs=0.0)
        assert slope == pytest.approx(law @ falling, rel=1e-11, abs=1e-17)
        assert utility == pytest.approx(law @ gained, rel=1e-11, abs=0.0)


def test_one_churn_region_is_holistic_staleness():
    rate = np.array([1e-4, 0.3, 5.0])[:, None]
    whole = RegionCurves(Regions(np.ones((3, 1), int), np.full((3, 1), 7), rate))
    half = RegionCurves(
        Regions(np.ones((3, 2), int), np.full((3, 2), 7), np.hstack([rate, 0 * rate]))
    )
    holistic = HolisticCurves(rate[:, 0])
    for elapsed in [0.0, 1e-7, 0.2, 3.0, 500.0, np.inf]:
        for name in ("divergence", "area", "utility"):
            known = getattr(holistic, name)(elapsed)
            np.testing.assert_allclose(getattr(whole, name)(elapsed), known, rtol=1e-9)
            np.testing.assert_allclose(getattr(half, name)(elapsed), known * 2 / 3, rtol=1e-9)
    threshold = 0.7 * holistic.ceiling
    np.testing.assert_allclose(whole.period(threshold), holistic.period(threshold), rtol=1e-13)


@pytest.mark.parametrize("items", [50, 5000])
def test_a_long_scroll(items):
    curves = page([items, 1], [2, 30], [4.0, 0.0])
    total = 2 * items + 30
    state = np.arange(items + 1)
    fall = np.diff(2.0 * 2 * state / (total + 2 * state))
    for elapsed in [1e-6, 1.0, 0.2 * items, 0.25 * items, 0.5 * items]:
        known = fall @ gammainc(state[1:], 4.0 * elapsed)
        expected = fall @ (state[1:] * gammainc(state[1:] + 1, 4.0 * elapsed)) / 4.0
        assert curves.divergence(elapsed)[0] == pytest.approx(known, rel=1e-11)
        assert curves.utility(elapsed)[0] == pytest.approx(expected, rel=1e-11)


def test_four_regions_of_fifty_items():
    curves = page([50, 50, 50, 50], [1, 2, 3, 4], [0.5, 5.0, 50.0, 0.05])
    rng = np.random.default_rng(3)
    counts = rng.poisson(np.array([0.5, 5.0, 50.0, 0.05]) * 8.0, (200_000, 4))
    lost = np.minimum(counts, 50) @ [1, 2, 3, 4]
    drawn = 2.0 * lost / (500 + lost)
    error = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - curves.divergence(8.0)[0]) < 4.0 * error
    assert curves.divergence(np.inf)[0] == pytest.approx(1.0, rel=1e-13)


def test_static_pages_and_empty_regions():
    curves = RegionCurves(Regions([[1, 3], [2, 1]], [[5, 0], [4, 2]], [[0, 9.0], [0, 1.0]]))
    assert curves.num_pages == 2
    for elapsed in [0.0, 3.0, np.inf]:
        assert curves.divergence(elapsed)[0] == curves.utility(elapsed)[0] == 0.0
        assert curves.area(elapsed)[0] == 0.0
    assert curves.ceiling[0] == 0.0
    assert curves.period(1e-300)[0] == np.inf
    assert curves.divergence(np.inf)[1] == pytest.approx(4 / 12, rel=1e-14)
    vast = page([2**30, 1], [1, 2**20], [0.0, 1.0])
    assert vast.divergence(np.inf)[0] == pytest.approx(2 / (2 + 2**10), rel=1e-13)


def test_utility_never_falls():
    curves = page([1, 7, 2], [9, 1, 30], [3.0, 20.0, 1e-3])
    times = np.concatenate([[0.0], np.geomspace(1e-9, 1e6, 4001), [np.inf]])
    utilities = np.array([curves.utility(t)[0] for t in times])
    assert np.all(np.diff(utilities) >= -1e-15 * utilities[1:])
    assert utilities[-1] == curves.ceiling[0]


@pytest.mark.parametrize("seed", range(20))
def test_period_is_the_least_time(seed):
    rng = np.random.default_rng(seed)
    regions = naive.random_page(rng, regions=3, most=12)
    regions[2][1] *= 10.0 ** rng.uniform(-4, 4)
    curves = page(*regions)
    for share in [1e-12, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-9]:
        threshold = share * curves.ceiling[0]
        result = curves.period(threshold)[0]
        low, high = 1e-12, 1e12  # bisection, on logarithms
        for _ in range(200):
            middle = np.sqrt(low * high)
            low, high = (low, middle) if curves.utility(middle)[0] >= threshold else (middle, high)
        assert curves.utility(result)[0] == pytest.approx(threshold, rel=1e-13)
        flat = curves.utility(0.999 * high)[0] == pytest.approx(threshold, rel=1e-8)
        assert result == pytest.approx(high, rel=1e-3 if flat else 1e-6)


def test_periods_at_the_ends():
    curves = page([1, 4], [9, 2], [0.0, 3.0])
    np.testing.assert_array_equal(curves.period(0.0), [0.0])
    np.testing.assert_array_equal(curves.period(curves.ceiling), [np.inf])
    np.testing.assert_array_equal(curves.period(np.inf), [np.inf])
    assert 0.0 < curves.period(1e-250)[0] < 1e-100


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([1] * 9, "at most 8 regions that change"),
        ([2**17], "at most 65536 terms"),
        ([9000, 9000], "at most 16777216 products"),
    ],
)
def test_pages_that_are_too_much(items, message):
    count = len(items)
    with pytest.raises(ValueError, match=message + ".*for page 1"):
        RegionCurves(
            Regions([[1] * count, items], [[1] * count] * 2, [[0.0] * count, [1.0] * count])
        )
