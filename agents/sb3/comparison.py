"""Compare agents and policies on the same seeds and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from agents.sb3.arguments import TrainArguments
from agents.sb3.lanes import make_lanes
from crawl_envs.types import FloatArray, Policy

FIRST_SEED = 1_000_000
"""First seed of evaluations, far from typical seeds of trainings."""


def mean_rewards(
    build: Callable[[Any], Policy],
    arguments: TrainArguments,
    *,
    episodes: int = 32,
    seed: int = FIRST_SEED,
    deterministic: bool = True,
) -> FloatArray:
    """Return the mean reward per step of one episode on each seed, (episodes,).

    Stable-Baselines3's ``evaluate_policy`` runs the episodes in parallel lanes. With the reward
    ``freshness`` the mean is the importance-weighted share of fresh page time, an estimate of the
    share of requests served fresh.

    Args:
        build: makes the policy from the vector environment of the lanes, as
            ``lambda env: policies.make(name, env)``.
        arguments: arguments of the environment; the seed is not used.
        episodes: number of seeds, ``seed``, ``seed + 1``, ...; >= 1.
        seed: the first seed.
        deterministic: passed on to the policy.

    Raises:
        ValueError: arguments that the environment or the policy rejects.
    """
    env = make_lanes(arguments, episodes, training=False)
    policy = build(env.vector)
    env.seed(seed)
    returns, lengths = evaluate_policy(
        policy,
        VecMonitor(env),
        n_eval_episodes=episodes,
        deterministic=deterministic,
        return_episode_rewards=True,
    )
    means: FloatArray = np.asarray(returns, np.float64) / np.asarray(lengths)
    return means
