"""Read and validate columns of the Parquet files of recorded data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray

ColumnKind: TypeAlias = Literal["whole", "number", "optional number", "any number", "flag", "word"]
"""Type of a column: integers, finite floating-point numbers, the same or nulls, the same or
integers, bool, strings."""
KINDS: dict[ColumnKind, tuple[tuple[str, ...], str, type]] = {
    "whole": (("is_integer",), "whole numbers", np.int64),
    "number": (("is_floating",), "floating-point numbers", np.float64),
    "optional number": (("is_floating",), "floating-point numbers", np.float64),
    "any number": (("is_floating", "is_integer"), "numbers", np.float64),
    "flag": (("is_boolean",), "True or False", np.bool_),
    "word": (("is_string", "is_large_string"), "words", np.object_),
}
"""Tests of ``pyarrow.types``, of which one must hold; the expectation in words; type in NumPy."""


def column_error(path: Path, column: str, value: object, expected: str) -> ValueError:
    """Return a ValueError that names a file, a column, its bad ``value``, and what was expected."""
    return ValueError(f"{path}: column {column!r} holds {value}, expected {expected}")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a Parquet file, with checks that name file, column, value and expectation.

    Attributes:
        path: the file.
        columns: (rows,) each: int64 for integers, float64 for numbers (nulls of an optional number
            are NaN), bool for flags and str objects for strings.
    """

    path: Path
    columns: dict[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the column of a given name as an array."""
        return self.columns[name]

    def check(self, name: str, wrong: BoolArray, expected: str | Callable[[int], str]) -> None:
        """Raise ValueError about the first row that the mask ``wrong``, (rows,), marks, if any.

        ``expected`` is in words, or a function of the row that returns them.
        """
        if wrong.any():
            row = int(np.argmax(wrong))
            value = self[name][row]
            cell = "null" if value != value else value
            words = expected if isinstance(expected, str) else expected(row)
            raise column_error(self.path, name, f"{cell} in row {row}", words)

    def check_rows(self, name: str, count: int, owners: str) -> None:
        """Raise ValueError unless a column has row numbers in 0 .. count - 1 of ``owners``."""
        wrong = (self[name] < 0) | (self[name] >= count)
        self.check(name, wrong, f"one of the {count} {owners}, 0 to {count - 1}")

    def check_dense(self, name: str) -> None:
        """Raise ValueError unless a column is 0, 1, 2, ... in order, with at least one row."""
        if self[name].size == 0:
            raise column_error(self.path, name, "no rows", "at least one page")
        wrong = self[name] != np.arange(self[name].size)
        self.check(name, wrong, "the row's own number (dense, in order)")

    def check_range(self, name: str, low: float, high: float) -> None:
        """Raise ValueError unless every value of a column is null or in [low, high]."""
        wrong = (self[name] < low) | (self[name] > high)
        self.check(name, wrong, f"values from {low:g} to {high:g}")

    def check_order(self, name: str) -> None:
        """Raise ValueError unless a column is non-decreasing."""
        wrong = np.diff(self[name], prepend=-np.inf) < 0.0
        self.check(name, wrong, lambda row: f"a time not before {self[name][row - 1]}, in order")


def read_table(path: Path, wanted: Mapping[str, ColumnKind]) -> Table:
    """Read the columns ``wanted``, of these types, of a Parquet file; others are ignored.

    Raises:
        ValueError: the file is missing, is not a complete Parquet file, lacks a column, or a column
            has another type, an invalid null, a NaN or an infinity.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise ValueError(f"{path}: no such file, expected a Parquet file with {list(wanted)}")
    try:
        with pq.ParquetFile(path) as file:
            present = file.schema_arrow.names
            absent = [name for name in wanted if name not in present]
            if absent:
                raise ValueError(
                    f"{path}: column {absent[0]!r} is missing, expected columns {list(wanted)}, "
                    f"got {present}"
                )
            table = file.read(columns=list(wanted))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path}: expected a whole Parquet file, but {reason}") from None
    columns = {name: _column(path, name, table[name], kind) for name, kind in wanted.items()}
    return Table(path, columns)


def _column(path: Path, name: str, column: Any, kind: ColumnKind) -> NDArray[Any]:
    """Return an Arrow column as NumPy array of the type ``kind``; ValueError if it does not fit."""
    import pyarrow as pa

    tests, expected, dtype = KINDS[kind]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not any(getattr(pa.types, test)(column.type) for test in tests):
        raise column_error(path, name, f"type {column.type}", expected)
    null = column.is_null().to_numpy()
    if kind != "optional number" and null.any():
        raise column_error(path, name, f"null in row {np.argmax(null)}", expected)
    values: NDArray[Any] = np.asarray(column.to_numpy(), dtype)
    if dtype is np.float64 and not np.isfinite(values[~null]).all():
        raise column_error(path, name, values[~null & ~np.isfinite(values)][0], "finite numbers")
    return values
