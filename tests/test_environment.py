from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import crawl_envs
from crawl_envs import Instance
from crawl_envs.instances import make
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Delay
from tests.worlds import single_of, vector_of

NCIS = "CrawlNCIS-v0"
SMALL = {
    NCIS: {"num_pages": 6, "bandwidth": 6.0, "horizon": 2.0, "instance": "noisy"},
    "CrawlTrace-v0": {"window": [100.0, 130.0]},
}
FORMS = {
    "page": {"action": "page"},
    "scores": {"action": "scores", "batch": 2},
    "refresh": {"action": "refresh"},
}
EVERY_ID = pytest.mark.parametrize("name", list(crawl_envs.FAMILIES))
EVERY_FORM = pytest.mark.parametrize("form", list(FORMS))
MODES = list(AutoresetMode)
EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=[mode.value for mode in MODES])
DELAYED = {"kind": "exponential", "mean": 0.5}
SLOW = {"kind": "exponential", "mean": 5.0}


def arguments(name, form="page"):
    return {**SMALL.get(name, {}), **FORMS[form]}


def bare(name=NCIS, **more):
    """The environment without Gymnasium's wrappers."""
    return gym.make(name, **{**SMALL.get(name, {}), **more}).unwrapped


def batch(num_envs, name=NCIS, **more):
    return gym.make_vec(name, num_envs=num_envs, **{**SMALL.get(name, {}), **more})


def actions_of(env, count, seed=0):
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


def play(env, actions):
    """Everything that steps return, up to the end of the episode."""
    steps = []
    for action in actions:
        steps.append(env.step(action))
        if np.any(steps[-1][3]):
            break
    return steps


def assert_same(one, other):
    """Equal values, bit for bit, in equal containers."""
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, yours in zip(one, other, strict=True):
            assert_same(mine, yours)
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert_same(one.tolist(), other.tolist())
    elif isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    else:
        assert type(one) is type(other)
        assert one == other


def assert_same_future(one, other, count=8, seed=3):
    """Two environments go on alike: steps, ledger, log, and the next episode."""
    actions = actions_of(one, count, seed)
    assert_same(play(one, actions), play(other, actions))
    assert one.ledger() == other.ledger()
    assert_same(one.last_log()._asdict(), other.last_log()._asdict())
    assert_same(one.coins().random(3), other.coins().random(3))
    assert_same(one.reset(), other.reset())
    assert_same(play(one, actions), play(other, actions))


# Gymnasium's and Stable-Baselines3's conventions


@EVERY_FORM
@EVERY_ID
def test_gymnasium_finds_no_fault(name, form):
    env = gym.make(name, **arguments(name, form))
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@EVERY_FORM
@EVERY_ID
@pytest.mark.filterwarnings("ignore:Your observation .* has an unconventional shape")
def test_stable_baselines_finds_no_fault(name, form):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(gym.make(name, **arguments(name, form)).unwrapped)


@EVERY_FORM
@EVERY_ID
def test_an_episode_ends_by_truncation_after_its_last_crawl(name, form):
    env = gym.make(name, **arguments(name, form))
    observation, _ = env.reset(seed=4)
    env.action_space.seed(0)
    core = env.unwrapped
    space, reward_sum, steps = env.observation_space, 0.0, 0
    truncated = False
    while not truncated:
        assert observation in space
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert terminated is False
        assert type(reward) is float
        assert 0.0 <= reward <= 1.0
        assert reward == sum(info["reward_terms"].values())
        reward_sum += reward
        steps += 1
    assert observation in space
    assert steps == core.num_slots() // core.batch
    assert core.tracker().time > core.lanes.horizon - 1.0 / core.instance.bandwidth
    assert 0.0 < reward_sum < steps
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        core.step(env.action_space.sample())


@EVERY_ID
def test_vector_environments_are_native(name):
    env = batch(3, name)
    assert type(env.unwrapped).__name__ == type(bare(name)).__name__ + "Vector"
    assert env.observation_space.shape[0] == 3
    assert env.single_observation_space == bare(name).observation_space
    assert env.single_action_space == bare(name).action_space
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


@EVERY_ID
def test_arguments_are_json(name):
    assert_same(
        bare(name).reset(seed=0),
        gym.make(name, **json.loads(json.dumps(arguments(name)))).reset(seed=0),
    )


