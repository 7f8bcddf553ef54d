"""Binary freshness under random crawls: golden values, Azar's algorithm, optimality, floors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from policies import solvers
from policies.solvers import multiplier
from tests.naive import solvers as naive_solvers

REFERENCE = Path(__file__).resolve().parents[3].parent / "shared" / "reference"
IMPORTANCE, CHANGE_RATE = np.array([1.0, 2.0, 4.0, 1.0]), np.array([0.1, 0.5, 2.0, 5.0])


def conditions_gap(importance, change_rate, least, result):
    """How far, relative to the multiplier, marginal gains are from it where they must not be.

    A rate is known to rounding of Delta + rho, which is what a marginal gain depends on.
    """
    shares = np.asarray(importance) / np.sum(importance)
    gain = shares * change_rate / (change_rate + result.rates) ** 2
    gain[np.asarray(change_rate) == 0.0] = 0.0
    off = gain / result.multiplier - 1.0
    above = result.rates > least * (1.0 + 1e-12)
    return max(np.abs(off[above]).max(initial=0.0), off[~above].max(initial=0.0))


@pytest.mark.parametrize(
    ("floor", "rates", "cost", "harmonic"),
    [
        (0.0, [0.174672, 0.368589, 0.456740, 0.0], 1.442928, math.inf),
        (0.4, [0.167042, 0.344461, 0.388497, 0.1], 1.472110, 3.364740),
    ],
)
def test_golden_values(floor, rates, cost, harmonic):
    result = solvers.binary_poisson(IMPORTANCE, CHANGE_RATE, 1.0, floor)
    np.testing.assert_allclose(result.rates, rates, atol=5e-7)
    pages = IMPORTANCE, CHANGE_RATE, result.rates
    assert solvers.binary_cost(*pages) / 4 == pytest.approx(cost, abs=5e-7)
    assert solvers.harmonic_cost(*pages) / 4 == pytest.approx(harmonic, abs=5e-7)
    assert result.objective == pytest.approx(1.0 - solvers.binary_cost(*pages) / 8, rel=1e-14)
    assert result.probabilities is None
    assert result.converged


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="reference numbers are not at hand")
@pytest.mark.parametrize("case", range(6))
@pytest.mark.parametrize(("name", "floor"), [("BLC", 0.0), ("BLC_eps0.4", 0.4)])
def test_reference(case, name, floor):
    known = json.loads((REFERENCE / "lambdacrawl.json").read_text())[case]
    expected = known["policies"][name]
    importance, change_rate = np.array(known["mu"]), np.array(known["Delta"])
    result = solvers.binary_poisson(importance, change_rate, known["R"], floor)
    np.testing.assert_allclose(result.rates, expected["rho"], rtol=1e-11, atol=1e-13)
    assert result.multiplier * importance.sum() == pytest.approx(expected["lambda"], rel=1e-12)
    cost = solvers.harmonic_cost(importance, change_rate, result.rates)
    assert cost == pytest.approx(float(expected["harm"]), rel=1e-12)
    cost = solvers.binary_cost(importance, change_rate, result.rates)
    assert cost == pytest.approx(expected["bin"], rel=1e-12)
    assert (1.0 - result.objective) * importance.sum() == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bandwidth", [0.1, 5.0, 300.0])
def test_twins_that_sort(seed, bandwidth):
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.pareto(1.5, 60) + 0.1, rng.lognormal(-1.0, 1.5, 60)
    result = solvers.binary_poisson(importance, change_rate, bandwidth)
    twin = naive_solvers.azar(importance, change_rate, bandwidth)
    np.testing.assert_allclose(result.rates, twin, rtol=1e-9, atol=1e-12)
    for floor in (0.0, 0.3, 0.4, 1.0):
        result = solvers.binary_poisson(importance, change_rate, bandwidth, floor)
        twin = naive_solvers.azar_floored(importance, change_rate, bandwidth, floor)
        np.testing.assert_allclose(result.rates, twin, rtol=1e-9, atol=1e-12)
        assert result.rates.min() >= floor * bandwidth / 60 * (1.0 - 1e-15)


@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_against_a_general_optimiser(floor):
    rng = np.random.default_rng(3)
    importance, change_rate = rng.random(7), rng.random(7) * 3
    result = solvers.binary_poisson(importance, change_rate, 2.0, floor)
    general = minimize(
        lambda rates: solvers.binary_cost(importance, change_rate, np.maximum(rates, 0.0)),
        np.full(7, 2.0 / 7),
        bounds=[(floor * 2.0 / 7, 2.0)] * 7,
        constraints={"type": "eq", "fun": lambda rates: rates.sum() - 2.0},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    cost = solvers.binary_cost(importance, change_rate, result.rates)
    assert cost <= general.fun + 1e-12
    assert cost == pytest.approx(general.fun, rel=1e-7)


logarithms = st.floats(-6.0, 6.0)


@settings(max_examples=300, deadline=None)
@given(
    pages=st.lists(st.tuples(logarithms, logarithms), min_size=1, max_size=20),
    budget=st.floats(-6.0, 6.0),
    floor=st.sampled_from([0.0, 1e-6, 0.4, 0.99]),
)
def test_optimality_conditions(pages, budget, floor):
    importance, change_rate = (10.0 ** np.array([page[i] for page in pages]) for i in range(2))
    bandwidth = 10.0**budget
    result = solvers.binary_poisson(importance, change_rate, bandwidth, floor)
    least = floor * bandwidth / len(pages)
    assert result.converged
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-11)
    assert np.all(result.rates >= least * (1.0 - 1e-15))
    assert 0.0 <= result.objective <= 1.0
    assert conditions_gap(importance, change_rate, least, result) < 1e-9


@pytest.mark.parametrize("bandwidth", [1e-12, 1e-3, 1.0, 1e6, 1e12])
def test_ratios_of_a_million_millions(bandwidth):
    rng = np.random.default_rng(7)
    change_rate, importance = 10.0 ** rng.uniform(-12, 12, (2, 60))
    result = solvers.binary_poisson(importance, change_rate, bandwidth)
    assert result.converged
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-11)
    assert conditions_gap(importance, change_rate, 0.0, result) < 1e-9
    assert result.iterations < 60


@pytest.mark.parametrize("weights", [1e-10, 1.0, 1e10])
@pytest.mark.parametrize("rates", [1e-10, 1.0, 1e10])
def test_scales_do_not_matter(weights, rates):
    plain = solvers.binary_poisson(IMPORTANCE, CHANGE_RATE, 1.0, 0.4)
    scaled = solvers.binary_poisson(weights * IMPORTANCE, rates * CHANGE_RATE, rates, 0.4)
    np.testing.assert_allclose(scaled.rates / rates, plain.rates, rtol=1e-12)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-12)


def test_tiny_budgets_are_spent_on_the_best_page():
    result = solvers.binary_poisson([1.0, 2.0, 1.0], [1.0, 1.0, 1.0], 1e-12)
    np.testing.assert_allclose(result.rates, [0.0, 1e-12, 0.0], rtol=1e-12)
    twins = solvers.binary_poisson([2.0, 2.0, 1.0], [1.0, 1.0, 1.0], 1e-12)
    np.testing.assert_allclose(twins.rates, [5e-13, 5e-13, 0.0], rtol=1e-12)


def test_rates_at_the_edge_share_what_rounding_leaves():
    # the slow page equals the rest in value at a rate below the resolution of its own
    with mpmath.workdps(50):
        importance, change_rate = [0.1, 1e12 * (1.0 - 3e-13)], [0.1, 1e12]
        result = solvers.binary_poisson(importance, change_rate, 0.1)
        roots = [mpmath.sqrt(mpmath.mpf(a) * b) for a, b in zip(importance, change_rate)]  # noqa: B905
        price = (mpmath.mpf(0.1) + mpmath.fsum(change_rate)) / mpmath.fsum(roots)
        exact = [root * price - rate for root, rate in zip(roots, change_rate, strict=True)]
    assert result.converged
    assert result.rates.sum() == pytest.approx(0.1, rel=1e-12)
    assert result.rates[0] == pytest.approx(float(max(exact[0], 0)), abs=2e-4)


def test_static_and_unimportant_pages_get_the_floor():
    importance, change_rate = [1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 1.0]
    result = solvers.binary_poisson(importance, change_rate, 2.0, 0.4)
    np.testing.assert_allclose(result.rates[[0, 2]], 0.2)
    assert result.rates.sum() == pytest.approx(2.0, rel=1e-14)
    nothing = solvers.binary_poisson([1.0, 0.0], [0.0, 2.0], 3.0)
    np.testing.assert_array_equal(nothing.rates, [0.0, 0.0])
    assert (nothing.multiplier, nothing.objective, nothing.converged) == (0.0, 1.0, True)


def test_floor_of_one_is_uniform():
    result = solvers.binary_poisson(IMPORTANCE, CHANGE_RATE, 1.0, 1.0)
    np.testing.assert_allclose(result.rates, 0.25, rtol=1e-15)
    best = (IMPORTANCE / 8 * CHANGE_RATE / (CHANGE_RATE + 0.25) ** 2).max()
    assert result.multiplier == pytest.approx(best, rel=1e-12)


def test_multiplier_is_the_gain_of_one_more_crawl():
    step = 1e-6
    result, more, less = (
        solvers.binary_poisson(IMPORTANCE, CHANGE_RATE, 1.0 + d) for d in (0.0, step, -step)
    )
    slope = (more.objective - less.objective) / (2.0 * step)
    assert result.multiplier == pytest.approx(slope, rel=1e-7)


def test_sampled_start_leads_to_the_same_rates(monkeypatch):
    rng = np.random.default_rng(9)
    change_rate, importance = rng.random(30_000), np.sort(rng.random(30_000))
    cold = solvers.binary_poisson(importance, change_rate, 3000.0)
    monkeypatch.setattr(multiplier, "SAMPLED_ABOVE", 5000)
    monkeypatch.setattr(multiplier, "SAMPLE", 1000)
    warm = solvers.binary_poisson(importance, change_rate, 3000.0)
    np.testing.assert_allclose(warm.rates, cold.rates, rtol=1e-9, atol=1e-12)
    importance[::30] = 0.0  # a sample that tells nothing
    assert solvers.binary_poisson(importance, change_rate, 3000.0).converged
    importance[::30] = 1e-3
    importance[7] = 1e9  # a sample too poor to buy anything at the price of the best page
    poor = solvers.binary_poisson(importance, change_rate, 1e-3)
    assert poor.rates[7] == pytest.approx(1e-3, rel=1e-12)


@pytest.mark.parametrize(
    ("importance", "change_rate", "bandwidth", "floor", "message"),
    [
        ([1.0, -1.0], [1.0, 1.0], 1.0, 0.0, "importance must be finite and >= 0, got -1.0"),
        ([1.0, 1.0], [1.0, np.nan], 1.0, 0.0, "change_rate must be finite and >= 0, got nan"),
        ([0.0, 0.0], [1.0, 1.0], 1.0, 0.0, "importance must be positive for at least one page"),
        ([1.0], [1.0], -1.0, 0.0, "bandwidth must be finite and > 0, got -1.0"),
        ([1.0], [1.0], 1.0, -0.1, "floor must be finite and >= 0, got -0.1"),
        ([1.0], [1.0], 1.0, 1.1, r"floor must lie in \[0, 1\]"),
    ],
)
def test_bad_input(importance, change_rate, bandwidth, floor, message):
    with pytest.raises(ValueError, match=message):
        solvers.binary_poisson(importance, change_rate, bandwidth, floor)
