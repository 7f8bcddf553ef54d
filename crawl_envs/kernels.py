"""How compiled functions are declared, with their types kept for the type checker."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types

Function = TypeVar("Function", bound=Callable[..., Any])

VALUE = types.FunctionType(
    types.float64(types.float64[:, ::1], types.int64, types.float64, types.int64)
)
"""Type of a crawl value: ``value(parameters, page, elapsed, signals)``."""


SOURCES = tuple(Path(__file__).resolve().parents[1] / name for name in ("crawl_envs", "policies"))


@cache
def sources_stamp() -> tuple[int, int]:
    """Return the newest time of change, and the total size, of the files that hold kernels."""
    files = (file for folder in SOURCES for file in folder.rglob("*.py"))
    stats = [file.stat() for file in files if b"@compiled" in file.read_bytes()]
    return max(stat.st_mtime_ns for stat in stats), sum(stat.st_size for stat in stats)


def compiled(signature: Any = None, **options: Any) -> Callable[[Function], Function]:
    """Declare a Numba kernel, cached on disk; division by zero gives inf or NaN as in NumPy.

    Numba renews a cached kernel when its own file changes, but not when a kernel that it calls
    does. Here a change of any file with kernels renews all.
    """

    def decorate(function: Function) -> Function:
        kernel: Any = numba.njit(signature, cache=True, error_model="numpy", **options)(function)
        index = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
        if index is not None:  # not with NUMBA_DISABLE_JIT, nor if Numba moves its index
            index._source_stamp = (index._source_stamp, sources_stamp())
        return cast(Function, kernel)

    return decorate


def with_signature(kernel: Any, signature: Any) -> Any:
    """Compile a kernel for one signature, unless that is done, and return it.

    Only so can kernels take compiled functions as arguments, or be such arguments, and stay
    cached on disk; and it happens at the first use, not at import.
    """
    if not kernel.signatures:
        kernel.compile(signature)
        kernel.disable_compile()
    return kernel
