"""Functions that only kernels call are compiled as parts of their kernels."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from numba.core import compiler

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.compiled.inlining import KnownFlags

CACHED = """
import sys
from numba.core import event
from crawl_envs.compiled.compiling import compiled, inlined

@inlined()
def half(number):
    if number % 2:
        raise ValueError("odd")
    return number // 2

@compiled()
def quarter(number):
    return half(half(number))

with event.install_recorder("numba:compile") as compilations:
    print(quarter(int(sys.argv[1])), half(8), end=" ")
    try:
        quarter(3)
    except ValueError as error:
        print(error, len(compilations.buffer) // 2)
"""


@inlined(forceinline=True)
def doubled(number):
    return 2 * number


@inlined()
def power(base, exponent):
    product = base / base
    for _ in range(exponent):
        product *= base
    return product


@compiled()
def doubled_power(base, exponent):
    return doubled(power(base, exponent))


@inlined()
def tripled(number):
    return 3 * number


@compiled()
def sum_of_triples():
    return tripled(1) + tripled(2)


def test_a_function_is_compiled_once_for_all_literal_arguments():
    assert sum_of_triples() == 9
    assert len(tripled.overloads) <= 1, "none if the kernel was cached"


def test_kernels_call_inlined_functions():
    assert doubled_power(3, 4) == 162
    assert "alone" not in vars(doubled), "it has no machine code of its own"


def test_options_that_are_collected_once_are_those_of_numba():
    options = compiler.Flags()
    known = KnownFlags(options)
    assert (known, hash(known)) == (options, hash(options))
    options.boundscheck = True
    assert known != options
    assert KnownFlags(options) == options
    assert doubled_power._compiler._customize_flags is KnownFlags
    assert isinstance(power._compiler._customize_flags(options), KnownFlags)


def test_a_call_from_python_compiles_an_inlined_function_by_itself():
    assert power(2.0, 10) == 1024.0
    assert power(np.int64(3), 2) == 9
    assert np.isnan(power(0.0, 1)), "division by zero as in NumPy"


def test_a_new_process_finds_kernels_and_inlined_functions_in_the_cache(tmp_path):
    script = tmp_path / "kernels.py"
    script.write_text(CACHED)
    root = Path(__file__).resolve().parents[3]
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(root)}

    def output(number):
        command = [sys.executable, str(script), str(number)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.split()

    assert output(8) == ["2", "4", "odd", "3"], "the kernel, its part, and the part as a kernel"
    assert output(12) == ["3", "4", "odd", "0"]
