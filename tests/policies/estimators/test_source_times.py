"""Silences of sources, and signals of many pages at one time; crawls every two days."""

from __future__ import annotations

import numpy as np
import pytest

from policies.estimators.source_times import at_many_pages, silent_days, silent_spans

PAGES, DAYS = 20, 90.0


def crawled(rng, changes_of_day=lambda day: 0.4):
    """Return intervals of two days of every page, and whether it changed, at a share by day."""
    start = np.tile(np.arange(0.0, DAYS, 2.0), PAGES)
    return start, np.full(start.size, 2.0), rng.random(start.size) < changes_of_day(start)


def some(rng, number=400):
    return np.sort(rng.uniform(0.0, DAYS, number))


@pytest.mark.parametrize(
    "spans", [[], [(30.0, 60.0)], [(0.0, 25.0)], [(70.0, 90.0)], [(20.0, 30.0), (50.0, 65.0)]]
)
def test_silences_are_found(spans):
    for seed in range(20):
        rng = np.random.default_rng([1, seed])
        time = some(rng)
        for low, high in spans:
            time = time[(time < low) | (time > high)]
        found = silent_spans(time, *crawled(rng))
        assert len(found) == len(spans)
        if spans:
            np.testing.assert_allclose(found, spans, atol=4.0)


@pytest.mark.parametrize("period", [1.0, 7.0, 10.0, 30.0])
def test_batches_are_no_silences(period):
    """Also where one is left out."""
    rng = np.random.default_rng(2)
    batch = np.arange(0.4 * period, DAYS, period)
    for batches in (batch, np.delete(batch, batch.size // 2)):
        time = np.repeat(batches, PAGES) + rng.uniform(0.0, 0.05, batches.size * PAGES)
        assert silent_spans(time, *crawled(rng)).size == 0


def test_few_signals_and_short_gaps_are_no_silences():
    rng = np.random.default_rng(3)
    assert silent_spans(np.array([10.0, 20.0, 30.0]), *crawled(rng)).size == 0
    with np.errstate(all="raise"):
        assert silent_spans(np.full(4, 45.0), *crawled(rng)).size == 0
    time = some(rng, 5000)
    assert silent_spans(time[(time < 40.0) | (time > 44.0)], *crawled(rng)).size == 0
    assert silent_spans(np.empty(0), *crawled(rng)).size == 0
    assert silent_spans(np.empty(0), np.empty(0), np.empty(0), np.empty(0, bool)).size == 0


def test_where_pages_are_quiet_too_the_source_is_not_silent():
    rng = np.random.default_rng(4)
    time = some(rng)
    time = time[(time < 30.0) | (time > 60.0)]
    quiet = crawled(rng, lambda day: np.where((day >= 30.0) & (day < 60.0), 0.02, 0.4))
    assert silent_spans(time, *quiet).size == 0


def test_days_count_by_the_pages_that_are_crawled():
    """Nearly all pages begin on day 60: few signals before are no silence."""
    rng = np.random.default_rng(5)
    start, elapsed, changed = crawled(rng)
    early = np.arange(start.size) < 45  # the intervals of one page
    observed = early | (start >= 60.0)
    time = np.append([20.0, 40.0], rng.uniform(60.0, 90.0, 40))
    assert silent_spans(time, start[observed], elapsed[observed], changed[observed]).size == 0
    assert silent_spans(time, start, elapsed, changed).size > 0


def test_days_of_intervals_in_silences():
    spans = np.array([[2.0, 5.0], [8.0, 9.0]])
    days = silent_days(spans, np.array([0.0, 3.0, 4.0, 6.0]), np.array([1.0, 4.0, 10.0, 8.5]))
    assert days.tolist() == [0.0, 1.0, 2.0, 0.5]


def test_signals_of_many_pages_at_one_time():
    """Four builds within two hours each, of 20, 17, 9 and 5 of 20 pages, and other signals."""
    rng, pages = np.random.default_rng(6), np.repeat(np.arange(20), 3)
    builds = {10.0: 20, 20.0: 17, 25.0: 9, 30.0: 5}
    page = np.concatenate([*map(np.arange, builds.values()), rng.integers(0, 20, 300)])
    time = np.concatenate([day + rng.uniform(0.0, 0.08, n) for day, n in builds.items()])
    time = np.append(time, rng.uniform(40.0, 80.0, 300))
    assert at_many_pages(pages, page, time, 2.0).tolist() == [True] * 46 + [False] * 305
    busy = rng.integers(0, 20, 4000), rng.uniform(0.0, 80.0, 4000)  # a source of many signals
    assert not at_many_pages(pages, *busy, 2.0).any()
    one = np.zeros(300, int), np.repeat(np.arange(3.0), 100)  # a page of many signals
    assert not at_many_pages(pages, *one, 2.0).any()
    assert not at_many_pages(np.arange(3), np.arange(3), np.ones(3), 2.0).any()
