"""The Lagrangian index against value iteration of one page, its price against a root, and play."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import policies
from crawl_envs import instances
from crawl_envs.compiled.compiling import ready
from crawl_envs.evaluation import simulate
from crawl_envs.types import Instance
from policies.live.scheduler import CrawlScheduler
from policies.ncis.lagrangian import spending_price
from policies.values.ranking import page_values
from policies.values.series import TERMS
from policies.values.sources.kernels import START

PAGES = {
    "no signals": (1.0, 1.0, 0.0, 0.0, 0.3),
    "noisy": (2.0, 0.7, 0.5, 0.3, 0.8),
    "mostly signalled": (1.0, 1.5, 0.9, 0.5, 0.2),
    "all changes signalled": (1.0, 1.0, 1.0, 0.4, 0.3),
    "no false signals": (1.0, 1.0, 0.5, 0.0, 0.4),
}
"""Importance, change rate, recall, false signals, and the price of a crawl."""
STATES = [(0.0, 0), (0.4, 0), (0.4, 1), (1.6, 0), (2.0, 2), (4.0, 3)]
"""Times since the last crawl, and signals."""
SLOT = 0.02
MOST_SIGNALS, LAST = 30, 12.0
"""Signals and time since a crawl at which value iteration begins."""


def iterated(page, slot):
    """The least mean loss, and Q(x, crawl) - Q(x, wait) by slots (k, n), from value iteration.

    A slot of the state x costs the expected loss in it. Relative to the mean loss g, h(x) =
    min(0, Q(x, wait)) where 0 stands for a crawl, and g is such that a crawl costs 0 in all: its
    price, and then a slot of a page just crawled.
    """
    importance, change_rate, recall, false_rate, price = page
    signal_rate = recall * change_rate + false_rate
    unsignalled = (1.0 - recall) * change_rate
    number = np.arange(MOST_SIGNALS + 1)
    moves = np.triu(stats.poisson.pmf(number - number[:, None], signal_rate * slot))
    moves[:, -1] += 1.0 - moves.sum(1)
    noise = (false_rate / signal_rate if signal_rate else 1.0) ** number
    elapsed = slot * np.arange(round(LAST / slot) + 1)
    fresh = np.exp(-unsignalled * elapsed)[:, None] * noise
    fresh_time = fresh * -np.expm1(-change_rate * slot) / change_rate

    def waits(mean):
        later, wait = np.zeros(number.size), np.empty_like(fresh)
        for k in range(elapsed.size - 1, -1, -1):
            wait[k] = (importance - mean) * slot - importance * fresh_time[k] + moves @ later
            later = np.minimum(wait[k], 0.0)
        return wait

    least = optimize.brentq(lambda mean: price + waits(mean)[0, 0], 1e-9, importance, xtol=1e-14)
    return least, waits(least)


def index_of(page, elapsed, signals, bandwidth=1.0, sources=1):
    """The compiled index of a page at its price, and the evidence at which it is crawled."""
    importance, change_rate, recall, false_rate, price = page
    shape = (1,) if sources == 1 else (sources, 1)
    instance = Instance(
        [importance],
        [change_rate],
        np.full(shape, recall / sources),
        np.full(shape, false_rate / sources),
        bandwidth=bandwidth,
    )
    policy = policies.LagrangianIndex(price=price)
    form = policy.compile(instance.problem(), 0, np.random.default_rng(0))
    first = TERMS if sources == 1 else int(form.parameters[0, START]) - 3
    weight = 1.0
    if sources > 1:
        weight = ready(form.signal_weight)(form.parameters, 0, 1.0, 0)
    counted = weight * signals
    return ready(form.value)(form.parameters, 0, elapsed, counted), form.parameters[0, first]


def evidence_of(page, elapsed, signals):
    change_rate, recall, false_rate = page[1:4]
    with np.errstate(divide="ignore"):
        each = np.log1p(np.divide(recall * change_rate, false_rate)) if recall else 0.0
    return (1.0 - recall) * change_rate * elapsed + (signals * each if signals else 0.0)


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("name", PAGES)
def test_index_is_the_gain_of_a_crawl_over_waiting_by_value_iteration(name, sources):
    page = PAGES[name]
    (coarse_mean, coarse), (mean, fine) = iterated(page, SLOT), iterated(page, SLOT / 2)
    limit = 2.0 * mean - coarse_mean  # errors are of first order in the slot
    tolerance = 2e-5 if sources == 1 else 3e-5
    above = 0
    for elapsed, signals in STATES:
        slots = round(elapsed / SLOT)
        expected = 2.0 * fine[2 * slots, signals] - coarse[slots, signals]
        index, level = index_of(page, elapsed, signals, sources=sources)
        if evidence_of(page, elapsed, signals) >= level:
            above += 1
            per_slot = coarse[slots, signals] / SLOT, fine[2 * slots, signals] / (SLOT / 2)
            expected = 2.0 * per_slot[1] - per_slot[0]
        assert index == pytest.approx(expected, abs=tolerance)
        assert page[0] * -math.expm1(-level) == pytest.approx(limit, abs=tolerance)
    assert 1 <= above < len(STATES)
    assert index_of(page, 0.0, 0, sources=sources)[0] == pytest.approx(-page[-1], rel=1e-5)


@pytest.mark.parametrize("name", PAGES)
def test_index_of_a_page_that_is_not_worth_its_price(name):
    importance, change_rate, *signals, _ = PAGES[name]
    page = (importance, change_rate, *signals, 1.2 * importance / change_rate)
    for elapsed, received in STATES:
        stale = -math.expm1(-evidence_of(page, elapsed, received))
        gained = stale * integrate.quad(lambda t: math.exp(-change_rate * t), 0.0, np.inf)[0]
        index, level = index_of(page, elapsed, received)
        assert level == math.inf
        assert index == pytest.approx(importance * gained - page[-1], rel=1e-9)


def test_sign_is_that_of_whittles_index_less_the_price_and_the_order_another():
    instance = instances.make("noisy", num_pages=200, bandwidth=100.0, seed=4)
    problem = instance.problem()
    price = spending_price(problem)
    rng = np.random.default_rng(0)
    elapsed, signals = rng.uniform(0.0, 4.0, 200), rng.poisson(0.7, 200) * 1.0
    indices = []
    for name in ("GreedyNCIS", "LagrangianIndex"):
        form = policies.make(name).compile(problem, 0, rng)
        seen = (
            ready(form.value),
            form.parameters,
            form.promises,
            elapsed,
            signals,
            np.ones(200, np.bool_),
        )
        indices.append(ready(page_values)(*seen))
    whittle, lagrangian = indices
    clear = abs(whittle / price - 1.0) > 1e-9
    np.testing.assert_array_equal((whittle > price)[clear], (lagrangian > 0.0)[clear])
    assert 20 < (whittle > price).sum() < 180
    assert 0.8 < stats.kendalltau(whittle, lagrangian).statistic < 0.95


@pytest.mark.parametrize("bandwidth", [0.3, 3.0, 30.0])
def test_price_without_signals_is_the_root_of_the_budget(bandwidth):
    rng = np.random.default_rng(1)
    importance, change_rate = rng.uniform(0.1, 2.0, (2, 6))

    def spent(price):
        def value(time, page):
            x = change_rate[page] * time
            return importance[page] / change_rate[page] * (1.0 - math.exp(-x) * (1.0 + x)) - price

        worth = np.flatnonzero(importance / change_rate > price)
        return sum(1.0 / optimize.brentq(value, 1e-9, 1e9, args=(page,)) for page in worth)

    expected = optimize.brentq(lambda price: spent(price) - bandwidth, 1e-6, 10.0, xtol=1e-13)
    problem = Instance(importance, change_rate, bandwidth=bandwidth).problem()
    assert spending_price(problem) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("law", ["uniform", "noisy", "sources"])
def test_pages_stay_as_fresh_as_by_whittles_index(law):
    given = {"num_pages": 50, "bandwidth": 50.0}
    gaps = []
    for seed in range(8):
        instance = instances.make(law, **given, seed=seed)
        fresh = [
            simulate(instance, policies.make(name), horizon=20.0, seed=seed)
            for name in ("LagrangianIndex", "GreedyNCIS", "RandomCrawl")
        ]
        gaps.append([one.freshness - fresh[1].freshness for one in fresh])
    lagrangian, _, random = np.mean(gaps, axis=0)
    assert abs(lagrangian) < 0.01
    assert random < -0.1


def test_a_page_that_needs_no_crawl_is_worth_none():
    problem = Instance([1.0, 0.0, 1.0], [0.0, 1.0, 1.0], bandwidth=1.0).problem()
    form = policies.LagrangianIndex().compile(problem, 0, np.random.default_rng(0))
    index = [ready(form.value)(form.parameters, page, 9.0, 0.0) for page in range(3)]
    assert index[0] == index[1] == pytest.approx(-spending_price(problem))
    assert index[2] > 0.0
    idle = Instance([1.0, 1.0], 0.0, bandwidth=1.0).problem()
    assert spending_price(idle) == 0.0


def test_bad_input():
    problem = Instance([1.0] * 2, 1.0, bandwidth=1.0, bandwidth_steps=[(2.0, 3.0)]).problem()
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"needs one known bandwidth, .*_steps=.*3\.0"):
        policies.LagrangianIndex().compile(problem, 0, rng)
    assert policies.LagrangianIndex(price=0.1).compile(problem, 0, rng)
    with pytest.raises(ValueError, match=r"price must be .* >= 0, got -1"):
        policies.LagrangianIndex(price=-1)
    columns = ("elapsed", "signals", "importance", "change_rate", "recall", "false_signal_rate")
    with pytest.raises(ValueError, match="features must be None for LagrangianIndex"):
        policies.make("LagrangianIndex", features=columns)
    scheduler = CrawlScheduler("LagrangianIndex", bandwidth=1.0)
    known = {"recall": 0.5, "false_signal_rate": 0.1, "change_rate": 1.0}
    with pytest.raises(ValueError, match="must value each page by its own parameters"):
        scheduler.add([1, 2], last_crawl=0.0, importance=1.0, **known)
