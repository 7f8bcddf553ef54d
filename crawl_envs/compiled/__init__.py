"""Compiled building blocks: how functions are compiled and inlined, heaps, tables of arrays.

Public modules: array_tables, compiling, heap, lazy_argmax, promises.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

__all__ = ["BoolArray", "FloatArray", "IntArray"]
