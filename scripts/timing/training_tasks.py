"""Tasks of stepping and of training, through the bridge and through what users have without it.

Without the bridge, that is ``make_vec_env`` of Stable-Baselines3: a DummyVecEnv of environments in
its Monitor. With it, the lanes step together in its VecMonitor, so both tell of episodes. PPO has
the recommended settings (:mod:`agents.sb3.hyperparameters`) and the network ``pages`` on both; what
differs is who steps.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from scripts.timing.turns import Task

PLANNED = 1024
"""Actions are drawn beforehand, and used again after so many steps."""
FRAMES = 4096
"""Steps, over all lanes, of a rollout of PPO and of the learning from it."""
MANY_LANES = 256


def bridged(lanes: int, **env_args: Any) -> Any:
    """Return the lanes that step together, as Stable-Baselines3 takes them."""
    from stable_baselines3.common.vec_env import VecMonitor

    from agents.sb3.bridge import CrawlVecEnv

    vector = gymnasium.make_vec(
        "CrawlNCIS-v0", num_envs=lanes, autoreset_mode="SameStep", **env_args
    )
    return VecMonitor(CrawlVecEnv(vector))


def one_by_one(lanes: int, **env_args: Any) -> Any:
    """Return what Stable-Baselines3 makes of the id."""
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env("CrawlNCIS-v0", n_envs=lanes, env_kwargs=env_args)


def _stepping(env: Any) -> Task:
    actions = np.random.default_rng(0).integers(env.action_space.n, size=(PLANNED, env.num_envs))
    env.seed(0)
    env.reset()

    def task(times: int) -> None:
        for step in range(times):
            env.step(actions[step % PLANNED])

    return task


def bridge_tasks(lanes: int, pages: int, instance: str) -> dict[str, Task]:
    """Return the tasks of stepping with random pages."""
    env_args = {"num_pages": pages, "bandwidth": float(pages), "instance": instance}
    return {
        "CrawlVecEnv": _stepping(bridged(lanes, **env_args)),
        "make_vec_env": _stepping(one_by_one(lanes, **env_args)),
    }


def _training(env: Any, features: tuple[str, ...]) -> Task:
    from stable_baselines3 import PPO

    from agents.sb3 import hyperparameters
    from agents.sb3.algorithms import network_arguments
    from agents.sb3.torch_threads import threads

    told = hyperparameters.defaults("ppo")
    model = PPO(
        env=env,
        seed=0,
        device="cpu",
        n_steps=FRAMES // env.num_envs,
        learning_rate=told["learning_rate"],
        gamma=told["gamma"],
        **hyperparameters.model_arguments("ppo"),
        **network_arguments("ppo", "pages", features, 1.0, hyperparameters.WIDTH),
    )

    def task(times: int) -> None:
        with threads(1):
            model.learn(times * FRAMES, reset_num_timesteps=False)

    return task


def ppo_tasks(lanes: int, pages: int, instance: str) -> dict[str, Task]:
    """Return the tasks of training PPO for FRAMES steps, with as many lanes and with more."""
    env_args = {"num_pages": pages, "bandwidth": float(pages), "instance": instance}
    few, many = bridged(lanes, **env_args), bridged(MANY_LANES, **env_args)
    features = few.venv.features
    return {
        "PPO, CrawlVecEnv": _training(few, features),
        f"PPO, CrawlVecEnv of {MANY_LANES} lanes": _training(many, features),
        "PPO, make_vec_env": _training(one_by_one(lanes, **env_args), features),
        f"PPO, make_vec_env of {MANY_LANES}": _training(
            one_by_one(MANY_LANES, **env_args), features
        ),
    }
