"""Probes: a slot spent to look at a page, which is not refreshed."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Delay
from tests.crawl_envs.sim.test_world import SEED, assert_same_world, instances_of
from tests.environments import HARMONIC, assert_same_future, bare
from tests.naive import pages as naive
from tests.naive.divergence import Penalty
from tests.worlds import random_events, single_of

PAGES = 6
TABLE = [0.0, 1.0, 1.5, 1.75]
PROBING = {"action": "page", "probe": True, "bandwidth": 6.0, "horizon": 4.0}


probing_of = partial(single_of, probe=True, penalty=TABLE)


WORLDS = {
    "noisy": {"name": "noisy"},
    "delayed": {"name": "noisy", "delay": Delay("exponential", 0.5)},
    "two sources": {"name": "sources"},
    "complete pages": {"name": "mixed"},
    "bandwidth steps": {"name": "noisy", "bandwidth_steps": ((0.7, 12.0), (2.1, 2.5))},
}


@pytest.mark.parametrize("kind", WORLDS)
def test_worlds_are_the_twins(kind):
    rng = np.random.default_rng(4)
    for lane, instance in enumerate(instances_of(**WORLDS[kind])):
        env = probing_of(instance)
        assert "probed" in env.features
        for episode in range(2):
            observation, _ = env.reset(
                **({"seed": SEED + lane, "options": {"instance": instance}} if not episode else {})
            )
            twin = naive.World(
                instance,
                naive.drawn_events(instance, SEED + lane, episode, 12.0),
                divergence=Penalty(TABLE),
            )
            assert_same_world(env, 0, observation, twin)
            over = False
            while not over:
                action = int(rng.integers(2 * PAGES))
                observation, reward, _, over, _ = env.step(action)
                twin.play_slot([action])
                assert_same_world(env, 0, observation, twin)
                assert reward == twin.freshness()
            ledger = env.ledger()
            assert ledger.crawls == env.num_slots()
            assert 5 < ledger.probes < ledger.crawls


@pytest.mark.parametrize("sources", [1, 3])
def test_probes_of_pages_that_are_born_and_die_are_the_twins(sources):
    rng = np.random.default_rng(1)
    recall = np.full((sources, 3), 1.0 / sources)
    instance = Instance([1.0, 2.0, 0.5], 1.0, recall, 1.0, bandwidth=2.0)
    wasted = 0
    for _ in range(10):
        lists = random_events(rng, 3, sources, changes=30, signals=30, deaths=8, births=8)
        tape = Tape.of_events(3, num_sources=sources, **lists)
        env = probing_of(instance, tape=tape, horizon=8.0)
        twin = naive.World(instance, naive.written_events(**lists), divergence=Penalty(TABLE))
        observation, _ = env.reset(seed=0)
        for action in [None, *rng.integers(6, size=15).tolist()]:
            if action is not None:
                observation, *_ = env.step(action)
                twin.play_slot([action])
            assert_same_world(env, 0, observation, twin)
        wasted += env.ledger().wasted
    assert wasted > 5


TWO = Instance([1.0, 3.0], 1.0, bandwidth=1.0)
LISTS = {"changes": ([1.25, 1.5, 3.25], [1, 1, 1]), "signals": ([1.5], [1])}


def test_a_probe_by_hand():
    """Probed at 2 and 3, crawled at 4, probed at 5: changed, changed, crawled, not changed."""
    env = probing_of(TWO, reward="penalty", tape=Tape.of_events(2, **LISTS), horizon=8.0)
    env.reset(seed=0)
    column = env.features.index("probed")
    assert env.action_space == gym.spaces.Discrete(4)
    rewards, shown = [], []
    for action in (0, 3, 3, 1, 3):
        observation, reward, *_ = env.step(action)
        rewards.append(reward)
        shown.append(observation[:, column].tolist())
        log = env.last_log()
        assert log.probe.tolist() == [action > 1]
    assert shown == [[-1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [-1.0, 0.0]]
    # Of the weight 4, 3 is stale: twice changed from 1.5 on, three times from 3.25 on.
    owed = [0.25 * 1.0 + 0.5 * 1.5, 1.5, 0.25 * 1.5 + 0.75 * 1.75, 0.0, 0.0]
    assert rewards == [-3.0 * each / 4.0 for each in owed]
    ledger = env.ledger()
    assert (ledger.crawls, ledger.probes, ledger.changes_found, ledger.wasted) == (5, 3, 1, 0)


@pytest.mark.parametrize("action", [2 * PAGES, -1, 2**40, 2.0, True, "2", None, [1]])
def test_actions_outside_the_space_change_nothing(action):
    env, untouched = (bare(HARMONIC, **PROBING) for _ in range(2))
    for one in (env, untouched):
        one.reset(seed=0)
        one.step(PAGES + 1)
    with pytest.raises(ValueError, match=rf"action .*\[0, {2 * PAGES}\)"):
        env.step(action)
    assert_same_future(env, untouched, count=30)
