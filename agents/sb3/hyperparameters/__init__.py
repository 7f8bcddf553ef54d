"""Recommended settings: YAML files in the format of RL-Zoo, and the arguments of a run.

There is a file per algorithm, ``ppo.yml`` say. RL-Zoo can read them, and needs an entry per
environment id; the settings are the same for all. :func:`defaults` returns the fields of
:class:`agents.sb3.arguments.TrainArguments`, and :func:`model_arguments` the rest.
"""

from __future__ import annotations

import functools
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
"""Names in RL-Zoo and in TrainArguments."""


@functools.cache
def settings(algorithm: str) -> dict[str, Any]:
    """Return the entry of an algorithm as it stands in the file; ValueError for an unknown one.

    A class of one's own has that of the algorithm that it derives from
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
    """Return the recommended arguments of the algorithm's class not in :func:`defaults`."""
    others = (*WORDS, "policy", "policy_kwargs")
    return {name: value for name, value in settings(algorithm).items() if name not in others}


def network(algorithm: str) -> str:
    """Return the network of the recommended policy."""
    return "mlp" if settings(algorithm)["policy"].startswith("Mlp") else "pages"
