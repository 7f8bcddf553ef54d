"""Histories of crawls, grouped by page, and their checks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import real
from crawl_envs.types.compiling import compiled

SHORTEST, LONGEST = 1e-100, 1e100
"""Intervals lie between these, or are 0: neither their ratios nor their squares overflow."""


class Histories(NamedTuple):
    """Crawls of m pages.

    Attributes:
        intervals: time between a crawl and the page's crawl before, (n,) float64 or float32.
        changed: whether the page had changed, (n,) bool.
        offsets: the crawls of page i are rows offsets[i] .. offsets[i + 1] - 1; (m + 1,) int64.
    """

    intervals: FloatArray
    changed: BoolArray
    offsets: IntArray


def page_histories(
    intervals: ArrayLike, changed: ArrayLike, offsets: ArrayLike | None = None
) -> Histories:
    """Check crawls and group them; arguments and errors as in :func:`.fit_change_rates`."""
    lengths = _floats("intervals", intervals)
    if lengths.ndim not in (1, 2) or (lengths.ndim == 2 and offsets is not None):
        expected = "(n,)" if offsets is not None else "(n,) or (m, k)"
        raise ValueError(f"intervals must have shape {expected}, got {lengths.shape}")
    truths = np.ascontiguousarray(changed)
    if truths.shape != lengths.shape:
        raise ValueError(f"changed must have shape {lengths.shape}, got {truths.shape}")
    if truths.dtype != np.bool_:
        if truths.dtype.kind not in "iuf" or np.any((truths != 0) & (truths != 1)):
            raise ValueError(f"changed must be True or False, got {truths.dtype} {truths.flat[:3]}")
        truths = truths.astype(np.bool_)
    if offsets is None:
        m, k = lengths.shape if lengths.ndim == 2 else (1, lengths.size)
        ends: IntArray = np.arange(m + 1) * np.int64(k)
    else:
        ends = _checked_offsets(offsets, lengths.size)
    check_intervals("intervals", lengths.reshape(-1), truths.reshape(-1))
    return Histories(lengths.reshape(-1), truths.reshape(-1), ends)


def check_intervals(name: str, intervals: FloatArray, changed: BoolArray) -> None:
    """Raise ValueError for an interval that is invalid, or 0 and changed; both (n,)."""
    fault = _first_fault(intervals, changed)
    if fault < 0:
        return
    value = intervals[fault]
    if value == 0.0:
        raise ValueError(f"changed must be False where {name} is 0, got True at {fault}")
    if 0.0 < value < math.inf:
        raise ValueError(
            f"{name} must be 0 or in [{SHORTEST:g}, {LONGEST:g}], got {value} at {fault}; "
            "another unit of time may do"
        )
    raise ValueError(f"{name} must be finite and >= 0, got {value} at {fault}")


def bounds(low: float, high: float) -> tuple[float, float]:
    """Return the least and the greatest rate as floats; ValueError unless 0 <= low < high."""
    low = real("low", low, least=0.0)
    if high != math.inf:
        high = real("high", high, above=low)
    return low, float(high)


def imaginary(smoothing: float) -> float:
    """Return the length of the imaginary intervals as a float; ValueError unless valid or 0."""
    length = real("smoothing", smoothing, least=0.0)
    if length != 0.0 and not SHORTEST <= length <= LONGEST:
        raise ValueError(
            f"smoothing must be 0 or in [{SHORTEST:g}, {LONGEST:g}], got {smoothing!r}"
        )
    return length


def _floats(name: str, values: ArrayLike) -> FloatArray:
    try:
        array = np.asarray(values)
        dtype = np.float32 if array.dtype == np.float32 else np.float64
        return np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {values!r}") from None


def _checked_offsets(offsets: ArrayLike, length: int) -> IntArray:
    ends = np.asarray(offsets)
    if ends.ndim != 1 or len(ends) < 2 or ends.dtype.kind not in "iu":
        raise ValueError(
            f"offsets must be m + 1 >= 2 whole numbers, got dtype {ends.dtype}, shape {ends.shape}"
        )
    ends = np.ascontiguousarray(ends, dtype=np.int64)
    if ends[0] != 0 or ends[-1] != length or np.any(np.diff(ends) < 0):
        raise ValueError(
            f"offsets must rise from 0 to {length}, the number of crawls, "
            f"got {ends[0]} .. {ends[-1]}" + (", falling" if np.any(np.diff(ends) < 0) else "")
        )
    return ends


@compiled()
def _first_fault(intervals: FloatArray, changed: BoolArray) -> int:
    """Return the first invalid interval, or -1."""
    for k in range(len(intervals)):
        value = intervals[k]
        if (value == 0.0 and changed[k]) or not (value == 0.0 or SHORTEST <= value <= LONGEST):
            return k
    return -1
