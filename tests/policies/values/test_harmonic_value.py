"""The crawl value under the harmonic penalty, against 50 digits, quadrature and its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import values
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables
from tests.naive import harmonic as naive_harmonic

POWERS = st.floats(-12.0, 12.0).map(lambda power: 10.0**power)
WIGGLE = 3e-15


@pytest.mark.parametrize("change_rate", [1e-9, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("elapsed", [1e-6, 0.5, 3.0])
def test_closed_form_is_the_definition(elapsed, change_rate):
    closed = naive_harmonic.closed_value(elapsed, 2.0, change_rate)
    defined = naive_harmonic.crawl_value(elapsed, 2.0, change_rate)
    assert float(closed) == pytest.approx(float(defined), rel=1e-12)


@given(elapsed=POWERS, change_rate=POWERS, importance=POWERS)
@settings(max_examples=400, deadline=None)
def test_value_of_an_unobserved_page_in_120_digits(elapsed, change_rate, importance):
    result = values.harmonic(elapsed, importance=importance, change_rate=change_rate)
    exact = naive_harmonic.closed_value(elapsed, importance, change_rate)
    assert float(result) == pytest.approx(float(exact), rel=3e-15)


@pytest.mark.parametrize("x", [0.0, 1e-12, 1e-9, 0.999999999, 1.0, 1.0000000001, 45.0, 1e12])
def test_where_the_series_ends(x):
    result = values.harmonic(x, importance=1.0, change_rate=1.0)
    assert float(result) == pytest.approx(
        float(naive_harmonic.closed_value(x, 1.0, 1.0)) if x else 0.0, rel=1e-15
    )


@given(
    elapsed=st.one_of(st.just(0.0), POWERS),
    change_rate=st.one_of(st.just(0.0), POWERS),
    step=st.floats(-17.0, 3.0).map(lambda power: 10.0**power),
)
@settings(max_examples=300, deadline=None)
def test_value_never_decreases(elapsed, change_rate, step):
    table = value_tables.harmonic_table(1.0, change_rate)
    now, later = (
        value_kernels.harmonic_value(table, 0, time, 0.0)
        for time in (elapsed, max(elapsed * (1.0 + step), math.nextafter(elapsed, 1e300)))
    )
    assert 0.0 <= now * (1.0 - WIGGLE) <= later
    assert (now == 0.0) == (change_rate == 0.0 or elapsed == 0.0 or change_rate * elapsed < 1e-300)


@pytest.mark.parametrize("signals", [0, 1, 2, 17])
def test_value_of_an_observed_page_is_the_definition(signals):
    result = values.harmonic(
        5.0, importance=3.0, change_rate=0.7, signals=signals, complete=[False, True]
    )
    assert result.shape == (2,)
    exact = naive_harmonic.observed_value(signals, 3.0, 0.7)
    assert result[1] == pytest.approx(float(exact), rel=1e-14, abs=0.0)
    assert result[1] == pytest.approx(3.0 * signals / 0.7, rel=1e-15)
    assert result[0] == pytest.approx(float(naive_harmonic.closed_value(5.0, 3.0, 0.7)), rel=1e-15)


def test_static_or_unimportant_pages_have_value_zero():
    result = values.harmonic(
        1e9,
        importance=[1.0, 0.0, 1.0, 0.0],
        change_rate=[0.0, 1.0, 0.0, 1.0],
        signals=7,
        complete=[False, False, True, True],
    )
    np.testing.assert_array_equal(result, 0.0)
