"""Checks of arguments; an error names argument, value and expectation."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_LISTED, MAX_CHOICES = 8, 30
"""Most words that an error lists: in any case, and if none is similar to the value."""
SMALLEST, LARGEST = 1e-12, 1e12
"""The supported domain: times, rates, bandwidths, weights and prices are 0 or lie between these,
so that products and ratios of a few of them neither overflow nor vanish."""


def check_domain(name: str, values: ArrayLike) -> None:
    """Raise ValueError if some numbers >= 0 are neither 0 nor between SMALLEST and LARGEST."""
    array = np.asarray(values)
    outside = (array > LARGEST) | ((array < SMALLEST) & (array != 0.0))
    if outside.any():
        raise ValueError(
            f"{name} must be 0 or in [{SMALLEST:g}, {LARGEST:g}], got {array[outside].flat[0]}; "
            "try another unit"
        )


def within_domain(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rates with those below the supported domain set to 0, those above to its largest."""
    limited: NDArray[np.float64] = np.where(abs(rates) < SMALLEST, 0.0, np.minimum(rates, LARGEST))
    return limited


def real(name: str, value: Any, *, above: float | None = None, least: float = -math.inf) -> float:
    """Return a finite number as a float.

    Raises:
        ValueError: ``value`` is not a number, not finite, not > ``above`` or not >= ``least``.
    """
    try:
        number = float(value) if _is_real(value) else math.nan
    except OverflowError:  # an integer beyond the range of floats
        number = math.nan
    if not math.isfinite(number) or number < least or (above is not None and number <= above):
        bound = f"> {above:g}" if above is not None else f">= {least:g}"
        raise ValueError(f"{name} must be finite and {bound}, got {value!r}")
    return number


def _is_real(value: Any) -> bool:
    """Return whether a value is a real number; True and False do not count as numbers."""
    return isinstance(value, Real) and not isinstance(value, bool)


def quantity(name: str, value: Any, *, above: float | None = None, least: float = 0.0) -> float:
    """Return a time, rate, bandwidth, weight or price as a float.

    Raises:
        ValueError: as :func:`real`, or it is outside the supported domain.
    """
    number = real(name, value, above=above, least=least)
    check_domain(name, number)
    return number


def share(name: str, value: Any, *, above: bool = False, below: bool = False) -> float:
    """Return a number in [0, 1] as a float; 0 is refused with ``above``, 1 with ``below``.

    Raises:
        ValueError: ``value`` is not a number, or lies outside.
    """
    number = real(name, value, above=0.0 if above else None, least=0.0)
    if number > 1.0 or (below and number == 1.0):
        bounds = f"{'(' if above else '['}0, 1{')' if below else ']'}"
        raise ValueError(f"{name} must lie in {bounds}, got {value!r}")
    return number


def one_of(name: str, value: Any, allowed: Any, also: str = "") -> Any:
    """Return an argument whose value must be one of several words.

    Args:
        name: name of the argument, for errors.
        value: value of the argument.
        allowed: the words, or a Literal of them.
        also: other values that the caller accepts, for the error.

    Raises:
        ValueError: ``value`` is none of the words.
    """
    choices = get_args(allowed) or tuple(allowed)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(_unknown(name, value, choices, f", or {also}" if also else ""))
    return value


def _unknown(name: str, value: Any, choices: Sequence[str], also: str) -> str:
    """Return an error message about an unknown word; if there are many, it names similar ones."""
    if len(choices) <= MAX_LISTED:
        return f"{name} must be one of {', '.join(choices)}{also}, got {value!r}"
    near = get_close_matches(str(value), choices, 3, 0.5)
    if near:
        return f"{name} {value!r} is unknown; did you mean {' or '.join(near)}?"
    some = f"{', '.join(choices[:3])} or one of {len(choices) - 3} others"
    if len(choices) <= MAX_CHOICES:
        some = f"one of {', '.join(choices)}"
    return f"{name} {value!r} is unknown; it must be {some}{also}"


