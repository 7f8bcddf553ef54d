"""Hyperparameter files in the format of RL-Zoo: an entry per environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # it ships no types

from agents.sb3.hyperparameters import WORDS, settings
from scripts.cli.options import PREFIX

POLICY_KWARGS = "__import__('agents.sb3.zoo').sb3.zoo.policy_kwargs"


def read_hyperparameters(path: Path | None, env_id: str) -> dict[str, Any]:
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
    if width := re.search(r"\bwidth\W{1,4}(\d+)", arguments):  # a value by name, or a call of ours
        entry["width"] = int(width[1])
    return entry


def network_of(policy: Any) -> str:
    """Return the network of a policy by the name of its class."""
    return "mlp" if str(policy).startswith("Mlp") else "pages"


def entry_of(algorithm: str, env_id: str, steps: int, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a file: the recommended hyperparameters, updated by those of a run.

    Args:
        algorithm: one of :data:`agents.catalog.ALGORITHMS`, or ``module:Class``.
        env_id: id of the environment.
        steps: length of the run.
        own: hyperparameters of the run by our names, ``width`` among them.
    """
    zoo = {ours: theirs for theirs, ours in WORDS.items()}
    return {
        **{name: value for name, value in settings(algorithm).items() if name not in zoo},
        "policy_kwargs": f"{POLICY_KWARGS}({algorithm!r}, {env_id!r}, width={own['width']})",
        "n_timesteps": steps,
        **{zoo.get(name, name): value for name, value in own.items() if name != "width"},
    }
