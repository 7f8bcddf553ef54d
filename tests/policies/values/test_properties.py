"""Properties of every crawl value (bounds, monotonicity), shapes, and what bad input gets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import values
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables

WIGGLE = 3e-15
"""Relative decrease of a non-decreasing value that rounding may cause."""

RATES = st.one_of(
    st.just(0.0), st.floats(1e-3, 10.0), st.floats(-12.0, 6.0).map(lambda power: 10.0**power)
)
RECALLS = st.one_of(
    st.sampled_from([0.0, 1.0, 1e-300, 1 - 2.0**-53]),
    st.floats(0.0, 1.0),
    st.floats(-16.0, -1.0).map(lambda power: 1.0 - 10.0**power),
)
ELAPSED = st.one_of(
    st.just(0.0), st.floats(0.0, 100.0), st.floats(-12.0, 12.0).map(lambda power: 10.0**power)
)
KERNELS = ("greedy", "cis", "cis_plus", "ncis", "approx1", "approx3")


def page(point: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(("change_rate", "recall", "false_signal_rate"), point, strict=True))


def tabulate(name: str, importance: float, point: tuple[float, float, float]) -> tuple[Any, Any]:
    known = (importance, *point)
    if name == "greedy":
        return value_kernels.greedy_value, value_tables.greedy_table(importance, point[0])
    if name == "cis":
        return value_kernels.greedy_cis_value, value_tables.greedy_cis_table(*known)
    if name == "cis_plus":
        return value_kernels.greedy_cis_value, value_tables.greedy_cis_plus_table(*known)
    if name == "ncis":
        return value_kernels.greedy_ncis_value, value_tables.greedy_ncis_table(*known)
    table = value_tables.greedy_ncis_approx_table(*known, terms=int(name.removeprefix("approx")))
    return value_kernels.greedy_ncis_approx_value, table


@pytest.mark.parametrize("name", KERNELS)
@given(
    rates=st.tuples(RATES, RECALLS, RATES),
    importance=RATES,
    elapsed=ELAPSED,
    step=st.one_of(st.just(0.0), st.floats(-17.0, 3.0).map(lambda power: 10.0**power)),
    signals=st.one_of(st.integers(0, 40), st.integers(0, 2**50)),
    more=st.integers(0, 3),
)
@settings(max_examples=300, deadline=None)
def test_values_are_bounded_and_never_decrease(
    name: str,
    rates: tuple[float, float, float],
    importance: float,
    elapsed: float,
    step: float,
    signals: int,
    more: int,
) -> None:
    kernel, table = tabulate(name, importance, rates)
    top = importance / rates[0] if rates[0] > 0 else 0.0
    value = kernel(table, 0, elapsed, signals)
    later = kernel(table, 0, max(elapsed * (1.0 + step), math.nextafter(elapsed, 1e300)), signals)
    further = kernel(table, 0, elapsed, signals + more)
    assert 0.0 <= value <= top
    assert value * (1.0 - WIGGLE) <= later <= top
    assert value * (1.0 - WIGGLE) <= further <= top


@pytest.mark.parametrize("name", ["ncis", "approx2"])
def test_monotone_from_float_to_float(name: str) -> None:
    """Around the places where the sum gains a summand or changes its form."""
    rng = np.random.default_rng(21)
    for _ in range(60):
        point = (rng.uniform(0.1, 1), rng.beta(0.5, 0.5), rng.uniform(0.1, 0.6))
        kernel, table = tabulate(name, 1.0, point)
        beta = float(values.effective_elapsed(0.0, 1, **page(point)))
        alpha = (1 - point[1]) * point[0]
        places = [1 / alpha, 1 / (point[1] * point[0] + point[2]), beta, 2 * beta, 7 * beta]
        places.append(table[0, value_kernels.SWITCH] / alpha)
        for place in places:
            if not 0.0 < place < 1e12:
                continue
            times = place * (1.0 + 2.0**-52 * np.arange(-40, 40))
            result = np.array([kernel(table, 0, tau, 0) for tau in times])
            assert np.all(result[1:] >= np.maximum.accumulate(result)[:-1] * (1 - WIGGLE))


def test_broadcasting_and_scalars() -> None:
    tau = np.linspace(0.0, 5.0, 6).reshape(3, 1, 2)
    delta = np.array([[0.3], [0.5], [0.9], [1.5]])
    known: dict[str, Any] = {"recall": 0.5, "false_signal_rate": np.array([0.1, 0.2])}
    result = values.greedy_ncis(tau, importance=2.0, change_rate=delta, **known)
    assert result.shape == (3, 4, 2)
    assert result.dtype == np.float64
    alone = values.greedy_ncis(
        tau[1, 0, 1], importance=2.0, change_rate=0.9, recall=0.5, false_signal_rate=0.2
    )
    assert alone.shape == ()
    assert float(alone) == result[1, 2, 1]
    counts = values.greedy_ncis_observed(1.0, [0, 1], importance=1.0, **page((0.5, 0.5, 0.2)))
    assert counts.shape == (2,)


PAGE: dict[str, Any] = {"importance": 1.0, "change_rate": 0.5}
NOISY: dict[str, Any] = {**PAGE, "recall": 0.5, "false_signal_rate": 0.2}
OBSERVED = (values.greedy_cis, values.greedy_cis_plus, values.greedy_ncis_observed)
GOOD: dict[Any, dict[str, Any]] = {
    values.greedy: {**PAGE, "elapsed": 1.0},
    values.harmonic: {**PAGE, "elapsed": 1.0},
    values.greedy_ncis_approx: {**NOISY, "terms": 2, "effective_elapsed": 1.0},
    **{value: {**NOISY, "elapsed": 1.0, "signals": 1} for value in OBSERVED},
}
"""Arguments of some values that are in order."""

BAD: list[tuple[Any, str, Any, str]] = [
    *(
        (values.greedy_ncis_approx, name, bad, "")
        for name, bad in (
            ("importance", -1.0),
            ("change_rate", math.nan),
            ("change_rate", math.inf),
            ("change_rate", 1e-13),
            ("recall", 1.1),
            ("recall", math.nan),
            ("false_signal_rate", -1e-9),
            ("terms", 0),
            ("terms", 1.5),
            ("effective_elapsed", -1.0),
            ("effective_elapsed", math.nan),
        )
    ),
    *(
        (value, name, bad, "")
        for value in OBSERVED
        for name, bad in (
            ("signals", -1),
            ("signals", 0.5),
            ("elapsed", -1.0),
            ("elapsed", math.inf),
        )
    ),
    (values.greedy_cis, "reading", "I4", "reading must be one of"),
    (values.greedy_cis_plus, "recall_above", 2.0, "recall_above must lie in"),
    (values.harmonic, "elapsed", 1e13, r"elapsed must be 0 or in \[1e-12, 1e\+12\]"),
    (values.harmonic, "elapsed", -1.0, "elapsed must be finite and >= 0, got -1.0"),
    (values.harmonic, "elapsed", math.inf, "elapsed must be finite and >= 0, got inf"),
    (values.harmonic, "importance", math.nan, "importance must be finite and >= 0, got nan"),
    (values.harmonic, "change_rate", -0.5, "change_rate must be finite and >= 0, got -0.5"),
    (values.harmonic, "signals", 0.5, "signals must be integers >= 0"),
    (values.harmonic, "complete", 1.0, "complete must be bool, got dtype float64"),
]


@pytest.mark.parametrize(("value", "name", "bad", "message"), BAD)
def test_bad_input_is_named(value: Any, name: str, bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message or f"{name} must .*got {bad}"):
        value(**{**GOOD[value], name: bad})


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(ValueError, match="must broadcast"):
        values.greedy(1.0, importance=[1.0, 2.0], change_rate=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="must broadcast"):
        values.greedy([1.0, 2.0], importance=[1.0, 2.0, 3.0], change_rate=1.0)