def test_registering_again_changes_nothing():
    before = dict(gym.registry)
    crawl_envs.register_envs()
    assert dict(gym.registry) == before
    for name, entry in crawl_envs.FAMILIES.items():
        assert gym.registry[name].entry_point == entry
        assert gym.registry[name].vector_entry_point == entry + "Vector"


def test_defaults_of_the_contract():
    env = gym.make(NCIS)
    env.reset(seed=0)
    core = env.unwrapped
    assert env.observation_space.shape == (100, 7)
    assert core.instance.bandwidth == 100.0
    assert core.num_slots() == 1000
    assert core.features == (
        "elapsed",
        "signals",
        "changed",
        "importance",
        "change_rate",
        "recall",
        "false_signal_rate",
    )


# Seeds, instances, episodes


@EVERY_FORM
@EVERY_ID
def test_a_seed_decides_everything(name, form):
    one, other = (gym.make(name, **arguments(name, form)).unwrapped for _ in range(2))
    assert_same(one.reset(seed=7), other.reset(seed=7))
    assert_same_future(one, other)
    # Whatever happened before.
    assert_same(one.reset(seed=8), other.reset(seed=8))
    other.step(actions_of(other, 1)[0])
    assert_same(one.reset(seed=9), other.reset(seed=9))
    assert_same_future(one, other)


def test_another_seed_draws_another_world():
    env = bare()
    first, _ = env.reset(seed=0)
    pages = env.instance.importance
    second, _ = env.reset(seed=1)
    assert not np.array_equal(first, second)
    assert not np.array_equal(pages, env.instance.importance)
    env.reset(seed=0)
    assert np.array_equal(pages, env.instance.importance)


def test_the_instance_of_a_seed_is_the_one_that_make_draws():
    env = bare()
    env.reset(seed=5)
    expected = make("noisy", seed=5, num_pages=6, bandwidth=6.0)
    for name in ("importance", "change_rate", "recall", "false_signal_rate"):
        assert np.array_equal(getattr(env.instance, name), getattr(expected, name))


def test_later_episodes_keep_the_instance_and_meet_new_events():
    env = bare()
    env.reset(seed=0)
    drawn = env.instance
    play(env, [0] * 12)
    first = env.ledger()
    env.reset()
    assert env.instance is drawn
    play(env, [0] * 12)
    assert env.ledger().time == first.time
    assert env.ledger() != first
    env.reset(seed=0)
    play(env, [0] * 12)
    assert env.ledger() == first


def test_an_episode_does_not_depend_on_the_length_of_those_before_it():
    one, other = bare(), bare()
    one.reset(seed=0)
    other.reset(seed=0)
    play(one, [0] * 12)
    play(other, [0])
    assert_same(one.reset(), other.reset())
    assert_same_future(one, other)


def test_resample_draws_an_instance_at_every_reset():
    env, again = bare(resample=True), bare(resample=True)
    env.reset(seed=0)
    again.reset(seed=0)
    kept = bare()
    kept.reset(seed=0)
    seen = [env.instance.importance]
    assert np.array_equal(seen[0], kept.instance.importance)
    for _ in range(3):
        env.reset()
        again.reset()
        seen.append(env.instance.importance)
        assert np.array_equal(seen[-1], again.instance.importance)
    assert len({tuple(row) for row in seen}) == 4


def test_resample_draws_anew_at_every_autoreset():
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


def test_lanes_of_a_vector_may_be_pinned_to_different_instances():
    pinned = [Instance(np.full(6, weight), 0.5, bandwidth=6.0) for weight in (1.0, 2.0)]
    env = batch(2)
    observations, _ = env.reset(seed=0, options={"instance": pinned})
    column = env.unwrapped.features.index("importance")
    assert observations[:, :, column].tolist() == [[1.0] * 6, [2.0] * 6]
    assert env.unwrapped.instances == tuple(pinned)


def test_without_a_seed_environments_differ():
    first, _ = bare().reset()
    second, _ = bare().reset()
    assert not np.array_equal(first, second)
    lanes, _ = batch(2).reset()
    assert not np.array_equal(lanes[0], lanes[1])


# The vector environment is N single ones


