"""The vector environment is N single ones, in all three autoreset modes."""

from __future__ import annotations

import copy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from crawl_envs import Instance
from crawl_envs.instances.longevity import RegionPages
from crawl_envs.worlds.offers.law import Market
from tests.environments import (
    EVERY_ID_AND_FORM,
    EVERY_MODE,
    NCIS,
    SMALL,
    assert_same,
    bare,
    batch,
    forms_of,
)

# The vector environment is N single ones


LENGTHS = (1.0, 0.5, 0.75)
"""Of lanes, as a share of the first."""


def slower(instance, share):
    if isinstance(instance, RegionPages):
        return RegionPages(
            instance.importance,
            instance.regions,
            instance.recall,
            instance.false_signal_rate,
            bandwidth=share * instance.bandwidth,
        )
    if isinstance(instance, Market):
        return Market(instance.metadata, instance.law, bandwidth=instance.bandwidth * share)
    return Instance(
        instance.importance,
        instance.change_rate,
        instance.recall,
        instance.false_signal_rate,
        bandwidth=instance.bandwidth * share,
        delay=instance.delay,
    )


def assert_held(batched, info):
    """Entries of an info, and their masks, are those of another in the lanes of the masks."""
    assert set(batched) == set(info)
    for key, value in info.items():
        if key[0] == "_":
            assert_same(batched[key], value)
        elif isinstance(value, dict):
            assert_held(batched[key], value)
        else:
            assert_same(batched[key][info["_" + key]], value[info["_" + key]])


@EVERY_MODE
@EVERY_ID_AND_FORM
def test_a_vector_environment_is_that_many_single_ones(name, form, mode):
    """In SyncVectorEnv, of different bandwidths and so lengths, over several episodes."""
    more = forms_of(name)[form]
    theirs = SyncVectorEnv([lambda: bare(name, **more)] * 3, autoreset_mode=mode)
    ours = batch(3, name, autoreset_mode=mode, **more)
    core, singles = ours.unwrapped, theirs.envs
    assert_same(ours.reset(seed=20), theirs.reset(seed=20))
    pinned = [slower(env.instance, share) for env, share in zip(singles, LENGTHS, strict=True)]
    for env, instance in zip(singles, pinned, strict=True):
        env.reset(options={"instance": instance})
    ours.reset(options={"instance": pinned})
    assert_same(ours.reset(), theirs.reset())
    ours.action_space.seed(0)
    # One lane restarts after a step, so that lanes end at different steps where they are as long.
    actions = ours.action_space.sample()
    ours.step(actions), theirs.step(actions)
    for env in (ours, theirs):
        env.reset(options={"reset_mask": np.array([False, True, False])})
    longest = max(single.num_slots() // single.batch for single in singles)
    ends = 0
    for _ in range(min(2 * longest + 4, 66)):
        actions = ours.action_space.sample()
        mine, yours = ours.step(actions), theirs.step(actions)
        assert_same(mine[:4], yours[:4])
        assert_held(mine[4], yours[4])
        ended = mine[3]
        ends += ended.sum()
        for lane, single in enumerate(singles):
            assert core.ledger(lane) == single.ledger()
            assert_same(core.last_log(lane)._asdict(), single.last_log()._asdict())
        if mode == AutoresetMode.DISABLED and ended.any():
            with pytest.raises(gym.error.ResetNeeded, match="reset"):
                ours.step(actions)
            both = [env.reset(options={"reset_mask": ended.copy()}) for env in (ours, theirs)]
            assert_same(both[0][0], both[1][0])
            assert_held(both[0][1], both[1][1])
    assert ends >= 4
    theirs.close()


def test_a_lane_that_was_never_reset_cannot_be_stepped():
    env = batch(2)
    env.reset(seed=0, options={"reset_mask": np.array([True, False])})
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("seed", [[9, 4, 9], [None, 4, None], 50])
@pytest.mark.parametrize("mask", [None, [False, True, False]])
def test_seeds_and_masks_are_those_of_a_sync_vector_environment(seed, mask):
    """Seeds may be given lane by lane, and a masked reset leaves the other lanes alone."""
    ours, theirs = batch(3), SyncVectorEnv([bare] * 3)
    steps = []
    for env in (ours, theirs):
        env.reset(seed=3)
        steps.append([env.step(np.arange(3))[0]])
        options = None if mask is None else {"reset_mask": np.array(mask)}
        steps[-1].append(env.reset(seed=seed, options=options)[0])
        steps[-1] += [env.step(np.arange(3))[:2] for _ in range(5)]
    assert_same(*steps)


def test_the_form_with_the_module_works_in_worker_processes():
    """A worker that has imported nothing registers the ids by the id's own prefix."""
    workers = gym.make_vec(
        "crawl_envs:" + NCIS,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"context": "spawn"},
        **SMALL[NCIS],
    )
    native = batch(2)
    try:
        assert_same(workers.reset(seed=0)[0], native.reset(seed=0)[0])
        for page in range(3):
            actions = np.full(2, page)
            assert_same(workers.step(actions)[:4], native.step(actions)[:4])
    finally:
        workers.close()


# Access to lanes as to single environments


def test_lanes_are_called_as_those_of_a_sync_vector_environment():
    given = {"num_pages": 5, "bandwidth": 4.0, "horizon": 3.0, "instance": "noisy"}
    ours = gym.make_vec("CrawlNCIS-v0", 3, **given)
    theirs = gym.make_vec("CrawlNCIS-v0", 3, vectorization_mode="sync", **given)
    for env in (ours, theirs):
        env.reset(seed=2)
        env.step(np.array([0, 1, 2]))
    for name in ("features", "action_form", "batch", "num_lanes", "action_space", "render_mode"):
        assert ours.get_attr(name) == theirs.get_attr(name)
    for name in ("last_log", "ledger", "action_masks", "num_slots"):
        assert_same(ours.call(name), theirs.call(name))
    known = [[one.elapsed for one in env.call("tracker")] for env in (ours, theirs)]
    assert_same(*known)
    ours.set_attr("note", [1, 2, 3])
    ours.set_attr("word", "same")
    assert ours.get_attr("note") == (1, 2, 3)
    assert ours.get_attr("word") == ("same",) * 3
    ours.set_attr("note", (4, 5, 6))
    assert ours.call("note") == (4, 5, 6)
    with pytest.raises(ValueError, match=r"values must be one or 3 of them, got \[1\]"):
        ours.set_attr("note", [1])
    for name in ("nothing", "step", "reset", "_lanes"):
        with pytest.raises(AttributeError, match=name):
            ours.call(name)
    with pytest.raises(AttributeError, match="'horizon'"):
        ours.get_attr("horizon")


def test_views_of_lanes_are_copied_and_kept():
    env = gym.make_vec("CrawlNCIS-v0", 2, num_pages=3).unwrapped
    env.reset(seed=0)
    other = copy.deepcopy(env.views[1])
    assert_same(other.tracker().elapsed, env.tracker(1).elapsed)
