"""The dynamic program that learning is measured by is checked against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import simulate
from policies import values
from tests.exact_optimum import (
    Pages,
    after,
    best_forever,
    best_of_episode,
    expected_mean,
    expected_mean_of_random,
    mean_of_cycle,
    reward_of,
)

STALE = Pages((10.0, 3.0, 1.0), (2.0, 1.0, 6.0), 3.0)
MIXED = Pages((8.0, 3.0, 1.0), (2.0, 1.0, 1.0), 2.0)
TWO = Pages((3.0, 1.0), (1.0, 4.0), 1.5)
SLOTS = 60


def in_turn(elapsed, changed):
    return elapsed.argmax(1)


def greedy(pages: Pages):
    def choose(elapsed, changed):
        importance, change_rate = (np.tile(row, (len(elapsed), 1)) for row in pages[:2])
        time = elapsed / pages.bandwidth
        return values.greedy(time, importance=importance, change_rate=change_rate).argmax(1)

    return choose


def always(pages_of):
    return lambda elapsed, changed: np.array([pages_of(tuple(row)) for row in elapsed.tolist()])


def test_slot_reward_is_the_mean_freshness():
    def fresh(time, page):
        elapsed = 0.0 if page == 1 else (2, 5, 3)[page] / STALE.bandwidth
        return math.exp(-STALE.change_rate[page] * (elapsed + time))

    slot = 1.0 / STALE.bandwidth
    shares = [quad(fresh, 0.0, slot, (page,))[0] / slot for page in range(3)]
    expected = np.average(shares, weights=STALE.importance)
    assert reward_of(STALE, (2, 5, 3), 1) == pytest.approx(expected, rel=1e-12)
    assert after((2, 5, 3), 1) == (3, 1, 4)


@pytest.mark.parametrize("pages", [STALE, MIXED, TWO])
def test_the_best_episode_is_the_best_of_all_sequences(pages):
    def mean_of(sequence):
        state, total = pages.start(), 0.0
        for page in sequence:
            total += reward_of(pages, state, page)
            state = after(state, page)
        return total / len(sequence)

    sequences = itertools.product(range(len(pages.importance)), repeat=7)
    assert best_of_episode(pages, 7) == pytest.approx(max(map(mean_of, sequences)), rel=1e-12)


@pytest.mark.parametrize(("pages", "tight"), [(STALE, True), (MIXED, False), (TWO, True)])
def test_no_cycle_beats_the_best_of_endless_play(pages, tight):
    best = best_forever(pages)
    cycles = itertools.chain.from_iterable(
        itertools.product(range(len(pages.importance)), repeat=length) for length in range(1, 7)
    )
    result = max(mean_of_cycle(pages, cycle) for cycle in cycles)
    assert result <= best.high + 1e-9
    if tight:  # its cycle is short enough to be among them
        assert result == pytest.approx(best.low, abs=1e-7)
    # Episodes begin fresh, so their best is better, the less so the longer they are.
    excess = [best_of_episode(pages, slots) - best.high for slots in (10, 20, 40)]
    assert excess[0] > excess[1] > excess[2] > 0.0


@pytest.mark.parametrize("pages", [STALE, MIXED, TWO])
def test_the_best_beats_what_does_not_plan(pages):
    best = best_of_episode(pages, SLOTS)
    table = best_forever(pages).page
    planned = expected_mean(pages, always(lambda row: table[tuple(min(12, x) for x in row)]), 240)
    naive = expected_mean(pages, greedy(pages), SLOTS), expected_mean(pages, in_turn, SLOTS)
    assert max(naive) <= best + 1e-12
    assert expected_mean_of_random(pages, 12) < best
    assert planned >= expected_mean(pages, greedy(pages), 240) - 1e-12
    assert planned >= expected_mean(pages, in_turn, 240)


def test_the_gaps_that_learning_is_to_close():
    best = best_of_episode(STALE, SLOTS)
    assert expected_mean_of_random(STALE, 20) < 0.75 * best
    assert expected_mean(STALE, in_turn, SLOTS) < 0.8 * best
    assert expected_mean(STALE, always(lambda row: 0), SLOTS) < 0.95 * best
    assert expected_mean(STALE, greedy(STALE), SLOTS) < 0.99 * best


@pytest.mark.parametrize("name", ["Greedy", "RoundRobin"])
def test_expectations_are_those_of_simulated_episodes(name):
    pages, choose = STALE, {"Greedy": greedy(STALE), "RoundRobin": in_turn}[name]
    instance = Instance(pages.importance, pages.change_rate, bandwidth=pages.bandwidth)
    policy = policies.make(name)
    # The simulation counts from time 0, when all is fresh, and one slot less at the end.
    means = np.array(
        [simulate(instance, policy, SLOTS / pages.bandwidth, seed).freshness for seed in range(400)]
    )
    first = sum(
        weight * -math.expm1(-rate / pages.bandwidth) / rate * pages.bandwidth
        for weight, rate in zip(pages.importance, pages.change_rate, strict=True)
    ) / sum(pages.importance)
    expected = (first + (SLOTS - 1) * expected_mean(pages, choose, SLOTS - 1)) / SLOTS
    assert abs(means.mean() - expected) < 4.0 * means.std(ddof=1) / math.sqrt(len(means))


def test_policies_may_use_crawl_results():
    """A policy that stays while its page changes: by hand for two slots."""
    pages = Pages((1.0, 1.0), (2.0, 3.0), 1.0)

    def choose(elapsed, changed):
        return np.where(changed[:, 0] == 1, 0, np.where(changed[:, 0] == 0, 1, 0))

    share = -math.expm1(-2.0)
    second = share * reward_of(pages, (1, 2), 0) + (1.0 - share) * reward_of(pages, (1, 2), 1)
    expected = (reward_of(pages, (1, 1), 0) + second) / 2.0
    assert expected_mean(pages, choose, 2) == pytest.approx(expected, rel=1e-12)
