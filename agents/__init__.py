"""Learnable agents; the only place of torch and Stable-Baselines3.

Importing the package imports neither: :func:`load` does, when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.loading import Agent

__all__ = ["ALGORITHMS", "load", "names"]

ALGORITHMS = ("a2c", "dqn", "maskableppo", "ppo")
"""What can be trained; ``maskableppo`` needs the package sb3-contrib."""

SHIPPED = Path(__file__).parent / "trained"


def names() -> tuple[str, ...]:
    """Return the names of the trained agents that come with the package, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/model.zip")))


def load(folder_or_name: str | Path, env: Any = None) -> Agent:
    """Return a trained agent; see :func:`agents.loading.load`."""
    from agents.loading import load as load_agent

    return load_agent(folder_or_name, env)
