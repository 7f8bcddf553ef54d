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
from policies.values.sources.recursion import END
from tests.naive import source_values as naive

ACCURACY = 1e-6
"""Of mu / Delta."""

STIFF = 1e-5
"""Accuracy where almost every change is signalled."""

LENGTHS = 2e-5
"""Accuracy of cycle lengths, of the length plus a tenth of 1 / Delta."""

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


def columns(known: Known) -> tuple[float, Any, Any]:
    """The parameters of one page, sources first."""
    return known[0], np.array(known[1])[:, None], np.array(known[2])[:, None]


def value_at(known: Known, elapsed: Any, counts: Any) -> Any:
    """The value of a page of importance 1 at times and numbers of signals, (S, ...)."""
    table = source_tables.greedy_ncis_sources_table(1.0, *columns(known))
    counts = np.asarray(counts)
    b = table[0, source_kernels.EVIDENCES :][: len(counts)]
    b = b.reshape(-1, *(1,) * (counts.ndim - 1))
    with np.errstate(invalid="ignore"):
        level = np.where(counts > 0, counts * b, 0.0).sum(axis=0)
    time, level = np.broadcast_arrays(np.asarray(elapsed, float), level)
    value = source_kernels.greedy_ncis_sources_value
    result = [value(table, 0, *at) for at in zip(time.ravel(), level.ravel(), strict=True)]
    return np.array(result).reshape(time.shape)


def length_at(known: Known, iota: Any) -> Any:
    """The cycle length at effective elapsed times."""
    alpha = float(naive.page(*known)[0])
    levels = alpha * np.asarray(iota, float)
    table = source_tables.level_table(1.0, *columns(known))
    value = source_kernels.cycle_length_sources_value
    result = [value(table, 0, level, 0.0) / known[0] for level in levels.ravel()]
    return np.array(result).reshape(levels.shape)


def freshness_at(known: Known, iota: Any) -> Any:
    """The fresh time of a cycle, V / mu + exp(-y) psi."""
    alpha = float(naive.page(*known)[0])
    value = value_at(known, iota, np.zeros(len(known[1]), int))
    return value + np.exp(-alpha * np.asarray(iota)) * length_at(known, iota)


def share(known: Known, elapsed: float, signals: Any) -> float:
    return float(value_at(known, elapsed, signals)) * known[0]


def finite_jumps(known: Known) -> list[float]:
    return [float(b) for b in naive.page(*known)[3] if b < mp.inf]


# --- 60 digits --------------------------------------------------------------------------------


@pytest.mark.parametrize("known", PAGES)
def test_against_the_printed_sums(known: Known) -> None:
    delta = known[0]
    alpha = float(naive.page(*known)[0])
    b = np.array(finite_jumps(known))
    for y in (0.3 * b.min(), 1.4 * b.min(), 12.5 * b.min(), 1.3 * b.max(), 0.7, 2.5, 5.0):
        if np.prod(y / b + 1.0) > 1500:
            continue
        iota = y / alpha
        y = alpha * mp.mpf(iota)
        exact = naive.greedy_ncis(y, known)
        assert abs(value_at(known, iota, [0] * len(known[1])) - exact) * delta < ACCURACY
        if y > END:
            continue
        length = naive.cycle_length(y, known)
        margin = LENGTHS * (length + 0.1 / delta)
        assert abs(length_at(known, iota) - length) < margin
        exact = naive.cycle_freshness(y, known)
        assert abs(freshness_at(known, iota) - exact) < margin


def test_far_from_the_last_crawl_cycles_grow_at_their_mean_pace() -> None:
    alpha = float(naive.page(*PAGES[0])[0])
    exact = float(naive.cycle_length(mp.mpf(20), PAGES[0]))
    assert float(length_at(PAGES[0], 20.0 / alpha)) == pytest.approx(exact, rel=LENGTHS)


def test_pages_over_many_decades_have_values_up_to_the_limit() -> None:
    rng = np.random.default_rng(0)
    recall = rng.dirichlet(np.full(3, 0.3), 200).T * (1.0 - 10.0 ** rng.uniform(-14, 0, 200))
    noise = 10.0 ** rng.uniform(-20, 8, (3, 200)) * (rng.random((3, 200)) < 0.9)
    table = source_tables.greedy_ncis_sources_table(1.0, 1.0, recall, noise)
    value = source_kernels.greedy_ncis_sources_value
    levels = [0.0, *np.geomspace(1e-12, 30.0, 60)]
    result = np.array([[value(table, page, 0.0, y) for y in levels] for page in range(200)])
    assert np.all((result >= 0.0) & (result <= 1.0))
    assert np.all(np.diff(result) >= -1e-6)
    np.testing.assert_allclose(result[:, -1], 1.0, rtol=0.0, atol=1e-5)


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
            assert abs(share(known, elapsed, counts) - exact) < 3.0 * ACCURACY


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
        table = source_tables.greedy_ncis_sources_table(1.0, *columns(known))
        result = source_kernels.greedy_ncis_sources_value(table, 0, 0.0, y)
        assert abs(result - exact) < STIFF


# --- The equations that the values solve, with every term from the public functions -----------


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
        (length, length_at),
        (fresh, freshness_at),
    ):
        expected = float(function(known, y / alpha))
        assert abs(sample.mean() - expected) < 4.0 * sample.std() / math.sqrt(runs)


