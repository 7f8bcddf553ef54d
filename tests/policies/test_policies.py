"""Policies: published crawl sequences, episodes and lanes, delays, rates, real environments."""

from __future__ import annotations

import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Instance
from policies import solvers
from policies.base import index, schedules
from tests.policies.replay import CHANGE, REQUEST, SIGNAL, ReplayCore, ReplayLane, random_lane, run
from tests.reference import reference

PUBLISHED = {
    "GREEDY": ("Greedy", {}),
    "GREEDY-CIS-I1": ("GreedyCIS", {"reading": "I1"}),
    "GREEDY-CIS-I2": ("GreedyCIS", {}),
    "GREEDY-CIS-I3": ("GreedyCIS", {"reading": "I3"}),
    "GREEDY-NCIS": ("GreedyNCIS", {}),
    "GREEDY-NCIS delayed": ("GreedyNCIS", {}),
    "GREEDY-NCIS delayed discard5/R": ("GreedyNCIS", {"delay_window": 5.0}),
    "APPROX-1": ("GreedyNCISApprox", {"terms": 1}),
    "APPROX-2": ("GreedyNCISApprox", {"terms": 2}),
}


def recorded_lane(world, delayed):
    """A lane that plays the events of ncis_events.json."""
    instance = Instance(
        world["mu"], world["Delta"], world["lam"], world["nu"], bandwidth=world["R"]
    )
    given = world["events"]
    changes = list(zip(given["change_t"], given["change_page"], strict=True))
    signals = [
        change for change, sent in zip(changes, given["change_signalled"], strict=True) if sent
    ]
    signals += zip(given["false_t"], given["false_page"], strict=True)
    if delayed:
        signals = [
            (time + delay, page)
            for (time, page), delay in zip(signals, given["delays"], strict=True)
        ]
    requests = zip(given["request_t"], given["request_page"], strict=True)
    events = [
        (time, kind, page)
        for kind, rows in ((CHANGE, changes), (SIGNAL, signals), (REQUEST, requests))
        for time, page in rows
    ]
    return ReplayLane(instance, events, world["T"])


@pytest.mark.parametrize("world", range(4))
@pytest.mark.parametrize("name", PUBLISHED)
def test_reference_crawl_sequences(world, name):
    known = reference("ncis_events")[world]
    if name not in known["results"]:
        assert known["name"] == "S2"  # without false signals, all readings are one
        return
    result = known["results"][name]
    lane = recorded_lane(known, "delayed" in name)
    policy_name, arguments = PUBLISHED[name]
    if "delay_window" in arguments:
        arguments = {"delay_window": arguments["delay_window"] / known["R"]}
    core = ReplayCore(lane)
    crawled = run(policies.make(policy_name, core, **arguments), core, core.num_slots())
    assert crawled[0] == result["crawl_sequence"]
    assert (lane.hits, lane.requests) == (result["hits"], result["requests"])


@pytest.mark.parametrize("case", range(3))
def test_reference_first_picks_of_greedy(case):
    known = reference("greedy_deterministic")[case]
    rng = np.random.default_rng(known["seed"])
    change_rate, importance = rng.random(known["m"]), rng.random(known["m"])
    core = ReplayCore(ReplayLane(Instance(importance, change_rate, bandwidth=100.0), (), 3.0))
    assert run(policies.Greedy(core), core, 300)[0] == known["greedy_first300"]


def test_arguments_reach_the_policy():
    core = ReplayCore(random_lane(3, 0))
    assert policies.make("GreedyNCISApprox", core, terms=3).terms == 3
    assert policies.make("GreedyCIS", core, reading="I1").reading == "I1"
    compiled = policies.make("GreedyNCIS", core, delay_window=0.5).compile(
        core.lanes[0].instance.problem(), 0, np.random.default_rng(0)
    )
    assert compiled.delay_window == 0.5


# Steps and compiled forms


def test_round_robin_crawls_in_turn():
    core = ReplayCore(random_lane(7, 1))
    assert run(policies.RoundRobin(core), core, 20)[0] == [slot % 7 for slot in range(20)]


def test_best_page_in_plain_python():
    rng = np.random.default_rng(0)
    for _ in range(50):
        elapsed = rng.integers(0, 4, 9) * 1.0
        alive = rng.random(9) < 0.6
        compiled = policies.RoundRobin(features=("elapsed",))._index(
            Instance(np.ones(9), 1.0, bandwidth=1.0).problem()
        )
        arguments = (*compiled, elapsed, np.zeros(9), alive)
        values = np.where(alive, elapsed, -np.inf)
        np.testing.assert_array_equal(index.page_values(*arguments), values)
        assert index.best_page(*arguments) == (np.argmax(values) if alive.any() else 0)


# Episodes and lanes


