"""Audits of sources of signals against simulated logs, limits and small logs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from policies.estimators import audit_signals
from tests.naive.signal_audit import crawl_log


def log_of(rng, pages=150, crawls=15, recall=(0.6,), precision=(0.7,), delay=(0.3,), **options):
    """Pages whose changes and signals have proportional rates; the log and the change rates.

    A source of no precision sends as many signals as there are changes.
    """
    change_rate = rng.gamma(2.0, 0.3, pages) + 0.02
    false = [
        change_rate * (r * (1.0 - p) / p if p > 0.0 else 1.0)
        for r, p in zip(recall, precision, strict=True)
    ]
    times = np.cumsum(rng.exponential(1.0, (pages, crawls + 1)), axis=1)
    return crawl_log(rng, change_rate, recall, false, delay, times, **options)


def perfect_log(pages, crawls, true, false=0):
    """Intervals of length 1; signals in ``true`` of them, which all changed, and in others."""
    rng = np.random.default_rng([20, pages])
    rows = rng.permutation(pages * crawls)[: true + false]
    changed = np.zeros(pages * crawls, bool)
    changed[rows[:true]] = True
    page, start = np.divmod(np.arange(pages * crawls), crawls)
    intervals = (page, start.astype(float), np.ones(pages * crawls), changed)
    signals = (page[rows], start[rows] + rng.uniform(0.0, 1.0, rows.size))
    return (*intervals, *signals, np.zeros(rows.size, int), 1)


def share_covered(pages, crawls, precision, recall, delay, logs):
    """Shares of logs whose intervals cover precision, recall and delay, and the estimates."""
    truth, hits, estimates = np.array([precision, recall, delay]), [], []
    for seed in range(logs):
        rng = np.random.default_rng([5, pages, crawls, seed])
        audit = audit_signals(*log_of(rng, pages, crawls, (recall,), (precision,), (delay,)))
        ends = (audit.precision_interval, audit.recall_interval, audit.delay_interval)
        hits.append([low <= x <= high for ((low, high),), x in zip(ends, truth, strict=True)])
        estimates.append([audit.precision[0], audit.recall[0], audit.delay[0]])
    return np.mean(hits, axis=0), np.array(estimates)


def test_intervals_of_a_few_logs():
    share, estimates = share_covered(100, 12, 0.7, 0.6, 0.2, 14)
    assert np.all(share >= 11 / 14)
    np.testing.assert_allclose(estimates.mean(axis=0), [0.7, 0.6, 0.2], atol=0.05)
    assert np.all(estimates.std(axis=0) < [0.09, 0.09, 0.1])


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """In 95% of logs or, with few pages or a delay of 0, in more; 720 intervals of four kinds."""
    shares = []
    for pages, crawls, *truth in (
        (80, 6, 0.5, 0.6, 0.0),
        (20, 60, 0.7, 0.6, 0.2),
        (40, 20, 0.9, 0.8, 0.1),
        (150, 10, 0.6, 0.4, 0.2),
    ):
        share, estimates = share_covered(pages, crawls, *truth, 60)
        assert np.all(share > 0.91)
        np.testing.assert_allclose(np.median(estimates, axis=0)[:2], truth[:2], atol=0.02)
        shares.append(share)
    assert 0.945 < np.mean(shares) < 0.985


@pytest.mark.parametrize(
    ("pages", "crawls", "true", "false"),
    [(60, 4, 54, 0), (200, 4, 180, 0), (1000, 4, 900, 0), (60, 90, 840, 2)],
)
def test_perfect_sources(pages, crawls, true, false):
    audit = audit_signals(*perfect_log(pages, crawls, true, false))
    assert audit.verdict == ("trust",)
    assert audit.precision[0] == pytest.approx(1.0 - false / (true + false), abs=1e-3)
    low, high = audit.precision_interval[0]
    assert high > 0.999
    worst = binomtest(true, true + false).proportion_ci().low
    assert worst - 0.03 < low <= worst + 1e-3
    assert audit.recall[0] > 0.99
    assert audit.recall_interval[0, 1] > 0.999


def test_useless_perfect_and_useful_sources():
    rng = np.random.default_rng(6)
    times = np.cumsum(rng.exponential(1.0, (300, 21)), axis=1)
    rates = rng.gamma(2.0, 0.3, 300) + 0.02
    useless = audit_signals(*crawl_log(rng, rates, (0.0,), [np.full(300, 0.6)], (0.0,), times))
    assert useless.verdict == ("ignore",)
    assert useless.reason == ("the lower end of the precision, 0, is below 0.05",)
    assert useless.precision_interval[0, 0] == 0.0
    assert np.isnan(useless.delay).all()
    perfect = audit_signals(*log_of(rng, 300, 20, (0.8,), (1.0,), (0.02,)))
    assert perfect.verdict == ("trust",)
    assert perfect.reason[0].startswith("the lower end of the precision, 0.9")
    assert perfect.reason[0].endswith("is above 0.9")
    assert perfect.precision_interval[0, 1] == 1.0
    late = audit_signals(*log_of(rng, 300, 20, (0.8,), (1.0,), (1.0,)))
    assert "lower end of the precision" in late.reason[0] or "delay" in late.reason[0]
    noisy = audit_signals(*log_of(rng, 300, 20, (0.6,), (0.5,), (0.1,)))
    assert noisy.reason[0].endswith("is not above 0.9")
    assert late.verdict == noisy.verdict == ("discount",)
    little = audit_signals(*log_of(rng, 8, 3, (0.6,), (0.5,), (0.1,)))
    assert little.verdict == ("unknown",)
    assert little.reason == ("the interval of the precision is wider than 0.5",)


def test_order_and_signals_outside_do_not_matter():
    rng = np.random.default_rng(8)
    *intervals, of, time, source, _ = log_of(rng, 30, 10)
    audit = audit_signals(*intervals, of, time, source, 1)
    mixed, shuffled = rng.permutation(len(intervals[0])), rng.permutation(len(of))
    before = np.array([[3, 99], [-1e3, 5.0]])
    again = audit_signals(
        *(column[mixed] for column in intervals),
        np.append(of[shuffled], before[0].astype(int)),
        np.append(time[shuffled], before[1]),
        np.append(source[shuffled], [0, 0]),
        1,
    )
    for name in ("precision_interval", "recall_interval", "delay_interval", "num_signals"):
        np.testing.assert_allclose(getattr(again, name), getattr(audit, name), rtol=1e-6)


def test_signals_at_crawls_belong_to_the_interval_before():
    start = np.array([0.1, 0.1 + 0.2, 0.7])
    elapsed = np.array([0.2, 0.7 - (0.1 + 0.2), 0.5])
    counted = audit_signals(
        [0, 0, 0], start, elapsed, [1, 0, 1], [0] * 4, [0.1, 0.1 + 0.2, 1.2, 1.3], [0] * 4, 1
    )
    assert counted.num_signals[0] == 2


def test_nothing_known():
    none = np.zeros(0, int)
    empty = audit_signals(none, [], [], none.astype(bool), none, [], none, 2)
    assert empty.verdict == ("unknown", "unknown")
    assert np.isnan(empty.precision_interval).all()
    assert empty.precision_interval.shape == (2, 2)
    silent = audit_signals([0, 0], [0.0, 1.0], [1.0, 1.0], [True, False], none, [], none, 1)
    assert silent.verdict == ("unknown",)
    assert audit_signals([0], [0.0], [1.0], [True], none, [], none, 0).verdict == ()
    always = audit_signals([0], [0.0], [1.0], [True], [0], [0.5], [0], 1)
    assert always.verdict == ("unknown",)


def test_without_times_only_counts_matter():
    rng = np.random.default_rng(9)
    *intervals, of, time, source, _ = log_of(rng, 200, 20, delay=(0.0,))
    audit = audit_signals(*intervals, of, time, source, 1, timed=[False])
    assert np.isnan(audit.delay).all()
    page, start, elapsed, _ = intervals
    moved = time.copy()
    for k in range(len(time)):
        row = np.flatnonzero((page == of[k]) & (start < time[k]) & (time[k] <= start + elapsed))
        if len(row):
            moved[k] = start[row[0]] + 0.5 * elapsed[row[0]]
    again = audit_signals(*intervals, of, moved, source, 1, timed=[False])
    assert again.precision_interval.tolist() == audit.precision_interval.tolist()
    assert audit.verdict == ("discount",)
    assert audit.precision_interval[0, 0] <= 0.7 <= audit.precision_interval[0, 1]


def test_unit_of_time():
    rng = np.random.default_rng(10)
    page, start, elapsed, *rest, of, time, source, _ = log_of(rng, 80, 10)
    days = audit_signals(page, start, elapsed, *rest, of, time, source, 1)
    second = 86400.0
    seconds = audit_signals(
        page, start * second, elapsed * second, *rest, of, time * second, source, 1
    )
    np.testing.assert_allclose(seconds.precision_interval, days.precision_interval, rtol=1e-2)
    np.testing.assert_allclose(seconds.delay / second, days.delay, rtol=1e-2)


@pytest.mark.parametrize("seed", range(20))
def test_short_logs(seed):
    """Intervals contain the estimates, between 0 and 1, however little is known."""
    rng = np.random.default_rng([11, seed])
    pages, crawls = rng.integers(1, 6), rng.integers(1, 5)
    audit = audit_signals(*log_of(rng, pages, crawls, (0.5, 0.4), (0.7, 1.0), (0.5, 0.0)))
    for value, ends in (
        (audit.precision, audit.precision_interval),
        (audit.recall, audit.recall_interval),
    ):
        known = ~np.isnan(value)
        assert np.all((ends[known, 0] <= value[known]) & (value[known] <= ends[known, 1]))
        assert np.all((ends[known] >= 0.0) & (ends[known] <= 1.0))
    assert set(audit.verdict) <= {"trust", "discount", "ignore", "unknown"}


def test_precisions_that_differ_between_pages():
    """False signals at one rate on all pages, with changes at very different ones."""
    hits, estimates = [], []
    for seed in range(20):
        rng = np.random.default_rng([12, seed])
        change_rate = rng.gamma(0.5, 0.8, 100)
        times = np.cumsum(rng.exponential(1.0, (100, 26)), axis=1)
        log = crawl_log(rng, change_rate, (0.7,), [np.full(100, 0.12)], (0.0,), times)
        audit, true = audit_signals(*log), 0.7 * change_rate.mean()
        (low, high), precision = audit.precision_interval[0], true / (true + 0.12)
        hits.append([low <= precision <= high, np.prod(audit.recall_interval[0] - 0.7) <= 0.0])
        estimates.append([audit.precision[0] - precision, audit.recall[0] - 0.7])
    assert np.all(np.mean(hits, axis=0) >= 0.9)
    np.testing.assert_allclose(np.mean(estimates, axis=0), 0.0, atol=0.02)


def test_many_pages_signalled_at_once():
    """Every ten days all pages have a false signal at one time, or half of them in two hours."""
    hits = []
    for seed in range(20):
        rng = np.random.default_rng([13, seed])
        change_rate = rng.gamma(1.5, 0.2 / 1.5, 60)
        times = np.arange(0.0, 91.0, 2.0) + rng.uniform(0.0, 1.0, (60, 46))
        *log, of, time, _, _ = crawl_log(rng, change_rate, (0.7,), [[0.0] * 60], (0.0,), times)
        inside, named = np.count_nonzero(time > times[of, 0]), np.arange(0, 60, 1 + seed % 2)
        builds = np.repeat(np.arange(5.0, 91.0, 10.0), named.size)
        builds += rng.uniform(0.0, 0.08, builds.size) * (seed % 2)
        of, time = np.append(of, np.tile(named, 9)), np.append(time, builds)
        audit = audit_signals(*log, of, time, np.zeros(of.size, int), 1)
        true = inside / (inside + builds.size)
        ends = audit.precision_interval[0] - true, audit.recall_interval[0] - 0.7
        hits.append([low <= 0.0 <= high for low, high in ends])
        assert audit.silences[0].size == 0
        assert audit.false_signals.sum() == pytest.approx(builds.size, rel=0.1)
    assert np.all(np.mean(hits, axis=0) >= 0.9)


@pytest.mark.parametrize("timed", [True, False])
def test_a_silence_is_left_out_of_recall(timed):
    rng = np.random.default_rng(14)
    *log, of, time, source, _ = log_of(rng, 120, 60, delay=(0.0,))
    heard = (time < 20.0) | (time > 35.0)
    audit = audit_signals(*log, of[heard], time[heard], source[heard], 1, timed=[timed])
    [(first, last)] = audit.silences[0]
    assert first == time[time < 20.0].max()
    assert last == time[time > 35.0].min()
    assert audit.recall_interval[0, 0] < 0.6 < audit.recall_interval[0, 1] < 0.7
    _, start, elapsed, _ = log
    quiet = (start > 20.0) & (start + elapsed < 35.0)
    assert np.all(audit.effective_signals[0, quiet] > 0.0)


def test_sources_that_signal_the_same_changes():
    """Each is audited alone: that another source signals the same changes does not matter.

    Three logs; of 12 intervals, fewer than 10 contain the truth once in 50 times.
    """
    hits = []
    for seed in range(3):
        rng = np.random.default_rng([7, seed])
        *log, of, time, source, _ = log_of(rng, 600, 20, (0.7, 0.7), (0.8, 0.8), (0.1, 0.5))
        audit = audit_signals(*log, of, time, source, 2)
        hits += [low <= 0.8 <= high for low, high in audit.precision_interval]
        hits += [low <= 0.7 <= high for low, high in audit.recall_interval]
        assert audit.delay[0] < 0.2 < 0.3 < audit.delay[1]
        own = source == 1
        alone = audit_signals(*log, of[own], time[own], source[own] - 1, 1)
        assert alone.precision[0] == audit.precision[1]
    assert sum(hits) >= 10


def delayed_log(rng, pages, days, precision, recall, delays, rate_shape=1.5, constant=False):
    """Daily crawls of pages that change every five days; ``delays`` draws so many delays.

    False signals have the rates of changes, or one rate on all pages.
    """
    rate = rng.gamma(rate_shape, 0.2 / rate_shape, pages) + 0.01
    false = np.full(pages, rate.mean()) if constant else rate
    false = false * recall * (1.0 - precision) / precision
    moments = rng.random((pages, 1)) + np.arange(days)
    changes = [rng.uniform(-10.0, days, rng.poisson(x * (days + 10.0))) for x in rate]
    found = [
        np.diff(np.searchsorted(np.sort(x), y)) > 0 for x, y in zip(changes, moments, strict=True)
    ]
    sent = [x[rng.random(x.size) < recall] for x in changes]
    sent = [x + delays(x.size) for x in sent]
    sent = [
        np.append(x, rng.uniform(-10.0, days, rng.poisson(y * (days + 10.0))))
        for x, y in zip(sent, false, strict=True)
    ]
    page, signal_page = (
        np.repeat(np.arange(pages), days - 1),
        np.repeat(np.arange(pages), [x.size for x in sent]),
    )
    return (
        *(page, moments[:, :-1].ravel(), np.diff(moments).ravel(), np.concatenate(found)),
        *(signal_page, np.concatenate(sent), np.zeros(signal_page.size, int), 1),
    )


@pytest.mark.parametrize("share", [1.0, 0.997])
@pytest.mark.parametrize("pages", [20, 60, 200, 1000])
def test_sources_that_are_nearly_perfect_are_trusted(pages, share):
    for seed in range(3):
        rng = np.random.default_rng([21, pages, seed])
        audit = audit_signals(*delayed_log(rng, pages, 90, share, share, np.zeros))
        assert audit.verdict == ("trust",)
        for low, high in (*audit.precision_interval, *audit.recall_interval):
            assert 0.96 < low < high
            assert high > (0.99 if share < 1.0 else 1.0 - 1e-12)
        assert audit.delay_interval[0, 0] == 0.0
        assert audit.delay_interval[0, 1] < 0.05


@pytest.mark.parametrize(
    ("law", "error"), [("exponential", 0.02), ("uniform", 0.08), ("fixed", 0.12)]
)
def test_laws_of_delays(law, error):
    """Estimates of delays of another law than exponential are too high, but by little."""
    rng = np.random.default_rng(22)
    draw = {
        "exponential": rng.standard_exponential,
        "uniform": lambda size: rng.uniform(0.0, 2.0, size),
        "fixed": np.ones,
    }[law]
    audit = audit_signals(*delayed_log(rng, 500, 60, 0.8, 0.7, lambda size: 0.4 * draw(size)))
    found = audit.precision[0], audit.recall[0], audit.delay[0]
    np.testing.assert_allclose(found, [0.8, 0.7, 0.4], atol=error)
    assert audit.verdict == ("discount",)


def test_false_signals_at_one_rate_on_pages_of_very_different_rates():
    audit = audit_signals(
        *delayed_log(np.random.default_rng(23), 300, 90, 0.8, 0.7, np.zeros, 0.7, True)
    )
    assert audit.precision[0] == pytest.approx(0.8, abs=0.03)
    assert audit.recall[0] == pytest.approx(0.7, abs=0.03)


def test_only_false_signals():
    """A source of as many signals as there are changes, independent of them."""
    for seed in range(4):
        rng = np.random.default_rng([24, seed])
        log = list(delayed_log(rng, 60, 90, 0.5, 0.5, np.zeros))
        log[5] = rng.permutation(log[5])
        audit = audit_signals(*log)
        assert audit.verdict == ("ignore",)
        assert audit.precision_interval[0, 1] < 0.25
        assert audit.recall_interval[0, 1] < 0.25
        assert np.isnan(audit.delay[0])


def test_signals_after_the_last_crawl_do_not_matter():
    log = list(delayed_log(np.random.default_rng(25), 40, 60, 0.8, 0.7, np.zeros))
    audit = audit_signals(*log)
    later = log[4], log[5] + 100.0, log[6]
    log[4:7] = (np.append(x, y) for x, y in zip(log[4:7], later, strict=True))
    again = audit_signals(*log)
    assert again.num_signals == audit.num_signals
    np.testing.assert_allclose(again.precision_interval, audit.precision_interval, rtol=1e-9)


def test_effective_signals_are_signals_where_none_is_late():
    log = log_of(np.random.default_rng(13), 200, 10)
    prompt = audit_signals(*log[:7], 1, timed=[False])
    page, start, elapsed, _, of, time, *_ = log
    inside = (page == of[:, None]) & (start < time[:, None]) & (time[:, None] <= start + elapsed)
    np.testing.assert_array_equal(prompt.effective_signals[0], inside.sum(axis=0))
    audit = audit_signals(*log)
    mixed = np.random.default_rng(1).permutation(2000)
    again = audit_signals(*(column[mixed] for column in log[:4]), *log[4:])
    np.testing.assert_allclose(
        again.effective_signals, audit.effective_signals[:, mixed], rtol=1e-6, atol=1e-12
    )
