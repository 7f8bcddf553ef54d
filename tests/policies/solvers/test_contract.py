"""What every solver of rates must do: optimality, a general optimiser, extremes, warm starts."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from crawl_envs import Instance
from policies import solvers
from policies.solvers import multiplier
from policies.values.divergence.curves import HolisticCurves
from tests.policies.solvers.problems import (
    PROBLEMS,
    Problem,
    check_optimal,
    harmonic_gain,
    harmonic_loss,
    loss_of,
    weights_of,
)

IMPORTANCE, CHANGE = np.array([1.0, 2.0, 4.0, 1.0]), np.array([0.1, 0.4, 0.7, 0.2])

every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


logarithms = st.floats(-6.0, 6.0).map(lambda x: 10.0**x)
chances = st.one_of(
    st.floats(-9.0, 0.0).map(lambda x: 10.0**x),
    st.floats(-15.0, 0.0).map(lambda x: 1.0 - 10.0**x),
    st.sampled_from([0.0, 0.5, 1.0]),
)


@every_problem
@settings(max_examples=75, deadline=None)
@given(data=st.data(), size=st.integers(1, 20), share=st.floats(-6.0, 6.0))
def test_conditions_of_optimality(problem, data, size, share):
    def draw(strategy):
        return np.array(data.draw(st.lists(strategy, min_size=size, max_size=size)))

    importance = draw(st.one_of(st.just(0.0), logarithms))
    importance[0] = max(importance[0], 1e-6)
    change = draw(chances if problem.chances else st.one_of(st.just(0.0), logarithms))
    budget = 10.0**share
    if problem.chances:
        budget = max(1e-12, budget * problem.most * max(np.count_nonzero(change), 1) * 1e-6)
    result = problem.solve(importance, change, budget)
    check_optimal(problem, importance, change, budget, result)


@every_problem
@pytest.mark.parametrize("share", [1e-12, 1e-6, 1e-3, 0.5, 0.99, 1e6, 1e12])
def test_ratios_of_a_million_millions(problem, share):
    rng = np.random.default_rng(7)
    importance, change = 10.0 ** rng.uniform(-12, 12, 60), 10.0 ** rng.uniform(-12, 12, 60)
    if problem.chances:
        change, share = 10.0 ** rng.uniform(-12, 0, 60), min(60.0 * share, 1e12)
    result = problem.solve(importance, change, share)
    check_optimal(problem, importance, change, share, result)
    assert result.iterations < 60


@every_problem
@pytest.mark.parametrize("seed", range(5))
def test_no_general_optimiser_finds_less(problem, seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 8))
    importance, change = rng.random(size) + 0.01, rng.uniform(0.02, 0.98, size)
    most = np.minimum(problem.most_of(change), 9.0)
    budget = float(rng.uniform(0.1, 0.9) * np.minimum(most, 1.0).sum())
    result = problem.solve(importance, change, budget)
    weight = weights_of(problem, importance)
    least = max(problem.least * budget / size, 1e-9 * budget)
    general = minimize(
        lambda rates: problem.loss(weight, change, rates),
        np.minimum(most, 1.0) * (budget / np.minimum(most, 1.0).sum()),
        jac=lambda rates: -problem.gain(weight, change, rates),
        bounds=[(min(least, one), one) for one in most],
        constraints={
            "type": "eq",
            "fun": lambda rates: rates.sum() - budget,
            "jac": lambda rates: np.ones(size),
        },
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    assert loss_of(problem, result) <= general.fun * (1.0 + 1e-11) + 1e-12
    assert loss_of(problem, result) == pytest.approx(general.fun, rel=1e-8)
    np.testing.assert_allclose(result.rates, general.x, atol=1e-4 * budget)


@every_problem
def test_multiplier_is_the_gain_of_one_more_crawl(problem):
    budget = 0.4 * min(4.0 * problem.most, CHANGE.sum())
    result, more, less = (
        problem.solve(IMPORTANCE, CHANGE, budget * (1.0 + step)) for step in (0.0, 1e-6, -1e-6)
    )
    saved = (loss_of(problem, less) - loss_of(problem, more)) / (2e-6 * budget)
    free = 1.0 - problem.least  # the floor rises with the budget
    expected = result.multiplier * free
    if problem.least:
        gain = problem.gain(weights_of(problem, IMPORTANCE), CHANGE, result.rates)
        expected += problem.least * float(gain.mean())
    assert saved == pytest.approx(expected, rel=3e-7)


@every_problem
@pytest.mark.parametrize("weights", [1e-10, 1e10])
@pytest.mark.parametrize("times", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(problem, weights, times):
    times = 1.0 if problem.chances else times
    budget = 0.4 * min(4.0 * problem.most, CHANGE.sum())
    plain = problem.solve(IMPORTANCE, CHANGE, budget)
    scaled = problem.solve(weights * IMPORTANCE, times * CHANGE, times * budget)
    np.testing.assert_allclose(scaled.rates / times, plain.rates, rtol=1e-3 * problem.accuracy)
    unit = 1.0 if problem.shares else weights
    assert scaled.objective / unit == pytest.approx(plain.objective, rel=1e-12)
    assert scaled.multiplier * times / unit == pytest.approx(plain.multiplier, rel=1e-11)


@every_problem
@pytest.mark.parametrize("budget", [1e-12, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e12])
def test_one_page_gets_all_that_it_can_use(problem, budget):
    change = 0.4 if problem.chances else 2.0
    result = problem.solve(3.0, change, budget)
    most = problem.most_of(np.array([change]))[0]
    assert result.converged
    assert result.rates[0] == pytest.approx(min(budget, most), rel=1e-12)
    loss = float(problem.loss(np.array([1.0 if problem.shares else 3.0]), change, result.rates))
    objective = 1.0 - loss if problem.shares else loss
    assert result.objective == pytest.approx(objective, rel=1e-11, abs=1e-14)


@every_problem
def test_static_and_unimportant_pages_get_no_crawls(problem):
    budget = 0.5 * min(2.0 * problem.most, 0.6)
    result = problem.solve([1.0, 2.0, 0.0, 1.0], [0.0, 0.4, 0.9, 0.2], budget)
    np.testing.assert_allclose(result.rates[[0, 2]], problem.least * budget / 4.0, rtol=1e-15)
    assert result.rates.sum() == pytest.approx(budget, rel=1e-9)
    if problem.least == 0.0 and problem is not PROBLEMS["mixed"]:
        alone = problem.solve([2.0, 1.0], [0.4, 0.2], budget)
        np.testing.assert_allclose(result.rates[[1, 3]], alone.rates, rtol=1e-9)
        share = 0.75 if problem.shares else 1.0
        expected = share * loss_of(problem, alone)
        assert loss_of(problem, result) == pytest.approx(expected, rel=1e-9)
    nothing = problem.solve([1.0, 0.0], [0.0, 0.5], 3.0)
    np.testing.assert_allclose(nothing.rates, problem.least * 1.5, rtol=1e-15)
    assert (nothing.multiplier, loss_of(problem, nothing), nothing.converged) == (0.0, 0.0, True)


@every_problem
def test_a_sampled_start_leads_to_the_same_rates(problem, monkeypatch):
    rng = np.random.default_rng(9)
    importance, change = np.sort(rng.random(30_000)), rng.random(30_000)
    budgets = (3000.0 * min(problem.most, 1.0), 3.0 * min(problem.most, 1.0))
    if problem.chances:
        change[::7] = 1.0
    cold = [problem.solve(importance, change, budget).rates for budget in budgets]
    monkeypatch.setattr(multiplier, "SAMPLED_ABOVE", 5000)
    monkeypatch.setattr(multiplier, "SAMPLE", 1000)
    for budget, rates in zip(budgets, cold, strict=True):
        warm = problem.solve(importance, change, budget)
        np.testing.assert_allclose(warm.rates, rates, rtol=1e-9, atol=2e-9 * rates.max())
    importance[::30] = 0.0  # a sample that tells nothing
    assert problem.solve(importance, change, budgets[0]).converged
    importance[::30] = 1e-3
    importance[7] = 1e9  # a sample too poor to buy anything at the price of the best page
    poor = problem.solve(importance, change, 1e-4)
    check_optimal(problem, importance, change, 1e-4, poor)


@every_problem
def test_a_search_that_ends_early_is_not_converged(problem, monkeypatch):
    if problem is PROBLEMS["periodic"]:
        pytest.skip("its rates are scaled to the budget")
    rng = np.random.default_rng(0)
    importance, change = rng.random(50), rng.random(50)
    budget = 0.4 * min(50.0 * problem.most, change.sum())
    assert problem.solve(importance, change, budget).converged
    monkeypatch.setattr(multiplier, "MAX_ITERATIONS", 1)
    monkeypatch.setattr(multiplier, "mix", lambda *_: None)
    stopped = problem.solve(importance, change, budget)
    assert (stopped.iterations, stopped.converged) == (2, False)
    assert abs(stopped.rates.sum() / budget - 1.0) > 1e-9


@every_problem
def test_arguments_are_left_alone_and_may_be_read_only(problem):
    importance, change = IMPORTANCE.copy(), CHANGE.copy()
    importance.flags.writeable = change.flags.writeable = False
    budget = 0.4 * min(4.0 * problem.most, CHANGE.sum())
    result = problem.solve(importance, change, budget)
    again = problem.solve(IMPORTANCE[::-1][::-1].astype(np.float32), list(CHANGE), budget)
    np.testing.assert_allclose(result.rates, again.rates, rtol=1e-14)


@pytest.mark.parametrize(
    "problem",
    [
        *PROBLEMS.values(),
        Problem(solvers.harmonic_approx, harmonic_gain, harmonic_loss),
        Problem(partial(solvers.concave_penalty, penalty=np.sqrt), harmonic_gain, harmonic_loss),
    ],
)
@pytest.mark.parametrize(
    ("importance", "change", "budget", "message"),
    [
        ([1.0, -1.0], [1.0, 1.0], 1.0, "importance must be finite and >= 0, got -1.0"),
        ([1.0, np.inf], [1.0, 1.0], 1.0, "importance must be finite and >= 0, got inf"),
        ([1.0, 1.0], [1.0, np.nan], 1.0, "CHANGE must be finite and >= 0, got nan"),
        ([0.0, -0.0], [1.0, 1.0], 1.0, "importance must be positive for at least one page"),
        ([1.0, 1.0], [1.0] * 3, 1.0, r"importance must be a scalar .* got shape \(2,\)"),
        ([[1.0]], [1.0], 1.0, r"importance must be a scalar .* got shape \(1, 1\)"),
        ([], [], 1.0, "importance must be a scalar"),
        (["a"], [1.0], 1.0, "importance must be a number or an array of numbers, got .*a"),
        ([1.0], ["b"], 1.0, "CHANGE must be a number or an array of numbers, got .*b"),
        ([1.0], [1.0], 0.0, "BUDGET must be finite and > 0, got 0.0"),
        ([1.0], [1.0], -1.0, "BUDGET must be finite and > 0, got -1.0"),
        ([1.0], [1.0], math.nan, "BUDGET must be finite and > 0, got nan"),
        ([1.0], [1.0], "much", "BUDGET must be finite and > 0, got 'much'"),
    ],
)
def test_bad_input(problem, importance, change, budget, message):
    names = ("change_probability", "budget") if problem.chances else ("change_rate", "bandwidth")
    message = message.replace("CHANGE", names[0]).replace("BUDGET", names[1])
    with pytest.raises(ValueError, match=message):
        problem.solve(np.array(importance), np.array(change), budget)


NOISY = Instance([1.0] * 10, 1.0, 0.5, 0.1, bandwidth=5.0)
TWO_SOURCES = Instance([1.0] * 4, 1.0, np.full((2, 4), 0.3), 0.1, bandwidth=2.0)
DEAR = r"floor must cost at most the bandwidth, {}, got crawl rates that cost {}"
HOLISTIC = HolisticCurves([1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(solvers.ncis, "noisy"), "problem must be an Instance or a Problem, got 'noisy'"),
        (partial(solvers.ncis, NOISY, bandwidth=0.0), "bandwidth must be finite and > 0, got 0.0"),
        (
            partial(solvers.ncis, NOISY, bandwidth=math.nan),
            "bandwidth must be finite and > 0, got nan",
        ),
        *((partial(solvers.ncis, NOISY, floor=f), f"and >= 0, got {f}") for f in (-0.1, math.nan)),
        (
            partial(solvers.ncis, NOISY, floor=0.6),
            DEAR.format(2, "2.4; a floor of all pages can be 0.5"),
        ),
        (partial(solvers.ncis, NOISY, floor=[0.6, 0.5, 0.5, 0.5]), DEAR.format(2, 2.1)),
        (partial(solvers.ncis, NOISY, floor=[0.1] * 3), r"floor must .* shape \(4,\)"),
        (partial(solvers.ncis, TWO_SOURCES, floor=1.0), DEAR.format(2, 4)),
        (partial(solvers.binary_periodic, [1, 2], 1.0, 1.0, floor=[0.2, 0.9]), DEAR.format(1, 1.1)),
        (partial(solvers.binary_periodic, [1, 2], 1.0, 1.0, floor=-1.0), "floor must be finite"),
        *(
            (
                partial(solvers.ncis, given.problem("importance")),
                "problem must reveal the parameters",
            )
            for given in (NOISY, TWO_SOURCES)
        ),
        (
            partial(solvers.ncis, Instance([0.0, 0.0], 1.0, bandwidth=1.0)),
            "importance must be positive for at least one page",
        ),
        (
            partial(solvers.fragments, HOLISTIC, [1.0, -1.0], 1.0),
            "importance must be finite and >= 0, got -1",
        ),
        (
            partial(solvers.fragments, HOLISTIC, [1.0] * 3, 1.0),
            r"importance must be a scalar or have shape \(2,\)",
        ),
        (partial(solvers.fragments, HOLISTIC, [0.0, 0.0], 1.0), "importance must be positive"),
        (
            partial(solvers.fragments, HOLISTIC, 1.0, 0.0),
            "bandwidth must be finite and > 0, got 0",
        ),
        *(
            (partial(solvers.concave_penalty, 1.0, [1.0, 2.0], 1.0, penalty), message)
            for penalty, message in (
                ([0.0], "at least two finite numbers"),
                ([0.0, math.nan], "penalty"),
                ([[0.0, 1.0]], "at least two finite numbers"),
                ([1.0, 2.0], r"rise from C\(0\) = 0"),
                ([0.0, 0.0, 1.0], r"rise from C\(0\) = 0"),
                ([0.0, 1.0, 3.0], "concave and not fall"),
                ([0.0, 1.0, 0.5], "concave and not fall"),
                (np.square, "concave and not fall"),
                (lambda number: 1.0, "at least two finite numbers"),
            )
        ),
        (partial(solvers.binary_poisson, 1.0, 1.0, 1.0, -0.1), "floor must be finite and >= 0"),
        (partial(solvers.binary_poisson, 1.0, 1.0, 1.0, 1.1), r"floor must lie in \[0, 1\]"),
        (
            partial(solvers.binary_discrete, 1.0, [0.5, 1.5], 1.0),
            r"change_probability must lie in \[0, 1\], got 1.5",
        ),
        (
            partial(solvers.binary_discrete, 1.0, 0.5, 1.0, ceiling=0.0),
            "ceiling must be finite and > 0, got 0.0",
        ),
        (
            partial(solvers.binary_discrete, 1.0, 0.5, 1.0, ceiling=1.1),
            r"ceiling must lie in \(0, 1\], got 1.1",
        ),
        *(
            (partial(solve, [1.0], [1.0], 1.0, complete=mask), message)
            for solve in (solvers.harmonic, solvers.harmonic_approx, solvers.harmonic_periodic)
            for mask, message in (
                ([1], "complete must be boolean"),
                ([True, False], r"complete must be boolean, a scalar or of shape \(1,"),
            )
        ),
        (
            partial(solvers.harmonic_cost, [1.0], [1.0], [1.0], [1.5], [True]),
            r"probabilities must lie in \[0, 1\], got 1.5",
        ),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(ValueError, match=message):
        call()
