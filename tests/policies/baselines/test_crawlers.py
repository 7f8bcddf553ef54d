"""Public crawlers: their rules step by step, which page is due, and proportional crawling."""

from __future__ import annotations

import time

import gymnasium
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Instance
from policies.base.live import empty_log
from policies.baselines import crawlers as shipped
from tests.naive.crawlers import NutchPage, StormPage, first_due
from tests.policies.replay import CHANGE, ReplayCore, ReplayLane, random_lane, run

SHIPPED = {"NutchAdaptive": NutchPage, "StormCrawlerAdaptive": StormPage}
EVERY_ONE = pytest.mark.parametrize("name", SHIPPED)


def revisits(length, unit, num_pages=1):
    first = np.full(num_pages, float(length))
    return shipped.Revisits(first * unit, first, np.zeros(num_pages))


def reschedule(policy, page, now, changed, kept):
    arguments = (np.atleast_1d(page), np.atleast_1d(now) * 1.0, np.atleast_1d(changed))
    policy.kernel(policy.rule, *arguments, kept)


@EVERY_ONE
def test_rules_step_by_step(name):
    policy, twin = policies.make(name), SHIPPED[name]()
    kept = revisits(*policy.first_interval)
    assert kept.due[0] == pytest.approx(twin.due, rel=1e-15)
    rng = np.random.default_rng(0)
    now = 0.0
    for _ in range(3000):
        now = float(twin.due) + rng.exponential(rng.choice([0.0, 0.001, 30.0]))
        changed = bool(rng.random() < rng.choice([0.1, 0.5, 0.9]))
        twin.crawl(now, changed)
        reschedule(policy, 0, now, changed, kept)
        assert kept.interval[0] == pytest.approx(twin.interval, rel=1e-11)
        assert kept.due[0] == pytest.approx(twin.due, rel=1e-11)
        twin.interval, twin.due = type(twin.interval)(kept.interval[0]), kept.due[0]


def test_nutch_by_hand():
    policy = policies.NutchAdaptive()
    kept = revisits(*policy.first_interval)
    assert kept.due[0] == 30.0
    reschedule(policy, 0, 30.0, False, kept)  # 30 * 1.4 = 42 > 30 days since the change; - 0.3 * 30
    assert kept.due[0] == pytest.approx(30.0 + 42.0 - 9.0)
    reschedule(policy, 0, 63.0, False, kept)  # 63 days since the change > 42 * 1.4; - 0.3 * 63
    assert kept.due[0] == pytest.approx(63.0 + 63.0 - 18.9)
    reschedule(policy, 0, 107.1, True, kept)
    assert kept.due[0] == pytest.approx(107.1 + 0.8 * 63.0)
    plain = policies.NutchAdaptive(sync_delta=False, inc_rate=0.2)
    kept = revisits(*plain.first_interval)
    reschedule(plain, [0, 0], [30.0, 66.0], [False, True], kept)
    assert kept.due[0] == pytest.approx(66.0 + 30.0 * 1.2 * 0.8)


def test_limits_of_intervals():
    nutch = policies.NutchAdaptive(min_interval=3600.0, day=24.0)  # time in hours
    kept = revisits(*nutch.first_interval)
    assert kept.due[0] == pytest.approx(30.0 * 24.0)
    for now in range(100):
        reschedule(nutch, 0, float(now), True, kept)
    assert kept.due[0] == pytest.approx(99.0 + 1.0)
    for now in range(40):
        reschedule(nutch, 0, 100.0 + 3000.0 * now, False, kept)
        assert kept.due[0] <= 100.0 + 3000.0 * now + 90.0 * 24.0 * (1.0 + 1e-12)
    storm = policies.StormCrawlerAdaptive()
    kept = revisits(*storm.first_interval)
    for now in range(30):
        reschedule(storm, 0, float(now), False, kept)
    assert kept.interval[0] == 20160.0
    for now in range(30, 60):
        reschedule(storm, 0, float(now), True, kept)
    assert kept.interval[0] == 60.0
    frozen = policies.StormCrawlerAdaptive(fetch_interval_default=1, fetch_interval_min=1)
    kept = revisits(*frozen.first_interval)
    for now in range(5):
        reschedule(frozen, 0, float(now), False, kept)
    assert kept.interval[0] == 1.0


