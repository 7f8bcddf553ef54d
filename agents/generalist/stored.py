"""The file of a generalist: ``generalist.json``, plain text; reading it runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agents.catalog import GENERALIST
from agents.generalist.inputs import INPUTS, LEVEL
from agents.generalist.networks import number_of_weights
from agents.runs import read_object, replace_text
from crawl_envs.types import FloatArray

FORMAT = "crawl-envs generalist 1"
LARGEST = 1e9
"""Largest absolute weight."""
DIGITS = 6
"""Significant digits of a stored weight."""


@dataclass(frozen=True, eq=False)
class StoredGeneralist:
    """The weights of the two networks, and their training.

    Attributes:
        weights: as for :func:`agents.generalist.networks.correct`, finite, up to LARGEST in size;
            rounded to DIGITS digits here.
        hidden: units of each hidden layer, >= 1.
        made: how it was trained, plain values as JSON has them.

    Raises:
        ValueError: a weight out of its range, or a number of weights that fits no networks.
    """

    weights: FloatArray
    hidden: int
    made: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.hidden) is not int or self.hidden < 1:
            raise ValueError(f"hidden must be an integer >= 1, got {self.hidden!r}")
        weights = np.array(self.weights, np.float64)
        wanted = number_of_weights(self.hidden)
        if weights.shape != (wanted,):
            raise ValueError(f"weights must be {wanted} numbers, got shape {weights.shape}")
        if not np.all(np.abs(weights) <= LARGEST):
            raise ValueError(f"weights must be finite numbers in [{-LARGEST:g}, {LARGEST:g}]")
        rounded = [float(f"{weight:.{DIGITS}g}") for weight in weights.tolist()]
        object.__setattr__(self, "weights", np.array(rounded))

    def to_json(self) -> str:
        """Return the text of the file."""
        values = {
            "format": FORMAT,
            "inputs": [*INPUTS, *LEVEL],
            "hidden": self.hidden,
            "made": dict(self.made),
            "weights": self.weights.tolist(),
        }
        return json.dumps(values) + "\n"


def save_generalist(folder: str | Path, stored: StoredGeneralist) -> None:
    """Write a generalist into a folder, made if need be; an existing file is replaced atomically.

    Raises:
        OSError: it cannot be written.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    replace_text(Path(folder) / GENERALIST, stored.to_json())


def read_generalist(folder: str | Path) -> StoredGeneralist:
    """Return the generalist in a folder.

    Raises:
        ValueError: there is none, or the file is damaged, foreign, or for other inputs.
    """
    path = Path(folder) / GENERALIST
    values = read_object(path)
    if values.get("format") != FORMAT:
        raise ValueError(f"{path} is not a generalist of this suite ({FORMAT})")
    try:
        if values["inputs"] != [*INPUTS, *LEVEL]:
            raise ValueError(f"inputs must be {', '.join((*INPUTS, *LEVEL))}")
        weights = np.array(values["weights"], np.float64)
        return StoredGeneralist(weights, values["hidden"], dict(values["made"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