def file_path(name: str, value: Any) -> Path:
    """Return an argument as Path; ValueError unless it is a Path or a string that is not empty."""
    if not isinstance(value, str | Path) or value == "":
        raise ValueError(f"{name} must be a path, got {value!r}")
    return Path(value)


def flag(name: str, value: Any) -> bool:
    """Return a bool; raise ValueError unless ``value`` is one."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return an integer as an int.

    Raises:
        ValueError: ``value`` is not an integer, or outside [``least``, ``most``].
    """
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):
        bound = f">= {least}" if most is None else f"in [{least}, {most}]"
        raise ValueError(f"{name} must be an integer {bound}, got {value!r}")
    return int(value)


def _read(name: str, value: Any) -> NDArray[Any]:
    """Return an argument as NumPy reads it; raise ValueError if NumPy cannot read it."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must be an array without a mask, got {reprlib.repr(value)}")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # the last from tensors with gradients
        raise ValueError(
            f"{name} must be a number or an array of numbers, got {reprlib.repr(value)} ({error})"
        ) from None


def floats(name: str, value: ArrayLike, *, flags: bool = False) -> NDArray[np.float64]:
    """Return an argument as an array of float64; an array of this type is returned itself.

    Args:
        name: for the error.
        value: a number, a sequence of numbers, or what NumPy can read: a column of pandas, polars
            or pyarrow, or a tensor, without missing entries.
        flags: whether truth values are taken for 0 and 1.

    Raises:
        ValueError: it is a masked array, or of anything but real numbers: of truth values, texts,
            dates, complex numbers or other objects.
    """
    array = _read(name, value)
    if array.dtype.kind == "O" and all(map(_is_real, array.flat)):
        try:
            array = array.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} must be finite, got {reprlib.repr(value)}") from None
    if array.dtype.kind not in ("biuf" if flags else "iuf"):
        raise ValueError(
            f"{name} must be a number or an array of numbers, got {array.dtype} "
            f"{reprlib.repr(value)}"
        )
    return np.asarray(array, np.float64)


def amounts(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return an argument as float64 array; raise ValueError unless it is finite and >= 0."""
    array = floats(name, value)
    fits = np.isfinite(array) & (array >= 0.0)
    if not fits.all():
        raise ValueError(f"{name} must be finite and >= 0, got {array[~fits][0]}")
    return array


