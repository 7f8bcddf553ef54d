"""Binary freshness under random crawls: golden values, Azar's algorithm, optimality, floors."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from policies import solvers
from tests.naive import solvers as naive_solvers
from tests.reference import reference

IMPORTANCE, CHANGE_RATE = np.array([1.0, 2.0, 4.0, 1.0]), np.array([0.1, 0.5, 2.0, 5.0])


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


@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize(("name", "floor"), [("BLC", 0.0), ("BLC_eps0.4", 0.4)])
def test_reference(case, name, floor):
    known = reference("lambdacrawl")[case]
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


def test_floor_of_one_is_uniform():
    result = solvers.binary_poisson(IMPORTANCE, CHANGE_RATE, 1.0, 1.0)
    np.testing.assert_allclose(result.rates, 0.25, rtol=1e-15)
    best = (IMPORTANCE / 8 * CHANGE_RATE / (CHANGE_RATE + 0.25) ** 2).max()
    assert result.multiplier == pytest.approx(best, rel=1e-12)
