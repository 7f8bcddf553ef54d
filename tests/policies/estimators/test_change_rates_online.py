"""Estimators that follow a crawl: against the fit of the same crawls at once, and known rates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies import estimators
from policies.estimators import (
    ChangeRateMLE,
    CompleteObservations,
    EmpiricalBayesRate,
    ImprovedEstimator,
    LastModifiedEstimator,
    LawOfLargeNumbers,
    MomentMatching,
    NaiveEstimator,
    fit_change_rates,
    match_moments,
)
from policies.estimators.change_rates import LITERAL, HistoryEstimator
from policies.estimators.change_rates.record import INITIAL_CAPACITY, CrawlRecord
from policies.estimators.signals import empirical_bayes as shrinkage
from tests.policies.rate_scores import check_scores

HISTORY = {
    "mle": lambda m, **kw: ChangeRateMLE(m, **kw),
    "moments": MomentMatching,
    "naive": NaiveEstimator,
    "improved": ImprovedEstimator,
    "law": LawOfLargeNumbers,
    "pooled": EmpiricalBayesRate,
}


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
        assert estimator.estimate_.shape == (estimator.num_pages,)
    return estimator


@pytest.mark.parametrize("name", HISTORY)
def test_parts_make_the_whole(name):
    """Estimates do not depend on when one looked, and copies do not lead back."""
    rng = np.random.default_rng(1)
    rate = rng.gamma(1.0, 1.0, 40)
    crawls = crawl(rng, rate)
    parts = in_parts(HISTORY[name](41), *crawls)
    whole = HISTORY[name](41)
    whole.update(*crawls[:3])
    exact = {"rtol": 1e-11 if name != "pooled" else 1e-3}
    np.testing.assert_allclose(parts.estimate_, whole.estimate_, **exact)
    np.testing.assert_allclose(parts.stderr_, whole.stderr_, **exact)
    parts.estimate_[:] = -1.0
    parts.stderr_[:] = -1.0
    assert (parts.estimate_ >= 0.0).all()
    assert not (parts.stderr_ < 0.0).any()


@pytest.mark.parametrize(("window", "last"), [(None, None), (6.5, None), (None, 4), (6.5, 3)])
def test_mle_is_the_fit_of_what_counts(window, last):
    rng = np.random.default_rng(2)
    m = 30
    page, elapsed, changed, time = crawl(rng, rng.gamma(1.0, 1.0, m))
    result = in_parts(
        ChangeRateMLE(m, smoothing=0.3, window=window, last=last), page, elapsed, changed, time
    )
    kept = time > (-1.0 if window is None else time[-1] - window)
    if last is not None:
        for i in range(m):
            kept[np.flatnonzero(kept & (page == i))[:-last]] = False
    assert result.crawls_ == kept.sum()
    expected = fit_change_rates(
        *by_hand(page[kept], elapsed[kept], changed[kept], m), smoothing=0.3
    )
    np.testing.assert_allclose(result.estimate_, expected.change_rate, rtol=1e-12)
    np.testing.assert_allclose(result.stderr_, expected.stderr, rtol=1e-8)


def test_the_window_moves_without_crawls():
    mle = ChangeRateMLE(2, window=3.0)
    mle.update([0, 0], [1.0, 1.0], [True, True], time=[1.0, 2.0])
    kept = mle.estimate_[0]
    mle.update([], [], [], time=[], now=4.0)  # the crawl at 1 is no more
    assert mle.crawls_ == 2  # until one looks
    assert 0.0 < mle.estimate_[0] < kept
    assert mle.crawls_ == 1
    mle.update([], [], [], now=5.0, time=[])
    np.testing.assert_allclose(mle.estimate_, math.log(2.0) / 0.5)
    with pytest.raises(ValueError, match="time must be given"):
        mle.update([0], [1.0], [True])


def test_guess_before_and_imaginary_intervals_after():
    """Before any crawl 1 a day; then pages that were never crawled have ln(2) / .5 = 1.386."""
    mle = ChangeRateMLE(3, initial=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(mle.estimate_, [1.0, 2.0, 3.0])
    assert np.isnan(mle.stderr_).all()
    mle.update([], [], [])
    np.testing.assert_array_equal(mle.estimate_, [1.0, 2.0, 3.0])
    mle.update([1], [1.0], [False])
    np.testing.assert_allclose(mle.estimate_[[0, 2]], 1.386294361119891, rtol=1e-14)
    assert (mle.stderr_ > 0.0).all()
    bare = ChangeRateMLE(4, smoothing=0.0, initial=7.0, high=50.0)
    bare.update([1, 2, 3, 3], [1.0, 1.0, 1.0, 1.0], [False, True, True, False])
    np.testing.assert_allclose(bare.estimate_, [7.0, 0.0, 50.0, math.log(2.0)])
    np.testing.assert_array_equal(np.isnan(bare.stderr_), [True, True, True, False])


def test_a_warm_start_needs_one_look():
    rng = np.random.default_rng(3)
    m = 500
    crawls = crawl(rng, rng.gamma(1.0, 1.0, m))
    intervals, changed, offsets = by_hand(*crawls[:3], m)
    cold = fit_change_rates(intervals, changed, offsets, smoothing=0.5)
    warm = fit_change_rates(intervals, changed, offsets, smoothing=0.5, start=cold.change_rate)
    assert warm.iterations.max() == 1
    np.testing.assert_allclose(warm.change_rate, cold.change_rate, rtol=1e-13)


def test_estimates_recover_known_rates():
    """4,000 pages at regular intervals; the naive estimate is low as theory has it."""
    rng = np.random.default_rng(4)
    m, k, interval = 4000, 150, 0.7
    rate = rng.uniform(0.3, 1.5, m)
    page, elapsed = np.repeat(np.arange(m), k), np.full(m * k, interval)
    changed = rng.random(m * k) < -np.expm1(-rate[page] * elapsed)
    fisher = np.sqrt(np.expm1(rate * interval) / k) / interval
    estimates = []
    for name in ("mle", "moments", "improved"):
        estimator = HISTORY[name](m)
        estimator.update(page, elapsed, changed)
        check_scores(estimator, rate, fisher, bias=0.1)
        estimates.append(estimator.estimate_)
    # moments are the likelihood here, and the other two take nearly nothing from it
    np.testing.assert_allclose(estimates[1], estimates[0], rtol=1e-2)
    naive = NaiveEstimator(m)
    naive.update(page, elapsed, changed)
    share = -np.expm1(-rate * interval)
    check_scores(naive, share / interval, np.sqrt(share * (1.0 - share) / k) / interval)
    assert naive.estimate_.mean() < 0.8 * rate.mean()


@pytest.mark.parametrize("given", [True, False])
def test_random_crawls_follow_the_law_of_large_numbers(given):
    rng = np.random.default_rng([5, given])
    m, k = 4000, 400
    rate, speed = rng.uniform(0.3, 1.5, m), rng.uniform(0.5, 2.0, m)
    page = np.repeat(np.arange(m), k)
    elapsed = rng.exponential(1.0 / speed[page])
    changed = rng.random(m * k) < -np.expm1(-rate[page] * elapsed)
    estimator = LawOfLargeNumbers(m, crawl_rate=speed if given else None)
    estimator.update(page, elapsed, changed)
    share = rate / (rate + speed)
    error = speed * np.sqrt(share / (1.0 - share) ** 3 / k)
    if given:
        check_scores(estimator, rate, error, bias=0.1)
    else:  # the number of changes and the time covered are not independent
        assert abs(((estimator.estimate_ - rate) / error).mean()) < 0.1
        assert np.mean(np.abs(estimator.estimate_ / rate - 1.0)) < 0.12


def test_last_modified_recovers_known_rates():
    rng = np.random.default_rng(6)
    m, k = 4000, 60
    rate = rng.uniform(0.3, 2.0, m)
    page, elapsed = np.repeat(np.arange(m), k), rng.exponential(1.0, m * k)
    age = rng.exponential(1.0 / rate[page])  # of the last change, looking back
    changed = age < elapsed
    estimator = LastModifiedEstimator(m)
    half = len(page) // 2
    for rows in (slice(0, half), slice(half, None)):
        estimator.update(page[rows], elapsed[rows], changed[rows], age=age[rows])
    # of k exponential intervals, k Delta / (1 + Delta) are expected to end with a change
    check_scores(estimator, rate, rate / np.sqrt(k * rate / (1.0 + rate)))


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
    np.testing.assert_allclose(estimator.stderr_, np.sqrt(estimator.estimate_ / span))


def test_complete_observations_as_printed():
    """Eq. 11, (U + 1) / t; Algorithm 4, (U + 1/2) / (S + 1/2); and plain U / t."""
    for smoothing, expected in (
        (LITERAL, [0.75, 0.25]),
        (0.5, [2.5 / 4.5, 0.5 / 4.5]),
        (0, [0.5, 0]),
    ):
        estimator = CompleteObservations(2, smoothing=smoothing)
        estimator.update([0, 0], time=4.0)
        np.testing.assert_allclose(estimator.estimate_, expected)
    np.testing.assert_array_equal(np.isnan(estimator.stderr_), [False, True])
    assert estimator.stderr_[0] == pytest.approx(math.sqrt(0.5 / 4.0))
    early = CompleteObservations(2, smoothing=LITERAL, initial=3.0, start=1.0)
    early.update([], time=1.0)
    np.testing.assert_array_equal(early.estimate_, 3.0)
    assert np.isnan(early.stderr_).all()
    early.update([1], time=3.0)
    np.testing.assert_allclose(early.estimate_, [0.5, 1.0])


def test_pooled_agrees_with_the_general_fit(monkeypatch):
    """Another kernel, and plain passes that go on until they stand still."""
    monkeypatch.setattr(shrinkage, "TOLERANCE", 1e-9)
    monkeypatch.setattr(shrinkage, "MAX_PASSES", 5000)
    rng = np.random.default_rng(8)
    m = 600
    groups = np.arange(m) % 2
    rate = rng.gamma(1.5, np.where(groups == 0, 0.2, 1.0))
    page, elapsed, changed, time = crawl(rng, rate, days=10.0)
    general = estimators.empirical_bayes(
        elapsed, None, changed, page=page, groups=groups, num_pages=m
    )
    mine = EmpiricalBayesRate(m, groups=groups)
    mine.update(page, elapsed, changed)
    assert mine.converged_
    assert general.converged
    settled = {"rtol": 1e-3}  # 1e-5 per pass, with many passes to come
    np.testing.assert_allclose(mine.groups_.mean, general.groups.mean, **settled)
    np.testing.assert_allclose(mine.groups_.shape, general.groups.shape, **settled)
    np.testing.assert_allclose(mine.estimate_, general.fit.unsignalled_rate, **settled)
    np.testing.assert_allclose(mine.stderr_, general.fit.unsignalled_rate_stderr, **settled)
    warm = in_parts(EmpiricalBayesRate(m, groups=groups), page, elapsed, changed, time)
    np.testing.assert_allclose(warm.groups_.mean, mine.groups_.mean, **settled)


def test_pooled_helps_short_histories():
    rng = np.random.default_rng(9)
    m = 2000
    rate = rng.gamma(2.0, 0.3, m)
    page, elapsed, changed, _ = crawl(rng, rate, days=6.0)
    gaps = []
    for estimator in (ChangeRateMLE(m), EmpiricalBayesRate(m)):
        estimator.update(page, elapsed, changed)
        gaps.append(((estimator.estimate_ - rate) ** 2).mean())
    assert gaps[1] < 0.6 * gaps[0]
    assert np.isfinite(estimator.stderr_).all()


def test_groups_without_crawls_have_the_guess():
    pooled = EmpiricalBayesRate(3, groups=[0, 0, 1], initial=[1.0, 1.0, 4.0])
    pooled.update([0, 0], [1.0, 1.0], [True, False])
    assert pooled.estimate_[2] == pytest.approx(4.0, rel=1e-3)
    assert np.isfinite(pooled.estimate_).all()
    with pytest.raises(ValueError, match="initial must be > 0"):
        EmpiricalBayesRate(2, initial=[0.0, 1.0])


@pytest.mark.parametrize("elapsed", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("flags", [(False,), (True,), (False, False, False), (True, True, True)])
def test_nothing_changed_and_all_changed(elapsed, flags):
    """Where an estimator is smoothed it is positive and finite, elsewhere as its page says."""
    n = len(flags)
    page, lengths, changed = np.zeros(n, int), np.full(n, elapsed), np.array(flags)
    bare = {"naive", "improved", "law"}
    for name, make in HISTORY.items():
        estimator = make(1)
        estimator.update(page, lengths, changed)
        estimate, error = estimator.estimate_[0], estimator.stderr_[0]
        assert np.isfinite(estimate), name
        if name in bare and not flags[0]:
            assert estimate == 0.0
            assert math.isnan(error)
        else:
            assert estimate > 0.0, name
        if name not in bare:
            assert 0.0 < error < math.inf, name
    modified = LastModifiedEstimator(1)
    modified.update(page, lengths, changed, age=0.5 * lengths)
    assert modified.estimate_[0] == pytest.approx((n - 1) / (0.5 * n * elapsed) * flags[0])


def test_records_grow_and_forget():
    rng = np.random.default_rng(10)
    n, m = 3 * INITIAL_CAPACITY, 50
    page, elapsed = rng.integers(0, m, n), rng.random(n) + 0.1
    changed, time = rng.random(n) < 0.5, np.sort(rng.random(n))
    record = CrawlRecord(m, timed=True)
    for rows in np.array_split(np.arange(n), 37):
        record.append(page[rows], elapsed[rows], changed[rows], time[rows])
    result = record.by_page()
    expected = by_hand(page, elapsed, changed, m)
    for mine, slow in zip(result, expected, strict=True):
        np.testing.assert_array_equal(mine, slow)
    late = record.by_page(since=0.9)
    kept = time > 0.9
    for mine, slow in zip(late, by_hand(page[kept], elapsed[kept], changed[kept], m), strict=True):
        np.testing.assert_array_equal(mine, slow)
    assert record.size == kept.sum()


def test_history_estimators_share_their_words():
    for make in (ChangeRateMLE, MomentMatching, NaiveEstimator, EmpiricalBayesRate):
        assert issubclass(make, HistoryEstimator)
    one = MomentMatching(2, smoothing=0.0)
    one.update([0, 0, 0], [1.0, 2.0, 0.5], [True, False, True])
    expected = match_moments([1.0, 2.0, 0.5], [True, False, True])
    np.testing.assert_array_equal(one.estimate_, [expected.change_rate[0], 1.0])


def test_moments_are_smoothed_by_default():
    crawls = [0, 0, 1, 1], [1.0, 2.0, 1.0, 2.0], [True, True, False, False]
    usual, bare = MomentMatching(3, initial=7.0), MomentMatching(3, smoothing=0.0, initial=7.0)
    for estimator in (usual, bare):
        estimator.update(*crawls)
    np.testing.assert_array_equal(bare.estimate_, [np.inf, 0.0, 7.0])
    x = usual.estimate_
    for i, changes in ((0, 3.0), (1, 1.0)):
        expected = -np.expm1(-x[i]) - np.expm1(-2.0 * x[i]) - 2.0 * np.expm1(-0.5 * x[i])
        assert expected == pytest.approx(changes, rel=1e-12)
    assert x[2] == pytest.approx(math.log(2.0) / 0.5)
    assert np.all(np.isfinite(usual.stderr_))


UPDATES = {
    "page must lie in": ([2], [1.0], [True], {}),
    "page must be 1 whole": ([0.5], [1.0], [True], {}),
    "elapsed must be finite and >= 0": ([0], [-1.0], [True], {}),
    "elapsed must have shape": ([0], [[1.0]], [True], {}),
    "elapsed must be 0 or in .* got 1e.200 at 0": ([0], [1e200], [True], {}),
    "elapsed must be 0 or in .* got 1e-200 at 1": ([0, 0], [1.0, 1e-200], [True, False], {}),
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
    assert estimator.crawls_ == 0
    np.testing.assert_array_equal(estimator.estimate_, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChangeRateMLE(0), "num_pages"),
        (lambda: ChangeRateMLE(2, smoothing=-1.0), "smoothing"),
        (lambda: ChangeRateMLE(2, smoothing=1e-200), "smoothing must be 0 or in"),
        (lambda: MomentMatching(2, smoothing=1e200), "smoothing must be 0 or in"),
        (lambda: ChangeRateMLE(2, window=0.0), "window"),
        (lambda: ChangeRateMLE(2, last=0), "last"),
        (lambda: ChangeRateMLE(2, initial=[1.0, -1.0]), "initial"),
        (lambda: ChangeRateMLE(2, low=2.0, high=1.0), "high"),
        (lambda: CompleteObservations(2, smoothing=(1.0, 2.0, 3.0)), "smoothing"),
        (lambda: CompleteObservations(2, window=-1.0), "window"),
        (lambda: LawOfLargeNumbers(2, extra=-1.0), "extra"),
        (lambda: LawOfLargeNumbers(2, crawl_rate=[1.0, np.nan]), "crawl_rate"),
        (lambda: EmpiricalBayesRate(2, groups=[0, 2]), "groups"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_signals_and_ages():
    estimator = CompleteObservations(2, window=3.0)
    estimator.update([0], time=2.0)
    with pytest.raises(ValueError, match="time must be finite and >= 2"):
        estimator.update([0], time=1.0)
    with pytest.raises(ValueError, match="page must lie in"):
        estimator.update([2], time=3.0)
    with pytest.raises(ValueError, match="signal_time must not be after 3"):
        estimator.update([0], time=3.0, signal_time=[4.0])
    np.testing.assert_array_equal(estimator.counts_, [1, 0])
    modified = LastModifiedEstimator(2)
    with pytest.raises(ValueError, match="age must not exceed elapsed"):
        modified.update([0], [1.0], [True], age=[2.0])
    with pytest.raises(ValueError, match="age must have shape"):
        modified.update([0], [1.0], [True], age=[2.0, 1.0])
    modified.update([0], [1.0], [False], age=[np.nan])
    assert modified.estimate_[0] == 0.0


def test_the_standard_error_of_the_improved_estimate_is_its_spread():
    rng = np.random.default_rng(0)
    m, change_rate, interval, crawls = 4000, 0.5, 1.5, 40
    estimator = ImprovedEstimator(m)
    for _ in range(crawls):
        changed = rng.random(m) < -math.expm1(-change_rate * interval)
        estimator.update(np.arange(m), np.full(m, interval), changed)
    assert estimator.estimate_.std() == pytest.approx(estimator.stderr_.mean(), rel=0.04)
