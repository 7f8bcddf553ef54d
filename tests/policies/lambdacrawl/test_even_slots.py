"""Slots given to pages at rates that change, and to signals that are answered."""

import numpy as np
import pytest

from policies.base import schedules
from policies.lambdacrawl.even_slots import EvenSlots

ALL = np.ones(50, np.bool_)


def naive_turns(plans):
    """The page of each slot, of (rates, slots) pairs, by the definition, in exact fractions."""
    from fractions import Fraction

    credit = None
    turns = []
    for rates, slots in plans:
        shares = [Fraction(rate, sum(rates)) for rate in rates]
        credit = credit or [Fraction(0)] * len(rates)
        for _ in range(slots):
            open_pages = [i for i, share in enumerate(shares) if credit[i] + share > 0 and share]
            due = {i: -((credit[i] - 1) // shares[i]) for i in open_pages}
            chosen = min(open_pages, key=lambda i: (due[i], i))
            credit = [have + share for have, share in zip(credit, shares, strict=True)]
            credit[chosen] -= 1
            turns.append(chosen)
    return turns


def test_rates_that_stay_make_the_low_discrepancy_schedule():
    for seed in range(5):
        rates = np.random.default_rng(seed).exponential(size=50)
        slots = EvenSlots(50)
        slots.plan(rates, np.zeros(50))
        turns = [slots.take(ALL) for _ in range(2000)]
        assert turns == schedules.low_discrepancy(rates, 2000).tolist()


def test_rates_that_change_against_exact_fractions():
    rng = np.random.default_rng(3)
    plans = [(rng.integers(1, 9, 7).tolist(), int(rng.integers(5, 40))) for _ in range(12)]
    slots = EvenSlots(7)
    turns = []
    for rates, count in plans:
        slots.plan(np.array(rates, float), np.zeros(7))
        turns += [slots.take(ALL[:7]) for _ in range(count)]
    assert turns == naive_turns(plans)


def test_what_plans_promise_is_kept_over_many_of_them():
    rng = np.random.default_rng(0)
    slots, promised, made = EvenSlots(30), np.zeros(30), np.zeros(30)
    worst = 0.0
    for _ in range(200):
        rates = rng.exponential(size=30)
        slots.plan(rates, np.zeros(30))
        for _ in range(20):
            promised += rates / rates.sum()
            made[slots.take(ALL[:30])] += 1
            worst = max(worst, np.abs(made - promised).max())
    assert 0.5 < worst < 2.0
    assert np.allclose(slots.credit, promised - made)


def test_pages_that_lose_their_rate_leave_nothing_behind():
    slots = EvenSlots(3)
    slots.plan(np.array([1.0, 1.0, 1.0]), np.zeros(3))
    slots.take(ALL[:3])
    slots.plan(np.array([0.0, 1.0, 3.0]), np.zeros(3))
    assert slots.credit[0] == 0.0
    assert slots.credit.sum() == pytest.approx(0.0, abs=1e-12)
    assert [slots.take(ALL[:3]) for _ in range(8)].count(0) == 0


def test_signals_come_first_and_in_order():
    slots = EvenSlots(4)
    slots.plan(np.array([1.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.5, 1.0, 0.0]))
    slots.responses.on_signal(np.array([1, 0, 2, 1, 3]))
    assert [slots.take(ALL[:4]) for _ in range(4)] == [2, 1, 0, 3]
    slots.responses.on_signal(np.array([1]))
    assert slots.take(ALL[:4]) == 0
    slots.responses.on_signal(np.array([1]))
    assert slots.take(ALL[:4]) == 1


def test_a_crawl_that_had_to_wait_answers_for_all_signals_before_it():
    slots = EvenSlots(2)
    slots.plan(np.zeros(2), np.array([1.0, 0.7]))
    slots.responses.on_signal(np.array([0, 0, 1, 0, 1, 1, 1]))
    assert [slots.take(ALL[:2]) for _ in range(2)] == [0, 1]
    assert not slots.responses
    assert slots.responses.account.tolist() == pytest.approx([0.0, 0.8])


def test_without_rates_the_fullest_account_is_served_ahead_of_time():
    slots = EvenSlots(3)
    slots.plan(np.zeros(3), np.array([0.3, 0.4, 0.3]))
    slots.responses.on_signal(np.array([1, 0]))
    assert slots.take(ALL[:3]) == 1
    assert slots.responses.account.tolist() == pytest.approx([0.3, -0.6, 0.0])


def test_pages_that_do_not_exist_are_left_out():
    slots, alive = EvenSlots(3), np.array([False, True, True])
    slots.plan(np.array([5.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0]))
    slots.responses.on_signal(np.array([0]))
    assert 0 not in [slots.take(alive) for _ in range(20)]
    slots.plan(np.zeros(3), np.array([1.0, 0.0, 0.0]))
    slots.responses.account[0] = 0.9
    assert slots.take(alive) == 1
