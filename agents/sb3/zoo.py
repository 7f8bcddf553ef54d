"""Provide the network arguments of the recommended settings to RL-Zoo."""

from __future__ import annotations

from typing import Any

import gymnasium

from agents.sb3.algorithms import network_arguments
from agents.sb3.hyperparameters import FALLBACK, PREFIX, WIDTH, network
from agents.sb3.lanes import cycle_of


def policy_kwargs(
    algorithm: str, env_id: str = FALLBACK, *, width: int = WIDTH, **env_args: Any
) -> dict[str, Any]:
    """Return the arguments of the recommended policy, for an environment made with ``env_args``.

    RL-Zoo evaluates the call of this function in its files. The function makes an environment to
    read the names of its columns.

    Args:
        algorithm: one of ALGORITHMS.
        env_id: id of the environment.
        width: units of a hidden layer.
        env_args: arguments of the environment.

    Raises:
        ValueError: an unknown algorithm, or arguments that the environment rejects.
    """
    env = gymnasium.make(PREFIX + env_id.removeprefix(PREFIX), **env_args)
    core: Any = env.unwrapped
    core.reset(seed=0)
    cycle = cycle_of(core.problem)
    batch = core.batch if core.action_form == "scores" else None
    policy = network_arguments(algorithm, network(algorithm), core.features, cycle, width, batch)
    kwargs: dict[str, Any] = policy["policy_kwargs"]
    return kwargs
