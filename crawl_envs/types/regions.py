"""Regions of pages: static, churn or scroll content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_FRAGMENTS = 2**31 - 1
"""Largest number of fragments of a page, counted exactly."""


def _rows(name: str, value: ArrayLike, kinds: str) -> NDArray[Any]:
    """Return an array of shape (m, G); raise ValueError if it has another shape or type."""
    array = np.asarray(value)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in kinds:
        raise ValueError(
            f"{name} must have a row per page and a column per region, shape (m, G), got "
            f"dtype {array.dtype} and shape {array.shape}"
        )
    return array


@dataclass(frozen=True, eq=False, init=False)
class Regions:
    """The model of section 3.3 of Olston and Pandey (2008): independent regions of m pages.

    A region has K items of c fragments each. Updates are Poisson; each appends an item and evicts
    the one appended K updates before. So K = 1 is *churn*, where an update replaces everything,
    K > 1 is *scroll*, and a region of rate 0 is *static*. Rows are pages; pages with fewer than G
    regions are padded with regions of no fragments.

    Args:
        items: K, items in the region, integers >= 1, (m, G).
        size: c, fragments per item, integers >= 0, (m, G).
        rate: updates per unit time, >= 0, (m, G); 0 where the region is static.

    Attributes:
        items: (m, G) int64, read-only.
        size: (m, G) int64, read-only.
        rate: (m, G) float64, read-only; 0 where a region has no fragments.

    Raises:
        ValueError: shapes disagree, a number is outside its range, or a page has no fragment or
            more than MOST_FRAGMENTS.
    """

    items: IntArray
    size: IntArray
    rate: FloatArray

    def __init__(self, items: ArrayLike, size: ArrayLike, rate: ArrayLike) -> None:
        counts = {"items": _rows("items", items, "iu"), "size": _rows("size", size, "iu")}
        rates = _rows("rate", rate, "iuf").astype(np.float64)
        for name, array in (*counts.items(), ("rate", rates)):
            least = 1 if name == "items" else 0
            if array.shape != rates.shape:
                raise ValueError(f"{name} must have the shape {rates.shape}, got {array.shape}")
            if not np.all(np.isfinite(array) & (array >= least)):
                raise ValueError(f"{name} must be finite and >= {least}, got {array.min()}")
        whole = {name: array.astype(np.int64) for name, array in counts.items()}
        total = (whole["items"].astype(np.float64) * whole["size"]).sum(axis=1)
        if np.any(total < 1) or np.any(total > MOST_FRAGMENTS):
            page = int(np.argmax((total < 1) | (total > MOST_FRAGMENTS)))
            raise ValueError(
                f"a page must have 1 to {MOST_FRAGMENTS} fragments, got {total[page]:.0f} for "
                f"page {page}"
            )
        rates[whole["size"] == 0] = 0.0
        for name, values in (*whole.items(), ("rate", rates)):
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return int(self.rate.shape[0])

    @property
    def fragments(self) -> IntArray:
        """Number of fragments of each page at any time, n, (m,)."""
        total: IntArray = (self.items * self.size).sum(axis=1)
        return total

    @property
    def change_rate(self) -> FloatArray:
        """Rate of the updates of all regions of each page, (m,)."""
        total: FloatArray = self.rate.sum(axis=1)
        return total
