"""The optimum with several sources of signals: optimisers, duality, limits, one-source twins."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

from crawl_envs import Instance
from crawl_envs.compiled.compiling import ready
from crawl_envs.instances import make
from policies import solvers
from policies.ncis.threshold import threshold_rule
from policies.solvers.noisy_signals.sources import evidence_margin
from policies.values.sources.kernels import cycle_length_sources_value
from policies.values.sources.tables import level_table
from tests.naive import source_values as naive

OBJECTIVE = 1e-6
"""Accuracy of the objective, whose error is of second order in that of the rates."""

RATES, STEPS = 3e-5, 2e-4
"""Relative accuracy of rates and cycle lengths, and where these rise in many steps."""


def drawn(seed, num_pages, bandwidth, **fixed):
    """Two different sources; the first has low recall and few false signals."""
    rng = np.random.default_rng(seed)
    given = {
        "importance": rng.random(num_pages),
        "change_rate": rng.uniform(0.2, 1.0, num_pages),
        "recall": np.stack([rng.uniform(0.1, 0.4, num_pages), rng.uniform(0.1, 0.5, num_pages)]),
        "false_signal_rate": np.stack(
            [rng.uniform(0.01, 0.05, num_pages), rng.uniform(0.1, 0.6, num_pages)]
        ),
    }
    return Instance(**{**given, **fixed}, bandwidth=bandwidth)


def shares(instance):
    return instance.importance / instance.importance.sum()


def cycles_of(instance):
    """For every page a function from a level y to psi and w, summed as written in 60 digits."""

    def one(page):
        known = (
            instance.change_rate[page],
            instance.recall[:, page],
            instance.false_signal_rate[:, page],
        )

        @functools.cache
        def cycle(y):
            return float(naive.cycle_length(y, known)), float(naive.cycle_freshness(y, known))

        return cycle

    return [one(page) for page in range(instance.num_pages)]


def alpha_of(instance):
    return (1.0 - instance.recall.sum(0)) * instance.change_rate


@pytest.mark.parametrize(
    ("seed", "bandwidth", "fixed"),
    [
        (2, 2.0, {}),
        (3, 5.0, {}),
        (4, 1.0, {"false_signal_rate": np.array([[0.0, 0.1, 0.0, 0.1], [0.1, 0.1, 0.2, 0.1]])}),
    ],
)
def test_duality_gap(seed, bandwidth, fixed):
    """No threshold of any page is better at the multiplier than the solution."""
    instance = drawn(seed, 4, bandwidth, **fixed)
    result = solvers.ncis(instance)
    dual = result.multiplier * bandwidth
    for share, cycle in zip(shares(instance), cycles_of(instance), strict=True):

        def gain(log_y, share=share, cycle=cycle):
            psi, w = cycle(math.exp(float(log_y)))
            return -(share * w - result.multiplier) / psi

        grid = np.linspace(-4.0, 2.0, 31)
        best = grid[np.argmin([gain(x) for x in grid])]
        polished = minimize_scalar(
            gain, bounds=(best - 0.2, best + 0.2), method="bounded", options={"xatol": 1e-6}
        )
        dual += max(-polished.fun, 0.0)
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-10)
    assert dual - result.objective == pytest.approx(0.0, abs=OBJECTIVE)
    crawled = result.rates > 0.0
    psi, w = np.array(
        [cycle(y) for cycle, y in zip(cycles_of(instance), result.evidence, strict=True) if y < 99]
    ).T
    np.testing.assert_allclose(result.rates[crawled] * psi, 1.0, rtol=RATES)
    fresh = shares(instance)[crawled] @ (w / psi)
    assert result.objective == pytest.approx(fresh, rel=OBJECTIVE)
    np.testing.assert_allclose(result.thresholds * alpha_of(instance), result.evidence, rtol=1e-12)


@pytest.mark.parametrize("total", [1.0, 0.999, 0.97])
@pytest.mark.parametrize("noise", [(1.0, 2.0), (0.05, 2.0)])
def test_cycle_lengths_that_climb_in_steps(total, noise):
    """Where all but every change is signalled, by sources too weak for a small lattice."""
    known = (0.7, (0.3 * total, 0.7 * total), noise)
    page = {"change_rate": 0.7, "recall": [[0.3 * total], [0.7 * total]]}
    table = level_table(1.0, **page, false_signal_rate=np.array(noise)[:, None])
    for level in (0.3, 0.9, 1.7, 3.1):
        psi = ready(cycle_length_sources_value)(table, 0, level, 0.0) / 0.7
        assert psi == pytest.approx(float(naive.cycle_length(level, known)), rel=RATES)


def test_stairs_of_evidence_against_a_linear_programme():
    """Where every change is signalled, levels are sums n . b: mixtures of all of them at once."""
    recall = np.array([[0.4, 0.7, 0.25], [0.6, 0.3, 0.75]])
    false_rate = np.array([[0.1, 0.05, 0.0], [0.4, 0.9, 0.3]])
    instance = Instance([1.0, 2.0, 0.5], [0.5, 0.3, 0.4], recall, false_rate, bandwidth=1.0)
    gains, spends, owner = [], [], []
    for page, cycle in enumerate(cycles_of(instance)):
        known = (instance.change_rate[page], recall[:, page], false_rate[:, page])
        *_, b = naive.page(*known)
        levels = sorted({float(level) for _, level in naive.points(b, 14.0)})[1:]
        for level in levels[:200]:
            psi, w = cycle(level * (1.0 - 1e-12))
            gains.append(shares(instance)[page] * w / psi)
            spends.append(1.0 / psi)
            owner.append(page)
    certain = recall[0, 2] * 0.4  # page 2 by certain signals alone
    gains.append(shares(instance)[2] * certain / 0.4)
    spends.append(certain)
    owner.append(2)
    limited = np.vstack([spends, *(np.equal(owner, page) for page in range(3))])
    for bandwidth in (0.1, 0.4, 1.0, 1.7):
        result = solvers.ncis(instance, bandwidth)
        best = linprog(-np.array(gains), A_ub=limited, b_ub=[bandwidth, 1, 1, 1])
        assert result.converged
        assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-9)
        assert result.objective == pytest.approx(-best.fun, rel=OBJECTIVE)
        assert np.all(np.isinf(result.thresholds))


def test_more_than_can_be_used():
    recall, false_rate = np.array([[0.4, 0.0], [0.6, 1.0]]), np.array([[0.1, 9.0], [0.4, 0.2]])
    instance = Instance([1.0, 2.0], [0.5, 0.3], recall, false_rate, bandwidth=5.0)
    result = solvers.ncis(instance)
    np.testing.assert_allclose(result.rates, [1.0, 0.5])
    np.testing.assert_array_equal(result.signals, [[1.0, np.inf], [1.0, 1.0]])
    assert (result.multiplier, result.converged) == (0.0, True)
    assert result.objective == pytest.approx(1.0, abs=1e-12)
    slow = Instance([1.0, 2.0], [0.5, 0.3], recall, false_rate, bandwidth=5.0)
    floored = solvers.ncis(slow, floor=1.2)
    assert floored.rates.min() == pytest.approx(1.2)
    rule = threshold_rule(slow.problem(), 0.0, floored)
    assert np.all(rule.timed)
    np.testing.assert_allclose(-np.expm1(-1.0 * rule.threshold[0]) / 1.0, 1 / 1.2, rtol=1e-9)
    assert np.all(rule.signal_weight == np.inf)


def one_source(seed, num_pages, bandwidth):
    rng = np.random.default_rng(seed)
    recall = rng.beta(0.25, 0.25, num_pages)
    recall[:3] = 1.0, 0.0, 0.5
    false_rate = rng.uniform(0.1, 0.6, num_pages)
    false_rate[3:5] = 0.0
    return rng.random(num_pages), rng.random(num_pages), recall, false_rate, bandwidth


@pytest.mark.parametrize("bandwidth", [1.0, 8.0, 60.0])
def test_a_useless_source_changes_nothing(bandwidth):
    """Whether it is silent or noise alone."""
    importance, change_rate, recall, false_rate, _ = one_source(0, 30, bandwidth)
    known = solvers.ncis(Instance(importance, change_rate, recall, false_rate, bandwidth=bandwidth))
    for noise in (0.0, 0.7):
        more = Instance(
            importance,
            change_rate,
            np.stack([0.0 * recall, recall]),
            np.stack([np.full(30, noise), false_rate]),
            bandwidth=bandwidth,
        )
        result = solvers.ncis(more)
        for name in ("objective", "multiplier", "rates", "thresholds", "probabilities", "evidence"):
            np.testing.assert_allclose(getattr(result, name), getattr(known, name), rtol=1e-9)
        assert np.all(np.isinf(result.signals[0]))


@pytest.mark.parametrize("bandwidth", [1.0, 8.0, 60.0])
def test_sources_alike_are_one(bandwidth):
    importance, change_rate, recall, false_rate, _ = one_source(1, 30, bandwidth)
    known = solvers.ncis(Instance(importance, change_rate, recall, false_rate, bandwidth=bandwidth))
    parts = np.array([0.25, 0.75])[:, None]
    result = solvers.ncis(
        Instance(importance, change_rate, parts * recall, parts * false_rate, bandwidth=bandwidth)
    )
    assert result.objective == pytest.approx(known.objective, rel=OBJECTIVE)
    np.testing.assert_allclose(result.rates, known.rates, rtol=STEPS, atol=STEPS)


@pytest.mark.parametrize("seed", range(3))
def test_telling_sources_apart_never_costs(seed):
    instance = drawn(seed, 40, 12.0)
    apart, pooled = solvers.ncis(instance), solvers.ncis(instance.pooled())
    silent = solvers.ncis(Instance(instance.importance, instance.change_rate, bandwidth=12.0))
    assert apart.objective > pooled.objective + 1e-3
    assert pooled.objective > silent.objective


def test_named_instance_with_more_sources_and_floor():
    instance = make("sources", num_pages=60, bandwidth=20.0, seed=0, num_sources=3)
    free, floored = solvers.ncis(instance), solvers.ncis(instance, floor=0.1)
    assert free.converged
    assert floored.converged
    assert free.rates.min() < 0.1 <= floored.rates.min() * (1 + 1e-12)
    assert floored.rates.sum() == pytest.approx(20.0, rel=1e-9)
    assert floored.objective < free.objective
    psi = [
        float(
            naive.cycle_length(
                floored.evidence[page],
                (
                    instance.change_rate[page],
                    instance.recall[:, page],
                    instance.false_signal_rate[:, page],
                ),
            )
        )
        for page in range(3)
    ]
    np.testing.assert_allclose(floored.rates[:3] * psi, 1.0, rtol=RATES)


def test_static_and_unimportant_pages():
    recall, false_rate = np.full((2, 3), 0.3), np.array([[0.1, 0.0, 0.0], [0.5, 0.2, 0.2]])
    instance = Instance([1.0, 1.0, 0.0], [0.5, 0.0, 1.0], recall, false_rate, bandwidth=0.3)
    result = solvers.ncis(instance)
    np.testing.assert_allclose(result.rates, [0.3, 0.0, 0.0], rtol=1e-9)
    assert np.all(np.isinf(result.signals[:, 1:]))
    floored = solvers.ncis(instance, floor=0.05)
    rule = threshold_rule(instance.problem(), 0.0, floored)
    np.testing.assert_allclose(rule.threshold[1:], 20.0)
    np.testing.assert_array_equal(rule.signal_weight[:, 1:], 0.0)


def test_a_probability_at_a_level_makes_the_rate():
    """One page, every change signalled: two levels mix to any rate in between."""
    recall, false_rate = np.array([[0.4], [0.6]]), np.array([[0.1], [0.4]])
    page = (0.5, recall[:, 0], false_rate[:, 0])
    for bandwidth in (0.13, 0.3, 0.71):
        instance = Instance(1.0, 0.5, recall, false_rate, bandwidth=bandwidth)
        result = solvers.ncis(instance)
        rule = threshold_rule(instance.problem(), 0.0, result)
        sooner, later = (
            float(naive.cycle_length(float(level[0]), page))
            for level in (rule.threshold, rule.later_threshold)
        )
        share = rule.later_share[0]
        assert not rule.timed[0]
        assert 0.0 < share < 1.0
        assert (1 - share) * sooner + share * later == pytest.approx(1 / bandwidth, rel=1e-8)
        assert result.probabilities[0] == pytest.approx(1.0 - share, abs=1e-15)


rates = st.floats(-3.0, 2.0).map(lambda power: 10.0**power)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), budget=st.floats(-3.0, 3.0), count=st.integers(1, 4))
def test_optimality_conditions(data, budget, count):
    def draw(strategy):
        return np.array(data.draw(st.lists(strategy, min_size=count, max_size=count)))

    share = st.one_of(st.just(0.0), st.floats(1e-9, 0.999), st.sampled_from([1.0, 1 - 1e-12]))
    total, part = draw(share), draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.05, 0.95)))
    noise = st.one_of(st.just(0.0), rates)
    instance = Instance(
        draw(rates),
        draw(rates),
        np.stack([part * total, total - part * total]),
        np.stack([draw(noise), draw(noise)]),
        bandwidth=10.0**budget,
    )
    result = solvers.ncis(instance)
    assert result.converged
    assert 0.0 <= result.objective <= 1.0
    assert np.all(result.rates >= 0.0)
    if result.multiplier > 0.0:
        assert result.rates.sum() == pytest.approx(10.0**budget, rel=1e-9)
    pooled = solvers.ncis(instance.pooled())
    assert result.objective >= pooled.objective - 1e-3  # see the docstring of ncis
    more = solvers.ncis(instance, 1.1 * 10.0**budget)
    assert more.objective >= result.objective - 1e-3
    top = shares(instance) / instance.change_rate
    assert np.all(result.rates[top < result.multiplier * (1 - 1e-8)] == 0.0)


@pytest.mark.parametrize(
    ("page", "others", "bandwidth"),
    [((10.0, 0.1, 1.0, 100.0), 3, 100.0), ((1, 1e-3, 0.75, 1), 0, 1)],
)
def test_a_source_that_is_silent_changes_nothing(page, others, bandwidth):
    """Also where there are many false signals per change, each with little evidence."""
    known = np.array([page, *[(1.0, 1.0, 0.0, 0.0)] * others]).T
    one = Instance(*known[:2], known[2:3], known[3:], bandwidth=bandwidth)
    silent = np.zeros_like(known[:1])
    recall, noise = (np.concatenate([row[None], silent]) for row in known[2:])
    two = Instance(*known[:2], recall, noise, bandwidth=bandwidth)
    assert solvers.ncis(two).objective >= solvers.ncis(one).objective - 1e-9


def test_the_margin_of_a_level_is_less_than_the_evidence_of_a_signal() -> None:
    level, evidence = np.array([10.0, 1e9]), np.array([[0.1, 0.1], [2.0, 0.0]])
    np.testing.assert_allclose(evidence_margin(level, evidence), [1e-5, 0.025], rtol=1e-12)


def test_probabilities_where_all_changes_are_signalled_are_1_or_share_two_lattice_points() -> None:
    randomised = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        recall, noise = rng.dirichlet([1.0, 1.0], 12).T, rng.uniform(0.05, 0.6, (2, 12))
        given = Instance(rng.random(12), 3.0 * rng.random(12), recall, noise, bandwidth=4.0)
        found = solvers.ncis(given)
        assert found.converged
        chance = found.probabilities
        assert np.all((chance >= 0.0) & (chance <= 1.0))
        randomised += int(((chance > 0.0) & (chance < 1.0)).sum())
        assert np.all(chance[found.rates == 0.0] == 1.0)
    assert randomised > 0
