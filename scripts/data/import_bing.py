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

The same command resumes an import that was killed: intermediate results are in OUT.parts, and OUT
appears when complete. (A gzipped file of histories is unpacked again up to that position.)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from scripts.cli.commands import command_of, one_line_errors
from scripts.data.bing.example import make_example
from scripts.data.bing.importing import Summary, import_set
from scripts.data.progress import progress_bars

OUT = "urls.parquet"
Example = Annotated[
    int | None,
    Option("--make-example", min=1, help="Write synthetic files of this many URLs to FOLDER."),
]


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Arguments of the command."""

    folder: Annotated[Path, Argument(help="Folder of the five files of the set.")]
    out: Annotated[
        Path | None, Option(help="File to write.", show_default="FOLDER/urls.parquet")
    ] = None
    histories: Annotated[bool, Option("--histories", help="Also write the crawl histories.")] = (
        False
    )
    allow_missing: Annotated[
        bool,
        Option("--allow-missing", help="Leave out URLs with neither a history nor a change rate."),
    ] = False
    force: Annotated[
        bool, Option("--force", help="Replace OUT and the parts of another import.")
    ] = False
    example: Example = None
    seed: Annotated[int, Option(min=0, help="Seed of the example.")] = 0
    gzip: Annotated[bool, Option("--gzip", help="Gzip the example.")] = False


def main(options: ImportOptions) -> None:
    """Import or make an example, and print a summary."""
    folder, example = options.folder, options.example
    path = options.out or folder / OUT
    stopped = "stopped" if example else "stopped; the same command goes on"
    with one_line_errors(stopped, path), progress_bars() as bars:
        if example is not None:
            made = make_example(folder, example, options.seed, packed=options.gzip, bars=bars)
            message = f"{made.url_id.size} of {example} drawn URLs changed -> {folder}"
        else:
            named = {
                name: getattr(options, name) for name in ("histories", "allow_missing", "force")
            }
            message = f"{_said(import_set(folder, path, bars=bars, **named))} -> {path}"
    Console().print(message, soft_wrap=True, highlight=False)


def _said(summary: Summary) -> str:
    """Return the summary as text, with the means of the whole set from the paper."""
    left_out = f" ({summary.left_out} left out)" if summary.left_out else ""
    return (
        f"{summary.num_pages} URLs{left_out}, {summary.complete:.1%} with complete observation and "
        f"{summary.complete_importance:.1%} of the importance (paper: 4%, 26.4%); mean change rate "
        f"{summary.mean_rate:.3f} per day (1.124 by the paper's costs); weighted by importance, "
        f"Delta / (Delta + 0.2) {summary.weighted_odds:.3f} (0.554), ln(1 + 5 Delta) "
        f"{summary.weighted_log:.3f} (1.118)"
    )


app = command_of(main, ImportOptions, "Import the public Bing set as one Parquet table of URLs.")

if __name__ == "__main__":
    app()
