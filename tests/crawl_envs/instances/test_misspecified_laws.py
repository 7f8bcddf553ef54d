"""Change processes and revealed parameters of misspecified instances against closed forms.

Bounds are four standard errors, or a probability of 1e-4; seeds fix the draws.
"""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats

from crawl_envs import Instance, instances
from crawl_envs.instances.misspecified import change_laws, corrupted_quality, signal_laws
from crawl_envs.instances.misspecified.occurrences import Misspecified
from crawl_envs.instances.synthetic import COLD_SPREAD
from crawl_envs.types import Delay

CHANGE, SIGNAL, BOTH = 1, 2, 3
LEAST = 1e-4


def drawn(name, num_pages=30, seed=0, **more):
    return instances.make(name, num_pages=num_pages, bandwidth=10.0, seed=seed, **more)


def counts(instance, horizon, tapes):
    """Return a function that counts events of some kinds before a time, (tapes, m)."""
    rng, shape = np.random.default_rng(0), (tapes, instance.num_pages)
    every = [instance.draw_tape(rng, horizon) for _ in range(tapes)]
    code, time = (np.concatenate([getattr(t, name) for t in every]) for name in ("code", "time"))
    place = np.repeat(np.arange(tapes) * shape[1], [t.code.size for t in every]) + code // 64

    def count(kinds, until=horizon):
        chosen = np.isin(code & 63, kinds) & (time <= until)
        return np.bincount(place[chosen], minlength=math.prod(shape)).reshape(shape)

    return count


@cache
def drawn_counts(name, horizon=8.0):
    return counts(drawn(name), horizon, 1500)


def assert_means(samples, expected):
    """Assert that samples (n, k) of independent columns have the expected means, (k,)."""
    error = samples.std(0, ddof=1) / math.sqrt(len(samples))
    z = (samples.mean(0) - expected) / error
    assert np.abs(z).max() < 4.0
    assert abs(z.mean()) < 4.0 / math.sqrt(z.size)


def assert_law(sample, law):
    assert stats.kstest(sample, law).pvalue > LEAST


def numbers_of_pieces(start, end, row, horizon):
    """Assert that the pieces of every row cover (0, horizon]; return their numbers in the row."""
    first = np.append(True, row[1:] != row[:-1])
    assert np.array_equal(row[first], np.arange(row.max() + 1))
    assert np.array_equal(start, np.where(first, 0.0, np.roll(end, 1)))
    assert np.all(end[np.roll(first, -1)] == horizon)
    return np.arange(row.size) - np.flatnonzero(first)[row]


# Revealed parameters against long-run means


@pytest.mark.parametrize("name", ["late", "bursty", "periodic", "deploys", "corrupted"])
@pytest.mark.parametrize("until", [1.0, 8.0])
def test_revealed_change_rates_are_true_from_the_start(name, until):
    revealed = drawn(name)
    changes = drawn_counts(name)((CHANGE, BOTH), until)
    if name == "deploys":  # pages of a host are not independent
        for host in range(3):
            mine = revealed.group == host
            rate = revealed.change_rate[mine].mean()
            assert_means(changes[:, mine].mean(1)[:, None], rate * until)
        z = (changes.mean(0) - revealed.change_rate * until) / (changes.std(0) / math.sqrt(1500))
        assert np.abs(z).max() < 4.0
    else:
        assert_means(changes, revealed.change_rate * until)


@pytest.mark.parametrize("name", ["bursty", "periodic", "deploys", "corrupted"])
def test_signals_have_the_revealed_quality_or_the_true_one(name):
    revealed = drawn(name)
    true = drawn("noisy") if name == "corrupted" else revealed
    rates = {BOTH: true.recall * true.change_rate, SIGNAL: true.false_signal_rate}
    for kind, rate in rates.items():
        seen = drawn_counts(name)((kind,))[:, rate > 0.01]
        error = seen.std(0, ddof=1) / math.sqrt(1500)
        assert np.abs((seen.mean(0) - 8.0 * rate[rate > 0.01]) / error).max() < 4.0
        assert seen.shape[1] > 15


# bursty


@pytest.fixture(scope="module")
def spells():
    return change_laws.spells(np.random.default_rng(1), 4000, 100.0)


def test_bursts_take_their_share_of_the_time(spells):
    start, end, page, burst = spells
    share = np.bincount(page, (end - start) * burst, minlength=4000) / 100.0
    assert_means(share[:, None], change_laws.BURST_SHARE)
    for now in (burst[start == 0.0], burst[end == 100.0]):
        assert now.size == 4000
        assert abs(now.mean() - 0.1) < 4.0 * math.sqrt(0.1 * 0.9 / 4000)


@pytest.mark.parametrize("wanted", [True, False])
def test_spells_cover_the_time_and_are_exponential(spells, wanted):
    start, end, page, burst = spells
    number = numbers_of_pieces(start, end, page, 100.0)
    assert np.all((burst[1:] != burst[:-1])[number[1:] > 0])
    # of spells 1 to 4, which begin early, so that nearly none is cut off at the horizon
    early = (number >= 1) & (number <= 4) & (burst == wanted)
    mean = change_laws.BURST_LENGTH * (1.0 if wanted else 9.0)
    assert early.sum() > 7000
    assert_law((end - start)[early] / mean, "expon")


