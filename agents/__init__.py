"""Learnable agents; the only place of torch and Stable-Baselines3.

Importing the package imports neither: :func:`load` does, when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.catalog import ALGORITHMS, names

if TYPE_CHECKING:
    from agents.sb3.loading import AnyAgent

__all__ = ["ALGORITHMS", "load", "names"]


def load(folder_or_name: str | Path, env: Any = None, *, cycle: float | None = None) -> AnyAgent:
    """Return a trained agent; see :func:`agents.sb3.loading.load`."""
    from agents.sb3.loading import load as load_agent

    return load_agent(folder_or_name, env, cycle=cycle)
