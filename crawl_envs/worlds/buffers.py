"""Reusable buffers for copies of observations."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 8
"""Largest number of reused buffers; further copies are new arrays."""


UNHELD = max(sys.getrefcount(buffer) for buffer in [np.empty(1)])
"""Reference count of a buffer held by a list only, as seen in a loop."""


class Buffers:
    """Reusable buffers for copies of arrays of one shape and dtype."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[Any]] = []

    def copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of a C-contiguous array; it is not reused while the caller refers to it."""
        for buffer in self._buffers:
            if sys.getrefcount(buffer) == UNHELD:
                np.copyto(buffer, array)
                return buffer
        fresh = array.copy()
        if len(self._buffers) < MOST:
            self._buffers.append(fresh)
        return fresh

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        """Leave the buffers out of copies: they belong to callers."""
        return Buffers, ()
