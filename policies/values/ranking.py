"""The pages with the largest crawl values, and the weights of signals in these values."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled, ready
from crawl_envs.compiled.promises import DUE, value_of
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiled_policies import UNDEFINED, CompiledIndex

_TABLES = types.float64[:, ::1], types.float64[:, ::1]
_PAGE_STATE = (types.float64[::1], types.float64[::1], types.boolean[::1])


@compiled(types.int64(VALUE, *_TABLES, *_PAGE_STATE))
def best_page(
    value: Any,
    parameters: FloatArray,
    promises: FloatArray,
    elapsed: FloatArray,
    signals: FloatArray,
    alive: BoolArray,
) -> int:
    """Return the alive page of the largest value, ties to the lowest index; 0 if none is alive.

    If the value of an alive page i is NaN, return -1 - i.
    """
    best = -1
    largest = -math.inf
    for page in range(elapsed.size):
        if alive[page]:
            page_value = value_of(value, parameters, promises, page, elapsed[page], signals[page])
            if math.isnan(page_value):
                return -1 - page
            if best < 0 or page_value > largest:
                best = page
                largest = page_value
    return max(best, 0)


@compiled(types.float64[::1](VALUE, *_TABLES, *_PAGE_STATE))
def page_values(
    value: Any,
    parameters: FloatArray,
    promises: FloatArray,
    elapsed: FloatArray,
    signals: FloatArray,
    alive: BoolArray,
) -> FloatArray:
    """Return the crawl value of every page, (m,); -inf for pages that are not alive."""
    values = np.full(elapsed.size, -math.inf)
    for page in range(elapsed.size):
        if alive[page]:
            values[page] = value_of(value, parameters, promises, page, elapsed[page], signals[page])
    return values


@compiled(
    types.float64[::1](
        SIGNAL_WEIGHT, types.float64[:, ::1], types.int64[::1], types.float64[::1], types.int64[::1]
    )
)
def weighted_signals(
    signal_weight: Any, parameters: FloatArray, page: IntArray, age: FloatArray, source: IntArray
) -> FloatArray:
    """Return the weight of each of n signals, (n,), given its page, its age and its source."""
    counts = np.empty(page.size)
    for signal in range(page.size):
        counts[signal] = signal_weight(parameters, page[signal], age[signal], source[signal])
    return counts


@compiled(SIGNAL_WEIGHT.signature)
def ignore_signal(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return 0: the value does not depend on signals."""
    return 0.0


class ValuePointer(types.WrapperAddressProtocol):
    """A compiled crawl value with a stored address, for fast choices among few pages.

    Numba looks up the address of a function argument at every call, which takes 20 us. A stored
    address costs no lookup, and up to 20 ns more per page. Both run the same arithmetic.
    """

    def __init__(self, value: Any) -> None:
        self.value = ready(value)  # keeps the code alive
        result = value.get_compile_result(VALUE.signature)
        self.address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        """Return the address of the function."""
        return int(self.address)

    def signature(self) -> Any:
        """Return the function's type."""
        return VALUE.signature


pointer = functools.cache(ValuePointer)
MAX_POINTER_PAGES = 500
"""Number of pages up to which the address of a value is looked up once."""


def counts_at_unknown_age(index: CompiledIndex, signals: IntArray) -> FloatArray:
    """Return each page's total signal weight, (m,), for signals without ages.

    ``signals`` are numbers of signals, by page, (m,), or by source and page, (S, m).
    """
    numbers = np.atleast_2d(signals)
    if index.signal_weight is None:
        return np.asarray(numbers.sum(axis=0), np.float64)
    total = np.zeros(numbers.shape[1])
    for source, count in enumerate(numbers):
        page = np.flatnonzero(count)
        age, sources = np.full(page.size, math.inf), np.full(page.size, source)
        total[page] += count[page] * signal_weights(index, page, age, sources)
    return total


def signal_weights(
    index: CompiledIndex, page: IntArray, age: FloatArray, source: IntArray
) -> FloatArray:
    """Return the weights of n signals in the index's value, (n,); all 1 if it counts signals."""
    if index.signal_weight is None:
        return np.ones(page.size)
    signals = page, age, source
    return np.asarray(ready(weighted_signals)(index.signal_weight, index.parameters, *signals))


def best_pages(
    index: CompiledIndex,
    page_state: tuple[FloatArray, FloatArray, BoolArray],
    form: str,
    batch: int,
    threshold: float | None = None,
) -> IntArray:
    """Return the pages that an index policy crawls, best first.

    Args:
        index: the value and its table.
        page_state: elapsed times, total weights of signals, and whether alive, (m,) each.
        form: the form of action.
        batch: crawls per decision in the form ``scores``.
        threshold: in the form ``refresh``, the value from which a page is crawled; None for the
            single best page.

    Raises:
        ValueError: the value of an alive page is NaN.
    """
    elapsed, signals, alive = page_state
    value = pointer(index.value) if elapsed.size < MAX_POINTER_PAGES else index.value
    arguments = (value, index.parameters, index.promises, elapsed, signals, alive)
    several = form == "scores" and batch > 1
    bar = math.inf if threshold is None else min(threshold, DUE)
    if not several and (form != "refresh" or threshold is None):
        page = ready(best_page)(*arguments)
        if page < 0:
            raise ValueError(UNDEFINED.format(-1 - page))
        return np.array([page])
    values = ready(page_values)(*arguments)
    if np.isnan(values).any():
        raise ValueError(UNDEFINED.format(np.isnan(values).argmax()))
    if several:
        return largest_pages(values, alive, batch)
    return np.flatnonzero(alive & (values >= bar))


def largest_pages(values: FloatArray, alive: BoolArray, count: int) -> IntArray:
    """Return the ``count`` alive pages of the largest values, best first, ties to lower indices."""
    count = min(count, int(alive.sum()))
    if count == 0:
        return np.zeros(1, dtype=np.int64)
    bound = np.partition(values, values.size - count)[values.size - count]
    candidates = np.flatnonzero(alive & (values >= bound))
    return candidates[np.argsort(-values[candidates], kind="stable")[:count]]
