"""Arguments of a scheduler's calls, read and checked before anything is changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import QUANTITIES, check_domain, floats
from policies.scheduler.ids import check_same
from policies.scheduler.page_values import COLUMNS

Ids: TypeAlias = ArrayLike


def as_ids(ids: Ids) -> NDArray[Any]:
    """Return ids as an array of one axis; ValueError if NumPy would change or merge some."""
    array = np.asarray(ids)
    if not isinstance(ids, np.ndarray) and array.ndim <= 1:
        check_same(array.tolist(), [*ids] if array.ndim else ids)  # type: ignore[misc]
    return np.atleast_1d(array)


def part_of(column: Any, kept: BoolArray, count: int) -> Any:
    """Return the part of a column, (.., n), of some of n pages; others as they are."""
    if column is None or np.shape(column)[-1:] != (count,):
        return column
    return np.asarray(column)[..., kept]


def numbers_per_page(name: str, value: ArrayLike, count: int, *, finite: bool = True) -> FloatArray:
    """Return finite numbers of shape (n,), or NaN as well; ValueError otherwise."""
    array = floats(name, value)
    sound = np.isfinite(array) if finite else ~np.isinf(array)
    if array.shape not in ((), (count,)) or not sound.all():
        raise ValueError(f"{name} must be a finite number or {count} of them, got {array}")
    return np.array(np.broadcast_to(array, (count,)))


def copies_of(last_crawl: ArrayLike | None, count: int) -> FloatArray:
    """Return the times of the copies of n pages, (n,); inf for no copy."""
    given = math.nan if last_crawl is None else last_crawl
    copies = numbers_per_page("last_crawl", given, count, finite=False)
    return np.where(np.isnan(copies), math.inf, copies)


def least_of(interval: ArrayLike, count: int) -> FloatArray:
    """Return the least intervals between fetches of n pages, (n,)."""
    least = numbers_per_page("least_interval", interval, count)
    if (least < 0.0).any():
        raise ValueError(f"least_interval must be >= 0, got {least.min()}")
    return least


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
