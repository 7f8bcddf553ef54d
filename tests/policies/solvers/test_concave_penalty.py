"""Any concave penalty: the known optima, a general optimiser, plain sums, simulated counts."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import digamma

from policies import solvers
from policies.solvers.concave_penalties import penalty_curves
from scripts.experiments.measures.costs import Pages, best_binary
from tests.policies.solvers.problems import random_pages


def harmonic_numbers(number):
    return digamma(number + 1.0) + np.euler_gamma


PENALTIES = {
    "square root": np.sqrt,
    "logarithm": np.log1p,
    "bounded": lambda number: -np.expm1(-number / 3.0),
    "table": [0.0, 1.0, 1.7, 2.0],
}


def values_of(penalty, count):
    if callable(penalty):
        return penalty(np.arange(count + 1.0))
    return np.concatenate([penalty, np.full(count + 1 - len(penalty), penalty[-1])])


def plain_cost(importance, change_rate, rates, complete, penalty, count=4000):
    """The mean penalty under the geometric law of missed changes; beyond ``count``, the last."""
    values, number = values_of(penalty, count), np.arange(count + 1.0)
    missing = np.where(complete, 1.0 - rates / change_rate, change_rate / (change_rate + rates))
    law = (1.0 - missing[:, None]) * missing[:, None] ** number
    law[:, -1] += missing ** (count + 1.0)
    return float(importance @ (law @ values))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bandwidth", [0.1, 5.0, 300.0])
@pytest.mark.parametrize("signals", [False, True])
def test_of_harmonic_numbers_it_is_lambdacrawl(seed, bandwidth, signals):
    importance, change_rate, mask = random_pages(seed, 60)
    complete = mask if signals else None
    result = solvers.concave_penalty(importance, change_rate, bandwidth, harmonic_numbers, complete)
    known = solvers.harmonic(importance, change_rate, bandwidth, complete)
    np.testing.assert_allclose(result.rates, known.rates, rtol=1e-9)
    assert result.multiplier == pytest.approx(known.multiplier, rel=1e-10)
    assert result.objective == pytest.approx(known.objective, rel=1e-10)
    assert result.converged
    if signals:
        np.testing.assert_allclose(result.probabilities, known.probabilities, rtol=1e-9)
    else:
        assert result.probabilities is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bandwidth", [0.1, 5.0, 300.0])
@pytest.mark.parametrize("penalty", [(0.0, 1.0), lambda number: np.minimum(number, 1.0)])
def test_of_the_first_change_alone_it_is_the_binary_optimum(seed, bandwidth, penalty):
    importance, change_rate, _ = random_pages(seed, 60)
    result = solvers.concave_penalty(importance, change_rate, bandwidth, penalty)
    known = solvers.binary_poisson(importance, change_rate, bandwidth)
    np.testing.assert_allclose(result.rates, known.rates, rtol=1e-8, atol=1e-15)
    assert result.multiplier == pytest.approx(known.multiplier * importance.sum(), rel=1e-8)
    assert result.objective / importance.sum() == pytest.approx(1.0 - known.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_with_signals_too_it_is_the_binary_optimum_of_another_algorithm(seed):
    pages = Pages(*random_pages(seed, 60))
    bandwidth = 0.15 * float(pages.change_rate.sum())
    result = solvers.concave_penalty(*pages[:2], bandwidth, [0.0, 1.0], pages.complete)
    known = best_binary(pages, bandwidth)
    np.testing.assert_allclose(result.rates, known.rates, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("signals", [False, True])
def test_no_general_optimiser_finds_less(name, signals):
    penalty = PENALTIES[name]
    importance, change_rate = np.array([1.0, 2.0, 4.0, 1.0]), np.array([0.3, 0.5, 2.0, 1.5])
    complete = np.array([False, True, False, True]) & signals
    result = solvers.concave_penalty(importance, change_rate, 1.0, penalty, complete)

    def cost(rates):
        return plain_cost(importance, change_rate, rates, complete, penalty)

    least = 1e-2 if name in ("square root", "logarithm") else 0.0  # else the plain sum ends early
    found = minimize(
        cost,
        np.full(4, 0.25),
        method="SLSQP",
        bounds=list(zip(np.full(4, least), np.where(complete, change_rate, 2.0), strict=True)),
        constraints=[{"type": "eq", "fun": lambda rates: rates.sum() - 1.0}],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert result.rates.sum() == pytest.approx(1.0, rel=1e-11)
    assert result.objective == pytest.approx(cost(result.rates), rel=1e-9)
    assert result.objective <= found.fun * (1.0 + 1e-10)
    assert result.objective == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(result.rates, found.x, rtol=1e-3, atol=1e-5)
    given = solvers.concave_penalty_cost(importance, change_rate, found.x, penalty, complete)
    assert given == pytest.approx(found.fun, rel=1e-9)


@pytest.mark.parametrize("changes", [1e-8, 0.02, 1.0, 30.0, 1e4, 1e6])
def test_functions_are_summed_over_all_numbers_of_changes(changes):
    """E sqrt(N) = Li_(-1/2)(q) (1 - q), a polylogarithm; its slope by mpmath's derivative."""
    curves = penalty_curves(np.sqrt)
    with mpmath.workdps(40):
        x = mpmath.mpf(changes)
        q = x / (1 + x)

        def mean(share):
            return (1 - share) * mpmath.polylog(mpmath.mpf(-1) / 2, share)

        cost, slope = mean(q), mpmath.diff(mean, q, h=mpmath.mpf(10) ** -15 * (1 - q) * q)
        saving = q * q * slope
    at = np.array([changes])
    assert curves.cost.evaluate(at)[0] == pytest.approx(float(cost), rel=1e-9)
    assert curves.slope.evaluate(at)[0] == pytest.approx(float(slope), rel=1e-9)
    assert curves.saving.evaluate(at)[0] == pytest.approx(float(saving), rel=1e-9)
    assert curves.at_random(curves.saving.evaluate(at))[0] == pytest.approx(changes, rel=1e-9)


