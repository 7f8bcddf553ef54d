"""Lanes of offers are their twins, step by step: prices, crawls, clicks, features and measures."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import cycle, product

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs.evaluation import play
from tests.crawl_envs.worlds.offers.markets import KINDS, market_of
from tests.environments import OFFERS
from tests.naive import market as naive_market
from tests.naive import pages as naive

STEPS, SEED = 12, 5
BANDWIDTHS = (20.0, 7.3)
"""Crawls per day of two lanes; neither is a whole number of crawls per step."""
FORMS = ("rates", "scores", "refresh", "page")


class Pair:
    """A lane of an environment and its twin in an episode."""

    def __init__(self, env, lane, episode):
        self.env, self.lane, self.form = env, lane, env.action_form
        self.market = env.instances[lane]
        _, tape, choices = naive.roots(SEED + lane)
        self.twin = naive_market.Tracker(self.market.law, tape, episode)
        self.stream, self.steps = naive.Stream(choices, episode), 0
        self.day, self.lead = -1, 0
        if env.lanes.start == "crawled":
            self.play_round()
        self.twin.advance(self.decision())
        self.assert_same_day()

    def play_round(self):
        """Crawl the offers once, in order, or at equal rates."""
        count, bandwidth = self.market.num_pages, Fraction(self.market.bandwidth)
        self.lead = count if self.form == "page" else math.ceil(count / bandwidth * STEPS)
        for step in range(self.lead):
            slots = range(step, step + 1)
            if self.form != "page":  # those that are paid by the end of the step
                slots = [k for k in range(count) if step < (k + 1) / bandwidth * STEPS <= step + 1]
            if self.form == "rates":
                chance = 1.0 / STEPS * (self.market.bandwidth / count)
                slots = naive_market.systematic([chance] * count, self.stream.uniform())
            time = (step + 1) / self.market.bandwidth if self.form == "page" else step / STEPS
            self.twin.advance(time)
            self.twin.crawl(list(slots))
        self.steps = -1
        self.twin.advance(self.decision() if self.form == "page" else self.lead / STEPS)
        self.steps = 0
        self.twin.begin()

    def decision(self):
        """The time of the next decision."""
        if self.form == "page":
            return (self.lead + self.steps + 1) / self.market.bandwidth
        return (self.lead + self.steps) / STEPS

    def chosen(self, action):
        """The offers that an action crawls."""
        offers, bandwidth = range(self.market.num_pages), self.market.bandwidth
        if self.form == "page":
            return [int(action) % len(offers)]
        if self.form == "refresh":
            return np.flatnonzero(action).tolist()
        if self.form == "scores":
            due = [math.floor(Fraction(bandwidth) * (self.steps + k) / STEPS) for k in (0, 1)]
            return sorted(offers, key=lambda offer: -action[offer])[: due[1] - due[0]]
        rates = [min(rate, float(STEPS)) for rate in action.tolist()]
        scale = min(bandwidth / sum(rates), 1.0) if sum(rates) > 0.0 else 1.0
        chances = [1.0 / STEPS * (rate * scale) for rate in rates]
        return naive_market.systematic(chances, self.stream.uniform())

    def step(self, action, objective, reward, info):
        """Play a step of the twin and compare the outcomes."""
        twin, lane = self.twin, self.lane
        clicks, hits = twin.clicks, twin.hits
        chosen = self.chosen(action)
        log = twin.crawl(chosen)
        start, self.steps = self.decision(), self.steps + 1
        fresh, expected, offers = twin.advance(self.decision())
        shares = (
            fresh / expected if expected else 0.0,
            offers / ((self.decision() - start) * self.market.num_pages),
        )
        shown = [info[f"{name}_freshness"][lane] for name in ("click", "offer")]
        assert shown == pytest.approx(shares, abs=1e-12)
        assert reward == shown[objective == "offers"]
        counts = [info[name][lane] for name in ("requests", "hits", "crawls")]
        assert counts == [twin.clicks - clicks, twin.hits - hits, len(chosen)]
        return log

    def assert_same(self, log):
        """Compare the log of the last step, and what the lane knows and holds."""
        env, lane, twin = self.env, self.lane, self.twin
        mine = env.last_log(lane)
        columns = (mine.page, mine.time, mine.elapsed, mine.changed, mine.price)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == log
        assert env.held_prices(lane).tolist() == twin.held
        assert np.flatnonzero(env.lanes.fresh(lane)).tolist() == twin.fresh()
        tracker = env.tracker(lane)
        assert tracker.time == twin.time == self.decision()
        last = [crawls[-1] if crawls else (0.0, -1) for crawls in twin.crawls]
        assert tracker.elapsed.tolist() == [twin.time - time for time, _ in last]
        assert tracker.changed.tolist() == [changed for _, changed in last]
        self.assert_same_day()
        ledger = env.ledger(lane)
        counts = (ledger.requests, ledger.hits, ledger.crawls, ledger.changes, ledger.changes_found)
        found = (twin.num_crawls(), twin.changes, twin.num_found())
        assert counts == (twin.clicks, twin.hits, *found)

    def assert_same_day(self):
        """Compare the features as a day begins, and the records of days."""
        if self.twin.day == self.day:
            return
        self.day, crawled = self.twin.day, self.env.lanes.price_history == "crawled"
        features = self.env.tracker(self.lane).offers
        expected = self.twin.features(crawled)
        assert features.day == self.day
        columns = self.env.lanes.observation(self.lane).T
        for name, values in expected.items():
            assert getattr(features, name).tolist() == values, name
            assert columns[self.env.lanes.features.index(name)].tolist() == values, name
        assert list(map(tuple, self.env.days(self.lane))) == self.twin.days

    def assert_same_ledger(self, objective):
        ledger, twin = self.env.ledger(self.lane), self.twin
        fresh, expected, offers = (math.fsum(area) for area in zip(*twin.areas, strict=True))
        if objective == "offers":
            fresh, expected = offers, (twin.time - twin.origin) * self.market.num_pages
        shown = (ledger.fresh_time, ledger.alive_time)
        assert shown == pytest.approx((fresh, expected), rel=1e-12, abs=1e-12)
        fresh = np.mean([day[3] for day in twin.days]) if twin.days else math.nan
        assert ledger.offer_freshness == pytest.approx(fresh, abs=1e-15, nan_ok=True)


def assert_twins(kind, form, objective, price_history, horizon=2.5, episodes=2, start="fresh"):
    """Play two lanes for some episodes, with autoresets; return a twin at its end."""
    most = STEPS * market_of(kind, SEED).num_pages
    markets = [market_of(kind, SEED + lane, min(BANDWIDTHS[lane], most)) for lane in (0, 1)]
    env = gym.make_vec(
        OFFERS,
        num_envs=2,
        num_pages=markets[0].num_pages,
        bandwidth=markets[0].bandwidth,
        horizon=horizon,
        objective=objective,
        price_history=price_history,
        autoreset_mode="SameStep",
        action=form,
        start=start,
    ).unwrapped
    env.reset(seed=SEED, options={"instance": markets})
    env.action_space.seed(SEED)
    number = [0, 0]
    pairs = [Pair(env, lane, 0) for lane in (0, 1)]
    while min(number) < episodes:
        actions = env.action_space.sample()
        if form == "rates":
            actions *= np.random.default_rng(pairs[0].steps).choice([0.0, 0.05, 1.0], 2)[:, None]
        _, rewards, _, over, info = env.step(actions)
        for lane, pair in enumerate(pairs):
            if over[lane]:
                finished = list(map(tuple, env.finished_days(lane)))
                pair.step(actions[lane], objective, rewards[lane], info["final_info"])
                assert finished == pair.twin.days
                number[lane], played = number[lane] + 1, pair.twin
                pairs[lane] = Pair(env, lane, number[lane])
            else:
                log = pair.step(actions[lane], objective, rewards[lane], info)
                pair.assert_same(log)
                pair.assert_same_ledger(objective)
    return played


OTHERS = [kind for kind in KINDS if kind not in ("ordinary", "one offer")]


@pytest.mark.parametrize(
    ("kind", "form"),
    [*product(("ordinary", "one offer"), FORMS), *zip(OTHERS, cycle(FORMS), strict=False)],
)
def test_lanes_are_their_twins(kind, form):
    assert_twins(kind, form, "clicks", "log")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("kind", "objective"), [("ordinary", "offers"), ("certainties", "clicks")])
def test_features_may_count_only_the_changes_that_crawls_find(kind, objective, form):
    assert_twins(kind, form, objective, "crawled")


@pytest.mark.parametrize("price_history", ["log", "crawled"])
@pytest.mark.parametrize("form", FORMS)
def test_crawled_collections_are_their_twins(form, price_history):
    twin = assert_twins("ordinary", form, "offers", price_history, start="crawled")
    assert twin.origin > 0.5


def test_changes_found_are_forgotten_after_30_days():
    twin = assert_twins("ordinary", "rates", "clicks", "crawled", horizon=40.0, episodes=1)
    assert 0 < twin.hits < twin.clicks
    assert 0 < twin.num_found() < twin.num_crawls()


@pytest.mark.parametrize(
    ("form", "name"),
    [("page", "Greedy"), ("page", "RoundRobin"), ("page", "LambdaCrawl"), ("rates", "LambdaCrawl")],
)
def test_policies_play_alike_compiled_and_step_by_step(form, name):
    """Also over midnights; rates are sampled at steps, never at random instants."""
    env = gym.make(
        OFFERS, num_pages=30, bandwidth=50.0, horizon=2.5, action=form, reveal="parameters"
    )
    env.reset(seed=1)
    policy = policies.make(name, env)
    slow, fast = (play(env, policy, 1, compiled=compiled) for compiled in (False, True))
    assert slow.hits > 0
    assert dataclasses.astuple(fast) == dataclasses.astuple(slow)
