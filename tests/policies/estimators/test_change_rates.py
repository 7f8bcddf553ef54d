"""The fast fit of change rates against 50 digits and Brent's method."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.estimators import fit_change_rates
from policies.estimators.change_rates import LARGEST, exp_minus_one, fit_histories, score_sums
from policies.estimators.histories import page_histories


def slow_rate(intervals, changed, smoothing=0.0):
    """The obvious twin: bisection of eq. 10 in plain Python."""
    hits = [a for a, hit in zip(intervals, changed, strict=True) if hit]
    rest = [a for a, hit in zip(intervals, changed, strict=True) if not hit]
    if smoothing:
        hits, rest = [*hits, smoothing], [*rest, smoothing]
    if not hits:
        return 0.0 if rest else math.nan
    if not sum(rest):
        return math.inf

    def score(rate):
        return sum(a / math.expm1(min(a * rate, 700.0)) for a in hits) - sum(rest)

    low, high = 0.0, 1.0
    while score(high) > 0.0:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if score(middle) > 0.0 else (low, middle)
    return 0.5 * (low + high)


def score_in_50_digits(rate, intervals, changed, smoothing=0.0):
    """Eq. 10 with imaginary intervals."""
    total = mpmath.mpf(0)
    extra = [(smoothing, True), (smoothing, False)] if smoothing else []
    for a, hit in [*zip(intervals.tolist(), changed.tolist(), strict=True), *extra]:
        total += mpmath.mpf(a) / mpmath.expm1(rate * a) if hit else -mpmath.mpf(a)
    return total


def check_root(rate, intervals, changed, tolerance=1e-12, **known):
    """The score falls through 0 within a relative ``tolerance`` of the rate."""
    with mpmath.workdps(50):
        for sign in (-1, 1):
            near = mpmath.mpf(float(rate)) * (1 + sign * mpmath.mpf(tolerance))
            assert sign * score_in_50_digits(near, intervals, changed, **known) < 0


def changes(rng, rate, intervals):
    return rng.random(intervals.shape) < -np.expm1(-rate * intervals)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(15))
def test_root_in_fifty_digits(seed, smoothing):
    rng = np.random.default_rng([1, seed])
    n = int(rng.integers(2, 40))
    intervals = rng.exponential(10.0 ** rng.uniform(-3, 3), n)
    changed = changes(rng, 10.0 ** rng.uniform(-1, 0.7) / intervals.mean(), intervals)
    changed[:2] = True, False
    result = fit_change_rates(intervals, changed, smoothing=smoothing)
    check_root(result.change_rate[0], intervals, changed, smoothing=smoothing)
    assert result.converged.all()


@pytest.mark.parametrize("powers", [(-30, 12), (-30, -20), (10, 12)])
@pytest.mark.parametrize("smoothing", [0.0, 1e-12, 0.5, 1e12])
def test_any_unit_of_time_will_do(powers, smoothing):
    """From end to end of what is allowed: exponents that are cut tell of no slope."""
    rng = np.random.default_rng([8, *np.abs(powers)])
    intervals = np.clip(10.0 ** rng.uniform(*powers, (2000, 7)), 1e-30, 1e12)
    changed = rng.random((2000, 7)) < rng.random((2000, 1))
    changed[:, :2] = True, False
    result = fit_change_rates(intervals, changed, smoothing=smoothing)
    assert result.converged.all()
    assert result.iterations.max() < 30
    assert np.isfinite(result.stderr).all()
    for i in range(0, 2000, 50):
        check_root(result.change_rate[i], intervals[i], changed[i], smoothing=smoothing)


@pytest.mark.parametrize("count", range(15, 30))
def test_short_intervals_beside_long_imaginary_ones(count):
    intervals, changed = np.full(count, 1e-9), np.ones(count, bool)
    result = fit_change_rates(intervals, changed, smoothing=0.5)
    check_root(result.change_rate[0], intervals, changed, smoothing=0.5)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_terms_of_higher_order_save_steps(smoothing):
    rng = np.random.default_rng(4)
    rate, intervals = np.exp(rng.normal(-1.3, 1.6, 300)), rng.exponential(1.0, (300, 98))
    changed = changes(rng, rate[:, None], intervals)
    changed[:, 0], changed[:, 1] = True, False
    assert fit_change_rates(intervals, changed, smoothing=smoothing).iterations.mean() < 1.4


@settings(max_examples=150, deadline=None)
@given(
    crawls=st.lists(
        st.tuples(st.floats(-6.0, 6.0).map(lambda x: 10.0**x), st.booleans()), max_size=12
    ),
    smoothing=st.sampled_from([0.0, 0.5, 30.0]),
)
def test_agrees_with_the_twin(crawls, smoothing):
    intervals, changed = [a for a, _ in crawls], [hit for _, hit in crawls]
    result = fit_change_rates(intervals, np.array(changed, bool), smoothing=smoothing)
    twin = slow_rate(intervals, changed, smoothing)
    assert result.change_rate[0] == pytest.approx(twin, rel=1e-9, nan_ok=True)
    if smoothing:
        assert 0.0 < result.change_rate[0] < math.inf
        assert 0.0 < result.stderr[0] < math.inf


def test_stderr_is_the_observed_information():
    rng = np.random.default_rng(7)
    intervals = rng.exponential(1.0, (50, 40))
    changed = changes(rng, np.geomspace(0.05, 4.0, 50)[:, None], intervals)
    changed[:, 0], changed[:, 1] = True, False
    result = fit_change_rates(intervals, changed)
    x = result.change_rate[:, None] * intervals
    information = np.where(changed, intervals**2 * np.exp(x) / np.expm1(x) ** 2, 0.0).sum(axis=1)
    np.testing.assert_allclose(result.stderr, 1.0 / np.sqrt(information), rtol=1e-9)


def test_equal_intervals_have_a_closed_form():
    changed = np.arange(20)[None] < np.arange(21)[:, None]
    result = fit_change_rates(np.full((21, 20), 0.25), changed)
    with np.errstate(divide="ignore"):
        expected = -np.log1p(-np.arange(21) / 20) / 0.25
    np.testing.assert_allclose(result.change_rate, expected, rtol=1e-14)
    share = np.arange(1, 20) / 20
    np.testing.assert_allclose(
        result.stderr[1:-1], np.sqrt(share / (1.0 - share) / 20) / 0.25, rtol=1e-12
    )
    assert np.isnan(result.stderr[[0, -1]]).all()
    assert result.iterations.max() <= 1


def test_smoothing_of_a_page_without_crawls():
    """ln(2) / smoothing: 1.386 a day for half a day."""
    result = fit_change_rates([], np.zeros(0, bool), np.zeros(4, int), smoothing=0.5)
    np.testing.assert_allclose(result.change_rate, math.log(2.0) / 0.5, rtol=1e-15)
    none = fit_change_rates([], np.zeros(0, bool), [0, 0])
    assert np.isnan(none.change_rate).all()
    assert np.isnan(none.stderr).all()


def test_bounds():
    intervals, changed = np.ones((4, 2)), np.array([[0, 0], [1, 1], [1, 0], [0, 0]], bool)
    free = fit_change_rates(intervals, changed)
    np.testing.assert_allclose(free.change_rate, [0.0, np.inf, math.log(2.0), 0.0])
    kept = fit_change_rates(intervals, changed, low=0.0005, high=7.0)
    np.testing.assert_allclose(kept.change_rate, [0.0005, 7.0, math.log(2.0), 0.0005])
    np.testing.assert_array_equal(np.isnan(kept.stderr), [True, True, False, True])
    narrow = fit_change_rates(intervals, changed, low=0.1, high=0.5)
    np.testing.assert_allclose(narrow.change_rate, [0.1, 0.5, 0.5, 0.1])
    assert np.isnan(narrow.stderr).all()


def test_forms_of_input_agree():
    rng = np.random.default_rng(8)
    intervals = rng.exponential(1.0, (30, 12)).astype(np.float32)
    changed = changes(rng, 0.6, intervals)
    dense = fit_change_rates(intervals, changed)
    rows = fit_change_rates(intervals.ravel(), changed.ravel().astype(np.uint8), 12 * np.arange(31))
    np.testing.assert_allclose(rows.change_rate, dense.change_rate, rtol=1e-14)
    listed = fit_change_rates(intervals.tolist(), changed.tolist())
    np.testing.assert_array_equal(listed.change_rate, dense.change_rate)
    strided = fit_change_rates(
        np.asfortranarray(intervals.astype(np.float64)), np.asfortranarray(changed)
    )
    np.testing.assert_array_equal(strided.change_rate, dense.change_rate)


def test_neither_start_nor_order_nor_unit_matters():
    rng = np.random.default_rng(9)
    intervals = 10.0 ** rng.uniform(-2, 2, (200, 15))
    changed = rng.random((200, 15)) < 0.4
    changed[:, 0], changed[:, 1] = True, False
    result = fit_change_rates(intervals, changed).change_rate
    crawls = page_histories(intervals, changed)
    for start in (result, 1e-12 * result, 1e12 * result, np.full(200, np.nan), -result):
        other = fit_histories(crawls, start=start)
        np.testing.assert_allclose(other.change_rate, result, rtol=1e-13)
    assert fit_histories(crawls, start=result).iterations.max() == 1
    order = rng.permutation(15)
    mixed = fit_change_rates(intervals[:, order], changed[:, order])
    np.testing.assert_allclose(mixed.change_rate, result, rtol=1e-13)
    days = fit_change_rates(intervals / 86400.0, changed)
    np.testing.assert_allclose(days.change_rate / 86400.0, result, rtol=1e-13)


def test_standard_errors_cover():
    """6,000 histories of 200 crawls against the Fisher information at the true rates.

    The mean of the scores has a standard error of .013 and their spread one of .009; the bias of
    the MLE, of second order, is about .05 of an error here.
    """
    rng = np.random.default_rng(10)
    intervals = rng.exponential(1.0, (6000, 200))
    rate = rng.uniform(0.2, 2.0, 6000)
    result = fit_change_rates(intervals, changes(rng, rate[:, None], intervals))
    known = 1.0 / np.sqrt((intervals**2 / np.expm1(rate[:, None] * intervals)).sum(axis=1))
    score = (result.change_rate - rate) / known
    assert abs(score.mean()) < 0.1
    assert score.std() == pytest.approx(1.0, abs=0.04)
    np.testing.assert_allclose(np.mean(result.stderr / known), 1.0, atol=0.02)
    covered = np.abs(result.change_rate - rate) < 1.96 * result.stderr
    assert covered.mean() == pytest.approx(0.95, abs=0.012)


def test_exponential_and_its_sums():
    points = np.concatenate([10.0 ** np.linspace(-300, 2.8, 400), np.linspace(0.0, LARGEST, 400)])
    with mpmath.workdps(50):
        for x in points:
            value = exp_minus_one(x)
            assert value == pytest.approx(float(mpmath.expm1(mpmath.mpf(x))), rel=5e-16, abs=0.0)


@pytest.mark.parametrize("rate", [1e-6, 0.3, 4.0])
def test_sums_are_derivatives_of_the_score(rate):
    """In 50 digits: Delta^(k + 1) (-d/dDelta)^k a / (exp(a Delta) - 1)."""
    result = np.array([0.1, 1.0, 2.5, 9.0, np.inf])  # the last does not count
    sums = score_sums(result, 4, rate)
    with mpmath.workdps(50):
        for order, value in enumerate(sums):
            exact = sum(
                mpmath.diff(lambda x, a=a: a / mpmath.expm1(a * x), rate, order)
                for a in map(mpmath.mpf, result[:4].tolist())
            )
            exact *= (-1) ** order * mpmath.mpf(rate) ** (order + 1)
            assert value == pytest.approx(float(exact), rel=1e-12)
