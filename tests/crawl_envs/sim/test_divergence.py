"""Penalties of undetected changes: the kernel against its twin, and against sums."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.instances import make
from crawl_envs.sim.tape import Tape
from crawl_envs.spaces.rewards import metrics
from crawl_envs.types import Delay
from crawl_envs.types.compiled_policies import CompiledSequence
from crawl_envs.worlds.rollouts import play_form
from tests.crawl_envs.sim.test_world import (
    ACTIONS,
    EDGES,
    KINDS_OF_WORLD,
    LANES,
    SEED,
    assert_same_play,
    assert_same_tape_play,
    instances_of,
)
from tests.worlds import random_events, single_of

EXACT = {"table": [0.0, 1.0, 1.5, 1.75], "binary": "binary", "line": (0.0, 0.5, 1.0, 1.5)}
"""Penalties of few binary digits, so that no sum of them is rounded."""


# The twin's worlds


@pytest.mark.parametrize("penalty", EXACT)
@pytest.mark.parametrize("kind", KINDS_OF_WORLD)
def test_worlds_are_the_twins(kind, penalty):
    env = assert_same_play(instances_of(**KINDS_OF_WORLD[kind]), penalty=EXACT[penalty])
    assert all(env.ledger(lane).penalty_time > 0.0 for lane in range(LANES))


@pytest.mark.parametrize("penalty", EXACT)
@pytest.mark.parametrize("form", ACTIONS)
def test_rewards_of_action_forms_are_those_of_the_twin(form, penalty):
    instances = instances_of("noisy", delay=Delay("exponential", 0.5))
    assert_same_play(instances, penalty=EXACT[penalty], **ACTIONS[form])


@pytest.mark.parametrize("kind", ["noisy", "two sources with delays", "bandwidth steps"])
def test_harmonic_worlds_are_the_twins(kind):
    assert_same_play(instances_of(**KINDS_OF_WORLD[kind]), penalty="harmonic", exact=False)


@pytest.mark.parametrize("edge", EDGES)
def test_edge_cases_are_the_twins(edge):
    assert_same_play([EDGES[edge]] * 2, penalty=EXACT["table"])


@pytest.mark.parametrize("sources", [1, 3, 15])
@pytest.mark.parametrize("penalty", EXACT)
def test_pages_that_are_born_and_die_are_the_twins(penalty, sources):
    """A dead page costs nothing, and is born, as it is crawled, without a change."""
    rng = np.random.default_rng(2)
    recall = np.full((sources, 3), 1.0 / sources)
    instance = Instance([1.0, 2.0, 0.5], 1.0, recall, 1.0, bandwidth=2.0)
    wasted = 0
    for _ in range(10):
        lists = random_events(rng, 3, sources, changes=40, signals=20, deaths=6, births=6)
        crawls = rng.integers(3, size=15).tolist()
        env, _ = assert_same_tape_play(instance, lists, crawls, horizon=8.0, penalty=EXACT[penalty])
        wasted += env.ledger().wasted
    assert wasted > 0


def test_a_penalty_by_hand():
    """Changes at 1.25 and 1.5 of a page of weight 3, which is crawled at 2."""
    instance = Instance([1.0, 3.0], 1.0, bandwidth=1.0)
    tape = Tape.of_events(2, changes=([1.25, 1.5], [1, 1]))
    env = single_of(instance, tape=tape, penalty="harmonic", horizon=4.0, reward="penalty")
    env.reset(seed=0)
    rewards = [env.step(page)[1] for page in (0, 1, 1)]
    # A quarter of a unit at H(1) = 1, then half of one at H(2) = 3/2, of the weight 4.
    assert rewards == [-3.0 * (0.25 + 0.5 * 1.5) / 4.0, 0.0, 0.0]
    ledger = env.ledger()
    assert ledger.penalty_time == 3.0
    assert ledger.cost == 3.0 / 4.0
    assert ledger.penalty == 3.0 / 16.0
    assert metrics(ledger)["cost"] == 0.75
    assert metrics(ledger)["penalty"] == 3.0 / 16.0


def test_without_a_penalty_there_is_no_cost():
    env = single_of(Instance([1.0, 2.0], 1.0, bandwidth=1.0))
    env.reset(seed=0)
    env.step(0)
    ledger = env.ledger()
    assert ledger.penalty_time is None
    assert math.isnan(ledger.cost)
    assert math.isnan(ledger.penalty)
    assert "cost" not in metrics(ledger)


@pytest.mark.parametrize("penalty", ["harmonic", "binary", (0.0, 0.1, 0.15)])
def test_no_reward_is_above_zero(penalty):
    """If every page is fresh the penalty is 0, but for the rounding of sums of weights."""
    rng, below = np.random.default_rng(0), 0
    for _ in range(50):
        changes = (1.0 + rng.random(15) / 2.0, rng.integers(5, size=15))
        env = single_of(
            Instance(rng.random(5), 1.0, bandwidth=1.0),
            tape=Tape.of_events(5, changes=changes),
            penalty=penalty,
            horizon=12.0,
            reward="penalty",
        )
        env.reset(seed=0)
        rewards = [env.step(int(page))[1] for page in [0, *rng.permutation(5), 0]]
        assert -1e-14 < rewards[-1] <= 0.0
        assert max(rewards) <= 0.0
        below += env.lanes.world.state.lanes[0]["divergence_weight"] < 0.0
    assert below > 0  # else nothing was tried


def test_a_penalty_changes_nothing_but_the_cost():
    turns = CompiledSequence(np.arange(7))
    instance = make("noisy", num_pages=7, bandwidth=5.0, seed=SEED)
    with_one, without = (
        asdict(play_form(turns, instance, 20.0, SEED, penalty=penalty).ledger)
        for penalty in ("harmonic", None)
    )
    assert with_one.pop("penalty_time") > 0.0
    assert without.pop("penalty_time") is None
    assert with_one == without
