"""The file of a generalist: ``generalist.json``."""

from __future__ import annotations

import numpy as np

from agents.catalog import GENERALIST
from agents.generalist.inputs import INPUTS, LEVEL
from agents.generalist.networks import number_of_weights
from agents.index.stored import StoredWeights

DIGITS = 6
"""Significant digits of a stored weight."""


class StoredGeneralist(StoredWeights):
    """The weights of :func:`agents.generalist.networks.correct`, rounded to DIGITS digits."""

    FILE = GENERALIST
    FORMAT = "crawl-envs generalist 1"
    INPUTS = (*INPUTS, *LEVEL)
    MAX_WEIGHT = 1e9
    count = staticmethod(number_of_weights)

    def __post_init__(self) -> None:
        super().__post_init__()
        rounded = [float(f"{weight:.{DIGITS}g}") for weight in self.weights.tolist()]
        object.__setattr__(self, "weights", np.array(rounded))
