"""Make a trace of a git repository: every tracked file is a page, every commit a possible change.

Rules:

- Only the main line of a branch is read, by default of HEAD: a merge is one change, at the time of
  the merge.
- Time is the committer's, made monotone: a commit dated before its predecessor gets the
  predecessor's time, and equal times are separated by 1e-6 day. ``t_author`` is the author's time,
  for a merge that of the merged tip.
- A rename keeps the page and is not a change. A path that returns within 30 days is the same page,
  without a gap. Links and submodules are not pages.
- ``kind`` is whitespace if both versions are equal without white space. Re-wrapped text is white
  space too (git's ``-w`` compares by line).
- ``staleness`` is the Jaccard distance of the sets of three successive words before and after, 1
  for a creation or a deletion; only the first MiB of a file is read (``--max-bytes``).
- ``fragments`` are platform-independent hashes of three successive words, of pages with at least
  three changes, from birth (null: present at the window's start) to death (null: alive at its end).
  A fragment that returns has one row per appearance. About one in ``fragment_modulus`` (see
  ``meta.json``) is sampled, in all versions. ``--fragment-modulus 0`` records none and is faster.
- A page's directory is its last one; a directory with more than 100 pages is split by the first
  letters of the file names. A commit signals every directory in which it touched any file.
- A mention is a commit whose subject contains the file name or stem of a living page as a word.
  If several living pages share the name, as README or index, the subject must also contain the
  name of the page's directory as a word.
- ``n_dir`` (pages changed in the directory) and ``n_site`` (page events in the commit) are the
  hidden causes of a signal; no policy observes them.
- Nothing is downloaded. Versions that the clone lacks are an error, except with ``--missing skip``:
  then ``staleness`` is null if a version is missing, and pages with a missing version have no
  fragments. If any is missing, only renames with equal content are detected, and lines are not
  counted. ``meta.json`` has the number of missing versions. A shallow clone is an error.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from typer import Argument, Option

from crawl_envs.types.arguments import one_of, whole
from scripts.cli.commands import command_of, one_line_errors
from scripts.data.git.git_history import Repository, branches, main_line, num_files, open_repository
from scripts.data.git.recorded_history import (
    DEFAULT_DAYS,
    History,
    Missing,
    Window,
    choose_window,
    missing_versions,
    read_history,
)
from scripts.data.git.trace_writing import Tables, check_target, tables, write_trace
from scripts.present.tables import counted

COMMAND_VERSION = 3
HEAD, MAX_BYTES = "HEAD", 1 << 20
MAX_NAMES = 10
"""Number of files with missing versions that an error names."""
MISSING = (
    "warning: {} of files missing and skipped, so only renames with equal content are detected, "
    "and lines are not counted"
)
MAX_BRANCHES = 50
"""Number of branches whose files are counted, beginning with the latest."""
NO_FRAGMENTS = (
    "warning: the trace has no fragments; about one in {} is sampled (--fragment-modulus), from "
    "pages that change at least three times"
)

Words: TypeAlias = list[str] | None


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """Options of the command."""

    path: Annotated[Path, Argument(help="Top folder of a repository, or a bare one.")]
    out: Annotated[Path, Option(help="Output folder.")]
    start: Annotated[
        str | None,
        Option(help="First day of the window, YYYY-MM-DD, UTC.", show_default="1096 days back"),
    ] = None
    days: Annotated[
        float | None,
        Option(help="Length of the window in days.", show_default="up to the last commit"),
    ] = None
    subdir: Annotated[Words, Option(help="Use only this folder; repeatable.")] = None
    name: Annotated[
        str | None, Option(help="Name of the site.", show_default="name of the repository")
    ] = None
    include: Annotated[Words, Option(help="Use only files like '*.md'; repeatable.")] = None
    exclude: Annotated[Words, Option(help="Use no files like 'test/*'; repeatable.")] = None
    branch: Annotated[str, Option(help="Branch, tag or commit whose main line is read.")] = HEAD
    force: Annotated[bool, Option("--force", help="Replace the trace in OUT.")] = False
    fragment_modulus: Annotated[
        int, Option(help="Keep about one fragment in this number; 1 keeps all, 0 none.")
    ] = 8
    missing: Annotated[
        str, Option(help="What to do if the clone lacks versions of files: error or skip.")
    ] = "error"
    max_bytes: Annotated[int, Option(help="Bytes of a file that are read.")] = MAX_BYTES

    @property
    def first_day(self) -> datetime.date | None:
        """First day of the window; None for the default; ValueError if the option is no date."""
        try:
            return None if self.start is None else datetime.date.fromisoformat(self.start)
        except ValueError:
            raise ValueError(f"start must be a date YYYY-MM-DD, got {self.start!r}") from None


def make_trace(options: TraceOptions) -> dict[str, Any]:
    """Write the trace of a repository and return its ``meta.json``.

    Raises:
        ValueError: as for :func:`read_trace`, or ``out`` exists.
        OSError: the folder cannot be written.
    """
    check_target(options.out, options.force)
    contents, meta = read_trace(options)
    write_trace(options.out, contents, meta)
    return meta


def read_trace(
    options: TraceOptions, max_days: int = DEFAULT_DAYS
) -> tuple[Tables, dict[str, Any]]:
    """Return the tables of the trace of a repository, and its ``meta.json``.

    By default the window is at most the last ``max_days``.

    Raises:
        ValueError: git is missing, the repository is invalid, shallow or empty, the branch does not
            exist, the clone lacks versions and ``missing`` is ``error``, the window has no commit,
            ``fragment_modulus`` is below 0, or ``max_bytes`` is below 1.
    """
    path, modulus = options.path, options.fragment_modulus
    whole("fragment_modulus", modulus, 0, 2**32)
    one_of("missing", options.missing, ("error", "skip"))
    whole("max_bytes", options.max_bytes, 1)
    start = options.first_day
    include, exclude = options.include or [], options.exclude or []
    repository = open_repository(path, options.subdir or [], include, exclude, options.branch)
    window = choose_window(main_line(repository), start, options.days, max_days)
    missing = missing_versions(repository, window)
    if missing and options.missing == "error":
        raise ValueError(_missing_text(path, missing))
    history = read_history(repository, window, modulus, options.max_bytes, missing)
    if not history.num_fragments:
        text = f"{path} must have files in the {window.days:g} days from {window.start}, got none"
        raise ValueError(text)
    contents = tables(history)
    meta = _metadata(options, repository, window, history, contents)
    if options.missing == "skip":
        meta["missing_versions"] = len(missing)
    return contents, meta


def _missing_text(path: Path, missing: Missing) -> str:
    """Return an error about missing versions, with the first paths and a commit of each."""
    commits: dict[str, str] = {}
    for name, commit in missing.values():
        commits.setdefault(name, commit)
    named = [f"{name!r} in commit {commits[name][:7]}" for name in list(commits)[:MAX_NAMES]]
    more = f" and {len(commits) - MAX_NAMES} more" if len(commits) > MAX_NAMES else ""
    return (
        f"{path} lacks {counted(len(missing), 'version')} of {counted(len(commits), 'file')}: "
        f"{', '.join(named)}{more}; skip these versions with --missing skip, or leave the files "
        "out with --exclude"
    )


def _metadata(
    options: TraceOptions, repository: Repository, window: Window, history: History, content: Tables
) -> dict[str, Any]:
    """Return the provenance and the contents of a trace for ``meta.json``."""
    meta: dict[str, Any] = {
        "command": "python -m scripts.data.trace_from_git",
        "command_version": COMMAND_VERSION,
        "commits": window.stop - window.first,
        "directories": len(set(content["pages"]["dir_id"].to_pylist())),
        "fragment_modulus": options.fragment_modulus,
        "head": repository.head,
        "merges": sum(link.is_merge for link in window.links[window.first : window.stop]),
        "moves": history.book.moved,
        "pages_at_start": sum(page.born < 0.0 for page in history.num_fragments),
        "reordered": window.reordered,
        "returned": history.book.returned,
        "rows": {name: table.num_rows for name, table in content.items()},
        "site": options.name or repository.name,
        "source": repository.name,
        "subdirs": options.subdir or [],
        "window_days": window.days,
        "window_start": window.start.isoformat(),
        "window_start_weekday": window.start.strftime("%a"),
    }
    only_if_set = {
        "include": options.include or None,
        "exclude": options.exclude or None,
        "branch": None if options.branch == HEAD else options.branch,
        "max_bytes": None if options.max_bytes == MAX_BYTES else options.max_bytes,
    }
    return meta | {name: value for name, value in only_if_set.items() if value is not None}


def main(options: TraceOptions) -> None:
    """Write the trace and print a summary."""
    with one_line_errors(place=options.out):
        meta = make_trace(options)
    if options.branch == HEAD and (better := _larger_branch(options.path)):
        typer.echo(f"warning: {better}", err=True)
    if missing := meta.get("missing_versions"):
        typer.echo(MISSING.format(counted(missing, "version")), err=True)
    if meta["rows"].get("fragments") == 0:
        typer.echo(NO_FRAGMENTS.format(options.fragment_modulus), err=True)
    rows = ", ".join(f"{count} {table}" for table, count in meta["rows"].items())
    Console().print(
        f"{meta['site']}: {meta['window_days']:g} days from {meta['window_start']}, "
        f"{meta['commits']} commits, {rows} -> {options.out}",
        soft_wrap=True,
        highlight=False,
    )


def _larger_branch(path: Path) -> str | None:
    """Return a warning if a branch has more than ten times as many files as HEAD."""
    here = num_files(path, HEAD)
    sizes = {name: num_files(path, name) for name in branches(path)[:MAX_BRANCHES]}
    largest = max(sizes, key=lambda name: sizes[name], default=HEAD)
    if sizes.get(largest, 0) <= 10 * here:
        return None
    return f"HEAD has {here} files, {largest} has {sizes[largest]}: use --branch {largest}"


app = command_of(
    main,
    TraceOptions,
    "Make a trace of a git repository: files are pages, commits their changes.",
)

if __name__ == "__main__":
    app()