def test_counts_of_bursty_changes_are_spread_as_derived():
    horizon, rate = 6.0, 0.7
    revealed = Instance(0.0, np.full(20_000, rate), bandwidth=1.0)
    bursty = Misspecified(revealed, partial(change_laws.bursty, revealed))
    seen = counts(bursty, horizon, 1)((CHANGE,))[0]
    variance = 0.1 * 0.9 * ((9.1 - 0.1) * rate) ** 2
    forget = 1.0 / (1.0 * 0.9)
    expected = rate * horizon + 2.0 * variance * (
        horizon / forget - (1.0 - math.exp(-forget * horizon)) / forget**2
    )
    assert_means(((seen - rate * horizon) ** 2)[:, None], expected)
    assert expected > 5.0 * rate * horizon


# periodic


def test_gaps_are_gamma_and_phases_those_of_the_steady_state():
    shape, rate, pages = 30.0, 2.0, 3000
    time, row = change_laws.renewals(
        np.random.default_rng(2), np.full(pages, rate), np.full(pages, shape), 30.0
    )
    assert np.all(np.diff(row) >= 0)
    first = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    assert first.size == pages
    law = stats.gamma(shape, scale=1.0 / (shape * rate))
    longer = stats.gamma(shape + 1.0, scale=1.0 / (shape * rate))
    # the forward recurrence time has the density rate * (1 - G)
    assert_law(time[first], lambda t: rate * t * law.sf(t) + longer.cdf(t))
    gaps = np.concatenate([np.diff(time[start : start + 20]) for start in first])
    assert_law(gaps, law.cdf)


