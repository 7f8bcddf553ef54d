"""Caps per host: conditions of optimality, a general optimiser, caps that bind or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from policies import solvers

HOSTS = 3


def random_pages(seed, num_pages=9):
    rng = np.random.default_rng(seed)
    importance = rng.pareto(1.5, num_pages) + 0.1
    change_rate = rng.lognormal(-1.0, 1.0, num_pages)
    host = rng.integers(0, HOSTS, num_pages)
    host[:HOSTS] = range(HOSTS)
    return importance, change_rate, host, rng.uniform(0.3, 1.2, HOSTS), rng.random(9) < 0.3


COSTS = {
    "harmonic": solvers.harmonic_cost,
    "binary_poisson": solvers.binary_cost,
    "binary_periodic": lambda *pages: -solvers.periodic_freshness(*pages),
    "harmonic_periodic": solvers.harmonic_periodic_cost,
}


@pytest.mark.parametrize("solver", sorted(COSTS))
@pytest.mark.parametrize("seed", range(5))
def test_against_a_general_optimiser(solver, seed):
    importance, change_rate, host, caps, complete = random_pages(seed)
    bandwidth = 2.0
    observed = solver == "harmonic"
    arguments = {"complete": complete} if observed else {}
    result = solvers.host_capped(
        getattr(solvers, solver), importance, change_rate, bandwidth, host, caps, **arguments
    )

    def cost(rates):
        more = (None, complete) if observed else ()
        return COSTS[solver](importance, change_rate, np.maximum(rates, 1e-12), *more)

    most = np.where(complete & observed, change_rate, bandwidth)
    limits = [{"type": "ineq", "fun": lambda rates: bandwidth - rates.sum()}] + [
        {"type": "ineq", "fun": lambda rates, one=one: caps[one] - rates[host == one].sum()}
        for one in range(HOSTS)
    ]
    start = 0.5 * np.minimum(caps[host] / np.bincount(host)[host], bandwidth / len(host))
    general = minimize(
        cost,
        np.minimum(most, start),
        bounds=[(1e-9, each) for each in most],
        constraints=limits,
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 2000},
    )
    assert result.converged
    assert cost(result.rates) <= general.fun + 1e-7 * abs(general.fun)
    assert cost(result.rates) == pytest.approx(general.fun, rel=1e-7)
    spent = np.bincount(host, weights=result.rates)
    assert np.all(spent <= caps * (1.0 + 1e-8))
    assert result.rates.sum() <= bandwidth * (1.0 + 1e-9)


@pytest.mark.parametrize(("name", "at"), [("importance", 1), ("host", 4), ("host_bandwidth", 5)])
def test_words_are_no_numbers(name, at):
    arguments = [solvers.harmonic, [1.0], [1.0], 1.0, [0], 1.0]
    arguments[at] = "x"
    with pytest.raises(ValueError, match=f"{name} must be a number or .* numbers, got <U1 'x'"):
        solvers.host_capped(*arguments)


def test_success_is_a_plain_truth_value():
    capped = solvers.host_capped(solvers.harmonic, [1.0, 2.0], 1.0, 1.0, [0, 1], [0.1, np.inf])
    assert capped.converged is True
    assert type(capped.multiplier) is float


logarithms = st.floats(-4.0, 4.0)


@settings(max_examples=150, deadline=None)
@given(
    pages=st.lists(
        st.tuples(logarithms, logarithms, st.integers(0, HOSTS - 1)), min_size=1, max_size=15
    ),
    caps=st.lists(st.floats(-3.0, 3.0), min_size=HOSTS, max_size=HOSTS),
    budget=st.floats(-3.0, 3.0),
    solver=st.sampled_from(["harmonic", "binary_poisson"]),
)
def test_optimality_conditions(pages, caps, budget, solver):
    importance, change_rate = (10.0 ** np.array([page[i] for page in pages]) for i in range(2))
    host, caps, bandwidth = (
        np.array([page[2] for page in pages]),
        10.0 ** np.array(caps),
        10**budget,
    )
    result = solvers.host_capped(
        getattr(solvers, solver), importance, change_rate, bandwidth, host, caps
    )
    assert result.converged
    rates = result.rates
    spent = np.bincount(host, weights=rates, minlength=HOSTS)
    assert np.all(spent <= caps * (1.0 + 1e-8))
    if solver == "harmonic":
        gain = importance / rates / (1.0 + rates / change_rate)
    else:
        gain = importance / importance.sum() * change_rate / (rates + change_rate) ** 2
    price = result.multiplier + result.host_multipliers[host]
    crawled = rates > 0.0
    np.testing.assert_allclose(gain[crawled], price[crawled], rtol=1e-7)
    assert np.all(gain[~crawled] <= price[~crawled] * (1.0 + 1e-9))
    bound = result.host_multipliers > 0.0
    np.testing.assert_allclose(spent[bound], caps[bound], rtol=1e-8)
    if result.multiplier > 0.0:
        assert rates.sum() == pytest.approx(bandwidth, rel=1e-9)
    else:
        assert rates.sum() <= bandwidth * (1.0 + 1e-9)


@pytest.mark.parametrize("solver", sorted(COSTS))
def test_caps_that_do_not_bind(solver):
    importance, change_rate, host, _, complete = random_pages(1)
    arguments = {"complete": complete} if solver.startswith("harmonic") else {}
    solve = getattr(solvers, solver)
    plain = solve(importance, change_rate, 2.0, **arguments)
    result = solvers.host_capped(solve, importance, change_rate, 2.0, host, np.inf, **arguments)
    for name in ("rates", "probabilities", "thresholds", "signals"):
        expected = getattr(plain, name)
        if expected is None:
            assert getattr(result, name) is None
        else:
            np.testing.assert_allclose(getattr(result, name), expected, rtol=1e-9)
    assert result.objective == pytest.approx(plain.objective, rel=1e-12)
    assert result.multiplier == pytest.approx(plain.multiplier, rel=1e-9)
    np.testing.assert_array_equal(result.host_multipliers, np.zeros(HOSTS))


@pytest.mark.parametrize("solver", sorted(COSTS))
def test_objective_and_multipliers_are_those_of_the_whole(solver):
    importance, change_rate, host, caps, complete = random_pages(3)
    arguments = {"complete": complete} if solver == "harmonic" else {}
    solve, step = getattr(solvers, solver), 1e-6

    def value(bandwidth, limits):
        return solvers.host_capped(
            solve, importance, change_rate, bandwidth, host, limits, **arguments
        ).objective

    caps = np.array([0.3, 10.0, 10.0])
    result = solvers.host_capped(solve, importance, change_rate, 2.0, host, caps, **arguments)
    sign = -1.0 if solver.startswith("harmonic") else 1.0
    cost = COSTS[solver](
        importance, change_rate, result.rates, *((None, complete) if arguments else ())
    )
    exact = {
        "binary_poisson": 1.0 - cost / importance.sum(),
        "binary_periodic": -cost,
    }.get(solver, cost)
    assert result.objective == pytest.approx(exact, rel=1e-9)
    slope = sign * (value(2.0 + step, caps) - value(2.0 - step, caps)) / (2.0 * step)
    assert result.multiplier == pytest.approx(slope, rel=1e-4)
    more, less = caps.copy(), caps.copy()
    more[0] += step
    less[0] -= step
    slope = sign * (value(2.0, more) - value(2.0, less)) / (2.0 * step)
    assert result.host_multipliers[0] == pytest.approx(slope, rel=1e-4)
    assert result.host_multipliers[0] > 0.0


def test_caps_below_the_bandwidth_leave_some_of_it():
    importance, change_rate, host, _, _ = random_pages(2)
    result = solvers.host_capped(solvers.harmonic, importance, change_rate, 9.0, host, 0.5)
    np.testing.assert_allclose(np.bincount(host, weights=result.rates), 0.5, rtol=1e-9)
    assert result.multiplier == 0.0
    assert result.converged
    for one in range(HOSTS):
        alone = solvers.harmonic(importance[host == one], change_rate[host == one], 0.5)
        np.testing.assert_allclose(result.rates[host == one], alone.rates, rtol=1e-9)
        assert result.host_multipliers[one] == pytest.approx(alone.multiplier, rel=1e-9)


def test_floor_holds_for_all_pages():
    importance, change_rate, host, _, _ = random_pages(5)
    caps = np.array([0.45, 5.0, 5.0])
    floor = 0.4
    result = solvers.host_capped(
        solvers.binary_poisson, importance, change_rate, 2.0, host, caps, floor=floor
    )
    least = floor * 2.0 / 9
    assert result.rates.min() >= least * (1.0 - 1e-12)
    gain = importance / importance.sum() * change_rate / (change_rate + result.rates) ** 2
    price = result.multiplier + result.host_multipliers[host]
    above = result.rates > least * (1.0 + 1e-9)
    np.testing.assert_allclose(gain[above], price[above], rtol=1e-8)
    assert np.all(gain[~above] <= price[~above] * (1.0 + 1e-9))
    with pytest.raises(ValueError, match="host_bandwidth must allow the floor of"):
        solvers.host_capped(
            solvers.binary_poisson, importance, change_rate, 2.0, host, 0.1, floor=floor
        )


def test_hosts_without_pages_or_importance():
    result = solvers.host_capped(
        solvers.harmonic_periodic,
        [1.0, 1.0, 0.0, 2.0],
        [1.0, 2.0, 1.0, 3.0],
        2.0,
        [0, 0, 2, 4],
        [0.5, 1.0, 1.0, 1.0, 0.25, 1.0],
        complete=[True, False, True, False],
    )
    np.testing.assert_allclose(result.rates[[0, 1]].sum(), 0.5, rtol=1e-9)
    assert result.rates[2] == 0.0
    assert result.rates[3] == pytest.approx(0.25)
    assert result.thresholds[3] == pytest.approx(4.0)
    assert np.isinf(result.signals[2])
    np.testing.assert_array_equal(result.host_multipliers[[1, 2, 3, 5]], 0.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"solver": solvers.harmonic_approx}, "solver must be one of binary_periodic, binary_pois"),
        ({"host": [0, 1]}, r"must be a scalar or have shape \(m,\)"),
        ({"host": [0.0, 1.0, 2.0]}, r"host must be integers of shape \(3,\), got float64"),
        ({"host": [0, 1, 3]}, r"host must lie in \[0, 3\), got 3"),
        ({"host": [0, -1, 2]}, r"host must lie in \[0, 3\), got -1"),
        ({"host_bandwidth": [1.0, 0.0, 1.0]}, "host_bandwidth must be > 0, .* got 0.0"),
        ({"host_bandwidth": [[1.0]]}, r"host_bandwidth must be > 0, .* got shape \(1, 1\)"),
        ({"bandwidth": 0.0}, "bandwidth must be finite and > 0"),
        ({"importance": [0.0, 0.0, 0.0]}, "importance must be positive"),
        ({"floor": 0.3}, "floor must be an argument of harmonic, got 0.3"),
    ],
)
def test_bad_input(changed, message):
    given_arguments = {
        "solver": solvers.harmonic,
        "importance": [1.0, 1.0, 1.0],
        "change_rate": [1.0, 2.0, 3.0],
        "bandwidth": 1.0,
        "host": [0, 1, 2],
        "host_bandwidth": [1.0, 1.0, 1.0],
    }
    with pytest.raises(ValueError, match=message):
        solvers.host_capped(**{**given_arguments, **changed})
