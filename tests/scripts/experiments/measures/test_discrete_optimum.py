"""The optimum of the discrete class: brute force, simulation, bounds, truncation."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import simulate
from crawl_envs.types.compiled_policies import CompiledIndex
from policies import solvers
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables
from scripts.experiments.measures.discrete_optimum import discrete_optimum


def tiny(seed, num_pages, bandwidth, signals=True):
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.uniform(0.1, 1, num_pages), rng.uniform(0.2, 1, num_pages)
    recall, false_rate = rng.uniform(0.2, 0.9, num_pages), rng.uniform(0.1, 0.6, num_pages)
    quality = (recall, false_rate) if signals else (0.0, 0.0)
    return Instance(importance, change_rate, *quality, bandwidth=bandwidth)


def greedy(instance):
    table = value_tables.greedy_ncis_table(
        instance.importance, instance.change_rate, instance.recall, instance.false_signal_rate
    )
    return CompiledIndex(value_kernels.greedy_ncis_value, table)


def solved(instance, **more):
    return discrete_optimum(instance, {2: 40_000, 3: 300}[instance.num_pages], **more)


def page_of(result, slots, signals):
    """The page that the policy crawls, by slots (>= 1) and signals since each last crawl."""
    state = [page.states(k, n) for page, k, n in zip(result.pages, slots, signals, strict=True)]
    keys = [np.broadcast_to(key, [len(page.fresh) for page in result.pages]) for key in result.keys]
    return int(np.argmax([key[tuple(state)] for key in keys]))


def periodic(instance, schedule):
    """Long-run freshness of crawling pages in turn, one per slot, for ever."""
    weight, slot = instance.importance / instance.importance.sum(), 1.0 / instance.bandwidth
    total = 0.0
    for page, rate in enumerate(instance.change_rate):
        at = [place for place, crawled in enumerate(schedule) if crawled == page]
        gaps = np.diff([*at, at[0] + len(schedule)]) if at else np.array([])
        fresh = -np.expm1(-rate * gaps * slot).sum() / rate
        total += weight[page] * fresh / (len(schedule) * slot)
    return total


@pytest.mark.parametrize(("seed", "bandwidth"), [(0, 1.0), (1, 0.5), (2, 3.0), (3, 1.5)])
@pytest.mark.parametrize(("num_pages", "length"), [(2, 12), (3, 8)])
def test_no_periodic_schedule_is_better(seed, bandwidth, num_pages, length):
    instance = tiny(seed, num_pages, bandwidth, signals=False)
    result = solved(instance)
    assert result.high - result.low < 1e-8
    best = max(
        periodic(instance, schedule)
        for period in range(1, length + 1)
        for schedule in itertools.product(range(num_pages), repeat=period)
    )
    assert best <= result.high
    # its own policy ends in a cycle, whose value it gives exactly
    slots, schedule = np.ones(num_pages, np.int64), []
    for _ in range(4000):
        schedule.append(page_of(result, slots, np.zeros(num_pages, np.int64)))
        slots += 1
        slots[schedule[-1]] = 1
    period = next(
        length for length in range(1, 1500) if schedule[-length:] == schedule[-2 * length : -length]
    )
    assert periodic(instance, schedule[-period:]) == pytest.approx(result.freshness, abs=1e-8)
    if period <= length:
        assert best == pytest.approx(result.freshness, abs=1e-8)


def play(instance, page, slots, seed):
    """Freshness of a policy per batch of slots, with changes and signals played one by one."""
    rng = np.random.default_rng(seed)
    weight, slot = instance.importance / instance.importance.sum(), 1.0 / instance.bandwidth
    ages, signals = np.ones(len(weight), np.int64), np.zeros(len(weight), np.int64)
    fresh = np.ones(len(weight), bool)
    per_slot = np.zeros(slots)
    for number in range(slots):
        crawled = page(ages, signals)
        ages[crawled], signals[crawled], fresh[crawled] = 0, 0, True
        for i in range(len(weight)):
            changes = np.sort(rng.uniform(0, slot, rng.poisson(instance.change_rate[i] * slot)))
            signals[i] += np.count_nonzero(rng.random(len(changes)) < instance.recall[i])
            signals[i] += rng.poisson(instance.false_signal_rate[i] * slot)
            until = changes[0] if len(changes) else slot
            per_slot[number] += weight[i] * fresh[i] * until / slot
            fresh[i] &= len(changes) == 0
        ages += 1
    return per_slot.reshape(50, -1).mean(axis=1)


@pytest.mark.parametrize(("seed", "num_pages", "bandwidth"), [(0, 2, 1.0), (1, 3, 2.0)])
def test_the_optimal_policy_attains_the_value(seed, num_pages, bandwidth):
    instance = tiny(seed, num_pages, bandwidth)
    result = solved(instance)
    batches = play(instance, partial(page_of, result), 30_000, seed)
    error = batches.std(ddof=1) / math.sqrt(len(batches))
    assert error < 0.005
    assert abs(batches.mean() - result.freshness) <= 4.0 * error


@pytest.mark.parametrize("signals", [True, False])
@pytest.mark.parametrize(
    ("seed", "num_pages", "bandwidth"), [(0, 2, 1.0), (1, 3, 2.0), (2, 2, 4.0)]
)
def test_the_chain_of_greedy_agrees_with_simulation(seed, num_pages, bandwidth, signals):
    instance = tiny(seed, num_pages, bandwidth, signals)
    result = solved(instance, index=greedy(instance))
    assert result.high - result.low < 1e-5
    policy = policies.GreedyNCIS()
    runs = [simulate(instance, policy, 4000.0, seed=number).freshness for number in range(20)]
    error = np.std(runs, ddof=1) / math.sqrt(20)
    start = 1.0 / 4000.0  # a fresh start adds less than one unit of time
    assert error < 0.002
    assert -4.0 * error <= np.mean(runs) - result.freshness <= 4.0 * error + start


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("signals", [True, False])
def test_the_optimum_is_between_greedy_and_the_continuous_optimum(seed, signals):
    instance = tiny(seed, 2, 1.0 + seed, signals)
    result = solved(instance)
    assert solved(instance, index=greedy(instance)).low <= result.high
    assert result.low <= solvers.ncis(instance).objective


def test_fewer_states_give_wider_bounds_of_the_same_value():
    instance = tiny(5, 2, 2.0)
    whole = solved(instance)
    assert whole.high - whole.low < 1e-8
    widths = []
    for most in (30, 100, 400):
        part = discrete_optimum(instance, most)
        assert max(len(page.fresh) for page in part.pages) <= most
        assert part.low <= whole.high
        assert whole.low <= part.high
        widths.append(part.high - part.low)
    assert widths == sorted(widths, reverse=True)


def test_pages_of_every_kind():
    # observed, certain, static and noisy pages, without an exception: between its own bounds
    instance = Instance(1.0, [0.5, 0.8, 0.0], [1.0, 0.6, 0.5], [0.2, 0.0, 0.3], bandwidth=0.7)
    result = solved(instance)
    assert result.high - result.low < 1e-6
    batches = play(instance, partial(page_of, result), 20_000, 1)
    assert abs(batches.mean() - result.freshness) <= 4.0 * batches.std(ddof=1) / math.sqrt(50)
