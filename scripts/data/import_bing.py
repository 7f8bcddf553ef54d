"""Import the public Bing set (Kolobov et al. 2019) as one Parquet table of URLs.

The set is described at github.com/microsoft/Optimal-Freshness-Crawl-Scheduling, with a link to
``PoliteCrawling.gz``. Unpacked, it is five files of tab-separated columns without headers, .txt or
.txt.gz:

- ``url_urlid_hostid``: URL, its id, the id of its host;
- ``host_hostid_isconstrained``: host, its id, 1 if the host limits the speed of crawling;
- ``urlid_imp``: id, importance score;
- ``urlid_offset_history``: id, days to the first crawl, ``[[days since the previous crawl, 1 if the
  URL had changed], ...]``;
- ``urlid_chrate_compl_obs_hist``: id and change rate per day of URLs with complete observation.

:mod:`scripts.data.bing.importing` describes the output and the fit of rates.
``crawl_envs.instances.urls.pool`` reads the table, and its path is the name of an instance.

OUT appears when the import is complete; an import that was stopped is run again from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd
from rich.console import Console

from crawl_envs.types.arguments import whole
from scripts.cli.commands import command_of
from scripts.data.bing.example import make_example
from scripts.data.bing.importing import import_set, summary

OUT = "urls.parquet"


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Arguments of the command."""

    POSITIONAL: ClassVar = ("folder",)

    folder: Path
    """Folder of the five files of the set."""
    out: Path | None = None
    """File to write [FOLDER/urls.parquet]."""
    histories: bool = False
    """Also write the crawl histories."""
    force: bool = False
    """Replace OUT."""
    make_example: int | None = None
    """Write synthetic files of this many URLs to FOLDER."""
    seed: int = 0
    """Seed of the example."""


def main(options: ImportOptions) -> None:
    """Import or make an example, and print a summary."""
    folder, count = options.folder, options.make_example
    path = options.out or folder / OUT
    if count is not None:
        whole("make_example", count, 1)
        example = make_example(folder, count, whole("seed", options.seed, 0))
        message = f"{len(example)} of {count} drawn URLs changed -> {folder}"
    else:
        left_out = import_set(folder, path, histories=options.histories, force=options.force)
        table = pd.read_parquet(path, columns=["importance", "change_rate", "complete"])
        message = f"{len(table)} URLs, {summary(table)} -> {path}"
        if left_out:
            reason = f"neither a history nor a change rate, URL id {left_out[0]} for one"
            message = f"{len(left_out)} URLs are left out, with {reason}; {message}"
    Console().print(message, soft_wrap=True, highlight=False)


app = command_of(main, ImportOptions, "Import the public Bing set as one Parquet table of URLs.")

if __name__ == "__main__":
    app()
