"""GREEDY-NCIS under delays: evidence and value against simulated pages, and its freshness."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs import instances
from crawl_envs.compiled.compiling import ready
from crawl_envs.evaluation import evaluate, simulate
from crawl_envs.types import Delay, Instance
from policies import values
from policies.ncis.delayed import (
    GreedyNCISDelayed,
    delayed_ncis_table,
    delayed_ncis_value,
    delayed_ncis_weight,
)
from policies.values.ranking import weighted_signals

PAGE = {"importance": 0.8, "change_rate": 0.6, "recall": 0.7, "false_signal_rate": 0.3}
PAGES = {
    "noisy": PAGE,
    "weak": {**PAGE, "recall": 0.02},
    "no signals": {**PAGE, "recall": 0.0, "false_signal_rate": 0.0},
    "pure noise": {**PAGE, "recall": 0.0},
    "no false signals": {**PAGE, "false_signal_rate": 0.0},
    "all changes signalled": {**PAGE, "recall": 1.0},
    "nearly all": {**PAGE, "recall": 1.0 - 2.0**-52},
    "perfect": {**PAGE, "recall": 1.0, "false_signal_rate": 0.0},
}
DELAYS = (Delay("constant", 0.7), Delay("exponential", 0.9), Delay("poisson", 1.5, 0.5))
Z = 4.0
"""Standard errors that a mean may be off; the seeds are fixed."""


def table_of(page, delay):
    return delayed_ncis_table(
        **{name: np.array([value]) for name, value in page.items()}, delay=delay
    )


def value_of(page, delay, elapsed, evidence):
    return ready(delayed_ncis_value)(table_of(page, delay), 0, elapsed, evidence)


def signal_weight_of(page, delay, age):
    return ready(delayed_ncis_weight)(table_of(page, delay), 0, age, 0)


def signal_weight_each(table, ages):
    """Return the weights of signals of these ages, (n,)."""
    zeros = np.zeros(ages.size, np.int64)
    return ready(weighted_signals)(ready(delayed_ncis_weight), table, zeros, ages, zeros)


def naive_late(delay, age):
    """P(D > age)."""
    if delay.kind == "constant":
        return float(age < delay.mean)
    if delay.kind == "exponential":
        return float(stats.expon.sf(age, scale=delay.mean))
    return float(stats.poisson.sf(math.floor(age / delay.quantum), delay.mean / delay.quantum))


def naive_evidence(page, delay, elapsed, ages):
    """The evidence y, in plain Python, with the time under way by quadrature."""
    signalled = page["recall"] * page["change_rate"]
    rate = signalled + page["false_signal_rate"]
    steps = [*np.arange(0.0, elapsed, 0.25), elapsed]
    under_way = sum(
        integrate.quad(lambda x: naive_late(delay, x), start, stop, points=[0.7])[0]
        for start, stop in pairwise(steps)
    )
    y = (page["change_rate"] - signalled) * elapsed + signalled * under_way
    for age in ages:
        y += math.log(rate / (page["false_signal_rate"] + signalled * naive_late(delay, age)))
    return y


def naive_length(page, delay, y):
    """The mean time psi until the evidence of a page reaches y, for a constant delay."""
    blind = page["change_rate"] * delay.mean
    if y <= blind:
        return y / page["change_rate"]
    signalled = page["recall"] * page["change_rate"]
    rate = signalled + page["false_signal_rate"]
    if page["recall"] == 1.0:
        each = math.log(rate / (rate - signalled)) if rate > signalled else math.inf
        return (
            delay.mean + math.ceil((y - blind) / each) / rate
            if each < math.inf
            else (delay.mean + 1.0 / rate)
        )
    known = {name: page[name] for name in ("change_rate", "recall", "false_signal_rate")}
    iota = (y - blind) / ((1.0 - page["recall"]) * page["change_rate"])
    return delay.mean + float(values.cycle_length(iota, **known))


# Evidence and value, by other arithmetic


@pytest.mark.parametrize("delay", DELAYS, ids=lambda delay: delay.kind)
@pytest.mark.parametrize("name", PAGES)
def test_what_a_signal_counts(name, delay):
    page = PAGES[name]
    for age in (0.0, 0.2, 0.69, 0.7, 1.1, 2.5, 9.0):
        with mp.workdps(50):
            signalled = mp.mpf(page["recall"]) * page["change_rate"]
            false, late = mp.mpf(page["false_signal_rate"]), mp.mpf(naive_late(delay, age))
            if signalled + false == 0:
                continue
            left = false + signalled * late
            expected = mp.log((signalled + false) / left) if left > 0 else mp.inf
        assert signal_weight_of(page, delay, age) == pytest.approx(
            float(expected), rel=1e-9, abs=1e-300
        )
    assert signal_weight_of(page, delay, math.inf) == signal_weight_of(page, Delay(), 0.0)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("mean", [0.02, 0.7, 5.0])
def test_value_is_the_integral_of_the_cycle_length(name, mean):
    page, delay = PAGES[name], Delay("constant", mean)
    blind = page["change_rate"] * mean
    for y in (0.003, 0.2, 0.44, 0.9, 2.3, 6.0):
        each = signal_weight_of(page, delay, math.inf)
        inner = [blind, *(blind + k * each for k in range(1, 40) if 0.0 < each < math.inf)]
        knots = [0.0, *(knot for knot in inner if knot < y), y]
        total = sum(
            integrate.quad(
                lambda z: math.exp(-z) * naive_length(page, delay, z), start, stop, epsabs=1e-13
            )[0]
            for start, stop in pairwise(knots)
        )
        expected = page["importance"] * total
        assert value_of(page, delay, 0.0, y) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("delay", DELAYS, ids=lambda delay: delay.kind)
@pytest.mark.parametrize("name", PAGES)
def test_time_adds_evidence(name, delay):
    page = PAGES[name]
    for elapsed in (0.0, 0.3, 0.8, 2.2):
        y = naive_evidence(page, delay, elapsed, ())
        aged = value_of(page, delay, elapsed, 0.4)
        assert aged == pytest.approx(value_of(page, delay, 0.0, y + 0.4), rel=1e-7)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("signals", [0, 1, 3])
def test_a_delay_that_vanishes_leaves_greedy_ncis(name, signals):
    page = PAGES[name]
    for kind in ("constant", "exponential", "poisson"):
        delay = Delay(kind, 1e-11, 1e-12)
        each = signal_weight_of(page, delay, 0.5)
        for elapsed in (0.01, 0.7, 3.0, 20.0):
            value = value_of(page, delay, elapsed, each * signals if signals else 0.0)
            undelayed = values.greedy_ncis_observed(elapsed, signals, **page)
            assert value == pytest.approx(float(undelayed), rel=1e-9)


@pytest.mark.parametrize("name", PAGES)
def test_a_delay_beyond_every_cycle_leaves_greedy(name):
    page = PAGES[name]
    for elapsed in (0.01, 0.7, 3.0, 20.0):
        value = value_of(page, Delay("constant", 1e6), elapsed, 0.0)
        known = {"importance": page["importance"], "change_rate": page["change_rate"]}
        assert value == pytest.approx(float(values.greedy(elapsed, **known)), rel=1e-12)
    assert signal_weight_of(page, Delay("exponential", 1e12), 5.0) == pytest.approx(0.0, abs=1e-11)


@given(
    st.floats(1e-6, 10.0),
    st.one_of(st.just(1.0), st.just(0.0), st.floats(0.0, 1.0)),
    st.one_of(st.just(0.0), st.floats(1e-9, 10.0)),
    st.sampled_from(("constant", "exponential", "poisson")),
    st.floats(1e-3, 50.0),
    st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 50.0)),
    st.tuples(st.floats(0.0, 30.0), st.floats(0.0, 30.0)),
)
def test_values_do_not_fall(change_rate, recall, false_rate, kind, mean, times, evidences):
    page = {
        "importance": 1.0,
        "change_rate": change_rate,
        "recall": recall,
        "false_signal_rate": false_rate,
    }
    delay = Delay(kind, mean, 1.0)
    (early, late), (little, much) = sorted(times), sorted(evidences)
    table = table_of(page, delay)
    value = ready(delayed_ncis_value)
    first = value(table, 0, early, little)
    assert 0.0 <= first <= value(table, 0, late, little) * (1.0 + 1e-12)
    assert first <= value(table, 0, early, much) * (1.0 + 1e-12)
    assert value(table, 0, late, math.inf) == pytest.approx(1.0 / change_rate, rel=1e-12)
    assert (
        0.0
        <= signal_weight_of(page, delay, early)
        <= signal_weight_of(page, delay, late) * (1.0 + 1e-11)
    )


def test_pages_that_never_change_have_no_value():
    for name in PAGES:
        page = {**PAGES[name], "change_rate": 0.0}
        assert value_of(page, DELAYS[0], 7.0, 0.0) == 0.0
        assert signal_weight_of(page, DELAYS[0], 7.0) == 0.0


# Simulated pages


def drawn_delays(rng, delay, count):
    if delay.kind == "constant":
        return np.full(count, delay.mean)
    if delay.kind == "exponential":
        return rng.exponential(delay.mean, count)
    return delay.quantum * rng.poisson(delay.mean / delay.quantum, count)


def history(rng, page, delay, end):
    """Ages of the signals, and time of the first change, of a page crawled at time 0."""
    start = -12.0 * delay.mean - 5.0
    span = end - start
    signalled = page["recall"] * page["change_rate"]
    changes = rng.uniform(start, end, rng.poisson(span * signalled))
    arrivals = changes + drawn_delays(rng, delay, changes.size)
    unsignalled = rng.uniform(0.0, end, rng.poisson(end * (page["change_rate"] - signalled)))
    false = rng.uniform(0.0, end, rng.poisson(end * page["false_signal_rate"]))
    ages = np.sort(np.concatenate([arrivals, false]))
    after = np.concatenate([changes[changes > 0.0], unsignalled, [math.inf]])
    return ages[(ages > 0.0) & (ages < end)], after.min()


@pytest.mark.parametrize("delay", DELAYS, ids=lambda delay: delay.kind)
@pytest.mark.parametrize("elapsed", [0.5, 1.8])
def test_a_page_is_fresh_as_often_as_the_evidence_says(delay, elapsed):
    rng = np.random.default_rng(5)
    count, table = 20_000, table_of(PAGE, delay)
    seen = [history(rng, PAGE, delay, elapsed) for _ in range(count)]
    fresh = np.array([change > elapsed for _, change in seen])
    base = naive_evidence(PAGE, delay, elapsed, ())
    number, every = np.array([ages.size for ages, _ in seen]), np.concatenate([s[0] for s in seen])
    each = np.bincount(np.repeat(np.arange(count), number), signal_weight_each(table, every), count)
    predicted = np.exp(-base - each)
    late = np.array([bool(np.any(ages > 0.5 * elapsed)) for ages, _ in seen])
    for group in (number >= 0, number == 0, number == 1, number >= 2, late, ~late & (number > 0)):
        error = (fresh - predicted)[group]
        assert abs(error.mean()) <= Z * error.std(ddof=1) / math.sqrt(group.sum())
    with_all = np.exp(-base - number * signal_weight_of(PAGE, delay, math.inf))
    wrong = (fresh - with_all)[number > 0]
    assert wrong.mean() > 2 * Z * wrong.std(ddof=1) / math.sqrt(wrong.size)


def cycle(rng, page, delay, table, threshold):
    """Length of a cycle that ends when the evidence reaches the threshold, and the fresh time."""
    signalled = page["recall"] * page["change_rate"]
    unsignalled = page["change_rate"] - signalled

    def aged(x):
        if delay.kind == "constant":
            return unsignalled * x + signalled * min(x, delay.mean)
        return unsignalled * x + signalled * delay.mean * (1.0 - math.exp(-x / delay.mean))

    end = threshold / unsignalled
    ages, change = history(rng, page, delay, end)
    evidence, until = 0.0, 0.0
    counts = [*signal_weight_each(table, ages), math.inf]
    for age, each in zip([*ages, end], counts, strict=True):
        if aged(age) + evidence >= threshold:
            until = optimize.brentq(lambda x: aged(x) + evidence - threshold, until, age)  # noqa: B023
            break
        until = age
        evidence += each
        if aged(age) + evidence >= threshold:
            break
    return until, min(until, change)


@pytest.mark.parametrize(
    ("delay", "approximation"), [(Delay("constant", 0.7), 0.0), (Delay("exponential", 0.9), 0.05)]
)
@pytest.mark.parametrize("threshold", [0.3, 0.6, 1.2])
def test_value_of_a_threshold_is_what_its_cycles_give(delay, approximation, threshold):
    """V = mu (w - exp(-y) psi) with w and psi as measured; exact for a constant delay."""
    rng, table = np.random.default_rng(11), table_of(PAGE, delay)
    cycles = np.array([cycle(rng, PAGE, delay, table, threshold) for _ in range(8000)])
    measured = PAGE["importance"] * (cycles[:, 1] - math.exp(-threshold) * cycles[:, 0])
    error = measured.std(ddof=1) / math.sqrt(len(measured))
    value = value_of(PAGE, delay, 0.0, threshold)
    assert abs(measured.mean() - value) <= Z * error + approximation * value
    undelayed = values.greedy_ncis(threshold / (0.3 * 0.6), **PAGE)
    if threshold < 1.0:  # later, the delay matters less than the noise here
        assert abs(measured.mean() - float(undelayed)) > Z * error


# The policy


def noisy(num_pages, seed, delay):
    given = instances.make("noisy", num_pages=num_pages, bandwidth=50.0, seed=seed)
    return Instance(
        given.importance,
        given.change_rate,
        given.recall,
        given.false_signal_rate,
        bandwidth=50.0,
        delay=delay,
    )


FEATURES = ("elapsed", "signals", "importance", "change_rate", "recall", "false_signal_rate")


@pytest.mark.parametrize("delay", [Delay(), Delay("constant", 0.0), Delay("poisson", 0.0)])
def test_without_delay_it_is_greedy_ncis(delay):
    instance = noisy(40, 3, delay)
    late = simulate(instance, GreedyNCISDelayed(), 20.0, 7)
    undelayed = simulate(instance, policies.GreedyNCIS(), 20.0, 7)
    np.testing.assert_array_equal(late.crawls, undelayed.crawls)


def mean_difference(first, second, settings, seeds):
    """Mean over seeds of the difference in freshness, and its standard error."""
    freshness = {"first": [], "second": []}
    for row in evaluate("CrawlNCIS-v0", {"first": first, "second": second}, seeds, **settings):
        if row.metric == "freshness":
            freshness[row.policy].append(row.value)
    difference = np.subtract(freshness["first"], freshness["second"])
    return difference.mean(), difference.std(ddof=1) / math.sqrt(difference.size)


@pytest.mark.parametrize("window", [0.0, 0.05, 0.5, 2.0, 6.0])
def test_it_beats_every_window_where_delays_are_long(window):
    settings = {
        "instance": "noisy",
        "num_pages": 100,
        "bandwidth": 100.0,
        "horizon": 60.0,
        "delay": {"kind": "exponential", "mean": 2.0},
    }
    mean, error = mean_difference(
        partial(policies.make, "GreedyNCISDelayed"),
        lambda env: policies.make("GreedyNCIS", env, delay_window=window),
        settings,
        range(4),
    )
    assert mean > 0.01
    assert mean > 3.0 * error


@pytest.mark.parametrize("mean", [0.5, 2.0, 6.0])
def test_it_is_not_below_greedy(mean):
    settings = {
        "instance": "noisy",
        "num_pages": 100,
        "bandwidth": 100.0,
        "horizon": 60.0,
        "delay": {"kind": "poisson", "mean": mean},
    }
    gained, error = mean_difference(
        *(partial(policies.make, name) for name in ("GreedyNCISDelayed", "Greedy")),
        settings,
        range(4),
    )
    assert gained > -3.0 * error
    assert mean > 1.0 or gained > 0.02


def test_a_given_delay_is_believed():
    instance = noisy(30, 2, Delay("constant", 1.0))
    own = simulate(instance, GreedyNCISDelayed(), 10.0, 1)
    given = GreedyNCISDelayed(delay=Delay("constant", 1.0))
    other = GreedyNCISDelayed(delay=Delay("constant", 3.0))
    np.testing.assert_array_equal(own.crawls, simulate(instance, given, 10.0, 1).crawls)
    assert np.any(own.crawls != simulate(instance, other, 10.0, 1).crawls)


def test_several_sources_are_taken_for_one():
    rng = np.random.default_rng(0)
    mu, delta, recall, false = rng.random(20), rng.random(20), rng.random((2, 20)) / 2.0, 0.2
    given = {"bandwidth": 20.0, "delay": Delay("exponential", 0.5)}
    two = GreedyNCISDelayed().compile(Instance(mu, delta, recall, false, **given).problem(), 0, rng)
    one = GreedyNCISDelayed().compile(
        Instance(mu, delta, recall.sum(0), 2 * false, **given).problem(), 0, rng
    )
    np.testing.assert_allclose(two.parameters, one.parameters, rtol=1e-12)
    assert one.signal_weight(one.parameters, 3, 0.7, 0) == two.signal_weight(
        one.parameters, 3, 0.7, 1
    )


# Bad input


def test_bad_delay():
    with pytest.raises(ValueError, match=r"delay must be a Delay or None, got 2\.0"):
        GreedyNCISDelayed(delay=2.0)


def test_without_the_log_of_an_environment_ages_are_not_known():
    for delay in (None, Delay("constant", 1.0)):
        with pytest.raises(ValueError, match="needs an environment"):
            policies.make("GreedyNCISDelayed", features=FEATURES, delay=delay)
    undelayed = policies.make("GreedyNCISDelayed", features=FEATURES, delay=Delay())
    rows = np.ones((3, len(FEATURES))) * [[1.0], [2.0], [1.5]] * 0.3
    page, _ = undelayed.predict(rows)
    assert page == policies.make("GreedyNCIS", features=FEATURES).predict(rows)[0]
