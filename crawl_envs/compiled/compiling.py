"""Declaration of compiled functions, with types for the type checker."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types

import crawl_envs.compiled.compile_notice  # noqa: F401  # registers itself
from crawl_envs.compiled.inlining import Inlined, KnownFlags

if not logging.getLogger("numba").level:  # else it logs each instruction, at DEBUG
    logging.getLogger("numba").setLevel(logging.WARNING)

Function = TypeVar("Function", bound=Callable[..., Any])

VALUE = types.FunctionType(
    types.float64(types.float64[:, ::1], types.int64, types.float64, types.float64)
)
"""Type of a crawl value: ``value(parameters, page, elapsed, signals)``."""

SIGNAL_WEIGHT = types.FunctionType(
    types.float64(types.float64[:, ::1], types.int64, types.float64, types.int64)
)
"""Type of the weight of a signal: ``signal_weight(parameters, page, age, source)``."""

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("crawl_envs", "policies", "agents")
"""Packages of this project whose files can have kernels."""

IMPORT = re.compile(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)|^\s*import ([\w.]+)", re.MULTILINE)


@cache
def imports_of(file: Path) -> frozenset[Path]:
    """Return the files of this checkout from which a given Python file imports names."""
    modules = []
    for package, names, module in IMPORT.findall(file.read_text("utf-8")):
        modules += [module or package]
        modules += [f"{package}.{name}" for name in re.findall(r"\w+", names)]
    paths = [ROOT.joinpath(*module.split(".")) for module in modules]
    files = {path.with_suffix(".py") for path in paths} | {path / "__init__.py" for path in paths}
    return frozenset(file for file in files if file.is_file())


def sources_of(file: Path) -> set[Path]:
    """Return a Python file and all files of this checkout that it imports, directly or not.

    A cell of a notebook is no file: it may import any file with kernels.
    """
    every = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    sources = {file} if file.is_file() else set(every)
    new = list(sources)
    while new:
        following = imports_of(new.pop()) - sources
        sources |= following
        new += following
    return sources


@cache
def sources_stamp(file: Path) -> tuple[int, int]:
    """Return the newest modification time and the total size of a file and all that it imports."""
    stats = [source.stat() for source in sources_of(file)]
    return max(stat.st_mtime_ns for stat in stats), sum(stat.st_size for stat in stats)


def kernel_of(function: Function, **options: Any) -> Any:
    """Return a Numba kernel, cached on disk unless no folder for it can be written."""
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        warn_of_no_cache()
        return numba.njit(**options)(function)


@cache
def warn_of_no_cache() -> None:
    """Warn once that compiled code is not cached on disk, so that it is compiled at every start."""
    warnings.warn(
        "compiled code cannot be kept on disk, so every process compiles the simulator again: "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=2,
    )


def readable_entries(load_index: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Return the entries of a cache; none if a former version's name types that are gone."""
    try:
        return load_index()
    except (AttributeError, ImportError):
        return {}


def compiled(signature: Any = None, **options: Any) -> Callable[[Function], Function]:
    """Declare a Numba kernel: compiled at its first use, cached on disk.

    Division by zero gives inf or NaN, as in NumPy. A kernel that is a compiled function, or takes
    one as argument, needs a ``signature`` and a call of :func:`ready` before use.

    Numba recompiles a cached kernel when its own file changes, but not when a kernel that it calls
    does. Here a change of any file that the kernel's file imports, directly or not, does so too.
    """

    def decorate(function: Function) -> Function:
        settings = {"error_model": "numpy", "no_cfunc_wrapper": signature is None, **options}
        kernel = kernel_of(function, **settings)
        index = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
        if index is not None:  # not with NUMBA_DISABLE_JIT, nor if Numba moves its index
            file = Path(function.__code__.co_filename)
            index._source_stamp = (index._source_stamp, sources_stamp(file))
            index._load_index = partial(readable_entries, index._load_index)
            kernel._compiler._customize_flags = KnownFlags
        kernel.signature = signature
        return cast(Function, kernel)

    return decorate


def inlined(needs: str = "", **options: Any) -> Callable[[Function], Function]:
    """Declare a function that only kernels call, which is compiled and cached as a part of them.

    ``needs`` names an array, see :class:`crawl_envs.compiled.inlining.Inlined`.
    """

    def decorate(function: Function) -> Function:
        kernel = compiled(**options)
        return cast(Function, Inlined(function, kernel, needs, error_model="numpy", **options))

    return decorate


def check_compilation() -> None:
    """Raise ValueError if Numba's compilation is switched off; kernels of tables need it."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # of the environment
        raise ValueError(
            "NUMBA_DISABLE_JIT must be 0 or unset, got 1: environments, index policies and "
            "schedulers run as compiled code only"
        )


def ready(kernel: Any) -> Any:
    """Compile a kernel once for its declared signature, and return the kernel."""
    if kernel.signature is not None:
        check_compilation()
        kernel.compile(kernel.signature)
        kernel.disable_compile()
        kernel.signature = None
    return kernel
