"""CrawlOffers-v1: its rewards, its budgets, what is known, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import evaluate, simulate
from crawl_envs.instances.market import MarketShape, market
from tests.environments import OFFERS, assert_same, bare

STEPS = 12
LIVELY = MarketShape(
    merchants=20,
    categories=10,
    brands=15,
    countries=3,
    change_rate=0.5,
    back=0.6,
    campaign_rate=0.2,
    view_rate=2.0,
    click_share=0.3,
    obsolete_rate=0.01,
)
"""A market in which much happens, prices that come back included."""


def lively(num_pages=80, seed=0, bandwidth=20.0):
    return market(num_pages, seed=seed, bandwidth=bandwidth, shape=LIVELY)


def started(seed=0, *, num_pages=80, bandwidth=20.0, **more):
    env = bare(OFFERS, num_pages=num_pages, bandwidth=bandwidth, **{"horizon": 4.0, **more})
    env.reset(seed=seed, options={"instance": lively(num_pages, seed, bandwidth)})
    return env


def random_rates(env, rng):
    return rng.exponential(size=env.action_space.shape[0]) * env.problem.bandwidth / 40


# Rewards


def test_requests_reward_clicks_with_the_true_price():
    env = started(reward="requests", crawl_cost=0.25)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        _, reward, _, _, info = env.step(random_rates(env, rng))
        assert reward == info["hits"] - 0.25 * info["crawls"]


# Budgets


def test_rates_above_the_budget_are_scaled_or_an_error():
    env, twin = started(), started()
    env.step(np.full(80, 5.0))
    twin.step(np.full(80, 20.0 / 80))
    assert_same(env.last_log()._asdict(), twin.last_log()._asdict())
    strict = started(overspend="error")
    before = strict.get_state()
    with pytest.raises(ValueError, match="at most the bandwidth 20 crawls per day, got 400"):
        strict.step(np.full(80, 5.0))
    assert_same(strict.get_state()["world"], before["world"])
    strict.step(np.full(80, 20.0 / 80))


# What is known


def test_what_is_revealed():
    truth = lively()
    revealed = started(reveal="parameters").problem
    assert np.array_equal(revealed.importance, truth.importance)
    assert np.array_equal(revealed.change_rate, truth.change_rate)
    assert started(reveal="importance").problem.change_rate is None
    env = started(reveal="history")
    first = env.tracker().offers.clicks_30
    assert np.array_equal(env.problem.importance, first)
    for _ in range(STEPS):
        env.step(np.zeros(80))
    assert np.array_equal(env.tracker().problem.importance, first)
    assert not np.array_equal(env.tracker().offers.clicks_30, first)
    assert env.problem.change_rate is None


# Around it


def test_the_big_picture_is_in_evaluate():
    makers = {"uniform": lambda env: policies.make("UniformCrawl", env)}
    rows = list(evaluate(OFFERS, makers, [0], num_pages=50, horizon=2.0))
    values = {row.metric: row.value for row in rows}
    assert {"accuracy", "freshness", "offer_freshness", "changed_share"} <= set(values)
    assert 0.5 < values["offer_freshness"] <= 1.0


def test_observations_have_the_bounds_of_their_columns():
    env = started(horizon=3.0)
    highest = dict(zip(env.features, env.observation_space.high[0], strict=True))
    assert (highest["day_of_week"], highest["change_frequency"]) == (6.0, 12.0)
    assert (highest["days_since_change"], highest["elapsed"]) == (31.0, 3.0)


# Lanes, and bad input


@pytest.mark.parametrize("lane", [-1, 1, "a"])
def test_lanes_that_are_not_there(lane):
    env = started()
    for read in (env.days, env.finished_days, env.events, env.held_prices):
        with pytest.raises(ValueError, match="lane must be"):
            read(lane)


def reset(instance, **more):
    bare(OFFERS, num_pages=80, **more).reset(options={"instance": instance})


REFUSED = [
    (lambda: bare(OFFERS, horizon=0.05).reset(seed=0), "horizon must hold at least one epoch"),
    (lambda: reset(Instance(np.ones(80), 1.0, bandwidth=1.0)), "must be a Market"),
    (lambda: reset(lively(81)), "must have 80 pages"),
    (  # what scores can choose is fixed when they are made
        lambda: reset(lively(bandwidth=13.0), bandwidth=12.0, action="scores"),
        "at most 12 crawls per day",
    ),
    (  # a rollout would take the rates of a market for constants
        lambda: simulate(lively(), policies.RoundRobin(), 1.0),
        "CrawlOffers-v1",
    ),
    *(
        (lambda bad=bad: started().step(np.full(80, bad)), "action must be rates, finite and >= 0")
        for bad in (np.nan, np.inf, -1.0)
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_declared_rates_are_checked_and_do_nothing():
    env = started()
    env.declare(np.ones(80))
    with pytest.raises(ValueError, match="change_rate"):
        env.declare(np.ones(3))
