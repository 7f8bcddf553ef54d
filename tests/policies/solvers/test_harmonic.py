"""LambdaCrawl: golden values, the paper's algorithms, conditions of optimality, extreme input."""

from __future__ import annotations

import importlib
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import solvers
from policies.values.lambert import HARMONIC_SERIES, harmonic_interval
from tests.naive import solvers as naive_solvers
from tests.policies.solvers.problems import random_pages
from tests.reference import reference

IMPORTANCE, CHANGE_RATE = np.array([1.0, 2.0, 4.0, 1.0]), np.array([0.1, 0.5, 2.0, 5.0])


def test_golden_values_without_observation():
    result = solvers.harmonic(IMPORTANCE, CHANGE_RATE, 1.0)
    np.testing.assert_allclose(result.rates, [0.087997, 0.227422, 0.524288, 0.160293], atol=5e-7)
    assert result.multiplier == pytest.approx(6.044789, abs=5e-7)
    assert result.objective / 4 == pytest.approx(3.210740, abs=5e-7)
    assert solvers.binary_cost(IMPORTANCE, CHANGE_RATE, result.rates) / 4 == pytest.approx(
        1.511197, abs=5e-7
    )
    assert result.probabilities is None
    assert result.converged


@pytest.mark.parametrize(
    ("bandwidth", "expected"),
    [
        (1.0, [1.0, 0.514286, 0.257143, 0.025714]),
        (3.0, [1.0, 1.0, 0.96, 0.096]),
        (7.6, [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_golden_values_with_complete_observation(bandwidth, expected):
    result = solvers.harmonic(IMPORTANCE, CHANGE_RATE, bandwidth, True)
    np.testing.assert_allclose(result.probabilities, expected, atol=5e-7)
    np.testing.assert_allclose(result.rates, result.probabilities * CHANGE_RATE, rtol=1e-15)
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-12)


@pytest.mark.parametrize("case", range(4))
def test_reference(case):
    known = reference("lambdacrawl")[case]
    importance, change_rate = np.array(known["mu"]), np.array(known["Delta"])
    complete, bandwidth = np.array(known["complete"], bool), known["R"]
    half = known["policies"]["LC_CO_half"]["R"]
    part = importance[complete], change_rate[complete]
    result = {
        "LC_IO_all": solvers.harmonic(importance, change_rate, bandwidth),
        "LC_CO_half": solvers.harmonic(*part, half, True),
        "LC_mixed": solvers.harmonic(importance, change_rate, bandwidth, complete),
        "LCA_mixed": solvers.harmonic_approx(importance, change_rate, bandwidth, complete),
        "LCA_all_incomplete": solvers.harmonic_approx(importance, change_rate, bandwidth),
    }
    for name, allocation in result.items():
        expected = known["policies"][name]
        pages = part if name == "LC_CO_half" else (importance, change_rate)
        mask = {"LC_CO_half": np.ones(len(part[0]), bool), "LC_mixed": complete}.get(name)
        mask = complete if name == "LCA_mixed" else mask
        full = np.zeros(len(pages[0]), bool) if mask is None else mask
        if "rho" in expected:
            np.testing.assert_allclose(allocation.rates[~full], expected["rho"], rtol=1e-11)
        if "p" in expected:
            np.testing.assert_allclose(allocation.probabilities[full], expected["p"], rtol=1e-11)
        assert allocation.objective == pytest.approx(expected["harm"], rel=1e-12)
        cost = solvers.binary_cost(*pages, allocation.rates, allocation.probabilities, mask)
        assert cost == pytest.approx(expected["bin"], rel=1e-11)
        if expected["lambda"] is not None:
            assert allocation.multiplier == pytest.approx(expected["lambda"], rel=1e-11)


@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize("name", ["CC", "UC"])
def test_costs_of_reference_rates(case, name):
    known = reference("lambdacrawl")[case]
    expected = known["policies"][name]
    pages = known["mu"], known["Delta"], expected["rho"]
    assert solvers.harmonic_cost(*pages) == pytest.approx(expected["harm"], rel=1e-13)
    assert solvers.binary_cost(*pages) == pytest.approx(expected["bin"], rel=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_twin_of_algorithm_1(seed):
    importance, change_rate, _ = random_pages(seed)
    result = solvers.harmonic(importance, change_rate, 8.0)
    twin = naive_solvers.incomplete(importance, change_rate, 8.0)
    np.testing.assert_allclose(result.rates, twin, rtol=1e-10)
    assert result.objective == pytest.approx(
        naive_solvers.harmonic_cost(importance, change_rate, twin), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 1.0])
def test_twin_of_algorithm_2(seed, share):
    importance, change_rate, _ = random_pages(seed)
    bandwidth = share * change_rate.sum()
    result = solvers.harmonic(importance, change_rate, bandwidth, True)
    twin = naive_solvers.complete(importance, change_rate, bandwidth)
    np.testing.assert_allclose(result.probabilities, twin, rtol=1e-9)


@pytest.mark.parametrize("solver", ["harmonic", "harmonic_approx"])
@pytest.mark.parametrize("bandwidth", [1.0, 8.0, 60.0])
def test_twin_of_algorithm_3(solver, bandwidth):
    importance, change_rate, complete = random_pages(4, 12)
    result = getattr(solvers, solver)(importance, change_rate, bandwidth, complete)
    unobserved = naive_solvers.incomplete if solver == "harmonic" else naive_solvers.proportional
    rates, twin, cost = naive_solvers.mixed(
        importance, change_rate, bandwidth, complete, unobserved, steps=60
    )
    assert result.objective <= cost * (1.0 + 1e-12)
    assert result.objective == pytest.approx(cost, rel=1e-7)
    # golden sections tell their place to the root of rounding only
    np.testing.assert_allclose(result.rates[~complete], rates, rtol=1e-5)
    np.testing.assert_allclose(result.probabilities[complete], twin, rtol=1e-5)


def test_equal_ratios_need_no_change_rates():
    importance = np.array([1.0, 3.0, 0.5, 8.0])
    exact = solvers.harmonic(importance, 0.7 * importance, 2.0)
    blind = solvers.harmonic_approx(importance, [9.0, 0.1, 3.0, 2.0], 2.0)
    np.testing.assert_allclose(exact.rates, blind.rates, rtol=1e-12)
    np.testing.assert_allclose(blind.rates, 2.0 * importance / importance.sum(), rtol=1e-12)


def test_approximation_splits_at_equal_multipliers():
    importance, change_rate, complete = random_pages(8)
    result = solvers.harmonic_approx(importance, change_rate, 5.0, complete)
    step = 1e-6
    more = solvers.harmonic_approx(importance, change_rate, 5.0 + step, complete)
    less = solvers.harmonic_approx(importance, change_rate, 5.0 - step, complete)
    slope = (less.objective - more.objective) / (2.0 * step)
    assert result.multiplier == pytest.approx(slope, rel=1e-7)


logarithms = st.floats(-6.0, 6.0)


@settings(max_examples=200, deadline=None)
@given(
    pages=st.lists(st.tuples(logarithms, logarithms, st.booleans()), min_size=1, max_size=15),
    budget=st.floats(-9.0, 9.0),
)
def test_the_approximation_spends_the_same_and_costs_no_less(pages, budget):
    importance, change_rate = (10.0 ** np.array([page[i] for page in pages]) for i in range(2))
    complete = np.array([page[2] for page in pages])
    bandwidth = 10.0**budget
    result = solvers.harmonic(importance, change_rate, bandwidth, complete)
    assert result.converged
    np.testing.assert_array_equal(result.probabilities[~complete], 0.0)
    if complete.all() and change_rate.sum() <= bandwidth:
        np.testing.assert_array_equal(result.probabilities, 1.0)
        assert (result.multiplier, result.objective) == (0.0, 0.0)
        return
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-11)
    assert np.all(result.probabilities <= 1.0)
    rough = solvers.harmonic_approx(importance, change_rate, bandwidth, complete)
    assert rough.converged
    assert rough.rates.sum() == pytest.approx(bandwidth, rel=1e-11)
    # either spends the bandwidth to 1e-12, at a cost of the multiplier per crawl
    unspent = 3e-12 * bandwidth * result.multiplier
    assert rough.objective >= result.objective * (1.0 - 1e-12) - unspent


@pytest.mark.parametrize("solver", ["harmonic_approx", "harmonic_periodic"])
@pytest.mark.parametrize("weights", [1e-9, 1e9])
@pytest.mark.parametrize("rates", [1e-9, 1e9])
def test_scales_do_not_matter(solver, weights, rates):
    importance, change_rate, complete = random_pages(3, 10)
    solve = getattr(solvers, solver)
    plain = solve(importance, change_rate, 2.0, complete)
    scaled = solve(weights * importance, rates * change_rate, rates * 2.0, complete)
    np.testing.assert_allclose(scaled.rates / rates, plain.rates, rtol=1e-9)
    assert scaled.objective / weights == pytest.approx(plain.objective, rel=1e-9)


def extremes(importance, change_rate, bandwidth, cost, complete):
    """The limits of what a solver finds: its rates, multiplier and cost, in 40 digits.

    Where crawls are rare all pages share them by importance. Where they are ample each signal leads
    to one, and other pages share what is left by sqrt(mu Delta), at ``cost`` mu Delta/rho each.
    """
    with mpmath.workdps(40):
        mus, deltas = ([mpmath.mpf(x) for x in column] for column in (importance, change_rate))
        if bandwidth < 1e-3 * float(sum(deltas)):
            total = mpmath.fsum(mus)
            rates = [bandwidth * mu / total for mu in mus]
            return rates, total / bandwidth, None
        shares = [
            0 if observed else mpmath.sqrt(mu * delta)
            for mu, delta, observed in zip(mus, deltas, complete, strict=True)
        ]
        total = mpmath.fsum(shares)
        rates = [
            delta if observed else bandwidth * share / total
            for share, delta, observed in zip(shares, deltas, complete, strict=True)
        ]
        return rates, cost * total**2 / mpmath.mpf(bandwidth) ** 2, cost * total**2 / bandwidth


@pytest.mark.parametrize(("solver", "cost"), [("harmonic", 1.0), ("harmonic_periodic", 0.5)])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(
    ("weights", "changes", "bandwidth"),
    [
        (1.0, 1.0, 1e-12),
        (1.0, 1.0, 1e12),
        (1e9, 1e9, 1e-6),
        (1e-9, 1e9, 1e-6),
        (1.0, 1e9, 1e-12),
        (1.0, 1e-9, 2e6),
        (1e9, 1e-9, 1e12),
        (1e-9, 1e-7, 1e8),
    ],
)
def test_extremes(solver, cost, mixed, weights, changes, bandwidth):
    importance, change_rate, complete = random_pages(3, 10)
    importance, change_rate = weights * importance, changes * change_rate
    complete &= mixed
    result = getattr(solvers, solver)(importance, change_rate, bandwidth, complete)
    rates, multiplier, objective = extremes(importance, change_rate, bandwidth, cost, complete)
    assert result.converged
    np.testing.assert_allclose(result.rates, np.array(rates, float), rtol=1e-11)
    assert result.multiplier == pytest.approx(float(multiplier), rel=1e-11, abs=1e-320)
    if objective is None:
        objective = getattr(solvers, f"{solver}_cost")(
            *(importance / weights, change_rate, result.rates, *(None,) * (cost == 1.0), complete)
        )
        objective *= weights
    assert result.objective == pytest.approx(float(objective), rel=1e-11)
    for column in (result.probabilities, result.signals, result.thresholds):
        assert column is None or not np.isnan(column).any()


@pytest.mark.parametrize("solver", ["harmonic", "harmonic_approx", "harmonic_periodic"])
def test_rarest_crawls_of_the_fastest_pages(solver):
    result = getattr(solvers, solver)([1.0, 2.0], 1e12, 1e-12, [True, False])
    np.testing.assert_allclose(result.rates, [1e-12 / 3, 2e-12 / 3], rtol=1e-11)
    assert result.multiplier == pytest.approx(3e12, rel=1e-11)
    assert math.isfinite(result.objective)


def test_unobserved_pages_take_what_signals_leave():
    result = solvers.harmonic([1.0, 1.0], [1.0, 1.0], 1e9, [True, False])
    np.testing.assert_allclose(result.rates, [1.0, 1e9 - 1.0], rtol=1e-12)
    blind = solvers.harmonic_approx([1.0, 1.0, 3.0], [1.0, 0.0, 0.0], 9.0, [True, False, False])
    np.testing.assert_allclose(blind.rates, [1.0, 2.0, 6.0], rtol=1e-12)
    assert (blind.multiplier, blind.objective) == (0.0, 0.0)


def test_kernel_against_40_digits():
    rng = np.random.default_rng(4)
    importance, change_rate = 10.0 ** rng.uniform(-15.0, 15.0, (2, 300))
    complete = rng.random(300) < 0.3
    price = 0.375
    rates = np.empty(300)
    block = importlib.import_module("policies.solvers.lambdacrawl")._block
    total, slope = block(importance, change_rate, complete, price, rates)
    with mpmath.workdps(60):
        exact, slopes = [], []
        for mu, delta, observed in zip(importance, change_rate, complete, strict=True):
            most, delta = mpmath.mpf(mu) * price, mpmath.mpf(delta)
            if observed:
                exact.append(min(most, delta))
                slopes.append(most if most < delta else mpmath.mpf(0))
            else:
                root_ = mpmath.sqrt(delta**2 + 4 * most * delta)
                exact.append((root_ - delta) / 2)
                slopes.append(most * delta / root_)
        assert max(abs(rate / each - 1) for rate, each in zip(rates, exact, strict=True)) < 2e-15
        assert abs(total / mpmath.fsum(exact) - 1) < 1e-14
        assert abs(slope / mpmath.fsum(slopes) - 1) < 1e-14


def test_costs_by_hand():
    importance, change_rate, complete = [2.0, 3.0], [1.0, 4.0], [False, True]
    rates = [0.5, 1.0]
    assert solvers.harmonic_cost(importance, change_rate, rates, None, complete) == pytest.approx(
        2.0 * math.log(3.0) + 3.0 * math.log(4.0), rel=1e-15
    )
    assert solvers.binary_cost(importance, change_rate, rates, None, complete) == pytest.approx(
        2.0 / 1.5 + 3.0 * 0.75, rel=1e-15
    )
    p = [0.0, 0.5]
    assert solvers.harmonic_cost(importance, change_rate, rates, p, complete) == pytest.approx(
        2.0 * math.log(3.0) + 3.0 * math.log(2.0), rel=1e-15
    )
    assert solvers.harmonic_cost([1.0, 1.0], [1.0, 1.0], [0.0, 1.0]) == math.inf
    assert solvers.harmonic_periodic_cost([1.0, 1.0], [1.0, 1.0], [0.0, 1.0]) == math.inf
    assert solvers.harmonic_cost([1.0, 1.0], [1.0, 1.0], 1.0, [0.0, 1.0], True) == math.inf
    assert solvers.harmonic_cost([0.0, 1.0], [1.0, 0.0], [0.0, 0.0]) == 0.0
    assert solvers.binary_cost([1.0, 1.0], [1.0, 1.0], [0.0, 1.0]) == pytest.approx(1.5)


def test_costs_of_many_pages():
    importance, change_rate, complete = random_pages(1, 5000)
    rates = np.random.default_rng(2).lognormal(-1.0, 4.0, 5000)
    share = np.minimum(rates / change_rate, 1.0)
    exact = np.where(complete, -np.log(share), np.log1p(change_rate / rates))
    result = solvers.harmonic_cost(importance, change_rate, rates, None, complete)
    assert result == pytest.approx(float(importance @ exact), rel=1e-13)


def mean_cost(interval):
    """The mean of Ein over an interval, in 40 digits."""
    with mpmath.workdps(40):
        return mpmath.quad(
            lambda x: mpmath.euler + mpmath.log(x) + mpmath.e1(x), [0, interval / 8, interval]
        ) / mpmath.mpf(interval)


@pytest.mark.parametrize("changes", [1e-3, 0.3, 0.999, 1.0, 1.001, 4.0, 60.0])
def test_cost_of_even_intervals_is_the_mean_of_ein(changes):
    result = solvers.harmonic_periodic_cost(2.0, changes, 1.0)
    assert result == pytest.approx(float(2 * mean_cost(changes)), rel=2e-15)


def test_harmonic_staleness_by_simulation():
    rng = np.random.default_rng(0)
    change, interval, cycles = 3.0, 1.5, 100_000
    counts = rng.poisson(change * interval * rng.random(cycles))
    numbers = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 60))])
    sample = numbers[counts]
    result = solvers.harmonic_periodic_cost(1.0, change, 1.0 / interval)
    assert result == pytest.approx(sample.mean(), abs=4.0 * sample.std() / math.sqrt(cycles))


