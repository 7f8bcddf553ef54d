"""The likelihood of a source of signals against a slow twin, simulation and differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies.estimators.signal_likelihood import fit_pages
from policies.estimators.signal_quality import crawls_of_pages
from policies.estimators.source_intervals import BOX, effective_signals, intervals, maximise
from policies.estimators.source_likelihood import (
    BATCH,
    DELAY,
    FALSE,
    MEAN,
    SLOPE,
    Crawls,
    evaluate,
    last_intervals,
    source_of,
)
from tests.naive.signal_audit import crawl_log, fresh_probability

THETA = np.array([math.log(0.3), math.log(0.6), math.log(0.4), -0.9, 0.3, 0.5, 0.7, -0.4])


def random_source(rng, pages=12, crawls=8, prompt=False, batch=0.0):
    """Return random intervals with signals, the intervals, and pages and times of the signals."""
    elapsed = rng.exponential(1.0, (pages, crawls))
    start = np.cumsum(elapsed, axis=1) - elapsed
    ends = (start + elapsed)[:, -1]
    page = np.repeat(np.arange(pages), crawls)
    known = Crawls(page, start.ravel(), elapsed.ravel(), rng.random(page.size) < 0.6)
    of = np.repeat(np.arange(pages), rng.poisson(1.2 * crawls, pages))
    time = rng.random(of.size) * ends[of]
    last, inside = last_intervals(known, of, time)
    batched = rng.random(of.size) < batch
    certain = batched | prompt
    source = source_of(known, np.zeros(page.size), (time, last, inside), batched, certain)
    return source, known, of, time


def test_evidence_is_that_of_signals_until_three_mean_intervals_later():
    source, known, of, time = random_source(np.random.default_rng(1))
    theta = np.where(np.arange(8) == SLOPE, 0.0, THETA)
    evidence, unit = evaluate(source, theta).evidence, known.elapsed.mean()
    for k in range(known.page.size):
        page, end = known.page[k], known.start[k] + known.elapsed[k]
        last = (known.start + known.elapsed)[known.page == page].max()
        until = min(end + 3.0 * unit, last)
        own = (of == page) & (time > known.start[k]) & (time <= until)
        ages = (time[own] - known.start[k]) / unit
        given = (
            0.0,
            source.rate[page],
            0.7,
            0.4,
            known.elapsed[k] / unit,
            ages,
            (until - end) / unit,
        )
        assert math.exp(-evidence[k]) == pytest.approx(fresh_probability(*given), rel=1e-9)


def test_probability_by_simulation():
    """The share of unchanged intervals of length 1, by signals in them and in the next one."""
    rng = np.random.default_rng(2)
    alpha, gamma, precision, delay, n = 0.3, 0.9, 0.6, 0.5, 400_000
    rate = alpha + precision * gamma
    recall, false = [precision * gamma / rate], [[(1.0 - precision) * gamma]]
    moments = [np.arange(0.0, n + 0.5)]
    _, _, _, changed, _, time, _, _ = crawl_log(rng, [rate], recall, false, [delay], moments)
    inside = (time > 0.0) & (time < n)
    interval, age = time[inside].astype(np.int64), (time - np.floor(time))[inside]
    number, last = np.bincount(interval, minlength=n), np.zeros(n)
    np.maximum.at(last, interval, age)
    after, later = np.append(number[1:], -1), np.append(last[1:], 0.0)
    for chosen, ages in (
        ((number == 0) & (after == 0), []),
        ((number == 1) & (last > 0.45) & (last < 0.55) & (after == 0), [0.5]),
        ((number == 0) & (after == 1) & (later < 0.1), [1.05]),
        ((number == 0) & (after == 1) & (later > 0.9), [1.95]),
        ((number == 1) & (last > 0.9) & (after == 1) & (later < 0.2), [0.95, 1.1]),
    ):
        expected = fresh_probability(alpha, gamma, precision, delay, 1.0, ages, 1.0)
        error = math.sqrt(expected * (1.0 - expected) / chosen.sum())
        assert np.mean(~changed[chosen]) == pytest.approx(expected, abs=4.0 * error)


@pytest.mark.parametrize("batch", [0.0, 0.3])
def test_derivatives(batch):
    source, *_ = random_source(np.random.default_rng(3), batch=batch)
    slope = evaluate(source, THETA).slope
    for k, step in enumerate(np.eye(8) * 1e-5):
        above, below = (evaluate(source, THETA + x).pages.sum() for x in (step, -step))
        assert slope[k] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-4)


def test_without_delay_it_is_the_likelihood_of_signal_quality():
    source, *_ = random_source(np.random.default_rng(4), 1, 60, prompt=True)
    counts = np.bincount(source.row, minlength=60)
    crawls = crawls_of_pages(source.elapsed, counts, source.changed, None, None)
    none = np.zeros((1, 2))
    fit = fit_pages(crawls, none, none, none)
    alpha, b = fit.theta[0]
    assert b > 0.0
    theta = np.zeros(8)
    theta[[FALSE, DELAY, MEAN.start]] = -b, BOX[DELAY, 0], math.log(alpha)
    found = evaluate(source, theta).pages
    assert found == pytest.approx(fit.log_likelihood, rel=1e-3)  # H of the last interval
    assert evaluate(source, theta + np.eye(8)[MEAN.start]).pages < found


def test_the_maximum_is_one_from_other_starts():
    rng = np.random.default_rng(5)
    moments = rng.random((60, 1)) + np.arange(31.0)
    false = [np.full(60, 0.05)]
    page, start, elapsed, changed, of, time, *_ = crawl_log(
        rng, rng.gamma(2.0, 0.1, 60), (0.7,), false, (0.3,), moments
    )
    known = Crawls(page, start, elapsed, changed)
    last, inside = last_intervals(known, of, time)
    seen, none = last >= 0, np.zeros(np.count_nonzero(last >= 0), bool)
    signals = time[seen], last[seen], inside[seen]
    source = source_of(known, np.zeros(page.size), signals, none, none)
    theta, best = maximise(source, {BATCH: 0.0})
    for begin in (THETA, np.zeros(8), np.array([-3.0, 0.0, 0.5, -2.0, 0.0, 0.0, 0.0, 1.0])):
        assert maximise(source, {BATCH: 0.0}, begin)[1] == pytest.approx(best, abs=0.02)
    assert maximise(source, {BATCH: 0.0, FALSE: 0.0}, theta)[1] < best - 5.0


def test_effective_signals_are_evidence_over_that_of_one():
    source, *_ = random_source(np.random.default_rng(6))
    theta = np.where(np.arange(8) == SLOPE, 0.0, THETA)
    effective, less = effective_signals(source, theta)
    np.testing.assert_allclose(effective, evaluate(source, theta).evidence / -math.log(0.3))
    assert not less.any()
    batched, *_ = random_source(np.random.default_rng(6), batch=0.5)
    _, less = effective_signals(batched, theta)
    number = np.bincount(batched.row, batched.batch, batched.page.size)
    np.testing.assert_allclose(less, number * (1.0 - 0.4 / 0.7))


def test_every_log_has_an_answer():
    """However small, one-sided or contradictory: ends around the estimate, in their ranges."""
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        source, *_ = random_source(rng, int(rng.integers(1, 5)), int(rng.integers(3, 6)))
        changed = rng.random(source.page.size) < rng.choice([0.02, 0.5, 0.98])
        numbers, _ = intervals(source._replace(changed=changed), timed=True)
        assert np.isfinite(numbers).all()
        assert np.all(
            (numbers[:, 1] <= numbers[:, 0] + 1e-12) & (numbers[:, 0] <= numbers[:, 2] + 1e-12)
        )
        assert np.all((numbers >= 0.0) & (numbers <= [[1.0], [1.0], [3.0 + 1e-9]]))
