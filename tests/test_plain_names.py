"""Names say what a value is: words that only tell where it came from are few, and get fewer."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VAGUE = {
    "told",
    "tells",
    "heard",
    "hears",
    "given",
    "known",
    "kept",
    "found",
    "made",
    "makes",
    "seen",
    "sees",
    "said",
    "says",
    "left",
    "own",
    "owns",
    "most",
    "least",
    "each",
    "at",
    "of",
    "other",
    "others",
    "whole",
    "usual",
    "apart",
    "chosen",
    "played",
    "plays",
    "asked",
    "asks",
    "held",
    "shown",
    "meant",
    "beside",
    "worth",
    "again",
    "anew",
    "ahead",
    "likely",
    "close",
    "further",
    "large",
}
"""Participles and adjectives that are no names of values."""
NUM_VAGUE = {"crawl_envs": 26, "policies": 34, "agents": 8, "scripts": 15}
"""Numbers of such names by package, which may only be lowered."""


def names_of(scope: ast.AST) -> set[str]:
    """Names that a module, class or function binds itself, without underscores."""
    names, pending = set(), [*ast.iter_child_nodes(scope)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            pending += ast.iter_child_nodes(node)
    return {name.strip("_").lower() for name in names}


def vague_names(source: str) -> list[tuple[int, str]]:
    """Line of the scope and name of each vague name; one per scope that binds it."""
    scopes = ast.Module | ast.ClassDef | ast.FunctionDef
    return [
        (getattr(scope, "lineno", 1), name)
        for scope in ast.walk(ast.parse(source))
        if isinstance(scope, scopes)
        for name in sorted(names_of(scope) & VAGUE)
    ]


def test_each_scope_counts_a_name_once():
    source = """\
given = 1
def f(own):
    given = own
    self.kept_ = 2
    return [each for each in own]
"""
    assert vague_names(source) == [
        *((1, "given"), (2, "each"), (2, "given"), (2, "kept"), (2, "own"))
    ]


@pytest.mark.parametrize("package", NUM_VAGUE)
def test_vague_names_get_fewer(package):
    places = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, name in vague_names(path.read_text())
    ]
    assert len(places) == NUM_VAGUE[package], "\n".join(places)
