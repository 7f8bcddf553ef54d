"""The algorithms, and how they are built for an environment of pages."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm

from agents import ALGORITHMS
from agents.networks import PageEncoder, ScaledRows
from agents.sb3 import hyperparameters

NETWORKS = ("pages", "mlp", "plain")
ACTIONS = {"dqn": "page", "maskableppo": "page", "sac": "scores"}
"""The one action form of the algorithms that cannot choose actions of every form."""
CONTRIB = {"maskableppo": "MaskablePPO", "recurrentppo": "RecurrentPPO"}
"""Algorithms of the package sb3-contrib, and their classes."""
OFF_POLICY = ("dqn", "sac")
PAGE_POLICIES = {
    "a2c": "agents.networks.PageActorCritic",
    "dqn": "agents.networks.PageDQN",
    "maskableppo": "agents.networks.masked.MaskablePageActorCritic",
    "ppo": "agents.networks.PageActorCritic",
    "recurrentppo": "agents.networks.recurrent.PageRecurrent",
    "sac": "agents.networks.PageSAC",
}
"""The policy of the network ``pages``, where there is one."""
PERCEPTRONS = {"recurrentppo": "MlpLstmPolicy"}
"""Stable-Baselines3's own policies other than MlpPolicy."""
OWN_WORDS = (
    "device",
    "env",
    "gamma",
    "learning_rate",
    "n_steps",
    "policy",
    "policy_kwargs",
    "seed",
)
"""Arguments of the algorithms' classes that a run sets by its own arguments."""
REPLAY_BYTES = 256 * 2**20
"""Largest memory of a replay buffer, in bytes."""


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    """Return the class of an algorithm.

    Raises:
        ValueError: an unknown name, or one of CONTRIB without the package sb3-contrib.
    """
    if name not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, got {name!r}")
    if name not in CONTRIB:
        own: dict[str, type[BaseAlgorithm]] = {"a2c": A2C, "dqn": DQN, "ppo": PPO, "sac": SAC}
        return own[name]
    try:
        import sb3_contrib
    except ImportError:
        raise ValueError(f"algorithm {name!r} needs the package sb3-contrib") from None
    found: type[BaseAlgorithm] = getattr(sb3_contrib, CONTRIB[name])
    return found


def check_action(algorithm: str, action_form: str) -> None:
    """Raise ValueError unless an algorithm can choose actions of a form.

    ``sac`` draws real numbers, one per page, so scores; ``dqn`` and ``maskableppo`` choose one of
    several, so a page.
    """
    needed = ACTIONS.get(algorithm, action_form)
    if action_form != needed:
        raise ValueError(f"{algorithm} needs env_args with action {needed!r}, got {action_form!r}")


def check_network(algorithm: str, network: str) -> None:
    """Raise ValueError for an unknown network, or one that an algorithm has no policy for."""
    if network not in NETWORKS:
        raise ValueError(f"network must be one of {', '.join(NETWORKS)}, got {network!r}")
    if network == "pages":
        page_policy(algorithm)


def check_model_arguments(algorithm: str, model_args: Mapping[str, Any]) -> None:
    """Raise ValueError for an argument that an algorithm's class does not take, or a run sets."""
    if not model_args:
        return
    taken = set(inspect.signature(algorithm_class(algorithm)).parameters)
    taken -= {*OWN_WORDS, "_init_setup_model"}
    for name, value in model_args.items():
        if name not in taken:
            raise ValueError(
                f"model_args must be among {', '.join(sorted(taken))}, got {name}={value!r}"
            )


def page_policy(algorithm: str) -> type[Any]:
    """Return the policy of the network ``pages`` for an algorithm.

    Raises:
        ValueError: there is none.
    """
    module, _, name = PAGE_POLICIES[algorithm].rpartition(".")
    policy: type[Any] | None = getattr(importlib.import_module(module), name, None)
    if policy is None:
        raise ValueError(f"network must be mlp or plain for {algorithm}, got 'pages'")
    return policy


