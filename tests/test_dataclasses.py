"""Dataclasses that hold arrays are not compared field by field, which arrays do not allow."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    path
    for folder in ("crawl_envs", "policies", "agents", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def compared_arrays(source: str) -> list[str]:
    """Return the classes with a generated ``__eq__`` and a field that is an array."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        decorators = [ast.unparse(one) for one in node.decorator_list]
        generated = any(d.startswith("dataclass") and "eq=False" not in d for d in decorators)
        fields = [
            ast.unparse(one.annotation) for one in node.body if isinstance(one, ast.AnnAssign)
        ]
        if generated and any("Array" in field and "ClassVar" not in field for field in fields):
            found.append(node.name)
    return found


def test_there_is_none() -> None:
    """A comparison with itself was true by identity before Python 3.13, and raises since."""
    found = {str(path): compared_arrays(path.read_text("utf-8")) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("decorator", "found"), [("@dataclass", ["One"]), ("@dataclass(eq=False)", []), ("", [])]
)
def test_they_are_found(decorator: str, found: list[str]) -> None:
    assert compared_arrays(f"{decorator}\nclass One:\n    rows: FloatArray\n") == found
