"""The live scheduler against its twin, and against simulated crawls."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from crawl_envs.types import Problem
from policies.base.binding import core_of
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
