"""Recommended settings: YAML files in the format of RL-Zoo, and the arguments of a run.

There is a file per algorithm, ``ppo.yml`` say, with an entry per environment id; RL-Zoo can read
them. :func:`defaults` returns the fields of :class:`agents.sb3.arguments.TrainArguments`, and
:func:`model_arguments` the rest. An id without an entry has the settings of CrawlNCIS-v0.
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
def _entries(algorithm: str) -> dict[str, dict[str, Any]]:
    with (FOLDER / f"{algorithm}.yml").open(encoding="utf-8") as file:
        entries: dict[str, dict[str, Any]] = yaml.safe_load(file)
    return entries


def settings(algorithm: str, env_id: str = FALLBACK) -> dict[str, Any]:
    """Return an entry as it stands in the file.

    Args:
        algorithm: one of ALGORITHMS.
        env_id: id of an environment, with or without ``crawl_envs:``.

    Raises:
        ValueError: an unknown algorithm.
    """
    one_of("algorithm", algorithm, ALGORITHMS)
    entries = _entries(algorithm)
    return dict(entries.get(env_id.removeprefix("crawl_envs:"), entries[FALLBACK]))


def defaults(algorithm: str, env_id: str = FALLBACK) -> dict[str, Any]:
    """Return the recommended arguments of a run, by their names in TrainArguments.

    Raises:
        ValueError: an unknown algorithm.
    """
    entry = settings(algorithm, env_id)
    return {ours: entry[zoo] for zoo, ours in WORDS.items() if zoo in entry}


def model_arguments(algorithm: str, env_id: str = FALLBACK) -> dict[str, Any]:
    """Return the recommended arguments of the algorithm's class not in :func:`defaults`.

    Raises:
        ValueError: an unknown algorithm.
    """
    entry = settings(algorithm, env_id)
    return {
        name: value
        for name, value in entry.items()
        if name not in WORDS and name not in ("policy", "policy_kwargs")
    }