@EVERY_ONE
@pytest.mark.parametrize("form", ["page", "scores", "refresh"])
def test_decisions_are_those_of_the_twin(name, form):
    rng = np.random.default_rng(3)
    change_rate = rng.uniform(0.1, 3.0, 20)
    events = [
        (when, CHANGE, page)
        for page in range(20)
        for when in rng.uniform(0.0, 300.0, rng.poisson(300.0 * change_rate[page]))
    ]
    lane = ReplayLane(Instance(np.ones(20), change_rate, bandwidth=4.0), events, 300.0)
    batch = 3 if form == "scores" else 1
    core = ReplayCore(lane, action_form=form, batch=batch)
    policy = policies.make(name, core)
    twins = [SHIPPED[name]() for _ in range(20)]
    observation = core.reset()
    sizes = []
    for _ in range(1000 // batch):
        now = lane.time
        if form == "refresh":
            expected = [number for number, twin in enumerate(twins) if twin.due <= now]
        else:
            order = sorted((twin.due, number) for number, twin in enumerate(twins))
            expected = [number for _, number in order[:batch]]
        action, _ = policy.predict(observation)
        np.testing.assert_array_equal(policy.predict(observation)[0], action)
        if form == "page":
            assert action[0] == expected[0] == first_due(twins)
        elif form == "refresh":
            assert np.flatnonzero(action[0]).tolist() == expected
        else:
            assert np.argsort(-action[0], kind="stable")[:batch].tolist() == expected
        sizes.append(len(expected))
        observation = core.step(action)
        log = lane.log
        for page, when, changed in zip(log.page, log.time, log.changed, strict=True):
            twins[page].crawl(when, changed)
    if form == "refresh":
        assert min(sizes) == 0
        assert max(sizes) > 1


@EVERY_ONE
def test_every_slot_is_used_and_ties_go_to_the_lowest_index(name):
    core = ReplayCore(ReplayLane(Instance(np.ones(6), 0.0, bandwidth=10.0), (), 3.0))
    assert run(policies.make(name, core), core, 6)[0] == [0, 1, 2, 3, 4, 5]


@EVERY_ONE
def test_pages_that_are_born_die_and_are_born_again(name):
    core = ReplayCore(random_lane(4, 1, bandwidth=1.0, horizon=50.0))
    lane, policy = core.lanes[0], policies.make(name, core)
    observation = core.reset()
    rng = np.random.default_rng(0)
    crawled = set()
    for _ in range(120):
        lane.alive = rng.random(4) < 0.6
        (page,), _ = policy.predict(observation)
        if lane.alive.any():
            assert lane.alive[page]
            crawled.add(int(page))
        else:
            assert page == 0
        observation = core.step([page])
    assert crawled == {0, 1, 2, 3}


def test_late_pages_are_due_one_default_interval_after_their_birth():
    lane = ReplayLane(Instance(np.ones(2), 0.0, bandwidth=1.0), (), 100.0)
    core = ReplayCore(lane, action_form="refresh")
    policy = policies.make("StormCrawlerAdaptive", core, fetch_interval_default=4320)
    observation = core.reset()
    lane.alive = np.array([True, False])
    born, due = 9.0, []
    for _ in range(20):
        if lane.time >= born:
            if not lane.alive[1]:
                lane.pages.advance(empty_log(), lane.time, births={1: born})
            lane.alive = np.array([True, True])
        action, _ = policy.predict(observation)
        due += [lane.time] if action[0][1] else []
        observation = core.step(action)
    assert due[0] == 12.0


# Proportional crawling in disguise: the mean interval times the change rate is one number


@pytest.mark.parametrize(
    ("name", "arguments", "low", "high"),
    [
        ("NutchAdaptive", {}, 1.11, 1.15),
        ("NutchAdaptive", {"sync_delta": False}, 0.99, 1.03),
        ("StormCrawlerAdaptive", {}, 0.49, 0.66),
    ],
)
def test_intervals_are_in_proportion_to_mean_lifetimes(name, arguments, low, high):
    rng = np.random.default_rng(7)
    policy = policies.make(name, **arguments)
    products = []
    for change_rate in (0.1, 0.3, 1.0, 3.0):
        pages = 200
        kept = revisits(*policy.first_interval, pages)
        before, count, spent = np.zeros(pages), 0, 0.0
        for crawl in range(600):
            now = kept.due.copy()
            changed = rng.random(pages) < -np.expm1(-change_rate * (now - before))
            if crawl >= 100:
                spent, count = spent + (now - before).sum(), count + pages
            reschedule(policy, np.arange(pages), now, changed, kept)
            before = now
        products.append(spent / count * change_rate)
    assert low <= min(products)
    assert max(products) <= high


# With the environments


@EVERY_ONE
def test_a_decision_costs_little(name):
    settings = {"num_pages": 1000, "bandwidth": 1000.0, "horizon": 10.001, "action": "page"}
    env = gymnasium.make("CrawlHarmonic-v0", instance="mixed", **settings)
    policy = policies.make(name, env)
    observation, _ = env.reset(seed=1)
    policy.predict(observation)
    began = time.perf_counter()
    for _ in range(9_000):
        action, _ = policy.predict(observation)
        observation, *_ = env.step(action)
    assert time.perf_counter() - began < 9.0  # a second is usual
    env.close()
