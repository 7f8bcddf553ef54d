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


class Singles:
    """N single environments in a loop, with an autoreset mode written out in full."""

    def __init__(self, envs, mode):
        self.envs, self.mode = envs, mode
        self.over = [False] * len(envs)

    def step(self, actions):
        """A list of (observation, reward, truncated, info, final) per lane."""
        results = []
        for lane, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            if self.over[lane]:
                observation, info = env.reset()
                results.append((observation, 0.0, False, info, None))
                self.over[lane] = False
                continue
            observation, reward, _, truncated, info = env.step(action)
            final = None
            if truncated and self.mode == AutoresetMode.SAME_STEP:
                final = (observation, info)
                observation, info = env.reset()
            elif truncated:
                self.over[lane] = True
            results.append((observation, reward, truncated, info, final))
        return results


@EVERY_MODE
@EVERY_ID_AND_FORM
def test_a_vector_environment_is_that_many_single_ones(name, form, mode):
    """Lanes of different bandwidths, and so lengths, over several episodes, step for step."""
    lengths = (1.0, 0.5, 0.75)
    env = batch(3, name, autoreset_mode=mode, **forms_of(name)[form])
    envs = [bare(name, **forms_of(name)[form]) for _ in lengths]
    observations, _ = env.reset(seed=20)
    singles = Singles(envs, mode)
    pinned = []
    for lane, single in enumerate(envs):
        observation, _ = single.reset(seed=20 + lane)
        assert_same(observations[lane], observation)
        pinned.append(slower(single.instance, lengths[lane]))
    observations, _ = env.reset(options={"instance": pinned})
    for lane, single in enumerate(envs):
        observation, _ = single.reset(options={"instance": pinned[lane]})
        assert_same(observations[lane], observation)
    env.action_space.seed(0)
    # One lane restarts after a step, so that lanes end at different steps where they are as long.
    actions = env.action_space.sample()
    env.step(actions)
    for single, action in zip(envs, actions, strict=True):
        single.step(action)
    observations, _ = env.reset(options={"reset_mask": np.array([False, True, False])})
    assert_same(observations[1], envs[1].reset()[0])
    longest = max(single.num_slots() // single.batch for single in envs)
    ends = 0
    for _ in range(min(2 * longest + 4, 66)):
        actions = env.action_space.sample()
        expected = singles.step(list(actions))
        observations, rewards, terminated, truncated, info = env.step(actions)
        assert not terminated.any()
        for lane, (observation, reward, end, lane_info, final) in enumerate(expected):
            assert_same(observations[lane], observation)
            assert rewards[lane] == reward
            assert truncated[lane] == end
            assert_held(info, lane, lane_info)
            assert ("final_obs" in info and bool(info["_final_obs"][lane])) == (final is not None)
            if final is not None:
                assert_same(info["final_obs"][lane], final[0])
                assert info["_final_info"][lane]
                assert_held(info["final_info"], lane, final[1])
            ends += end
            core, single = env.unwrapped, envs[lane]
            assert core.ledger(lane) == single.ledger()
            assert_same(core.last_log(lane)._asdict(), single.last_log()._asdict())
        if mode == AutoresetMode.DISABLED and truncated.any():
            with pytest.raises(gym.error.ResetNeeded, match="reset"):
                env.step(actions)
            observations, _ = env.reset(options={"reset_mask": truncated})
            for lane in np.flatnonzero(truncated):
                observation, _ = envs[lane].reset()
                singles.over[lane] = False
                assert_same(observations[lane], observation)
    assert ends >= 4


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


def assert_held(batched, lane, info):
    """The infos of single environments are in the info of the batch, under its masks."""
    for key, value in info.items():
        assert batched["_" + key][lane]
        if isinstance(value, dict):
            assert_held(batched[key], lane, value)
        else:
            assert np.array_equal(batched[key][lane], value)


@EVERY_MODE
@pytest.mark.parametrize("rates", [(6.0, 6.0, 6.0), (6.0, 3.0, 4.0)])
def test_gymnasiums_own_vector_environment_steps_alike(mode, rates):
    """SyncVectorEnv over single environments returns the same arrays and masks of infos.

    Where a lane is reset, its info is that of the reset; final_info is of ended lanes alone.
    """
    instances = [Instance(np.ones(6), 0.5, bandwidth=rate) for rate in rates]
    more = SMALL[NCIS]
    theirs = SyncVectorEnv([lambda: gym.make(NCIS, **more)] * 3, autoreset_mode=mode)
    ours = batch(3, autoreset_mode=mode)
    assert_same(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    for env, instance in zip(theirs.envs, instances, strict=True):
        env.reset(options={"instance": instance})
    ours.reset(options={"instance": instances})
    assert_same(ours.reset(), theirs.reset())
    ours.action_space.seed(0)
    for _ in range(30):
        actions = ours.action_space.sample()
        mine, yours = ours.step(actions), theirs.step(actions)
        assert_same(mine[:4], yours[:4])
        finals = [step[4].pop("final_info", {}) for step in (mine, yours)]
        assert set(finals[0]) == set(finals[1])
        for key in ("requests", "hits", "reward/freshness") if finals[1] else ():
            assert_same(finals[0]["_" + key], finals[1]["_" + key])
            assert_same(np.where(mine[3], finals[0][key], 0.0), finals[1][key])
        infos = [dict(sorted(step[4].items())) for step in (mine, yours)]
        assert_same(*infos)
        if mode == AutoresetMode.DISABLED and mine[3].any():
            mask = {"reset_mask": mine[3]}
            assert_same(ours.reset(options=dict(mask)), theirs.reset(options=dict(mask)))
    theirs.close()


def test_a_reset_mask_leaves_other_lanes_alone():
    env, untouched = batch(3), batch(3)
    for one in (env, untouched):
        one.reset(seed=0)
        for _ in range(4):
            one.step(np.arange(3))
    before, _, *_ = env.step(np.arange(3))
    untouched.step(np.arange(3))
    observations, _ = env.reset(seed=50, options={"reset_mask": np.array([False, True, False])})
    single = bare()
    fresh, _ = single.reset(seed=51)
    assert_same(observations[1], fresh)
    assert_same(observations[[0, 2]], before[[0, 2]])
    core = env.unwrapped
    assert core.ledger(0) == untouched.unwrapped.ledger(0)
    for _ in range(5):
        mine, yours = env.step(np.arange(3)), untouched.step(np.arange(3))
        alone = single.step(1)
        assert_same(mine[0][[0, 2]], yours[0][[0, 2]])
        assert_same(mine[1][[0, 2]], yours[1][[0, 2]])
        assert_same(mine[0][1], alone[0])
        assert mine[1][1] == alone[1]


def test_a_lane_that_was_never_reset_cannot_be_stepped():
    env = batch(2)
    env.reset(seed=0, options={"reset_mask": np.array([True, False])})
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(np.zeros(2, np.int64))


def test_seeds_may_be_given_lane_by_lane():
    env = batch(3)
    observations, _ = env.reset(seed=[9, 4, 9])
    assert_same(observations[0], observations[2])
    assert_same(observations[1], bare().reset(seed=4)[0])
    observations, _ = env.reset(seed=[None, 4, None])
    single = bare()
    single.reset(seed=9)
    assert_same(observations[0], single.reset()[0])
    assert_same(observations[1], bare().reset(seed=4)[0])


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