def common_length(columns: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of pages: the last length of the first array, or 1 if all are scalars."""
    name, shape = next(((name, a.shape) for name, a in columns.items() if a.ndim), ("", (1,)))
    if shape[-1] == 0:
        raise ValueError(f"{name} must be of at least one page, got shape {shape}")
    return int(shape[-1])


def per_page(
    name: str, value: ArrayLike, num_pages: int, num_sources: int | None = None
) -> NDArray[np.float64]:
    """Return a read-only float64 copy of length ``num_pages``; a scalar is repeated.

    With a number of sources of signals, ``value`` may have a row for each, and the copy has shape
    (S, m) for S >= 2.

    Raises:
        ValueError: ``value`` is not an array of numbers of that shape, finite and >= 0.
    """
    array = amounts(name, value)
    if array.ndim > 1 + bool(num_sources) or array.shape[-1:] not in ((), (num_pages,)):
        rows = f", or (S, {num_pages}) for S sources" if num_sources else ""
        raise ValueError(
            f"{name} must be a scalar or have shape ({num_pages},){rows}, got shape {array.shape}"
        )
    array = array[0] if array.ndim == 2 and len(array) == 1 else array
    if array.ndim == 2 and len(array) != num_sources:
        raise ValueError(f"{name} must be of {num_sources} sources like the rest, got {len(array)}")
    shape = (num_sources or 1, num_pages)
    copy = np.broadcast_to(array, shape if shape[0] > 1 else shape[1:]).copy()
    copy.setflags(write=False)
    return copy


def cost_per_page(value: ArrayLike, num_pages: int) -> NDArray[np.float64]:
    """Return costs of crawls as a read-only copy, (m,); a scalar is repeated.

    Raises:
        ValueError: not one number > 0 per page, in the supported domain.
    """
    cost = per_page("cost", value, num_pages)
    outside = (cost < SMALLEST) | (cost > LARGEST)
    if outside.any():
        page = int(outside.argmax())
        raise ValueError(
            f"cost must be in [{SMALLEST:g}, {LARGEST:g}], got {cost[page]} for page {page}; try "
            "another unit"
        )
    return cost


def whole_per_page(name: str, value: ArrayLike, num_pages: int) -> NDArray[np.int64]:
    """Return a read-only int64 copy of integers >= 0, one per page.

    Raises:
        ValueError: ``value`` is not an array of integers >= 0 of that shape.
    """
    array = _read(name, value)
    if array.shape != (num_pages,) or array.dtype.kind not in "iu" or array.min() < 0:
        raise ValueError(
            f"{name} must be a whole number >= 0 for each of {num_pages} pages, got dtype "
            f"{array.dtype}, shape {array.shape}"
        )
    numbers = array.astype(np.int64)
    numbers.setflags(write=False)
    return numbers


def bandwidth_function(bandwidth: Any, steps: Any) -> tuple[float, tuple[tuple[float, float], ...]]:
    """Return a bandwidth and its later steps, (time, bandwidth) pairs, as floats.

    Raises:
        ValueError: a bandwidth is not > 0, or times are not > 0 and increasing.
    """
    first = quantity("bandwidth", bandwidth, above=0.0)
    pairs: list[tuple[float, float]] = []
    if not isinstance(steps, Sequence | np.ndarray):
        raise ValueError(f"bandwidth_steps must be (time, bandwidth) pairs, got {steps!r}")
    for step in steps:
        if not isinstance(step, Sequence | np.ndarray) or np.shape(step) != (2,):
            raise ValueError(f"bandwidth_steps must be (time, bandwidth) pairs, got {step!r}")
        after = pairs[-1][0] if pairs else 0.0
        where = f"of the pair {step!r} in bandwidth_steps"
        time = quantity(f"time {where}", step[0], above=after)
        pairs.append((time, quantity(f"bandwidth {where}", step[1], above=0.0)))
    return first, tuple(pairs)


def plain(value: Any) -> Any:
    """Turn numbers, paths, enumerations, lists and mappings into values that JSON can store.

    The values may come from any library. Other objects are returned unchanged.
    """
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy, columns of pandas, tensors
        value = value.tolist()
    if isinstance(value, Path | Enum):
        return str(value) if isinstance(value, Path) else value.value
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if type(value) is tuple:
        return tuple(map(plain, value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | tuple):
        return list(map(plain, value))
    if isinstance(value, Real) and not isinstance(value, int | float):
        return int(value) if isinstance(value, Integral) else float(value)
    return value


QUANTITIES = ("importance", "change_rate", "false_signal_rate")
"""Arguments that are 0 or in the supported domain; shares, and rates that solvers return, need not
be."""


def page_arrays(**given: ArrayLike) -> tuple[NDArray[np.float64], ...]:
    """Return arguments that have one number per page as float64 arrays of one shape (m,).

    Raises:
        ValueError: an argument is not numeric, negative, not finite or outside the supported
            domain, or shapes disagree.
    """
    arrays = {name: amounts(name, value) for name, value in given.items()}
    num_pages = max((array.size for array in arrays.values() if array.ndim), default=1)
    for name, array in arrays.items():
        if array.shape not in ((), (num_pages,)) or num_pages == 0:
            raise ValueError(
                f"{name} must be a scalar or have shape (m,) with the same m >= 1 everywhere "
                f"(here {num_pages}), got shape {array.shape}"
            )
        if name in QUANTITIES:
            check_domain(name, array)
    return tuple(
        np.require(np.broadcast_to(array, (num_pages,)), requirements=["C", "W"])
        for array in arrays.values()
    )
