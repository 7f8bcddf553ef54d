"""Compilation of functions that only kernels call.

Numba optimises every compiled function, and makes machine code and a wrapper for Python of it,
before it links it into its callers, where it is optimised again. Functions of an :class:`Inlined`
dispatcher are only typed and translated, which shortens the first use of a family by 30% or
more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
from numba.core import codegen, compiler, compiler_machinery, registry, typed_passes

Builder: Any = compiler.DefaultPassBuilder
Compiler: Any = compiler.CompilerBase
Dispatcher: Any = registry.CPUDispatcher
Library: Any = codegen.JITCodeLibrary
Lowering: Any = typed_passes.NativeLowering
register_pass: Any = compiler_machinery.register_pass


class NoAddresses:
    """The code generator of a library without machine code, whose globals have no addresses."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class InlinedLibrary(Library):  # type: ignore[misc]  # numba has no types
    """Code that is optimised, and made machine code, as a part of its callers."""

    @property
    def codegen(self) -> NoAddresses:
        """The code generator."""
        return NoAddresses(self._codegen)

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, since there is no machine code."""
        self._ensure_finalized()
        return 0


@register_pass(mutates_CFG=True, analysis_only=False)
class InlinedLowering(Lowering):  # type: ignore[misc]
    """Translation to LLVM into an :class:`InlinedLibrary`."""

    _name = "inlined_lowering"

    def run_pass(self, state: Any) -> bool:
        """Translate a function."""
        state.library = InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class InlinedCompiler(Compiler):  # type: ignore[misc]
    """Numba's passes, with another translation."""

    def define_pipelines(self) -> list[Any]:
        """Return the one sequence of passes."""
        passes = Builder.define_nopython_pipeline(self.state)
        passes.passes = [
            (InlinedLowering if step is Lowering else step, name) for step, name in passes.passes
        ]
        passes.finalize()
        return [passes]


class Inlined(Dispatcher):  # type: ignore[misc]
    """A function for kernels; a call from Python, as in tests, compiles it once more.

    Args:
        function: the function.
        **options: Numba's options of compilation.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self._options = options
        own = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
        super().__init__(function, targetoptions=own, pipeline_class=InlinedCompiler)

    def add_overload(self, result: Any) -> None:
        """Keep a result for callers; calls from Python do not see it."""
        self.overloads[tuple(result.signature.args)] = result

    @cached_property
    def alone(self) -> Any:
        """The function as a kernel of its own."""
        return numba.njit(**self._options)(self.py_func)

    def _compile_for_args(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function that a call from Python calls."""
        return self.alone
