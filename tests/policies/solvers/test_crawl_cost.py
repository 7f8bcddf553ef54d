"""Pages whose crawls differ in cost: other optimisers, conditions of optimality, units, errors."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, minimize_scalar

from crawl_envs import Instance
from policies import solvers, values
from policies.values.divergence.curves import HolisticCurves
from policies.values.divergence.tabulated import TabulatedCurves
from tests.policies.solvers.problems import PROBLEMS, every_other, loss_of, weights_of
from tests.policies.solvers.test_fragments import mixed
from tests.policies.solvers.test_ncis import shares, slack

every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)

SIZE = 7
MASK = every_other(SIZE)


def drawn(seed):
    """Importance, change rates below 1, and costs from 0.1 to 10."""
    rng = np.random.default_rng(seed)
    return rng.random(SIZE) + 0.01, rng.uniform(0.05, 0.95, SIZE), 10.0 ** rng.uniform(-1, 1, SIZE)


def noisy(seed, num_sources=1):
    rng = np.random.default_rng(seed)
    importance, change_rate, _ = drawn(seed)
    recall = rng.uniform(0.1, 0.8, (num_sources, SIZE)) / num_sources
    false_rate = rng.uniform(0.1, 0.6, (num_sources, SIZE))
    return Instance(importance, change_rate, recall, false_rate, bandwidth=3.0)


def solver_calls(seed):
    """Every solver as a function of the cost, and of the budget per unit of cost."""
    importance, change, _ = drawn(seed)
    pages = importance, change
    curves = mixed(np.random.default_rng(seed), SIZE)
    calls = {
        name: partial(solve, *pages)
        for name, solve in {
            "periodic": solvers.binary_periodic,
            "random": partial(solvers.binary_poisson, floor=0.3),
            "steps": partial(solvers.binary_discrete, ceiling=0.4),
            "harmonic": partial(solvers.harmonic, complete=MASK),
            "approximate": partial(solvers.harmonic_approx, complete=MASK),
            "harmonic periodic": partial(solvers.harmonic_periodic, complete=MASK),
            "concave": partial(solvers.concave_penalty, penalty=[0.0, 1.0, 1.5], complete=MASK),
        }.items()
    }
    calls["fragments"] = partial(solvers.fragments, curves, importance)
    for sources in (1, 2):
        calls[f"ncis, {sources}"] = partial(solvers.ncis, noisy(seed, sources), floor=0.01)
    return calls


every_solver = pytest.mark.parametrize("name", solver_calls(0))


@every_solver
@pytest.mark.parametrize("budget", [0.5, 50.0])
def test_costs_of_one_change_no_bit(name, budget):
    solve = solver_calls(3)[name]
    plain = dataclasses.asdict(solve(budget))
    for cost in (None, 1, np.ones(SIZE)):
        priced = dataclasses.asdict(solve(budget, cost=cost))
        for field, value in plain.items():
            np.testing.assert_array_equal(priced[field], value, strict=True)


@every_solver
@pytest.mark.parametrize("unit", [1e-6, 3.0, 1e6])
def test_the_unit_of_cost_does_not_matter(name, unit):
    solve, (*_, cost) = solver_calls(4)[name], drawn(4)
    result, scaled = solve(2.0, cost=cost), solve(2.0 * unit, cost=unit * cost)
    assert cost @ result.rates == pytest.approx(2.0, rel=1e-9)
    np.testing.assert_allclose(scaled.rates, result.rates, rtol=1e-8)
    assert scaled.multiplier * unit == pytest.approx(result.multiplier, rel=1e-8)
    assert scaled.objective == pytest.approx(result.objective, rel=1e-11)
    if result.thresholds is not None:
        np.testing.assert_allclose(scaled.thresholds, result.thresholds, rtol=1e-8)


@every_problem
@pytest.mark.parametrize("seed", range(4))
def test_no_general_optimiser_finds_less(problem, seed):
    importance, change, cost = drawn(seed)
    usable = np.minimum(problem.most_of(change), 1.0)
    budget = float((0.2 + 0.2 * seed) * (cost @ usable))
    most = np.minimum(problem.most_of(change), budget / cost)
    result = problem.solve(importance, change, budget, cost=cost)
    weight, least = weights_of(problem, importance), problem.least * budget / cost.sum()
    general = minimize(
        lambda rates: problem.loss(weight, change, rates),
        np.maximum(usable * (budget / (cost @ usable)), least),
        jac=lambda rates: -problem.gain(weight, change, rates),
        bounds=[(min(max(least, 1e-9), one), one) for one in most],
        constraints={
            "type": "eq",
            "fun": lambda rates: cost @ rates / budget - 1.0,
            "jac": lambda rates: cost / budget,
        },
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert cost @ result.rates == pytest.approx(budget, rel=1e-9)
    assert loss_of(problem, result) <= general.fun * (1.0 + 1e-9)
    assert loss_of(problem, result) == pytest.approx(general.fun, rel=1e-6)
    np.testing.assert_allclose(result.rates, general.x, atol=3e-3 * general.x.max())
    inner = (result.rates > least * (1 + 1e-9)) & (result.rates < most * (1 - 1e-9))
    with np.errstate(divide="ignore"):  # at rate 0
        gain = problem.gain(weight, change, result.rates) / cost
    np.testing.assert_allclose(gain[inner], result.multiplier, rtol=1e-7)
    assert np.all(gain[result.rates >= most] >= result.multiplier * (1 - 1e-7))
    assert np.all(result.rates >= least * (1.0 - 1e-15))
    assert inner.sum() >= (0 if problem.least == 0.99 else 1)


def test_pages_that_change_in_every_step_are_ranked_by_importance_per_cost():
    cost = [4.0, 1.0, 2.0, 0.5]
    result = solvers.binary_discrete([4.0, 3.0, 2.0, 0.1], 1.0, 4.0, cost=cost)  # 1, 3, 1, 0.2
    np.testing.assert_allclose(result.rates, [0.5, 1.0, 0.5, 0.0], rtol=1e-12)
    assert result.multiplier == pytest.approx(1.0 / 9.1, rel=1e-12)
    assert result.objective == pytest.approx((2.0 + 3.0 + 1.0) / 9.1, rel=1e-12)
    enough = solvers.binary_discrete(1.0, 0.4, 3.7, ceiling=0.5, cost=cost)
    assert enough.multiplier > 0.0
    enough = solvers.binary_discrete(1.0, 0.4, 3.76, ceiling=0.5, cost=cost)
    np.testing.assert_array_equal(enough.rates, 0.5)
    assert enough.multiplier == 0.0


def test_the_split_of_the_approximation_is_the_best():
    importance, change, cost = drawn(5)
    result = solvers.harmonic_approx(importance, change, 2.0, MASK, cost)

    def both(blind):
        rates = importance / importance[~MASK].sum() * blind / cost
        signalled = (importance[MASK], change[MASK], 2.0 - blind, True, cost[MASK])
        rates[MASK] = solvers.harmonic(*signalled).rates
        return solvers.harmonic_cost(importance, change, rates, complete=MASK), rates

    best = minimize_scalar(lambda blind: both(blind)[0], bounds=(1e-6, 2.0 - 1e-6))
    assert result.objective == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(result.rates, both(best.x)[1], rtol=1e-3)
    np.testing.assert_allclose(result.probabilities, np.where(MASK, result.rates / change, 0.0))
    signalled, known = (
        solve(importance, change, 2.0, True, cost)
        for solve in (solvers.harmonic_approx, solvers.harmonic)
    )
    np.testing.assert_array_equal(signalled.rates, known.rates)


def test_numbers_of_signals_against_a_linear_programme():
    importance, change, cost = (column[:3] for column in drawn(6))
    number = np.arange(1, 200)
    harmonic = np.cumsum(1.0 / number)
    for budget in (0.1, 0.37, 0.9 * float(cost @ change)):
        loss = importance[:, None] * (harmonic - 1.0)  # mean of H(0), ..., H(n - 1)
        spends = (cost * change)[:, None] / number
        best = linprog(
            loss.ravel(),
            A_ub=[spends.ravel()],
            b_ub=[budget],
            A_eq=np.kron(np.eye(3), np.ones(199)),
            b_eq=np.ones(3),
        )
        result = solvers.harmonic_periodic(importance, change, budget, True, cost)
        assert result.objective == pytest.approx(best.fun, rel=1e-9)
        assert cost @ result.rates == pytest.approx(budget, rel=1e-9)
        assert result.multiplier == pytest.approx(-best.ineqlin.marginals[0], rel=1e-7)
    ample = solvers.harmonic_periodic(importance, change, 2.0 * float(cost @ change), True, cost)
    np.testing.assert_allclose(ample.rates, change, rtol=1e-15)
    assert (ample.multiplier, ample.objective) == (0.0, 0.0)


def test_concave_penalties_are_the_other_problems():
    importance, change, cost = drawn(7)
    pages = importance, change, 1.5
    stale = solvers.concave_penalty(*pages, [0.0, 1.0], cost=cost)
    known = solvers.binary_poisson(*pages, cost=cost)
    np.testing.assert_allclose(stale.rates, known.rates, rtol=1e-8, atol=1e-9)
    missed = solvers.concave_penalty(
        *pages, np.append(0.0, np.cumsum(1.0 / np.arange(1, 20_000))), MASK, cost
    )
    harmonic = solvers.harmonic(*pages, MASK, cost)
    np.testing.assert_allclose(missed.rates, harmonic.rates, rtol=1e-6)
    np.testing.assert_allclose(missed.probabilities, harmonic.probabilities, rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_utility_of_fragments_per_cost(seed):
    importance, change, cost = drawn(seed)
    known = solvers.binary_periodic(importance, change, 2.0, cost)
    holistic = solvers.fragments(HolisticCurves(change), importance, 2.0, cost)
    np.testing.assert_allclose(holistic.rates, known.rates, rtol=1e-9, atol=1e-9)
    assert holistic.objective == pytest.approx(known.objective, rel=1e-12)
    curves, weight = mixed(np.random.default_rng(seed), SIZE), importance / importance.sum()
    result = solvers.fragments(curves, importance, 2.0, cost)
    crawled = result.rates > 0.0
    gain = weight * curves.utility(result.thresholds) / cost
    np.testing.assert_allclose(gain[crawled], result.multiplier, rtol=1e-8)
    assert np.all((weight * curves.ceiling / cost)[~crawled] <= result.multiplier * (1 + 1e-9))
    np.testing.assert_allclose(result.thresholds[crawled] * result.rates[crawled], 1.0)


def test_bandwidth_beyond_use_is_what_the_pages_cost():
    curves = TabulatedCurves([1.0, 4.0], [[0.0, 0.5], [0.0, 0.2]])  # no divergence before age 1
    scarce, ample = (solvers.fragments(curves, 1.0, bandwidth, [2.0, 4.0]) for bandwidth in (3, 7))
    assert scarce.rates @ [2.0, 4.0] == pytest.approx(3.0, rel=1e-9)
    assert scarce.multiplier > 0.0
    np.testing.assert_allclose(ample.rates, 1.0, rtol=1e-9)
    assert ample.multiplier == 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_thresholds_solve_the_price_of_each_page(seed, floor):
    instance, (*_, cost) = noisy(seed), drawn(seed)
    result = solvers.ncis(instance, floor=floor, cost=cost)
    assert result.converged
    assert cost @ result.rates == pytest.approx(3.0, rel=1e-9)
    assert np.all(result.rates >= floor)
    known = {
        "change_rate": instance.change_rate,
        "recall": instance.recall,
        "false_signal_rate": instance.false_signal_rate,
    }
    gain = values.greedy_ncis(result.thresholds, importance=shares(instance), **known) / cost
    free = result.rates > floor * (1.0 + 1e-9)
    np.testing.assert_allclose(gain[free], result.multiplier, rtol=1e-8)
    assert np.all(gain[~free] <= result.multiplier * (1.0 + 1e-8))
    timed = np.isfinite(result.thresholds)
    lengths = values.cycle_length(result.thresholds, **known)
    np.testing.assert_allclose(result.rates[timed] * lengths[timed], 1.0, rtol=1e-8)
    if floor == 0.0:
        assert slack(instance, result, cost) == pytest.approx(0.0, abs=1e-9)


def test_rounding_does_not_fall_below_a_floor():
    pages = Instance([1.0, 1e-6], [0.5, 0.3], 0.4, 0.2, bandwidth=3.0)
    rates = solvers.ncis(pages, floor=0.2, cost=[1.0, 0.7]).rates  # 0.2 * 0.7 / 0.7 < 0.2
    assert rates[1] == 0.2
    rates = solvers.binary_poisson([1.0, 0.0], 1.0, 1.7, 0.2, [1.0, 0.7]).rates
    assert rates[1] == 0.2


def test_floors_of_useless_pages_are_paid():
    page = Instance([1.0, 1.0, 0.0], [0.5, 0.0, 0.3], 0.4, 0.2, bandwidth=3.0)
    result = solvers.ncis(page, floor=0.2, cost=[2.0, 4.0, 1.0])
    np.testing.assert_allclose(result.rates, [1.0, 0.2, 0.2], rtol=1e-9)
    np.testing.assert_allclose(result.thresholds[1:], 5.0)
    with pytest.raises(ValueError, match=r"floor must cost at most .* can be 0\.428571"):
        solvers.ncis(page, floor=0.43, cost=[2.0, 4.0, 1.0])


@pytest.mark.parametrize("bandwidth", [0.1, 0.77, 2.1])
def test_pages_at_the_margin_against_a_linear_programme(bandwidth):
    importance, change, false_rate, cost = np.array(
        [[1.0, 2.0, 0.5], [0.5, 0.3, 0.4], [0.1, 0.0, 0.4], [3.0, 1.0, 0.4]]
    )
    instance = Instance(importance, change, 1.0, false_rate, bandwidth=bandwidth)
    result = solvers.ncis(instance, cost=cost)
    gamma, number = change + false_rate, np.arange(1, 400)
    fresh = (1.0 - (false_rate / gamma)[:, None] ** number) * (gamma / change)[:, None] / number
    best = linprog(
        -(shares(instance)[:, None] * fresh).ravel(),
        A_ub=np.vstack(
            [((cost * gamma)[:, None] / number).ravel(), np.kron(np.eye(3), np.ones(399))]
        ),
        b_ub=[bandwidth, 1, 1, 1],
    )
    assert result.objective == pytest.approx(-best.fun, rel=1e-9)
    assert cost @ result.rates == pytest.approx(bandwidth, rel=1e-9)
    ample = solvers.ncis(instance, 2.2, cost=cost)  # 3 * 0.6 + 0.3 + 0.4 * 0.8 = 2.42
    assert ample.multiplier > 0.0
    ample = solvers.ncis(instance, 2.5, cost=cost)
    np.testing.assert_allclose(ample.rates, gamma, rtol=1e-15)
    assert (ample.multiplier, ample.objective, ample.converged) == (0.0, 1.0, True)


@pytest.mark.parametrize("seed", range(3))
def test_several_sources_gain_the_same_per_cost(seed):
    instance, (*_, cost) = noisy(seed, 2), drawn(seed)
    result = solvers.ncis(instance, cost=cost)
    assert cost @ result.rates == pytest.approx(3.0, rel=1e-9)
    more, less = (solvers.ncis(instance, 3.0 + step, cost=cost) for step in (1e-3, -1e-3))
    saved = (more.objective - less.objective) / 2e-3
    assert saved == pytest.approx(result.multiplier, rel=1e-4)
    for page in range(SIZE):  # the best evidence at the price of this page alone
        alone = Instance(
            1.0,
            instance.change_rate[page],
            instance.recall[:, [page]],
            instance.false_signal_rate[:, [page]],
            bandwidth=max(result.rates[page], 1e-9),
        )
        value = shares(instance)[page] * solvers.ncis(alone).multiplier / cost[page]
        if result.rates[page] > 0.0:
            assert value == pytest.approx(result.multiplier, rel=1e-4)
        else:
            assert value <= result.multiplier * (1.0 + 1e-4)


def test_the_cost_of_a_problem_is_used_unless_there_is_an_argument():
    instance, (*_, cost) = noisy(1), drawn(1)
    problem = instance.problem()
    object.__setattr__(problem, "cost", cost)
    known = solvers.ncis(instance, cost=cost).rates
    np.testing.assert_array_equal(solvers.ncis(problem).rates, known)
    other = solvers.ncis(problem, cost=1.0).rates
    np.testing.assert_array_equal(other, solvers.ncis(instance).rates)
    assert abs(known - other).max() > 0.01


@every_solver
@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (0.0, r"cost must lie in \[1e-12, 1e\+12\], got 0.0"),
        ([1.0] * (SIZE - 1) + [-2.0], r"cost must lie in \[1e-12, 1e\+12\], got -2.0"),
        (np.nan, r"cost must lie in \[1e-12, 1e\+12\], got nan"),
        (1e13, "got 10000000000000.0; try another unit"),
        ([1.0, 2.0], rf"cost must be a scalar or have shape \({SIZE},\), got shape \(2,\)"),
        ([1.0] * 9, rf"cost must be a scalar or have shape \({SIZE},\), got shape \(9,\)"),
        ("dear", "cost must be a number or an array of numbers"),
    ],
)
def test_bad_costs(name, cost, message):
    with pytest.raises(ValueError, match=message):
        solver_calls(0)[name](1.0, cost=cost)


def test_scalars_take_the_shape_of_the_costs():
    result = solvers.harmonic(1.0, 1.0, 3.0, cost=[1.0, 4.0])
    assert result.rates @ [1.0, 4.0] == pytest.approx(3.0, rel=1e-12)
    assert result.rates[0] > result.rates[1]
