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

OUT is written when the import is complete; an interrupted import starts over.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
from rich.console import Console
from typer import Argument, Option

from scripts.cli.commands import command_of
from scripts.data.bing.example import make_example
from scripts.data.bing.importing import import_set, summary

OUT = "urls.parquet"


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options of the command."""

    folder: Annotated[Path, Argument(help="Folder of the five files of the set.")]
    out: Annotated[
        Path | None, Option(help="File to write.", show_default="FOLDER/urls.parquet")
    ] = None
    histories: Annotated[bool, Option("--histories", help="Also write the crawl histories.")] = (
        False
    )
    force: Annotated[bool, Option("--force", help="Replace OUT.")] = False
    make_example: Annotated[
        int | None, Option(min=1, help="Write synthetic files of this many URLs to FOLDER.")
    ] = None
    seed: Annotated[int, Option(min=0, help="Seed of the example.")] = 0


def main(options: ImportOptions) -> None:
    """Import the set, or write a synthetic example, and print a summary."""
    folder, count = options.folder, options.make_example
    path = options.out or folder / OUT
    if count is not None:
        example = make_example(folder, count, options.seed)
        message = f"{len(example)} of {count} drawn URLs changed -> {folder}"
    else:
        left_out = import_set(folder, path, histories=options.histories, force=options.force)
        table = pd.read_parquet(path, columns=["importance", "change_rate", "complete"])
        message = f"{len(table)} URLs, {summary(table)} -> {path}"
        if left_out:
            reason = f"no history and no change rate, such as URL id {left_out[0]}"
            message = f"{len(left_out)} URLs are left out: {reason}; {message}"
    Console().print(message, soft_wrap=True, highlight=False)


app = command_of(main, ImportOptions, "Import the public Bing set as one Parquet table of URLs.")

if __name__ == "__main__":
    app()
