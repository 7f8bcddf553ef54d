"""Distributions of delays against SciPy, and against sums in 50 digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crawl_envs.types import Delay
from policies.values.delays import (
    ENDLESS,
    arrived,
    delay_numbers,
    under_way,
)

DELAYS = (
    Delay("constant", 0.7),
    Delay("exponential", 1.3),
    Delay("poisson", 6.0, 1.0),
    Delay("poisson", 0.06, 0.01),
    Delay("poisson", 0.5, 1.0),
    Delay("poisson", 120.0, 0.25),
    Delay("poisson", 500.0, 1.0),
)
NONE = (Delay(), Delay("constant", 0.0), Delay("exponential", 0.0), Delay("poisson", 0.0))
SHARES = (0.0, 1e-9, 0.01, 0.3, 0.5, 0.77, 0.99, 1.0, 1.01, 1.2, 1.9, 3.0, 7.3, 40.0)


def share_arrived(ages, delay):
    """G at each age."""
    return np.array([arrived(*delay_numbers(delay), age)[0] for age in ages])


def time_under_way(times, delay):
    """H at each time."""
    return np.array([under_way(*delay_numbers(delay), time) for time in times])


def survival(delay: Delay, time: float) -> float:
    """P(D > time) by SciPy."""
    if delay.kind == "constant":
        return float(time < delay.mean)
    if delay.kind == "exponential":
        return float(stats.expon.sf(time, scale=delay.mean))
    return float(stats.poisson.sf(math.floor(time / delay.quantum), delay.mean / delay.quantum))


def naive_under_way(delay: Delay, time: float) -> mp.mpf:
    """E[min(D, time)] in 50 digits: sums of the definition, step by step."""
    with mp.workdps(50):
        t, mean, quantum = map(mp.mpf, (time, delay.mean, delay.quantum))
        if delay.kind == "constant":
            return min(t, mean)
        if delay.kind == "exponential":
            return mean * (1 - mp.exp(-t / mean))
        weight, below, total = mp.exp(-mean / quantum), mp.mpf(0), mp.mpf(0)
        count = 0
        while count * quantum < t and (count < mean / quantum or weight > mp.mpf(10) ** -45):
            total += weight * count * quantum
            below += weight
            count += 1
            weight *= mean / quantum / count
        return total + t * (1 - below)


@pytest.mark.parametrize("delay", DELAYS, ids=str)
def test_both_tails_are_exact(delay):
    for share in (*SHARES, math.inf):
        age = share * delay.mean
        soon, late = arrived(*delay_numbers(delay), age)
        assert soon + late == pytest.approx(1.0, rel=1e-15)
        if ENDLESS * (delay.mean + delay.quantum) > age:
            assert late == pytest.approx(survival(delay, age), rel=1e-11)


@pytest.mark.parametrize("delay", DELAYS, ids=str)
def test_time_under_way(delay):
    times = [share * delay.mean for share in SHARES]
    expected = [float(naive_under_way(delay, time)) for time in times]
    np.testing.assert_allclose(time_under_way(times, delay), expected, rtol=1e-12, atol=1e-15)
    assert time_under_way([math.inf], delay) == [delay.mean]


@given(
    st.sampled_from(DELAYS),
    st.floats(0.0, 60.0, allow_nan=False),
    st.floats(0.0, 60.0, allow_nan=False),
)
def test_both_grow_with_time(delay, share, other):
    early, late = sorted((share * delay.mean, other * delay.mean))
    first, second = share_arrived([early, late], delay)
    assert 0.0 <= first <= second * (1.0 + 1e-12) <= 1.0 + 1e-11
    first, second = time_under_way([early, late], delay)
    assert 0.0 <= first <= second * (1.0 + 1e-12)
    assert second <= min(late, delay.mean) * (1.0 + 1e-12)


@pytest.mark.parametrize("delay", NONE, ids=str)
def test_without_delay_all_signals_arrive_at_once(delay):
    np.testing.assert_array_equal(share_arrived([0.0, 1.0, math.inf], delay), 1.0)
    np.testing.assert_array_equal(time_under_way([0.0, 1.0, math.inf], delay), 0.0)
