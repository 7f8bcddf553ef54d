"""The algorithms, and how they are built for an environment of pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm

from agents import ALGORITHMS
from agents.networks import PageActorCritic, PageDQN, PageEncoder, ScaledRows

NETWORKS = ("pages", "mlp", "plain")
PAGE_ONLY = ("dqn", "maskableppo")
"""Algorithms that need the action ``page``."""
REPLAY_BYTES = 256 * 2**20
"""Largest memory of DQN's replay buffer, in bytes."""
MINIBATCHES = 4


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    """Return the class of an algorithm.

    Raises:
        ValueError: an unknown name, or ``maskableppo`` without the package sb3-contrib.
    """
    if name not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, got {name!r}")
    if name != "maskableppo":
        own: dict[str, type[BaseAlgorithm]] = {"a2c": A2C, "dqn": DQN, "ppo": PPO}
        return own[name]
    try:
        from sb3_contrib import MaskablePPO
    except ImportError:
        raise ValueError("algorithm 'maskableppo' needs the package sb3-contrib") from None
    return MaskablePPO


def network_arguments(
    algorithm: str, network: str, features: tuple[str, ...], cycle: float, width: int
) -> dict[str, Any]:
    """Return the policy and its arguments for the constructor of an algorithm.

    Args:
        algorithm: one of ALGORITHMS.
        network: ``pages``, ``mlp`` or ``plain``; see :mod:`agents.networks`. ``plain`` is
            Stable-Baselines3's MlpPolicy on the observation as it is.
        features: names of the observation's columns.
        cycle: time in which every page could be crawled once, m / R.
        width: units of a hidden layer.

    Raises:
        ValueError: an unknown network.
    """
    if network not in NETWORKS:
        raise ValueError(f"network must be one of {', '.join(NETWORKS)}, got {network!r}")
    if network == "plain":
        return {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": [width, width]}}
    scaling = {"features": features, "cycle": cycle}
    if network == "mlp":
        kwargs = {"features_extractor_class": ScaledRows, "features_extractor_kwargs": scaling}
        return {"policy": "MlpPolicy", "policy_kwargs": {**kwargs, "net_arch": [width, width]}}
    kwargs = {
        "features_extractor_class": PageEncoder,
        "features_extractor_kwargs": {**scaling, "width": width},
        # PageHeads and PageValues replace these layers.
        "net_arch": [1] if algorithm == "dqn" else [],
    }
    return {"policy": _page_policy(algorithm), "policy_kwargs": kwargs}


def _page_policy(algorithm: str) -> type[Any]:
    if algorithm == "dqn":
        return PageDQN
    if algorithm == "maskableppo":
        from agents.masked import MaskablePageActorCritic

        return MaskablePageActorCritic
    return PageActorCritic


def schedule_arguments(
    algorithm: str, lanes: int, steps: int, rollout: int, observation_bytes: int
) -> dict[str, Any]:
    """Return how much an algorithm collects and how often it learns from it.

    Args:
        algorithm: one of ALGORITHMS.
        lanes: lanes that step together.
        steps: steps in all, over all lanes; rollouts are no longer.
        rollout: steps per lane between updates, for the algorithms on policy.
        observation_bytes: memory of one observation.
    """
    if algorithm == "dqn":
        size = min(steps, 100_000, REPLAY_BYTES // (2 * observation_bytes))
        return {
            "buffer_size": max(size, lanes),
            "learning_starts": min(1000, steps // 10),
            "train_freq": 1,
            "gradient_steps": int(np.clip(lanes // 8, 1, 8)),
            "batch_size": 128,
            "target_update_interval": max(1000, 10 * lanes),
            "exploration_fraction": 0.3,
        }
    length = max(min(rollout, steps // lanes), 2)
    if algorithm == "a2c":
        return {"n_steps": min(length, 8)}
    size = length * lanes
    return {
        "n_steps": length,
        "batch_size": size // MINIBATCHES if size % MINIBATCHES == 0 else size,
    }
