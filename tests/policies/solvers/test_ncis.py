"""The optimum with noisy signals: reference, optimisers, duality, simulated cycles, limits."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize, minimize_scalar
from scipy.special import gammainc

from crawl_envs import Instance
from policies import solvers, values
from tests.reference import reference

SOLVER = sys.modules["policies.solvers.noisy_signals.theorem1"]


def noisy(seed, num_pages, bandwidth):
    rng = np.random.default_rng(seed)
    change_rate, importance = rng.random(num_pages), rng.random(num_pages)
    recall, false_rate = rng.beta(0.25, 0.25, num_pages), rng.uniform(0.1, 0.6, num_pages)
    return Instance(importance, change_rate, recall, false_rate, bandwidth=bandwidth)


def shares(instance):
    return instance.importance / instance.importance.sum()


def cycle(iota, page):
    """psi and w of Lemma 4 as printed, by scipy's incomplete gamma function."""
    change_rate, recall, false_rate = page
    alpha, gamma = (1 - recall) * change_rate, recall * change_rate + false_rate
    beta = -math.log(false_rate / gamma) / alpha if false_rate > 0.0 else math.inf
    order = np.arange(math.floor(iota / beta) + 1)
    ahead = iota - order * beta if beta < math.inf else np.array([iota])
    psi = np.sum(gammainc(order + 1, gamma * ahead)) / gamma
    decay = (false_rate / (change_rate + false_rate)) ** order / (change_rate + false_rate)
    return psi, np.sum(decay * gammainc(order + 1, (alpha + gamma) * ahead))


def pages_of(instance):
    return list(zip(instance.change_rate, instance.recall, instance.false_signal_rate, strict=True))


def slack(instance, result, costs=1.0):
    """The gain that better thresholds could still add at the multiplier."""
    dual = result.multiplier * instance.bandwidth
    prices = result.multiplier * np.broadcast_to(costs, instance.num_pages)
    for share, page, price in zip(shares(instance), pages_of(instance), prices, strict=True):

        def gain(log_iota, share=share, page=page, price=price):
            psi, w = cycle(math.exp(log_iota), page)
            return -(share * w - price) / psi

        grid = np.linspace(-9.0, 7.0, 161)
        best = grid[np.argmin([gain(point) for point in grid])]
        polished = minimize_scalar(
            gain, bounds=(best - 0.2, best + 0.2), method="bounded", options={"xatol": 1e-10}
        )
        dual += max(-polished.fun, 0.0)
    return dual - result.objective


@pytest.mark.parametrize("case", range(4))
def test_reference_optima(case):
    known = reference("ncis_continuous")[case]
    instance = Instance(
        known["mu"], known["Delta"], known["lam"], known["nu"], bandwidth=known["R"]
    )
    result = solvers.ncis(instance)
    iota = np.array([float(value) for value in known["iota"]])
    assert result.converged
    assert result.multiplier == pytest.approx(known["Lambda"], rel=1e-9)
    assert result.objective == pytest.approx(known["objective"], rel=1e-11)
    np.testing.assert_allclose(result.rates, known["rate"], rtol=1e-8, atol=1e-9)
    assert np.array_equal(result.rates == 0.0, np.isinf(iota))
    timed = np.isfinite(iota) & (iota > 0.0)
    np.testing.assert_allclose(result.thresholds[timed], iota[timed], rtol=1e-8)


@pytest.mark.parametrize(("seed", "bandwidth"), [(0, 3.0), (1, 12.0), (2, 100.0)])
def test_duality_gap(seed, bandwidth):
    rng = np.random.default_rng(seed)
    instance = Instance(
        rng.random(12),
        rng.random(12),
        np.append(rng.uniform(0.05, 0.95, 11), 0.6),
        np.append(rng.uniform(0.1, 0.6, 11), 0.0),
        bandwidth=bandwidth,
    )
    result = solvers.ncis(instance)
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-10)
    assert slack(instance, result) == pytest.approx(0.0, abs=1e-9)


PAGES = {  # change rate, recall, false signal rate
    "noisy": (0.8, 0.5, 0.3),
    "noisy, fast": (3.0, 0.7, 0.2),
    "observed": (0.8, 1.0, 0.3),
    "observed exactly": (0.5, 1.0, 0.0),
    "certain signals": (0.8, 0.6, 0.0),
    "no signals": (0.6, 0.0, 0.0),
    "noise alone": (0.6, 0.0, 0.7),
    "all but observed": (0.8, 1 - 1e-9, 0.3),
}


