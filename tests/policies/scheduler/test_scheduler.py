"""The live scheduler against its twin, and against simulated crawls."""

from __future__ import annotations

import math

import gymnasium as gym
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from crawl_envs.types import Delay, Problem
from policies.base.allocated import AllocatedPolicy
from policies.base.binding import core_of
from policies.base.index import IndexPolicy
from policies.scheduler import CrawlScheduler
from tests.naive.scheduler import NaiveScheduler, Page

KINDS = ("add", "remove", "update", "report", "fail", "next")
COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate")


def drawn(rng, count):
    """Draw the columns of pages."""
    return {
        "importance": rng.random(count),
        "change_rate": rng.random(count),
        "recall": rng.beta(0.25, 0.25, count),
        "false_signal_rate": rng.uniform(0.1, 0.6, count),
    }


def value_of(name):
    """Return the value of a page by its columns, elapsed time and signals."""
    policy = policies.find(name)(features=("elapsed", "signals", *policies.find(name).needs))

    def value(columns, elapsed, signals):
        given = {key: np.array([columns[key]]) for key in policy.needs}
        given["importance"] = np.array([columns["importance"]])
        form = policy.compile(Problem(1, math.nan, **given), 0, np.random.default_rng(0))
        return form.value(form.parameters, 0, elapsed, signals)

    return value


class Both:
    """A scheduler and its twin, which must answer alike."""

    def __init__(self, policy, bandwidth, **limits):
        self.scheduler = CrawlScheduler(policy, bandwidth, timeout=1.5)
        self.scheduler.limit_hosts(**limits)
        self.naive = NaiveScheduler(value_of(policy), bandwidth, timeout=1.5)
        self.naive.limits = limits.get("gap", 0.0), limits.get("most", math.inf)

    def add(self, rng, ids, hosts, fetched):
        columns = drawn(rng, len(ids))
        copies = np.where(fetched, self.scheduler.time - rng.random(len(ids)), math.nan)
        self.scheduler.add(ids, host=hosts, last_crawl=copies, **columns)
        rows = self.scheduler.ids.rows(np.asarray(ids))
        self.naive.add(
            (
                key,
                Page(
                    rows[k],
                    {name: columns[name][k] for name in COLUMNS},
                    None if hosts is None else hosts[k],
                    float(copies[k]) if fetched[k] else None,
                ),
                columns["importance"][k],
            )
            for k, key in enumerate(ids)
        )


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    policy=st.sampled_from(["Greedy", "GreedyNCIS", "RoundRobin"]),
    limits=st.sampled_from([{}, {"gap": 0.4}, {"most": 1}, {"gap": 0.2, "most": 2}]),
)
def test_every_answer_is_that_of_the_twin(seed, policy, limits):
    rng = np.random.default_rng(seed)
    both = Both(policy, bandwidth=10.0, **limits)
    scheduler, naive, time, largest, out = both.scheduler, both.naive, 0.0, 0, []
    for _ in range(120):
        time += rng.choice([0.0, rng.exponential(0.1), rng.exponential(1.0)], p=[0.2, 0.7, 0.1])
        present = list(naive.pages)
        for key in rng.choice([*present, -1], size=rng.poisson(2.0)):
            moment = max(time - rng.exponential(0.05), 0.0)
            assert scheduler.signal([key], moment) == naive.signal(key, moment)
        kind = rng.choice(
            ["add", "remove", "update", "report", "fail", "next"],
            p=[0.1, 0.05, 0.05, 0.3, 0.1, 0.4],
        )
        if kind == "add":
            count = rng.integers(1, 30)
            ids = [int(key) for key in range(largest, largest + count)]
            largest += count
            hosts = None if rng.random() < 0.3 else [f"host{h}" for h in rng.integers(0, 4, count)]
            both.add(rng, ids, hosts, rng.random(count) < 0.6)
        elif kind == "remove" and present:
            for key in rng.choice(present, size=min(len(present), 3), replace=False):
                scheduler.remove([key])
                naive.remove(key)
        elif kind == "update" and present:
            key = rng.choice(present)
            scheduler.update([key], importance=2.0)
            naive.pages[key].parameters["importance"] = 2.0
        elif kind == "report" and out:
            key = out.pop(rng.integers(len(out)))
            moment = time - rng.exponential(0.02)
            assert scheduler.report([key], moment) == naive.report(key, moment)
        elif kind == "fail" and out:
            key = out.pop()
            scheduler.report([key], time, "failed")
            naive.fail(key)
        elif kind == "next":
            time = max(time, scheduler.time)
            count = int(rng.choice([1, 3, 20]))
            chosen = scheduler.next_batch(time, count).tolist()
            assert chosen == naive.next_batch(time, count)
            out.extend(chosen)
        time = max(time, scheduler.time)
    assert len(scheduler) == len(naive.pages)


