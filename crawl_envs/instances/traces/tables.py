"""Read and validate columns of the Parquet files of recorded traces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray

ColumnKind: TypeAlias = Literal["whole", "number", "optional number", "any number", "flag", "word"]
"""Type of a column: integers, finite floating-point numbers, the same or nulls, the same or
integers, bool, strings."""

Columns: TypeAlias = dict[str, NDArray[Any]]


def column_error(path: Path, column: str, value: object, expected: str) -> ValueError:
    """Return a ValueError for a bad ``value`` in ``column`` of the file ``path``."""
    return ValueError(f"{path}: column {column!r} holds {value}, expected {expected}")


def read_columns(path: Path, wanted: Mapping[str, ColumnKind]) -> tuple[Columns, dict[str, str]]:
    """Read the columns ``wanted`` and the metadata of a Parquet file.

    Args:
        path: the file.
        wanted: type of each column; other columns are ignored.

    Returns:
        The columns, (rows,) each: int64 for integers, float64 for numbers (nulls of an optional
        number are NaN), bool for flags and str objects for strings; and the file's metadata.

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
    described = table.schema.metadata or {}
    return columns, {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in described.items()
    }


def _column(path: Path, name: str, column: Any, kind: ColumnKind) -> NDArray[Any]:
    """Return an Arrow column as an array of the given kind, or raise ValueError."""
    import pyarrow as pa

    if kind == "word":
        held = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        fits, expected = pa.types.is_string(held) or pa.types.is_large_string(held), "words"
    elif kind == "flag":
        fits, expected = pa.types.is_boolean(column.type), "True or False"
    elif kind == "any number":
        fits = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
        expected = "numbers"
    elif kind == "whole":
        fits, expected = pa.types.is_integer(column.type), "whole numbers"
    else:
        fits, expected = pa.types.is_floating(column.type), "floating-point numbers"
    if not fits:
        raise column_error(path, name, f"type {column.type}", expected)
    if column.null_count and kind != "optional number":
        row = column.is_null().index(True).as_py()
        raise column_error(path, name, f"null in row {row}", expected)
    if kind == "word":
        return np.array(column.to_pylist(), dtype=object)
    if kind in ("whole", "flag"):
        return np.asarray(column.to_numpy(), dtype=np.int64 if kind == "whole" else np.bool_)
    _check_finite(path, name, column.drop_null().to_numpy())
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _check_finite(path: Path, name: str, present: NDArray[Any]) -> None:
    """Raise ValueError unless all non-null numbers are finite."""
    if not np.all(np.isfinite(present)):
        raise column_error(path, name, present[~np.isfinite(present)][0], "finite numbers")


def check_rows(path: Path, name: str, rows: IntArray, count: int, owners: str) -> None:
    """Raise ValueError unless ``rows`` lie in 0 .. count - 1; ``owners`` is the plural of a row."""
    bad = rows[(rows < 0) | (rows >= count)]
    if bad.size:
        raise column_error(path, name, bad[0], f"one of the {count} {owners}, 0 to {count - 1}")


def check_dense(path: Path, name: str, rows: IntArray) -> None:
    """Raise ValueError unless ``rows`` is 0, 1, 2, ... in order, with at least one row."""
    if rows.size == 0:
        raise column_error(path, name, "no rows", "at least one page")
    bad = np.flatnonzero(rows != np.arange(rows.size))
    if bad.size:
        raise column_error(
            path, name, f"{rows[bad[0]]} in row {bad[0]}", "the row's own number (dense, in order)"
        )


def check_range(path: Path, name: str, values: FloatArray, low: float, high: float) -> None:
    """Raise ValueError unless every value lies in [low, high]."""
    bad = values[~((values >= low) & (values <= high))]
    if bad.size:
        raise column_error(path, name, bad[0], f"values from {low:g} to {high:g}")


def check_order(path: Path, name: str, times: FloatArray) -> None:
    """Raise ValueError unless ``times`` is non-decreasing."""
    bad = np.flatnonzero(np.diff(times) < 0.0)
    if bad.size:
        row = int(bad[0]) + 1
        raise column_error(
            path, name, f"{times[row]} in row {row} after {times[row - 1]}", "rows in order of time"
        )
