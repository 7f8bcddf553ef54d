"""Changes drawn given a log agree with it, and have the distribution of the model."""

from __future__ import annotations

import copy
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.logs import imputation
from policies.live.logs.crawl_log import CrawlLog
from policies.live.logs.imputation import Changes, impute
from scripts.experiments.measures.simulated_logs import simulated_log
from scripts.live.replay import freshness_served
from tests.naive.replayed_logs import change_times, crawl_times, make_log


def simulated(
    seed: int, *, crawls: int, recall: float, false_rate: float
) -> tuple[CrawlLog, Changes]:
    """Return a log of the model and the true changes; 100 pages, 100 days."""
    rng, days, pages = np.random.default_rng(seed), 100.0, 100
    rows: list[tuple[int, float, bool]] = []
    signals: list[tuple[int, float, int]] = []
    true: list[tuple[float, int]] = []
    for page in range(pages):
        changes = np.sort(rng.random(rng.poisson(rng.gamma(1.5, 0.1) * days)) * days)
        heard = changes[rng.random(changes.size) < recall]
        false = rng.random(rng.poisson(false_rate * days)) * days
        times = np.append(0.0, np.sort(rng.random(crawls) * days))
        found = np.append(False, np.diff(np.searchsorted(changes, times)) > 0)
        rows += [(page, float(t), bool(c)) for t, c in zip(times, found, strict=True)]
        signals += [(page, float(t), 0) for t in np.concatenate([heard, false])]
        true += [(float(t), page) for t in changes]
    true.sort()
    log = make_log(rows, signals, num_pages=pages, num_sources=int(recall + false_rate > 0.0))
    return log, Changes(np.array([p for _, p in true]), np.array([t for t, _ in true]))


def count(times: list[float], low: float, high: float) -> int:
    return sum(low < time <= high for time in times)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), sources=st.integers(0, 2))
def test_changes_agree_with_the_log(seed: int, sources: int) -> None:
    rng = np.random.default_rng(seed)
    crawls = [
        (page, float(time), bool(rng.random() < 0.5))
        for page in range(5)
        for time in np.unique(rng.integers(0, 30, rng.integers(1, 6)))
    ]
    gone = {max((c[0], c[1]) for c in crawls if c[0] == 0)}
    signals = [
        (int(rng.integers(5)), float(rng.random() * 35), int(rng.integers(sources)))
        for _ in range(20 * (sources > 0))
    ]
    log = make_log(crawls, signals, num_pages=5, num_sources=sources, gone=gone)
    drawn = next(impute(log, rng, end=40.0, first=3, passes=2))
    assert np.all(np.diff(drawn.time) >= 0.0)
    heard = {(page, time) for page, time, _ in signals}
    for page in range(5):
        times, moments = change_times(drawn, page), crawl_times(log, page)
        assert count(times, -1.0, moments[0]) == 0
        found = [c for p, c in zip(log.page, log.changed, strict=True) if p == page]
        ends = list(zip(moments, moments[1:], found[1:], strict=False))
        if page == 0:
            assert count(times, moments[-1], 99.0) == 0
            ends = ends[:-1]
        for low, high, changed in ends:
            assert (count(times, low, high) > 0) == changed, (page, low, high)
    changed_at = set(zip(drawn.page.tolist(), drawn.time.tolist(), strict=True))
    assert sources == 0 or len(changed_at & heard) <= len(heard)


@pytest.mark.parametrize(("crawls", "recall", "false_rate"), [(8, 0.0, 0.0), (12, 0.6, 0.04)])
def test_true_changes_look_like_one_more_draw(
    crawls: int, recall: float, false_rate: float
) -> None:
    """Freshness in both halves of simulated logs: standardised by draws, near N(0, 1)."""
    scores = []
    for seed in range(24):
        log, true = simulated(seed, crawls=crawls, recall=recall, false_rate=false_rate)
        chain = impute(log, np.random.default_rng(seed), end=100.0, first=40, passes=6)
        draws = list(islice(chain, 10))
        for start in (0.0, 50.0):
            values = [
                freshness_served(log, changes, np.ones(100), start, start + 50.0)
                for changes in (*draws, true)
            ]
            spread = np.std(values[:-1], ddof=1) * np.sqrt(1.0 + 1.0 / len(draws))
            scores.append((values[-1] - np.mean(values[:-1])) / spread)
    for score in np.reshape(scores, (24, 2)).T:
        assert abs(score.mean()) < 0.8, score
        assert 0.5 < score.std() < 1.7, score


