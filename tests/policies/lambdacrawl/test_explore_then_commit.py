"""Exploring alike, estimating once, and committing."""

import numpy as np
import pytest
from scipy.optimize import brentq

from policies import make, solvers
from tests.policies.small_world import SmallWorld, play


def world_of(seed=0, *, num_pages=20, form="rates", horizon=36.0, share=0.5):
    rng = np.random.default_rng([seed, 11])
    return SmallWorld(
        0.1 + 2.0 * rng.random(num_pages),
        bandwidth=0.5 * num_pages,
        horizon=horizon,
        seed=seed,
        form=form,
        importance=0.1 + rng.random(num_pages),
        complete=rng.random(num_pages) < share,
    )


def slow_moments(intervals, smoothing=0.5):
    rows = [*intervals, (smoothing, True), (smoothing, False)]
    changes = sum(changed for _, changed in rows)
    return brentq(lambda x: changes + sum(np.expm1(-x * a) for a, _ in rows), 1e-9, 1e4, rtol=1e-12)


@pytest.mark.parametrize("form", ["rates", "page"])
@pytest.mark.parametrize("objective", ["harmonic", "binary"])
def test_it_explores_estimates_and_commits(form, objective):
    world = world_of(form=form)
    policy = make("ExploreThenCommit", world, objective=objective)
    signals = form == "rates" or objective == "harmonic"
    complete = world.problem.complete if signals else np.zeros(20, np.bool_)
    crawls, counts = [[] for _ in range(20)], np.zeros(20)
    plans = []
    while world.time < world.horizon:
        log = world.last_log()
        if world.time <= 6.0 * (1.0 + 1e-9):
            for page, elapsed, changed in zip(log.page, log.elapsed, log.changed, strict=True):
                crawls[page].append((float(elapsed), bool(changed)))
            np.add.at(counts, log.signal_page, 1)
        action, _ = policy.predict(world.observation)
        if world.time < 6.0 * (1.0 - 1e-9):
            assert policy.of_lane().allocation().rates.tolist() == [0.5] * 20
        else:
            plans.append((policy.of_lane().allocation(), policy.of_lane().estimate(), action))
        world.step(action)
    plan, estimate, _ = plans[0]
    slow = np.array([slow_moments(rows) for rows in crawls])
    counted = (counts + 0.5) / 6.5
    assert estimate == pytest.approx(np.where(complete, counted, slow), rel=1e-8)
    importance = world.problem.importance
    if objective == "harmonic":
        right = solvers.harmonic(importance, estimate, world.bandwidth, complete=complete)
    else:
        right = solvers.binary_poisson(importance, estimate, world.bandwidth)
    assert plan.rates == pytest.approx(right.rates, rel=1e-12)
    for later, estimates, action in plans[1:]:
        assert np.array_equal(later.rates, plan.rates)
        assert np.array_equal(estimates, estimate)
        if form == "rates":
            assert np.array_equal(action, plans[0][2])


def test_exploration_in_slots_is_round_robin():
    world = world_of(form="page", share=0.0)
    policy = make("ExploreThenCommit", world, explore=4.0)
    actions = play(world, policy, 40)
    assert actions[:39].reshape(-1).tolist() == [*range(20), *range(19)]


def test_how_long_it_explores():
    for explore, last in ((0.0, -1), (2.5, 2), (3.0, 2), (None, 5), (1e9, 35)):
        world = world_of()
        policy = make("ExploreThenCommit", world, explore=explore)
        even = []
        for epoch in range(36):
            world.step(policy.predict(world.observation)[0])
            if np.ptp(policy.of_lane().allocation().rates) == 0.0:
                even.append(epoch)
        assert even == list(range(last + 1))


def test_an_episode_that_is_joined_is_explored_from_there():
    world = world_of()
    play(world, make("ExploreThenCommit", world), 10)
    joined, even = make("ExploreThenCommit", world, explore=4.0), []
    for epoch in range(10, 20):
        world.step(joined.predict(world.observation)[0])
        if np.ptp(joined.of_lane().allocation().rates) == 0.0:
            even.append(epoch)
    assert even == [10, 11, 12]  # the step before, which is learned from, counts


def test_more_exploration_commits_to_better_rates():
    gaps = {}
    for explore in (4.0, 64.0):
        for seed in range(8):
            world = world_of(seed, horizon=explore + 2.0)
            policy = make("ExploreThenCommit", world, explore=explore)
            play(world, policy)
            case = (world.problem.importance, world.change_rate, world.bandwidth)
            right = solvers.harmonic(*case, complete=world.problem.complete)
            gap = np.abs(policy.of_lane().allocation().rates - right.rates).sum() / world.bandwidth
            gaps.setdefault(explore, []).append(gap)
    assert np.mean(gaps[64.0]) < 0.4 * np.mean(gaps[4.0])


def test_pages_that_exploration_misses():
    world = world_of(form="page", share=0.0)
    policy = make("ExploreThenCommit", world, explore=1.0, smoothing=0.25)
    play(world, policy, 12)
    estimate = policy.of_lane().estimate()
    assert estimate[9:] == pytest.approx([np.log(2.0) / 0.25] * 11)
    assert np.log(2.0) / 0.25 not in estimate[:9]