@pytest.mark.parametrize(
    ("signals", "expected"), [(1.0, 0.0), (2.0, 0.5), (3.0, 0.5 + 1 / 3), (2.5, 3.5 / 5.0)]
)
def test_cost_of_nth_signals_by_hand(signals, expected):
    # between 2 and 3: half of the cycles take 2 signals at H = 0, 1, half take 3 at 0, 1, 3/2
    result = solvers.harmonic_periodic_cost(2.0, 5.0, 5.0 / signals, True)
    assert result == pytest.approx(2.0 * expected, rel=1e-14, abs=1e-15)


def test_interval_series_follows_from_the_equation():
    series = np.polynomial.Polynomial([0.0, *HARMONIC_SERIES])
    left = series.deriv() * (series - np.polynomial.Polynomial([0.0, 0.0, 0.5]))
    expected = np.zeros(len(HARMONIC_SERIES))
    expected[1] = 1.0
    np.testing.assert_allclose(left.coef[: len(HARMONIC_SERIES)], expected, atol=1e-15)


@settings(max_examples=300, deadline=None)
@given(cost=st.floats(-60.0, 60.0) | st.floats(-3.0, 2.0))
def test_interval_solves_its_equation(cost):
    cost = 10.0**cost
    result = harmonic_interval(cost)
    with mpmath.workdps(600):
        x = mpmath.mpf(result)
        off = (x - 1 + mpmath.exp(-x) - mpmath.mpf(cost)) / (1 - mpmath.exp(-x))
        assert abs(off / x) < 1e-15


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bandwidth", [0.3, 8.0, 100.0])
def test_periodic_optimality_conditions(seed, bandwidth):
    importance, change_rate, complete = random_pages(seed)
    result = solvers.harmonic_periodic(importance, change_rate, bandwidth, complete)
    assert result.converged
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-9)
    price = result.multiplier
    waits = result.thresholds[~complete]
    value = importance * (1.0 / result.rates + np.expm1(-change_rate / result.rates) / change_rate)
    np.testing.assert_allclose(value[~complete], price, rtol=1e-8)
    np.testing.assert_allclose(waits, 1.0 / result.rates[~complete], rtol=1e-12)
    assert np.all(np.isinf(result.thresholds[complete]))
    assert np.all(np.isinf(result.signals[~complete]))
    number, chance = result.signals[complete], result.probabilities[complete]
    weight, change = importance[complete], change_rate[complete]
    assert np.all(number == np.floor(number))
    assert np.all(weight * number / change >= price * (1.0 - 1e-9))
    assert np.all(weight * (number - 1.0) / change <= price * (1.0 + 1e-9))
    rates = change / (number + 1.0 - chance)
    np.testing.assert_allclose(result.rates[complete], rates, rtol=1e-9)
    mixed = chance < 1.0
    np.testing.assert_allclose((weight * number / change)[mixed], price, rtol=1e-9)