def test_without_signals_it_is_the_periodic_optimum():
    rng = np.random.default_rng(4)
    importance, change_rate = rng.random(50), rng.random(50)
    noise = np.where(rng.random(50) < 0.5, rng.random(50), 0.0)
    result = solvers.ncis(Instance(importance, change_rate, 0.0, noise, bandwidth=8.0))
    known = solvers.binary_periodic(importance, change_rate, 8.0)
    np.testing.assert_allclose(result.rates, known.rates, rtol=1e-8, atol=1e-12)
    assert result.objective == pytest.approx(known.objective, rel=1e-12)
    assert result.multiplier == pytest.approx(known.multiplier, rel=1e-8)
    crawled = result.rates > 0.0
    np.testing.assert_allclose(result.thresholds[crawled] * result.rates[crawled], 1.0, rtol=1e-9)
    assert np.all(np.isinf(result.signals))


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 0.7, 1.0, 1.31])
def test_stairs_of_observed_pages_against_a_linear_programme(bandwidth):
    importance, change_rate = np.array([1.0, 2.0, 0.5]), np.array([0.5, 0.3, 0.4])
    false_rate = np.array([0.1, 0.0, 0.4])
    instance = Instance(importance, change_rate, 1.0, false_rate, bandwidth=bandwidth)
    result = solvers.ncis(instance)
    gamma = change_rate + false_rate
    gains, spends, owner = [], [], []
    for page in range(3):
        for count in range(1, 400):  # crawl by signal number ``count``
            fresh = (1 - (false_rate[page] / gamma[page]) ** count) / change_rate[page]
            gains.append(shares(instance)[page] * fresh * gamma[page] / count)
            spends.append(gamma[page] / count)
            owner.append(page)
    best = linprog(
        -np.array(gains),
        A_ub=np.vstack([spends, *(np.equal(owner, page) for page in range(3))]),
        b_ub=[bandwidth, 1, 1, 1],
    )
    assert result.objective == pytest.approx(-best.fun, rel=1e-9)
    assert result.converged
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-9)
    assert np.all(np.isinf(result.thresholds))


def test_more_than_can_be_used():
    instance = Instance([1.0, 2.0, 1.0], [0.5, 0.3, 0.0], 1.0, [0.1, 0.0, 0.2], bandwidth=5.0)
    result = solvers.ncis(instance)
    np.testing.assert_allclose(result.rates, [0.6, 0.3, 0.0])
    np.testing.assert_array_equal(result.signals, [1.0, 1.0, np.inf])
    assert (result.multiplier, result.objective, result.converged) == (0.0, 1.0, True)


def test_certain_signals_alone_may_reach_the_multiplier():
    # at V(inf) = mu / Delta above the price: by time, too; at the price: by a share of the signals
    rich = solvers.ncis(Instance(1.0, 2.0, 0.5, 0.0, bandwidth=3.0))
    assert rich.rates[0] == pytest.approx(3.0)
    assert rich.thresholds[0] == pytest.approx(-math.log1p(-1 / 3.0), rel=1e-9)
    assert (rich.signals[0], rich.probabilities[0]) == (1.0, 1.0)
    poor = solvers.ncis(Instance(1.0, 2.0, 0.5, 0.0, bandwidth=0.4))
    assert poor.rates[0] == pytest.approx(0.4)
    assert poor.thresholds[0] == math.inf
    assert poor.probabilities[0] == pytest.approx(0.4)
    assert poor.objective == pytest.approx(0.4 / 2.0)
    assert poor.multiplier == pytest.approx(0.5, rel=1e-8)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("bandwidth", [1e-9, 1e-3, 0.3, 1.0, 30.0, 1e6])
def test_one_page_gets_all_that_it_can_use(page, bandwidth):
    result = solvers.ncis(Instance(3.0, *page, bandwidth=bandwidth))
    assert result.converged
    if page[1] == 1.0 and bandwidth > page[0] + page[2]:
        assert result.objective == pytest.approx(1.0)
        return
    assert result.rates[0] == pytest.approx(bandwidth, rel=1e-9)
    if bandwidth >= 1e6:
        assert result.objective == pytest.approx(1.0, abs=1e-6)
    if math.isfinite(result.thresholds[0]) and page[1] < 0.99:
        known = dict(
            zip(("change_rate", "recall", "false_signal_rate"), page, strict=True),
            effective_elapsed=result.thresholds[0],
        )
        fresh = values.cycle_freshness(**known) / values.cycle_length(**known)
        assert result.objective == pytest.approx(float(fresh), rel=1e-9)


