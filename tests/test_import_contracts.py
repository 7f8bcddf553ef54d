"""The contract on public modules: it reads a folder's docstring, and objects to all else."""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

from tests.import_contracts import PublicModules, public_modules


def problems_of(folder: Path, docstring: str, *imports: tuple[str, str]) -> list[str]:
    """Return what the contract says of ``a.b`` with modules ``c`` and ``d``, and of ``a.e``."""
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "__init__.py").write_text(f'"""{docstring}"""\n')
    graph = grimp.ImportGraph()
    for module in ("a", "a.b", "a.b.c", "a.b.d", "a.e"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = PublicModules.__new__(PublicModules)  # its options cannot be read beside Twisted
    check = contract.check(graph, verbose=False)
    problems: list[str] = check.metadata["problems"]
    assert check.kept == (not problems)
    return problems


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_public_modules_and_the_folder_may_be_imported(tmp_path: Path) -> None:
    text = "A room.\n\nPublic modules: c, d.\n"
    assert problems_of(tmp_path, text, ("a.e", "a.b.c"), ("a.e", "a.b"), ("a.b.c", "a.b.d")) == []
    assert public_modules("a.b") == {"c", "d"}


def test_private_modules_are_for_their_folder(tmp_path: Path) -> None:
    text = "A room.\n\nPublic module: c."
    wrong = problems_of(tmp_path, text, ("a.e", "a.b.d"), ("a.b.c", "a.b.d"))
    assert wrong == ["a.e imports a.b.d, which is not public"]


def test_listed_modules_exist(tmp_path: Path) -> None:
    text = "Public modules: c,\nmissing."
    assert problems_of(tmp_path, text) == ["a.b lists missing, which does not exist"]
