"""The algorithms that train agents, and the trained agents that come with the package."""

from __future__ import annotations

import os
from pathlib import Path

ALGORITHMS = ("a2c", "dqn", "maskableppo", "ppo", "recurrentppo", "sac")
"""Algorithms; ``maskableppo`` and ``recurrentppo`` need the package sb3-contrib."""

GENERALIST, PRIOR, CURVES = "generalist.json", "prior.json", "curves.json"
AGENT_FILES = ("model.zip", "index.json", GENERALIST, PRIOR, CURVES, "scorer.npz")
"""Names of agent files by preference: a model of Stable-Baselines3, a learned index, a generalist,
a prior of recorded sites, a network of divergence curves, the actor of a page network without its
critic."""
SHIPPED = Path(__file__).parent / "trained"
RUNS = "seed-*"
"""Pattern of the folders of several trainings."""


def names() -> tuple[str, ...]:
    """Return the names of the shipped agents in alphabetical order, such as ``noisy-index``.

    An agent that was trained for each task is several: ``ppo-per-task/bursty``, and so on.
    """
    folders = [path for deep in ("*", "*/*") for path in SHIPPED.glob(deep) if not path.match(RUNS)]
    return tuple(sorted(it.relative_to(SHIPPED).as_posix() for it in folders if trainings(it)))


def folder_of(folder_or_name: str | Path) -> Path:
    """Return the folder of an agent: that of a shipped agent's name, or the folder itself."""
    name = str(folder_or_name)
    return SHIPPED / name if name in names() else Path(name)


def trainings(folder: Path) -> tuple[Path, ...]:
    """Return the folders of an agent's trainings; none if there is no agent.

    An agent is a folder with one of AGENT_FILES, or with subfolders ``seed-0``, ``seed-1``, ...,
    which all have one: several trainings of one agent.
    """
    runs = sorted(folder.glob(RUNS), key=lambda run: (len(run.name), run.name))
    runs = [folder] if _has_agent(folder) else runs
    return tuple(runs) if all(map(_has_agent, runs)) else ()


def _has_agent(folder: Path) -> bool:
    return any((folder / name).exists() for name in AGENT_FILES)


def check_vacant(folder: Path, *, but: str = "") -> None:
    """Raise ValueError if a folder has an agent in a file other than ``but``."""
    if any((folder / name).exists() for name in AGENT_FILES if name != but):
        raise ValueError(f"{folder} holds an agent already; name another folder")


def agent_file(folder_or_name: str | Path) -> Path:
    """Return the file of an agent by its folder or name; ValueError if there is none.

    Several trainings count by their first one.
    """
    if not isinstance(folder_or_name, str | os.PathLike):
        raise ValueError(f"folder_or_name must be a folder or a name, got {folder_or_name!r}")
    folder = folder_of(folder_or_name)
    for training in trainings(folder)[:1]:
        return next(training / file for file in AGENT_FILES if (training / file).exists())
    shipped = f"the names {', '.join(names())}" if names() else "there are no shipped names yet"
    raise ValueError(f"there is no {' or '.join(AGENT_FILES)} in {folder} ({shipped})")
