"""The tables of a recorded site: thinned to some pages, with rounded times, in small files.

Equal tables give equal bytes with one version of pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from crawl_envs.types import IntArray

TICKS = 1 << 17
"""Ticks of a day, of 0.66 seconds each; such times are exact, and end in zeros that compress."""
NUMBERS, TIMES = ("page_id", "dir_id"), {"created", "deleted", "t"}

Tables = dict[str, dict[str, NDArray[Any]]]
"""Columns of the tables of a site, by the name of the table."""


def draw_pages(path_hash: NDArray[np.uint64], directory: IntArray, max_pages: int) -> IntArray:
    """Return rows of at most ``max_pages`` pages, ascending: whole directories, chosen by hashes.

    Directories are taken in order of the hash of their pages' paths, if they still fit. A directory
    with more than ``max_pages`` pages has those of the least hashes of paths.
    """
    members = [np.flatnonzero(directory == number) for number in np.unique(directory)]
    members = [rows[np.argsort(path_hash[rows], kind="stable")][:max_pages] for rows in members]
    parts: list[IntArray] = []
    for rows in sorted(members, key=lambda rows: _digest(path_hash[rows])):
        if sum(map(len, parts)) + len(rows) <= max_pages:
            parts.append(rows)
    return np.sort(np.concatenate(parts))


def _digest(hashes: NDArray[np.uint64]) -> bytes:
    """Return a hash of a set of hashes, the same on every platform."""
    return blake2b(np.sort(hashes).astype(">u8").tobytes(), digest_size=8).digest()


def select_pages(tables: Tables, rows: IntArray) -> Tables:
    """Return the tables of some pages and of their directories, with new numbers from 0 on."""
    numbers = {"page_id": rows, "dir_id": np.unique(tables["pages"]["dir_id"][rows])}
    selected: Tables = {}
    for name, table in tables.items():
        owner = next(iter(table))  # its page or directory
        there = np.isin(table[owner], numbers[owner])
        selected[name] = {column: values[there] for column, values in table.items()}
        for column in numbers.keys() & table.keys():
            selected[name][column] = np.searchsorted(numbers[column], selected[name][column])
    return selected


def round_times(tables: Tables, days: float) -> Tables:
    """Return tables with times in whole ticks; distinct times stay distinct and in order."""
    rounded = {name: dict(table) for name, table in tables.items()}
    columns = [(table, name) for table in rounded.values() for name in TIMES & table.keys()]
    moments = np.unique(np.concatenate([table[name] for table, name in columns]))
    moments = moments[~np.isnan(moments)]
    order = np.arange(moments.size)
    ticks = np.maximum.accumulate(np.floor(moments * TICKS) - order) + order
    ticks = np.minimum(ticks, np.floor(days * TICKS) - order[::-1])
    for table, name in columns:  # NaN sorts after all moments
        table[name] = np.append(ticks / TICKS, np.nan)[np.searchsorted(moments, table[name])]
    return rounded


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
    """Write the tables of a site to Parquet files in an existing folder."""
    kinds = dict.fromkeys(NUMBERS, pa.int32())
    encodings = dict.fromkeys(NUMBERS, "DELTA_BINARY_PACKED")
    encodings |= dict.fromkeys(TIMES, "BYTE_STREAM_SPLIT")
    for name, columns in tables.items():
        arrays = {
            column: pa.array(values, kinds.get(column), from_pandas=True)
            for column, values in columns.items()
        }
        parquet.write_table(
            pa.table(arrays),
            folder / f"{name}.parquet",
            compression="zstd",
            compression_level=19,
            use_dictionary=["kind"],
            column_encoding=encodings,
            write_statistics=False,
            store_schema=False,
        )
