"""Optimal rates: golden values, independent optimisers, optimality conditions, degenerate input."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from policies import solvers
from policies.values import lambert
from tests.reference import reference


def test_golden_values():
    result = solvers.binary_periodic([1, 2, 4, 1], [0.1, 0.5, 2.0, 5.0], 1.0)
    np.testing.assert_allclose(result.rates, [0.131377, 0.332584, 0.536039, 0.0], atol=5e-7)
    assert result.objective == pytest.approx(0.347621, abs=5e-7)
    assert result.multiplier * 8 == pytest.approx(1.773220, abs=5e-7)
    assert result.probabilities is None
    assert result.converged
    assert 1 <= result.iterations <= 10


@pytest.mark.parametrize("case", range(3))
def test_reference_baselines(case):
    known = reference("greedy_deterministic")[case]
    rng = np.random.default_rng(known["seed"])
    change_rate, importance = rng.random(known["m"]), rng.random(known["m"])
    np.testing.assert_array_equal(change_rate[:3], known["Delta_first3"])
    np.testing.assert_array_equal(importance[:3], known["mu_first3"])
    result = solvers.binary_periodic(importance, change_rate, 100.0)
    assert result.objective == pytest.approx(known["baseline"], rel=1e-12)
    assert result.multiplier == pytest.approx(known["baseline_Lambda"], rel=1e-10)


@settings(max_examples=300, deadline=None)
@given(cost=st.floats(-30.0, 0.0))
@example(cost=0.0)
def test_interval_is_a_lambert_function(cost):
    s = min(math.sqrt(2.0 * 10.0**cost), math.nextafter(lambert.NEVER, 0.0))
    with mpmath.workdps(50):
        rest = 1 - mpmath.mpf(s) ** 2 / 2
        exact = -1 - mpmath.lambertw(-rest / mpmath.e, -1).real
        # one unit in the last place of s is all that can be asked for where x climbs steeply
        slope = mpmath.mpf(s) * (1 + exact) / (exact * rest)
        allowed = 4e-15 * exact + slope * s * 3e-16
    assert abs(lambert.interval(s) - exact) <= allowed
    assert abs(lambert.fast_interval(s, lambert.pieces()) - exact) <= allowed


def test_series_coefficients_follow_from_the_equation():
    # (1 - s^2/2) x x' = s (1 + x), coefficient by coefficient
    series = np.polynomial.Polynomial([0.0, *lambert.BRANCH_SERIES])
    left = np.polynomial.Polynomial([1.0, 0.0, -0.5]) * series * series.deriv()
    right = np.polynomial.Polynomial([0.0, 1.0]) * (1.0 + series)
    degree = len(lambert.BRANCH_SERIES)
    np.testing.assert_allclose(left.coef[:degree], right.coef[:degree], atol=1e-14)


def test_twins_share_even_where_the_multiplier_cannot_tell():
    result = solvers.binary_periodic([1.0, 1.0, 1.0], [1.0, 1.0, 1e-12], 1e-3)
    assert result.rates[0] == result.rates[1]
    assert result.rates.sum() == pytest.approx(1e-3, rel=1e-12)


def test_freshness_by_hand():
    half = (1.0 - math.exp(-2.0)) / 2.0
    assert solvers.periodic_freshness([1.0, 1.0, 2.0], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0]) == (
        pytest.approx((half + 2.0) / 4.0)
    )


@pytest.mark.parametrize("costs", [None, [1.0, 2.0, 0.5, 1.0, 3.0, 1.0]])
@pytest.mark.parametrize("share", [0.3, 0.97])
def test_floors_per_page_against_a_general_optimiser(share, costs):
    """With a page of no importance, one that never changes, and floors that raise others."""
    importance = np.array([5.0, 1.0, 0.2, 0.0, 2.0, 1.0])
    change_rate = np.array([0.4, 3.0, 2.0, 1.0, 0.5, 0.0])
    cost = np.ones(6) if costs is None else np.array(costs)
    floor = np.array([0.0, 0.3, 1.0, 0.2, 0.1, 0.4])
    bandwidth = floor @ cost / share
    result = solvers.binary_periodic(importance, change_rate, bandwidth, costs, floor=floor)

    def lost(rates):
        return -solvers.periodic_freshness(importance, change_rate, np.maximum(rates, 0.0))

    best = minimize(
        lost,
        floor + (bandwidth - floor @ cost) / cost.sum(),
        bounds=[(low, None) for low in floor],
        constraints={"type": "eq", "fun": lambda rates: rates @ cost - bandwidth},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert result.converged
    assert np.all(result.rates >= floor)
    assert result.rates @ cost == pytest.approx(bandwidth, rel=1e-12)
    assert result.objective == pytest.approx(-best.fun, abs=1e-9)
    np.testing.assert_allclose(result.rates, best.x, atol=1e-4)
    assert (result.rates[[2, 3, 5]] == floor[[2, 3, 5]]).all()


def test_floors_may_take_all_of_the_bandwidth_or_be_below_every_rate():
    importance, change_rate = [1.0, 2.0, 3.0], [1.0, 2.0, 0.5]
    result = solvers.binary_periodic(importance, change_rate, 0.6, floor=[0.1, 0.2, 0.3])
    np.testing.assert_allclose(result.rates, [0.1, 0.2, 0.3], rtol=1e-12)
    free = solvers.binary_periodic(importance, change_rate, 3.0)
    low = solvers.binary_periodic(importance, change_rate, 3.0, floor=free.rates / 2.0)
    np.testing.assert_array_equal(low.rates, free.rates)
    assert (low.objective, low.multiplier) == (free.objective, free.multiplier)
    with pytest.raises(ValueError, match="floor must cost at most the bandwidth, 0"):
        solvers.binary_periodic(importance, change_rate, 0.5, floor=[0.1, 0.2, 0.3])