def test_costs_are_means_over_simulated_counts():
    rng, (rate, change) = np.random.default_rng(0), (0.4, 1.5)
    missed = rng.poisson(change * rng.exponential(1.0 / rate, 400_000))
    for penalty in (np.sqrt, np.log1p):
        costs = penalty(missed)
        formula = solvers.concave_penalty_cost(1.0, change, rate, penalty)
        assert abs(costs.mean() - formula) < 4.0 * costs.std() / math.sqrt(len(costs))


def test_only_bounded_penalties_starve_pages():
    importance, change_rate = np.array([1.0, 1.0, 1e-3]), np.array([0.1, 1.0, 50.0])
    for name, starved in {"square root": 0, "logarithm": 0, "bounded": 1, "table": 1}.items():
        result = solvers.concave_penalty(importance, change_rate, 0.5, PENALTIES[name])
        assert np.sum(result.rates == 0.0) == starved, name
        assert math.isfinite(result.objective)


def test_pages_that_need_no_crawl_get_none():
    result = solvers.concave_penalty([1.0, 0.0, 2.0], [0.0, 1.0, 1.0], 0.5, np.sqrt)
    np.testing.assert_allclose(result.rates, [0.0, 0.0, 0.5], rtol=1e-12)
    ample = solvers.concave_penalty([1.0, 2.0], [0.5, 1.0], 9.0, np.sqrt, complete=True)
    np.testing.assert_array_equal(ample.rates, [0.5, 1.0])
    assert (ample.multiplier, ample.objective) == (0.0, 0.0)


def test_a_single_page_gets_the_whole_bandwidth():
    result = solvers.concave_penalty(2.0, 3.0, 0.7, penalty=lambda count: np.sqrt(count))
    np.testing.assert_allclose(result.rates, [0.7], rtol=1e-9)
