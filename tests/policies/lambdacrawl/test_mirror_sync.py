"""Crawl rates learned from probes: samples of slopes, mirror steps, and the policies."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from policies import solvers
from policies.lambdacrawl import AsyncMirrorSync, AsyncPSGDSync, MirrorSync
from policies.lambdacrawl.mirror_sync import SyncJobs, mirror_step, projected_step
from tests.policies.small_world import SmallWorld, play


def mean_cost(rates, change_rate):
    """Binary staleness of pages crawled at even intervals."""
    return 1.0 - rates / change_rate * -np.expm1(-change_rate / rates)


def slope(rates, change_rate):
    """Its derivative, in closed form."""
    x = change_rate / rates
    return (-(1.0 - np.exp(-x)) + x * np.exp(-x)) / change_rate


# The mirror step


@pytest.mark.parametrize("seed", range(20))
def test_mirror_step_satisfies_the_conditions_of_optimality(seed):
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.03, 2.9, 200)
    gradient = rng.normal(-1.0, 30.0, 200)
    total = float(rates.sum()) * rng.uniform(0.3, 1.0)
    result = mirror_step(rates, gradient, 1.0, 0.025, 3.0, total)
    assert result.sum() == pytest.approx(total, rel=1e-12)
    pull = gradient + 1.0 / rates - 1.0 / result  # minus the multiplier of the total
    inside = (result > 0.025 * (1 + 1e-12)) & (result < 3.0 * (1 - 1e-12))
    assert inside.any()
    multiplier = -pull[inside].mean()
    assert multiplier >= 0.0
    assert pull[inside] == pytest.approx(-multiplier, rel=1e-7, abs=1e-7)
    assert np.all(pull[result >= 3.0] <= -multiplier + 1e-7)
    assert np.all(pull[result <= 0.025] >= -multiplier - 1e-7)


def test_mirror_step_in_its_corners():
    rates, none = np.array([0.2, 0.6, 1.0]), np.zeros(3)
    assert mirror_step(rates, none, 1.0, 0.1, 2.0, 1.8) == pytest.approx(rates, rel=1e-13)
    assert mirror_step(rates, none, 1.0, 0.1, 2.0, 9.0) == pytest.approx(rates, rel=1e-13)
    assert mirror_step(rates, none + 1e9, 1.0, 0.1, 2.0, 1.8).tolist() == pytest.approx([0.1] * 3)
    assert mirror_step(rates, none - 1e9, 1.0, 0.1, 2.0, 9.0).tolist() == pytest.approx([2.0] * 3)
    assert mirror_step(rates, none, 1.0, 0.1, 2.0, 0.3).tolist() == pytest.approx([0.1] * 3)
    alone = mirror_step(np.array([0.4]), np.array([-3.0]), 1.0, 0.1, 2.0, 0.4)
    assert alone == pytest.approx([0.4], rel=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_projected_step_is_that_of_slsqp(seed):
    rng = np.random.default_rng(seed)
    rates, gradient = rng.uniform(0.1, 1.0, 12), rng.normal(0.0, 1.0, 12)
    total = float(rates.sum()) * rng.uniform(0.7, 1.3)
    aim = rates - 0.3 * gradient
    result = minimize(
        lambda r: np.sum((r - aim) ** 2),
        np.full(12, min(total / 12, 1.2)),
        jac=lambda r: 2.0 * (r - aim),
        method="SLSQP",
        bounds=[(0.05, 1.2)] * 12,
        constraints={"type": "ineq", "fun": lambda r: total - r.sum()},
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x
    step = projected_step(rates, gradient, 0.3, 0.05, 1.2, total)
    assert step == pytest.approx(result, abs=2e-6)


# Samples of slopes


@pytest.mark.parametrize("probing", [0.05, 0.5, 1.0])
def test_samples_of_the_slope_are_unbiased(probing):
    change_rate, rate = 1.3, 0.7
    rng = np.random.default_rng(4)
    jobs = SyncJobs(np.array([rate]), probing, 0.0, np.random.default_rng(5))
    now = last = 0.0
    change = rng.exponential(1.0 / change_rate)
    samples = []
    for _ in range(60_000):
        _, probe = jobs.serve()
        now = float(jobs._next[0])  # nobody else is there, so it is served when it is due
        if probe:
            jobs.probed(0, float(now >= change))
        else:
            jobs.crawled(0, now, now - last, float(now >= change))
            last, change = now, now + rng.exponential(1.0 / change_rate)
            pages, means = jobs.slopes()
            samples += means.tolist()
            assert pages.tolist() == ([0] if len(samples) else [])
    samples = np.array(samples)
    error = samples.std() / math.sqrt(samples.size)
    assert error < 0.05
    assert abs(samples.mean() - slope(rate, change_rate)) < 4.0 * error
    h = 1e-6
    numeric = (mean_cost(rate + h, change_rate) - mean_cost(rate - h, change_rate)) / (2.0 * h)
    assert slope(rate, change_rate) == pytest.approx(numeric, rel=1e-6)


def test_a_gap_ends_in_one_sample():
    jobs = SyncJobs(np.array([0.5, 0.25]), 1.0, 0.0, np.random.default_rng(0))
    assert jobs.slopes()[0].size == 0
    page, probe = jobs.serve()
    assert probe
    jobs.probed(page, 0.0)
    for each in range(2):
        jobs.crawled(each, 1.0, 1.0, 1.0)  # opening gaps
    assert jobs.slopes()[0].size == 0
    jobs.probed(1, 0.25)
    jobs.crawled(1, 5.0, 4.5, 1.0)
    jobs.crawled(1, 9.0, 4.0, 1.0)  # its probe came too late
    pages, means = jobs.slopes()
    assert pages.tolist() == [1]
    assert means.tolist() == pytest.approx([(0.25 - 1.0) * 4.5 / 2.0])
    assert jobs.slopes()[0].size == 0


def test_jobs_come_in_the_order_of_their_due_times():
    jobs = SyncJobs(np.array([1.0, 0.5, 2.0]), 1e-12, 0.0, np.random.default_rng(0))
    assert jobs.serve() == (2, False)
    jobs.crawled(2, 0.7, 0.7, 0.0)
    assert jobs.serve() == (0, False)
    jobs.crawled(0, 1.0, 1.0, 0.0)
    assert jobs.serve() == (2, False)


# The policies


def learned(policy_class, change_rate, rounds, seed, **arguments):
    """Mean costs of the rates at the end of every round; and the world."""
    m = change_rate.size
    bandwidth = 0.4 * m
    world = SmallWorld(
        change_rate, bandwidth=bandwidth, horizon=40.0 * rounds, seed=seed, probe=True
    )
    policy = policy_class(world, **arguments)
    costs = []
    for _ in range(rounds):
        play(world, policy, round(40.0 * bandwidth))
        costs.append(mean_cost(policy.rates(), change_rate).mean())
    return np.array(costs), world, policy


def test_jobs_are_told_what_crawls_and_probes_saw(monkeypatch):
    told, seen = [], []
    crawled, probed = SyncJobs.crawled, SyncJobs.probed
    monkeypatch.setattr(SyncJobs, "crawled", lambda *all: told.append(all[1:]) or crawled(*all))
    monkeypatch.setattr(SyncJobs, "probed", lambda *all: told.append(all[1:]) or probed(*all))
    given = {"bandwidth": 4.0, "horizon": 20.0, "importance": np.array([0.5, 1.5])}
    world = SmallWorld(np.array([0.3, 1.0]), **given, probe=True)
    policy = MirrorSync(world, probing=0.5)
    for _ in range(70):
        action, _ = policy.predict(world.observation)
        world.step(action)
        log = world.last_log()
        cost = given["importance"][log.page[0]] * log.changed[0]
        times = () if log.probe[0] else (log.time[0], log.elapsed[0])
        seen.append((log.page[0], *times, cost))
    assert told == seen[:-1]
    assert {len(call) for call in told} == {2, 4}


@pytest.mark.parametrize(
    ("policy_class", "arguments"),
    [(MirrorSync, {}), (AsyncMirrorSync, {}), (AsyncPSGDSync, {"step_size": 0.03})],
)
def test_costs_fall_towards_the_optimum(policy_class, arguments):
    change_rate = np.linspace(0.1, 4.9, 15)
    even = mean_cost(np.full(15, 0.4 / 1.05), change_rate).mean()
    best = solvers.binary_periodic(1.0, change_rate, 0.4 * 15 / 1.05).rates
    best = mean_cost(np.maximum(best, 0.025), change_rate).mean()
    costs, world, policy = learned(policy_class, change_rate, 160, 0, **arguments)
    assert 0.25 < (even - costs[-10:].mean()) / (even - best) < 1.0
    assert policy.rates().sum() * 1.05 == pytest.approx(0.4 * 15, rel=1e-9)
    assert policy.rates().min() >= 0.025 * (1 - 1e-12)
    assert world.crawls.sum() * 1.05 == pytest.approx(0.4 * 15 * world.time, rel=0.01)


def test_projected_steps_collapse_in_the_long_run_with_the_step_of_the_public_code_only():
    change_rate = np.random.default_rng(0).uniform(0.0, 2.0, 10)
    even = mean_cost(np.full(10, 1.0 / 1.05), change_rate).mean()
    costs = {}
    for step_size in (None, 0.03):
        world = SmallWorld(change_rate, bandwidth=10.0, horizon=4100.0, seed=0, probe=True)
        policy = AsyncPSGDSync(world, step_size=step_size)
        play(world, policy, 36_000)
        at = []
        for _ in range(5):
            play(world, policy, 800)
            at.append(mean_cost(policy.rates(), change_rate).mean())
        costs[step_size] = np.array(at)
    assert costs[None].max() < even - 0.005
    assert costs[0.03].min() > even + 0.1


def test_one_gap_of_the_slowest_arm_moves_a_projected_rate_by_about_the_mean_rate():
    world = SmallWorld(np.ones(100), bandwidth=40.0, horizon=50.0, seed=0, probe=True)
    policy = AsyncPSGDSync(world)
    policy.predict(world.observation)
    rates = np.full(100, 0.4 / 1.05)
    rates[0] = 0.4 / 16.0
    slopes = np.zeros(100)
    slopes[0] = -1.0 / (policy.probing * rates[0])  # the probe saw no change, the crawl one
    assert 0.8 * 0.4 < policy._descend(rates, slopes)[0] - rates[0] < 0.4


def test_crawls_keep_to_the_rates_and_probes_to_their_share():
    change_rate = np.full(20, 1.0)
    world = SmallWorld(change_rate, bandwidth=8.0, horizon=400.0, seed=1, probe=True)
    policy = MirrorSync(world, step_size=1e-12, probing=0.2)
    actions = play(world, policy)
    assert np.mean(actions >= 20) == pytest.approx(0.2 / 1.2, abs=0.01)
    assert world.crawls / world.time == pytest.approx(np.full(20, 8.0 / 1.2 / 20), rel=0.02)


def test_importance_counts_relative_to_its_mean():
    change_rate = np.random.default_rng(0).uniform(0.1, 3.0, 10)
    runs = []
    for scale in (1.0, 1e3):
        importance = scale * np.linspace(0.1, 1.0, 10)
        world = SmallWorld(
            change_rate, bandwidth=4.0, horizon=200.0, seed=2, probe=True, importance=importance
        )
        policy = AsyncMirrorSync(world)
        actions = play(world, policy)
        runs.append((actions, policy.rates()))
    assert np.array_equal(runs[0][0], runs[1][0])
    assert runs[0][1] == pytest.approx(runs[1][1], rel=1e-9)


def test_the_harmonic_penalty_of_pages_with_complete_observation():
    change_rate = np.array([4.0, 0.2])
    world = SmallWorld(change_rate, bandwidth=2.0, horizon=60.0, seed=0, probe=True, complete=True)
    policy = MirrorSync(world, penalty="harmonic", probing=0.5)
    play(world, policy)
    rates = policy.rates()
    assert rates[0] > rates[1]
    assert policy._cost(3, True) == pytest.approx(1.0 + 1 / 2 + 1 / 3, rel=1e-12)
    assert policy._cost(0, False) == 0.0