@pytest.mark.parametrize("bandwidth", [0.35, 1.0, 2.3])
def test_numbers_of_signals_by_brute_force(bandwidth):
    importance, change_rate = np.array([1.0, 2.0, 1.5]), np.array([1.0, 0.5, 2.0])
    result = solvers.harmonic_periodic(importance, change_rate, bandwidth, True)
    # the lower convex hull of what every page can do, spent greedily
    steps = []
    for mu, delta in zip(importance, change_rate, strict=True):
        for n in range(1, 2000):
            low, high = delta / (n + 1), delta / n
            saved = mu * (1.0 / (n + 1) * 1.0)  # H(n+1) - H(n)
            steps.append((saved / (high - low), high - low, saved))
    spent = sum(delta / 2000 for delta in change_rate)
    cost = importance.sum() * (sum(1.0 / k for k in range(1, 2001)) - 1.0)
    for value, more, saved in sorted(steps, reverse=True):
        share = min(1.0, (bandwidth - spent) / more)
        spent += share * more
        cost -= share * saved
        if share < 1.0:
            assert result.multiplier == pytest.approx(value, rel=1e-9)
            break
    assert result.objective == pytest.approx(cost, rel=1e-9)


def test_every_signal_is_crawled_where_the_budget_allows():
    result = solvers.harmonic_periodic([1.0, 0.0], [2.0, 1.0], 3.0, True)
    np.testing.assert_array_equal(result.rates, [2.0, 0.0])
    np.testing.assert_array_equal(result.signals, [1.0, np.inf])
    assert (result.multiplier, result.objective, result.converged) == (0.0, 0.0, True)


@pytest.mark.parametrize("seed", range(3))
def test_random_crawls_cost_more(seed):
    importance, change_rate, complete = random_pages(seed, 150)
    random = solvers.harmonic(importance, change_rate, 30.0, complete)
    even = solvers.harmonic_periodic(importance, change_rate, 30.0, complete)
    assert even.objective < 0.9 * random.objective


def test_an_approximate_page_without_importance_gets_nothing_of_its_signals():
    result = solvers.harmonic_approx([0, 1, 1], [2, 0, 1], 3.0, complete=[True, False, True])
    assert list(result.rates) == [0.0, 2.0, 1.0]
    assert result.converged


@pytest.mark.parametrize("solver", [solvers.harmonic, solvers.harmonic_approx])
def test_signals_of_a_page_that_never_changes_are_not_answered(solver):
    result = solver([1, 1, 1], [0, 1, 1], 1.5, complete=[True, True, False])
    assert result.probabilities[0] == 0.0
    assert result.rates[0] == 0.0
