"""Interface of the models of one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.predictors.columns import Columns

Table: TypeAlias = tuple[Columns, NDArray[np.bool_]]
"""Scaled columns of n examples and their labels, (n,) bool."""
Report: TypeAlias = Callable[[float, str], None]
"""Callback for the progress of training: a share in [0, 1], and a short text."""


def silent(done: float, text: str) -> None:
    """Report nothing."""


class Model(Protocol):
    """A fitted model: a network, or trees."""

    def log_odds(self, columns: Columns) -> NDArray[np.float64]:
        """Return log-odds of scaled columns, (n,) float64."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all learned arrays by name."""
