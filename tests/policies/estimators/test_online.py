"""Estimators that follow a crawl: against the fit of the same crawls at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies.estimators import (
    ChangeRateMLE,
    CompleteObservations,
    MomentMatching,
    fit_change_rates,
    match_moments,
)


def crawl(rng, rate, days=20.0, speed=1.0):
    """Crawls of m pages at random times in [0, days): page, elapsed, changed, time, in order."""
    m = len(rate)
    count = rng.poisson(speed * days, m)
    page = np.repeat(np.arange(m), count)
    time = rng.uniform(0.0, days, len(page))
    order = np.lexsort((time, page))
    page, time = page[order], time[order]
    first = np.concatenate([[True], page[1:] != page[:-1]])
    elapsed = np.where(first, time, np.diff(time, prepend=0.0))
    changed = rng.random(len(page)) < -np.expm1(-rate[page] * elapsed)
    by_time = np.argsort(time)
    return page[by_time], elapsed[by_time], changed[by_time], time[by_time]


def by_hand(page, elapsed, changed, m):
    """Intervals, changes and offsets in the simplest way."""
    rows = [np.flatnonzero(page == i) for i in range(m)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    order = np.concatenate(rows).astype(int)
    return elapsed[order], changed[order], offsets


def in_parts(estimator, page, elapsed, changed, time, parts=7):
    """Update in parts of uneven size, and look in between."""
    cuts = np.linspace(0, 1, parts + 1) ** 2 * len(page)
    for begin, end in zip(cuts[:-1].astype(int), cuts[1:].astype(int), strict=True):
        rows = slice(begin, end)
        estimator.update(page[rows], elapsed[rows], changed[rows], time=time[rows])
        estimator.estimate_[:] = -1.0  # of a copy
    return estimator


@pytest.mark.parametrize("window", [None, 6.5])
@pytest.mark.parametrize(
    ("make", "fit"), [(ChangeRateMLE, fit_change_rates), (MomentMatching, match_moments)]
)
def test_estimates_are_the_fit_of_what_counts(make, fit, window):
    rng = np.random.default_rng(2)
    m = 30
    page, elapsed, changed, time = crawl(rng, rng.gamma(1.0, 1.0, m))
    result = in_parts(make(m + 1, smoothing=0.3, window=window), page, elapsed, changed, time)
    kept = time > (-1.0 if window is None else time[-1] - window)
    expected = fit(*by_hand(page[kept], elapsed[kept], changed[kept], m + 1), smoothing=0.3)
    np.testing.assert_allclose(result.estimate_, expected.change_rate, rtol=1e-11)


def test_the_window_moves_without_crawls():
    mle = ChangeRateMLE(2, window=3.0)
    mle.update([0, 0], [1.0, 1.0], [True, True], time=[1.0, 2.0])
    kept = mle.estimate_[0]
    mle.update([], [], [], time=[], now=4.0)  # the crawl at 1 is no more
    assert 0.0 < mle.estimate_[0] < kept
    mle.update([], [], [], now=5.0, time=[])
    np.testing.assert_allclose(mle.estimate_, math.log(2.0) / 0.5)
    with pytest.raises(ValueError, match="time must be given"):
        mle.update([0], [1.0], [True])


def test_guess_before_and_imaginary_intervals_after():
    """Before any crawl 1 a day; then pages that were never crawled have ln(2) / .5 = 1.386."""
    mle = ChangeRateMLE(3, initial=[1.0, 2.0, 3.0])
    mle.update([], [], [])
    np.testing.assert_array_equal(mle.estimate_, [1.0, 2.0, 3.0])
    mle.update([1], [1.0], [False])
    np.testing.assert_allclose(mle.estimate_[[0, 2]], 1.386294361119891, rtol=1e-14)
    bare = ChangeRateMLE(4, smoothing=0.0, initial=7.0, high=50.0)
    bare.update([1, 2, 3, 3], [1.0, 1.0, 1.0, 1.0], [False, True, True, False])
    np.testing.assert_allclose(bare.estimate_, [7.0, 0.0, 50.0, math.log(2.0)])
    moments = MomentMatching(3, smoothing=0.0, initial=7.0)
    moments.update([0, 0, 1, 1], [1.0, 2.0, 1.0, 2.0], [True, True, False, False])
    np.testing.assert_array_equal(moments.estimate_, [np.inf, 0.0, 7.0])


@pytest.mark.parametrize("window", [None, 5.0])
def test_complete_observations_count(window):
    rng = np.random.default_rng(7)
    m, days = 3000, 30
    rate = rng.uniform(0.5, 3.0, m)
    estimator = CompleteObservations(m, window=window, initial=9.0)
    np.testing.assert_array_equal(estimator.estimate_, 9.0)
    pages, times = [], []
    for day in range(1, days + 1):
        count = rng.poisson(rate)
        page = rng.permutation(np.repeat(np.arange(m), count))
        time = rng.uniform(day - 1, day, len(page))
        estimator.update(page, time=day, signal_time=time)
        pages, times = [*pages, page], [*times, time]
    page, time = np.concatenate(pages), np.concatenate(times)
    span = days if window is None else window
    kept = time > days - span
    counts = np.array([np.count_nonzero(page[kept] == i) for i in range(50)])
    np.testing.assert_array_equal(estimator.counts_[:50], counts)
    assert estimator.time_ == span
    np.testing.assert_allclose(estimator.estimate_[:50], (counts + 0.5) / (span + 0.5))
    score = (estimator.estimate_ - (rate * span + 0.5) / (span + 0.5)) * (span + 0.5)
    score /= np.sqrt(rate * span)
    assert abs(score.mean()) < 0.06
    assert score.std() == pytest.approx(1.0, abs=0.05)


def test_complete_observations_without_smoothing_or_time():
    plain = CompleteObservations(2, smoothing=0.0)
    plain.update([0, 0], time=4.0)
    np.testing.assert_allclose(plain.estimate_, [0.5, 0.0])
    early = CompleteObservations(2, smoothing=0.0, initial=3.0, start=1.0)
    early.update([], time=1.0)
    np.testing.assert_array_equal(early.estimate_, 3.0)
    early.update([1], time=3.0)
    np.testing.assert_allclose(early.estimate_, [0.0, 0.5])


UPDATES = {
    "page must lie in": ([2], [1.0], [True], {}),
    "page must be 1 whole": ([0.5], [1.0], [True], {}),
    "elapsed must be finite and >= 0": ([0], [-1.0], [True], {}),
    "elapsed must be 0 or in .* got 1e.17 at 0": ([0], [1e17], [True], {}),
    "elapsed must be 0 or in .* got 1e-31 at 1": ([0, 0], [1.0, 1e-31], [True, False], {}),
    "changed must be True or False, got 2.0": ([0, 0], [1.0, 1.0], [True, 2], {}),
    "changed must have shape": ([0], [1.0], [True, False], {}),
    "changed must be False where elapsed is 0": ([0], [0.0], [True], {}),
    "time must be finite": ([0], [1.0], [True], {"time": [np.nan]}),
    r"time must have shape \(1,\)": ([0], [1.0], [True], {"time": [1.0, 2.0]}),
    "now must be finite": ([0], [1.0], [True], {"time": 1.0, "now": np.inf}),
}


@pytest.mark.parametrize("message", UPDATES)
def test_bad_updates(message):
    page, elapsed, changed, keywords = UPDATES[message]
    estimator = ChangeRateMLE(2, window=5.0)
    with pytest.raises(ValueError, match=message):
        estimator.update(page, elapsed, changed, **{"time": 1.0, **keywords})
    np.testing.assert_array_equal(estimator.estimate_, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChangeRateMLE(0), "num_pages"),
        (lambda: ChangeRateMLE(2, smoothing=-1.0), "smoothing"),
        (lambda: MomentMatching(2, smoothing=1e200), "smoothing must be 0 or in"),
        (lambda: ChangeRateMLE(2, window=0.0), "window"),
        (lambda: ChangeRateMLE(2, initial=[1.0, -1.0]), "initial"),
        (lambda: ChangeRateMLE(2, low=2.0, high=1.0), "high"),
        (lambda: CompleteObservations(2, smoothing=-1.0), "smoothing"),
        (lambda: CompleteObservations(2, window=-1.0), "window"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_signals():
    estimator = CompleteObservations(2, window=3.0)
    estimator.update([0], time=2.0)
    with pytest.raises(ValueError, match="time must be finite and >= 2"):
        estimator.update([0], time=1.0)
    with pytest.raises(ValueError, match="page must lie in"):
        estimator.update([2], time=3.0)
    with pytest.raises(ValueError, match="signal_time must be 1 times not after 3"):
        estimator.update([0], time=3.0, signal_time=[4.0])
    np.testing.assert_array_equal(estimator.counts_, [1, 0])
