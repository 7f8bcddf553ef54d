"""Changes and phases given a log: as by a slow twin, draw for draw, and as simulated histories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.stats import chi2_contingency, ks_2samp

from policies.live.logs import change_paths
from policies.live.logs.change_paths import Gaps, Law, draw_changes
from tests.naive import change_paths as naive


def some_gaps(rng: np.random.Generator, pages: int, sources: int) -> Gaps:
    """Return gaps of pages with up to five crawls, most of which know what they found."""
    number = rng.integers(0, 5, pages)
    count = int(number.sum())
    length = rng.exponential(2.0, count)
    known = rng.random(count) < 0.8
    signals = rng.integers(0, 4, count) * (sources > 0)
    signal = np.append(0, np.cumsum(signals))
    gap = np.repeat(np.arange(count), signals)
    at = np.sort(gap + rng.random(gap.size)) - gap
    return Gaps(
        first=np.append(0, np.cumsum(number)),
        start=np.cumsum(length) - length,
        length=length,
        has_evidence=known,
        changed=known & (rng.random(count) < 0.6),
        signal=signal,
        signal_at=at * length[gap],
        source=rng.integers(0, max(sources, 1), gap.size),
        pace=rng.uniform(0.5, 2.0, gap.size),
    )


def some_law(rng: np.random.Generator, pages: int, sources: int) -> Law:
    return Law(
        group=rng.integers(0, 2, pages),
        rate=rng.gamma(1.0, [0.5, 5.0], (pages, 2)),
        burst=rng.uniform(0.05, 0.95, (2, 3)),
        share=rng.dirichlet(np.ones(1 + sources), 2),
        false=rng.gamma(1.0, 0.2, (pages, sources)),
    )


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), sources=st.integers(0, 2))
def test_draws_equal_those_of_the_twin(seed: int, sources: int) -> None:
    rng = np.random.default_rng(seed)
    gaps, law = some_gaps(rng, 4, sources), some_law(rng, 4, sources)
    drawn = draw_changes(gaps, law, np.random.default_rng(seed))
    twin = np.random.default_rng(seed)
    for i in np.flatnonzero(np.diff(gaps.first)):
        changes, true, phase = naive.draw_page(gaps, law, int(i), twin)
        own = drawn.page == i
        np.testing.assert_allclose(drawn.time[own], [time for time, _ in changes], rtol=1e-7)
        assert drawn.phase[own].tolist() == [after for _, after in changes]
        signals = np.arange(gaps.signal[gaps.first[i]], gaps.signal[gaps.first[i + 1]])
        assert drawn.true[signals].tolist() == [true.get(int(k), False) for k in signals]
        of_changes = [k for k in drawn.signal[own].tolist() if k >= 0]
        assert sorted(of_changes) == [k for k in signals.tolist() if true.get(k, False)]
        for k, time in zip(drawn.signal[own], drawn.time[own], strict=True):
            gap = int(np.searchsorted(gaps.signal, k, side="right")) - 1
            assert k < 0 or time == pytest.approx(gaps.start[gap] + gaps.signal_at[k])
        for gap in range(gaps.first[i], gaps.first[i + 1]):
            begin, end = gaps.start[gap], gaps.start[gap] + gaps.length[gap]
            inside = sum(begin < time <= end for time, _ in changes)
            assert drawn.in_gap[gap] == inside
        assert drawn.moves[i, 2].tolist() == [1 - phase, phase]
        check_phases(gaps, i, sorted(changes), phase, drawn)


def check_phases(
    gaps: Gaps, i: int, changes: list[tuple[float, int]], phase: int, drawn: change_paths.Drawn
) -> None:
    """Check moves and days of a page by a walk through its changes."""
    begin, last = float(gaps.start[gaps.first[i]]), gaps.first[i + 1] - 1
    moves, days = np.zeros((2, 2), np.int64), np.zeros(2)
    for time, after in changes:
        moves[phase, after] += 1
        days[phase] += time - begin
        begin, phase = time, after
    days[phase] += float(gaps.start[last] + gaps.length[last]) - begin
    np.testing.assert_array_equal(drawn.moves[i, :2], moves)
    np.testing.assert_allclose(drawn.days[i], days, rtol=1e-6, atol=1e-9)


@given(
    rates=st.tuples(st.floats(1e-4, 1e3), st.floats(1e-4, 1e3)),
    chances=st.tuples(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1 - 1e-6)),
    share=st.floats(0.0, 1.0),
    t=st.floats(1e-6, 5.0),
)
@example(rates=(0.5, 0.5), chances=(0.5, 0.5), share=8e-200, t=1.0)  # up * down is 0
@settings(deadline=None)
def test_moves_of_phases_equal_an_exponential(
    rates: tuple[float, float], chances: tuple[float, float], share: float, t: float
) -> None:
    law = Law(
        np.zeros(1, np.int64),
        np.array([rates]),
        np.array([[*chances, 0.5]]),
        np.array([[share, 1.0 - share]]),
        np.ones((1, 1)),
    )
    moved = change_paths._moved(change_paths._page_of(law, 0), t)
    expected = expm(naive.Page(law, 0).generator * t)
    np.testing.assert_allclose(np.reshape(moved, (2, 2)), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("value", "rate"), [(-0.5, 2.0), (-7.0, 1.0), (-1.0, 1.0), (-300.0, 0.1)])
def test_a_mass_is_an_integral(value: float, rate: float) -> None:
    mass = change_paths._mass(value, rate, 0.7, 1.1)
    expected = quad(lambda v: np.exp(-rate * v + value * (1.1 - v)), 0.0, 0.7, epsabs=1e-14)[0]
    assert mass == pytest.approx(expected, rel=1e-9)


def test_given_a_log_histories_are_as_simulated() -> None:
    """Of simulated pages, drawn anew given their crawls and signals: the same distributions."""
    rng, pages, days = np.random.default_rng(0), 2000, 8.0
    law = Law(
        np.zeros(pages, np.int64),
        np.tile([0.3, 4.0], (pages, 1)),
        np.array([[0.3, 0.7, 0.4]]),
        np.array([[0.4, 0.35, 0.25]]),
        np.tile([0.1, 0.2], (pages, 1)),
    )
    histories = [naive.simulated_page(rng, law.rate[0], law.burst[0], days) for _ in range(pages)]
    gaps = gaps_of(rng, histories, days, law)
    drawn = draw_changes(gaps, law, rng)
    number = np.bincount(drawn.page, minlength=pages)
    ours = np.split(drawn.time, np.cumsum(number)[:-1])
    alike(np.array([len(times) for times, _ in histories]), number)
    first = np.array([phases[0] for _, phases in histories])
    alike(first, drawn.moves[:, 2, 1])
    after = np.array([np.bincount(phases[1:], minlength=2) for _, phases in histories])
    alike(after[:, 1], drawn.moves[:, :2, 1].sum(axis=1))
    for crawl in gaps.start.reshape(pages, -1).T:
        waits = [
            [min([t for t in times if t > day], default=99.0) - day
             for times, day in zip(of, crawl, strict=True)]
            for of in ([times for times, _ in histories], ours)
        ]  # fmt: skip
        assert ks_2samp(*waits).pvalue > 1e-4
    distances = [
        np.concatenate([np.diff(np.sort(times)) for times in of])
        for of in ([times for times, _ in histories], ours)
    ]
    assert ks_2samp(*distances).pvalue > 1e-4


def gaps_of(
    rng: np.random.Generator, histories: list[tuple[list[float], list[int]]], days: float, law: Law
) -> Gaps:
    """Return what three crawls of each page after the first, and the signals, tell."""
    start, changed, at, source, signals = [], [], [], [], []
    for times, _ in histories:
        crawls = np.append(0.0, np.sort(rng.random(3)) * days)
        of = rng.choice(3, len(times), p=law.share[0]) - 1
        heard = [(t, s) for t, s in zip(times, of, strict=True) if s >= 0]
        for s in range(2):
            number = rng.poisson(law.false[0, s] * days)
            heard += [(float(t), s) for t in rng.random(number) * days]
        for begin, end in zip(crawls, [*crawls[1:], days], strict=True):
            inside = sorted((t - begin, s) for t, s in heard if begin < t <= end)
            start.append(begin)
            changed.append(any(begin < t <= end for t in times) and end < days)
            at += [t for t, _ in inside]
            source += [int(s) for _, s in inside]
            signals.append(len(inside))
    length = np.diff(np.reshape(start, (-1, 4)), append=days, axis=1).ravel()
    return Gaps(
        first=np.arange(0, len(start) + 1, 4),
        start=np.array(start),
        length=length,
        has_evidence=np.arange(len(start)) % 4 < 3,
        changed=np.array(changed),
        signal=np.append(0, np.cumsum(signals)),
        signal_at=np.array(at),
        source=np.array(source),
        pace=np.ones(len(at)),
    )


def alike(one: np.ndarray, other: np.ndarray) -> None:
    """Check that two samples of counts may have one distribution."""
    size = int(max(one.max(), other.max())) + 1
    table = np.stack([np.bincount(one, minlength=size), np.bincount(other, minlength=size)])
    assert chi2_contingency(table[:, table.sum(axis=0) >= 10]).pvalue > 1e-4


def test_unlikely_logs_end() -> None:
    """Rates at the ends of their range, and changes that they make all but impossible."""
    gaps = some_gaps(np.random.default_rng(0), 50, 1)
    for rates in ([1e-200, 1e-3], [1e-9, 1e5], [1e3, 1e3]):
        law = some_law(np.random.default_rng(1), 50, 1)._replace(rate=np.tile(rates, (50, 1)))
        drawn = draw_changes(gaps, law, np.random.default_rng(2))
        for gap in np.flatnonzero(gaps.has_evidence):
            begin, end = gaps.start[gap], gaps.start[gap] + gaps.length[gap]
            page = int(np.searchsorted(gaps.first, gap, side="right")) - 1
            times = drawn.time[drawn.page == page]
            assert np.any((times > begin) & (times <= end)) == gaps.changed[gap]
