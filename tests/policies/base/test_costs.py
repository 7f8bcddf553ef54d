"""Policies where crawls have costs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import simulate
from crawl_envs.instances import make
from policies import values
from policies.base.columns import FromColumns
from policies.base.index import IndexPolicy
from policies.base.registry import find
from tests.environments import bare
from tests.worlds import rated_of, single_of, stepped

INDICES = [name for name in policies.names() if issubclass(find(name), IndexPolicy)]
BATCHED = ("GreedyNCIS", "BeliefNCIS", "LearningGreedyNCIS", "RoundRobin", "LowDiscrepancy")
COSTS = {"cost_spread": 1.0}


def priced(name="noisy", **more):
    return make(name, **{"seed": 4, "num_pages": 8, "bandwidth": 8.0, **COSTS, **more})


@pytest.mark.parametrize("name", INDICES)
def test_indices_are_proportional_to_importance_or_ignore_it(name):
    """So importance per unit of cost is the value per unit of cost; only RoundRobin ignores it."""
    problem = priced(cost_spread=0.0).problem()
    elapsed, signals = np.linspace(0.1, 4.0, 8), np.arange(8.0) % 3
    reached = []
    for factor in (1.0, 8.0):
        more = replace(problem, importance=problem.importance * factor)
        index = find(name)().compile(more, 0, np.random.default_rng(0))
        pages = zip(range(8), elapsed, signals, strict=True)
        reached.append([index.value(index.parameters, *page) for page in pages])
    factor = 1.0 if name == "RoundRobin" else 8.0
    assert np.array(reached[1]) == pytest.approx(factor * np.array(reached[0]), rel=1e-9)


def test_the_page_of_the_largest_value_per_cost_is_crawled():
    instance = priced("uniform")
    env = single_of(instance, horizon=4.0)
    policy = policies.make("Greedy", env)
    columns = FromColumns(policies.Greedy(), env.features)
    blind = policies.Greedy(believed=lambda problem: replace(problem, cost=None))
    observation, _ = env.reset(seed=0)
    over, differ, unseen = False, 0, policies.bind(blind, env)
    while not over:
        rates = {"importance": instance.importance, "change_rate": instance.change_rate}
        value = values.greedy(env.tracker().elapsed, **rates)
        action, _ = policy.predict(observation)
        assert action == np.argmax(value / instance.cost) == columns.predict(observation)[0]
        assert unseen.predict(observation)[0] == np.argmax(value)
        differ += np.argmax(value) != action
        observation, _, _, over, _ = env.step(action)
    assert differ > 0


def test_a_threshold_is_a_price_per_unit_of_cost():
    instance = priced("uniform")
    env = single_of(instance, horizon=4.0, action="refresh")
    policy = policies.make("Greedy", env, threshold=0.05)
    observation, _ = env.reset(seed=0)
    crawled = 0
    for _ in range(20):
        rates = {"importance": instance.importance, "change_rate": instance.change_rate}
        value = values.greedy(env.tracker().elapsed, **rates)
        action, _ = policy.predict(observation)
        assert np.array_equal(action, value >= 0.05 * instance.cost)
        crawled += action.sum()
        observation, *_ = env.step(action)
    assert crawled > 0


@pytest.mark.parametrize("name", [*BATCHED, "ContextualBandit"])
def test_a_batch_is_spent_on_the_best_pages(name):
    env = bare(num_pages=8, bandwidth=8.0, horizon=6.0, action="scores", batch=3, **COSTS)
    observation, _ = env.reset(seed=1)
    policy, over = policies.make(name, env), False
    largest = env.instance.cost.max()
    while not over:
        observation, _, _, over, _ = env.step(policy.predict(observation)[0])
        allowed = 8.0 * env.tracker().time - 3.0
        assert env.ledger().spend <= allowed * (1.0 + 1e-9)
    assert env.ledger().spend >= allowed - largest - 1e-9


def test_learners_roll_out_as_they_step():
    instance = priced()
    env = single_of(instance, horizon=4.0)
    rollout = simulate(instance, policies.BeliefNCIS(), 4.0, 2)
    assert stepped(env, policies.make("BeliefNCIS", env), seed=2) == rollout.crawls.tolist()


@pytest.mark.parametrize("name", ["UniformCrawl", "ChangeRateCrawl"])
@pytest.mark.parametrize("action", ["rates", "shares"])
def test_rates_spend_the_bandwidth(name, action):
    env = bare("CrawlHarmonic-v0", instance="uniform", action=action, **COSTS)
    observation, _ = env.reset(seed=1)
    action, _ = policies.make(name, env).predict(observation)
    info = env.step(action)[-1]
    assert info["declared"] == pytest.approx(6.0, rel=1e-6)


def test_rates_are_scaled_to_their_cost_and_buckets_hold_it():
    """Rates 2 and 1 at costs 1 and 4 spend 6: half of them are within a bandwidth of 3."""
    instance = Instance([1.0, 1.0], 1.0, bandwidth=3.0, cost=[1.0, 4.0])
    env = rated_of(instance, overspend="scale", horizon=400.0, bucket=8.0)
    env.reset(seed=0)
    info = env.step(np.array([2.0, 1.0]))[-1]
    assert info["declared"] == 3.0
    for _ in range(399):
        env.step(np.array([2.0, 1.0]))
    ledger = env.ledger()
    assert ledger.denied > 0
    assert 0.8 * 1200.0 < ledger.spend <= 8.0 + 1200.0
    with pytest.raises(ValueError, match="bucket must be at least the largest cost"):
        rated_of(instance, bucket=2.0).reset(seed=0)
    strict = rated_of(instance, overspend="error")
    strict.reset(seed=0)
    with pytest.raises(ValueError, match="must spend at most"):
        strict.step(np.array([2.0, 1.0]))


# The optimum


def least_loss(importance, change_rate, cost, cap):
    """The least mean staleness of pages without signals, and bounds, by value iteration.

    Costs are whole numbers and the bandwidth 1, so that a state is the elapsed time of each page, a
    whole number up to ``cap``. A step of a policy lasts the cost of its crawl; dividing losses and
    transitions by it gives a chain of equal steps with the same mean loss (Schweitzer 1971).
    """
    count = len(cost)
    elapsed = np.array(list(itertools.product(range(1, cap + 1), repeat=count)))
    index = np.arange(len(elapsed)).reshape((cap,) * count)
    losses, targets = [], []
    for page in range(count):
        start = elapsed.copy()
        start[:, page] = 0
        end = start + cost[page]
        fresh = (np.exp(-change_rate * start) - np.exp(-change_rate * end)) / change_rate
        losses.append(((cost[page] - fresh) * importance).sum(1) / cost[page])
        targets.append(index[tuple(np.minimum(end, cap).T - 1)])
    step, bias = 0.5 * min(cost), np.zeros(len(elapsed))
    for _ in range(20_000):
        choices = [
            loss + step / c * (bias[target] - bias)
            for loss, target, c in zip(losses, targets, cost, strict=True)
        ]
        gain = np.min(choices, axis=0)
        if np.ptp(gain) < 1e-4 * gain.max():
            break
        bias = bias + gain - gain[0]
    return gain.min(), gain.max()


def loss_of(crawls, importance, change_rate, cost):
    """The mean staleness of pages that are crawled in an order, after the first third."""
    elapsed, total, passed = np.zeros(len(cost)), 0.0, 0.0
    for number, page in enumerate(crawls):
        elapsed[page] = 0.0
        end = elapsed + cost[page]
        if number >= len(crawls) // 3:
            fresh = (np.exp(-change_rate * elapsed) - np.exp(-change_rate * end)) / change_rate
            total, passed = total + ((cost[page] - fresh) * importance).sum(), passed + cost[page]
        elapsed = end
    return total / passed


@pytest.mark.parametrize("name", ["Greedy", "LagrangianIndex"])
@pytest.mark.parametrize(
    ("importance", "change_rate", "cost"),
    [
        ([0.3, 1.0, 0.6], [0.3, 0.1, 0.05], [1, 3, 2]),
        ([0.92, 0.65, 0.76], [0.23, 0.38, 0.33], [3, 1, 2]),
        ([0.72, 0.45, 0.22], [0.3, 0.22, 0.14], [2, 2, 3]),
    ],
)
def test_three_pages_are_within_a_percent_of_the_optimum(importance, change_rate, cost, name):
    """Not all are: where one crawl takes much of a cycle, no index fits well."""
    pages = np.array(importance), np.array(change_rate), cost
    low, high = least_loss(*pages, cap=40)
    assert high <= low * 1.001
    instance = Instance(importance, change_rate, bandwidth=1.0, cost=cost)
    crawls = simulate(instance, find(name)(), 3000.0, requests=False).crawls
    assert low * 0.999 <= loss_of(crawls, *pages) <= high * 1.01
    blind = policies.Greedy(believed=lambda problem: replace(problem, cost=None))
    unaware = simulate(instance, blind, 3000.0, requests=False).crawls
    assert loss_of(unaware, *pages) > loss_of(crawls, *pages)


@pytest.mark.parametrize(("spread", "share"), [(0.5, 1.0), (1.5, 0.25)])
def test_many_pages_are_within_a_percent_of_the_relaxed_optimum(spread, share):
    """If the bandwidth R holds on average only, a page is crawled where V reaches Lambda c.

    That is every T with 1 - (1 + x) exp(-x) = Lambda c Delta / mu, x = Delta T, and the sum of
    c / T is R.
    """
    pages = make("uniform", seed=5, num_pages=150, bandwidth=150.0 * share, cost_spread=spread)
    mu, delta, cost = pages.importance, pages.change_rate, pages.cost
    grid = np.geomspace(1e-9, 60.0, 100_000)
    reach = 1.0 - (1.0 + grid) * np.exp(-grid)

    def products(price):
        return np.interp(price * cost * delta / mu, reach, grid, right=np.inf)

    low, high = 1e-9, 1e3
    for _ in range(100):
        price = np.sqrt(low * high)
        spends = (cost * delta / products(price)).sum() > pages.bandwidth
        low, high = (price, high) if spends else (low, price)
    x = products(high)
    least = (mu * np.where(np.isinf(x), 1.0, 1.0 + np.expm1(-x) / np.minimum(x, 1e9))).sum()
    blind = policies.Greedy(believed=lambda problem: replace(problem, cost=None))
    losses = [
        loss_of(
            simulate(pages, policy, 150.0, requests=False).crawls, mu, delta, cost / pages.bandwidth
        )
        for policy in (policies.Greedy(), blind)
    ]
    assert 0.999 * least < losses[0] < 1.01 * least
    assert losses[1] > 1.05 * losses[0]


def test_the_environment_makes_costs_known_to_gymnasium():
    env = gym.make("CrawlNCIS-v0", cost_spread=1.0)
    assert env.spec.kwargs["cost_spread"] == 1.0
    assert env.spec.max_episode_steps > 1000
    assert "cost" in env.unwrapped.features
