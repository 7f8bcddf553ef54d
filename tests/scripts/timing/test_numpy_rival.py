import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401
from scripts.timing.numpy_rival import FEATURES, NumPyRival

LANES, PAGES, HORIZON = 64, 20, 25.0
SETTING = {"num_pages": PAGES, "bandwidth": 20.0, "horizon": HORIZON, "instance": "noisy"}


def played(env, policy):
    """Return per-lane means over an episode: reward, hits, requests, changed found, signals."""
    observation, _ = env.reset(seed=5)
    rng = np.random.default_rng(0)
    totals, steps = np.zeros((5, LANES)), 0
    truncated = np.zeros(LANES, bool)
    while not truncated.all():
        actions = policy(observation, rng)
        observation, reward, _, truncated, info = env.step(actions)
        found = observation[np.arange(LANES), actions, 2]
        totals += [reward, info["hits"], info["requests"], found, observation[:, :, 1].mean(1)]
        steps += 1
    return totals / steps, steps


def at_random(observation, rng):
    return rng.integers(PAGES, size=LANES)


def longest_elapsed(observation, rng):
    return observation[:, :, 0].argmax(1)


def most_signalled(observation, rng):
    return (observation[:, :, 1] * observation[:, :, 3] + 0.1 * observation[:, :, 0]).argmax(1)


@pytest.mark.parametrize("policy", [at_random, longest_elapsed, most_signalled])
@pytest.mark.parametrize("block", [1, 64])
def test_the_rival_agrees_with_the_environment_in_distribution(policy, block):
    real = gym.make_vec("CrawlNCIS-v0", num_envs=LANES, **SETTING)
    rival = NumPyRival(LANES, block=block, **SETTING)
    expected, steps = played(real, policy)
    found, rival_steps = played(rival, policy)
    assert steps == rival_steps
    difference = found - expected
    error = difference.std(axis=1, ddof=1) / np.sqrt(LANES)
    assert np.all(np.abs(difference.mean(axis=1)) < 3.0 * error)


def test_the_rival_shows_what_the_environment_shows():
    real = gym.make_vec("CrawlNCIS-v0", num_envs=LANES, **SETTING)
    rival = NumPyRival(LANES, **SETTING)
    assert real.unwrapped.features == FEATURES
    expected, _ = real.reset(seed=3)
    found, _ = rival.reset(seed=3)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found[:, :, 3:], expected[:, :, 3:])
    for step in range(40):
        actions = np.full(LANES, step % PAGES)
        expected, found = real.step(actions)[0], rival.step(actions)[0]
        np.testing.assert_allclose(found[:, :, 0], expected[:, :, 0], atol=1e-5)


def test_a_slot_of_the_rival_is_what_its_events_say():
    rival = NumPyRival(3, num_pages=4, bandwidth=0.5, horizon=1e6, instance="noisy", block=5)
    rival.reset(seed=1)
    rng = np.random.default_rng(2)
    for _ in range(60):
        stale = np.isfinite(rival.stale_since)
        signals = rival.rows[1].ravel().copy()
        actions = rng.integers(4, size=3)
        if rival._row == rival.block:
            rival.events, rival._row = rival._draw(), 0
        events, row = rival.events, rival._row
        _, reward, _, _, info = rival.step(actions)
        crawled = np.arange(3) * 4 + actions
        stale[crawled], signals[crawled] = False, 0.0
        first, changed, both, signalled, end = events.offset[row]
        order = first + np.argsort(events.time[first:end])
        fresh_time, clock = np.zeros(3), 0.0
        hits, requests = np.zeros(3), np.zeros(3)
        weight = rival._importance * ~stale
        for event in [*order, None]:
            until = 1.0 if event is None else events.time[event]
            fresh_time += (until - clock) * weight.reshape(3, 4).sum(1)
            clock = until
            if event is None:
                break
            page, lane = events.page[event], events.lane[event]
            assert page // 4 == lane
            if event < changed:
                requests[lane] += 1
                hits[lane] += weight[page] > 0.0
            if changed <= event < signalled:
                weight[page] = 0.0
            signals[page] += event >= both
        np.testing.assert_allclose(reward, fresh_time / rival._weight)
        np.testing.assert_array_equal(info["hits"], hits)
        np.testing.assert_array_equal(info["requests"], requests)
        np.testing.assert_array_equal(rival.rows[1].ravel(), signals)


def test_the_rival_copies_observations_on_request_only():
    for copy in (True, False):
        rival = NumPyRival(2, num_pages=3, copy=copy)
        first, _ = rival.reset(seed=0)
        second = rival.step(np.zeros(2, np.int64))[0]
        assert np.shares_memory(first, second) is not copy
