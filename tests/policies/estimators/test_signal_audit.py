"""Audits of sources of signals against slow twins, simulated logs and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from policies.estimators import audit_signals, signal_audit, source_likelihood
from policies.estimators.gamma_prior import gamma_nodes
from policies.estimators.signal_likelihood import Crawls, fit_pages, log_likelihood_at
from policies.estimators.signal_quality import crawls_of_pages
from policies.estimators.source_likelihood import DELAY, FALSE, SIZE, SLOPE
from tests.naive.signal_audit import crawl_log, fresh_probability, page_likelihood


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


def source_of(rng, pages=3, crawls=4):
    """A few random intervals with signals, and the ages of the signals of each."""
    n = pages * crawls
    elapsed = rng.exponential(1.0, n)
    counts = rng.poisson(1.2, n)
    ages = [np.sort(rng.uniform(0.0, tau, k)) for tau, k in zip(elapsed, counts, strict=True)]
    source = source_likelihood.Source(
        offsets=np.arange(pages + 1) * crawls,
        elapsed=elapsed,
        silent=np.zeros(n),
        changed=rng.random(n) < 0.6,
        signal_offsets=np.append(0, np.cumsum(counts)),
        age=np.concatenate(ages),
        timed=True,
        other_rate=rng.uniform(0.5, 2.0, n),
        covariates=np.column_stack([np.ones(pages), rng.normal(size=(pages, 2))]),
        time=elapsed.reshape(pages, crawls).sum(axis=1),
        signals=counts.reshape(pages, crawls).sum(axis=1).astype(float),
    )
    return source, ages


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


@pytest.mark.parametrize("delay", [0.0, 1e-3, 0.4, 30.0])
def test_evidence(delay):
    source, ages = source_of(np.random.default_rng(1))
    evidence = source_likelihood.evidence_of(source, np.full(3, 0.8), delay)
    for k in range(12):
        given = source.other_rate[k], 0.8, delay, source.elapsed[k], ages[k]
        assert math.exp(-evidence[k]) == pytest.approx(fresh_probability(0.0, *given), rel=1e-12)


def test_probability_by_simulation():
    """Of intervals of one length, grouped by their signals, the share without a change."""
    rng = np.random.default_rng(2)
    alpha, gamma, precision, delay, tau, n = 0.3, 0.9, 0.6, 0.5, 1.0, 400_000
    rate = alpha + precision * gamma
    log = crawl_log(
        rng,
        [rate],
        [precision * gamma / rate],
        [[(1.0 - precision) * gamma]],
        [delay],
        [np.arange(0.0, n * tau + 0.5, tau)],
    )
    _, _, _, changed, _, time, _, _ = log
    interval = np.minimum(time.astype(np.int64), n - 1)
    inside = (time > 0.0) & (time <= n)
    interval, age = interval[inside], (time - np.floor(time))[inside]
    number = np.bincount(interval, minlength=n)
    last = np.zeros(n)
    np.maximum.at(last, interval, age)
    for chosen, ages in (
        (number == 0, []),
        ((number == 1) & (last < 0.1), [0.05]),
        ((number == 1) & (last > 0.45) & (last < 0.55), [0.5]),
        ((number == 1) & (last > 0.9), [0.95]),
    ):
        expected = fresh_probability(alpha, gamma, precision, delay, tau, ages)
        error = math.sqrt(expected * (1.0 - expected) / chosen.sum())
        assert np.mean(~changed[chosen]) == pytest.approx(expected, abs=4.0 * error)


@pytest.mark.parametrize(("shape", "error"), [(0.7, 0.06), (3.0, 2e-3), (40.0, 1e-5)])
def test_posteriors_by_integration(shape, error):
    source, ages = source_of(np.random.default_rng(3), pages=5)
    theta = np.array([math.asin(0.5), math.sqrt(0.4), math.log(shape), -0.2, 0.3, -0.4, 0.7])
    precision = 1.0 / (1.0 + np.exp(-0.7 * source.covariates[:, 2]) / 3.0)  # odds of 1 to 3 at 0
    mean, variance = np.full(5, 0.8), np.full(5, 0.64 / max(shape, 1.0))
    for _ in range(5):
        nodes = gamma_nodes(mean**2 / variance, mean)
        found, mean, variance = source_likelihood.posterior(source, nodes, theta)
    means = np.exp(source.covariates @ theta[3:6])
    for page in range(5):
        rows = slice(4 * page, 4 * page + 4)
        exact, first, second = (
            page_likelihood(
                *(
                    shape,
                    means[page],
                    source.other_rate[rows],
                    precision[page],
                    0.4,
                    source.elapsed[rows],
                ),
                *(source.changed[rows], ages[rows], power),
            )
            for power in range(3)
        )
        assert found[page] == pytest.approx(math.log(exact), abs=error)
        assert mean[page] == pytest.approx(first / exact, rel=3.0 * error)
        expected = second / exact - (first / exact) ** 2
        assert variance[page] == pytest.approx(expected, rel=10.0 * error)


def test_without_delay_it_is_the_likelihood_of_signal_quality():
    source, _ = source_of(np.random.default_rng(4), pages=1, crawls=60)
    crawls = crawls_of_pages(
        source.elapsed, np.diff(source.signal_offsets), source.changed, None, None
    )
    none = np.zeros((1, 2))
    fit = fit_pages(crawls, none, none, none)
    alpha, b = fit.theta[0]
    evidence = source_likelihood.evidence_of(source, np.array([-math.expm1(-b)]), 0.0)
    design = np.column_stack([source.elapsed, evidence])
    own = Crawls(design, source.changed, source.offsets)
    total = log_likelihood_at(own, np.array([[alpha, 2.0 * alpha]]))
    assert b > 0.0
    assert total[0, 0] == pytest.approx(fit.log_likelihood[0], rel=1e-10)
    assert total[0, 1] < total[0, 0]


def test_many_improbable_changes():
    design = np.column_stack([np.full(400, 1e-3), np.zeros(400)])
    crawls = Crawls(design, np.ones(400, bool), np.array([0, 400]))
    found = log_likelihood_at(crawls, np.array([[1.0]]))
    assert found[0, 0] == pytest.approx(400.0 * math.log(-math.expm1(-1e-3)), rel=1e-12)


def source_from(log):
    """The source of a log with one."""
    crawls = signal_audit._checked_intervals(*log[:4])
    row = signal_audit._intervals_of(crawls, log[4], log[5])
    order = np.argsort(row, kind="stable")[np.count_nonzero(row < 0) :]
    age = log[5][order] - crawls.start[row[order]]
    return signal_audit._source(crawls, row[order], age, np.empty((0, 2)), True)


def test_derivatives():
    """Slopes and curvature at the maximum by other differences, of the corners of squares."""
    source = source_from(log_of(np.random.default_rng(13), 200, 10))
    theta, _, _ = source_likelihood.climb(source)
    nodes = gamma_nodes(np.full(200, 4.0), np.full(200, 0.5))
    for _ in range(6):
        _, mean, variance = source_likelihood.posterior(source, nodes, theta)
        nodes = gamma_nodes(mean**2 / variance, mean)

    def value(x):
        prior = source_likelihood.PRIOR @ x**2 / 2.0
        return source_likelihood.posterior(source, nodes, x)[0].sum() - prior

    columns, inverse = source_likelihood.derivatives(source, nodes, theta)
    wide, expected = np.eye(SIZE) * 0.02, np.empty((SIZE, SIZE))
    for i in range(SIZE):
        slope = (value(theta + wide[i]) - value(theta - wide[i])) / 0.04
        found = columns[:, i].sum() - source_likelihood.PRIOR[i] * theta[i]
        assert found == pytest.approx(slope, abs=0.1 / math.sqrt(inverse[i, i]))
        for j in range(SIZE):
            corners = [
                a * b * value(theta + a * wide[i] + b * wide[j]) for a in (1, -1) for b in (1, -1)
            ]
            expected[i, j] = -sum(corners) / 0.04**2
    found, known = np.linalg.inv(inverse), [FALSE, DELAY, SLOPE]  # shapes are not, from few crawls
    scale = np.sqrt(np.diag(expected)[known])
    difference = (found - expected)[np.ix_(known, known)] / scale / scale[:, None]
    np.testing.assert_allclose(difference, 0.0, atol=0.1)


@pytest.mark.parametrize(("false", "number"), [(0, 54), (1, 30), (7, 40), (40, 80)])
def test_intervals_are_at_least_binomial(false, number):
    share = np.repeat(1.0 - false / number, 3)
    signal_audit._widen(share, number)
    exact = binomtest(number - false, number).proportion_ci()
    np.testing.assert_allclose(share[1:], exact, rtol=1e-9)


def test_bootstrap_agrees_with_scores_of_pages():
    """The standard errors of 200 resamples are those of sums of independent scores."""
    log = log_of(np.random.default_rng(13), 200, 10)
    theta, columns, inverse = source_likelihood.climb(source_from(log))
    numbers = signal_audit._intervals(theta, columns, inverse, 0)
    total, small = columns.sum(axis=0), 1e-4
    angles = signal_audit._angles(theta, total[None], np.zeros((1, SIZE)))
    moved = signal_audit._angles(  # the weight of one page is larger by ``small``
        theta, total + small * columns, small * columns[:, :SIZE] @ inverse
    )
    error = np.sqrt((((moved - angles) / small) ** 2).sum(axis=0) * 200.0 / 193.0)
    precision = 1.0 - math.sin(theta[0]) ** 2 * total[8] / total[7]
    assert numbers[0, 0] == pytest.approx(precision, abs=0.01)  # a step further
    found = np.arccos(np.sqrt(numbers[:2]))
    assert found[:, 1] - found[:, 0] == pytest.approx(1.96 * error[:2], rel=0.25)
    assert np.sqrt(numbers[2, 2]) - theta[1] == pytest.approx(1.96 * error[2], rel=0.25)
    assert audit_signals(*log).precision[0] == pytest.approx(numbers[0, 0], rel=1e-12)


def test_intervals_of_few_pages_are_wider_by_the_seven_fitted_parameters():
    """Twelve pages: the variance of weighted scores is 12 / 13 of their sum, times 12 / 5."""
    log = log_of(np.random.default_rng(2), 12, 60)
    theta, columns, inverse = source_likelihood.climb(source_from(log))
    numbers = signal_audit._intervals(theta, columns, inverse, 0)
    scores = (columns[:, :7] @ inverse)[:, DELAY]
    error = np.sqrt((scores**2).sum() * 12.0 / 13.0 * 12.0 / 5.0)
    assert math.sqrt(numbers[2, 2]) - theta[DELAY] == pytest.approx(1.96 * error, rel=0.1)


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
    assert audit.converged[0]
    assert audit.precision[0] == pytest.approx(1.0 - false / (true + false), abs=1e-3)
    low, high = audit.precision_interval[0]
    assert high > 0.999
    worst = binomtest(true, true + false).proportion_ci().low
    assert worst - 0.03 < low <= worst + 1e-3
    assert audit.recall[0] > 0.99
    assert audit.recall_interval[0, 1] > 0.999


def test_without_a_maximum_nothing_is_told(monkeypatch):
    monkeypatch.setattr(source_likelihood, "PASSES", 2)
    audit = audit_signals(*log_of(np.random.default_rng(14), 30, 10))
    assert audit.verdict == ("unknown",)
    assert audit.reason == ("the maximum of the likelihood was not found",)
    assert not audit.converged[0]
    assert np.isnan([audit.precision[0], audit.recall[0], audit.delay[0]]).all()
    assert np.isnan(audit.precision_interval).all()


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


def test_sources_that_signal_the_same_changes():
    """Each is audited alone: that another source signals the same changes does not matter."""
    rng = np.random.default_rng(7)
    log = log_of(rng, 600, 20, (0.7, 0.7), (0.8, 0.8), (0.1, 0.5))
    audit = audit_signals(*log)
    for low, high in audit.precision_interval:
        assert low <= 0.8 <= high
    for low, high in audit.recall_interval:
        assert low <= 0.7 <= high
    assert audit.delay[0] < 0.2 < 0.3 < audit.delay[1]
    *intervals, of, time, source, _ = log
    own = source == 1
    alone = audit_signals(*intervals, of[own], time[own], source[own] - 1, 1)
    assert alone.precision[0] == audit.precision[1]


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


def test_effective_signals_have_the_evidence_of_the_model():
    """By the naive formula; as many as signals where nothing is late or lost."""
    log = log_of(np.random.default_rng(13), 200, 10)
    audit, source = audit_signals(*log), source_from(log)
    theta, _, _ = source_likelihood.climb(source)
    for k in (0, 7, 1234):
        i = k // 10
        odds = math.tan(theta[FALSE]) ** 2 * math.exp(-theta[SLOPE] * source.covariates[i, 2])
        ages = source.age[source.signal_offsets[k] : source.signal_offsets[k + 1]]
        precision = 1.0 / (1.0 + odds)
        fresh = fresh_probability(
            0.0, source.other_rate[k], precision, theta[DELAY] ** 2, source.elapsed[k], ages
        )
        expected = math.log(fresh) / math.log1p(-precision)
        assert audit.effective_signals[0, k] == pytest.approx(expected, rel=1e-9)
    prompt = audit_signals(*log[:7], 1, timed=[False])
    np.testing.assert_array_equal(prompt.effective_signals[0], np.diff(source.signal_offsets))
    mixed = np.random.default_rng(1).permutation(2000)
    again = audit_signals(*(column[mixed] for column in log[:4]), *log[4:])
    np.testing.assert_allclose(again.effective_signals, audit.effective_signals[:, mixed])
