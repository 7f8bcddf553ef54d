"""Arguments of a scheduler's calls, read and checked before anything is changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import QUANTITIES, check_domain, floats
from policies.scheduler.page_values import COLUMNS

Ids: TypeAlias = ArrayLike


def as_ids(ids: Ids) -> NDArray[Any]:
    """Return ids as an array of one axis."""
    return np.atleast_1d(np.asarray(ids))


def numbers_per_page(name: str, value: ArrayLike, count: int) -> FloatArray:
    """Return finite numbers of shape (n,); ValueError otherwise."""
    array = floats(name, value)
    if array.shape not in ((), (count,)) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite number or {count} of them, got {array}")
    return np.array(np.broadcast_to(array, (count,)))


def copies_of(last_crawl: ArrayLike | None, count: int, now: float) -> FloatArray:
    """Return the times of the copies of n pages, (n,), none after now; inf for no copy."""
    copies = np.asarray(math.nan if last_crawl is None else last_crawl, np.float64)
    late = copies[copies > now]
    if copies.shape not in ((), (count,)) or late.size:
        got = late.flat[0] if late.size else f"shape {copies.shape}"
        raise ValueError(
            f"last_crawl must be a number or {count} numbers, none above {now}, the time of the "
            f"last call, got {got}"
        )
    return np.where(np.isnan(np.broadcast_to(copies, (count,))), math.inf, copies)


def columns_of(
    columns: Mapping[str, ArrayLike], count: int, num_sources: int
) -> dict[str, FloatArray]:
    """Return known columns of n pages, each in its range; ValueError otherwise."""
    known = {}
    for name, column in columns.items():
        if name not in COLUMNS:
            raise ValueError(f"columns must be among {', '.join(COLUMNS)}, got {name!r}")
        several = num_sources > 1 and name in ("recall", "false_signal_rate")
        shape = (num_sources, count) if several else (count,)
        array = floats(name, column, flags=name == "complete")
        if array.shape not in ((), shape):
            raise ValueError(f"{name} must be a number or of shape {shape}, got {array.shape}")
        most = 1.0 if name in ("recall", "complete") else math.inf
        sound = np.isfinite(array) & (array >= 0.0) & (array <= most)
        if not sound.all():
            raise ValueError(f"{name} must lie in [0, {most:g}], got {array[~sound].flat[0]}")
        if name in QUANTITIES:
            check_domain(name, array)
        known[name] = np.array(np.broadcast_to(array, shape))
    return known
