"""What a model of one task is, whatever is inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.predictors.columns import Columns

Table: TypeAlias = tuple[Columns, NDArray[np.bool_]]
"""Scaled columns of n examples and their labels, (n,) bool."""
Report: TypeAlias = Callable[[float, str], None]
"""Is told how far training is, in [0, 1], and a few words on how it stands."""


class Model(Protocol):
    """A model that was fitted: a network, or trees."""

    @property
    def settings(self) -> Any:
        """Return how it was made, a dataclass."""

    def log_odds(self, columns: Columns) -> NDArray[np.float64]:
        """Return log-odds of scaled columns, (n,) float64."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that it has learned."""
