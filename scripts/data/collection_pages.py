"""What is written about all recorded sites: sites.csv, and parts of README.md and croissant.json.

``croissant.json`` follows Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec.html).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from crawl_envs.instances.traces.collection import SITES_FILE, split_of
from crawl_envs.system.files import replacing
from scripts.present.filled_tables import fill, grid

META, README, CROISSANT = "meta.json", "README.md", "croissant.json"
COUNTS = ("pages", "changes", "signals", "mentions")
COLUMNS = (
    *("site", "kind", "split", "source", "licence", "commit", "window_start", "days"),
    *COUNTS,
)


def write_summaries(out: Path, names: Sequence[str]) -> None:
    """Write ``sites.csv``, and into README.md and croissant.json, if they exist, what they tell.

    Args:
        out: folder of the collection.
        names: sites, each with a folder in ``out``.
    """
    metas = {name: json.loads((out / name / META).read_text("utf-8")) for name in sorted(names)}
    splits = split_of({name: meta["kind"] for name, meta in metas.items()})
    rows = [_row(meta, splits[name]) for name, meta in metas.items()]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _write(out / SITES_FILE, text.getvalue())
    if (out / CROISSANT).is_file():
        _describe(out / CROISSANT, rows, text.getvalue())
    if (out / README).is_file():
        fill(out / README, {"sites": _table(rows)})


def _row(meta: Mapping[str, Any], split: str) -> dict[str, Any]:
    """Return the row of ``sites.csv`` of a site, given its ``meta.json``."""
    renamed = {"commit": meta["head"], "days": f"{meta['window_days']:g}", "split": split}
    values = {**meta, **meta["counts"], **renamed}
    return {name: values[name] for name in COLUMNS}


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of sites for README.md."""
    lines = []
    for row in sorted(rows, key=lambda row: (row["kind"], row["site"])):
        link = f"[{row['site']}](https://github.com/{row['source']})"
        counts = (str(row["pages"]), str(row["changes"]))
        lines.append([link, row["kind"], row["split"], row["licence"], *counts])
    head = ("site", "kind", "split", "licence", "pages", "changes")
    return grid(head, lines)


def _describe(file: Path, rows: Sequence[Mapping[str, Any]], table: str) -> None:
    """Write the licences of sites and the hash of the text of ``sites.csv`` into croissant.json."""
    described = json.loads(file.read_text("utf-8"))
    licences = sorted({row["licence"] for row in rows})
    described["license"] = [f"https://spdx.org/licenses/{name}.html" for name in licences]
    described["distribution"][0]["sha256"] = sha256(table.encode()).hexdigest()
    _write(file, json.dumps(described, indent=1, ensure_ascii=False) + "\n")


def _write(file: Path, text: str) -> None:
    with replacing(file) as unfinished:
        unfinished.write_text(text, "utf-8", newline="\n")
