"""Read and check the arguments of a scheduler's calls before anything is changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import QUANTITIES, check_domain, floats
from policies.estimators.histories import truths
from policies.live.scheduler.ids import as_array
from policies.live.scheduler.page_values import COLUMNS

Ids: TypeAlias = ArrayLike
ROUNDING = 1e-12
"""Amount by which a sum of recalls may exceed 1, as in the tables of crawl values."""


def as_ids(ids: Ids) -> NDArray[Any]:
    """Return ids as an array of one axis; ValueError if NumPy would change some."""
    return np.atleast_1d(as_array("ids", ids))


def numbers(
    name: str,
    value: ArrayLike,
    count: int,
    *_: int,
    least: float = -math.inf,
    nan: bool = False,
    inf: bool = False,
) -> FloatArray:
    """Read numbers >= ``least`` as (n,), finite ones except where ``nan`` or ``inf`` is allowed."""
    array = floats(name, value)
    wrong = (np.isnan(array) & (not nan)) | (np.isinf(array) & (not inf))
    if array.shape not in ((), (count,)) or wrong.any():
        raise ValueError(f"{name} must be a finite number or {count} of them, got {array}")
    if least > -math.inf and (array < least).any():
        raise ValueError(f"{name} must be >= {least:g}, got {array.min()}")
    return np.array(np.broadcast_to(array, (count,)))


def column_of(name: str, value: ArrayLike, count: int, num_sources: int) -> FloatArray:
    """Read a column of pages, (n,) or (S, n) for several sources; ValueError if out of range."""
    several = num_sources > 1 and name in ("recall", "false_signal_rate")
    shape = (num_sources, count) if several else (count,)
    array = floats(name, value, flags=name == "complete")
    if array.shape not in ((), shape):
        raise ValueError(f"{name} must be a number or of shape {shape}, got {array.shape}")
    largest = 1.0 if name in ("recall", "complete") else math.inf
    sound = np.isfinite(array) & (array >= 0.0) & (array <= largest)
    if not sound.all():
        raise ValueError(f"{name} must lie in [0, {largest:g}], got {array[~sound].flat[0]}")
    if name in QUANTITIES:
        check_domain(name, array)
    column = np.array(np.broadcast_to(array, shape))
    if several and name == "recall" and column.sum(axis=0).max(initial=0.0) > 1.0 + ROUNDING:
        worst = column[:, column.sum(axis=0).argmax()].tolist()
        raise ValueError(f"recall must sum to at most 1 over sources, got {worst}")
    return column


def labels(name: str, value: Any, count: int, *_: int) -> NDArray[Any]:
    """Read one label per page, or one label for all, as (n,)."""
    array = host_labels(name, value)
    if array.size != 1 and array.shape != (count,):
        raise ValueError(f"{name} must be a label or {count} labels, got {array.shape}")
    return np.broadcast_to(array, (count,))


def host_labels(name: str, value: Any) -> NDArray[Any]:
    """Read host labels, strings or whole numbers, as an array of one axis."""
    array = np.atleast_1d(as_array(name, value))
    if array.size and (array.dtype.kind not in "Oiu" or array.ndim != 1):
        raise ValueError(f"{name} must be strings or whole numbers, got {value!r:.80}")
    return array


def groups(name: str, value: Any, count: int, *_: int) -> NDArray[Any]:
    """Read one label per page, or one label for all, as (n,); None is "", no group."""
    array = np.array(value, object)
    is_none = np.equal(array, np.array(None, object))
    array[is_none] = ""
    return labels(name, array.tolist() if is_none.any() else value, count)


def sources(name: str, value: ArrayLike, count: int, num_sources: int) -> NDArray[np.int64]:
    """Read the number of each signal's source, or one for all, as (n,)."""
    array = np.asarray(value)
    sound = array.dtype.kind in "iu" and array.shape in ((), (count,))
    if not sound or np.any((array < 0) | (array >= num_sources)):
        raise ValueError(
            f"{name} must be a whole number from 0 to {num_sources - 1} or {count} of them, "
            f"got {value!r:.80}"
        )
    return np.broadcast_to(array, (count,)).astype(np.int64)


def outcomes(name: str, value: Any, count: int, *_: int) -> BoolArray:
    """Read one truth value per page, (n,)."""
    return truths(name, value, (count,))


def positives(name: str, value: ArrayLike, count: int, *_: int, inf: bool = False) -> FloatArray:
    """Read a number > 0 per page, or one for all, as (n,); NaN where it is not known."""
    array = numbers(name, value, count, nan=True, inf=inf)
    if (array <= 0.0).any():
        raise ValueError(f"{name} must be > 0, or NaN where it is not known, got {array.min()}")
    check_domain(name, array[np.isfinite(array)])
    return array


amounts = partial(numbers, least=0.0)
"""Read finite numbers >= 0 as (n,)."""
READERS: dict[str, Callable[..., NDArray[Any]]] = {
    **dict.fromkeys(COLUMNS, column_of),
    **{"host": labels, "group": groups},
    "last_crawl": partial(numbers, nan=True),
    "least_interval": amounts,
    "most_interval": partial(positives, inf=True),
    "times": numbers,
    "ended": numbers,
    "retry_at": partial(numbers, nan=True),
    "source": sources,
    "changed": outcomes,
    "cost": positives,
}
"""The functions that read and check the arguments that have one entry per page."""

OPTIONAL = "host", "group", "last_crawl", "ended", "retry_at", "changed", "cost"
"""Names of the arguments per page that may be None."""
OF_PAGES = *COLUMNS, "host", "group", "last_crawl", "least_interval", "most_interval", "cost"
"""Names of the arguments of new and changed pages."""


def read(arguments: Mapping[str, Any], count: int, num_sources: int) -> dict[str, NDArray[Any]]:
    """Read the arguments of n pages that are not None as arrays by name, (.., n).

    Raises:
        ValueError: one is out of its range, of another shape, unknown, or None but not optional.
    """
    for name in set(arguments) - set(READERS):
        raise ValueError(f"columns must be among {', '.join(OF_PAGES)}, got {name!r}")
    present = {name: value for name, value in arguments.items() if value is not None}
    for name in set(arguments) - {*present, *OPTIONAL}:
        raise ValueError(f"{name} must be given, got None")
    return {name: READERS[name](name, value, count, num_sources) for name, value in present.items()}


def check_names(
    columns: Mapping[str, Any], needed: tuple[str, ...], before: Mapping[str, Any]
) -> None:
    """Raise ValueError unless new pages have the needed columns, and the same as earlier pages."""
    for name in columns.keys() - {*COLUMNS}:
        raise ValueError(f"columns must be among {', '.join(OF_PAGES)}, got {name!r}")
    missing = [name for name in needed if name not in columns]
    if missing:
        way_out = "scripts.estimate writes it for the pages of a crawl log; RoundRobin needs none"
        raise ValueError(f"{', '.join(missing)} must be given: the policy needs it; {way_out}")
    if before and set(columns) != set(before):
        raise ValueError(
            f"columns must be {', '.join(before)} as in earlier calls, got {', '.join(columns)}"
        )