def chain_after(log: CrawlLog, passes: int) -> list[imputation._Chain]:
    """Return copies of a chain after each of the last half of its passes."""
    group, rng = np.zeros(log.num_pages, np.int64), np.random.default_rng(0)
    chain, states = imputation._Chain(log, float(log.time[-1]), group, rng), []
    for _ in range(passes):
        chain.advance()
        states.append(copy.copy(chain))
        chain.chances = chain.chances.copy()
    return states[passes // 2 :]


def test_bursts_are_found() -> None:
    """Bursts of four changes on average, .3 days apart; three in five changes are signalled."""
    log, _ = simulated_log("bursts, 2 days", np.random.default_rng(1), num_pages=150, crawls=40)
    states = chain_after(log, 160)
    enter, stay, _ = np.mean([state.chances[:, 0] for state in states], axis=0)
    assert enter == pytest.approx(0.75, abs=0.1)
    assert stay == pytest.approx(0.75, abs=0.1)
    assert np.mean([1.0 / state.burst_rate[0] for state in states]) == pytest.approx(0.3, rel=0.2)
    shares = [state.shares[1, 0] for state in states]
    assert abs(np.mean(shares) - 0.6) < 3.0 * np.std(shares) < 0.2


def test_a_slowdown_is_found() -> None:
    """Rates that fall to an eighth: the factor of each period is that of the true changes."""
    rng = np.random.default_rng(1)
    log, true = simulated_log("slowing down, 2 days", rng, num_pages=150, crawls=40)
    states = chain_after(log, 120)
    found = np.mean([state.periods.factor for state in states], axis=0)
    expected = np.histogram(true.time, states[0].periods.edges)[0].astype(np.float64)
    np.testing.assert_allclose(found, expected / expected.mean(), rtol=0.25)
    assert found[0] > 4.0 * found[-1]


def test_the_same_seed_draws_the_same() -> None:
    log, _ = simulated(0, crawls=5, recall=0.5, false_rate=0.02)
    first, second = (
        next(impute(log, np.random.default_rng(7), end=120.0, first=2, passes=1)) for _ in range(2)
    )
    assert first.time.tobytes() == second.time.tobytes()
    assert first.time.max() > 100.0


def test_signals_after_the_end_are_left_out() -> None:
    crawls = [(page, float(t), False) for page in range(5) for t in range(0, 50, 10)]
    signals = [(page, float(t), 0) for page in range(5) for t in range(45, 500, 5)]
    log = make_log(crawls, signals, num_pages=5, num_sources=1)
    early = make_log(crawls, [s for s in signals if s[1] <= 60.0], num_pages=5, num_sources=1)
    first, second = (
        next(impute(each, np.random.default_rng(0), end=60.0, first=5)) for each in (log, early)
    )
    assert first.time.tobytes() == second.time.tobytes()
    assert first.time.max(initial=0.0) <= 60.0


def test_bad_input_is_named() -> None:
    log = make_log([(0, 1.0, False), (0, 5.0, True)], num_pages=1)
    rng = np.random.default_rng(0)
    for given_, message in (
        ({"end": 4.0}, "end must be at least 5.0"),
        ({"end": 5.0, "passes": 0}, "passes must be"),
        ({"end": 5.0, "first": -1}, "first must be"),
        ({"end": 5.0, "group": [0, 1]}, "group must"),
    ):
        with pytest.raises(ValueError, match=message):
            next(impute(log, rng, **given_))  # type: ignore[arg-type]


def test_changes_of_two_sources_at_one_time_keep_their_order() -> None:
    """The changes expected by period are those by the days in each phase, by page."""
    log = make_log(
        [(0, 0.0, False), (0, 2.0, True)], [(0, 1.0, 0), (0, 1.0, 1)], num_pages=1, num_sources=2
    )
    chain = imputation._Chain(log, 8.0, np.zeros(1, np.int64), np.random.default_rng(3))
    for _ in range(40):
        drawn = chain.path()
        rates = (chain.change_rates * drawn.days).sum()
        np.testing.assert_allclose(chain.exposure(drawn).sum(), rates, rtol=1e-9)


def test_a_signal_at_a_crawl_is_before_it_whatever_the_clock() -> None:
    log = make_log(
        [(0, 0.0, False), (0, 1.3, True), (0, 4.0, False)],
        [(0, 1.3, 0)],
        num_pages=1,
        num_sources=1,
    )
    for drawn in islice(impute(log, np.random.default_rng(1), end=4.0, first=0, passes=1), 300):
        assert not np.any(drawn.time > 1.3)
        assert drawn.time.size
