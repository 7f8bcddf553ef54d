"""The tables of a recorded site: thinned to some pages, with rounded times, in small files.

Only columns that :mod:`crawl_envs.instances.traces` reads are kept. Equal tables give equal bytes
with one version of pyarrow.
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

from crawl_envs.types import FloatArray, IntArray

TICKS = 1 << 17
"""Ticks of a day, of 0.66 seconds each; such times are exact, and end in zeros that compress."""
COLUMNS = {
    "pages": ("page_id", "dir_id", "created", "deleted"),
    "changes": ("page_id", "t", "kind"),
    "signals": ("dir_id", "t"),
    "mentions": ("page_id", "t"),
}
ENCODINGS = {
    **dict.fromkeys(("created", "deleted", "t"), "BYTE_STREAM_SPLIT"),
    **dict.fromkeys(("page_id", "dir_id"), "DELTA_BINARY_PACKED"),
}

Tables = dict[str, dict[str, NDArray[Any]]]
"""Columns of the tables of a site, by the name of the table."""


def read_tables(folder: Path) -> tuple[Tables, NDArray[np.uint64]]:
    """Return the tables of the trace in a folder, and the hashes of the pages' paths, (m,)."""
    tables: Tables = {}
    for name, columns in COLUMNS.items():
        table = parquet.read_table(folder / f"{name}.parquet", columns=list(columns))
        tables[name] = {column: table[column].to_numpy() for column in columns}
    hashes = parquet.read_table(folder / "pages.parquet", columns=["path_hash"])["path_hash"]
    return tables, hashes.to_numpy()


def _digest(hashes: NDArray[np.uint64]) -> bytes:
    """Return a hash of a set of hashes, the same on every platform."""
    return blake2b(np.sort(hashes).astype(">u8").tobytes(), digest_size=8).digest()


def draw_pages(path_hash: NDArray[np.uint64], directory: IntArray, max_pages: int) -> IntArray:
    """Return rows of at most ``max_pages`` pages, ascending: whole directories, chosen by hashes.

    Directories are taken in order of the hash of their pages' paths, if they still fit. A directory
    with more than ``max_pages`` pages has those of the least hashes of paths.
    """
    members = [np.flatnonzero(directory == number) for number in np.unique(directory)]
    members = [rows[np.argsort(path_hash[rows], kind="stable")][:max_pages] for rows in members]
    members.sort(key=lambda rows: _digest(path_hash[rows]))
    parts: list[IntArray] = []
    for rows in members:
        if sum(map(len, parts)) + len(rows) <= max_pages:
            parts.append(rows)
    return np.sort(np.concatenate(parts))


def select_pages(tables: Tables, rows: IntArray) -> Tables:
    """Return the tables of some pages and of their directories, with new numbers from 0 on."""
    pages = tables["pages"]
    directories, directory = np.unique(pages["dir_id"][rows], return_inverse=True)
    number = {
        "page_id": _numbers(rows, pages["page_id"].size),
        "dir_id": _numbers(directories, int(pages["dir_id"].max()) + 1),
    }
    selected = {"pages": {name: column[rows] for name, column in pages.items()}}
    selected["pages"] |= {"page_id": np.arange(rows.size), "dir_id": directory}
    for name in ("changes", "signals", "mentions"):
        key = COLUMNS[name][0]
        renumbered = number[key][tables[name][key]]
        there = renumbered >= 0
        selected[name] = {column: values[there] for column, values in tables[name].items()}
        selected[name][key] = renumbered[there]
    return selected


def _numbers(rows: IntArray, size: int) -> IntArray:
    """Return the place of each of ``size`` numbers in ``rows``, -1 for those that are not there."""
    numbers = np.full(size, -1, np.int64)
    numbers[rows] = np.arange(rows.size)
    return numbers


def round_times(tables: Tables, days: float) -> Tables:
    """Return tables with times in whole ticks; distinct times stay distinct and in order."""
    columns = [
        (name, column)
        for name, table in tables.items()
        for column in table
        if column in ("created", "deleted", "t")
    ]
    moments = np.unique(np.concatenate([tables[name][column] for name, column in columns]))
    moments = moments[~np.isnan(moments)]
    order = np.arange(moments.size)
    ticks = np.maximum.accumulate(np.floor(moments * TICKS) - order) + order
    ticks = np.minimum(ticks, np.floor(days * TICKS) - order[::-1])
    rounded = {name: dict(table) for name, table in tables.items()}
    for name, column in columns:
        times: FloatArray = tables[name][column]
        place = np.searchsorted(moments, times).clip(max=max(moments.size - 1, 0))
        rounded[name][column] = np.where(np.isnan(times), np.nan, ticks[place] / TICKS)
    return rounded


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
    """Write the tables of a site to Parquet files in an existing folder."""
    for name, columns in tables.items():
        arrays = {
            column: pa.array(values, *_type(column), from_pandas=column == "deleted")
            for column, values in columns.items()
        }
        parquet.write_table(
            pa.table(arrays),
            folder / f"{name}.parquet",
            compression="zstd",
            compression_level=19,
            use_dictionary=["kind"] if "kind" in columns else False,
            column_encoding={name: ENCODINGS[name] for name in columns if name in ENCODINGS},
            write_statistics=False,
            store_schema=False,
        )


def _type(column: str) -> list[Any]:
    """Return the Arrow type of a column, in a list; empty for that of its values."""
    return [pa.int32()] if column in ("page_id", "dir_id") else []