def test_never_crawled_static_and_unimportant_pages():
    instance = Instance(
        [1.0, 1.0, 0.0, 1.0], [0.5, 0.0, 1.0, 50.0], 0.4, [0.2, 0.3, 0.1, 0.2], bandwidth=0.3
    )
    result = solvers.ncis(instance)
    np.testing.assert_allclose(result.rates, [0.3, 0.0, 0.0, 0.0], rtol=1e-9)
    assert np.all(np.isinf(result.thresholds[1:]))
    assert np.all(np.isinf(result.signals[1:]))
    alone = solvers.ncis(Instance(1.0, 0.5, 0.4, 0.2, bandwidth=0.3))
    assert result.objective == pytest.approx((alone.objective + 1.0) / 3.0, rel=1e-9)
    assert shares(instance)[3] / 50.0 < result.multiplier


def test_nothing_to_crawl():
    result = solvers.ncis(Instance([1.0, 0.0], [0.0, 2.0], 0.5, 0.1, bandwidth=3.0))
    np.testing.assert_array_equal(result.rates, [0.0, 0.0])
    assert (result.multiplier, result.objective, result.converged) == (0.0, 1.0, True)


@pytest.mark.parametrize("per_page", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999, 1.0])
def test_floor(share, per_page):
    instance = noisy(6, 40, 10.0)
    floor = np.full(40, share * 10.0 / 40)
    if per_page:
        floor *= np.random.default_rng(0).permutation(np.linspace(0.0, 2.0, 40))
    result = solvers.ncis(instance, floor=floor)
    assert result.converged
    assert np.all(result.rates >= floor)
    assert result.rates.sum() == pytest.approx(10.0, rel=1e-9)
    known = {
        "change_rate": instance.change_rate,
        "recall": instance.recall,
        "false_signal_rate": instance.false_signal_rate,
    }
    gain = values.greedy_ncis(result.thresholds, importance=shares(instance), **known)
    free = result.rates > floor * (1 + 1e-9)
    np.testing.assert_allclose(gain[free], result.multiplier, rtol=1e-7)
    assert np.all(gain[~free] <= result.multiplier * (1 + 1e-7))
    timed = np.isfinite(result.thresholds)
    psi = values.cycle_length(result.thresholds, **known)
    np.testing.assert_allclose(result.rates[timed] * psi[timed], 1.0, rtol=1e-7)
    assert result.objective <= solvers.ncis(instance).objective + 1e-12


def test_floors_per_page_against_a_general_optimiser():
    floor = np.array([0.0, 0.5, 0.0, 0.6])
    model = [0.9, 1.1, 0.5, 0.8], [0.6, 0.2, 0.5, 0.4], [0.2, 0.3, 0.1, 0.4]
    instance = Instance([3.0, 0.3, 1.0, 0.1], *model, bandwidth=2.4)
    cycles = pages_of(instance)

    def rates(log_iota):
        return np.array(
            [1.0 / cycle(math.exp(x), page)[0] for x, page in zip(log_iota, cycles, strict=True)]
        )

    def lost(log_iota):
        both = [cycle(math.exp(x), page) for x, page in zip(log_iota, cycles, strict=True)]
        return -sum(mu * w / psi for mu, (psi, w) in zip(shares(instance), both, strict=True))

    limits = (
        {"type": "eq", "fun": lambda x: rates(x).sum() - 2.4},
        {"type": "ineq", "fun": lambda x: rates(x) - floor},
    )
    best = minimize(lost, np.log(np.full(4, 1.5)), constraints=limits, method="SLSQP", tol=1e-12)
    result = solvers.ncis(instance, floor=floor)
    assert best.success
    assert result.objective == pytest.approx(-best.fun, abs=1e-7)
    np.testing.assert_allclose(result.rates, rates(best.x), atol=1e-3)
    np.testing.assert_allclose(result.rates[[1, 3]], [0.5, 0.6], rtol=1e-9)


def test_floor_holds_for_pages_that_no_signal_would_lead_to():
    page = Instance([1.0, 1.0, 1.0], [0.5, 0.0, 0.2], [1.0, 0.5, 1.0], 0.1, bandwidth=9.0)
    result = solvers.ncis(page, floor=2.0)
    np.testing.assert_allclose(result.rates, [2.0, 2.0, 2.0])
    assert result.objective == pytest.approx(1.0)


def test_floor_of_useless_pages_reduces_the_others():
    given = Instance([1.0, 1.0, 0.0, 1.0], [0.5, 0.6, 0.3, 0.0], 0.4, 0.2, bandwidth=3.0)
    result = solvers.ncis(given, floor=0.2)
    np.testing.assert_allclose(result.rates[2:], 0.2)
    assert result.rates.sum() == pytest.approx(3.0, rel=1e-9)
    assert result.rates[:2].min() > 0.5


