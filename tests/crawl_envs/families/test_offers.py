"""CrawlOffers-v0: its measures from logs alone, its budgets, its features, and its rollouts."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import evaluate, simulate
from crawl_envs.instances.market import MarketShape, market
from crawl_envs.types.offer_features import HISTORY_FEATURES
from crawl_envs.worlds.offers.law import Market
from crawl_envs.worlds.offers.log import play_rates, record
from tests.environments import OFFERS, assert_same, bare, batch

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


# The measures, from logs alone


class Bookkeeper:
    """Held prices, freshness and clicks, recomputed from what happened and what was crawled."""

    def __init__(self, env):
        self.true = dict(enumerate(env.held_prices().tolist()))
        self.held = dict(self.true)
        self.clicks = self.hits = 0
        self.returned = 0

    def fresh(self):
        return [self.true[offer] == self.held[offer] for offer in range(len(self.true))]

    def step(self, events, step, crawled):
        first, last = events.price_start[step], events.price_end[step]
        for offer, price in zip(
            events.price_offer[first:last], events.new_price[first:last], strict=True
        ):
            was = self.true[int(offer)] == self.held[int(offer)]
            self.true[int(offer)] = int(price)
            self.returned += not was and self.true[int(offer)] == self.held[int(offer)]
        changed = [self.true[offer] != self.held[offer] for offer in crawled]
        for offer in crawled:
            self.held[offer] = self.true[offer]
        first, last = events.click_start[step], events.click_start[step + 1]
        for offer in events.click_offer[first:last].tolist():
            self.clicks += 1
            self.hits += self.true[offer] == self.held[offer]
        return changed


@pytest.mark.parametrize("objective", ["clicks", "offers"])
@pytest.mark.parametrize("action", ["rates", "scores"])
def test_rewards_and_both_measures_follow_from_logs(action, objective):
    env = started(action=action, objective=objective)
    plain, rng = Bookkeeper(env), np.random.default_rng(0)
    env.action_space.seed(0)
    rewards, weights = 0.0, 0.0
    for number in range(4 * STEPS):
        day, step = divmod(number, STEPS)
        events = env.events()
        hits, clicks = plain.hits, plain.clicks
        choice = random_rates(env, rng) if action == "rates" else env.action_space.sample()
        _, reward, _, truncated, info = env.step(choice)
        log = env.last_log()
        assert np.all(log.time == number / STEPS)
        changed = plain.step(events, step, log.page.tolist())
        assert log.changed.tolist() == changed
        assert log.price.tolist() == [plain.true[offer] for offer in log.page.tolist()]
        assert env.held_prices().tolist() == list(plain.held.values())
        assert (info["hits"], info["requests"]) == (plain.hits - hits, plain.clicks - clicks)
        fresh = np.array(plain.fresh())
        expected = events.click_mean.astype(np.float64)
        by_clicks = expected @ fresh / expected.sum()
        assert info["click_freshness"] == pytest.approx(by_clicks, abs=1e-12)
        assert info["offer_freshness"] == pytest.approx(fresh.mean(), abs=1e-15)
        assert reward == pytest.approx(by_clicks if objective == "clicks" else fresh.mean())
        weight = expected.sum() if objective == "clicks" else 1.0
        rewards, weights = rewards + weight * reward, weights + weight
        assert env.lanes.fresh(0).tolist() == plain.fresh()
        if step == STEPS - 1:
            account = env.days()[day]
            assert account.fresh == fresh.mean()  # eq. 3
            assert sum(d.hits for d in env.days()) == plain.hits
            assert sum(d.clicks for d in env.days()) == plain.clicks
            assert account.click_freshness == account.hits / account.clicks  # eq. 4
    assert truncated
    ledger = env.ledger()
    assert (ledger.requests, ledger.hits) == (plain.clicks, plain.hits)
    assert ledger.freshness == pytest.approx(rewards / weights)
    assert ledger.offer_freshness == pytest.approx(np.mean([day.fresh for day in env.days()]))
    assert plain.returned > 0
    assert 0 < plain.hits < plain.clicks


def test_requests_reward_clicks_with_the_true_price():
    env = started(reward="requests", crawl_cost=0.25)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        _, reward, _, _, info = env.step(random_rates(env, rng))
        assert reward == info["hits"] - 0.25 * info["crawls"]


# Budgets


def test_rates_spend_the_budget_to_a_crawl():
    env = started(bandwidth=20.0)
    spent = []
    for _ in range(4 * STEPS):
        env.step(np.full(80, 20.0 / 80))
        spent.append(env.last_log().page.size)
    assert set(spent) == {1, 2}  # 20 / 12
    assert np.mean(spent) == pytest.approx(20 / 12, abs=0.2)


def test_rates_above_the_budget_are_scaled_or_an_error():
    env, twin = started(), started()
    env.step(np.full(80, 5.0))
    twin.step(np.full(80, 20.0 / 80))
    assert_same(env.last_log()._asdict(), twin.last_log()._asdict())
    strict = started(overspend="error")
    before = strict.get_state()
    with pytest.raises(ValueError, match="bandwidth 20 crawls"):
        strict.step(np.full(80, 5.0))
    assert_same(
        strict.get_state()["world"]["lanes"][0]["world"], before["world"]["lanes"][0]["world"]
    )
    strict.step(np.full(80, 20.0 / 80))


def test_a_rate_is_at_most_a_crawl_per_step():
    env = started(bandwidth=24.0, overspend="error")
    rates = np.zeros(80)
    rates[[3, 5]] = 1e9
    for _ in range(6):
        env.step(rates)
        assert env.last_log().page.tolist() == [3, 5]


def test_scores_crawl_the_best_and_no_more_than_is_due():
    env = started(action="scores", bandwidth=20.0)
    scores = np.linspace(-1.0, 1.0, 80, dtype=np.float32)
    spent = []
    for _ in range(2 * STEPS):
        env.step(scores)
        spent.append(env.last_log().page.size)
        assert env.last_log().page.tolist() == [79, 78][: spent[-1]]
    assert sum(spent) == 40
    assert env.num_slots() == 80


# What is known


def test_books_are_of_the_day_and_of_the_past():
    env, log = started(seed=3), record(lively(seed=3), 4, 3)
    rng = np.random.default_rng(0)
    for number in range(4 * STEPS):
        offer_features = env.tracker().offers
        expected = log.features(number // STEPS)
        assert (offer_features.day, offer_features.day_of_week) == (
            number // STEPS,
            (9 + number // STEPS) % 7,
        )
        for name in HISTORY_FEATURES:
            assert np.array_equal(getattr(offer_features, name), getattr(expected, name))
        assert env.tracker().offers is offer_features
        env.step(random_rates(env, rng))


def test_price_history_may_be_only_the_observed_changes():
    env = started(seed=4, price_history="crawled", horizon=40.0)
    finds = {offer: [] for offer in range(80)}
    rng = np.random.default_rng(0)
    for number in range(38 * STEPS):
        env.step(random_rates(env, rng))
        log = env.last_log()
        for offer in log.page[log.changed].tolist():
            finds[offer].append(number / STEPS)
    # of day 38: the days before the start are 30 days ago and more
    offer_features = env.tracker().offers
    for offer, times in finds.items():
        late = [time for time in times if time >= 8.0]
        assert offer_features.change_frequency[offer] == np.float32(len(late)) / np.float32(30)
        since = 38.0 - max(times, default=-np.inf)
        since = since if since <= 30.0 else 31.0
        assert offer_features.days_since_change[offer] == pytest.approx(
            since, abs=1e-5
        )  # float32 times
    assert any(finds.values())


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


def test_events_do_not_depend_on_what_is_done():
    one = started(action="rates", bandwidth=20.0)
    other = started(action="scores", bandwidth=20.0, objective="offers", price_history="crawled")
    other.action_space.seed(0)
    for number in range(3 * STEPS):
        if number % STEPS == 0:
            assert_same(one.events()._asdict(), other.events()._asdict())
        one.step(np.full(80, 0.1))
        other.step(other.action_space.sample())


# Rollouts on a log are the steps of the environment


@pytest.mark.parametrize("name", ["UniformCrawl", "ClickWeightedCrawl", "DiscreteLambdaCrawl"])
def test_a_rollout_on_a_log_is_the_environment(name):
    env = started(seed=6, bandwidth=30.0)
    policy = policies.make(name, env)
    daily = []
    observation = env.observation_space.sample()
    while not (daily and env.ledger().time >= 4.0 - 1e-9):
        action, _ = policy.predict(observation)
        if len(daily) == env.tracker().offers.day:
            daily.append(action)
        env.step(action)
    days = play_rates(
        record(lively(seed=6, bandwidth=30.0), 4, 6, keep_events=True),
        lambda day, world: daily[day],
        6,
    )
    assert days == list(env.days())
    assert days[0].crawls == pytest.approx(30, abs=12)


def test_a_rollout_needs_events():
    with pytest.raises(ValueError, match="keep_events"):
        play_rates(record(lively(), 2), lambda day, world: np.zeros(80), 0)


def test_the_big_picture_is_in_evaluate():
    makers = {"uniform": lambda env: policies.make("UniformCrawl", env)}
    rows = list(evaluate(OFFERS, makers, [0], num_pages=50, horizon=2.0))
    values = {row.metric: row.value for row in rows}
    assert {"accuracy", "freshness", "offer_freshness", "changed_share"} <= set(values)
    assert 0.5 < values["offer_freshness"] <= 1.0


def test_the_days_of_an_episode_outlive_it():
    env = batch(2, OFFERS, autoreset_mode="SameStep")
    env.reset(seed=5)
    env.action_space.seed(0)
    seen = []
    for step in range(24):
        if step == 23:
            seen = [env.days(lane) for lane in (0, 1)]
        env.step(env.action_space.sample())
    for lane in (0, 1):
        assert env.days(lane) == ()
        assert len(env.finished_days(lane)) == 2
        assert env.finished_days(lane)[:1] == seen[lane]


def test_observations_have_the_bounds_of_their_columns():
    env = started(horizon=3.0)
    highest = dict(zip(env.features, env.observation_space.high[0], strict=True))
    assert (highest["day_of_week"], highest["change_frequency"]) == (6.0, 12.0)
    assert (highest["days_since_change"], highest["elapsed"]) == (31.0, 3.0)


# Lanes, and bad input


@pytest.mark.parametrize("lane", [-1, 1, "a"])
def test_lanes_that_are_not_there(lane):
    env = started()
    for read in (env.tracker, env.days, env.events, env.last_log, env.ledger, env.held_prices):
        with pytest.raises(ValueError, match="lane must be"):
            read(lane)


def test_foreign_states():
    env, other = started(), started(num_pages=81)
    state = env.get_state()
    for broken in ({}, {**state["world"], "lanes": []}, other.get_state()["world"], None):
        with pytest.raises(ValueError, match="state must be of"):
            env.set_state({**state, "world": broken})
    env.set_state(state)


def test_lanes_of_other_seeds_hold_other_markets():
    env = batch(2, OFFERS)
    env.reset(seed=5)
    merchants = [env.tracker(lane).offers.metadata.merchant for lane in (0, 1)]
    assert not np.array_equal(*merchants)
    single = bare(OFFERS)
    single.reset(seed=6)
    assert np.array_equal(single.tracker().offers.metadata.merchant, merchants[1])
    assert isinstance(env.instances[0], Market)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"action": "page"}, "action must be one of"),
        ({"objective": "binary"}, "objective must be one of"),
        ({"reward": "penalty"}, "reward must be one of"),
        ({"price_history": "all"}, "price_history must be one of"),
        ({"reveal": "everything"}, "reveal must be one of"),
        ({"overspend": "never"}, "overspend must be one of"),
        ({"horizon": 0.05}, "horizon must hold a step"),
        ({"num_pages": 0}, "num_pages must be"),
        ({"bandwidth": -1.0}, "bandwidth must be"),
        ({"first_day": 365}, "first_day must be"),
        ({"world": -1}, "world must be"),
        ({"colour": 1}, "colour"),
    ],
)
def test_bad_arguments(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        gym.make(OFFERS, **given).reset(seed=0)


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        (Instance(np.ones(80), 1.0, bandwidth=1.0), "must be a Market"),
        (lively(81), "must have 80 pages"),
    ],
)
def test_instances_that_do_not_fit(instance, message):
    env = bare(OFFERS, num_pages=80)
    with pytest.raises(ValueError, match=message):
        env.reset(options={"instance": instance})


def test_scores_cannot_choose_more_than_they_were_made_for():
    env = bare(OFFERS, num_pages=80, bandwidth=12.0, action="scores")
    with pytest.raises(ValueError, match="at most 12 crawls per day"):
        env.reset(options={"instance": lively(bandwidth=13.0)})


def test_markets_are_not_simulated_as_if_their_rates_were_constant():
    with pytest.raises(ValueError, match="CrawlOffers-v0"):
        simulate(lively(), policies.make("RoundRobin", features=("elapsed",)), 1.0)


def test_declared_rates_are_checked_and_do_nothing():
    env = started()
    env.declare(np.ones(80))
    with pytest.raises(ValueError, match="change_rate"):
        env.declare(np.ones(3))
