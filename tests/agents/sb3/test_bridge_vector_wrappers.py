"""Gymnasium's vector wrappers under the bridge act, or are refused by name."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import VectorRewardWrapper, VectorWrapper
from gymnasium.wrappers import vector as wrappers
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.sb3.bridge import CrawlVecEnv

SMALL = {"num_pages": 5, "bandwidth": 4.0, "horizon": 3.0, "instance": "noisy"}


def vector(**arguments):
    given = {"num_envs": 2, "autoreset_mode": "SameStep", **SMALL, **arguments}
    return gym.make_vec("CrawlNCIS-v0", **given)


class Doubled(VectorRewardWrapper):
    def rewards(self, rewards):
        return 2.0 * rewards


class Unknown(VectorWrapper):
    pass


KEPT = {
    "scaled": lambda env: wrappers.TransformReward(env, lambda rewards: 100.0 * rewards),
    "clipped": lambda env: wrappers.ClipReward(env, 0.0, 0.5),
    "normalised": wrappers.NormalizeReward,
    "own": Doubled,
    "two": lambda env: wrappers.RecordEpisodeStatistics(Doubled(env)),
}


@pytest.mark.parametrize("name", KEPT)
def test_rewards_are_those_of_the_wrapper(name):
    ours, theirs = CrawlVecEnv(KEPT[name](vector())), KEPT[name](vector())
    plain = CrawlVecEnv(vector())
    for env in (ours, plain):
        env.seed(3)
        env.reset()
    theirs.reset(seed=3)
    different = False
    for step in range(30):  # past the ends of episodes
        actions = np.array([step % 5, (2 * step) % 5])
        rewards = ours.step(actions)[1]
        np.testing.assert_array_equal(rewards, theirs.step(actions)[1].astype(np.float32))
        different |= bool((rewards != plain.step(actions)[1]).any())
    assert different


def test_statistics_are_in_the_infos_of_lanes_that_end():
    env = CrawlVecEnv(wrappers.RecordEpisodeStatistics(vector()))
    env.seed(3)
    env.reset()
    totals, ends = np.zeros(2), 0
    for _ in range(30):
        _, rewards, dones, infos = env.step(np.zeros(2, int))
        totals += rewards
        for lane, info in enumerate(infos):
            assert ("episode" in info) == dones[lane]
            if dones[lane]:
                assert info["episode"]["r"] == pytest.approx(totals[lane], rel=1e-5)
                assert info["episode"]["l"] == 12
                assert type(info["episode"]["l"]) is int
                totals[lane], ends = 0.0, ends + 1
            assert "episode" not in env.reset_infos[lane]
    assert ends == 4


REFUSED = {
    "TransformAction": lambda env: wrappers.TransformAction(env, lambda actions: (actions + 1) % 5),
    "DictInfoToList": wrappers.DictInfoToList,
    "Unknown": lambda env: Doubled(Unknown(Doubled(env))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_wrappers_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"no wrappers except of rewards .*, got {name}: wrap"):
        CrawlVecEnv(REFUSED[name](vector()))


@pytest.mark.parametrize("name", ["batch", "features", "instance", "tracker", "num_envs", "lanes"])
def test_attributes_of_the_environment_cannot_be_set(name):
    env = CrawlVecEnv(vector())
    with pytest.raises(AttributeError, match=f"'{name}' of a lane cannot be set"):
        env.set_attr(name, 3)
    with pytest.raises(AttributeError, match=f"'{name}' of a lane cannot be set"):
        env.vector.set_attr(name, 3)


def test_maskable_ppo_gets_the_mask_of_bits_that_it_expects():
    """For each page, that it is left, which is always allowed, and that it is crawled."""
    days = {"trace": "garden-handbook", "window": [100.0, 130.0], "action": "refresh"}
    env = gym.make_vec("CrawlTrace-v0", 2, autoreset_mode="SameStep", **days)
    lanes = CrawlVecEnv(env)
    lanes.seed(0)
    lanes.reset()
    alive = np.stack([env.unwrapped.tracker(lane).alive for lane in range(2)])
    assert not alive.all()
    expected = np.stack([np.ones_like(alive), alive], axis=-1).reshape(2, -1)
    np.testing.assert_array_equal(get_action_masks(lanes), expected)
    single = gym.make("CrawlTrace-v0", **days)
    _, info = single.reset(seed=0)
    np.testing.assert_array_equal(single.unwrapped.action_masks(), expected[0])
    np.testing.assert_array_equal(info["action_mask"], alive[0])


@pytest.mark.parametrize("kind", [CrawlVecEnv, None])
def test_maskable_ppo_trains_on_refreshes(kind):
    env = (
        CrawlVecEnv(vector(action="refresh"))
        if kind
        else DummyVecEnv([lambda: gym.make("CrawlNCIS-v0", action="refresh", **SMALL)])
    )
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, seed=0)
    model.learn(16)
    assert model.num_timesteps >= 16
