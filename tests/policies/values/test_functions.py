"""The crawl values against 50-digit arithmetic, SciPy, simulation and their own theory."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from policies import values
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables
from tests.naive import values as naive
from tests.reference import reference

ACCURACY = 4e-15


def page(change_rate: float, recall: float, false_signal_rate: float) -> dict[str, float]:
    return {
        "change_rate": change_rate,
        "recall": recall,
        "false_signal_rate": false_signal_rate,
    }


def ncis(elapsed: float, signals: int, point: tuple[float, float, float]) -> float:
    table = value_tables.greedy_ncis_table(1.0, *point)
    return value_kernels.greedy_ncis_value(table, 0, elapsed, signals)


def error(value: float, exact: Any) -> float:
    return float(abs(mp.mpf(value) / exact - 1))


def agrees(value: float, exact: Any) -> bool:
    """Equal to ACCURACY, or to the smallest normal numbers."""
    return abs(value - exact) <= max(ACCURACY * exact, 1e-305)


# --- Published and independently computed numbers -------------------------------------------


def test_golden_value() -> None:
    result = values.greedy_ncis([1.0, 4.0], importance=1.0, **page(0.6, 0.5, 0.18))
    assert result == pytest.approx([0.105992, 0.692459], abs=5e-7)
    beta = values.effective_elapsed(0.0, 1, **page(0.6, 0.5, 0.18))
    assert float(beta) == pytest.approx(3.269431, abs=5e-7)


@pytest.mark.parametrize("point", reference("ncis_values")["points"])
def test_reference_points(point: dict[str, Any]) -> None:
    known = page(point["Delta"], point["lam"], point["nu"])
    iota = point["iota"]
    value = values.greedy_ncis(iota, importance=1.0, **known)
    assert error(float(value), mp.mpf(point["V"])) < ACCURACY
    assert error(float(values.cycle_length(iota, **known)), mp.mpf(point["psi"])) < ACCURACY
    assert error(float(values.cycle_freshness(iota, **known)), mp.mpf(point["w"])) < ACCURACY
    for terms in (1, 2, 3):
        value = values.greedy_ncis_approx(iota, importance=1.0, terms=terms, **known)
        assert error(float(value), mp.mpf(point[f"V_approx{terms}"])) < ACCURACY


@pytest.mark.parametrize("point", reference("ncis_values")["alpha_zero"])
def test_reference_points_where_every_change_is_signalled(point: dict[str, Any]) -> None:
    parameters = (1.0, point["Delta"], point["lam"], point["nu"])
    count = point["n_signals"]
    value = values.greedy_ncis_observed(
        5.0, count, importance=1.0, **page(point["Delta"], point["lam"], point["nu"])
    )
    assert float(value) == pytest.approx(float(point["V"]), rel=ACCURACY)
    for terms in (1, 2):
        table = value_tables.greedy_ncis_approx_table(*parameters, terms=terms)
        value = value_kernels.greedy_ncis_approx_value(table, 0, 0.0, count)
        assert value == pytest.approx(float(point[f"V_approx{terms}"]), rel=ACCURACY)
    table = value_tables.cycle_length_table(*parameters[1:])
    length = value_kernels.cycle_length_value(table, 0, 0.0, count)
    assert length == pytest.approx(float(point["psi_crawl_at_nth_signal"]), rel=ACCURACY)


# --- 50 digits, over the whole domain ---------------------------------------------------------

CORNERS = [
    (1.0, 0.5, 0.3),
    (0.6, 1 - 1e-16, 0.3),
    (0.6, 1 - 1e-9, 0.3),
    (1e-3, 0.999, 0.6),
    (0.5, 1e-3, 0.4),
    (0.5, 1e-12, 0.4),
    (0.5, 1e-300, 0.4),
    (0.6, 0.5, 1e-12),
    (1e-6, 0.3, 0.5),
    (1e-300, 0.3, 0.5),
    (1e-300, 0.3, 1e-300),
    (1e3, 0.7, 1e-3),
    (0.6, 0.5, 1e-300),
]


@pytest.mark.parametrize("point", CORNERS)
def test_corners(point: tuple[float, float, float]) -> None:
    alpha, gamma, nu = (float(rate) for rate in naive.rates(*point))
    beta = math.log1p(point[1] * point[0] / nu) / alpha
    for steps in (1e-8, 1e-3, 0.3, 0.999999, 1.5, 7.0, 20.5):
        for tau in {steps * beta, steps / gamma, steps}:
            if tau / beta > 60.0:
                continue
            assert agrees(ncis(tau, 0, point), naive.greedy_ncis(tau, 0, point))
    for count in (1, 2, 9, 40):
        for tau in (0.0, 1e-6 / gamma, 0.7 / gamma):
            if (tau / beta + count) < 60.0:
                assert agrees(ncis(tau, count, point), naive.greedy_ncis(tau, count, point))


def random_point(rng: np.random.Generator) -> tuple[tuple[float, float, float], float, int]:
    """A page with rates over nine decades, and a state within the effective time of 40 signals."""
    delta, nu = 10.0 ** rng.uniform(-6.0, 3.0, 2)
    lam = [rng.random(), 10.0 ** rng.uniform(-9, 0), 1.0 - 10.0 ** rng.uniform(-12, 0)]
    point = (float(delta), float(lam[rng.integers(3)]), float(nu))
    alpha = (1.0 - point[1]) * delta
    beta = math.log1p(point[1] * delta / nu) / alpha
    steps = 10.0 ** rng.uniform(-2.0, 1.6)
    count = int(rng.integers(0, int(steps) + 1)) if rng.random() < 0.7 else 0
    return point, float((steps - count) * beta), count


def test_random_points() -> None:
    rng = np.random.default_rng(11)
    for _ in range(80):
        point, tau, count = random_point(rng)
        assert error(ncis(tau, count, point), naive.greedy_ncis(tau, count, point)) < ACCURACY
        table = value_tables.cycle_length_table(*point)
        length = value_kernels.cycle_length_value(table, 0, tau, count)
        assert error(length, naive.cycle_length(tau, count, point)) < ACCURACY


@pytest.mark.parametrize("terms", [1, 2, 5])
def test_random_points_of_the_approximation(terms: int) -> None:
    rng = np.random.default_rng(12)
    for _ in range(40):
        point, tau, count = random_point(rng)
        table = value_tables.greedy_ncis_approx_table(1.0, *point, terms=terms)
        value = value_kernels.greedy_ncis_approx_value(table, 0, tau, count)
        assert error(value, naive.greedy_ncis(tau, count, point, terms)) < ACCURACY


@pytest.mark.parametrize(
    ("point", "tau", "count"),
    [((1e-5, 0.999, 0.5), 0.0, 200), ((1e-4, 0.99, 0.5), 5e3, 60), ((2e-3, 0.995, 1.0), 3.0, 250)],
)
def test_hundreds_of_summands(point: tuple[float, float, float], tau: float, count: int) -> None:
    assert error(ncis(tau, count, point), naive.greedy_ncis(tau, count, point)) < ACCURACY
    table = value_tables.cycle_length_table(*point)
    length = value_kernels.cycle_length_value(table, 0, tau, count)
    assert error(length, naive.cycle_length(tau, count, point)) < ACCURACY


def test_greedy_and_cis_against_naive() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        delta, nu = 10.0 ** rng.uniform(-8.0, 3.0, 2)
        lam = float(rng.choice([rng.random(), 10.0 ** rng.uniform(-12, 0), 1 - 1e-12]))
        tau = float(10.0 ** rng.uniform(-6.0, 1.5)) / delta
        value = values.greedy(tau, importance=1.0, change_rate=delta)
        assert error(float(value), naive.greedy(tau, 1.0, delta)) < ACCURACY
        alpha, gamma, _ = naive.rates(delta, lam, nu)
        for reading, believed in (("I1", gamma - mp.mpf(nu)), ("I2", gamma), ("I3", gamma)):
            value = values.greedy_cis(
                tau, 0, importance=1.0, reading=reading, **page(delta, lam, nu)
            )
            assert error(float(value), naive.greedy_cis(tau, alpha, believed, 1.0)) < ACCURACY


@pytest.mark.parametrize("count", [10**4, 10**6, 10**9, 10**15])
def test_absurdly_many_signals_end(count: int) -> None:
    """Close to recall 1 the summands are as many as the signals; the limit is known."""
    delta, lam, nu = 1e-9 / count, 1.0 - 1e-15, 1.0
    every = ncis(0.0, count, (delta, 1.0, nu))
    assert ncis(0.0, count, (delta, lam, nu)) == pytest.approx(every, rel=1e-8)
    assert 0.0 <= ncis(1e300, 0, (delta, lam, nu)) <= 1.0 / delta


# --- Limits by name -----------------------------------------------------------------------------

TIMES = np.array([0.0, 1e-9, 0.3, 1.0, 4.0, 30.0, 1e4, 1e12, math.inf])


def test_without_signals_it_is_greedy() -> None:
    plain = values.greedy(TIMES, importance=2.0, change_rate=0.7)
    silent = page(0.7, 0.0, 0.0)
    assert np.array_equal(values.greedy_ncis(TIMES, importance=2.0, **silent), plain)
    cis = values.greedy_cis(TIMES[:-1], 0, importance=2.0, **silent)
    assert np.array_equal(cis, plain[:-1])
    for terms in (1, 3):
        result = values.greedy_ncis_approx(TIMES, importance=2.0, terms=terms, **silent)
        np.testing.assert_allclose(result, plain, rtol=ACCURACY)
    np.testing.assert_array_equal(values.cycle_length(TIMES, **silent), TIMES)


def test_pure_noise_is_greedy() -> None:
    plain = values.greedy(TIMES[:-1], importance=2.0, change_rate=0.7)
    noise = page(0.7, 0.0, 5.0)
    result = values.greedy_ncis_observed(TIMES[:-1], 12, importance=2.0, **noise)
    assert np.array_equal(result, plain)


def test_without_false_signals_it_is_cis() -> None:
    known = page(0.7, 0.4, 0.0)
    tau = TIMES[:-1]
    for count in (0, 1, 7):
        result = values.greedy_ncis_observed(tau, count, importance=2.0, **known)
        for reading in value_tables.READINGS:
            cis = values.greedy_cis(tau, count, importance=2.0, reading=reading, **known)
            np.testing.assert_array_equal(result, cis)
    assert float(result[0]) == 2.0 / 0.7
    assert float(values.greedy_ncis(math.inf, importance=2.0, **known)) == 2.0 / 0.7
    assert float(values.effective_elapsed(3.0, 1, **known)) == math.inf
    assert float(values.cycle_length(math.inf, **known)) == pytest.approx(1 / (0.4 * 0.7))


def test_where_every_change_is_signalled() -> None:
    known = page(0.5, 1.0, 0.3)
    tau = np.array([0.0, 3.0, 1e12])
    for count in (0, 1, 2, 5, 200):
        q = 0.3 / 0.8
        exact = sum(q**i - q**count for i in range(count)) / 0.8
        result = values.greedy_ncis_observed(tau, count, importance=1.0, **known)
        np.testing.assert_allclose(result, exact, rtol=ACCURACY)
    perfect = page(0.5, 1.0, 0.0)
    result = values.greedy_ncis_observed(7.0, [0, 1, 9], importance=3.0, **perfect)
    np.testing.assert_array_equal(result, [0.0, 6.0, 6.0])
    assert float(values.greedy_ncis(1e9, importance=1.0, **known)) == 0.0
    assert float(values.greedy_ncis(math.inf, importance=1.0, **known)) == 2.0


def test_every_change_signalled_is_a_limit() -> None:
    for count in (1, 2, 5, 30, 3000):
        near = ncis(2.0, count, (0.5, 1 - 2.0**-52, 0.3))
        assert near == pytest.approx(ncis(2.0, count, (0.5, 1.0, 0.3)), rel=1e-12)


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("nu", [0.0, 0.4])
def test_static_or_unimportant_pages_have_value_zero(lam: float, nu: float) -> None:
    for importance, delta in ((1.0, 0.0), (0.0, 0.5), (0.0, 0.0)):
        known = page(delta, lam, nu)
        count = np.array([0, 1, 100])[:, None]
        for value in (
            values.greedy(TIMES, importance=importance, change_rate=delta),
            values.greedy_cis(TIMES[:-1], count, importance=importance, **known),
            values.greedy_cis_plus(TIMES[:-1], count, importance=importance, **known),
            values.greedy_ncis(TIMES, importance=importance, **known),
            values.greedy_ncis_observed(TIMES[:-1], count, importance=importance, **known),
            values.greedy_ncis_approx(TIMES, importance=importance, terms=2, **known),
        ):
            assert np.all(value == 0.0)


def test_long_after_a_crawl_the_value_is_its_limit() -> None:
    known = page(0.5, 0.3, 0.2)
    for tau in (1e3, 1e12, math.inf):
        assert float(values.greedy(tau, importance=3.0, change_rate=0.5)) == 6.0
        assert float(values.greedy_ncis(tau, importance=3.0, **known)) == 6.0
        assert float(values.cycle_freshness(tau, **known)) == pytest.approx(2.0)
    share = 0.2 / 0.7
    result = values.greedy_ncis_approx(math.inf, importance=3.0, terms=2, **known)
    assert float(result) == pytest.approx(6.0 * (1 - share**2))


# --- GREEDY-CIS and GREEDY-CIS+ -------------------------------------------------------------------


def test_readings_after_a_signal() -> None:
    after = {
        reading: float(
            values.greedy_cis(0.5, 2, importance=1.0, reading=reading, **page(0.5, 0.4, 0.3))
        )
        for reading in value_tables.READINGS
    }
    assert after == {"I1": 2.0, "I2": 2.0, "I3": pytest.approx(1.0 / 0.8)}


def test_cis_plus_listens_to_pages_of_high_quality_only() -> None:
    delta = 0.5
    lam = np.array([0.9, 0.9, 0.5, 0.6])
    nu = np.array([0.05, 2.0, 0.0, 0.01])
    known: dict[str, Any] = {"importance": 1.0, "change_rate": delta}
    signals = np.array([[0], [3]])
    result = values.greedy_cis_plus(2.0, signals, recall=lam, false_signal_rate=nu, **known)
    with_signals = values.greedy_cis(2.0, signals, recall=lam, false_signal_rate=nu, **known)
    plain = values.greedy(2.0, **known)
    np.testing.assert_array_equal(result[:, 0], with_signals[:, 0])
    assert np.all(result[:, 1:] == plain)
    every = values.greedy_cis_plus(
        2.0, 3, recall=lam, false_signal_rate=nu, precision_above=0.0, recall_above=0.0, **known
    )
    np.testing.assert_array_equal(every, with_signals[1])


def test_round_robin_value_is_the_elapsed_time() -> None:
    table = value_tables.round_robin_table(3)
    assert value_kernels.round_robin_value(table, 2, 4.5, 7) == 4.5


# --- Theory: derivatives, cycles, approximations ---------------------------------------------


@pytest.mark.parametrize("point", [(0.8, 0.5, 0.3), (0.5, 0.02, 0.6), (0.9, 0.97, 0.2)])
def test_approximation_grows_to_the_value(point: tuple[float, float, float]) -> None:
    known = page(*point)
    iota = np.linspace(0.0, 8.0, 33) / float(naive.rates(*point)[0])
    exact = values.greedy_ncis(iota, importance=1.0, **known)
    last = np.zeros_like(iota)
    for terms in (1, 2, 5, 20, 400):
        result = values.greedy_ncis_approx(iota, importance=1.0, terms=terms, **known)
        assert np.all(result >= last * (1 - ACCURACY))
        last = result
    np.testing.assert_allclose(last, exact, rtol=ACCURACY)
