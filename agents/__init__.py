"""Learnable agents; the only place of torch and Stable-Baselines3.

Importing the package imports neither: :func:`load` does, when it is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.sb3.loading import AnyAgent

__all__ = ["ALGORITHMS", "load", "names"]

ALGORITHMS = ("a2c", "dqn", "maskableppo", "ppo", "recurrentppo", "sac")
"""What can be trained; ``maskableppo`` and ``recurrentppo`` need the package sb3-contrib."""

AGENT_FILES = ("model.zip", "index.json", "scorer.npz")
"""The file that makes a folder an agent: a model of Stable-Baselines3, a learned index, a page
network without its model; the first one found is taken."""
SHIPPED = Path(__file__).parent / "trained"


def names() -> tuple[str, ...]:
    """Return the names of the trained agents that come with the package, in alphabetical order."""
    files: Iterable[Path] = (path for file in AGENT_FILES for path in SHIPPED.glob(f"*/{file}"))
    return tuple(sorted({path.parent.name for path in files}))


def load(folder_or_name: str | Path, env: Any = None, *, cycle: float | None = None) -> AnyAgent:
    """Return a trained agent; see :func:`agents.sb3.loading.load`."""
    from agents.sb3.loading import load as load_agent

    return load_agent(folder_or_name, env, cycle=cycle)
