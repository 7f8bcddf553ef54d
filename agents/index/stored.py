"""Read and write learned weights as plain text; reading runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from agents.index.inputs import INPUTS, number_of_weights
from agents.runs import read_object, replace_text
from crawl_envs.types import FloatArray

INDEX = "index.json"


@dataclass(frozen=True, eq=False)
class StoredWeights:
    """The weights of two networks with hidden layers of the same size, and their training.

    Attributes:
        weights: a row of numbers, finite, up to MAX_WEIGHT in size.
        made: arguments of the training, plain JSON values.

    Raises:
        ValueError: a weight outside its range, or a number of weights that fits no networks.
    """

    FILE: ClassVar[str]
    FORMAT: ClassVar[str]
    INPUTS: ClassVar[tuple[str, ...]]
    MAX_WEIGHT: ClassVar[float]
    count: ClassVar[staticmethod[[int], int]]
    """Number of weights for H units of each hidden layer."""

    weights: FloatArray
    made: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        weights = np.array(self.weights, np.float64)
        if weights.ndim != 1:
            raise ValueError(f"weights must be numbers in a row, got shape {weights.shape}")
        outside = weights[~(np.abs(weights) <= self.MAX_WEIGHT)]
        if outside.size:
            bounds = f"[{-self.MAX_WEIGHT:g}, {self.MAX_WEIGHT:g}]"
            raise ValueError(f"weights must be finite and in {bounds}, got {outside[0]:g}")
        object.__setattr__(self, "weights", weights)
        if self.count(self.hidden) != weights.size:
            raise ValueError(
                f"weights must be those of two networks of {len(self.INPUTS)} inputs and H >= 1 "
                f"units in each hidden layer, got {weights.size} numbers"
            )

    @cached_property
    def hidden(self) -> int:
        """Units of each hidden layer, >= 1."""
        return next(units for units in count(1) if self.count(units) >= self.weights.size)

    def to_json(self) -> str:
        """Return the text of the file; equal weights have equal texts."""
        values = {
            "format": self.FORMAT,
            "inputs": list(self.INPUTS),
            "hidden": self.hidden,
            "made": dict(self.made),
            "weights": self.weights.tolist(),
        }
        return json.dumps(values, indent=1) + "\n"

    def save(self, folder: str | Path) -> None:
        """Write the file into a folder, created if necessary; replace an existing one atomically.

        Raises:
            OSError: it cannot be written.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        replace_text(Path(folder) / self.FILE, self.to_json())

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Return the weights in a folder.

        Raises:
            ValueError: there is no such file, or it is damaged, foreign, or for other inputs.
        """
        path = Path(folder) / cls.FILE
        values = read_object(path)
        if values.get("format") != cls.FORMAT:
            got = values.get("format")
            raise ValueError(f"{path} must have the format {cls.FORMAT!r}, got {got!r}")
        try:
            if values["inputs"] != list(cls.INPUTS):
                raise ValueError(f"inputs must be {', '.join(cls.INPUTS)}")
            stored = cls(np.array(values["weights"], np.float64), dict(values["made"]))
            if values.get("hidden", stored.hidden) != stored.hidden:
                raise ValueError(f"hidden must be {stored.hidden}, got {values['hidden']!r}")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return stored


class StoredIndex(StoredWeights):
    """A learned index: the weights of its networks (:func:`agents.index.inputs.networks_of`)."""

    FILE = INDEX
    FORMAT = "crawl-envs index 3"
    INPUTS = INPUTS
    MAX_WEIGHT = 1e6
    count = staticmethod(number_of_weights)