def test_half_of_the_pages_have_hours_and_keep_them():
    revealed = drawn("periodic", 101)
    shape, opening = revealed.law.keywords.values()
    hourly = shape == 0.0
    assert hourly.sum() == 50
    assert_law((shape[~hourly] - 20.0) / 30.0, "uniform")
    assert_law(opening, "uniform")
    rng = np.random.default_rng(0)
    hours = []
    for _ in range(100):
        tape = revealed.draw_tape(rng, 9.5)
        changed = (tape.code & 1 == 1) & hourly[tape.code // 64]
        hours.append(np.mod(tape.time[changed] - opening[tape.code[changed] // 64], 1.0))
    hours_of_day = np.concatenate(hours)
    hours_of_day[hours_of_day > 1.0 - 1e-9] = 0.0
    assert hours_of_day.max() <= 0.2 + 1e-9
    assert_law(hours_of_day / 0.2, "uniform")


# deploys


@pytest.fixture(scope="module")
def deployed():
    """Signals of many tapes of one host of ten pages: by deploy and page, whether it changed."""
    revealed = instances.make("deploys", num_pages=10, bandwidth=10.0, seed=3)
    rng = np.random.default_rng(0)
    times, changed, unsignalled = [], [], 0
    for _ in range(200):
        tape = revealed.draw_tape(rng, 100.0)
        kind, page = tape.code & 63, tape.code // 64
        signal = kind >= SIGNAL
        when, deploy = np.unique(tape.time[signal], return_inverse=True)
        table = np.full((when.size, 10), -1)
        table[deploy, page[signal]] = kind[signal] == BOTH
        times.append(when)
        changed.append(table)
        unsignalled += (kind == CHANGE).sum()
    return revealed, times, np.concatenate(changed), unsignalled


def test_a_deploy_signals_every_page_of_its_host_once(deployed):
    revealed, times, changed, unsignalled = deployed
    assert changed.min() >= 0
    rate = revealed.law.keywords["deploy_rate"][0]
    assert_means(np.array([[each.size] for each in times]), rate * 100.0)
    assert_law(np.concatenate([np.diff(each[:11]) for each in times]) * rate, "expon")
    expected = revealed.law.keywords["own_rate"].sum() * 100.0 * 200
    assert abs(unsignalled - expected) < 4.0 * math.sqrt(expected)


def test_a_deploy_changes_nearly_none_or_nearly_all(deployed):
    changed = deployed[2]
    seen = np.bincount(changed.sum(1), minlength=11)
    chance = stats.betabinom(10, *signal_laws.SHARE_BETA).pmf(np.arange(11))
    assert stats.chisquare(seen, chance * len(changed)).pvalue > LEAST
    share = stats.beta(*signal_laws.SHARE_BETA)
    assert share.cdf(0.1) + share.sf(0.9) == pytest.approx(0.76, abs=0.005)


def test_revealed_deploys_describe_single_pages():
    revealed = drawn("deploys", 100)
    noisy = drawn("noisy", 100)
    deploy_rate = revealed.law.keywords["deploy_rate"]
    often = deploy_rate[revealed.group]
    np.testing.assert_allclose(revealed.change_rate, 0.5 * noisy.change_rate + 0.25 * often)
    np.testing.assert_allclose(revealed.precision, 0.25)
    np.testing.assert_allclose(revealed.unsignalled_rate, 0.5 * noisy.change_rate)
    np.testing.assert_allclose(revealed.signal_rate, often)
    assert np.all((deploy_rate >= 0.4) & (deploy_rate <= 1.6))


# shifting


@pytest.mark.parametrize("until", [0.7, 4.0, 20.0])
def test_rates_are_true_at_first_and_forgotten(until):
    revealed = drawn("shifting")
    _, first, alike = np.unique(
        revealed.law.keywords["habit"], return_index=True, return_inverse=True
    )
    kept = 1.0 - math.exp(-0.2 * until)
    expected = revealed.change_rate * kept / 0.2 + 0.5 * (until - kept / 0.2)
    seen = drawn_counts("shifting", 20.0)((CHANGE, BOTH), until)
    assert_means(seen[:, first], expected[first])
    assert np.array_equal(revealed.change_rate, revealed.change_rate[first][alike])


def test_habits_shift_at_poisson_times_to_uniform_rates():
    first_rate = np.linspace(0.0, 1.0, 2000)
    start, end, habit, rate = change_laws.spans(np.random.default_rng(6), first_rate, 50.0)
    number = numbers_of_pieces(start, end, habit, 50.0)
    assert np.array_equal(rate[number == 0], first_rate)
    assert_means((np.bincount(habit) - 1.0)[:, None], 10.0)
    assert_law(rate[number > 0], "uniform")
    # the first three spans begin early, so that nearly none is cut off at the horizon
    assert_law((end - start)[number < 3] * 0.2, "expon")


def test_half_of_the_hosts_share_a_habit():
    revealed = drawn("shifting", 100)
    habits = [set(revealed.law.keywords["habit"][revealed.group == host]) for host in range(10)]
    assert sorted(map(len, habits)) == [1] * 5 + [10] * 5
    assert len(set.union(*habits)) == 55
    rates = [set(revealed.change_rate[revealed.group == host]) for host in range(10)]
    assert [len(each) for each in rates] == [len(each) for each in habits]


# late


@pytest.mark.parametrize("mean", [0.05, 0.5])
def test_signals_travel_exponential_times(mean):
    pages = Instance(0.0, np.full(20_000, 0.02), 1.0, bandwidth=1.0)
    delay = Delay("exponential", mean)
    world = Misspecified(pages, partial(signal_laws.poisson, pages), true_delay=delay)
    tape = world.draw_tape(np.random.default_rng(0), 30.0)
    kind, page = tape.code & 63, tape.code // 64
    changes, signals = (np.bincount(page[kind == k], minlength=20_000) for k in (CHANGE, SIGNAL))
    assert BOTH not in kind
    sent, arrived = np.zeros(20_000), np.zeros(20_000)
    sent[page[kind == CHANGE]], arrived[page[kind == SIGNAL]] = (
        tape.time[kind == k] for k in (CHANGE, SIGNAL)
    )
    once = (changes == 1) & (sent < 20.0)
    assert once.sum() > 4000
    assert np.array_equal(signals[once], changes[once])
    assert_law((arrived - sent)[once] / mean, "expon")


def test_mean_delays_are_spread_widely_and_hidden():
    lanes = [drawn("late", 2, seed) for seed in range(500)]
    means = np.array([lane.true_delay.mean for lane in lanes])
    assert_law(np.log(means / 0.05) / math.log(40.0), "uniform")
    assert all(lane.delay == lane.problem().delay == Delay() for lane in lanes)


# corrupted


def test_revealed_signal_quality_is_half_noise():
    truth, revealed = drawn("noisy", 2000), drawn("corrupted", 2000)
    whole = drawn("corrupted", 2000, corruption=1.0)
    for name in ("precision", "recall"):
        right, wrong, noise = (getattr(each, name) for each in (truth, revealed, whole))
        np.testing.assert_allclose(wrong, 0.5 * right + 0.5 * noise, rtol=1e-9)
        assert_law(noise, "uniform")
    assert np.array_equal(revealed.change_rate, truth.change_rate)


def test_pages_without_signals_and_no_share_stay():
    recall, false = corrupted_quality(
        np.array([1.0, 1.0]), np.zeros(2), np.array([0.0, 0.3]), 0.0, np.full((2, 2), 0.5)
    )
    assert recall.tolist() == [0.0, 0.0]
    assert false.tolist() == [0.0, 0.3]


# cold


def test_cold_rates_are_log_normal_over_three_decades():
    rates = drawn("cold", 20_000).change_rate
    spread = math.log(1000.0) / (2.0 * stats.norm.ppf(0.975))
    assert pytest.approx(spread, rel=1e-12) == COLD_SPREAD
    middle = math.log(0.5) - 0.5 * spread**2
    assert_law((np.log(rates) - middle) / spread, "norm")
    assert_means(rates[:, None], 0.5)
