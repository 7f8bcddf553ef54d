"""Compile functions that only kernels call, as parts of the kernels.

Numba optimises each compiled function, makes machine code and a Python wrapper, and optimises it
again in its callers. Functions of an :class:`Inlined` dispatcher are only typed and translated,
once for all literal values of an argument. They are skipped where they need arrays that a table
lacks (:class:`crawl_envs.compiled.array_tables.StateType`). Skipping reduced the first use of
CrawlNCIS-v0 from 7.6 to 3.9 processor seconds. Four families in a row, whose kernels no longer
share code, take 21.6 instead of 19.4 (one run each).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba.core import (
    codegen,
    compiler,
    compiler_machinery,
    dispatcher,
    registry,
    typed_passes,
    types,
)

Builder: Any = compiler.DefaultPassBuilder
Compiler: Any = compiler.CompilerBase
Dispatcher: Any = registry.CPUDispatcher
Flags: Any = compiler.Flags
FunctionCompiler: Any = dispatcher._FunctionCompiler  # type: ignore[attr-defined]
Library: Any = codegen.JITCodeLibrary
Lowering: Any = typed_passes.NativeLowering
register_pass: Any = compiler_machinery.register_pass


class NoAddresses:
    """A code generator for libraries without machine code; their globals get no addresses."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class InlinedLibrary(Library):  # type: ignore[misc]  # numba has no types
    """Intermediate code of a function that is optimised and compiled as a part of its callers."""

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
    """The compilation step that translates a function to LLVM into an :class:`InlinedLibrary`."""

    _name = "inlined_lowering"

    def run_pass(self, state: Any) -> bool:
        """Translate a function to LLVM code, without optimisation and machine code."""
        state.library = InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class InlinedCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler with :class:`InlinedLowering` as its translation to LLVM."""

    def define_pipelines(self) -> list[Any]:
        """Return the sequence of compilation passes, with the translation replaced."""
        passes = Builder.define_nopython_pipeline(self.state)
        passes.passes = [
            (InlinedLowering if step is Lowering else step, name) for step, name in passes.passes
        ]
        passes.finalize()
        return [passes]


class KnownFlags(Flags):  # type: ignore[misc]
    """Options of a compilation, which are collected once instead of at every comparison.

    Numba compares them at each operation that it types, and collects them for each comparison,
    which took a tenth of the first use of a family.
    """

    def values(self) -> dict[str, Any]:
        """Return the compilation options as a dictionary by name."""
        if "collected" not in vars(self):
            self.collected: dict[str, Any] = super().values()
        return self.collected


class PartCompiler(FunctionCompiler):  # type: ignore[misc]
    """The compiler of a function that does nothing where a table lacks the array it needs."""

    needs = ""

    def fold_argument_types(self, args: Any, kws: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the signature, and the types of arguments without literal values."""
        declared, folded = super().fold_argument_types(args, kws)
        return declared, tuple(map(types.unliteral, folded))

    def _get_implementation(self, args: Any, kws: Any) -> Callable[..., Any]:
        """Return the function for arguments of some types, or one that does nothing."""
        function: Callable[..., Any] = self.py_func
        if args and self.needs in getattr(args[0], "lacking", ()):
            function = eval(f"lambda {', '.join(self.pysig.parameters)}: None")
        return function

    def _customize_flags(self, flags: Any) -> KnownFlags:
        return KnownFlags(flags)


class Inlined(Dispatcher):  # type: ignore[misc]
    """A function for kernels; a call from Python compiles it separately, as a kernel.

    Args:
        function: the function.
        kernel: declares a kernel.
        needs: array of the table that is the first argument. The function returns None, and is
            not called where the array is empty; where the type of the table says that it is, the
            function is not compiled.
        **options: Numba's options of compilation.
    """

    def __init__(
        self, function: Callable[..., Any], kernel: Any, needs: str = "", **options: Any
    ) -> None:
        self._kernel = kernel
        options = (
            dict.fromkeys(("nopython", "no_cpython_wrapper", "no_cfunc_wrapper"), True) | options
        )
        super().__init__(function, targetoptions=options, pipeline_class=InlinedCompiler)
        self._compiler = PartCompiler(function, self.targetdescr, options, {}, InlinedCompiler)
        self._compiler.needs = needs

    def add_overload(self, result: Any) -> None:
        """Keep a compiled result for callers in compiled code; calls from Python do not use it."""
        self.overloads[tuple(result.signature.args)] = result

    @cached_property
    def alone(self) -> Any:
        """The function compiled as a separate kernel, for calls from Python."""
        return self._kernel(self.py_func)

    def _compile_for_args(self, *args: Any, **kwargs: Any) -> Any:
        """Return the compiled function that a call from Python with these arguments runs."""
        return self.alone