# --- Limits by name -----------------------------------------------------------------------------

TIMES = np.array([0.0, 1e-9, 0.3, 1.0, 4.0, 30.0, 1e4])


@pytest.mark.parametrize("recall", [0.0, 1e-6, 0.02, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.4, 30.0])
def test_one_source_is_as_before(recall: float, noise: float) -> None:
    counts = np.array([0, 1, 2, 9])[:, None]
    before = values.greedy_ncis_observed(
        TIMES, counts, importance=1.0, change_rate=0.7, recall=recall, false_signal_rate=noise
    )
    result = value_at((0.7, (recall,), (noise,)), TIMES, counts[None])
    accuracy = STIFF if recall == 0.97 else ACCURACY
    np.testing.assert_allclose(result, before, rtol=0.0, atol=accuracy / 0.7)


def test_a_source_of_pure_noise_counts_nothing() -> None:
    counts = np.array([[0, 2, 1], [5, 0, 8]])[..., None]
    result = value_at((0.7, (0.4, 0.0), (0.2, 3.0)), TIMES, counts)
    alone = value_at((0.7, (0.4,), (0.2,)), TIMES, counts[:1])
    np.testing.assert_array_equal(result, alone)
    silent = value_at((0.7, (0.0, 0.0), (0.2, 3.0)), TIMES, counts)
    plain = np.broadcast_to(values.greedy(TIMES, importance=1.0, change_rate=0.7), silent.shape)
    np.testing.assert_allclose(silent, plain, rtol=0.0, atol=ACCURACY / 0.7)


def test_sources_of_equal_evidence_are_one() -> None:
    counts = np.array([[0, 2, 1], [1, 0, 2]])[..., None]
    apart = value_at((0.7, (0.25, 0.5), (0.125, 0.25)), TIMES, counts)
    together = value_at((0.7, (0.75,), (0.375,)), TIMES, counts.sum(axis=0)[None])
    np.testing.assert_allclose(apart, together, rtol=0.0, atol=ACCURACY / 0.7)


def test_one_signal_that_is_never_false_is_enough() -> None:
    known = PAGES[6]
    assert share(known, 0.0, (1, 0)) == 1.0
    assert share(known, 3.0, (1, 4)) == 1.0
    assert share(known, 0.0, (0, 1)) < 0.5
    assert float(length_at(known, 1e6)) == pytest.approx(1.0 / (0.3 * 0.7), rel=LENGTHS)


def test_where_every_change_is_signalled_time_does_not_count() -> None:
    known = (0.8, (0.75, 0.25), (0.05, 0.02))
    result = [share(known, time, (1, 1)) for time in (0.0, 3.0, 1e9)]
    assert result[0] == result[1] == result[2]
    for counts in ((0, 1), (1, 0), (1, 1), (2, 3)):
        exact = naive.greedy_ncis(naive.level(0.0, counts, known), known) * known[0]
        assert share(known, 1.0, counts) == pytest.approx(float(exact), abs=ACCURACY)


def test_weak_sources_are_a_drift() -> None:
    """As recalls vanish the value tends to that of a page without them, at their own rate."""
    plain = values.greedy(2.0, importance=1.0, change_rate=0.7)
    for recall in (1e-4, 1e-8, 1e-300):
        result = value_at((0.7, (recall, 3 * recall), (0.3, 0.2)), 2.0, [0, 0])
        assert float(result) == pytest.approx(float(plain), rel=10 * recall + ACCURACY)


@pytest.mark.parametrize(("importance", "delta"), [(1.0, 0.0), (0.0, 0.5), (0.0, 0.0)])
def test_static_or_unimportant_pages_have_value_zero(importance: float, delta: float) -> None:
    table = source_tables.greedy_ncis_sources_table(
        importance, delta, [[0.3], [0.2]], [[0.1], [0.0]]
    )
    for time, level in ((0.0, 0.0), (3.0, 0.7), (1e4, math.inf)):
        assert source_kernels.greedy_ncis_sources_value(table, 0, time, level) == 0.0


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
    result = value_at(known, time, np.zeros((2, 1)))
    assert np.all((result >= 0.0) & (result <= 1.0))
    assert np.all(np.diff(result) >= -1e-6)
    counts = np.array([[0, 1, 1, 2, 2], [0, 0, 1, 1, 2]])
    result = value_at(known, 0.3, counts)
    assert np.all(np.diff(result) >= -1e-6)


GOOD: dict[str, Any] = {
    "importance": 1.0,
    "change_rate": 0.5,
    "recall": [[0.5], [0.2]],
    "false_signal_rate": [[0.2], [0.1]],
}


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("importance", math.nan, "importance must be .*got nan"),
        ("change_rate", -2.0, "change_rate must be .*got -2.0"),
        ("recall", [[0.5], [1.2]], "recall must lie in"),
        ("recall", [[0.8], [0.4]], "recall must sum to at most 1 over sources"),
        ("recall", 0.5, "recall must have shape"),
        ("false_signal_rate", [[0.1], [-0.1]], "false_signal_rate must be"),
        ("false_signal_rate", [[0.1]] * 3, "page parameters must broadcast"),
    ],
)
def test_bad_input_is_named(name: str, bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        source_tables.greedy_ncis_sources_table(**{**GOOD, name: bad})
