"""Kernels in the cache are those of the files as they stand."""

import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.caching import CompileResultCacheImpl
from numba.core.dispatcher import Dispatcher

import agents
import crawl_envs
import policies
from crawl_envs.compiled import compiling
from crawl_envs.compiled.compiling import (
    VALUE,
    compiled,
    imports_of,
    ready,
    sources_of,
    sources_stamp,
)


def kernels() -> Iterator[tuple[str, Any]]:
    for package in (crawl_envs, policies, agents):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, Dispatcher) and value.py_func.__module__ == module.name:
                    yield f"{module.name}.{name}", value


def file_of(kernel: Any) -> Path:
    return Path(kernel.py_func.__code__.co_filename)


def test_the_stamp_of_a_kernel_covers_every_kernel_that_it_calls() -> None:
    calls = 0
    for name, kernel in kernels():
        files = sources_of(file_of(kernel))
        for word in kernel.py_func.__code__.co_names:
            other = kernel.py_func.__globals__.get(word)
            if isinstance(other, Dispatcher):
                assert file_of(other) in files, f"{name} calls {word}"
                calls += file_of(other) != file_of(kernel)
    assert calls > 100  # those of other files


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    texts = {
        "policies/__init__.py": "",
        "policies/top.py": "from policies.middle import (\n    one,\n    two,\n)\n",
        "policies/middle.py": "import math\nfrom policies.deep import bottom\none = two = 1\n",
        "policies/deep/__init__.py": "",
        "policies/deep/bottom.py": "",
        "policies/apart.py": "from policies.top import one\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, ns=(1, 1))
    monkeypatch.setattr(compiling, "ROOT", tmp_path)
    clear()
    yield tmp_path / "policies"
    clear()


def clear() -> None:
    imports_of.cache_clear()
    sources_stamp.cache_clear()


@pytest.mark.parametrize(
    ("changed", "files"),
    [
        ("top.py", {"top.py", "apart.py"}),
        ("middle.py", {"top.py", "middle.py", "apart.py"}),
        ("deep/bottom.py", {"top.py", "middle.py", "deep/bottom.py", "apart.py"}),
        ("apart.py", {"apart.py"}),
    ],
)
def test_a_change_of_a_file_changes_the_stamps_of_those_that_import_it(
    checkout: Path, changed: str, files: set[str]
) -> None:
    names = ["top.py", "middle.py", "deep/bottom.py", "apart.py"]
    before = {name: sources_stamp(checkout / name) for name in names}
    cell = sources_stamp(Path("cell of a notebook"))
    os.utime(checkout / changed, ns=(2, 2))
    clear()
    assert {name for name in names if sources_stamp(checkout / name) != before[name]} == files
    assert sources_stamp(Path("cell of a notebook")) != cell


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_the_cache_of_a_kernel_carries_the_stamp_of_its_file() -> None:
    @compiled()
    def kernel() -> int:
        return 1

    index = kernel._cache._cache_file  # type: ignore[attr-defined]
    assert index._source_stamp[1] == sources_stamp(Path(__file__))


class Former(NamedTuple):
    """A record that the next version does not have."""

    size: int


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_cache_that_names_a_type_which_is_gone_is_empty(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @compiled()
    def kernel() -> int:
        return 1

    index = kernel._cache._cache_file  # type: ignore[attr-defined]
    index._cache_path, index._index_path = str(tmp_path), str(tmp_path / "former.nbi")
    index.save(Former, b"")
    assert list(index._load_index()) == [Former]
    monkeypatch.delattr(sys.modules[__name__], "Former")
    assert index._load_index() == {}
    assert kernel() == 1


def test_kernels_are_compiled_where_no_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    compiling.warn_of_no_cache.cache_clear()

    def doubled(number: float) -> float:
        return 2.0 * number

    def by_signals(parameters: Any, page: int, elapsed: float, signals: float) -> float:
        total: float = parameters[page, 0] + signals
        return total

    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        kernel = compiled()(doubled)
    other = compiled(VALUE.signature)(by_signals)  # without a second warning
    assert kernel(3.0) == 6.0
    assert ready(other)(np.ones((2, 1)), 1, 0.0, 4.0) == 5.0


def test_other_errors_of_numba_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(numba, "njit", fail)
    with pytest.raises(RuntimeError, match="the disk is gone"):
        compiled()(clear)


@pytest.mark.parametrize("name", ["CrawlNCIS-v0", "CrawlOffers-v1"])
def test_environments_name_the_variable_that_switches_compilation_off(name: str) -> None:
    script = f"import gymnasium, crawl_envs; env = gymnasium.make('{name}'); env.reset(seed=0)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.stderr.splitlines()[-1].startswith("ValueError: NUMBA_DISABLE_JIT must be 0")
