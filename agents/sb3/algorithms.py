"""The algorithms, and their arguments for environments of pages."""

from __future__ import annotations

import importlib
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from agents.catalog import ALGORITHMS
from agents.networks.encoder import PageEncoder
from agents.networks.scaling import ScaledRows
from agents.sb3.own_classes import own_class
from crawl_envs.types.arguments import one_of

NETWORKS = ("pages", "mlp", "plain")
ACTIONS = {"dqn": "page", "maskableppo": "page", "sac": "scores"}
"""Action forms of the algorithms that support only one."""
CONTRIB = {"maskableppo": "MaskablePPO", "recurrentppo": "RecurrentPPO"}
"""Algorithms of the package sb3-contrib, and their classes; others are named as their classes."""
OFF_POLICY = ("dqn", "sac")
PAGE_POLICIES = {
    "a2c": "actor_critic.PageActorCritic",
    "dqn": "dqn.PageDQN",
    "maskableppo": "masked.MaskablePageActorCritic",
    "ppo": "actor_critic.PageActorCritic",
    "recurrentppo": "recurrent.PageRecurrent",
    "sac": "sac.PageSAC",
}
"""Policies of the network ``pages``, in :mod:`agents.networks`."""


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    """Return the class of an algorithm.

    Raises:
        ValueError: an unknown name, or one of CONTRIB without the package sb3-contrib.
    """
    one_of("algorithm", name, ALGORITHMS)
    try:
        package = importlib.import_module("sb3_contrib" if name in CONTRIB else "stable_baselines3")
    except ImportError:
        raise ValueError(f"algorithm {name!r} needs the package sb3-contrib") from None
    found: type[BaseAlgorithm] = getattr(package, CONTRIB.get(name, name.upper()))
    return found


def check_action(algorithm: str, action_form: str) -> None:
    """Raise ValueError unless an algorithm supports a form of actions.

    ``sac`` draws a real number per page: scores. ``dqn`` and ``maskableppo`` choose one of several:
    a page.
    """
    needed = ACTIONS.get(algorithm, action_form)
    if action_form != needed:
        raise ValueError(f"{algorithm} needs env_args with action {needed!r}, got {action_form!r}")


def check_network(network: str) -> None:
    """Raise ValueError for an unknown network."""
    if isinstance(network, str) and ":" in network:
        own_class("network", network, BaseFeaturesExtractor)
    else:
        one_of("network", network, NETWORKS, "module:Class")


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
        ValueError: an unknown network, or an algorithm whose package is missing.
    """
    check_network(network)
    algorithm_class(algorithm)
    recurrent = algorithm == "recurrentppo"
    policy: Any = "MlpLstmPolicy" if recurrent else "MlpPolicy"
    kwargs: dict[str, Any] = {"net_arch": [width, width]}
    if network == "pages":
        module, name = PAGE_POLICIES[algorithm].split(".")
        policy = getattr(importlib.import_module(f"agents.networks.{module}"), name)
        # Heads that score pages replace these layers.
        kwargs["net_arch"] = [1] if algorithm in OFF_POLICY else []
        if not recurrent and algorithm not in OFF_POLICY:
            kwargs["share_features_extractor"] = False
        if batch is not None and algorithm in ("a2c", "ppo"):
            kwargs["batch"] = batch
    if recurrent:
        kwargs["lstm_hidden_size"] = width
    if network != "plain":
        known: dict[str, Any] = {"pages": PageEncoder, "mlp": ScaledRows}
        own = known.get(network) or own_class("network", network, BaseFeaturesExtractor)
        sized = {"width": width} if network == "pages" else {}
        kwargs["features_extractor_class"] = own
        kwargs["features_extractor_kwargs"] = {"features": features, "cycle": cycle, **sized}
    return {"policy": policy, "policy_kwargs": kwargs}
