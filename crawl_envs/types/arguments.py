"""Checks of arguments; an error names argument, value and expectation."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST, LARGEST = 1e-12, 1e12
"""The supported domain: times, rates, bandwidths, weights and prices are 0 or lie between these,
so that products and ratios of a few of them neither overflow nor vanish."""


def check_domain(name: str, values: ArrayLike) -> None:
    """Raise ValueError where finite numbers >= 0 are neither 0 nor in the supported domain."""
    array = np.asarray(values)
    outside = (array > LARGEST) | ((array < SMALLEST) & (array != 0.0))
    if outside.any():
        raise ValueError(
            f"{name} must be 0 or in [{SMALLEST:g}, {LARGEST:g}], got {array[outside].flat[0]}; "
            "try another unit"
        )


def within_domain(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return estimated or simulated rates, those below the domain as 0 and none above it."""
    kept: NDArray[np.float64] = np.where(abs(rates) < SMALLEST, 0.0, np.minimum(rates, LARGEST))
    return kept


def real(name: str, value: Any, *, above: float | None = None, least: float = -math.inf) -> float:
    """Return a finite number as a float.

    Raises:
        ValueError: ``value`` is not a number, not finite, not > ``above`` or not >= ``least``.
    """
    bound = f"> {above:g}" if above is not None else f">= {least:g}"
    fits = isinstance(value, Real) and not isinstance(value, bool) and _is_finite(value)
    if not fits or float(value) < least or (above is not None and float(value) <= above):
        raise ValueError(f"{name} must be finite and {bound}, got {value!r}")
    return float(value)


def _is_finite(value: Real) -> bool:
    """Return whether a number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False


def quantity(name: str, value: Any, *, above: float | None = None, least: float = 0.0) -> float:
    """Return a time, rate, bandwidth, weight or price as a float.

    Raises:
        ValueError: as :func:`real`, or it is outside the supported domain.
    """
    number = real(name, value, above=above, least=least)
    check_domain(name, number)
    return number


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


def floats(name: str, value: ArrayLike, *, flags: bool = False) -> NDArray[np.float64]:
    """Return an array of float64, itself where it is one already.

    Args:
        name: for the error.
        value: a number, a sequence of numbers, or what NumPy can read: a column of pandas, polars
            or pyarrow, or a tensor, without missing entries.
        flags: whether truth values are taken for 0 and 1.

    Raises:
        ValueError: it is a masked array, or of anything but real numbers: of truth values, texts,
            dates, complex numbers or other objects.
    """
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        array: NDArray[Any] = value
    else:
        array = _read(name, value)
    if array.dtype.kind == "O" and all(_is_real(item) for item in array.flat):
        array = array.astype(np.float64)
    if array.dtype.kind not in ("biuf" if flags else "iuf"):
        raise ValueError(
            f"{name} must be a number or an array of numbers, got {array.dtype} "
            f"{reprlib.repr(value)}"
        )
    return np.asarray(array, np.float64)


def _read(name: str, value: Any) -> NDArray[Any]:
    """Return what NumPy makes of an argument that is no plain array, or raise ValueError."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must be an array without a mask, got {reprlib.repr(value)}")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # the last from tensors with gradients
        raise ValueError(
            f"{name} must be a number or an array of numbers, got {reprlib.repr(value)} ({error})"
        ) from None


def _is_real(item: Any) -> bool:
    """Whether an item of an array of objects is a real number."""
    return isinstance(item, Real) and not isinstance(item, bool)