def test_floor_beyond_all_signals_of_a_page_whose_changes_are_all_signalled():
    """It is crawled at every signal, and therefore always fresh; more crawls add nothing."""
    given = Instance([1.0, 1.0], [0.2, 2.0], [1.0, 0.0], [0.1, 0.0], bandwidth=3.0)
    result = solvers.ncis(given, floor=1.0)
    rate = result.rates[1]
    other = rate / 2.0 * -math.expm1(-2.0 / rate)
    assert result.rates.sum() == pytest.approx(3.0, rel=1e-9)
    assert result.objective == pytest.approx(0.5 * 1.0 + 0.5 * other, rel=1e-9)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), budget=st.floats(-4.0, 4.0), count=st.integers(1, 8))
def test_optimality_conditions(data, budget, count):
    def draw(strategy):
        return np.array(data.draw(st.lists(strategy, min_size=count, max_size=count)))

    rate = st.floats(-4.0, 3.0).map(lambda power: 10.0**power)
    recall = st.one_of(st.just(0.0), st.floats(1e-9, 0.999), st.sampled_from([1.0, 1 - 1e-12]))
    instance = Instance(
        draw(rate),
        draw(rate),
        draw(recall),
        draw(st.one_of(st.just(0.0), rate)),
        bandwidth=10.0**budget,
    )
    result = solvers.ncis(instance)
    assert result.converged
    assert 0.0 <= result.objective <= 1.0
    assert np.all(result.rates >= 0.0)
    if result.multiplier > 0.0:
        assert result.rates.sum() == pytest.approx(10.0**budget, rel=1e-9)
    more = solvers.ncis(instance, 1.1 * 10.0**budget)
    gained = more.objective - result.objective
    allowed = 0.1 * 10.0**budget * result.multiplier
    assert -1e-11 <= gained <= allowed * (1 + 1e-6) + 1e-11
    assert more.multiplier <= result.multiplier * (1 + 1e-8)
    top = shares(instance) / instance.change_rate
    assert np.all(result.rates[top < result.multiplier * (1 - 1e-8)] == 0.0)


def test_sampled_start_leads_to_the_same_rates(monkeypatch):
    instance = noisy(9, 20_000, 4000.0)
    cold = solvers.ncis(instance)
    monkeypatch.setattr(SOLVER, "SAMPLED_ABOVE", 5000)
    monkeypatch.setattr(SOLVER, "SAMPLE", 1000)
    warm = solvers.ncis(instance)
    np.testing.assert_allclose(warm.rates, cold.rates, rtol=1e-5, atol=1e-5)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-11)


def test_a_problem_is_as_good_as_an_instance():
    instance = noisy(1, 30, 5.0)
    result, known = solvers.ncis(instance.problem()), solvers.ncis(instance)
    np.testing.assert_array_equal(result.rates, known.rates)
    assert solvers.ncis(instance, 7.0).rates.sum() == pytest.approx(7.0, rel=1e-9)


def quantities(zero=True):
    """Numbers of the supported domain: its ends, and what lies between them in all sizes."""
    sizes = st.floats(-12.0, 12.0).map(lambda power: 10.0**power)
    ends = st.sampled_from([1e-12, 1.0, 1e12] + [0.0] * zero)
    return st.one_of(ends, sizes.map(lambda size: min(max(size, 1e-12), 1e12)))


RECALLS = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 5e-324, 1e-300, 1e-31, 1e-29, 1e-16, 1.0 - 2.0**-53]),
    st.floats(0.0, 1.0),
)
PAGE = st.tuples(quantities(), quantities(), RECALLS, quantities())


@settings(derandomize=True, deadline=None, max_examples=1000)
@given(st.lists(PAGE, min_size=1, max_size=4), quantities(zero=False), st.floats(0.0, 1.0))
@example([(1.0, 1e-12, 1e-300, 0.0)], 1e12, 0.0)
@example([(0.07, 1e12, 0.96, 0.06)], 5e-7, 0.04)
@example([(1.0, 1e12, 1.0, 1e-12), (1.0, 1.0, 1.0 - 2.0**-53, 1e12)], 1e-12, 1.0)
def test_whatever_the_domain_holds_is_solved(pages, bandwidth, share):
    """No parameter in it gives NaN, an infinite rate or a search without end."""
    columns = [np.array(column) for column in zip(*pages, strict=True)]
    columns[0][0] = max(columns[0][0], 1e-12)
    instance = Instance(*columns, bandwidth=bandwidth)
    floor = share * bandwidth / len(pages)
    for least in {0.0, floor if floor >= 1e-12 else 0.0}:
        result = solvers.ncis(instance, floor=least)
        for array in (result.thresholds, result.signals, result.evidence, result.probabilities):
            assert not np.isnan(array).any()
            assert array.min() >= 0.0
        assert np.isfinite(result.rates).all()
        assert result.rates.min() >= 0.0
        assert result.rates.sum() <= bandwidth * (1.0 + 1e-8)
        assert 0.0 <= result.objective <= 1.0
        assert 0.0 <= result.multiplier < math.inf
