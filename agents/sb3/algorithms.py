"""The algorithms of Stable-Baselines3, and their arguments for environments of pages."""

from __future__ import annotations

import importlib
import inspect
from contextlib import suppress
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from agents.catalog import ALGORITHMS
from agents.networks.encoder import PageEncoder
from agents.networks.scaling import ScaledRows
from agents.sb3.own_classes import own_class
from crawl_envs.types.arguments import one_of

NETWORKS = ("pages", "mlp", "plain")
ACTIONS = {"dqn": "page", "maskableppo": "page", "sac": "scores"}
"""The action form of each algorithm that supports only one."""
CONTRIB = {"maskableppo": "MaskablePPO", "recurrentppo": "RecurrentPPO"}
"""Algorithms of the package sb3-contrib, and their classes."""
OFF_POLICY = ("dqn", "sac")
COMMON_ARGUMENTS = {
    *("policy", "policy_kwargs", "env", "learning_rate", "gamma", "seed", "device"),
    "_init_setup_model",
}
"""Names of the arguments that every algorithm class must take."""
PAGE_POLICIES = {
    "a2c": "actor_critic.PageActorCritic",
    "dqn": "dqn.PageDQN",
    "maskableppo": "masked.MaskablePageActorCritic",
    "ppo": "actor_critic.PageActorCritic",
    "recurrentppo": "recurrent.PageRecurrent",
    "sac": "sac.PageSAC",
}
"""Policy classes for the network ``pages`` by algorithm, in :mod:`agents.networks`."""


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    """Return the class of an algorithm, one of ALGORITHMS or ``module:Class``.

    Raises:
        ValueError: an unknown name; one of CONTRIB without the package sb3-contrib; a class that is
            not imported, is no OnPolicyAlgorithm or OffPolicyAlgorithm, or does not take
            COMMON_ARGUMENTS.
    """
    if isinstance(name, str) and ":" in name:
        kind = own_class("algorithm", name, BaseAlgorithm)
        if not issubclass(kind, (OnPolicyAlgorithm, OffPolicyAlgorithm)):
            raise ValueError(f"algorithm must learn on policy or off policy, got {name!r}")
        if missing := sorted(COMMON_ARGUMENTS - parameters_of(kind)):
            raise ValueError(f"algorithm must take {', '.join(missing)}, got {name!r}")
        return kind
    one_of("algorithm", name, ALGORITHMS, "module:Class")
    try:
        package = importlib.import_module("sb3_contrib" if name in CONTRIB else "stable_baselines3")
    except ImportError:
        raise ValueError(f"algorithm {name!r} needs the package sb3-contrib") from None
    builtin: type[BaseAlgorithm] = getattr(package, CONTRIB.get(name, name.upper()))
    return builtin


def derived_from(algorithm: str) -> str:
    """Return the name in ALGORITHMS that an algorithm is or derives from, "" for none."""
    kind = algorithm_class(algorithm)
    for name in ALGORITHMS:
        with suppress(ValueError):  # its package is missing
            if issubclass(kind, algorithm_class(name)):
                return name
    return ""


def rules_of(algorithm: str) -> str:
    """Return the name in ALGORITHMS whose defaults apply to an algorithm.

    It is the algorithm from which the class derives. A class that derives from none has the
    defaults of ppo if it learns on policy, else of sac.
    """
    on_policy = issubclass(algorithm_class(algorithm), OnPolicyAlgorithm)
    return derived_from(algorithm) or ("ppo" if on_policy else "sac")


def parameters_of(kind: type) -> set[str]:
    """Return the names of a class's arguments, with those of its bases behind ``**kwargs``."""
    names: set[str] = set()
    for base in kind.__mro__:
        if "__init__" in vars(base):
            parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
            variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            names |= {entry.name for entry in parameters if entry.kind not in variable}
            if not any(entry.kind == inspect.Parameter.VAR_KEYWORD for entry in parameters):
                break
    return names - {"self"}


def new_parameters(algorithm: str) -> set[str]:
    """Return the names of the arguments that a user's class adds to those of its bases."""
    kind, base = algorithm_class(algorithm), derived_from(algorithm)
    bases = {algorithm_class(base)} if base else {OnPolicyAlgorithm, OffPolicyAlgorithm}
    inherited = set().union(*map(parameters_of, (*bases, BaseAlgorithm)))
    return parameters_of(kind) - inherited


def check_action(algorithm: str, action_form: str) -> None:
    """Raise ValueError unless an algorithm supports a form of actions.

    ``sac`` needs scores, one real number per page; ``dqn`` and ``maskableppo`` need one page. A
    user's class that derives from none of ALGORITHMS is not checked.
    """
    needed = ACTIONS.get(derived_from(algorithm), action_form)
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
        algorithm: one of ALGORITHMS, or ``module:Class``.
        network: ``pages``, ``mlp`` or ``plain``; see :mod:`agents.networks`. ``plain`` is
            Stable-Baselines3's MlpPolicy on the unscaled observation; a recurrent policy has an
            LSTM of as many units before it. Or ``module:Class``, a user's features extractor
            before such layers: it gets the observation space, ``features`` and ``cycle``.
        features: names of the observation's columns.
        cycle: the time in which every page can be crawled once, m / R.
        width: units of a hidden layer.
        batch: pages that the actor draws per action by its scores; None for other actions.

    Raises:
        ValueError: an unknown network, an algorithm whose package is missing, or the network
            ``pages`` for an off-policy algorithm that derives from none of ALGORITHMS.
    """
    check_network(network)
    off_policy = issubclass(algorithm_class(algorithm), OffPolicyAlgorithm)
    if network == "pages" and off_policy and not derived_from(algorithm):
        raise ValueError(f"network must be mlp or plain for {algorithm}, got {network!r}")
    base = rules_of(algorithm)
    recurrent = base == "recurrentppo"
    policy: Any = "MlpLstmPolicy" if recurrent else "MlpPolicy"
    kwargs: dict[str, Any] = {"net_arch": [width, width]}
    if network == "pages":
        module, name = PAGE_POLICIES[base].split(".")
        policy = getattr(importlib.import_module(f"agents.networks.{module}"), name)
        # The scores of pages replace these layers.
        kwargs["net_arch"] = [1] if off_policy else []
        if not recurrent and not off_policy:
            kwargs["share_features_extractor"] = False
        if batch is not None and base in ("a2c", "ppo", "recurrentppo"):
            kwargs["batch"] = batch
    if recurrent:
        kwargs["lstm_hidden_size"] = width
    if network != "plain":
        classes: dict[str, Any] = {"pages": PageEncoder, "mlp": ScaledRows}
        extractor = classes.get(network) or own_class("network", network, BaseFeaturesExtractor)
        sized = {"width": width} if network == "pages" else {}
        kwargs["features_extractor_class"] = extractor
        kwargs["features_extractor_kwargs"] = {"features": features, "cycle": cycle, **sized}
    return {"policy": policy, "policy_kwargs": kwargs}
