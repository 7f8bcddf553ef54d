"""Seeds, instances and episodes."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.instances import make
from tests.environments import (
    EVERY_ID_AND_FORM,
    HARMONIC,
    LONGEVITY,
    NCIS,
    actions_of,
    arguments,
    assert_same,
    assert_same_future,
    bare,
    batch,
    play,
)

# Speed


@pytest.mark.parametrize("name", [NCIS, HARMONIC, LONGEVITY])
def test_attributes_of_environments_are_stored_inline(name):
    """CPython 3.11 reads attributes faster from objects that have at most 30."""
    env = bare(name)
    for one in (env, env.lanes, env.lanes.world):
        assert len(vars(one)) <= 30


# Seeds, instances, episodes


@EVERY_ID_AND_FORM
def test_a_seed_decides_everything(name, form):
    one, other = (gym.make(name, **arguments(name, form)).unwrapped for _ in range(2))
    assert_same(one.reset(seed=7), other.reset(seed=7))
    assert_same_future(one, other)
    # Whatever happened before.
    assert_same(one.reset(seed=8), other.reset(seed=8))
    other.step(actions_of(other, 1)[0])
    assert_same(one.reset(seed=9), other.reset(seed=9))
    assert_same_future(one, other)


def test_the_instance_of_a_seed_is_the_one_that_make_draws():
    env = bare()
    env.reset(seed=5)
    expected = make("noisy", seed=5, num_pages=6, bandwidth=6.0)
    for name in ("importance", "change_rate", "recall", "false_signal_rate"):
        assert np.array_equal(getattr(env.instance, name), getattr(expected, name))


def test_an_episode_does_not_depend_on_the_length_of_those_before_it():
    one, other = bare(), bare()
    one.reset(seed=0)
    other.reset(seed=0)
    play(one, [0] * 12)
    play(other, [0])
    assert_same(one.reset(), other.reset())
    assert_same_future(one, other)


def test_resample_draws_again_at_every_autoreset():
    env = batch(2, resample=True, autoreset_mode="SameStep")
    env.reset(seed=0)
    seen = [env.unwrapped.instances[0].importance]
    for _ in range(24):
        *_, truncated, _ = env.step(np.zeros(2, np.int64))
        if truncated.any():
            seen.append(env.unwrapped.instances[0].importance)
    single = bare(resample=True)
    single.reset(seed=0)
    for row in seen:
        assert np.array_equal(row, single.instance.importance)
        single.reset()
    assert len({tuple(row) for row in seen}) == 3


@pytest.mark.parametrize("resample", [False, True])
def test_a_pinned_instance_stays_until_the_next_seed(resample):
    pinned = Instance(np.arange(1.0, 7.0), 0.5, bandwidth=3.0)
    env = bare(resample=resample)
    env.reset(seed=0)
    drawn = env.instance.importance
    env.reset(options={"instance": pinned})
    for _ in range(2):
        assert env.instance is pinned
        assert env.problem.bandwidth == 3.0
        assert env.tracker().time == 1.0 / 3.0
        assert len(play(env, [0] * 99)) == env.num_slots() == 6
        env.reset()
    env.reset(seed=0)
    assert np.array_equal(env.instance.importance, drawn)
    assert env.tracker().time == 1.0 / 6.0
    env.reset(seed=0, options={"instance": pinned})
    assert env.instance is pinned


def test_a_pinned_instance_does_not_change_the_seeds_streams():
    """Pinning the very instance that the seed draws changes nothing."""
    one, other = bare(), bare()
    one.reset(seed=4)
    other.reset(seed=4)
    assert_same(one.reset(), other.reset(options={"instance": one.instance}))
    assert_same_future(one, other)


def test_without_a_seed_environments_differ():
    first, _ = bare().reset()
    second, _ = bare().reset()
    assert not np.array_equal(first, second)
    lanes, _ = batch(2).reset()
    assert not np.array_equal(lanes[0], lanes[1])