@pytest.mark.parametrize("policy", ["GreedyNCIS", "Greedy", "GreedyCIS", "GreedyNCISApprox"])
def test_it_crawls_as_the_policy_does_in_an_environment(policy):
    env = gym.make("crawl_envs:CrawlNCIS-v0", num_pages=50, horizon=20.0, instance="noisy")
    observation, _ = env.reset(seed=3)
    core, player = core_of(env), policies.make(policy, env)
    problem = core.tracker().problem
    columns = {name: getattr(problem, name) for name in COLUMNS}
    scheduler = CrawlScheduler(policy, problem.bandwidth)
    scheduler.add(np.arange(50), last_crawl=0.0, **columns)
    ended, slots = False, 0
    while not ended:
        log, time = core.last_log(), core.tracker().time
        scheduler.signal(log.signal_page, log.signal_time)
        page, _ = scheduler.next(time)
        assert page == player.predict(observation)[0]
        scheduler.report([page], time)
        observation, _, terminated, truncated, _ = env.step(page)
        ended, slots = terminated or truncated, slots + 1
    assert slots > 100


def scheduled(names):
    """Return the policies that a scheduler takes."""
    kinds = IndexPolicy | AllocatedPolicy
    found = [name for name in names if issubclass(policies.find(name), kinds)]
    of_delay = policies.find("GreedyNCISDelayed")
    features = ("elapsed", "signals", *of_delay.needs)
    delayed = of_delay(features=features, delay=Delay("constant", 0.1))
    return [delayed if name == "GreedyNCISDelayed" else name for name in found]


@pytest.mark.parametrize("policy", scheduled(policies.names()))
def test_every_index_policy_and_every_allocation_can_be_scheduled(policy):
    rng = np.random.default_rng(5)
    scheduler = CrawlScheduler(policy, bandwidth=50.0, burst=50)
    scheduler.add([f"https://{k}.example/" for k in range(30)], last_crawl=0.0, **drawn(rng, 30))
    fetched = []
    for day in range(1, 11):
        known = rng.choice(30, 8)
        scheduler.signal([f"https://{k}.example/" for k in known], day - 0.5)
        chosen = scheduler.next_batch(day, 30)
        scheduler.report(chosen, day)
        fetched.extend(chosen.tolist())
    assert len(fetched) == 300
    assert len(set(fetched)) > 3


def test_allocations_crawl_at_their_rates():
    rng = np.random.default_rng(0)
    columns = drawn(rng, 40)
    scheduler = CrawlScheduler("LambdaCrawl", bandwidth=30.0)
    scheduler.add(np.arange(40), last_crawl=0.0, **columns)
    problem = Problem(40, 30.0, **{name: columns[name] for name in ("importance", "change_rate")})
    rates = policies.find("LambdaCrawl")(action_form="page").rates(problem, 30.0)
    crawls = np.zeros(40)
    for slot in range(1, 6001):
        page, _ = scheduler.next(slot / 30.0)
        scheduler.report([page], slot / 30.0)
        crawls[page] += 1
    assert abs(crawls - 200.0 * rates).max() <= 2.0


