"""How compiled functions are declared, with their types kept for the type checker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types

Function = TypeVar("Function", bound=Callable[..., Any])

VALUE = types.FunctionType(
    types.float64(types.float64[:, ::1], types.int64, types.float64, types.int64)
)
"""Type of a crawl value: ``value(parameters, page, elapsed, signals)``."""


def compiled(signature: Any = None, **options: Any) -> Callable[[Function], Function]:
    """Declare a Numba kernel, cached on disk; division by zero gives inf or NaN as in NumPy."""
    decorate: Any = numba.njit(signature, cache=True, error_model="numpy", **options)
    return cast(Callable[[Function], Function], decorate)


def with_signature(kernel: Any, signature: Any) -> Any:
    """Compile a kernel for one signature, unless that is done, and return it.

    Only so can kernels take compiled functions as arguments, or be such arguments, and stay
    cached on disk; and it happens at the first use, not at import.
    """
    if not kernel.signatures:
        kernel.compile(signature)
        kernel.disable_compile()
    return kernel
