"""Change processes and revealed parameters of misspecified instances against closed forms.

Bounds are four standard errors, or a probability of 1e-4; seeds fix the draws.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crawl_envs import Instance, instances
from crawl_envs.instances.misspecified import bursty as bursts
from crawl_envs.instances.misspecified import deploys
from crawl_envs.instances.misspecified import periodic as rhythms
from crawl_envs.instances.misspecified import shifting as shifts
from crawl_envs.instances.misspecified.corrupted import corrupted_quality
from crawl_envs.instances.misspecified.instance import Misspecified
from crawl_envs.instances.misspecified.late import Late
from crawl_envs.instances.misspecified.occurrences import travel_times
from crawl_envs.instances.synthetic import COLD_SPREAD
from crawl_envs.types.delay import Delay

CHANGE, SIGNAL, BOTH = 1, 2, 3
LEAST = 1e-4


def drawn(name, num_pages=30, seed=0, **more):
    return instances.make(name, num_pages=num_pages, bandwidth=10.0, seed=seed, **more)


def counts(instance, horizon, tapes, kinds, seed=0, until=None):
    """Count events of some kinds before a time, (tapes, m)."""
    rng = np.random.default_rng(seed)
    result = np.zeros((tapes, instance.num_pages))
    for row in result:
        tape = instance.draw_tape(rng, horizon)
        chosen = np.isin(tape.code & 63, kinds) & (tape.time <= (until or horizon))
        row += np.bincount(tape.code[chosen] // 64, minlength=instance.num_pages)
    return result


def assert_means(samples, expected):
    """Assert that samples (n, k) of independent columns have the expected means, (k,)."""
    error = samples.std(0, ddof=1) / math.sqrt(len(samples))
    z = (samples.mean(0) - expected) / error
    assert np.abs(z).max() < 4.0
    assert abs(z.mean()) < 4.0 / math.sqrt(z.size)


def assert_law(sample, law):
    assert stats.kstest(sample, law).pvalue > LEAST


# Revealed parameters against long-run means


@pytest.mark.parametrize("name", ["late", "bursty", "periodic", "deploys", "corrupted"])
@pytest.mark.parametrize("until", [1.0, 8.0])
def test_revealed_change_rates_are_true_from_the_start(name, until):
    revealed = drawn(name)
    changes = counts(revealed, 8.0, 1500, (CHANGE, BOTH), until=until)
    if name == "deploys":  # pages of a host are not independent
        for host in range(3):
            mine = revealed.group == host
            rate = revealed.change_rate[mine].mean()
            assert_means(changes[:, mine].mean(1)[:, None], rate * until)
        z = (changes.mean(0) - revealed.change_rate * until) / (changes.std(0) / math.sqrt(1500))
        assert np.abs(z).max() < 4.0
    else:
        assert_means(changes, revealed.change_rate * until)


@pytest.mark.parametrize("name", ["bursty", "periodic", "deploys"])
def test_signals_have_the_revealed_quality(name):
    revealed = drawn(name)
    rates = {BOTH: revealed.recall * revealed.change_rate, SIGNAL: revealed.false_signal_rate}
    for kind, rate in rates.items():
        seen = counts(revealed, 8.0, 1500, (kind,))[:, rate > 0.01]
        error = seen.std(0, ddof=1) / math.sqrt(1500)
        assert np.abs((seen.mean(0) - 8.0 * rate[rate > 0.01]) / error).max() < 4.0
        assert seen.shape[1] > 15


# bursty


@pytest.fixture(scope="module")
def spells():
    return bursts.spells(np.random.default_rng(1), 4000, 100.0)


def test_bursts_take_their_share_of_the_time(spells):
    start, end, page, burst = spells
    share = np.bincount(page, (end - start) * burst, minlength=4000) / 100.0
    assert_means(share[:, None], bursts.BURST_SHARE)
    for time in (0.0, 50.0, 100.0):
        now = burst[(start <= time) & ((time < end) | (end == 100.0))]
        if time < 100.0:
            assert now.size == 4000
        else:
            now = burst[end == 100.0]
        assert abs(now.mean() - 0.1) < 4.0 * math.sqrt(0.1 * 0.9 / 4000)


@pytest.mark.parametrize("wanted", [True, False])
def test_spells_cover_the_time_and_are_exponential(spells, wanted):
    start, end, page, burst = spells
    new = np.append(True, page[1:] != page[:-1])
    assert np.all(start[new] == 0.0)
    assert np.array_equal(start[~new], end[:-1][~new[1:]])
    assert np.all(burst[~new] != burst[:-1][~new[1:]])
    assert np.all(end[np.append(new[1:], True)] == 100.0)
    number = np.arange(page.size) - np.flatnonzero(new)[page]
    # of spells 1 to 4, which begin early, so that nearly none is cut off at the horizon
    early = (number >= 1) & (number <= 4) & (burst == wanted)
    mean = bursts.BURST_LENGTH * (1.0 if wanted else 9.0)
    assert early.sum() > 7000
    assert_law((end - start)[early] / mean, "expon")


def test_counts_of_bursty_changes_are_spread_as_derived():
    horizon, rate = 6.0, 0.7
    revealed = Instance(0.0, np.full(20_000, rate), bandwidth=1.0)
    seen = counts(Misspecified(revealed, bursts.Bursty()), horizon, 1, (CHANGE,))[0]
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
    time, row = rhythms.renewals(
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


def test_renewals_of_irregular_gaps_start_in_their_steady_state():
    """Then the mean count in any time is rate times time, from the start on."""
    for shape in (1.0, 2.0):
        rate, pages = 0.5, 40_000
        time, row = rhythms.renewals(
            np.random.default_rng(3), np.full(pages, rate), np.full(pages, shape), 2.0
        )
        for end in (0.5, 2.0):
            counts = np.bincount(row[time <= end], minlength=pages)
            assert_means(counts[:, None], rate * end)


def test_half_of_the_pages_have_hours_and_keep_them():
    revealed = drawn("periodic", 101)
    law = revealed.law
    hourly = law.shape == 0.0
    assert hourly.sum() == 50
    assert np.all((law.shape[~hourly] >= 20.0) & (law.shape[~hourly] <= 50.0))
    rng = np.random.default_rng(0)
    hours = []
    for _ in range(100):
        tape = revealed.draw_tape(rng, 9.5)
        changed = (tape.code & 1 == 1) & hourly[tape.code // 64]
        hours.append(np.mod(tape.time[changed] - law.opening[tape.code[changed] // 64], 1.0))
    hours_of_day = np.concatenate(hours)
    hours_of_day[hours_of_day > 1.0 - 1e-9] = 0.0
    assert hours_of_day.max() <= 0.2 + 1e-9
    assert_law(hours_of_day / 0.2, "uniform")


def test_shapes_and_hours_are_uniform():
    law = drawn("periodic", 4000).law
    assert_law(law.opening, "uniform")
    assert_law((law.shape[law.shape > 0.0] - 20.0) / 30.0, "uniform")


def test_counts_in_windows_are_poisson():
    pages, rate = 20_000, 0.6
    time, row = rhythms.in_windows(
        np.random.default_rng(4), np.full(pages, rate), np.random.default_rng(5).random(pages), 3.0
    )
    assert time.size == row.size
    seen = np.bincount(np.bincount(row, minlength=pages), minlength=10)
    chance = np.append(stats.poisson.pmf(np.arange(9), 1.8), stats.poisson.sf(8, 1.8))
    folded = np.append(seen[:9], seen[9:].sum())
    assert stats.chisquare(folded, chance * pages).pvalue > LEAST


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
    rate = revealed.law.deploy_rate[0]
    assert_means(np.array([[each.size] for each in times]), rate * 100.0)
    assert_law(np.concatenate([np.diff(each[:11]) for each in times]) * rate, "expon")
    expected = revealed.law.own_rate.sum() * 100.0 * 200
    assert abs(unsignalled - expected) < 4.0 * math.sqrt(expected)


def test_a_deploy_changes_nearly_none_or_nearly_all(deployed):
    changed = deployed[2]
    seen = np.bincount(changed.sum(1), minlength=11)
    chance = stats.betabinom(10, *deploys.SHARE_BETA).pmf(np.arange(11))
    assert stats.chisquare(seen, chance * len(changed)).pvalue > LEAST
    share = stats.beta(*deploys.SHARE_BETA)
    assert share.cdf(0.1) + share.sf(0.9) == pytest.approx(0.76, abs=0.005)


def test_no_page_of_a_host_is_special(deployed):
    changed = deployed[2]
    # a page against the mean of its host, so that the share of the deploy drops out
    assert_means(changed - changed.mean(1, keepdims=True), np.zeros(10))


def test_hosts_deploy_apart():
    revealed = drawn("deploys", 40)
    tape = revealed.draw_tape(np.random.default_rng(0), 50.0)
    signal = tape.code & 63 >= SIGNAL
    when, deploy = np.unique(tape.time[signal], return_inverse=True)
    host = revealed.group[tape.code[signal] // 64]
    for number in range(when.size):
        assert len(set(host[deploy == number])) == 1


def test_revealed_deploys_describe_single_pages():
    revealed = drawn("deploys", 100)
    noisy = drawn("noisy", 100)
    often = revealed.law.deploy_rate[revealed.group]
    np.testing.assert_allclose(revealed.change_rate, 0.5 * noisy.change_rate + 0.25 * often)
    np.testing.assert_allclose(revealed.precision, 0.25)
    np.testing.assert_allclose(revealed.unsignalled_rate, 0.5 * noisy.change_rate)
    np.testing.assert_allclose(revealed.signal_rate, often)
    assert np.all((revealed.law.deploy_rate >= 0.4) & (revealed.law.deploy_rate <= 1.6))


# shifting


@pytest.mark.parametrize("until", [0.7, 4.0, 20.0])
def test_rates_are_true_at_first_and_forgotten(until):
    revealed = drawn("shifting")
    _, first, alike = np.unique(revealed.law.habit, return_index=True, return_inverse=True)
    kept = 1.0 - math.exp(-0.2 * until)
    expected = revealed.change_rate * kept / 0.2 + 0.5 * (until - kept / 0.2)
    seen = counts(revealed, 20.0, 1500, (CHANGE, BOTH), until=until)
    assert_means(seen[:, first], expected[first])
    assert np.array_equal(revealed.change_rate, revealed.change_rate[first][alike])


def test_habits_shift_at_poisson_times_to_uniform_rates():
    first_rate = np.linspace(0.0, 1.0, 2000)
    start, end, habit, rate = shifts.spans(np.random.default_rng(6), first_rate, 50.0)
    new = np.append(True, habit[1:] != habit[:-1])
    assert np.array_equal(habit[new], np.arange(2000))
    assert np.array_equal(rate[new], first_rate)
    assert np.all(start[new] == 0.0)
    assert np.array_equal(start[~new], end[:-1][~new[1:]])
    assert np.all(end[np.append(new[1:], True)] == 50.0)
    assert_means((np.bincount(habit) - 1.0)[:, None], 10.0)
    assert_law(rate[~new], "uniform")
    # the first three spans begin early, so that nearly none is cut off at the horizon
    number = np.arange(habit.size) - np.flatnonzero(new)[habit]
    assert_law((end - start)[number < 3] * 0.2, "expon")


def test_half_of_the_hosts_share_a_habit():
    revealed = drawn("shifting", 100)
    habits = [set(revealed.law.habit[revealed.group == host]) for host in range(10)]
    assert sorted(map(len, habits)) == [1] * 5 + [10] * 5
    assert len(set.union(*habits)) == 55
    rates = [set(revealed.change_rate[revealed.group == host]) for host in range(10)]
    assert [len(each) for each in rates] == [len(each) for each in habits]


def test_pages_of_one_habit_change_together_and_others_do_not():
    revealed = drawn("shifting", 20)
    seen = counts(revealed, 20.0, 1500, (CHANGE, BOTH))
    correlation = np.corrcoef(seen.T)
    alike = revealed.law.habit[:, None] == revealed.law.habit
    off = ~np.eye(20, dtype=bool)
    assert correlation[alike & off].min() > 0.15
    assert np.abs(correlation[~alike]).max() < 4.0 / math.sqrt(1500)


# late


@pytest.mark.parametrize("mean", [0.05, 0.5])
def test_signals_travel_exponential_times(mean):
    pages = Instance(0.0, np.full(20_000, 0.02), 1.0, bandwidth=1.0)
    world = Misspecified(pages, Late(mean))
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


def test_false_signals_travel_too():
    pages = Instance(0.0, 0.0, 0.0, np.full(4000, 2.0), bandwidth=1.0)
    seen = counts(Misspecified(pages, Late(1.5)), 4.0, 1, (SIGNAL,))[0]
    # those that are sent at s arrive by 4 with the chance 1 - exp(-(4 - s) / 1.5)
    assert_means(seen[:, None], 2.0 * (4.0 - 1.5 * (1.0 - math.exp(-4.0 / 1.5))))


def test_mean_delays_are_spread_widely_and_hidden():
    lanes = [drawn("late", 2, seed) for seed in range(500)]
    means = np.array([lane.law.delay_mean for lane in lanes])
    assert_law(np.log(means / 0.05) / math.log(40.0), "uniform")
    assert all(lane.delay == lane.problem().delay == Delay() for lane in lanes)


@pytest.mark.parametrize(
    ("delay", "values", "chances"),
    [
        (Delay("none"), [0.0], [1.0]),
        (Delay("constant", 0.3), [0.3], [1.0]),
        (Delay("poisson", 0.02, 0.01), 0.01 * np.arange(8), stats.poisson.pmf(np.arange(8), 2.0)),
    ],
)
def test_revealed_delays_are_drawn_as_revealed(delay, values, chances):
    result = travel_times(np.random.default_rng(0), delay, 5000)
    for value, chance in zip(values, chances, strict=True):
        share = np.isclose(result, value, rtol=1e-12, atol=0.0).mean()
        assert abs(share - chance) <= 4.0 * math.sqrt(chance * (1.0 - chance) / 5000)


# corrupted


def test_revealed_signal_quality_is_half_noise():
    truth, revealed = drawn("noisy", 2000), drawn("corrupted", 2000)
    whole = drawn("corrupted", 2000, corruption=1.0)
    for name in ("precision", "recall"):
        right, wrong, noise = (getattr(each, name) for each in (truth, revealed, whole))
        np.testing.assert_allclose(wrong, 0.5 * right + 0.5 * noise, rtol=1e-9)
        assert_law(noise, "uniform")
    assert np.array_equal(revealed.change_rate, truth.change_rate)


def test_signals_follow_the_true_quality():
    truth, revealed = drawn("noisy"), drawn("corrupted")
    for kind, rate in (
        (BOTH, lambda each: each.recall * each.change_rate),
        (SIGNAL, lambda each: each.false_signal_rate),
    ):
        seen = counts(revealed, 10.0, 1000, (kind,)).sum(0)
        error = np.sqrt(np.maximum(rate(truth) * 10_000.0, 1.0))
        assert np.abs((seen - rate(truth) * 10_000.0) / error).max() < 4.0
        assert np.abs((seen - rate(revealed) * 10_000.0) / error).max() > 40.0


def test_no_corruption_tells_the_truth():
    truth, revealed = drawn("noisy"), drawn("corrupted", corruption=0.0)
    np.testing.assert_allclose(revealed.recall, truth.recall, rtol=1e-12)
    np.testing.assert_allclose(revealed.false_signal_rate, truth.false_signal_rate, rtol=1e-6)


def test_the_noise_is_the_same_for_every_corruption():
    quarter, half = (drawn("corrupted", corruption=share) for share in (0.25, 0.5))
    truth = drawn("noisy")
    np.testing.assert_allclose(half.recall - truth.recall, 2.0 * (quarter.recall - truth.recall))


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
    low, high = np.quantile(rates, [0.025, 0.975])
    assert 700.0 < high / low < 1400.0
