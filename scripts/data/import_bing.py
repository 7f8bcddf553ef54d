"""Import the public Bing set (Kolobov et al. 2019) as one Parquet table of URLs.

The set's description is at github.com/microsoft/Optimal-Freshness-Crawl-Scheduling, from where
``PoliteCrawling.gz`` is linked; unpacked, it is five files of columns parted by tabs, without
headers, .txt or .txt.gz:

- ``url_urlid_hostid``: URL, its id, the id of its host;
- ``host_hostid_isconstrained``: host, its id, 1 where the host limits how fast it is crawled;
- ``urlid_imp``: id, importance score;
- ``urlid_offset_history``: id, days to the first crawl, ``[[days since the crawl before, 1 if the
  URL had changed], ...]``;
- ``urlid_chrate_compl_obs_hist``: id and change rate per day of URLs with complete observation.

What is written is described in :mod:`scripts.data.bing.importing`, how rates are fitted in
:mod:`scripts.data.bing.fitting`. ``crawl_envs.instances.urls.pool`` reads it, and its path is the name of
an instance.

An import that was killed goes on when the same command is given again: what is done is kept in
OUT.parts, and OUT appears when it is whole. (A gzipped file of histories is unpacked again up to
where it goes on.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from scripts.data.bing.example import make_example
from scripts.data.bing.importing import Summary, import_set

OUT = "urls.parquet"

app = typer.Typer(add_completion=False)


@app.command(help="Import the public Bing set as one Parquet table of URLs.")
def main(
    folder: Annotated[Path, typer.Argument(help="Folder of the set's five files.")],
    out: Annotated[
        Path | None, typer.Option(help=f"File to write. FOLDER/{OUT} by default.")
    ] = None,
    histories: Annotated[
        bool, typer.Option("--histories", help="Write the crawl histories as well.")
    ] = False,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="Leave out URLs with neither a history nor a change rate."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace OUT, and the parts of another import.")
    ] = False,
    example: Annotated[
        int | None,
        typer.Option(
            "--make-example", min=1, help="Write five files of this many drawn URLs to FOLDER."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the example.")] = 0,
    packed: Annotated[bool, typer.Option("--gzip", help="Gzip the example.")] = False,
) -> None:
    """Import, or make an example, and say what came of it."""
    path = out or folder / OUT
    try:
        with _progress() as progress:
            if example is not None:
                made = make_example(folder, example, seed, packed=packed, progress=progress)
                told = f"{made.url_id.size} of {example} drawn URLs changed -> {folder}"
            else:
                told = _said(
                    import_set(
                        folder,
                        path,
                        histories=histories,
                        allow_missing=allow_missing,
                        force=force,
                        progress=progress,
                    )
                )
                told = f"{told} -> {path}"
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        place = error.filename or (path if example is None else folder)
        typer.echo(f"error: cannot read or write {place}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        hint = "; the same command goes on from here" if example is None else ""
        typer.echo(f"interrupted{hint}", err=True)
        raise typer.Exit(130) from None
    Console().print(told, soft_wrap=True, highlight=False)


def _said(summary: Summary) -> str:
    """What was imported, with the means that the paper's costs tell of the whole set."""
    left_out = f" ({summary.left_out} left out)" if summary.left_out else ""
    return (
        f"{summary.num_pages} URLs{left_out}, {summary.complete:.1%} with complete observation and "
        f"{summary.complete_importance:.1%} of the importance (paper: 4%, 26.4%); mean change rate "
        f"{summary.mean_rate:.3f} a day (1.124 by the paper's costs); weighted by importance, "
        f"Delta / (Delta + 0.2) {summary.weighted_odds:.3f} (0.554), ln(1 + 5 Delta) "
        f"{summary.weighted_log:.3f} (1.118)"
    )


def _progress() -> Progress:
    """Bars on standard error, gone when done; none where that is no terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


if __name__ == "__main__":
    app()
