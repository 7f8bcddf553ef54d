"""The algorithms that train agents, and the trained agents that come with the package."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

ALGORITHMS = ("a2c", "dqn", "maskableppo", "ppo", "recurrentppo", "sac")
"""Algorithms; ``maskableppo`` and ``recurrentppo`` need the package sb3-contrib."""

GENERALIST, PRIOR = "generalist.json", "prior.json"
AGENT_FILES = ("model.zip", "index.json", GENERALIST, PRIOR, "scorer.npz")
"""Names of agent files by preference: a model of Stable-Baselines3, a learned index, a generalist,
a prior of recorded sites, the actor of a page network without its critic."""
SHIPPED = Path(__file__).parent / "trained"


def names() -> tuple[str, ...]:
    """Return the names of the shipped agents, in alphabetical order."""
    files: Iterable[Path] = (path for file in AGENT_FILES for path in SHIPPED.glob(f"*/{file}"))
    return tuple(sorted({path.parent.name for path in files}))


def check_vacant(folder: Path, *, but: str = "") -> None:
    """Raise ValueError if a folder has an agent in a file other than ``but``."""
    if any((folder / name).exists() for name in AGENT_FILES if name != but):
        raise ValueError(f"{folder} holds an agent already; name another folder")


def agent_file(folder_or_name: str | Path) -> Path:
    """Return the file of an agent by its folder or name; ValueError if there is none."""
    if not isinstance(folder_or_name, str | os.PathLike):
        raise ValueError(f"folder_or_name must be a folder or a name, got {folder_or_name!r}")
    name = str(folder_or_name)
    folder = SHIPPED / name if name in names() else Path(folder_or_name)
    for file in AGENT_FILES:
        if (folder / file).exists():
            return folder / file
    shipped = f"the names {', '.join(names())}" if names() else "there are no shipped names yet"
    raise ValueError(f"there is no {' or '.join(AGENT_FILES)} in {folder} ({shipped})")
