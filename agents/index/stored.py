"""Learned indices as files: ``index.json``, plain text; reading it runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agents.index.inputs import INPUTS, OutcomeNetworks, networks_of
from agents.runs import read_object, replace_text
from crawl_envs.types import FloatArray

INDEX = "index.json"
FORMAT = "crawl-envs index 3"
LARGEST = 1e6
"""Largest absolute weight; trained networks have weights of about 1."""


@dataclass(frozen=True, eq=False)
class StoredIndex:
    """A learned index: the weights of its networks, and its training.

    Attributes:
        free: the weights of both networks in a row, up to LARGEST in size.
        made: how it was trained, plain values as JSON has them.

    Raises:
        ValueError: a weight outside its range, or a number of weights that fits no networks.
    """

    free: FloatArray
    made: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        free = np.array(self.free, np.float64)
        if free.ndim != 1 or not np.all(np.isfinite(free)):
            odd = free[~np.isfinite(free)]
            got = odd[0] if odd.size else f"shape {free.shape}"
            raise ValueError(f"weights must be finite numbers in a row, got {got}")
        if free.size and np.abs(free).max() > LARGEST:
            got = free[np.abs(free).argmax()]
            raise ValueError(f"weights must be in [{-LARGEST:g}, {LARGEST:g}], got {got:g}")
        networks_of(free, len(INPUTS))
        object.__setattr__(self, "free", free)

    @property
    def networks(self) -> OutcomeNetworks:
        """The networks."""
        return networks_of(self.free, len(INPUTS))

    def to_json(self) -> str:
        """Return the index as text; equal indices have equal texts."""
        values = {
            "format": FORMAT,
            "inputs": list(INPUTS),
            "made": dict(self.made),
            "weights": self.free.tolist(),
        }
        return json.dumps(values, indent=1) + "\n"


def save_index(folder: str | Path, index: StoredIndex) -> None:
    """Write an index into a folder, made if need be; an existing file is replaced atomically.

    Raises:
        OSError: it cannot be written.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    replace_text(Path(folder) / INDEX, index.to_json())


def read_index(folder: str | Path) -> StoredIndex:
    """Return the index in a folder.

    Raises:
        ValueError: there is none, or the file is damaged, foreign, or for other inputs.
    """
    path = Path(folder) / INDEX
    values = read_object(path)
    if values.get("format") != FORMAT:
        raise ValueError(f"{path} is not a learned index of this suite ({FORMAT})")
    try:
        if values["inputs"] != list(INPUTS):
            raise ValueError(f"inputs must be {', '.join(INPUTS)}")
        return StoredIndex(np.array(values["weights"], np.float64), dict(values["made"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
