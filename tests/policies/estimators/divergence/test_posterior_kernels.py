"""The compiled parts of the belief about divergence, against slow twins and exact limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from policies.estimators.divergence import posterior_kernels as kernels
from policies.estimators.divergence import shapes as tables
from policies.estimators.divergence.posterior import DivergencePosterior, first_prior
from policies.values import greedy, greedy_ncis


def one_cell(belief, rate_row, share_row, shape_row):
    """Weights that are sure of one rate, share and shape."""
    grid = np.zeros(first_prior().size)
    shares, kinds = tables.NUM_SHARES, len(tables.shapes())
    grid[(rate_row * shares + share_row) * kinds + shape_row] = 1.0
    return grid


def curve_of(belief, weights, signals, recall, false_rate, ages=None):
    ages = belief.ages if ages is None else ages
    curve = np.zeros(ages.size)
    t = belief.tables
    kernels.expected_utility(
        curve, weights, t.divergence, t.missed, t.amount, belief.rates, ages,
        signals, recall, false_rate,
    )  # fmt: skip
    return curve


@pytest.fixture(scope="module")
def belief():
    return DivergencePosterior(1, 4.0, copies=2, memory=6)


def naive_log_change(rate, elapsed, signals, changed, recall, false_rate):
    """By the sum over how many updates were signalled and not."""
    result = 0.0
    if recall > 0.0:
        mean = (recall * rate + false_rate) * elapsed
        result += stats.poisson.logpmf(signals, mean) + math.lgamma(signals + 1)
    true_rate = recall * rate
    sure = true_rate / (true_rate + false_rate) if true_rate > 0.0 else 0.0
    none = math.exp(-(1.0 - recall) * rate * elapsed) * (1.0 - sure) ** signals
    return result + math.log(max(1.0 - none if changed else none, kernels.STATIC_CHANCE))


@pytest.mark.parametrize("recall", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("changed", [False, True])
def test_log_change_is_the_law_of_what_crawls_find(recall, changed):
    for rate in (0.01, 0.4, 5.0):
        for signals in (0, 1, 4):
            curve = kernels.log_change(rate, 2.5, signals, changed, recall, 0.2, recall > 0.0)
            expected = naive_log_change(rate, 2.5, signals, changed, recall, 0.2)
            assert curve == pytest.approx(expected, rel=1e-9, abs=1e-9)


def naive_weigh(belief, past, recall, false_rate, older):
    elapsed, signals, changed, age, lost_bin = past
    shares, kinds = tables.NUM_SHARES, len(tables.shapes())
    logs = belief.log_prior.copy()
    for row, rate in enumerate([*belief.rates, 0.0]):
        for n in range(len(elapsed)):
            change = naive_log_change(
                rate, float(elapsed[n]), int(signals[n]), changed[n], recall, false_rate
            )
            if rate == 0.0:
                logs[-1] += change
                continue
            block = slice(row * shares * kinds, (row + 1) * shares * kinds)
            logs[block] += change
            if not changed[n]:
                continue
            for copy in range(age.shape[1]):
                if lost_bin[n, copy] == kernels.NO_BIN:
                    continue
                amount = rate * float(age[n, copy])
                if copy == 0:
                    sure = recall * rate / (recall * rate + false_rate)
                    amount = (1.0 - recall) * rate * float(elapsed[n]) + signals[n] * sure
                place = round(tables.PER_OCTAVE * (math.log2(amount) - tables.MIN_LOG2))
                place = min(max(place, 0), tables.NUM_AMOUNTS - 1)
                cells = logs[block].reshape(shares, kinds)
                for k in range(shares):
                    at = int(lost_bin[n, copy]) - tables.BINS_PER_STEP * k
                    at = min(max(at, -tables.ABOVE), tables.BELOW) + tables.ABOVE
                    cells[k] += (1.0 if copy == 0 else older) * belief.tables.log_lost[place, at]
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def test_weights_are_the_twins(belief):
    rng = np.random.default_rng(3)
    for _ in range(4):
        n = 5
        past = kernels.PageCrawls(
            rng.exponential(4.0, n).astype(np.float32),
            rng.integers(0, 3, n).astype(np.int16),
            rng.random(n) < 0.7,
            rng.exponential(8.0, (n, 2)).astype(np.float32),
            np.where(rng.random((n, 2)) < 0.3, kernels.NO_BIN, rng.integers(-2, 40, (n, 2))).astype(
                np.int8
            ),
        )
        weights = np.zeros(first_prior().size)
        kernels.weigh(
            weights, belief.log_prior, belief.tables.log_lost, belief.rates, past, 0.4, 0.1, 0.3
        )
        expected = naive_weigh(belief, past, 0.4, 0.1, 0.3)
        np.testing.assert_allclose(weights, expected, atol=1e-6)
        assert weights.sum() == pytest.approx(1.0)


def test_bins_are_those_of_lost_shares():
    assert kernels.bin_of(1.0) == 0
    assert kernels.bin_of(2.0 / 3.0) == round(tables.BINS_PER_STEP / tables.SHARE_STEP)  # half lost
    for nothing in (0.0, math.nan):
        assert kernels.bin_of(nothing) == kernels.NO_BIN


def test_without_signals_a_page_of_churn_has_the_value_of_greedy(belief):
    rate = belief.rates[9]
    curve = curve_of(belief, one_cell(belief, 9, 0, 0), 0, 0.0, 0.0)
    expected = greedy(belief.ages, importance=1.0, change_rate=rate)
    reach = rate * belief.ages > 2.0**tables.MIN_LOG2
    np.testing.assert_allclose(curve[reach], expected[reach], rtol=1e-5)


def test_signals_that_tell_nothing_change_nothing(belief):
    weights = first_prior()
    silent = curve_of(belief, weights, 0, 0.0, 0.0)
    np.testing.assert_allclose(curve_of(belief, weights, 3, 0.0, 0.5), silent, rtol=1e-12)


@pytest.mark.parametrize("signals", [0, 1, 2, 4])
def test_complete_observation_gives_the_value_of_each_update(belief, signals):
    """U(n) = (n d_n - sum of d_k over k < n) / L, for a page with three items of eight lost."""
    shape = tables.shapes()[3]
    by_updates = [
        tables.mean_divergence(shape, np.zeros(1), count)[2, 0] for count in range(signals + 1)
    ]
    curve = curve_of(belief, one_cell(belief, 8, 2, 3), signals, 1.0, 0.0)
    expected = (signals * by_updates[-1] - sum(by_updates[:-1])) / belief.rates[8]
    np.testing.assert_allclose(curve, expected, rtol=1e-4, atol=1e-6)


def test_a_binary_page_has_the_value_of_a_belief_about_it(belief):
    """(1 - (1 + B) exp(-x)) / L, which is V_GREEDY_NCIS where all updates are signalled."""
    rate, recall, false_rate, ages = belief.rates[8], 0.7, 0.1, belief.ages[8:28]
    sure = recall * rate / (recall * rate + false_rate)
    for signals in (0, 1, 3):
        expected_changes = (1.0 - recall) * rate * ages + signals * sure
        kept = np.exp(-(1.0 - recall) * rate * ages) * (1.0 - sure) ** signals
        curve = curve_of(belief, one_cell(belief, 8, 0, 0), signals, recall, false_rate, ages)
        np.testing.assert_allclose(curve, (1.0 - (1.0 + expected_changes) * kept) / rate, rtol=0.02)
    one = curve_of(belief, one_cell(belief, 8, 0, 0), 1, 1.0, 0.0, ages)
    exact = greedy_ncis(
        np.full(ages.size, np.inf), importance=1.0, change_rate=rate, recall=1.0,
        false_signal_rate=0.0,
    )  # fmt: skip
    np.testing.assert_allclose(one, exact, rtol=1e-4)


def test_utility_is_the_sum_over_the_path(belief):
    """U = tau D less the sum of D before each step of tau, tau the updates expected, over L."""
    row, rate, recall, false_rate = 9, belief.rates[9], 0.5, 0.3
    shape = tables.shapes()[2]
    sure = recall * rate / (recall * rate + false_rate)
    times, steps = (1.0, 2.5), 4000

    def divergence(t, signals):
        a = np.array([(1.0 - recall) * rate * t])
        parts = [tables.mean_divergence(shape, a, j)[1, 0] for j in range(signals + 1)]
        return stats.binom.pmf(np.arange(signals + 1), signals, sure) @ parts

    area, now, signals = 0.0, 0.0, 0
    for end in (*times, 4.0):
        grid = np.linspace(now, end, steps // 100)
        values = [divergence(t, signals) for t in grid]
        area += (1.0 - recall) * rate * np.trapezoid(values, grid)
        if end < 4.0:
            area += sure * divergence(end, signals)
            signals += 1
        now = end
    expected_changes = (1.0 - recall) * rate * 4.0 + 2 * sure
    expected = (expected_changes * divergence(4.0, 2) - area) / rate
    curve = curve_of(belief, one_cell(belief, row, 1, 2), 2, recall, false_rate, np.array([4.0]))
    assert curve[0] == pytest.approx(expected, rel=0.01)


def test_utility_without_signals_is_the_general_case():
    made, rates = tables.shape_tables(), np.exp2(np.arange(17.0) - 8.0) / 3.0
    ages = np.exp2(np.arange(32) / 2.0 - 6.0) * 3.0
    weights = np.random.default_rng(0).exponential(size=made.gain[..., 0].size * 17 + 1) ** 3
    weights /= weights.sum()
    short, long = np.zeros(32), np.zeros(32)
    kernels.utility_without_signals(short, weights, made.gain, made.amount, rates, ages)
    arguments = made.divergence, made.missed, made.amount, rates, ages
    kernels.expected_utility(long, weights, *arguments, 0, 0.0, 0.3)
    tabulated = rates.min() * ages >= made.amount[0]
    assert tabulated.sum() == 28
    assert short[tabulated] == pytest.approx(long[tabulated], rel=1e-9)
    assert short == pytest.approx(long, rel=1e-3)  # below the tables both are continued
