"""Observations with the columns of a belief."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import agents
import policies
from agents.sb3.algorithms import network_arguments
from agents.sb3.arguments import TrainArguments
from agents.sb3.belief_columns import COLUMNS, BeliefColumns
from agents.sb3.bridge import CrawlVecEnv
from agents.sb3.training import train
from crawl_envs.evaluation import play

WORLD = {"num_pages": 6, "bandwidth": 5.0, "horizon": 4.0, "instance": "noisy"}


def wrapped(lanes=3, **arguments):
    settings = {**WORLD, "reveal": "importance", **arguments}
    vector = gym.make_vec("CrawlNCIS-v0", num_envs=lanes, autoreset_mode="SameStep", **settings)
    return BeliefColumns(VecMonitor(CrawlVecEnv(vector)))


def test_columns_are_what_the_policy_believes():
    env = wrapped()
    env.seed(3)
    observations = env.reset()
    bridge = env.unwrapped
    policy = policies.make("BeliefNCIS", bridge)
    for _ in range(30):
        assert observations.shape == (3, 6, len(env.features))
        assert env.observation_space.contains(observations[0])
        for lane in range(3):
            beliefs = policy.update(lane).beliefs(bridge.tracker(lane))
            row = observations[lane, :, -3:]
            np.testing.assert_allclose(row[:, 0], beliefs["evidence"], rtol=1e-6)
            np.testing.assert_allclose(row[:, 2], beliefs["change_rate"] * 6 / 5.0, rtol=1e-6)
        assert np.all(observations[:, :, -3] >= observations[:, :, -2] - 1e-6)  # x >= B
        actions, _ = policy.predict(observations)
        observations, _, dones, infos = env.step(actions)
        for lane in np.flatnonzero(dones):
            assert infos[lane]["terminal_observation"].shape == (6, len(env.features))
            assert "episode" in infos[lane]


def test_a_model_trains_on_them():
    env = wrapped(lanes=4)
    policy = network_arguments("ppo", "pages", env.features, 6 / 5.0, 8)
    model = PPO(env=env, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu", **policy)
    model.learn(256)
    page, _ = model.predict(env.reset(), deterministic=True)
    assert page.shape == (4,)
    assert env.features[-3:] == COLUMNS


def test_what_is_no_bridge():
    other = DummyVecEnv([lambda: gym.make("CrawlNCIS-v0", **WORLD)])
    with pytest.raises(ValueError, match="venv must be a CrawlVecEnv"):
        BeliefColumns(other)
    vector = gym.make_vec("CrawlNCIS-v0", num_envs=2, autoreset_mode="SameStep", **WORLD)
    with pytest.raises(ValueError, match="memory must be finite and > 0, got -1"):
        BeliefColumns(CrawlVecEnv(vector), memory=-1.0)


def test_a_trained_agent_sees_the_belief_of_its_environment(tmp_path):
    arguments = TrainArguments(
        env_args={**WORLD, "reveal": "importance"},
        algorithm="ppo",
        belief=True,
        steps=512,
        lanes=8,
        rollout=16,
        width=8,
    )
    trained = train(arguments, tmp_path / "agent")
    assert trained.features[-3:] == COLUMNS
    env = wrapped(lanes=2)
    env.seed(5)
    observations, core = env.reset(), env.unwrapped
    agent = agents.load(tmp_path / "agent", core)
    for _ in range(10):
        plain = observations[..., :-3]
        actions, _ = agent.predict(plain, deterministic=True)
        expected, _ = trained.model.predict(observations, deterministic=True)
        np.testing.assert_array_equal(actions, expected)
        observations, *_ = env.step(actions)
    with pytest.raises(ValueError, match="env must be an environment"):
        agents.load(tmp_path / "agent").predict(plain)


def test_such_an_agent_plays_any_number_of_pages(tmp_path):
    arguments = TrainArguments(env_args=WORLD, belief=True, steps=64, lanes=4, rollout=16, width=8)
    train(arguments, tmp_path / "agent")
    env = gym.make("CrawlNCIS-v0", num_pages=9, bandwidth=20.0, horizon=1.0, instance="noisy")
    ledger = play(env, agents.load(tmp_path / "agent", env), 0)
    assert ledger.crawls == 20