class Singles:
    """N single environments in a loop, with an autoreset mode written out in full."""

    def __init__(self, envs, mode):
        self.envs, self.mode = envs, mode
        self.over = [False] * len(envs)

    def step(self, actions):
        """A list of (observation, reward, truncated, info, final) per lane."""
        found = []
        for lane, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            if self.over[lane]:
                observation, info = env.reset()
                found.append((observation, 0.0, False, info, None))
                self.over[lane] = False
                continue
            observation, reward, _, truncated, info = env.step(action)
            final = None
            if truncated and self.mode == AutoresetMode.SAME_STEP:
                final = (observation, info)
                observation, info = env.reset()
            elif truncated:
                self.over[lane] = True
            found.append((observation, reward, truncated, info, final))
        return found


@EVERY_MODE
@EVERY_ID
@EVERY_FORM
def test_a_vector_environment_is_that_many_single_ones(name, form, mode):
    """Lanes of different lengths, over several episodes, step for step."""
    lengths = (1.0, 0.5, 0.75)
    env = batch(3, name, autoreset_mode=mode, **FORMS[form])
    envs = [bare(name, **FORMS[form]) for _ in lengths]
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
    longest = max(single.num_slots() // single.batch for single in envs)
    ends = 0
    for _ in range(min(2 * longest + 4, 60)):
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
            assert env.unwrapped.ledger(lane) == envs[lane].ledger()
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
    return Instance(
        instance.importance,
        instance.change_rate,
        instance.recall,
        instance.false_signal_rate,
        bandwidth=instance.bandwidth * share,
        delay=instance.delay,
    )


def assert_held(batched, lane, info):
    """What a single environment's info holds is in the batch's, under its masks."""
    for key, value in info.items():
        assert batched["_" + key][lane]
        if isinstance(value, dict):
            assert_held(batched[key], lane, value)
        else:
            assert np.array_equal(batched[key][lane], value)


@EVERY_MODE
def test_gymnasiums_own_vector_environment_steps_alike(mode):
    """SyncVectorEnv over single environments returns the same arrays."""
    more = SMALL[NCIS]
    theirs = SyncVectorEnv([lambda: gym.make(NCIS, **more)] * 3, autoreset_mode=mode)
    ours = batch(3, autoreset_mode=mode)
    assert_same(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    ours.action_space.seed(0)
    for _ in range(30):
        actions = ours.action_space.sample()
        assert_same(ours.step(actions)[:4], theirs.step(actions)[:4])
        if mode == AutoresetMode.DISABLED and ours.unwrapped.lanes.any_ended:
            mask = {"reset_mask": np.ones(3, bool)}
            assert_same(ours.reset(options=dict(mask))[0], theirs.reset(options=dict(mask))[0])
    theirs.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_infos_say_which_lanes_have_them_as_gymnasium_does(mode):
    """Where a lane is reset, its info is that of the reset; final_info is of ended lanes alone."""
    instances = [Instance(np.ones(6), 0.5, bandwidth=rate) for rate in (6.0, 3.0)]
    more = SMALL[NCIS]
    theirs = SyncVectorEnv([lambda: gym.make(NCIS, **more)] * 2, autoreset_mode=AutoresetMode(mode))
    ours = batch(2, autoreset_mode=mode)
    theirs.reset(seed=3)
    for env, instance in zip(theirs.envs, instances, strict=True):
        env.reset(options={"instance": instance})
    ours.reset(seed=3)
    ours.reset(options={"instance": instances})
    theirs.reset()
    ours.reset()
    for _ in range(9):
        actions = np.zeros(2, np.int64)
        mine, yours = ours.step(actions)[4], theirs.step(actions)[4]
        for key in ("requests", "hits", "reward_terms"):
            nothing = np.zeros(2, bool)
            assert mine.get("_" + key, nothing).tolist() == yours.get("_" + key, nothing).tolist()
            if "final_info" in yours:
                there = yours["final_info"]["_" + key]
                assert mine["final_info"]["_" + key].tolist() == there.tolist()


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


# Copies and states


def in_mid_delay(num_pages=6):
    """An environment some steps into its episode, with signals under way."""
    env = bare(delay=SLOW, horizon=6.0)
    env.reset(seed=0)
    for page in range(num_pages):
        env.step(page)
    assert env.get_state()["world"]["lanes"]["pending"][0] > 0
    return env


def in_mid_tape():
    instance = Instance([1.0, 2.0, 4.0], 1.0, bandwidth=2.0)
    rng = np.random.default_rng(0)
    tape = Tape.of_events(
        3,
        changes=(rng.random(40) * 9.0, rng.integers(2, size=40)),
        signals=(rng.random(40) * 9.0, rng.integers(2, size=40)),
        births=([2.75], [2]),
        deaths=([6.25], [1]),
        alive=[True, True, False],
    )
    env = single_of(instance, tape=tape, horizon=8.0)
    env.reset(seed=0)
    for page in (0, 1, 2, 0, 1):
        env.step(page)
    cursor = int(env.get_state()["world"]["lanes"]["cursor"][0])
    assert 0 < cursor < 80
    return env


@pytest.mark.parametrize("start", [in_mid_delay, in_mid_tape])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_the_original_does(start, copied):
    env = start()
    twin = copied(env)
    untouched = copied(env)
    assert_same_future(env, twin, count=12)
    # The copy shares nothing with what has gone on since.
    assert_same_future(untouched, start(), count=12)


@pytest.mark.parametrize("start", [in_mid_delay, in_mid_tape])
def test_a_state_is_gone_back_to(start):
    env = start()
    state = env.get_state()
    kept = pickle.loads(pickle.dumps(state))
    before = start()
    play(env, actions_of(env, 4))
    env.reset(seed=99)
    env.set_state(state)
    assert_same(
        env.tracker()._asdict() | {"problem": 0}, before.tracker()._asdict() | {"problem": 0}
    )
    assert_same_future(env, before, count=12)
    # Using a state does not use it up.
    env.set_state(state)
    assert_same(pickle.loads(pickle.dumps(env.get_state()))["world"], kept["world"])
    assert_same_future(env, start(), count=12)


def test_a_state_moves_to_an_environment_that_was_never_reset():
    env, other = in_mid_delay(), bare(delay=SLOW, horizon=6.0)
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    assert_same_future(env, other, count=12)


@EVERY_MODE
def test_a_vector_state_is_gone_back_to(mode):
    """In mid-episode of lanes of which one has ended."""
    env = batch(2, autoreset_mode=mode, delay=DELAYED)
    instances = [Instance(np.ones(6), 0.5, 0.5, 3.0, bandwidth=rate) for rate in (6.0, 3.0)]
    env.reset(seed=0, options={"instance": instances})
    steps = 5 if mode == AutoresetMode.DISABLED else 6
    for _ in range(steps):
        env.step(np.array([0, 1]))
    core = env.unwrapped
    state = core.get_state()
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(20 - steps)]
    first = (
        play(env, actions[:1]) if mode == AutoresetMode.DISABLED else list(map(env.step, actions))
    )
    ledgers = [core.ledger(0), core.ledger(1)]
    env.reset(seed=5)
    core.set_state(state)
    again = (
        play(env, actions[:1]) if mode == AutoresetMode.DISABLED else list(map(env.step, actions))
    )
    assert_same(first, again)
    assert ledgers == [core.ledger(0), core.ledger(1)]


@EVERY_ID
def test_an_unseeded_future_is_part_of_the_state(name):
    env = bare(name)
    env.reset(seed=1)
    state = env.get_state()
    assert_same(env.np_random.random(3), (env.set_state(state), env.np_random.random(3))[1])


# Arrays


@pytest.mark.parametrize("kind", ["single", "vector"])
def test_returned_arrays_stay_valid(kind):
    env = bare() if kind == "single" else batch(2)
    lanes = () if kind == "single" else (2,)
    observation, _ = env.reset(seed=0)
    kept = [(observation, observation.copy())]
    infos = []
    for page in range(20):
        step = env.step(np.full(lanes, page % 6))
        kept.append((step[0], step[0].copy()))
        infos.append((step[1:], copy.deepcopy(step[1:])))
        if np.any(step[3]) and kind == "single":
            break
    for now, then in kept:
        assert_same(now, then)
    for now, then in infos:
        assert_same(now, then)


@pytest.mark.parametrize("kind", ["single", "vector"])
def test_a_caller_may_write_into_what_it_was_given(kind):
    envs = [bare() if kind == "single" else batch(2) for _ in range(2)]
    action = 0 if kind == "single" else np.zeros(2, np.int64)
    observation, _ = envs[0].reset(seed=0)
    envs[1].reset(seed=0)
    observation[...] = -1.0
    assert_same(envs[0].step(action), envs[1].step(action))


def test_trackers_logs_and_masks_are_fresh_arrays():
    env = in_mid_tape()
    tracker, log, mask = env.tracker(), env.last_log(), env.action_masks()
    kept = copy.deepcopy((tracker[2:], log, mask))
    env.step(0)
    assert_same((tracker[2:], log, mask), kept)
    for array in (*tracker[3:], *log, mask):
        array[...] = 0
    twin = in_mid_tape()
    twin.step(0)
    assert_same(env.tracker()[2:], twin.tracker()[2:])
    assert_same(env.last_log(), twin.last_log())


def test_without_copy_the_buffer_is_used_again():
    env, copying = batch(2, copy=False), batch(2)
    first, _ = env.reset(seed=0)
    copying.reset(seed=0)
    for page in range(20):
        second, *_ = env.step(np.full(2, page % 6))
        expected, *_ = copying.step(np.full(2, page % 6))
        assert np.shares_memory(first, second)
        assert_same(second, expected)
        assert np.array_equal(first, second)


# Common random numbers


@pytest.mark.parametrize("delay", [None, DELAYED])
def test_policies_meet_the_same_changes_signals_and_requests(delay):
    envs = [bare(delay=delay, horizon=10.0) for _ in range(2)]
    seen = [[], []]
    for which, env in enumerate(envs):
        env.reset(seed=3)
        rng = np.random.default_rng(which)
        for _ in range(env.num_slots()):
            env.step(rng.integers(6))
            log = env.last_log()
            seen[which] += zip(log.signal_time.tolist(), log.signal_page.tolist(), strict=True)
    assert seen[0] == seen[1]
    assert seen[0]
    one, other = (env.ledger() for env in envs)
    for name in ("time", "alive_time", "requests", "changes", "signals", "crawls"):
        assert getattr(one, name) == getattr(other, name)
    assert one.hits != other.hits or one.fresh_time != other.fresh_time


@pytest.mark.parametrize("delay", [None, DELAYED])
@pytest.mark.parametrize("form", list(FORMS))
def test_bandwidths_and_action_forms_meet_the_same_events(delay, form):
    """After the same time, whatever was crawled how often, the same has happened."""
    slow = bare(bandwidth=3.0, delay=delay, horizon=10.0)
    fast = bare(bandwidth=12.0, delay=delay, horizon=10.0, **FORMS[form])
    slow.reset(seed=3)
    fast.reset(seed=3)
    signals = [[], []]

    def hear(which, env):
        log = env.last_log()
        signals[which] += zip(log.signal_time.tolist(), log.signal_page.tolist(), strict=True)

    hear(0, slow)
    hear(1, fast)
    for _ in range(slow.num_slots() - 1):
        slow.step(0)
        hear(0, slow)
        while fast.tracker().time < slow.tracker().time:
            fast.step(fast.action_space.sample())
            hear(1, fast)
        mine, yours = slow.ledger(), fast.ledger()
        for name in ("time", "requests", "changes", "signals"):
            assert getattr(mine, name) == getattr(yours, name)
    assert signals[0] == signals[1]
    assert signals[0]
    assert mine.crawls != yours.crawls


# Observations


RATES = st.sampled_from([0.0, 1e-3, 1.0, 300.0, 3e6])


@settings(max_examples=40, deadline=None)
@given(
    importance=st.lists(RATES, min_size=2, max_size=3),
    change_rate=RATES,
    recall=st.sampled_from([0.0, 0.5, 1.0]),
    false_rate=RATES,
    reveal=st.sampled_from(["parameters", "importance"]),
    seed=st.integers(0, 2**63),
)
def test_observations_lie_in_their_space(importance, change_rate, recall, false_rate, reveal, seed):
    """Rates up to a thousand events per slot and beyond every cap."""
    instance = Instance(importance, change_rate, recall, false_rate, bandwidth=2000.0)
    env = single_of(instance, horizon=0.002, reveal=reveal)
    observation, _ = env.reset(seed=seed)
    assert env.observation_space.contains(observation)
    for _ in range(4):
        observation, reward, _, truncated, _ = env.step(0)
        assert env.observation_space.contains(observation)
        assert 0.0 <= reward <= 1.0
    assert truncated


def test_elapsed_signals_and_rates_saturate():
    instance = Instance([2e6, 1.0], [2e6, 1.0], 0.0, [5e6, 0.0], bandwidth=1000.0)
    env = single_of(instance, horizon=0.002)
    env.reset(seed=0)
    env.step(1)
    observation, *_ = env.step(1)
    page = dict(zip(env.features, observation[0].tolist(), strict=True))
    assert page["elapsed"] == np.float32(0.002)
    assert env.tracker().elapsed[0] == 0.003
    assert page["signals"] == 1000.0 < env.tracker().signals[0]
    assert page["importance"] == page["change_rate"] == page["false_signal_rate"] == 1e6
    assert np.array_equal(env.tracker().problem.importance, [2e6, 1.0])


def test_spaces_are_finite():
    for name in crawl_envs.FAMILIES:
        space = bare(name).observation_space
        assert space.dtype == np.float32
        assert np.all(np.isfinite(space.low))
        assert np.all(np.isfinite(space.high))


def test_what_is_not_revealed_is_not_shown():
    env = bare(reveal="importance")
    observation, _ = env.reset(seed=0)
    assert env.features == ("elapsed", "signals", "changed", "importance")
    assert observation.shape == (6, 4)
    problem = env.tracker().problem
    hidden = (problem.change_rate, problem.recall, problem.false_signal_rate, problem.delay)
    assert hidden == (None, None, None, None)
    assert np.array_equal(problem.importance, env.instance.importance)
    told = bare()
    told.reset(seed=0)
    assert np.array_equal(told.problem.change_rate, told.instance.change_rate)


def test_the_reward_counts_requests_or_freshness_and_the_cost_of_crawls():
    more = {"action": "refresh", "crawl_cost": 0.25}
    fresh, served = bare(**more), bare(reward="requests", **more)
    fresh.reset(seed=0)
    served.reset(seed=0)
    for _ in range(12):
        bits = np.array([1, 0, 0, 1, 1, 0], np.int8)
        _, reward, *_, info = fresh.step(bits)
        _, other, *_, told = served.step(bits)
        assert list(info["reward_terms"]) == ["freshness", "crawl_cost"]
        assert info["reward_terms"]["crawl_cost"] == -0.75
        assert reward == info["reward_terms"]["freshness"] - 0.75
        assert told["reward_terms"] == {"requests": told["hits"], "crawl_cost": -0.75}
        assert other == told["hits"] - 0.75
        assert info["hits"] == told["hits"]
    assert served.ledger().hits > 0
    assert served.ledger() == fresh.ledger()


# Other processes


DIGEST = """
import hashlib, json
import gymnasium, numpy as np
import crawl_envs

digest = hashlib.sha256()
for name, more in json.loads({given!r}).items():
    env = gymnasium.make(name, **more)
    observation, _ = env.reset(seed=12)
    for step in range(8):
        digest.update(observation.tobytes())
        observation, reward, *_ = env.step(step % observation.shape[0])
        digest.update(np.float64(reward).tobytes())
print(digest.hexdigest())
"""


def run(program, hash_seed="0"):
    """What a program prints in a Python of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_seed_gives_the_same_bytes_in_every_process():
    settings_of = {name: SMALL.get(name, {}) for name in crawl_envs.FAMILIES}
    program = DIGEST.replace("{given!r}", repr(json.dumps(settings_of)))
    digest = hashlib.sha256()
    for name, more in settings_of.items():
        env = gym.make(name, **more)
        observation, _ = env.reset(seed=12)
        for step in range(8):
            digest.update(observation.tobytes())
            observation, reward, *_ = env.step(step % observation.shape[0])
            digest.update(np.float64(reward).tobytes())
    assert run(program, "1") == run(program, "2") == digest.hexdigest()


def test_import_loads_nothing_heavy():
    program = (
        "import sys, crawl_envs; "
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('torch', 'matplotlib', 'stable_baselines3', 'pandas', 'pyarrow') "
        "or name.startswith('scipy.stats')])"
    )
    assert run(program) == "[]"


def test_the_constant_delay_postpones_what_is_seen():
    """A signal is shown a delay after its change, and not before."""
    instance = Instance([1.0], 0.0, 0.0, 8.0, bandwidth=4.0)
    late = Instance([1.0], 0.0, 0.0, 8.0, bandwidth=4.0, delay=Delay("constant", 0.5))
    envs = [vector_of(one, 1, horizon=4.0) for one in (instance, late)]
    heard = [[], []]
    for which, env in enumerate(envs):
        env.reset(seed=0)
        heard[which] += env.last_log(0).signal_time.tolist()
        for _ in range(15):
            env.step(np.zeros(1, np.int64))
            heard[which] += env.last_log(0).signal_time.tolist()
    shifted = [time + 0.5 for time in heard[0] if time + 0.5 < 4.0]
    assert heard[1] == shifted
    assert len(shifted) > 10
