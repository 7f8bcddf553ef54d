"""Moment matching: roots, spread and the published bound."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq

from policies.estimators import fit_change_rates, match_moments, moment_error_bound


def check_moments(rate, intervals, changed, tolerance, smoothing=0.0):
    """In 50 digits: the expected count crosses the observed one within ``tolerance``."""
    lengths = [*intervals.tolist(), *([smoothing] * 2 if smoothing else [])]
    result = int(changed.sum()) + (1 if smoothing else 0)
    with mpmath.workdps(50):
        for sign in (-1, 1):
            near = mpmath.mpf(float(rate)) * (1 + sign * mpmath.mpf(tolerance))
            expected = sum(-mpmath.expm1(-near * mpmath.mpf(w)) for w in lengths)
            assert sign * (expected - result) > 0


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(15))
def test_moments_in_fifty_digits(seed, smoothing):
    rng = np.random.default_rng([1, seed])
    n = int(rng.integers(2, 40))
    intervals = rng.exponential(10.0 ** rng.uniform(-3, 3), n)
    changed = rng.random(n) < rng.random()
    changed[:2] = True, False
    result = match_moments(intervals, changed, smoothing=smoothing)
    check_moments(result.change_rate[0], intervals, changed, 1e-12, smoothing)
    assert result.converged.all()


@pytest.mark.parametrize("orders", [2, 6, 10, 14, 20])
def test_long_changed_and_short_unchanged_intervals(orders):
    """Near the root both expected numbers are those observed but for a tiny share."""
    rng = np.random.default_rng([4, orders])
    intervals = 10.0 ** rng.uniform(0.0, 0.5, (40, 9))
    changed = np.arange(9) < rng.integers(1, 9, (40, 1))
    intervals *= np.where(changed, 10.0 ** (0.5 * orders), 10.0 ** (-0.5 * orders))
    result = match_moments(intervals, changed)
    assert result.converged.all()
    for row in zip(result.change_rate, intervals, changed, strict=True):
        check_moments(*row, 1e-14)


def test_moments_agree_with_brent_and_their_stderr():
    rng = np.random.default_rng(3)
    intervals = rng.exponential(1.0, (100, 20))
    changed = rng.random((100, 20)) < 0.4
    changed[:, 0], changed[:, 1] = True, False
    result = match_moments(intervals, changed)
    for i in range(100):

        def gap(x, w=intervals[i], hits=changed[i]):
            return (-np.expm1(-x * w) - hits).sum()

        root = brentq(gap, 1e-9, 1e4, xtol=1e-300, rtol=1e-14)
        assert result.change_rate[i] == pytest.approx(root, rel=1e-11)
        fresh = np.exp(-root * intervals[i])
        error = math.sqrt((fresh * (1.0 - fresh)).sum()) / (intervals[i] * fresh).sum()
        assert result.stderr[i] == pytest.approx(error, rel=1e-10)


def test_moments_of_equal_intervals_are_the_likelihood():
    changed = np.arange(9)[None] < np.arange(10)[:, None]
    result = match_moments(np.full((10, 9), 0.3), changed)
    likely = fit_change_rates(np.full((10, 9), 0.3), changed)
    np.testing.assert_allclose(result.change_rate, likely.change_rate, rtol=1e-13)
    np.testing.assert_allclose(result.stderr, likely.stderr, rtol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            result.change_rate, -np.log1p(-np.arange(10) / 9.0) / 0.3, rtol=1e-13
        )
    none = match_moments([], np.zeros(0, bool))
    assert np.isnan([none.change_rate[0], none.stderr[0]]).all()


def test_an_interval_of_no_length_tells_nothing():
    intervals, changed = np.array([1.0, 0.0, 2.0, 0.0]), np.array([True, False, False, False])
    for method in (match_moments, fit_change_rates):
        result, kept = method(intervals, changed), method(intervals[::2], changed[::2])
        assert result.change_rate[0] == pytest.approx(kept.change_rate[0], rel=1e-14)
    assert match_moments([0.0, 1.0], [False, True]).change_rate[0] == math.inf


def test_spread_of_moments_is_that_of_the_likelihood():
    """60 crawls at exponential intervals: bias and spread near those of the MLE."""
    rng = np.random.default_rng(4)
    intervals = rng.exponential(1.0, (4000, 60))
    changed = rng.random((4000, 60)) < -np.expm1(-0.8 * intervals)
    moments, likely = match_moments(intervals, changed), fit_change_rates(intervals, changed)
    spread = moments.change_rate.std() / likely.change_rate.std()
    assert 0.98 < spread < 1.1
    assert np.mean(moments.change_rate) == pytest.approx(0.8, abs=0.02)
    score = (moments.change_rate - 0.8) / np.mean(moments.stderr)
    assert score.std() == pytest.approx(1.0, abs=0.06)


def test_moments_stay_within_their_bound():
    """The bound fails no more often than it may, and its parts are those of the formula."""
    rng = np.random.default_rng(5)
    intervals = rng.exponential(1.0, (3000, 50))
    rate = rng.uniform(0.1, 1.0, 3000)
    changed = rng.random((3000, 50)) < -np.expm1(-rate[:, None] * intervals)
    result = match_moments(intervals, changed)
    most = np.maximum(result.change_rate, rate)
    for delta in (0.5, 0.05):
        bound = np.array(
            [
                moment_error_bound(row, max_rate=x, failure_probability=delta)
                for row, x in zip(intervals, most, strict=True)
            ]
        )
        failed = np.abs(result.change_rate - rate) > bound
        assert failed.mean() <= delta
    together = moment_error_bound(intervals, max_rate=1.0, failure_probability=0.1)
    assert together.shape == (3000,)
    expected = math.sqrt(50 * math.log(20.0) / 2) / sum(w * math.exp(-w) for w in intervals[7])
    assert together[7] == pytest.approx(expected, rel=1e-13)
    assert moment_error_bound([0.0], max_rate=1.0, failure_probability=0.1) == np.inf
