"""Binary freshness in discrete time: closed form, other optimisers, a slow twin, extremes."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from policies import solvers
from tests.policies.solvers.problems import PROBLEMS, check_optimal

IMPORTANCE, CHANCE = np.array([1.0, 2.0, 4.0, 1.0]), np.array([0.1, 0.4, 0.7, 0.2])


def freshness(chance, rate):
    """F, but 1 where there is nothing to keep up with."""
    return rate / (rate + chance - rate * chance) if chance > 0.0 else 1.0


def objective(importance, chance, rates):
    pages = zip(importance, chance, rates, strict=True)
    return sum(mu * freshness(delta, rho) for mu, delta, rho in pages) / np.sum(importance)


def twin(importance, chance, budget, ceiling=1.0):
    """Bisection on the multiplier with 40 digits; the rates, and the multiplier.

    Where the rates jump at the multiplier, they are mixed between its two sides.
    """
    with mpmath.workdps(40):
        mu = [mpmath.mpf(float(x)) for x in importance]
        total = mpmath.fsum(mu)
        delta = [mpmath.mpf(float(x)) for x in chance]

        def rates(multiplier):
            result = []
            for m, d in zip(mu, delta, strict=True):
                if m == 0 or d == 0:
                    rate = mpmath.mpf(0)
                elif d == 1:
                    rate = mpmath.mpf(ceiling if m / total > multiplier else 0)
                else:
                    rate = (mpmath.sqrt(m / total * d / multiplier) - d) / (1 - d)
                result.append(min(max(rate, mpmath.mpf(0)), mpmath.mpf(ceiling)))
            return result

        low, high = mpmath.mpf(10) ** -60, mpmath.mpf(10) ** 60
        for _ in range(150):  # to the last digit
            middle = mpmath.sqrt(low * high)
            low, high = (middle, high) if mpmath.fsum(rates(middle)) > budget else (low, middle)
        more, less = rates(low), rates(high)
        step = mpmath.fsum(more) - mpmath.fsum(less)
        share = (budget - mpmath.fsum(less)) / step if step else mpmath.mpf(0)
        mixed = [float(b + share * (a - b)) for a, b in zip(more, less, strict=True)]
        return np.array(mixed), float(low)


# What freshness is


@pytest.mark.parametrize(("chance", "rate"), [(0.3, 0.2), (0.05, 0.6), (0.9, 0.1), (1.0, 0.4)])
def test_freshness_by_simulation(chance, rate):
    rng = np.random.default_rng(1)
    lanes, steps = 4000, 500
    fresh, seen = np.ones(lanes, bool), 0
    for step in range(steps):
        fresh &= rng.random(lanes) >= chance
        fresh |= rng.random(lanes) < rate
        seen += fresh.sum() if step >= 200 else 0
    share = seen / (lanes * 300)
    assert freshness(chance, rate) == pytest.approx(share, abs=3e-3)
    result = solvers.binary_discrete(1.0, [chance] * 5, 5.0 * rate)
    assert result.objective == pytest.approx(freshness(chance, rate), rel=1e-12)


# Optimality


@pytest.mark.parametrize("budget", [0.5, 1.0, 1.3])
def test_closed_form_where_nothing_is_cut(budget):
    root = np.sqrt(IMPORTANCE * CHANCE)
    at = (budget + (CHANCE / (1.0 - CHANCE)).sum()) / (root / (1.0 - CHANCE)).sum()
    rates = (root * at - CHANCE) / (1.0 - CHANCE)
    assert rates.min() > 0.0
    assert rates.max() < 1.0
    result = solvers.binary_discrete(IMPORTANCE, CHANCE, budget)
    np.testing.assert_allclose(result.rates, rates, rtol=1e-12)
    assert result.multiplier * 8.0 == pytest.approx(at**-2, rel=1e-12)
    assert result.objective == pytest.approx(objective(IMPORTANCE, CHANCE, rates), rel=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_slow_twin(seed):
    rng = np.random.default_rng(seed)
    importance, chance = rng.pareto(1.0, 30), rng.beta(0.3, 0.5, 30)
    importance[rng.random(30) < 0.1] = 0.0
    chance[:4] = 0.0, 1.0, 1.0, 1e-9
    for budget, ceiling in ((0.01, 1.0), (1.0, 0.5), (4.0, 1.0), (9.0, 0.7)):
        result = solvers.binary_discrete(importance, chance, budget, ceiling=ceiling)
        rates, multiplier = twin(importance, chance, budget, ceiling)
        np.testing.assert_allclose(result.rates, rates, rtol=1e-9, atol=1e-11)
        assert result.multiplier == pytest.approx(multiplier, rel=1e-9)
        assert result.objective == pytest.approx(objective(importance, chance, rates), rel=1e-11)


@pytest.mark.parametrize("step", [1e-3, 1e-5, 1e-7])
def test_short_steps_are_continuous_time(step):
    rng = np.random.default_rng(5)
    importance, change_rate = rng.random(50), rng.lognormal(-1.0, 1.5, 50)
    chance = -np.expm1(-change_rate * step)
    result = solvers.binary_discrete(importance, chance, 10.0 * step)
    limit = solvers.binary_poisson(importance, change_rate, 10.0)
    np.testing.assert_allclose(result.rates / step, limit.rates, atol=30.0 * step)
    assert result.objective == pytest.approx(limit.objective, abs=30.0 * step)
    assert result.multiplier * step == pytest.approx(limit.multiplier, rel=30.0 * step)


# Pages that always change, and other edges


def test_pages_that_always_change_get_all_or_nothing():
    result = solvers.binary_discrete([3.0, 2.0, 2.0, 1.0], 1.0, 1.5)
    np.testing.assert_allclose(result.rates, [1.0, 0.25, 0.25, 0.0], rtol=1e-14)
    assert result.multiplier == pytest.approx(2.0 / 8.0, rel=1e-14)
    assert result.objective == pytest.approx((3.0 + 2.0 * 0.5) / 8.0, rel=1e-14)
    assert result.converged


def test_a_jump_that_others_share():
    importance, chance = np.array([1.0, 1.0, 0.5, 4.0]), np.array([1.0, 1.0, 0.3, 0.2])
    rates, _ = twin(importance, chance, 2.0)
    result = solvers.binary_discrete(importance, chance, 2.0)
    np.testing.assert_allclose(result.rates, rates, rtol=1e-12)
    assert 0.0 < result.rates[0] == result.rates[1] < 1.0
    assert result.multiplier == pytest.approx(1.0 / 6.5, rel=1e-14)


@pytest.mark.parametrize(("budget", "ceiling"), [(3.0, 1.0), (2.0, 1.0), (50.0, 0.25)])
def test_what_cannot_be_used_is_not_spent(budget, ceiling):
    result = solvers.binary_discrete(
        [1.0, 2.0, 0.0, 5.0], [0.4, 1.0, 0.3, 0.0], budget, ceiling=ceiling
    )
    np.testing.assert_array_equal(result.rates, [ceiling, ceiling, 0.0, 0.0])
    assert (result.multiplier, result.converged, result.probabilities) == (0.0, True, None)
    value = 1.0 * freshness(0.4, ceiling) + 2.0 * freshness(1.0, ceiling) + 5.0
    assert result.objective == pytest.approx(value / 8.0, rel=1e-14)


def test_counts_with_many_ties():
    rng = np.random.default_rng(2)
    importance = rng.poisson(rng.lognormal(-1.0, 2.0, 5000)) / 30.0
    chance = np.minimum(rng.poisson(rng.lognormal(1.0, 2.0, 5000)) / 30.0, 1.0)
    assert (chance == 1.0).sum() > 200
    for share in (0.001, 0.003, 0.01, 0.03, 0.1, 0.2):
        result = solvers.binary_discrete(importance, chance, 5000 * share)
        check_optimal(PROBLEMS["steps, ceiling 1"], importance, chance, 5000 * share, result)
        alike = np.unique(np.stack([importance, chance]), axis=1, return_inverse=True)[1].ravel()
        for kind in np.unique(alike)[::40]:
            assert np.ptp(result.rates[alike == kind]) == 0.0
