"""Faults of a source file: changed operators, comparisons, numbers, conditions and signs."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*", "@": "+"}
OPERATORS |= {"<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&"}
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
WORDS = {"and": "or", "or": "and", "True": "False", "False": "True", "min": "max", "max": "min"}
WORDS |= {"minimum": "maximum", "maximum": "minimum", "exp": "expm1", "expm1": "exp"}
WORDS |= {"floor": "ceil", "ceil": "floor"}


class Mutant(NamedTuple):
    """A fault: ``old`` at a position of a file becomes ``new``.

    ``line`` counts from 1; ``start`` is the position in the text.
    """

    file: str
    line: int
    start: int
    old: str
    new: str

    def applied(self, text: str) -> str:
        """Return the text of the file with the fault."""
        end = self.start + len(self.old)
        assert text[self.start : end] == self.old
        return text[: self.start] + self.new + text[end:]


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """Return all faults of a file, in the order of the text.

    Annotations, docstrings, decorators, and the messages of errors are left as they are.
    """
    text = (root / file).read_text("utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {
        Mutant(file, line, starts[line - 1] + column, old, new)
        for line, column, old, new in _faults(ast.parse(text), text.splitlines())
    }
    return sorted(found)


Fault = tuple[int, int, str, str]


def _faults(node: ast.AST, lines: Sequence[str]) -> Iterator[Fault]:
    """Yield line, column, old and new text of the faults of a tree."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.BinOp):
        yield from _between(node.left, node.right, OPERATORS, lines)
    elif isinstance(node, ast.AugAssign):
        yield from _between(node.target, node.value, OPERATORS, lines)
    elif isinstance(node, ast.Compare):
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            yield from _between(left, right, COMPARISONS, lines)
    elif isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _between(left, right, WORDS, lines)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.lineno, node.col_offset, "-", "+"
    elif isinstance(node, ast.Constant) and not isinstance(node.value, str | None):
        yield from _number(node, lines)
    elif isinstance(node, ast.Attribute) and node.attr in WORDS:
        column = node.end_col_offset - len(node.attr)
        yield node.end_lineno, column, node.attr, WORDS[node.attr]
    elif isinstance(node, ast.Name) and node.id in WORDS:
        yield node.lineno, node.col_offset, node.id, WORDS[node.id]
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text(child):
                yield from _faults(child, lines)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _number(node: ast.Constant, lines: Sequence[str]) -> Iterator[Fault]:
    old = lines[node.lineno - 1][node.col_offset : node.end_col_offset]
    if isinstance(node.value, bool):
        yield node.lineno, node.col_offset, old, WORDS[old]
    elif isinstance(node.value, int | float):
        yield node.lineno, node.col_offset, old, f"({old} + 1)"


def _between(
    left: ast.expr, right: ast.expr, words: dict[str, str], lines: Sequence[str]
) -> Iterator[Fault]:
    """Yield the fault of the operator between two operands."""
    for line in range(left.end_lineno, right.lineno + 1):
        first = left.end_col_offset if line == left.end_lineno else 0
        last = right.col_offset if line == right.lineno else len(lines[line - 1])
        part = lines[line - 1][first:last]
        for word in sorted(words, key=len, reverse=True):
            place = part.find(word)
            if place >= 0:
                yield line, first + place, word, words[word]
                return


def sample_of(root: Path, files: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return a random sample of the faults of all files, in random order."""
    everything = [mutant for file in files for mutant in mutants_of(root, file)]
    return random.Random(seed).sample(everything, min(count, len(everything)))
