"""One module per figure or table of a paper, as data; a new module is found by itself.

A module ``<paper>_<figure>`` has ``TITLE``, ``CLAIM`` (what the figure claims, in two sentences),
``ID`` (an environment), ``SETTINGS`` (for each name, arguments of the environment),
``policies()`` and ``bounds()`` (as in :class:`scripts.comparing.settings.Setting`), ``METRIC`` and
``REFERENCE`` (what is scored, and against which label), ``EXPECTED`` (levels and trends, see
:mod:`scripts.comparing.verdicts`) and ``plot(rows, path)``.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def names() -> tuple[str, ...]:
    """Names of the experiments, in order."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def find(name: str) -> ModuleType:
    """Return an experiment by its name, or by what follows the paper's name in it.

    Raises:
        ValueError: there is none, or more than one.
    """
    matching = [full for full in names() if name in (full, full.partition("_")[2])]
    if len(matching) != 1:
        short = [full.partition("_")[2] for full in names()]
        raise ValueError(f"figure must be one of {', '.join(short)}, got {name!r}")
    return importlib.import_module(f"{__name__}.{matching[0]}")