def test_random_crawl_draws_new_pages_in_each_episode():
    core = ReplayCore(random_lane(6, 1))
    policy = policies.RandomCrawl(core)
    first, second = run(policy, core, 30)[0], run(policy, core, 30)[0]
    assert first != second
    np.testing.assert_array_equal(
        second, schedules.random(np.ones(6), 50, np.random.default_rng([1, 2]))[:30]
    )


# Delay windows


def test_delay_window_from_the_definition():
    window = 0.4
    lane = random_lane(5, 8, horizon=10.0)
    core = ReplayCore(lane)
    policy = policies.GreedyNCIS(core, delay_window=window)
    observation = core.reset()
    compiled = policy.compile(lane.instance.problem(), 0, np.random.default_rng(0))
    signals = [(time, page) for time, kind, page in lane.events if kind == SIGNAL]
    discarded = 0
    for _ in range(99):
        action, _ = policy.predict(observation)
        counted = np.zeros(5)
        for time, page in signals:
            if lane.last_crawl[page] < time < lane.time:
                counted[page] += time - lane.last_crawl[page] > window
        known = lane.tracker()
        discarded += int((known.signals - counted).sum())
        assert action[0] == index.best_page(
            compiled.value, compiled.parameters, known.elapsed, counted, known.alive
        )
        observation = core.step(action)
    assert discarded > 20


def test_time_zero_counts_as_a_crawl_of_every_page():
    instance = Instance([1.0, 1.0], 1.0, 0.9, 0.1, bandwidth=1.0)
    core = ReplayCore(ReplayLane(instance, [(0.6, SIGNAL, 1)]))
    assert run(policies.GreedyNCIS(core, delay_window=0.5), core, 1)[0] == [1]
    missed = ReplayCore(ReplayLane(instance, [(0.6, SIGNAL, 1)]))
    assert run(policies.GreedyNCIS(missed, delay_window=0.7), missed, 1)[0] == [0]


def test_policy_that_joins_an_episode_starts_from_what_is_known():
    lane = random_lane(5, 8, horizon=10.0)
    core = ReplayCore(lane)
    core.reset()
    for page in (0, 1, 2):
        observation = core.step([page])
    policy = policies.GreedyNCIS(core, delay_window=0.3)
    plain = policies.GreedyNCIS(core)
    assert policy.predict(observation)[0] == plain.predict(observation)[0]


# Allocated rates


@pytest.mark.parametrize("schedule", ["low_discrepancy", "random"])
def test_allocated_policies_crawl_at_their_rates(schedule):
    lane = random_lane(10, 4, bandwidth=5.0, horizon=400.0)
    core = ReplayCore(lane)
    problem = lane.instance.problem()
    for name, expected in (
        (
            "LowDiscrepancy",
            solvers.binary_periodic(problem.importance, problem.change_rate, 5.0).rates,
        ),
        ("UniformCrawl", np.full(10, 0.5)),
        ("ChangeRateCrawl", problem.change_rate * 5.0 / problem.change_rate.sum()),
    ):
        policy = policies.make(name, core, schedule=schedule)
        np.testing.assert_allclose(policy.rates(problem, 5.0), expected)
        pages = policy.compile(problem, 2000, np.random.default_rng(0)).pages
        made = np.bincount(pages, minlength=10)
        tolerance = 100.0 if schedule == "random" else 1.0
        assert np.abs(made - 400.0 * expected).max() < tolerance


def test_low_discrepancy_follows_the_bandwidth():
    instance = Instance(
        [1.0, 1.0, 1.0],
        [0.1, 1.0, 4.0],
        bandwidth=0.5,
        bandwidth_steps=[(100.0, 8.0), (200.0, 0.5)],
    )
    policy = policies.LowDiscrepancy(ReplayCore(ReplayLane(instance)))
    problem = instance.problem()
    pages = policy.compile(problem, 900, np.random.default_rng(0)).pages
    for part, bandwidth in (
        (pages[:50], 0.5),
        (pages[50:850], 8.0),
        (pages[850:], 0.5),
    ):
        made = np.bincount(part, minlength=3)
        expected = policy.rates(problem, bandwidth) * len(part) / bandwidth
        assert np.abs(made - expected).max() < 1.0
    assert policy.compile(problem, 0, np.random.default_rng(0)).pages.shape == (0,)


@pytest.mark.parametrize("name", ["LowDiscrepancy", "ChangeRateCrawl"])
@pytest.mark.parametrize("importance", [0.0, 1.0])
def test_pages_that_need_no_crawl_share_evenly(name, importance):
    instance = Instance([importance] * 4, 0.0, bandwidth=2.0)
    core = ReplayCore(ReplayLane(instance, (), 10.0))
    assert run(policies.make(name, core), core, 8)[0] == [0, 1, 2, 3] * 2


# With the environments
