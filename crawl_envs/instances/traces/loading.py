"""Find, read and check recorded change histories of real sites.

A trace is a folder of Parquet files. Times are float64 days since the record's start, midnight
UTC of ``window_start``.

``meta.json``
    ``site`` (a name), ``window_days`` (length of the record); ``window_start`` (YYYY-MM-DD) is not
    read.
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
    ``fragment_modulus``, an entry of ``meta.json`` that is not read, is recorded.

Rows are sorted by time; additional columns and files are ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.instances.traces.collection import RECORDED, sites
from crawl_envs.instances.traces.fragments import read_fragments
from crawl_envs.instances.traces.tables import ColumnKind, Table, read_table
from crawl_envs.instances.traces.windows import Trace
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import file_path

SHIPPED = Path(__file__).parents[1] / "shipped"
CHANGE_KINDS = ("creation", "content", "whitespace", "deletion")
ALTERATIONS = ("content", "whitespace")
MAX_DIRECTORIES = 2**31 - 1
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


META: dict[str, tuple[Callable[[Any], bool], str]] = {
    "site": (lambda value: isinstance(value, str) and value != "", "a name"),
    "window_days": (
        lambda value: type(value) in (int, float) and 0.0 < value < math.inf,
        "a number > 0",
    ),
}
"""Check of each entry of ``meta.json``, and the expectation in words."""


def shipped() -> tuple[str, ...]:
    """Return the names of the synthetic traces that come with the package, sorted."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/meta.json")))


def find(name_or_path: str | Path) -> Path:
    """Return the folder of a shipped trace or a recorded site by name, or the folder at a path.

    Raises:
        ValueError: the argument is none of them.
    """
    name = str(name_or_path)
    if name in shipped():
        return SHIPPED / name
    if name in sites():
        return RECORDED / name
    folder = file_path("trace", name_or_path)
    if not folder.is_dir():
        near = get_close_matches(name, sites(), 3)
        raise ValueError(
            f"trace must be a folder or one of {[*shipped(), *near]} or another name of "
            f"crawl_envs.instances.traces.sites(), got {name!r}"
        )
    return folder


def load(folder: str | Path) -> Trace:
    """Read and check the trace in ``folder``.

    Raises:
        ValueError: a file is missing or truncated, lacks a column, is not sorted, or has an invalid
            value; the message names file, column, value and expectation.
    """
    folder = Path(folder)
    meta = _read_meta(folder / "meta.json")
    days = float(meta["window_days"])
    tables = {
        name: read_table(folder / f"{name}.parquet", wanted) for name, wanted in TABLES.items()
    }
    pages, changes, signals, mentions = tables.values()
    directory, created = pages["dir_id"], pages["created"]
    deleted = _check_pages(pages, days)
    for table in (changes, signals, mentions):
        table.check_order("t")
        table.check_range("t", 0.0, days)
    signals.check_rows("dir_id", int(directory.max()) + 1, "directories")
    mentions.check_rows("page_id", created.size, "pages")
    changes.check_rows("page_id", created.size, "pages")
    _check_changes(changes, created, deleted)
    altered = np.isin(changes["kind"], ALTERATIONS)
    return Trace(
        name=meta["site"],
        folder=folder,
        days=days,
        created=created,
        deleted=deleted,
        directory=directory,
        change_page=changes["page_id"][altered],
        change_time=changes["t"][altered],
        signal_directory=signals["dir_id"],
        signal_time=signals["t"],
        mention_page=mentions["page_id"],
        mention_time=mentions["t"],
        fragments=read_fragments(folder, created, deleted, days),
    )


def _read_meta(path: Path) -> dict[str, Any]:
    """Read ``meta.json`` of a trace; raise ValueError that names the first invalid entry."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file, expected the trace's description")
    try:
        entries = dict(json.loads(path.read_text("utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: expected a JSON object, but {error}") from None
    for name, (fits, expected) in META.items():
        if name not in entries:
            raise ValueError(f"{path}: entry {name!r} is missing, expected {expected}")
        if not fits(entries[name]):
            raise ValueError(f"{path}: entry {name!r} holds {entries[name]!r}, expected {expected}")
    return entries


def _check_pages(pages: Table, days: float) -> FloatArray:
    """Check a trace's table of pages; return the death of each page, inf if it has none."""
    created, deleted = pages["created"], pages["deleted"]
    pages.check_dense("page_id")
    pages.check_rows("dir_id", MAX_DIRECTORIES, "possible directories")
    pages.check_range("created", -math.inf, days)
    pages.check_range("deleted", 0.0, days)
    late = deleted <= created
    pages.check("deleted", late, lambda row: f"a time after the page's 'created', {created[row]}")
    ends: FloatArray = np.nan_to_num(deleted, nan=np.inf)
    return ends


def _check_changes(changes: Table, created: FloatArray, deleted: FloatArray) -> None:
    """Raise ValueError unless the kinds of changes are valid and fit births and deaths of pages."""
    kind, page, time = changes["kind"], changes["page_id"], changes["t"]
    changes.check("kind", ~np.isin(kind, CHANGE_KINDS), f"one of {CHANGE_KINDS}")
    born, died = created[page], deleted[page]
    fits = np.where(kind == "creation", time == born, (time > born) & (time < died))
    fits = np.where(kind == "deletion", time == died, fits)

    def life(row: int) -> str:
        return f"a time of {kind[row]} of a page that lived {born[row]} to {died[row]}"

    changes.check("t", ~fits, life)
