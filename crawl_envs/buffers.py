"""Copies that stay valid, without new memory for each.

A fresh array of more than about 100 kB costs the operating system's work page by page, often many
times the copying itself. A buffer that nobody else holds any more can serve again: that is what
its reference count says, of the buffer and of all views of it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 8
"""Buffers that are kept; who holds more copies gets fresh arrays."""


def _references_unheld() -> int:
    """Count the references of a buffer that only a list holds, as Python counts in a loop."""
    for buffer in [np.empty(1)]:
        return sys.getrefcount(buffer)
    raise AssertionError("the list is not empty")


UNHELD = _references_unheld()


class Buffers:
    """Makes copies of arrays of one shape and dtype in buffers that nobody holds."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[Any]] = []

    def copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of a C-contiguous array; it is the caller's for as long as it is held."""
        for buffer in self._buffers:
            if sys.getrefcount(buffer) == UNHELD:
                np.copyto(buffer, array)
                return buffer
        fresh = array.copy()
        if len(self._buffers) < MOST:
            self._buffers.append(fresh)
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        """Leave the buffers out: others hold them."""
        return {}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self._buffers = []
