"""Values of several sources against 60-digit arithmetic, simulation, their equations and limits."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import values
from policies.values.sources import kernels as source_kernels
from policies.values.sources import tables as source_tables
from policies.values.sources import values as sources
from tests.naive import source_values as naive

ACCURACY = 1e-11
MANY_KINKS = 1e-9
"""Accuracy with strong signals of different strength."""

STIFF = 2e-4
"""Accuracy where almost every change is signalled."""

Known = tuple[float, tuple[float, ...], tuple[float, ...]]

PAGES: list[Known] = [
    (0.6, (0.5, 0.3), (0.18, 0.4)),
    (0.6, (0.2, 0.1), (0.2, 0.1)),
    (0.5, (0.4, 1e-3), (0.1, 0.5)),
    (0.5, (0.4, 1e-9), (0.1, 0.5)),
    (1.5, (0.3, 0.3, 0.3), (0.01, 0.1, 1.0)),
    (2e-3, (0.3, 0.05), (3e-5, 1e-2)),
    (0.7, (0.3, 0.4), (0.0, 0.5)),
    (0.7, (0.45, 0.45), (1e-3, 2e-3)),
]


def words(known: Known) -> dict[str, Any]:
    return {
        "change_rate": known[0],
        "recall": np.array(known[1]),
        "false_signal_rate": np.array(known[2]),
    }


def share(known: Known, elapsed: float, signals: Any) -> float:
    result = sources.greedy_ncis_sources(elapsed, signals, importance=known[0], **words(known))
    return float(result)


def finite_jumps(known: Known) -> list[float]:
    return [float(b) for b in naive.page(*known)[3] if b < mp.inf]


# --- 60 digits --------------------------------------------------------------------------------


@pytest.mark.parametrize("known", PAGES)
def test_against_the_printed_sums(known: Known) -> None:
    delta = known[0]
    alpha = float(naive.page(*known)[0])
    b = np.array(finite_jumps(known))
    accuracy = MANY_KINKS if known in PAGES[4:6] else ACCURACY
    for y in (0.3 * b.min(), 1.4 * b.min(), 12.5 * b.min(), 1.3 * b.max(), 0.7, 2.5, 5.0):
        if np.prod(y / b + 1.0) > 1500:
            continue
        iota = y / alpha
        y = alpha * mp.mpf(iota)
        exact = naive.greedy_ncis(y, known)
        result = sources.greedy_ncis_sources(
            iota, [0] * len(known[1]), importance=1.0, **words(known)
        )
        assert abs(result - exact) * delta < accuracy * (1e-3 + exact * delta)
        for function, twin in (
            (sources.cycle_length_sources, naive.cycle_length),
            (sources.cycle_freshness_sources, naive.cycle_freshness),
        ):
            exact = twin(y, known)
            result = function(iota, **words(known))
            assert abs(result - exact) * delta < accuracy * (1e-3 + exact * delta)


def test_random_states_against_the_printed_sums() -> None:
    rng = np.random.default_rng(5)
    for _ in range(25):
        num_sources = int(rng.integers(2, 4))
        left = 10.0 ** rng.uniform(-1.3, -0.1)
        recall = tuple(rng.dirichlet(np.ones(num_sources)) * (1.0 - left))
        known = (1.0, recall, tuple(10.0 ** rng.uniform(-2.0, 1.0, num_sources)))
        counts = rng.integers(0, 4, num_sources)
        elapsed = rng.exponential(0.7)
        y = naive.level(elapsed, [int(n) for n in counts], known)
        b = np.array(finite_jumps(known))
        if np.prod(float(y) / b + 1.0) < 1500:
            exact = naive.greedy_ncis(y, known)
            assert abs(share(known, elapsed, counts) - exact) < 1e-8


@pytest.mark.parametrize(
    "known",
    [
        (1.0, (0.3, 0.699), (0.5, 0.9)),
        (1.0, (0.6, 0.4 - 1e-5), (0.3, 0.5)),
        (1.0, (0.9, 0.1 - 3e-4), (0.07, 9.0)),
    ],
)
def test_where_hardly_a_change_goes_without_a_signal(known: Known) -> None:
    b = np.array(finite_jumps(known))
    for y in (0.5 * b.min(), 2.5 * b.min(), b.max() + 0.3 * b.min(), 2.2):
        exact = naive.greedy_ncis(mp.mpf(y), known)
        table = source_tables.greedy_ncis_sources_table(
            1.0, 1.0, np.array(known[1])[:, None], np.array(known[2])[:, None]
        )
        result = source_kernels.greedy_ncis_sources_value(table, 0, 0.0, y)
        assert abs(result - exact) < STIFF


# --- The equations that the values solve, with every term from the public functions -----------


@pytest.mark.parametrize("known", PAGES[:3] + PAGES[4:5])
def test_renewal_equations(known: Known) -> None:
    """psi' = 1 - Gamma psi + sum gamma_s psi(. - beta_s), and V' = mu alpha e^(-alpha iota) psi."""
    alpha, gamma, _, b = naive.page(*known)
    rate, beta = float(mp.fsum(gamma)), [float(jump / alpha) for jump in b]
    step = 1e-4 / rate
    iota = np.array([0.35, 1.7, 4.3, 11.0]) * min(beta) + 3 * step
    psi = lambda at: sources.cycle_length_sources(np.maximum(at, 0.0), **words(known))  # noqa: E731
    slope = (psi(iota + step) - psi(iota - step)) / (2 * step)
    back = sum(float(g) * psi(iota - jump) for g, jump in zip(gamma, beta, strict=True))
    np.testing.assert_allclose(slope, 1.0 - rate * psi(iota) + back, rtol=1e-6, atol=1e-7)
    none = np.zeros((len(beta), 1))

    def value(at: Any) -> Any:
        return sources.greedy_ncis_sources(at, none, importance=1.0, **words(known))

    slope = (value(iota + step) - value(iota - step)) / (2 * step)
    expected = float(alpha) * np.exp(-float(alpha) * iota) * psi(iota)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("known", [PAGES[0], PAGES[1], PAGES[4], PAGES[6]])
@pytest.mark.parametrize("y", [0.4, 1.9])
def test_simulated_threshold_cycles(known: Known, y: float) -> None:
    """Crawl when the level reaches y: mean length psi, mean fresh time w, within 4 errors."""
    rng = np.random.default_rng(8)
    delta, lam, _ = known
    alpha, gamma, _, b = naive.page(*known)
    alpha, rates = float(alpha), np.array([float(g) for g in gamma])
    runs = 20_000
    length, fresh = np.empty(runs), np.empty(runs)
    for run in range(runs):
        time, level, change = 0.0, 0.0, rng.exponential(1.0 / alpha)
        while True:
            gap = rng.exponential(1.0 / rates.sum())
            if level + alpha * gap >= y:
                time += (y - level) / alpha
                break
            time += gap
            source = rng.choice(len(rates), p=rates / rates.sum())
            level += alpha * gap + float(b[source])
            if rng.random() < lam[source] * delta / rates[source]:
                change = min(change, time)
            if level >= y:
                break
        length[run], fresh[run] = time, min(time, change)
    for sample, function in (
        (length, sources.cycle_length_sources),
        (fresh, sources.cycle_freshness_sources),
    ):
        expected = float(function(y / alpha, **words(known)))
        assert abs(sample.mean() - expected) < 4.0 * sample.std() / math.sqrt(runs)


# --- Limits by name -----------------------------------------------------------------------------

TIMES = np.array([0.0, 1e-9, 0.3, 1.0, 4.0, 30.0, 1e4])


@pytest.mark.parametrize("recall", [0.0, 1e-6, 0.02, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.4, 30.0])
def test_one_source_is_as_before(recall: float, noise: float) -> None:
    counts = np.array([0, 1, 2, 9])[:, None]
    known = {"change_rate": 0.7, "recall": recall, "false_signal_rate": noise}
    listed = {"change_rate": 0.7, "recall": [recall], "false_signal_rate": [noise]}
    before = values.greedy_ncis_observed(TIMES, counts, importance=2.0, **known)
    result = sources.greedy_ncis_sources(TIMES, counts[None], importance=2.0, **listed)
    np.testing.assert_allclose(result, before, rtol=1e-14)
    np.testing.assert_allclose(
        sources.effective_elapsed_sources(TIMES, counts[None], **listed),
        values.effective_elapsed(TIMES, counts, **known),
        rtol=1e-14,
    )
    iota = np.append(TIMES, math.inf)
    for after, earlier in (
        (sources.cycle_length_sources, values.cycle_length),
        (sources.cycle_freshness_sources, values.cycle_freshness),
    ):
        np.testing.assert_allclose(after(iota, **listed), earlier(iota, **known), rtol=ACCURACY)


def test_a_source_of_pure_noise_counts_nothing() -> None:
    counts = np.array([[0, 2, 1], [5, 0, 8]])[..., None]
    known: dict[str, Any] = {"importance": 2.0, "change_rate": 0.7}
    result = sources.greedy_ncis_sources(
        TIMES, counts, recall=[0.4, 0.0], false_signal_rate=[0.2, 3.0], **known
    )
    alone = sources.greedy_ncis_sources(
        TIMES, counts[:1], recall=[0.4], false_signal_rate=[0.2], **known
    )
    np.testing.assert_array_equal(result, alone)
    silent = sources.greedy_ncis_sources(
        TIMES, counts, recall=[0.0, 0.0], false_signal_rate=[0.2, 3.0], **known
    )
    plain = np.broadcast_to(values.greedy(TIMES, **known), silent.shape)
    np.testing.assert_allclose(silent, plain, rtol=1e-15)


def test_sources_of_equal_evidence_are_one() -> None:
    counts = np.array([[0, 2, 1], [1, 0, 2]])[..., None]
    known: dict[str, Any] = {"importance": 2.0, "change_rate": 0.7}
    apart = sources.greedy_ncis_sources(
        TIMES, counts, recall=[0.25, 0.5], false_signal_rate=[0.125, 0.25], **known
    )
    together = sources.greedy_ncis_sources(
        TIMES, counts.sum(axis=0)[None], recall=[0.75], false_signal_rate=[0.375], **known
    )
    np.testing.assert_allclose(apart, together, rtol=1e-14)


def test_one_signal_that_is_never_false_is_enough() -> None:
    known = PAGES[6]
    assert share(known, 0.0, (1, 0)) == 1.0
    assert share(known, 3.0, (1, 4)) == 1.0
    assert share(known, 0.0, (0, 1)) < 0.5
    endless = sources.cycle_length_sources(math.inf, **words(known))
    assert float(endless) == pytest.approx(1.0 / (0.3 * 0.7))


def test_where_every_change_is_signalled_time_does_not_count() -> None:
    known = (0.8, (0.75, 0.25), (0.05, 0.02))
    result = [share(known, time, (1, 1)) for time in (0.0, 3.0, 1e9)]
    assert result[0] == result[1] == result[2]
    for counts in ((0, 1), (1, 0), (1, 1), (2, 3)):
        exact = naive.greedy_ncis(naive.level(0.0, counts, known), known) * known[0]
        assert share(known, 1.0, counts) == pytest.approx(float(exact), rel=ACCURACY)


def test_weak_sources_are_a_drift() -> None:
    """As recalls vanish the value tends to that of a page without them, at their own rate."""
    plain = values.greedy(2.0, importance=1.0, change_rate=0.7)
    for recall in (1e-4, 1e-8, 1e-300):
        result = sources.greedy_ncis_sources(
            2.0,
            [0, 0],
            importance=1.0,
            change_rate=0.7,
            recall=[recall, 3 * recall],
            false_signal_rate=[0.3, 0.2],
        )
        assert float(result) == pytest.approx(float(plain), rel=10 * recall + 1e-15)


@pytest.mark.parametrize(("importance", "delta"), [(1.0, 0.0), (0.0, 0.5), (0.0, 0.0)])
def test_static_or_unimportant_pages_have_value_zero(importance: float, delta: float) -> None:
    result = sources.greedy_ncis_sources(
        TIMES,
        np.array([3, 1])[:, None],
        importance=importance,
        change_rate=delta,
        recall=[0.3, 0.2],
        false_signal_rate=[0.1, 0.0],
    )
    assert np.all(result == 0.0)


def test_cycles_of_a_static_page_are_a_limit() -> None:
    signals = {"recall": [0.3, 0.2], "false_signal_rate": [0.1, 0.4]}
    for function in (sources.cycle_length_sources, sources.cycle_freshness_sources):
        static = function([0.5, 3.0, 40.0], change_rate=0.0, **signals)
        nearly = function([0.5, 3.0, 40.0], change_rate=1e-9, **signals)
        np.testing.assert_allclose(static, nearly, rtol=1e-6)


# --- Properties, bad input ------------------------------------------------------------------------


@given(
    left=st.floats(0.05, 1.0),
    split=st.floats(0.0, 1.0),
    noise=st.tuples(st.floats(-3.0, 2.0), st.floats(-3.0, 2.0)),
)
@settings(max_examples=40, deadline=None)
def test_values_are_bounded_and_never_decrease(
    left: float, split: float, noise: tuple[float, float]
) -> None:
    known = (1.0, ((1 - left) * split, (1 - left) * (1 - split)), (10 ** noise[0], 10 ** noise[1]))
    time = np.concatenate([np.geomspace(1e-6, 0.1, 40), np.linspace(0.11, 60.0, 200)]) / left
    result = sources.greedy_ncis_sources(time, np.zeros((2, 1)), importance=1.0, **words(known))
    assert np.all((result >= 0.0) & (result <= 1.0))
    assert np.all(np.diff(result) >= -1e-9)
    counts = np.array([[0, 1, 1, 2, 2], [0, 0, 1, 1, 2]])
    result = sources.greedy_ncis_sources(0.3, counts, importance=1.0, **words(known))
    assert np.all(np.diff(result) >= -1e-9)


def test_shapes() -> None:
    recall = np.array([[0.2, 0.4, 0.1], [0.1, 0.2, 0.6]])
    counts = np.zeros((2, 5, 3))
    known: dict[str, Any] = {"recall": recall, "false_signal_rate": np.array([[0.1], [0.3]])}
    result = sources.greedy_ncis_sources(
        np.ones((4, 1, 1)), counts, importance=1.0, change_rate=np.array([0.3, 0.5, 0.9]), **known
    )
    assert result.shape == (4, 5, 3)
    alone = sources.greedy_ncis_sources(
        1.0,
        [0, 0],
        importance=1.0,
        change_rate=0.9,
        recall=recall[:, 2],
        false_signal_rate=[0.1, 0.3],
    )
    assert alone.shape == ()
    assert float(alone) == result[0, 0, 2]


GOOD: dict[str, Any] = {
    "elapsed": 1.0,
    "signals": [0, 1],
    "importance": 1.0,
    "change_rate": 0.5,
    "recall": [0.5, 0.2],
    "false_signal_rate": [0.2, 0.1],
}


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("elapsed", -1.0, "elapsed must be finite and >= 0, got -1.0"),
        ("elapsed", math.inf, "elapsed must be finite"),
        ("signals", [0, -1], "signals must be finite and >= 0, got -1.0"),
        ("signals", [0, 0.5], "signals must be integers"),
        ("signals", [0, 0, 0], "signals must have as many sources"),
        ("signals", 1, "signals must have as many sources"),
        ("importance", math.nan, "importance must be .*got nan"),
        ("change_rate", -2.0, "change_rate must be .*got -2.0"),
        ("recall", [0.5, 1.2], "recall must lie in"),
        ("recall", [0.8, 0.4], "recall must sum to at most 1 over sources"),
        ("recall", 0.5, "recall must have sources on its first axis"),
        ("false_signal_rate", [0.1, -0.1], "false_signal_rate must be"),
        ("false_signal_rate", [0.1, 0.1, 0.1], "page parameters must broadcast"),
    ],
)
def test_bad_input_is_named(name: str, bad: Any, message: str) -> None:
    arguments = {**GOOD, name: bad}
    if name == "recall" and bad == 0.5:
        arguments["signals"] = 1
    with pytest.raises(ValueError, match=message):
        sources.greedy_ncis_sources(**arguments)
