"""Where compiled code pauses, so that interrupts are noticed, changes nothing that is played."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401
import policies
from crawl_envs import Instance
from crawl_envs.compiled.compiling import compiled
from crawl_envs.compiled.heap import empty_heap
from crawl_envs.evaluation import simulate
from crawl_envs.sim.advance import AT_ONCE, DONE, PAUSED, advance, close_slots
from crawl_envs.sim.rollouts.timed import (
    Agenda,
    play_rates,
    play_thresholds,
    set_rates,
    start_cycles,
)
from crawl_envs.sim.state import REQUESTS, state_at
from crawl_envs.sim.world import World
from crawl_envs.types.compiled_policies import ThresholdRule
from crawl_envs.worlds.step import restart_lanes

PAGES = Instance([3.0, 1.0, 0.5], [1.0, 2.0, 0.1], 0.6, 0.2, bandwidth=0.1)
ROOM = 1000


def world(lanes=1, **layout):
    """Worlds at the start of a first slot of ten units of time, with room in their logs."""
    made = World(lanes, 3, horizon=100.0, crawls_per_slot=ROOM, **layout)
    made.state.lanes["root"] = np.arange(lanes, dtype=np.uint64)
    for lane in range(lanes):
        made.set_instance(lane, PAGES)
    while made.state.signal_log.shape[1] < ROOM:
        made.state.lanes["logged"] = made.state.signal_log.shape[1]
        made.grow_logs()
    restart_lanes(made.table, np.ones(lanes, bool))
    return made


@compiled()
def play_events(table, left):
    """Play lanes as :func:`crawl_envs.worlds.step.step_lanes`, some events at once."""
    state = state_at(table)
    complete, left = advance(state, left)
    if complete:
        close_slots(state)
    return complete, left


@compiled()
def play_at_rates(table, rates, chances, left):
    """Play lane 0 as :func:`crawl_envs.sim.rollouts.timed.roll_rates`, some events at once."""
    state = state_at(table)
    if left == 0:
        set_rates(state, 0, rates, chances)
    return play_rates(state, 0, left)[0]


@compiled()
def play_at_thresholds(table, agenda, left):
    """Play lane 0 as :func:`crawl_envs.sim.rollouts.timed.roll_thresholds`."""
    state = state_at(table)
    if left == 0:
        start_cycles(state, 0, agenda)
    return play_thresholds(state, 0, agenda, left)


def assert_same(one, other):
    for name, array in one.get_state().items():
        np.testing.assert_array_equal(array, other.get_state()[name], name)


@pytest.mark.parametrize("at_once", [1, 7])
def test_events_played_a_few_at_a_time(at_once):
    whole, parts = world(3), world(3)
    complete, left = play_events(whole.table, AT_ONCE)
    assert complete
    calls, complete = 0, False
    while not complete:
        complete, spared = play_events(parts.table, at_once)
        calls += 1
    played = AT_ONCE - left
    assert calls == math.ceil(played / at_once)
    assert spared == at_once * calls - played
    assert whole.state.outcomes[REQUESTS].min() > 0.0
    assert_same(whole, parts)


def random_crawls():
    """A world of random crawls, and a function that plays some of its events."""
    one, rates, chances = (
        world(at_random=True),
        np.array([1.0, 2.0, 3.0]),
        np.array([0.0, 0.5, 1.0]),
    )
    return one, lambda most: play_at_rates(one.table, rates, chances, most)


def thresholds():
    rule = ThresholdRule(
        0.0, np.array([0.5, 1.0, 2.0]), np.array([0.7, 1.0, 2.0]), np.array([0.5, 0.0, 0.0]),
        np.ones((1, 3)), np.ones(3, np.bool_),
    )  # fmt: skip
    one, rng = world(), np.arange(4, dtype=np.uint64)
    agenda = Agenda(rule, np.zeros(3), empty_heap(3), rng)
    return one, lambda most: play_at_thresholds(one.table, agenda, most)


@pytest.mark.parametrize("at_once", [1, 7])
@pytest.mark.parametrize("start", [random_crawls, thresholds])
def test_crawls_a_few_at_a_time(start, at_once):
    made = []
    for most in (AT_ONCE, at_once):
        one, play = start()
        status, calls = play(0), 0
        assert status == PAUSED
        while status == PAUSED:
            status = play(most)
            calls += 1
        assert status == DONE
        made.append((one, calls))
    (whole, once), (parts, often) = made
    assert once == 1
    assert often > whole.state.lanes[0]["slot_crawls"] // at_once > 1
    assert_same(whole, parts)


MANY = AT_ONCE // 3
"""So many pages that a few searches, or scores of all, reach AT_ONCE."""


@pytest.mark.parametrize("name", ["GreedyNCIS", "BeliefNCIS"])
def test_searches_and_scores_go_on_after_a_pause(name):
    """Compiled episodes that pause several times crawl as single steps do."""
    env = gym.make("CrawlNCIS-v0", num_pages=MANY, bandwidth=15.0, horizon=1.0).unwrapped
    observation, _ = env.reset(seed=0)
    policy = policies.make(name, env)
    compiled = simulate(env.instance, policies.make(name, env), 1.0)
    for page in compiled.crawls:
        action, _ = policy.predict(observation)
        assert action == page
        observation, *_ = env.step(action)
        policy.update()
    assert compiled.crawls.size == 15
