"""Tasks of stepping and of training, with CrawlVecEnv and with ``make_vec_env``.

``make_vec_env`` of Stable-Baselines3 is a DummyVecEnv of environments with Monitor. CrawlVecEnv
steps all lanes together, with VecMonitor, so that both record episodes. PPO has the recommended
settings (:mod:`agents.sb3.hyperparameters`) and the network ``pages`` in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from scripts.timing.stepped import PAGES_DRAWN, step_task
from scripts.timing.turns import Task

FRAMES = 4096
"""Steps of a rollout of PPO over all lanes, and of its update."""
MANY_LANES = 256


def bridged(lanes: int, **env_args: Any) -> Any:
    """Return lanes that step together, as a VecEnv of Stable-Baselines3."""
    from stable_baselines3.common.vec_env import VecMonitor

    from agents.sb3.bridge import CrawlVecEnv

    vector = gymnasium.make_vec(
        "CrawlNCIS-v0", num_envs=lanes, autoreset_mode="SameStep", **env_args
    )
    return VecMonitor(CrawlVecEnv(vector))


def one_by_one(lanes: int, **env_args: Any) -> Any:
    """Return the VecEnv that Stable-Baselines3 makes from the id."""
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env("CrawlNCIS-v0", n_envs=lanes, env_kwargs=env_args)


def _stepping(env: Any) -> Task:
    shape = PAGES_DRAWN, env.num_envs
    actions = np.random.default_rng(0).integers(env.action_space.n, size=shape)
    env.seed(0)
    env.reset()
    return step_task(env, actions)


def bridge_tasks(lanes: int, env_args: Mapping[str, Any]) -> dict[str, Task]:
    """Return the tasks of stepping with random pages."""
    return {
        "CrawlVecEnv": _stepping(bridged(lanes, **env_args)),
        "make_vec_env": _stepping(one_by_one(lanes, **env_args)),
    }


def _training(env: Any, features: tuple[str, ...]) -> Task:
    from stable_baselines3 import PPO

    from agents.sb3 import hyperparameters
    from agents.sb3.algorithms import network_arguments
    from agents.sb3.arguments import step_size
    from agents.sb3.torch_threads import threads

    settings = hyperparameters.defaults("ppo")
    model = PPO(
        env=env,
        seed=0,
        device="cpu",
        n_steps=FRAMES // env.num_envs,
        learning_rate=step_size(settings["learning_rate"])[0],
        gamma=settings["gamma"],
        **hyperparameters.model_arguments("ppo"),
        **network_arguments("ppo", "pages", features, 1.0, hyperparameters.WIDTH),
    )

    def task(times: int) -> None:
        with threads(1):
            model.learn(times * FRAMES, reset_num_timesteps=False)

    return task


def ppo_tasks(lanes: int, env_args: Mapping[str, Any]) -> dict[str, Task]:
    """Return the tasks of training PPO for FRAMES steps, with as many lanes and with more."""
    few, many = bridged(lanes, **env_args), bridged(MANY_LANES, **env_args)
    features = few.venv.features
    envs = {
        "PPO, CrawlVecEnv": few,
        f"PPO, CrawlVecEnv of {MANY_LANES} lanes": many,
        "PPO, make_vec_env": one_by_one(lanes, **env_args),
        f"PPO, make_vec_env of {MANY_LANES}": one_by_one(MANY_LANES, **env_args),
    }
    return {name: _training(env, features) for name, env in envs.items()}