@pytest.mark.parametrize("policy", ["GreedyNCIS", "GreedyCIS"])
def test_signals_of_several_sources_count_as_in_an_environment(policy):
    env = gym.make("crawl_envs:CrawlNCIS-v0", num_pages=20, horizon=4.0, instance="sources")
    observation, _ = env.reset(seed=3)
    core, player = core_of(env), policies.make(policy, env)
    problem = core.tracker().problem
    columns = {name: getattr(problem, name) for name in COLUMNS}
    scheduler = CrawlScheduler(policy, problem.bandwidth, num_sources=problem.num_sources)
    scheduler.add(np.arange(20), last_crawl=0.0, **columns)
    ended = False
    while not ended:
        log, time = core.last_log(), core.tracker().time
        scheduler.signal(log.signal_page, log.signal_time, log.signal_source)
        page, _ = scheduler.next(time)
        assert page == player.predict(observation)[0]
        scheduler.report([page], time)
        observation, _, terminated, truncated, _ = env.step(page)
        ended = terminated or truncated


def filled(**more):
    """Return a scheduler of 20 pages with copies of time 0."""
    scheduler = CrawlScheduler("Greedy", bandwidth=10.0, **more)
    rng = np.random.default_rng(1)
    columns = {"importance": rng.random(20), "change_rate": rng.random(20)}
    scheduler.add(np.arange(20), last_crawl=0.0, **columns)
    return scheduler


def test_a_fetch_comes_at_the_time_that_was_said():
    scheduler, times = filled(), []
    time = 0.0
    while time < 1.0:
        page, again = scheduler.next(time)
        if page is None:
            assert again > time
            time = again
        else:
            times.append(time)
    assert np.allclose(times, np.arange(1, len(times) + 1) / 10.0)
    assert scheduler.next(time).id is not None
    scheduler.set_bandwidth(1.0, time)
    assert scheduler.next(time).ask_again == pytest.approx(time + 1.0)


def test_pages_that_are_not_reported_come_back_after_the_timeout():
    scheduler = filled(timeout=5.0, burst=100)
    first = scheduler.next_batch(10.0, 20)
    assert sorted(first) == list(range(20))
    assert scheduler.next(11.0) == (None, 15.0)
    assert len(scheduler.next_batch(15.0, 20)) == 20


def test_unknown_and_old_events_are_counted_and_change_nothing():
    scheduler = filled()
    assert scheduler.signal([3, 99, 98], [-1.0, 1.0, 1.0]) == 3
    assert scheduler.report([99], 1.0) == 1
    assert scheduler.report([3], 0.0) == 1
    assert scheduler.report([3, 99], 1.0, "gone") == 1
    assert len(scheduler) == 19
    assert scheduler.report([3], 2.0) == 1


