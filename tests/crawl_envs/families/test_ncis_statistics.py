"""Drawn events have the rates of the instance, within four standard errors of the mean.

Seeds are fixed, so that these tests either always pass or always fail.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crawl_envs import Instance
from crawl_envs.types import Delay
from tests.crawl_envs.sim.test_tape import tape_of
from tests.worlds import vector_of

ERRORS = 4.0
INSTANCE = Instance(
    [1.0, 0.2, 3.0, 0.0, 1.5],
    [0.5, 2.0, 0.0, 1.0, 4.0],
    [0.3, 1.0, 0.5, 0.0, 0.9],
    [0.0, 0.4, 0.2, 0.6, 1.0],
    bandwidth=1.0,
)
THREE_SOURCES = Instance(
    [1.0, 0.2, 0.0],
    [0.5, 2.0, 4.0],
    [[0.3, 0.0, 0.1], [0.2, 0.5, 0.2], [0.5, 0.25, 0.6]],
    [[0.0, 0.4, 0.2], [0.6, 0.0, 1.0], [1.0, 2.0, 0.1]],
    bandwidth=1.0,
)


def rates_of(one):
    """The rates of requests, silent changes, and by source of false and of true signals, (m, k)."""
    recall, false = np.atleast_2d(one.recall), np.atleast_2d(one.false_signal_rate)
    rates = [one.importance, (1.0 - recall.sum(0)) * one.change_rate]
    for share, lies in zip(recall, false, strict=True):
        rates += [lies, share * one.change_rate]
    return np.stack(rates, axis=1)


def near(samples, expected):
    """The mean of independent samples is the expected one, within ERRORS standard errors."""
    samples = np.asarray(samples, float)
    error = samples.std(ddof=1) / math.sqrt(samples.size)
    return abs(samples.mean() - expected) < ERRORS * error


@pytest.mark.parametrize(("one", "seed"), [(INSTANCE, 1), (THREE_SOURCES, 3)])
def test_events_have_their_rates(one, seed):
    """Counts are Poisson: their variance is their mean."""
    expected = rates_of(one) * 4000.0
    counts = np.zeros(expected.shape)
    for _, page, kind in tape_of(one, seed, until=4000.0, block=10_000):
        counts[page, kind] += 1
    assert np.all(np.abs(counts - expected) <= ERRORS * np.sqrt(expected))
    assert np.all((counts > 0) == (expected > 0))


def test_counts_in_disjoint_windows_are_poisson():
    """Their variance is their mean, and neighbours are uncorrelated."""
    times = [time for time, *_ in tape_of(INSTANCE, 2, until=4000.0, block=10_000)]
    counts = np.histogram(times, bins=4000, range=(0.0, 4000.0))[0]
    mean = rates_of(INSTANCE).sum()
    assert near(counts, mean)
    assert near((counts - mean) ** 2, mean)
    assert near((counts[:-1] - mean) * (counts[1:] - mean), 0.0)


def test_a_page_is_fresh_with_the_probability_that_its_signals_say():
    """P(fresh | n, t) = exp(-alpha t) prod (nu_s / gamma_s)^n_s, counts n of each source apart.

    Pages are alike and never crawled. Given n, freshness is Bernoulli, so that every cell of counts
    has a standard error of its own; the cells together also pass a chi-squared test.
    """
    change, recall, false, time = 0.8, (0.25, 0.5), (0.05, 0.6), 1.5
    pages, lanes = 100, 600
    rows = [np.full((2, pages), np.array(values)[:, None]) for values in (recall, false)]
    instance = Instance(np.full(pages, 1e-9), change, *rows, bandwidth=1.0 / time)
    env = vector_of(instance, lanes, horizon=2.0 * time)
    env.reset(seed=0)
    counts = np.concatenate([env.tracker(lane).signals for lane in range(lanes)], axis=1)
    fresh = np.concatenate([env.lanes.fresh(lane) for lane in range(lanes)])
    alpha = (1.0 - sum(recall)) * change
    precise, noisy = (nu / (lam * change + nu) for lam, nu in zip(recall, false, strict=True))
    squares, cells = 0.0, 0
    for first in range(3):
        for second in range(5):
            cell = (counts[0] == first) & (counts[1] == second)
            expected = math.exp(-alpha * time) * precise**first * noisy**second
            size = np.count_nonzero(cell)
            error = math.sqrt(expected * (1.0 - expected) / size)
            if size * expected > 10.0:
                score = (fresh[cell].mean() - expected) / error
                assert abs(score) < ERRORS
                squares, cells = squares + score**2, cells + 1
    assert cells >= 10
    assert squares < stats.chi2.ppf(0.999, cells)


def test_one_source_of_all_signals_is_what_is_pooled():
    """The pooled instance has the same rates of silent and signalled changes and false signals."""
    pooled = THREE_SOURCES.pooled()
    assert pooled.num_sources == 1
    assert np.allclose(pooled.unsignalled_rate, THREE_SOURCES.unsignalled_rate, atol=1e-15)
    assert np.allclose(pooled.signal_rate, THREE_SOURCES.signal_rate.sum(0), rtol=1e-15)
    problem = THREE_SOURCES.problem().pooled()
    assert np.array_equal(problem.recall, pooled.recall)
    assert np.array_equal(problem.false_signal_rate, pooled.false_signal_rate)
    assert problem.num_sources == 1
    hidden = THREE_SOURCES.problem("importance")
    assert (hidden.num_sources, hidden.recall) == (3, None)
    assert hidden.pooled().num_sources == 1
    assert INSTANCE.pooled() is INSTANCE


@pytest.mark.parametrize(("rate", "change_rate"), [(2.0, 0.5), (1.0, 1.0), (0.25, 2.0)])
def test_a_page_crawled_at_a_steady_rate(rate, change_rate):
    """Freshness and accuracy are (xi / Delta) (1 - exp(-Delta / xi)), page by page.

    Pages are crawled in turn, each every 1 / xi; what is counted begins with the second turn.
    """
    importance = np.array([1.0, 3.0, 0.5])
    rates = change_rate * np.array([1.0, 0.5, 2.0])
    instance = Instance(importance, rates, bandwidth=3.0 * rate)
    share = rate / rates * -np.expm1(-rates / rate)
    expected = float(importance @ share / importance.sum())
    lanes, turns = 600, 8
    env = vector_of(instance, lanes, horizon=(turns + 1) / rate)
    env.reset(seed=0)
    rewards, hits, requests = (np.zeros(lanes) for _ in range(3))
    for slot in range(3 * (turns + 1)):
        _, reward, _, _, info = env.step(np.full(lanes, slot % 3))
        if slot >= 3:
            rewards += reward
            hits += info["hits"]
            requests += info["requests"]
    assert near(rewards / (3 * turns), expected)
    assert requests.sum() > 1000
    assert near(hits - expected * requests, 0.0)


DELAYS = {
    "constant": Delay("constant", 0.8),
    "exponential": Delay("exponential", 0.8),
    "poisson": Delay("poisson", 0.8, 0.1),
    "poisson in time": Delay("poisson", 2.0, 1.0),
}


@pytest.mark.parametrize("delay", DELAYS.values(), ids=DELAYS)
def test_signals_travel_for_their_mean_delay(delay):
    """Those sent in (0, T] and not yet there at T are, by Little's law, rate times mean delay.

    T is far beyond the longest delay. Changes all emit a signal here, and come at once.
    """
    instance = Instance([1.0], [4.0], 1.0, bandwidth=0.1, delay=delay)
    env = vector_of(instance, 1500, horizon=20.0)
    env.reset(seed=0)
    env.step(np.zeros(1500, np.int64))
    ledgers = [env.ledger(lane) for lane in range(1500)]
    under_way = np.array([one.changes - one.signals for one in ledgers])
    assert ledgers[0].time == 20.0
    assert near(under_way, 4.0 * delay.mean)
    assert near((under_way - 4.0 * delay.mean) ** 2, 4.0 * delay.mean)  # Poisson
