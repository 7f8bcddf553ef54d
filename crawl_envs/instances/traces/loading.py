"""Find, read and check recorded change histories of real sites.

A trace is a folder of Parquet files. Times are float64 days since the record's start, midnight
UTC of ``window_start``.

``meta.json``
    ``site`` (a name), ``window_start`` (YYYY-MM-DD), ``window_days`` (length of the record).
``pages.parquet``
    ``page_id`` (0, 1, 2, ... in order), ``dir_id`` (its directory), ``created`` (negative when
    before the record) and ``deleted`` (null when alive at the end).
``changes.parquet``
    ``page_id``, ``t``, ``kind`` (creation, content, whitespace or deletion).
``signals.parquet``
    ``dir_id``, ``t``: a change in the directory, of an unspecified page.
``mentions.parquet``
    ``page_id``, ``t``: the page is named in the announcement of an update.
``fragments.parquet`` (optional)
    ``page_id``, ``fragment`` (a hash below 2**32), ``birth`` (null when present at the record's
    start) and ``death`` (null when present at its end), in any order. About one fragment in
    ``fragment_modulus``, an entry of ``meta.json``, is recorded.

Rows are sorted by time; additional columns and files are ignored.
"""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.instances.traces.fragments import read_fragments
from crawl_envs.instances.traces.tables import (
    ColumnKind,
    Columns,
    check_dense,
    check_order,
    check_range,
    check_rows,
    column_error,
    read_columns,
)
from crawl_envs.instances.traces.windows import Trace
from crawl_envs.types import FloatArray

SHIPPED = Path(__file__).parents[1] / "shipped"
CHANGE_KINDS = ("creation", "content", "whitespace", "deletion")
TABLES: dict[str, dict[str, ColumnKind]] = {
    "pages": {
        "page_id": "whole",
        "dir_id": "whole",
        "created": "number",
        "deleted": "optional number",
    },
    "changes": {"page_id": "whole", "t": "number", "kind": "word"},
    "signals": {"dir_id": "whole", "t": "number"},
    "mentions": {"page_id": "whole", "t": "number"},
}


class _Meta(NamedTuple):
    """Entries of ``meta.json``; the modulus of the fragments is optional."""

    site: str
    window_start: str
    window_days: float
    fragment_modulus: int | None = None


def shipped() -> tuple[str, ...]:
    """Return the sorted names of the traces in the package."""
    if not SHIPPED.is_dir():
        return ()
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/meta.json")))


def find(name_or_path: str | Path) -> Path:
    """Return the folder of a shipped trace by name, or the folder at a path.

    Raises:
        ValueError: the argument is neither.
    """
    if str(name_or_path) in shipped():
        return SHIPPED / str(name_or_path)
    folder = Path(name_or_path)
    if not folder.is_dir():
        raise ValueError(
            f"trace must be a folder or one of {list(shipped())}, got {str(name_or_path)!r}"
        )
    return folder


