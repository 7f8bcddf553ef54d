"""Read and make hyperparameter files in the format of RL-Zoo.

Each algorithm has a file of recommended values, such as ``ppo.yml``. RL-Zoo needs an entry per
environment id; the values are the same for all ids. :func:`defaults` returns the fields of
:class:`agents.sb3.arguments.TrainArguments`, and :func:`model_arguments` the rest.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # it ships no types

from agents.catalog import ALGORITHMS
from crawl_envs.types.arguments import one_of

FOLDER = Path(__file__).parent
FALLBACK = "CrawlNCIS-v0"
WIDTH = 32
"""Recommended units of a hidden layer."""
WORDS = {
    "n_envs": "lanes",
    "n_timesteps": "steps",
    "n_steps": "rollout",
    "learning_rate": "learning_rate",
    "gamma": "gamma",
}
"""The name of a hyperparameter in TrainArguments, by its name in RL-Zoo."""
PREFIX = "crawl_envs:"
POLICY_KWARGS = "__import__('agents.sb3.zoo').sb3.zoo.policy_kwargs"


@functools.cache
def settings(algorithm: str) -> dict[str, Any]:
    """Read an algorithm's recommended hyperparameters from its file; ValueError if unknown.

    A user's class has the entry of the algorithm that it derives from
    (:func:`agents.sb3.algorithms.rules_of`).
    """
    if ":" in algorithm:
        from agents.sb3.algorithms import rules_of  # it needs torch

        algorithm = rules_of(algorithm)
    one_of("algorithm", algorithm, ALGORITHMS)
    with (FOLDER / f"{algorithm}.yml").open(encoding="utf-8") as file:
        entry: dict[str, Any] = yaml.safe_load(file)[FALLBACK]
    return entry


def defaults(algorithm: str) -> dict[str, Any]:
    """Return the recommended arguments of a run, by their names in TrainArguments."""
    entry = settings(algorithm)
    return {ours: entry[zoo] for zoo, ours in WORDS.items() if zoo in entry}


def model_arguments(algorithm: str) -> dict[str, Any]:
    """Return the recommended arguments of an algorithm's class that :func:`defaults` lacks."""
    excluded = (*WORDS, "policy", "policy_kwargs")
    return {name: value for name, value in settings(algorithm).items() if name not in excluded}


def network(algorithm: str) -> str:
    """Return the network of the recommended policy."""
    return network_of(settings(algorithm)["policy"])


def network_of(policy: Any) -> str:
    """Return the network (``mlp`` or ``pages``) of a policy, by the name of the policy's class."""
    return "mlp" if str(policy).startswith("Mlp") else "pages"


def read_entry(path: Path | None, env_id: str) -> dict[str, Any]:
    """Return the entry of an environment in a hyperparameter file.

    Only the class of the policy (Mlp or not) and the ``width`` of its arguments are used.

    Raises:
        ValueError: the file cannot be read, or has no such entry.
    """
    if path is None:
        return {}
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"hyperparameters {path} cannot be read: {error}") from None
    name = env_id.removeprefix(PREFIX)
    entry = entries.get(name) if isinstance(entries, dict) else None
    if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
        raise ValueError(f"hyperparameters {path} must have an entry {name}, got none")
    policy, arguments = entry.pop("policy", ""), str(entry.pop("policy_kwargs", ""))
    if policy:
        entry["network"] = network_of(policy)
    if width := re.search(
        r"\bwidth\W{1,4}(\d+)", arguments
    ):  # by name, or in a call of policy_kwargs
        entry["width"] = int(width[1])
    return entry


def entry_of(algorithm: str, env_id: str, steps: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a file: the recommended hyperparameters, updated by those of a run.

    Args:
        algorithm: one of :data:`agents.catalog.ALGORITHMS`, or ``module:Class``.
        env_id: id of the environment.
        steps: length of the run.
        values: hyperparameters of the run by the names of TrainArguments, with ``width``.
    """
    zoo = {ours: theirs for theirs, ours in WORDS.items()}
    return {
        **{name: value for name, value in settings(algorithm).items() if name not in zoo},
        "policy_kwargs": f"{POLICY_KWARGS}({algorithm!r}, {env_id!r}, width={values['width']})",
        "n_timesteps": steps,
        **{zoo.get(name, name): value for name, value in values.items() if name != "width"},
    }
