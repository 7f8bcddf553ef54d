"""The algorithms that train agents, and the trained agents that come with the package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ALGORITHMS = ("a2c", "dqn", "maskableppo", "ppo", "recurrentppo", "sac")
"""Algorithms; ``maskableppo`` and ``recurrentppo`` need the package sb3-contrib."""

AGENT_FILES = ("model.zip", "index.json", "scorer.npz")
"""Files of an agent in order of preference: a model of Stable-Baselines3, a learned index, a page
network without its model."""
SHIPPED = Path(__file__).parent / "trained"


def names() -> tuple[str, ...]:
    """Return the names of the trained agents that come with the package, in alphabetical order."""
    files: Iterable[Path] = (path for file in AGENT_FILES for path in SHIPPED.glob(f"*/{file}"))
    return tuple(sorted({path.parent.name for path in files}))
