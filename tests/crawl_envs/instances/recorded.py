"""A small recorded trace on disk, with a place to spoil each of its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crawl_envs.instances import traces

Tables = dict[str, dict[str, Any]]

META = {"site": "tiny", "window_start": "2024-01-01", "window_days": 10.0}


def tiny_tables() -> Tables:
    """Five pages in two directories over ten days, one of them born and one dead within."""
    return {
        "pages": {
            "page_id": [0, 1, 2, 3, 4],
            "dir_id": [0, 0, 1, 1, 0],
            "created": [-3.0, -1.0, -1.0, 2.0, 4.0],
            "deleted": [None, 6.0, None, None, None],
        },
        "changes": {
            "page_id": [0, 3, 0, 4, 2, 1],
            "t": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "kind": ["content", "creation", "whitespace", "creation", "content", "deletion"],
        },
        "signals": {"dir_id": [0, 1, 0, 0, 1, 0], "t": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        "mentions": {"page_id": [0, 3, 2, 2], "t": [1.0, 2.0, 5.0, 7.5]},
    }


def write(folder: Path, tables: Tables, meta: dict[str, Any] | None = None) -> Path:
    """Write tables and meta as a trace's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "meta.json").write_text(json.dumps(META if meta is None else meta), "utf-8")
    return folder


def tiny_trace(folder: Path) -> traces.Trace:
    return traces.load(write(folder, tiny_tables()))
