"""What is written about all recorded sites: sites.csv, and parts of README.md and croissant.json.

``croissant.json`` follows Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec.html).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pandas as pd

from agents.runs import replace_text
from crawl_envs.instances.traces.collection import SITES_FILE, split_of
from scripts.present.filled_tables import fill, grid

META, README, CROISSANT = "meta.json", "README.md", "croissant.json"
COLUMNS = [
    *("site", "kind", "family", "split", "source", "licence", "commit", "window_start", "days"),
    *("pages", "changes", "signals", "mentions"),
]


def write_summaries(out: Path, families: Mapping[str, str]) -> None:
    """Write ``sites.csv``, and into README.md and croissant.json, if they exist, what they tell.

    Args:
        out: folder of the collection.
        families: the family of each site; a site has a folder in ``out``.
    """
    metas = {name: json.loads((out / name / META).read_text("utf-8")) for name in sorted(families)}
    splits = split_of({name: (meta["kind"], families[name]) for name, meta in metas.items()})
    rows = [
        {**meta, **meta["counts"], "split": splits[name], "family": families[name]}
        | {"commit": meta["head"], "days": f"{meta['window_days']:g}"}
        for name, meta in metas.items()
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    text = table.to_csv(index=False, lineterminator="\n")
    replace_text(out / SITES_FILE, text)
    if (file := out / CROISSANT).is_file():
        described = json.loads(file.read_text("utf-8"))
        licences = sorted({*table.licence})
        described["license"] = [f"https://spdx.org/licenses/{name}.html" for name in licences]
        described["distribution"][0]["sha256"] = sha256(text.encode()).hexdigest()
        replace_text(file, json.dumps(described, indent=1, ensure_ascii=False) + "\n")
    if (out / README).is_file():
        head = ["site", "kind", "split", "licence", "pages", "changes"]
        table = table.sort_values(["kind", "site"]).astype(str)
        table["site"] = "[" + table.site + "](https://github.com/" + table.source + ")"
        fill(out / README, {"sites": grid(head, table[head].to_numpy().tolist())})