def test_limits_of_hosts_can_be_lifted():
    scheduler = CrawlScheduler("RoundRobin", bandwidth=10.0, burst=100, timeout=99.0)
    scheduler.add([1, 2, 3, 4], host=["a", "a", "a", "b"], last_crawl=0.0)
    scheduler.limit_hosts(most=1)
    assert scheduler.next_batch(10.0, 4).tolist() == [1, 4]
    assert scheduler.next(11.0).id is None
    scheduler.limit_hosts("a", most=2)
    assert scheduler.next_batch(12.0, 4).tolist() == [2]
    scheduler.limit_hosts("a")
    assert scheduler.next_batch(13.0, 4).tolist() == [3]
    assert scheduler.report([1, 1], 13.0, "gone") == 0
    scheduler.add([])
    assert len(scheduler) == 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.next(-1.0), "time must be at least 0.0"),
        (lambda s: s.next("now"), "time must be"),
        (lambda s: s.next_batch(1.0, 0), "count must be"),
        (lambda s: s.add([20], change_rate=-1.0), r"change_rate must lie in \[0, inf\], got -1.0"),
        (lambda s: s.add([20], importance=[1.0, 2.0], change_rate=1.0), "importance must be a num"),
        (lambda s: s.add([20]), "change_rate must be given"),
        (
            lambda s: s.add([20], change_rate=1.0, recall=0.5),
            "columns must be importance, change_r",
        ),
        (lambda s: s.add([20], change_rate=1.0, age=2.0), "columns must be among"),
        (lambda s: s.add([0], change_rate=1.0), "ids must be new, got 0 again"),
        (lambda s: s.add(["a"], change_rate=1.0), "ids must be an array of integers"),
        (lambda s: s.add([20], change_rate=1.0, last_crawl=1.0), "last_crawl must be"),
        (lambda s: s.add([20], change_rate=1.0, host=["a", "b"]), "host must be"),
        (lambda s: s.update([99], importance=1.0), "ids must be known, got 99"),
        (lambda s: s.update([1], recall=0.1), "recall must be given when pages are added"),
        (lambda s: s.remove([99]), "ids must be known"),
        (lambda s: s.signal([1], math.nan), "times must be"),
        (lambda s: s.signal([1], 1.0, source=1), "source must be"),
        (lambda s: s.report([1], 1.0, "lost"), "status must be 'ok', 'failed' or 'gone'"),
        (lambda s: s.limit_hosts(gap=-1.0), "gap must be"),
        (lambda s: s.set_bandwidth(0.0, 1.0), "bandwidth must be"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(call, said):
    scheduler, other = filled(), filled()
    with pytest.raises(ValueError, match=said):
        call(scheduler)
    assert len(scheduler) == 20
    for slot in range(1, 40):
        assert scheduler.next(slot / 10.0) == other.next(slot / 10.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "ThresholdNCIS"}, "policy must be an index policy"),
        ({"policy": 3}, "policy must be an index policy"),
        ({"bandwidth": 0.0}, "bandwidth must be"),
        ({"new_share": 0.0}, "new_share must be"),
        ({"new_share": 1.5}, r"new_share must lie in \(0, 1\]"),
        ({"timeout": 0.0}, "timeout must be"),
        ({"burst": 0}, "burst must be"),
        ({"num_sources": 0}, "num_sources must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        CrawlScheduler(**{"policy": "Greedy", "bandwidth": 1.0, **arguments})


@numba.njit
def densest(value, parameters, elapsed, signals):
    """Return the first row of the largest value."""
    best, largest = -1, -math.inf
    for row in range(elapsed.size):
        current = value(parameters, row, elapsed[row], signals[row])
        if current > largest:
            best, largest = row, current
    return best


@pytest.mark.parametrize("policy", ["GreedyNCIS", "Greedy"])
def test_many_fetches_are_those_of_a_dense_search(policy):
    rng = np.random.default_rng(3)
    pages, bandwidth, churn = 1000, 100.0, 10
    scheduler, found = CrawlScheduler(policy, bandwidth), policies.find(policy)
    columns = drawn(rng, pages)
    ids, last, counted = np.arange(pages), np.zeros(pages), np.zeros(pages)
    scheduler.add(ids, last_crawl=0.0, **columns)
    form = None
    for turn in range(100_000):
        time = (turn + 1) / bandwidth
        if turn % 1000 == 0:
            rows = rng.choice(pages, churn, replace=False)
            scheduler.remove(ids[rows])
            ids[rows] = pages + turn + np.arange(churn)
            fresh = drawn(rng, churn)
            scheduler.add(ids[rows], last_crawl=scheduler.time, **fresh)
            rows = scheduler.ids.rows(ids[rows])
            ids[rows] = pages + turn + np.arange(churn)
            last[rows], counted[rows] = scheduler.time, 0.0
            for name, column in fresh.items():
                columns[name][rows] = column
            rows = rng.choice(pages, churn, replace=False)
            columns["change_rate"][rows] = rng.random(churn)
            scheduler.update(ids[rows], change_rate=columns["change_rate"][rows])
            needs = {name: columns[name] for name in {*found.needs, "importance"}}
            form = found(features=("elapsed", "signals", *found.needs)).compile(
                Problem(pages, math.nan, **needs), 0, rng
            )
        signalled = rng.integers(0, pages, rng.poisson(0.5))
        if signalled.size:
            assert scheduler.signal(ids[signalled], time) == 0
            np.add.at(counted, signalled, 1.0)
        row = densest(form.value, form.parameters, time - last, counted)
        assert scheduler.next(time).id == ids[row], turn
        assert scheduler.report([ids[row]], time) == 0
        last[row], counted[row] = time, 0.0
