"""Promises: what is due comes first, in every form of action, and nothing is ever late."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import instances
from crawl_envs.evaluation import simulate
from crawl_envs.types import Instance, Problem
from policies.live import CrawlScheduler
from policies.values.promises import lead_of, promise_table
from tests.naive.promises import due_pages
from tests.policies.replay import ReplayCore, random_lane

M = 24
MIXED = np.where(np.arange(M) % 3 == 0, np.inf, np.geomspace(7.0, 30.0, M))
NAMES = [
    *("Greedy", "GreedyCIS", "GreedyNCIS", "GreedyNCISApprox", "LagrangianIndex", "RoundRobin"),
    "BeliefNCIS",
]


def latest(rollout, intervals):
    """Return by how much the latest page is late, until the end; < 0 if no page is late."""
    last, worst = np.zeros(rollout.num_pages), np.full(rollout.num_pages, -math.inf)
    for page, time in zip(rollout.crawls, rollout.times, strict=True):
        worst[page], last[page] = max(worst[page], time - last[page]), time
    worst = np.maximum(worst, rollout.times[-1] - last)
    return (worst - intervals).max()


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_steps_rollout_and_sorted_deadlines_choose_the_same_pages(name, spread):
    env = gym.make(
        "CrawlNCIS-v0",
        num_pages=M,
        bandwidth=5.0,
        instance="noisy",
        horizon=60.0,
        cost_spread=spread,
    )
    observation, _ = env.reset(seed=6)
    core = env.unwrapped
    policy = policies.make(name, env, most_interval=MIXED)
    free = policies.make(name, env)
    costs = np.ones(M) if core.problem.cost is None else core.problem.cost
    crawls, forced, over = [], 0, False
    while not over:
        ages = core.tracker().elapsed
        due = due_pages(MIXED, costs, 5.0, costs.max() / 5.0, ages)
        free_choice = int(free.predict(observation)[0])  # always, as learners read each log
        expected = due[0] if due else free_choice
        chosen = int(policy.predict(observation)[0])
        assert chosen == expected
        forced += bool(due)
        crawls.append(chosen)
        observation, _, _, over, _ = env.step(chosen)
    rollout = simulate(core.instance, policies.make(name, most_interval=MIXED), 60.0, seed=6)
    np.testing.assert_array_equal(rollout.crawls, crawls)
    assert (forced > 0) == (name != "RoundRobin")
    assert forced < len(crawls)
    assert latest(rollout, MIXED) < 0.0


def test_a_promise_can_be_given_to_a_policy_later():
    instance = instances.make("noisy", num_pages=M, bandwidth=5.0, seed=1)
    free = policies.make("GreedyNCIS", most_interval=9.0)
    late, early = free.promising(2.0), policies.make("GreedyNCIS", most_rounds=2.0)
    rollouts = [simulate(instance, policy, 60.0, seed=6) for policy in (free, late, early)]
    np.testing.assert_array_equal(rollouts[1].crawls, rollouts[2].crawls)
    assert (rollouts[0].crawls != rollouts[1].crawls).any()
    with pytest.raises(ValueError, match="most_rounds must be > 0"):
        free.promising(0.0)


def test_pages_that_are_born_later_are_promised_from_their_birth():
    env = gym.make("CrawlOffers-v1", num_pages=8, horizon=30.0, bandwidth=10.0, action="page")
    policy = policies.make("RoundRobin", env, most_interval=2.0)
    observation, _ = env.reset(seed=0)
    over, ages = False, []
    while not over:
        observation, _, _, over, _ = env.step(policy.predict(observation)[0])
        ages.append(env.unwrapped.tracker().elapsed[env.unwrapped.tracker().alive].max(initial=0.0))
    assert max(ages) <= 2.0


@pytest.mark.parametrize("times", [3.0, 0.45])
@pytest.mark.parametrize("batch", [1, 4])
def test_scores_have_the_due_pages_first(batch, times):
    """By deadlines where promises take less than half of the bandwidth, else by age / M."""
    intervals = times * MIXED
    assert ((1.0 / intervals).sum() / 4.0 > 0.5) == (times < 1.0)
    core = ReplayCore(random_lane(M, 7, bandwidth=4.0), action_form="scores", batch=batch)
    policy = policies.make("GreedyNCIS", core, most_interval=intervals)
    observation, lengths = core.reset(), set()
    for _ in range(200 // batch):
        action, _ = policy.predict(observation)
        due = due_pages(intervals, np.ones(M), 4.0, batch / 4.0, core.tracker().elapsed)[:batch]
        assert np.argsort(-action[0], kind="stable")[: len(due)].tolist() == due
        lengths.add(len(due))
        observation = core.step(action)
    assert len(lengths) > 1


def test_refresh_serves_every_due_page_at_the_last_decision_before_its_deadline():
    core = ReplayCore(random_lane(M, 7, bandwidth=4.0), action_form="refresh")
    tight = MIXED / 50.0 + 0.5  # far more than the bandwidth, which is no limit here
    assert (1.0 / tight).sum() > 4.0
    policy = policies.make("GreedyNCIS", core, most_interval=tight, threshold=1e300)
    observation = core.reset()
    for _ in range(100):
        action, _ = policy.predict(observation)
        due = due_pages(tight, np.zeros(M), 4.0, 0.25, core.tracker().elapsed)
        assert np.flatnonzero(action[0]).tolist() == sorted(due)
        assert (core.tracker().elapsed <= tight).all()
        observation = core.step(action)


def test_a_round_is_the_time_of_a_crawl_of_every_page_at_the_least_bandwidth():
    cost = np.array([1.0, 2.0, 3.0])
    problem = Problem(3, 6.0, importance=np.ones(3), bandwidth_steps=((5.0, 2.0),))
    paid = Problem(3, 6.0, importance=np.ones(3), bandwidth_steps=((5.0, 2.0),), cost=cost)
    policy = policies.RoundRobin(most_rounds=[8.0, np.inf, 16.0])
    for known, costs, unit in ((problem, np.ones(3), 1.5), (paid, cost, 3.0)):
        wanted = policies.RoundRobin(most_interval=np.array([8.0, np.inf, 16.0]) * unit)
        np.testing.assert_array_equal(policy.promises(known), wanted.promises(known))
        used = math.fsum(costs / (np.array([8.0, np.inf, 16.0]) * unit)) / 2.0
        share = math.ceil(used * 32.0 / 31.0 * 256.0) / 256.0
        assert policy.promises(known)[0, 0] == pytest.approx(
            8.0 * unit * (1.0 - share) - costs.max() / 2.0
        )


# Nothing is late


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_no_page_is_late_where_deadlines_are_proved_to_be_met(seed, spread):
    """Even where all pages were copied at once, and the policy prefers pages without promises."""
    rng = np.random.default_rng(seed)
    m, bandwidth = 60, 20.0
    cost = np.exp(spread * rng.standard_normal(m))
    intervals = rng.choice([1.0, 1.7, 4.0, 9.0, np.inf], m, p=[0.1, 0.2, 0.3, 0.3, 0.1])
    intervals *= (cost / intervals).sum() / bandwidth / rng.uniform(0.2, 0.45)
    instance = Instance(rng.random(m), rng.random(m), bandwidth=bandwidth, cost=cost)
    table = promise_table("", intervals, cost, bandwidth, cost.max() / bandwidth)
    proved = (table[:, 0] >= intervals / 2.1)[intervals < np.inf].all()
    rollout = simulate(instance, policies.Greedy(most_interval=intervals), 200.0, seed)
    assert latest(rollout, intervals) <= 0.0 or not proved
    assert proved or spread > 0.0
    assert latest(simulate(instance, policies.Greedy(), 200.0, seed), intervals) > 0.0


@pytest.mark.parametrize("rounds", [1.0, 1.01, 1.0 / 0.95, 3.0])
def test_equal_promises_are_kept_up_to_all_of_the_bandwidth(rounds):
    instance = instances.make("noisy", num_pages=50, bandwidth=20.0, seed=1)
    rollout = simulate(instance, policies.GreedyNCIS(most_rounds=rounds), 100.0)
    assert latest(rollout, 2.5 * rounds) <= 1e-9


@pytest.mark.parametrize(
    ("short", "long", "most"),
    [((45, 100.0), (450, 3000.0), 0.93), ((12, 30.0), (400, 1000.0), 1.25)],
)
def test_long_intervals_are_not_starved_where_promises_take_most_of_the_bandwidth(
    short, long, most
):
    """All pages are copied at once; by deadlines the latest would be over four times too old."""
    intervals = np.concatenate([np.full(*pages) for pages in (short, long)])
    rng = np.random.default_rng(0)
    instance = Instance(*rng.random((2, intervals.size)), bandwidth=1.0)
    rollout = simulate(instance, policies.GreedyNCIS(most_interval=intervals), 3.0 * long[1])
    last, worst = np.zeros(intervals.size), 0.0
    for page, time in zip(rollout.crawls, rollout.times, strict=True):
        worst, last[page] = max(worst, (time - last[page]) / intervals[page]), time
    assert max(worst, ((rollout.times[-1] - last) / intervals).max()) <= most


def test_the_lead_has_few_steps_and_keeps_u_at_most_1():
    leads = [lead_of(used, 1.0, 9.0) for used in np.linspace(0.9, 1.0, 5001)]
    assert len(set(leads)) < 40
    for used, lead in zip(np.linspace(0.9, 1.0, 5001), leads, strict=True):
        assert used / (1.0 - lead.shortening) <= lead.share <= 1.0
        assert 0.0 <= lead.shortening <= 1.0 / 32.0
    assert lead_of(1.01, 1.0, 9.0).share > 1.0


def test_no_promise_and_infinite_promises_change_nothing():
    instance = instances.make("noisy", num_pages=50, bandwidth=20.0, seed=1)
    plain = simulate(instance, policies.GreedyNCIS(), 50.0)
    never = policies.GreedyNCIS(most_interval=np.full(50, np.inf))
    np.testing.assert_array_equal(simulate(instance, never, 50.0).crawls, plain.crawls)


def test_costs_that_the_policy_ignores_still_count():
    instance = instances.make("noisy", num_pages=50, bandwidth=20.0, seed=1, cost_spread=1.0)
    policy = policies.RoundRobin(most_interval=instance.cost.sum() / 20.0 / 1.2)
    with pytest.raises(ValueError, match=r"u = 1\.2 "):
        simulate(instance, policy, 50.0)


# Bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"most_interval": 0.0}, "most_interval must be > 0, inf for none, got 0.0"),
        ({"most_rounds": [1.0, np.nan]}, "most_rounds must be > 0"),
        ({"most_interval": "day"}, "most_interval must be a number"),
        ({"most_interval": 1.0, "most_rounds": 2.0}, "most_rounds must be None with most_interval"),
    ],
)
def test_bad_promises_are_refused_at_once(settings, message):
    with pytest.raises(ValueError, match=message):
        policies.GreedyNCIS(**settings)


@pytest.mark.parametrize(
    ("settings", "bandwidth", "message"),
    [
        ({"most_interval": 2.0}, 1.0, r"u = 2 of the bandwidth 1 .* bandwidth of at least 2,"),
        ({"most_rounds": 0.5}, 1.0, "most_rounds must be possible to keep, got u = 2"),
        ({"most_interval": [0.5, *[np.inf] * 3]}, 1.0, "shortest interval of 0.5"),
        ({"most_interval": [1.0, 2.0]}, 1.0, r"be one or \(4,\), got shape \(2,\)"),
        ({"most_interval": 9.0}, math.nan, r"u = nan of the bandwidth nan .* at least 0\.444444"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused_at_the_start(settings, bandwidth, message):
    policy = policies.RoundRobin(**settings)
    problem = Problem(4, bandwidth, importance=np.ones(4))
    with pytest.raises(ValueError, match=message):
        policy.compile(problem, 0, np.random.default_rng(0))


def test_a_batch_must_fit_into_the_shortest_interval():
    problem = Problem(4, 1.0, importance=np.ones(4))
    policy = policies.RoundRobin(most_interval=[3.0, *[np.inf] * 3])
    policy.in_form("scores", 3).promises(problem)
    with pytest.raises(ValueError, match="intervals of at least 4"):
        policy.in_form("scores", 4).promises(problem)


def test_observations_do_not_show_the_bandwidth():
    with pytest.raises(ValueError, match="features must be None for RoundRobin"):
        policies.make("RoundRobin", features=["elapsed", "importance"], most_interval=9.0)


def test_a_scheduler_refuses_a_policy_with_promises_of_its_own():
    scheduler = CrawlScheduler(policies.RoundRobin(most_interval=9.0), 5.0)
    with pytest.raises(ValueError, match="give these to the scheduler: most_interval"):
        scheduler.add(["a", "b"])
