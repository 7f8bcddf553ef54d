"""Policies: published crawl sequences, episodes and lanes, delays, rates, real environments."""

from __future__ import annotations

import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.compiled.promises import NO_PROMISES
from crawl_envs.types import Instance
from policies import solvers
from policies.base import schedules
from policies.values import ranking
from tests.policies.replay import SIGNAL, ReplayCore, ReplayLane, random_lane, run

# Steps and compiled forms


def test_best_page_in_plain_python():
    rng = np.random.default_rng(0)
    for _ in range(50):
        elapsed = rng.integers(0, 4, 9) * 1.0
        alive = rng.random(9) < 0.6
        compiled = policies.RoundRobin()._index(Instance(np.ones(9), 1.0, bandwidth=1.0).problem())
        arguments = (*compiled, NO_PROMISES, elapsed, np.zeros(9), alive)
        values = np.where(alive, elapsed, -np.inf)
        np.testing.assert_array_equal(ranking.page_values(*arguments), values)
        assert ranking.best_page(*arguments) == (np.argmax(values) if alive.any() else 0)


# Episodes and lanes


def test_random_crawl_draws_new_pages_in_each_episode():
    core = ReplayCore(random_lane(6, 1))
    policy = policies.make("RandomCrawl", core)
    first, second = run(policy, core, 30)[0], run(policy, core, 30)[0]
    assert first != second
    np.testing.assert_array_equal(
        second, schedules.random(np.ones(6), 50, np.random.default_rng([1, 2]))[:30]
    )


# Delay windows


def test_time_zero_counts_as_a_crawl_of_every_page():
    instance = Instance([1.0, 1.0], 1.0, 0.9, 0.1, bandwidth=1.0)
    core = ReplayCore(ReplayLane(instance, [(0.6, SIGNAL, 1)]))
    assert run(policies.make("GreedyNCIS", core, delay_window=0.5), core, 1)[0] == [1]
    missed = ReplayCore(ReplayLane(instance, [(0.6, SIGNAL, 1)]))
    assert run(policies.make("GreedyNCIS", missed, delay_window=0.7), missed, 1)[0] == [0]


# Allocated rates


@pytest.mark.parametrize("schedule", ["low_discrepancy", "random"])
def test_allocated_policies_crawl_at_their_rates(schedule):
    problem = random_lane(10, 4, bandwidth=5.0, horizon=400.0).instance.problem()
    for name, expected in (
        (
            "LowDiscrepancy",
            solvers.binary_periodic(problem.importance, problem.change_rate, 5.0).rates,
        ),
        ("UniformCrawl", np.full(10, 0.5)),
        ("ChangeRateCrawl", problem.change_rate * 5.0 / problem.change_rate.sum()),
    ):
        policy = policies.make(name, schedule=schedule)
        np.testing.assert_allclose(policy.rates(problem, 5.0), expected)
        pages = policy.compile(problem, 2000, np.random.default_rng(0)).pages
        made = np.bincount(pages, minlength=10)
        tolerance = 100.0 if schedule == "random" else 1.0
        assert np.abs(made - 400.0 * expected).max() < tolerance


@pytest.mark.parametrize("name", ["LowDiscrepancy", "ChangeRateCrawl"])
@pytest.mark.parametrize("importance", [0.0, 1.0])
def test_pages_that_need_no_crawl_share_evenly(name, importance):
    instance = Instance([importance] * 4, 0.0, bandwidth=2.0)
    core = ReplayCore(ReplayLane(instance, (), 10.0))
    assert run(policies.make(name, core), core, 8)[0] == [0, 1, 2, 3] * 2


# With the environments