def network_arguments(
    algorithm: str,
    network: str,
    features: tuple[str, ...],
    cycle: float,
    width: int,
    batch: int | None = None,
) -> dict[str, Any]:
    """Return the policy and its arguments for the constructor of an algorithm.

    Args:
        algorithm: one of ALGORITHMS.
        network: ``pages``, ``mlp`` or ``plain``; see :mod:`agents.networks`. ``plain`` is
            Stable-Baselines3's MlpPolicy on the observation as it is; a recurrent policy has an
            LSTM of as many units before it.
        features: names of the observation's columns.
        cycle: time in which every page could be crawled once, m / R.
        width: units of a hidden layer.
        batch: pages per action, where the actor is to draw that many from its scores; None where
            actions are drawn otherwise.

    Raises:
        ValueError: an unknown network, or one that the algorithm has no policy for.
    """
    check_network(algorithm, network)
    perceptron: dict[str, Any] = {"net_arch": [width, width]}
    if algorithm == "recurrentppo":
        perceptron["lstm_hidden_size"] = width
    own = PERCEPTRONS.get(algorithm, "MlpPolicy")
    if network == "plain":
        return {"policy": own, "policy_kwargs": perceptron}
    scaling = {"features": features, "cycle": cycle}
    if network == "mlp":
        kwargs = {"features_extractor_class": ScaledRows, "features_extractor_kwargs": scaling}
        return {"policy": own, "policy_kwargs": {**kwargs, **perceptron}}
    kwargs = {
        "features_extractor_class": PageEncoder,
        "features_extractor_kwargs": {**scaling, "width": width},
        # Heads that score pages replace these layers.
        "net_arch": [1] if algorithm in OFF_POLICY else [],
    }
    if algorithm == "recurrentppo":
        kwargs["lstm_hidden_size"] = width
    if batch is not None and algorithm in ("a2c", "ppo"):
        kwargs["batch"] = batch
    return {"policy": page_policy(algorithm), "policy_kwargs": kwargs}


def schedule_arguments(
    algorithm: str,
    env_id: str,
    *,
    lanes: int,
    steps: int,
    rollout: int,
    observation_bytes: int,
) -> dict[str, Any]:
    """Return how much an algorithm collects and how often it learns from it.

    It is what :mod:`agents.sb3.hyperparameters` recommends, fitted to the size of the run: a rollout
    is cut into as many minibatches as the recommended one.

    Args:
        algorithm: one of ALGORITHMS.
        env_id: id of the environment.
        lanes: lanes that step together.
        steps: steps in all, over all lanes; rollouts are no longer.
        rollout: steps per lane between updates, for the algorithms on policy.
        observation_bytes: memory of one observation.
    """
    arguments = hyperparameters.model_arguments(algorithm, env_id)
    told = hyperparameters.defaults(algorithm, env_id)
    if algorithm in OFF_POLICY:
        size = min(steps, arguments["buffer_size"], REPLAY_BYTES // (2 * observation_bytes))
        arguments["buffer_size"] = max(size, lanes)
        arguments["learning_starts"] = min(arguments["learning_starts"], steps // 10)
        most = arguments["gradient_steps"]
        arguments["gradient_steps"] = int(np.clip(lanes * most // told["lanes"], 1, most))
        if "target_update_interval" in arguments:
            least = 10 * lanes
            arguments["target_update_interval"] = max(arguments["target_update_interval"], least)
        return arguments
    length = max(min(rollout, steps // lanes), 2)
    arguments["n_steps"] = min(length, told["rollout"]) if algorithm == "a2c" else length
    if "batch_size" in arguments:
        size = length * lanes
        minibatches = round(told["lanes"] * told["rollout"] / arguments["batch_size"])
        arguments["batch_size"] = size // minibatches if size % minibatches == 0 else size
    return arguments
