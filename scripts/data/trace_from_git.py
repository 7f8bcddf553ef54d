"""Make a trace of a git repository: every tracked file is a page, every commit a possible change.

How the record is derived:

- Only the main line is read: a merge is one change, when it lands.
- Time is the committer's, made monotone: a commit dated before its predecessor takes the
  predecessor's time, and equal times are parted by 1e-6 day. ``t_author`` is the author's time;
  for a merge, that of the tip that was merged.
- A rename keeps the page and is no change by itself. A path that returns within 30 days is the
  same page, its absence dropped. Links and submodules are no pages.
- ``kind`` is whitespace where the old and the new version agree byte by byte once all white space
  is taken out (so re-wrapped text is white space as well; git's own ``-w`` compares by line).
- ``staleness`` is the Jaccard distance of the sets of three successive words before and after, 1
  for a creation or a deletion; of a file, the first MiB is read.
- ``fragments`` are hashes of three successive words, the same everywhere, of pages with three
  changes or more, from birth (null: there at the window's start) to death (null: alive at its end).
  One that comes back has a row for each time. About one in ``fragment_modulus`` (see
  ``meta.json``) is kept, in all versions or in none.
- A page's directory is the last one it was in; with more than 100 pages it is split by the first
  letters of the file names. A commit signals every directory in which it touched any file.
- A mention is a commit whose subject names a living page by file name or stem, as a word.
- ``n_dir`` (pages changed in the directory) and ``n_site`` (page events in the commit) are the
  truth behind a signal, never to be shown to a policy.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from crawl_envs.types.arguments import whole
from scripts.data.git.git_history import Repository, main_line, open_repository
from scripts.data.git.recorded_history import History, Window, choose_window, read_history
from scripts.data.git.trace_writing import Tables, check_target, tables, write_trace

COMMAND_VERSION = 2
FRAGMENT_MODULUS = 8
NO_FRAGMENTS = (
    "warning: no fragment was sampled, so the trace has no pages with fragments; about one in {} "
    "is kept (--fragment-modulus), of pages that change three times or more"
)


def make_trace(
    path: Path,
    out: Path,
    *,
    start: datetime.date | None = None,
    days: float | None = None,
    subdirs: list[str] | None = None,
    name: str | None = None,
    force: bool = False,
    fragment_modulus: int = FRAGMENT_MODULUS,
) -> dict[str, Any]:
    """Write the trace of a repository and return what its ``meta.json`` says.

    Args:
        path: top folder of the repository, or a bare one.
        out: folder to write.
        start: UTC date at which the window starts; by default as early as ``days`` allow.
        days: length of the window; by default up to the day of the last commit, at most 1096.
        subdirs: only these folders of the repository, if any are named; a file that moves in
            from elsewhere is born, one that moves out dies.
        name: the site's name; by default the repository's.
        force: whether a trace in ``out`` may be replaced.
        fragment_modulus: about one fragment in so many is kept; 1 for all.

    Raises:
        ValueError: git is missing, the repository is none or empty, no commit lies in the window,
            ``out`` is in the way, or ``fragment_modulus`` is below 1.
        OSError: the folder cannot be written.
    """
    whole("fragment_modulus", fragment_modulus, 1)
    check_target(out, force)
    repository = open_repository(path)
    subdirs = subdirs or []
    with Console(stderr=True).status("reading the main line"):
        links = main_line(repository, subdirs)
    window = choose_window(links, start, days)
    history = read_history(repository, window, subdirs, fragment_modulus)
    if not history.num_fragments:
        raise ValueError(f"{path}: no file exists in the {window.days:g} days from {window.start}")
    contents = tables(history)
    meta = _describe(repository, window, history, contents)
    meta |= {"site": name or repository.name, "subdirs": subdirs}
    meta["fragment_modulus"] = fragment_modulus
    write_trace(out, contents, meta)
    return meta


def _describe(
    repository: Repository, window: Window, history: History, contents: Tables
) -> dict[str, Any]:
    """What ``meta.json`` says of where the trace comes from and what it holds."""
    return {
        "command": "python -m scripts.data.trace_from_git",
        "command_version": COMMAND_VERSION,
        "commits": window.stop - window.first,
        "directories": len(set(contents["pages"]["dir_id"].to_pylist())),
        "head": repository.head,
        "merges": sum(link.is_merge for link in window.links[window.first : window.stop]),
        "moves": history.book.moved,
        "pages_at_start": sum(page.born < 0.0 for page in history.num_fragments),
        "reordered": window.reordered,
        "returned": history.book.returned,
        "rows": {name: table.num_rows for name, table in contents.items()},
        "source": repository.name,
        "window_days": window.days,
        "window_start": window.start.isoformat(),
        "window_start_weekday": window.start.strftime("%a"),
    }


app = typer.Typer(add_completion=False)


@app.command(help="Make a trace of a git repository: files are pages, commits their changes.")
def main(
    path: Annotated[Path, typer.Argument(help="Top folder of the repository, or a bare one.")],
    out: Annotated[Path, typer.Option(help="Folder to write the trace to.")],
    start: Annotated[
        str | None,
        typer.Option(help="First day of the window, YYYY-MM-DD, UTC. By default 1096 days back."),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(help="Length of the window. By default up to the day of the last commit."),
    ] = None,
    subdir: Annotated[
        list[str] | None, typer.Option(help="Only this folder; may be given several times.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The site's name. By default the repository's.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the trace in OUT.")] = False,
    fragment_modulus: Annotated[
        int, typer.Option(help="Keep about one fragment in so many; 1 keeps all.")
    ] = FRAGMENT_MODULUS,
) -> None:
    """Write the trace and say what is in it."""
    try:
        meta = make_trace(
            path,
            out,
            start=_date(start) if start is not None else None,
            days=days,
            subdirs=subdir,
            name=name,
            force=force,
            fragment_modulus=fragment_modulus,
        )
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"error: cannot write {out}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    if not meta["rows"]["fragments"]:
        typer.echo(NO_FRAGMENTS.format(fragment_modulus), err=True)
    rows = ", ".join(f"{count} {table}" for table, count in meta["rows"].items())
    Console().print(
        f"{meta['site']}: {meta['window_days']:g} days from {meta['window_start']}, "
        f"{meta['commits']} commits, {rows} -> {out}",
        soft_wrap=True,
        highlight=False,
    )


def _date(text: str) -> datetime.date:
    """Read a date, or raise ValueError in words."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"start must be a date YYYY-MM-DD, got {text!r}") from None


if __name__ == "__main__":
    app()
