"""Schedules: twins in exact arithmetic, discrepancy bounds, published accuracies, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import solvers
from policies.base import schedules
from tests.naive import schedules as naive_schedules
from tests.reference import reference

whole_rates = st.lists(st.integers(0, 30), min_size=1, max_size=12).filter(any)


@settings(max_examples=60, deadline=None)
@given(rates=whole_rates)
def test_schedule_is_its_exact_twin(rates):
    slots = 2 * sum(rates) + 3
    pages = schedules.low_discrepancy(rates, slots)
    assert pages.dtype == np.int64
    assert pages.tolist() == naive_schedules.deadline(rates, slots)


@pytest.mark.parametrize("num_pages", [2, 3, 5, 50, 300])
@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
def test_discrepancy_stays_within_its_bounds(num_pages, spread):
    rates = np.random.default_rng(num_pages).random(num_pages) ** spread
    assert naive_schedules.discrepancy(rates, schedules.low_discrepancy(rates, 3000)) < 1.0


def test_pages_without_rate_and_extreme_rates():
    def schedule(rates, slots):
        return schedules.low_discrepancy(rates, slots).tolist()

    assert schedule([0.0, 2.0, 0.0, 2.0], 4) == [1, 3, 1, 3]
    assert schedule([0.0, 5.0], 3) == [1, 1, 1]
    assert schedule([1e-300, 1.0, 1e300], 3) == [2, 2, 2]
    assert schedule([1e300, 1e300], 4) == [0, 1, 0, 1]
    assert schedule([1.0], 0) == []


def test_many_pages_over_many_slots_keep_their_share():
    rates = np.random.default_rng(1).pareto(1.2, 20_000)
    pages = schedules.low_discrepancy(rates, 300_000)
    made = np.bincount(pages, minlength=len(rates))
    assert np.abs(made - 300_000 * rates / rates.sum()).max() < 1.0


def test_random_schedule_has_the_rates_and_is_repeatable():
    rates = np.array([0.0, 1.0, 3.0, 0.0, 6.0, 0.0])
    pages = schedules.random(rates, 100_000, np.random.default_rng(3))
    made = np.bincount(pages, minlength=6)
    assert made[[0, 3, 5]].sum() == 0
    np.testing.assert_allclose(made / 100_000, rates / 10, atol=6e-3)  # four standard errors
    again = schedules.random(rates, 100_000, np.random.default_rng(3))
    np.testing.assert_array_equal(pages, again)


@pytest.mark.parametrize("case", range(3))
def test_reference_accuracies(case):
    known = reference("greedy_deterministic")[case]
    rng = np.random.default_rng(known["seed"])
    change_rate, importance = rng.random(known["m"]), rng.random(known["m"])
    rates = solvers.binary_periodic(importance, change_rate, 100.0).rates
    pages = schedules.low_discrepancy(rates, 100_000)
    accuracy = naive_schedules.expected_accuracy(pages, importance, change_rate, 100.0)
    assert accuracy == pytest.approx(known["lds_tijdeman_exact_acc"], rel=2e-4)


@pytest.mark.parametrize("draw", [schedules.low_discrepancy, schedules.random])
@pytest.mark.parametrize(
    ("rates", "slots", "message"),
    [
        ([1.0, -1.0], 3, "rates must be finite and >= 0, got -1.0"),
        ([1.0, np.nan], 3, "rates must be finite and >= 0, got nan"),
        ([0.0, 0.0], 3, "rates must be positive for at least one page"),
        ([], 3, "rates must be positive for at least one page"),
        ([[1.0]], 3, r"rates must have shape \(m,\), got shape \(1, 1\)"),
        ([1.0], -1, "slots must be an integer >= 0, got -1"),
        ([1.0], 2.5, "slots must be an integer >= 0, got 2.5"),
    ],
)
def test_bad_input(draw, rates, slots, message):
    more = {"rng": np.random.default_rng(0)} if draw is schedules.random else {}
    with pytest.raises(ValueError, match=message):
        draw(rates, slots, **more)