def _numbers(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return a float64 copy of an array of numbers >= 0, or raise ValueError."""
    array = np.array(floats(name, value))
    fits = np.isfinite(array) & (array >= 0.0)
    if not fits.all():
        raise ValueError(f"{name} must be finite and >= 0, got {array[~fits][0]}")
    return array


def _read_only(array: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a read-only array of the given shape, a copy where it differs."""
    if array.shape != shape:
        array = np.broadcast_to(array, shape).copy()
    array.setflags(write=False)
    return array


def per_page(name: str, value: ArrayLike, num_pages: int) -> NDArray[np.float64]:
    """Return a read-only float64 copy of length ``num_pages``; a scalar is repeated.

    Raises:
        ValueError: ``value`` is not an array of numbers of that shape, finite and >= 0.
    """
    array = _numbers(name, value)
    if array.shape not in ((), (num_pages,)):
        raise ValueError(
            f"{name} must be a scalar or have shape ({num_pages},), got shape {array.shape}"
        )
    return _read_only(array, (num_pages,))


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


def per_source(
    given: Mapping[str, ArrayLike], num_pages: int, most: int
) -> dict[str, NDArray[np.float64]]:
    """Return read-only float64 copies of parameters of sources of signals.

    All have shape (m,), or all (S, m) if one of them has S >= 2 rows.

    Args:
        given: by name, a scalar, an array (m,) for all sources, or an array (S, m).
        num_pages: number of pages, m.
        most: largest number of sources.

    Raises:
        ValueError: an argument is not an array of numbers of such a shape, finite and >= 0, or
            numbers of sources are outside [1, ``most``] or disagree.
    """
    arrays, rows = {}, {}
    for name, value in given.items():
        array = _numbers(name, value)
        if array.ndim > 2 or (array.ndim and array.shape[-1] != num_pages):
            raise ValueError(
                f"{name} must be a scalar or have shape ({num_pages},), or (S, {num_pages}) for "
                f"S sources, got shape {array.shape}"
            )
        if array.ndim == 2:
            whole(f"number of sources of {name}", array.shape[0], 1, most)
            rows[name] = array.shape[0]
        arrays[name] = array[0] if rows.get(name) == 1 else array
    count = max(rows.values(), default=1)
    for name, own in rows.items():
        if own not in (1, count):
            raise ValueError(f"{name} must be of {count} sources like the rest, got {own}")
    shape = (num_pages,) if count == 1 else (count, num_pages)
    return {name: _read_only(array, shape) for name, array in arrays.items()}


def bandwidth_function(bandwidth: Any, steps: Any) -> tuple[float, tuple[tuple[float, float], ...]]:
    """Return a bandwidth and its later steps, (time, bandwidth) pairs, as floats.

    Raises:
        ValueError: a bandwidth is not > 0, or times are not > 0 and increasing.
    """
    first = quantity("bandwidth", bandwidth, above=0.0)
    pairs: list[tuple[float, float]] = []
    if not isinstance(steps, Sequence):
        raise ValueError(f"bandwidth_steps must be (time, bandwidth) pairs, got {steps!r}")
    for step in steps:
        if not isinstance(step, Sequence) or len(step) != 2:
            raise ValueError(f"bandwidth_steps must be (time, bandwidth) pairs, got {step!r}")
        after = pairs[-1][0] if pairs else 0.0
        where = f"of the pair {step!r} in bandwidth_steps"
        time = quantity(f"time {where}", step[0], above=after)
        pairs.append((time, quantity(f"bandwidth {where}", step[1], above=0.0)))
    return first, tuple(pairs)


QUANTITIES = ("importance", "change_rate", "false_signal_rate")
"""Arguments that are 0 or in the supported domain; shares, and rates that solvers return, need not
be."""


def page_arrays(**given: ArrayLike) -> tuple[NDArray[np.float64], ...]:
    """Return the arguments as float64 arrays of one shape (m,).

    Raises:
        ValueError: an argument is not numeric, negative, not finite or outside the supported
            domain, or shapes disagree.
    """
    arrays = {name: floats(name, value) for name, value in given.items()}
    num_pages = max((array.size for array in arrays.values() if array.ndim), default=1)
    for name, array in arrays.items():
        if array.shape not in ((), (num_pages,)) or num_pages == 0:
            raise ValueError(
                f"{name} must be a scalar or have shape (m,) with the same m >= 1 everywhere "
                f"(here {num_pages}), got shape {array.shape}"
            )
        sound = np.isfinite(array) & (array >= 0.0)
        if not sound.all():
            raise ValueError(f"{name} must be finite and >= 0, got {array[~sound].flat[0]}")
        if name in QUANTITIES:
            check_domain(name, array)
    return tuple(
        np.require(np.broadcast_to(array, (num_pages,)), requirements=["C", "W"])
        for array in arrays.values()
    )
