"""Kernels in the cache are those of the files as they stand."""

import importlib
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.dispatcher import Dispatcher

import agents
import crawl_envs
import policies
from crawl_envs.compiled import compiling
from crawl_envs.compiled.compiling import compiled, imports_of, sources_of, sources_stamp


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
