"""The algorithms, and their arguments for environments of pages."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from agents.catalog import ALGORITHMS
from agents.networks.encoder import PageEncoder
from agents.networks.scaling import ScaledRows
from agents.sb3 import hyperparameters
from agents.sb3.own_classes import own_class
from crawl_envs.types.arguments import one_of

NETWORKS = ("pages", "mlp", "plain")
ACTIONS = {"dqn": "page", "maskableppo": "page", "sac": "scores"}
"""Action forms of the algorithms that support only one."""
CONTRIB = {"maskableppo": "MaskablePPO", "recurrentppo": "RecurrentPPO"}
"""Algorithms of the package sb3-contrib, and their classes."""
OFF_POLICY = ("dqn", "sac")
PAGE_POLICIES = {
    "a2c": "agents.networks.actor_critic.PageActorCritic",
    "dqn": "agents.networks.dqn.PageDQN",
    "maskableppo": "agents.networks.masked.MaskablePageActorCritic",
    "ppo": "agents.networks.actor_critic.PageActorCritic",
    "recurrentppo": "agents.networks.recurrent.PageRecurrent",
    "sac": "agents.networks.sac.PageSAC",
}
"""Policies of the network ``pages``."""
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
"""Arguments of the algorithms' classes that a run sets from its own arguments."""
REPLAY_BYTES = 256 * 2**20
"""Maximal memory of a replay buffer, in bytes."""


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    """Return the class of an algorithm.

    Raises:
        ValueError: an unknown name, or one of CONTRIB without the package sb3-contrib.
    """
    one_of("algorithm", name, ALGORITHMS)
    if name not in CONTRIB:
        own: dict[str, type[BaseAlgorithm]] = {"a2c": A2C, "dqn": DQN, "ppo": PPO, "sac": SAC}
        return own[name]
    try:
        import sb3_contrib
    except ImportError:
        raise ValueError(f"algorithm {name!r} needs the package sb3-contrib") from None
    contrib_class: type[BaseAlgorithm] = getattr(sb3_contrib, CONTRIB[name])
    return contrib_class


def check_action(algorithm: str, action_form: str) -> None:
    """Raise ValueError unless an algorithm supports a form of actions.

    ``sac`` draws a real number per page: scores. ``dqn`` and ``maskableppo`` choose one of several:
    a page.
    """
    needed = ACTIONS.get(algorithm, action_form)
    if action_form != needed:
        raise ValueError(f"{algorithm} needs env_args with action {needed!r}, got {action_form!r}")


def check_network(algorithm: str, network: str) -> None:
    """Raise ValueError for an unknown network, or one without a policy for an algorithm."""
    if network not in NETWORKS:
        if not (isinstance(network, str) and ":" in network):
            known = ", ".join(NETWORKS)
            raise ValueError(f"network must be one of {known}, or module:Class, got {network!r}")
        own_class("network", network, BaseFeaturesExtractor)
    if network == "pages":
        page_policy(algorithm)


def check_model_arguments(algorithm: str, model_args: Mapping[str, Any]) -> None:
    """Raise ValueError for an argument that the algorithm's class lacks, or that the run sets."""
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
            Stable-Baselines3's MlpPolicy on the unscaled observation; a recurrent policy has an
            LSTM of as many units before it. Or ``module:Class``, a features extractor of one's own
            before such layers: it gets the observation space, ``features`` and ``cycle``.
        features: names of the observation's columns.
        cycle: the time in which every page could be crawled once, m / R.
        width: units of a hidden layer.
        batch: pages per action, where the actor draws that many by its scores; None for other
            actions.

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
    if network != "pages":
        extractor = ScaledRows
        if network != "mlp":
            extractor = own_class("network", network, BaseFeaturesExtractor)
        kwargs = {"features_extractor_class": extractor, "features_extractor_kwargs": scaling}
        return {"policy": own, "policy_kwargs": {**kwargs, **perceptron}}
    kwargs = {
        "features_extractor_class": PageEncoder,
        "features_extractor_kwargs": {**scaling, "width": width},
        # Heads that score pages replace these layers.
        "net_arch": [1] if algorithm in OFF_POLICY else [],
    }
    if algorithm == "recurrentppo":
        kwargs["lstm_hidden_size"] = width
    elif algorithm not in OFF_POLICY:
        kwargs["share_features_extractor"] = False
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
    """Return the arguments for rollouts, batches and updates of an algorithm.

    They are those of :mod:`agents.sb3.hyperparameters`, adapted to the size of the run: a rollout
    has as many minibatches as the recommended one.

    Args:
        algorithm: one of ALGORITHMS.
        env_id: id of the environment.
        lanes: number of lanes.
        steps: steps in all, over all lanes; an upper bound of rollouts.
        rollout: steps per lane between updates, for on-policy algorithms.
        observation_bytes: memory of one observation.
    """
    arguments = hyperparameters.model_arguments(algorithm, env_id)
    recommended = hyperparameters.defaults(algorithm, env_id)
    if algorithm in OFF_POLICY:
        size = min(steps, arguments["buffer_size"], REPLAY_BYTES // (2 * observation_bytes))
        arguments["buffer_size"] = max(size, lanes)
        arguments["learning_starts"] = min(arguments["learning_starts"], steps // 10)
        most = arguments["gradient_steps"]
        arguments["gradient_steps"] = int(np.clip(lanes * most // recommended["lanes"], 1, most))
        if "target_update_interval" in arguments:
            least = 10 * lanes
            arguments["target_update_interval"] = max(arguments["target_update_interval"], least)
        return arguments
    length = max(min(rollout, steps // lanes), 2)
    arguments["n_steps"] = min(length, recommended["rollout"]) if algorithm == "a2c" else length
    if "batch_size" in arguments:
        size = length * lanes
        minibatches = round(recommended["lanes"] * recommended["rollout"] / arguments["batch_size"])
        arguments["batch_size"] = size // minibatches if size % minibatches == 0 else size
    return arguments