def load(folder: str | Path) -> Trace:
    """Read and check the trace in ``folder``.

    Raises:
        ValueError: a file is missing or truncated, lacks a column, is not sorted, or has an invalid
            value; the message names file, column, value and expectation.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder, expected a recorded trace")
    meta = _read_meta(folder / "meta.json")
    tables = {
        name: read_columns(folder / f"{name}.parquet", wanted)[0] for name, wanted in TABLES.items()
    }
    pages, changes = tables["pages"], tables["changes"]
    deleted = _check_pages(folder / "pages.parquet", pages, meta.window_days)
    for name in ("changes", "signals", "mentions"):
        path = folder / f"{name}.parquet"
        check_order(path, "t", tables[name]["t"])
        check_range(path, "t", tables[name]["t"], 0.0, meta.window_days)
        if name == "signals":
            num_directories = int(pages["dir_id"].max()) + 1
            check_rows(path, "dir_id", tables[name]["dir_id"], num_directories, "directories")
        else:
            num_pages = pages["page_id"].shape[0]
            check_rows(path, "page_id", tables[name]["page_id"], num_pages, "pages")
    _check_changes(folder / "changes.parquet", changes, pages["created"], deleted)
    altered = np.isin(changes["kind"], ("content", "whitespace"))
    fragments = read_fragments(
        folder, pages["created"], deleted, meta.window_days, meta.fragment_modulus
    )
    return Trace(
        name=meta.site,
        folder=folder,
        start_date=meta.window_start,
        days=meta.window_days,
        created=pages["created"],
        deleted=deleted,
        directory=pages["dir_id"],
        change_page=changes["page_id"][altered],
        change_time=changes["t"][altered],
        signal_directory=tables["signals"]["dir_id"],
        signal_time=tables["signals"]["t"],
        mention_page=tables["mentions"]["page_id"],
        mention_time=tables["mentions"]["t"],
        fragments=fragments,
    )


def _read_meta(path: Path) -> _Meta:
    """Read ``meta.json``; raise ValueError naming the first invalid entry."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file, expected the trace's description")
    try:
        entries: Any = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, but {error}") from None
    if not isinstance(entries, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(entries).__name__}")
    *required, modulus_name = _Meta._fields
    absent = [name for name in required if name not in entries]
    if absent:
        raise ValueError(f"{path}: entry {absent[0]!r} is missing, expected {required}")
    site, start, days = (entries[name] for name in required)
    modulus = entries.get(modulus_name)
    if not isinstance(site, str) or not site:
        raise ValueError(f"{path}: entry 'site' holds {site!r}, expected a name")
    try:
        datetime.date.fromisoformat(start)
    except (TypeError, ValueError):
        raise ValueError(
            f"{path}: entry 'window_start' holds {start!r}, expected a date YYYY-MM-DD"
        ) from None
    number = isinstance(days, int | float) and not isinstance(days, bool)
    if not number or not (math.isfinite(days) and days > 0.0):
        raise ValueError(f"{path}: entry 'window_days' holds {days!r}, expected a number > 0")
    if modulus is not None and (type(modulus) is not int or modulus < 1):
        raise ValueError(
            f"{path}: entry {modulus_name!r} holds {modulus!r}, expected a whole number >= 1"
        )
    return _Meta(site, start, float(days), modulus)


def _check_pages(path: Path, pages: Columns, days: float) -> FloatArray:
    """Check the table of pages and return their deaths, inf if none."""
    check_dense(path, "page_id", pages["page_id"])
    largest = np.iinfo(np.int32).max
    check_rows(path, "dir_id", pages["dir_id"], largest, "possible directories")
    created, deleted = pages["created"], pages["deleted"]
    check_range(path, "created", created, -math.inf, days)
    check_range(path, "deleted", deleted[~np.isnan(deleted)], 0.0, days)
    bad = np.flatnonzero(deleted <= created)
    if bad.size:
        row = int(bad[0])
        raise column_error(
            path,
            "deleted",
            f"{deleted[row]} for page {row}",
            f"a time after the page's 'created', {created[row]}",
        )
    return np.where(np.isnan(deleted), np.inf, deleted)


def _check_changes(path: Path, changes: Columns, created: FloatArray, deleted: FloatArray) -> None:
    """Raise ValueError unless kinds are valid and agree with the pages' births and deaths."""
    kind, page, time = changes["kind"], changes["page_id"], changes["t"]
    unknown = kind[~np.isin(kind, CHANGE_KINDS)]
    if unknown.size:
        raise column_error(path, "kind", repr(unknown[0]), f"one of {CHANGE_KINDS}")
    born, died = created[page], deleted[page]
    altered = np.isin(kind, ("content", "whitespace"))
    checks = (
        (altered & ~((time > born) & (time < died)), "a time within the page's life"),
        ((kind == "creation") & (time != born), "the page's 'created'"),
        ((kind == "deletion") & (time != died), "the page's 'deleted'"),
    )
    for wrong, expected in checks:
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            life = f"{born[row]} to {died[row]}"
            raise column_error(
                path, "t", f"{time[row]} in row {row}, {kind[row]}", f"{expected} (lived {life})"
            )
