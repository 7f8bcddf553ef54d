"""Optimal rates: golden values, independent optimisers, optimality conditions, degenerate input."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.special import lambertw

from policies import solvers
from policies.solvers import multiplier
from policies.values import lambert

REFERENCE = Path(__file__).resolve().parents[3].parent / "shared" / "reference"


def marginal_value(interval):
    """1 - (1 + x) e^-x without cancellation, in 50 digits."""
    with mpmath.workdps(50):
        x = mpmath.mpf(interval)
        return 1 - (1 + x) * mpmath.exp(-x)


def conditions_gap(importance, change_rate, result):
    """How far, relative to the multiplier, marginal gains are from it where they must not be."""
    shares = np.asarray(importance, dtype=float) / np.sum(importance)
    worst = 0.0
    for share, delta, rate in zip(shares, change_rate, result.rates, strict=True):
        if rate > 0.0:
            gain = float(share / delta * marginal_value(delta / rate))
            worst = max(worst, abs(gain / result.multiplier - 1.0))
        elif delta > 0.0:
            worst = max(worst, share / delta / result.multiplier - 1.0)
    return worst


def test_golden_values():
    result = solvers.binary_periodic([1, 2, 4, 1], [0.1, 0.5, 2.0, 5.0], 1.0)
    np.testing.assert_allclose(result.rates, [0.131377, 0.332584, 0.536039, 0.0], atol=5e-7)
    assert result.objective == pytest.approx(0.347621, abs=5e-7)
    assert result.multiplier * 8 == pytest.approx(1.773220, abs=5e-7)
    assert result.probabilities is None
    assert result.converged
    assert 1 <= result.iterations <= 10


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="reference numbers are not at hand")
@pytest.mark.parametrize("case", range(3))
def test_reference_baselines(case):
    known = json.loads((REFERENCE / "greedy_deterministic.json").read_text())[case]
    rng = np.random.default_rng(known["seed"])
    change_rate, importance = rng.random(known["m"]), rng.random(known["m"])
    np.testing.assert_array_equal(change_rate[:3], known["Delta_first3"])
    np.testing.assert_array_equal(importance[:3], known["mu_first3"])
    result = solvers.binary_periodic(importance, change_rate, 100.0)
    assert result.objective == pytest.approx(known["baseline"], rel=1e-12)
    assert result.multiplier == pytest.approx(known["baseline_Lambda"], rel=1e-10)


def test_against_a_general_optimiser():
    rng = np.random.default_rng(2)
    importance, change_rate = rng.random(6), rng.random(6) * 3
    result = solvers.binary_periodic(importance, change_rate, 2.0)

    def staleness(rates):
        return -solvers.periodic_freshness(importance, change_rate, np.maximum(rates, 0.0))

    general = minimize(
        staleness,
        np.full(6, 2.0 / 6),
        bounds=[(1e-9, 2.0)] * 6,
        constraints={"type": "eq", "fun": lambda rates: rates.sum() - 2.0},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert result.objective >= -general.fun - 1e-12
    assert result.objective == pytest.approx(-general.fun, abs=1e-8)
    np.testing.assert_allclose(result.rates, general.x, atol=1e-3)


def test_against_a_root_per_page():
    rng = np.random.default_rng(5)
    importance, change_rate = rng.random(40), rng.random(40)
    result = solvers.binary_periodic(importance, change_rate, 5.0)
    shares = importance / importance.sum()
    for share, delta, rate in zip(shares, change_rate, result.rates, strict=True):
        cost = result.multiplier * delta / share
        if cost >= 1.0:
            assert rate == 0.0
        else:
            interval = brentq(
                lambda x, cost: -math.expm1(-x) - x * math.exp(-x) - cost, 1e-9, 800.0, args=(cost,)
            )
            assert rate == pytest.approx(delta / interval, rel=1e-9)


log_rates = st.lists(st.floats(-6.0, 6.0), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), change=log_rates, budget=st.floats(-6.0, 6.0))
def test_optimality_conditions(data, change, budget):
    weight = data.draw(st.lists(st.floats(-6, 6), min_size=len(change), max_size=len(change)))
    importance, change_rate = 10.0 ** np.array(weight), 10.0 ** np.array(change)
    result = solvers.binary_periodic(importance, change_rate, 10.0**budget)
    assert result.converged
    assert result.rates.sum() == pytest.approx(10.0**budget, rel=1e-12)
    assert np.all(result.rates >= 0.0)
    assert 0.0 <= result.objective <= 1.0
    assert conditions_gap(importance, change_rate, result) < 1e-8


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


def test_interval_agrees_with_scipy():
    costs = np.linspace(0.02, 0.98, 200)
    exact = -1.0 - lambertw(-(1.0 - costs) / math.e, -1).real
    result = [lambert.fast_interval(math.sqrt(2.0 * cost), lambert.pieces()) for cost in costs]
    np.testing.assert_allclose(result, exact, rtol=1e-12)


def test_series_coefficients_follow_from_the_equation():
    # (1 - s^2/2) x x' = s (1 + x), coefficient by coefficient
    series = np.polynomial.Polynomial([0.0, *lambert.BRANCH_SERIES])
    left = np.polynomial.Polynomial([1.0, 0.0, -0.5]) * series * series.deriv()
    right = np.polynomial.Polynomial([0.0, 1.0]) * (1.0 + series)
    degree = len(lambert.BRANCH_SERIES)
    np.testing.assert_allclose(left.coef[:degree], right.coef[:degree], atol=1e-14)


def test_static_and_unimportant_pages_get_no_crawls():
    result = solvers.binary_periodic([1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 1.0], 2.0)
    assert result.rates[0] == result.rates[2] == 0.0
    alone = solvers.binary_periodic([2.0, 1.0], [1.0, 1.0], 2.0)
    np.testing.assert_allclose(result.rates[[1, 3]], alone.rates, rtol=1e-9)
    assert result.objective == pytest.approx((1.0 + 3.0 * alone.objective) / 4.0, rel=1e-12)


@pytest.mark.parametrize("change_rate", [[0.0, 0.0], [0.0, 2.0]])
def test_nothing_to_crawl(change_rate):
    result = solvers.binary_periodic([1.0, 0.0], change_rate, 3.0)
    np.testing.assert_array_equal(result.rates, [0.0, 0.0])
    assert (result.multiplier, result.objective, result.converged) == (0.0, 1.0, True)


@pytest.mark.parametrize("bandwidth", [1e-12, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e12])
def test_one_page_gets_all(bandwidth):
    result = solvers.binary_periodic(3.0, 2.0, bandwidth)
    assert result.converged
    assert result.rates[0] == pytest.approx(bandwidth, rel=1e-12)
    interval = 2.0 / bandwidth
    assert result.objective == pytest.approx(-math.expm1(-interval) / interval, rel=1e-12)


def test_twins_share_even_where_the_multiplier_cannot_tell():
    result = solvers.binary_periodic([1.0, 1.0, 1.0], [1.0, 1.0, 1e-12], 1e-3)
    assert result.rates[0] == result.rates[1]
    assert result.rates.sum() == pytest.approx(1e-3, rel=1e-12)


@pytest.mark.parametrize("bandwidth", [1e-12, 1e-3, 1.0, 1e6, 1e12])
def test_ratios_of_a_million_millions(bandwidth):
    rng = np.random.default_rng(7)
    change_rate = 10.0 ** rng.uniform(-12, 12, 60)
    importance = 10.0 ** rng.uniform(-12, 12, 60)
    result = solvers.binary_periodic(importance, change_rate, bandwidth)
    assert result.converged
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-12)
    assert conditions_gap(importance, change_rate, result) < 1e-8


def test_sampled_start_leads_to_the_same_rates(monkeypatch):
    rng = np.random.default_rng(9)
    change_rate, importance = rng.random(30_000), rng.random(30_000)
    cold = solvers.binary_periodic(importance, change_rate, 3000.0)
    monkeypatch.setattr(multiplier, "SAMPLED_ABOVE", 5000)
    monkeypatch.setattr(multiplier, "SAMPLE", 1000)
    warm = solvers.binary_periodic(importance, change_rate, 3000.0)
    np.testing.assert_allclose(warm.rates, cold.rates, rtol=1e-6, atol=1e-6)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-12)


def test_scale_of_importance_does_not_matter():
    rates = [
        solvers.binary_periodic(scale * np.array([1.0, 5.0, 2.0]), [1.0, 2.0, 3.0], 1.0).rates
        for scale in (1.0, 1e-11, 1e11)
    ]
    np.testing.assert_allclose(rates[1], rates[0], rtol=1e-9)
    np.testing.assert_allclose(rates[2], rates[0], rtol=1e-9)


def test_freshness_by_hand():
    half = (1.0 - math.exp(-2.0)) / 2.0
    assert solvers.periodic_freshness([1.0, 1.0, 2.0], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0]) == (
        pytest.approx((half + 2.0) / 4.0)
    )


@pytest.mark.parametrize(
    ("importance", "change_rate", "bandwidth", "message"),
    [
        ([1.0, -1.0], [1.0, 1.0], 1.0, "importance must be finite and >= 0, got -1.0"),
        ([1.0, 1.0], [1.0, np.inf], 1.0, "change_rate must be finite and >= 0, got inf"),
        ([0.0, 0.0], [1.0, 1.0], 1.0, "importance must be positive for at least one page"),
        ([1.0, 1.0], [1.0, 1.0, 1.0], 1.0, r"importance must be a scalar .* got shape \(2,\)"),
        ([[1.0]], [1.0], 1.0, r"importance must be a scalar .* got shape \(1, 1\)"),
        ([], [], 1.0, "importance must be a scalar"),
        ([1.0], [1.0], 0.0, "bandwidth must be finite and > 0, got 0.0"),
        ([1.0], [1.0], math.nan, "bandwidth must be finite and > 0, got nan"),
    ],
)
def test_bad_input(importance, change_rate, bandwidth, message):
    with pytest.raises(ValueError, match=message):
        solvers.binary_periodic(importance, change_rate, bandwidth)
