import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401
from scripts.timing.numpy_baseline import FEATURES, NumPyBaseline

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
        changed = observation[np.arange(LANES), actions, 2]
        totals += [reward, info["hits"], info["requests"], changed, observation[:, :, 1].mean(1)]
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
def test_the_baseline_agrees_with_the_environment_in_distribution(policy, block):
    real = gym.make_vec("CrawlNCIS-v0", num_envs=LANES, **SETTING)
    plain = NumPyBaseline(LANES, block=block, **SETTING)
    expected, steps = played(real, policy)
    result, plain_steps = played(plain, policy)
    assert steps == plain_steps
    difference = result - expected
    error = difference.std(axis=1, ddof=1) / np.sqrt(LANES)
    assert np.all(np.abs(difference.mean(axis=1)) < 3.0 * error)


def test_the_baseline_shows_what_the_environment_shows():
    real = gym.make_vec("CrawlNCIS-v0", num_envs=LANES, **SETTING)
    plain = NumPyBaseline(LANES, **SETTING)
    assert real.unwrapped.features == FEATURES
    expected, _ = real.reset(seed=3)
    result, _ = plain.reset(seed=3)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result[:, :, 3:], expected[:, :, 3:])
    for step in range(40):
        actions = np.full(LANES, step % PAGES)
        expected, result = real.step(actions)[0], plain.step(actions)[0]
        np.testing.assert_allclose(result[:, :, 0], expected[:, :, 0], atol=1e-5)


def test_a_slot_of_the_baseline_is_what_its_events_say():
    plain = NumPyBaseline(3, num_pages=4, bandwidth=0.5, horizon=1e6, instance="noisy", block=5)
    plain.reset(seed=1)
    rng = np.random.default_rng(2)
    for _ in range(60):
        stale = np.isfinite(plain.stale_since)
        signals = plain.rows[1].ravel().copy()
        actions = rng.integers(4, size=3)
        if plain._row == plain.block:
            plain.events, plain._row = plain._draw(), 0
        events, row = plain.events, plain._row
        _, reward, _, _, info = plain.step(actions)
        crawled = np.arange(3) * 4 + actions
        stale[crawled], signals[crawled] = False, 0.0
        first, changed, both, signalled, end = events.offset[row]
        order = first + np.argsort(events.time[first:end])
        fresh_time, clock = np.zeros(3), 0.0
        hits, requests = np.zeros(3), np.zeros(3)
        weight = plain._importance * ~stale
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
        np.testing.assert_allclose(reward, fresh_time / plain._weight)
        np.testing.assert_array_equal(info["hits"], hits)
        np.testing.assert_array_equal(info["requests"], requests)
        np.testing.assert_array_equal(plain.rows[1].ravel(), signals)


def test_the_baseline_copies_observations_on_request_only():
    for copy in (True, False):
        plain = NumPyBaseline(2, num_pages=3, copy=copy)
        first, _ = plain.reset(seed=0)
        second = plain.step(np.zeros(2, np.int64))[0]
        assert np.shares_memory(first, second) is not copy
