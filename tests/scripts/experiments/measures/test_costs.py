"""Costs of LambdaCrawl's policies, against independent code, integrals and duals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import exp1

from policies import solvers
from scripts.experiments.measures import costs as crawl_costs
from scripts.experiments.measures.costs import (
    BINARY_BOUND,
    BINARY_OPT,
    BLC,
    BLC_EPS,
    BOUND,
    CC,
    INFINITE,
    J_B,
    J_H,
    LC,
    LCA,
    STARVED,
    UC,
    UNOBSERVED,
    Pages,
)
from tests.reference import reference

NAMES = {LC: "LC_mixed", LCA: "LCA_mixed", BLC: "BLC", BLC_EPS: "BLC_eps0.4", CC: "CC", UC: "UC"}


def pages_of(seed: int, num_pages: int = 12) -> Pages:
    rng = np.random.default_rng(seed)
    complete = rng.random(num_pages) < 0.4
    complete[:2] = [True, False]
    return Pages(rng.uniform(0.2, 3.0, num_pages), rng.uniform(0.1, 4.0, num_pages), complete)


@pytest.mark.parametrize("label", NAMES)
def test_costs_agree_with_independent_code(label: str) -> None:
    for case in reference("lambdacrawl"):
        pages = Pages(
            *(np.array(case[name], float) for name in ("mu", "Delta")),
            np.array(case["complete"], bool),
        )
        result = crawl_costs.formula_costs(label, pages, case["R"])
        expected = case["policies"][NAMES[label]]
        assert result[J_B] == pytest.approx(expected["bin"], rel=1e-8)
        if expected["harm"] == "inf":
            assert (result[INFINITE], result[STARVED] > 0.0) == (1.0, True)
            assert np.isnan(result[J_H])
        else:
            assert result[J_H] == pytest.approx(expected["harm"], rel=1e-8)
            assert (result[INFINITE], result[STARVED]) == (0.0, 0.0)


def test_costs_of_complete_pages_agree_with_independent_code() -> None:
    for case in reference("lambdacrawl"):
        kept = np.array(case["complete"], bool)
        pages = Pages(np.array(case["mu"])[kept], np.array(case["Delta"])[kept], kept[kept])
        expected = case["policies"]["LC_CO_half"]
        result = crawl_costs.formula_costs(LC, pages, expected["R"])
        assert result[J_H] == pytest.approx(expected["harm"], rel=1e-8)
        assert result[J_B] == pytest.approx(expected["bin"], rel=1e-8)


def test_costs_of_given_rates_are_the_formulas() -> None:
    pages = Pages(np.array([2.0, 3.0]), np.array([0.5, 4.0]), np.array([False, True]))
    rates, chances = np.array([0.25, 1.0]), np.array([0.0, 0.25])
    result = crawl_costs.poisson_costs(pages, rates, chances)
    assert result[J_H] == pytest.approx(2.0 * np.log(3.0) + 3.0 * np.log(4.0))
    assert result[J_B] == pytest.approx(2.0 * 0.5 / 0.75 + 3.0 * 0.75)
    unheard = crawl_costs.poisson_costs(pages, rates, None)
    assert unheard[J_H] == pytest.approx(2.0 * np.log(3.0) + 3.0 * np.log(5.0))
    assert unheard[J_B] == pytest.approx(2.0 * 0.5 / 0.75 + 3.0 * 4.0 / 5.0)


def test_an_unknown_policy_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"label must be one of .*, got 'LCX'"):
        crawl_costs.allocated("LCX", pages_of(0), 1.0)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_binary_optimum_meets_its_dual(seed: int, share: float) -> None:
    """No plan is cheaper than the dual at any multiplier, so that equality proves both."""
    pages = pages_of(seed)
    complete = np.random.default_rng(seed).random(12) < share
    pages = pages._replace(complete=complete)
    importance, change_rate, _ = pages
    bandwidth = 0.15 * float(change_rate.sum())

    def dual(log_multiplier: float) -> float:
        price = np.exp(log_multiplier)
        slow = np.maximum(np.sqrt(importance * change_rate / price) - change_rate, 0.0)
        alone = importance * change_rate / (slow + change_rate) + price * slow
        answered = np.minimum(importance, price * change_rate)
        return float(np.where(complete, answered, alone).sum() - price * bandwidth)

    result = crawl_costs.allocated(BINARY_OPT, pages, bandwidth)
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-12)
    assert result.rates.min() >= 0.0
    assert np.all(result.rates[complete] <= change_rate[complete] * (1.0 + 1e-12))
    cost = crawl_costs.formula_costs(BINARY_OPT, pages, bandwidth)[J_B]
    best = minimize_scalar(lambda x: -dual(x), bounds=(-12.0, 6.0), options={"xatol": 1e-11})
    assert cost == pytest.approx(-best.fun, rel=1e-9)
    assert dual(np.log(result.multiplier)) == pytest.approx(cost, rel=1e-9)
    assert (1.0 - result.objective) * importance.sum() == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_costs_of_the_bound_are_integrals_over_a_cycle(seed: int) -> None:
    pages = pages_of(seed)
    bandwidth = 0.4 * pages.importance.size
    result = crawl_costs.formula_costs(BOUND, pages, bandwidth)
    plan = solvers.harmonic_periodic(*pages[:2], bandwidth, complete=pages.complete)
    harmonic = binary = 0.0
    for mu, delta, complete, rate in zip(*pages, plan.rates, strict=True):
        if complete:  # n signals per crawl, or a mixture of n and n + 1 of them
            n = int(np.floor(delta / rate + 1e-9))
            share = delta / rate - n  # of cycles with n + 1
            waits = [1.0 / delta] * n + [share / delta]  # mean time with 0, 1, .. changes
            times = [0.0, *np.cumsum(1.0 / np.arange(1, n + 1))]
            harmonic += mu * rate * float(np.dot(waits, times[: len(waits)]))
            binary += mu * rate * sum(waits[1:])
        else:
            end = 1.0 / rate
            ein = quad(lambda t, d=delta: np.euler_gamma + np.log(d * t) + exp1(d * t), 0.0, end)
            stale = quad(lambda t, d=delta: 1.0 - np.exp(-d * t), 0.0, end)
            harmonic += mu * rate * ein[0]
            binary += mu * rate * stale[0]
    assert result[J_H] == pytest.approx(harmonic, rel=1e-7)
    assert result[J_B] == pytest.approx(binary, rel=1e-7)


def test_binary_bounds_agree_without_signals_and_with_none_sent() -> None:
    instance = crawl_costs.drawn(0, 40, UNOBSERVED)
    stale = 1.0 - solvers.ncis(instance).objective
    result = crawl_costs.both_costs(BINARY_BOUND, instance)
    assert result == pytest.approx({J_B: stale * instance.importance.sum()}, rel=1e-6)
