"""Convert a history to the tables of a trace, and write them atomically."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from scripts.data.git.page_histories import Page
from scripts.data.git.recorded_history import Change, History
from scripts.data.git.versions import FragmentBook

DIRECTORY_PAGES = 100
"""Largest number of pages in a directory that is not split."""
ENOUGH_CHANGES = 3
"""Fragments are written for pages with at least this number of changes."""

Tables = dict[str, Any]
COLUMNS = {
    "pages": "page_id int32, path_hash uint64, dir_id int32, created float64, deleted float64, "
    "n_fragments int32",
    "changes": "page_id int32, t float64, t_author float64, kind word, lines_added int32, "
    "lines_removed int32, staleness float32",
    "signals": "dir_id int32, t float64, t_author float64, n_dir int32, n_site int32",
    "mentions": "page_id int32, t float64",
}


def tables(history: History) -> Tables:
    """Return the Arrow tables of a trace by name; fragments only if they are recorded."""
    # pages of the start by path, then the others by birth
    pages = sorted(
        history.num_fragments, key=lambda page: (max(page.born, 0.0), page.first_path, page.born)
    )
    number = {page: index for index, page in enumerate(pages)}
    groups = directory_groups(page.path for page in pages)
    directory = {page: groups[group_of(page.path, groups)] for page in pages}
    changes = history.changes + [
        Change(page, *page.death[:2], "deletion", 0, page.death.lines_removed, 1.0)
        for page in pages
        if page.death is not None
    ]
    changes.sort(key=lambda change: (change.time, number[change.page]))
    mentions = sorted(
        (commit.time, number[page]) for commit in history.announcements for page in commit.mentioned
    )
    rows: dict[str, list[tuple[Any, ...]]] = {
        "pages": [
            (
                *(number[page], path_hash(page.first_path), directory[page], page.born),
                *(page.death and page.death.time, history.num_fragments[page]),
            )
            for page in pages
        ],
        "changes": [(number[change.page], *change[1:]) for change in changes],
        "signals": _signals(history, changes, directory, groups),
        "mentions": [(page, time) for time, page in mentions],
    }
    written = {name: _table(COLUMNS[name], rows[name]) for name in COLUMNS}
    if history.fragments:
        written["fragments"] = _fragment_table(history.fragments, history, pages)
    return written


def _table(columns: str, rows: list[tuple[Any, ...]]) -> Any:
    """Return rows as an Arrow table; ``columns`` is a text with names and types of columns."""
    word = pa.dictionary(pa.int32(), pa.string())
    names, types = zip(*(column.split() for column in columns.split(", ")), strict=True)
    values = zip(*rows, strict=True) if rows else ([] for _ in names)
    kinds = [word if kind == "word" else pa.type_for_alias(kind) for kind in types]
    arrays = [pa.array(list(one), kind) for one, kind in zip(values, kinds, strict=True)]
    return pa.table(arrays, names=list(names))


def _fragment_table(fragments: FragmentBook, history: History, pages: list[Page]) -> Any:
    """Return the fragments of pages with ENOUGH_CHANGES, sorted by page, birth and fragment."""
    changes = Counter(change.page for change in history.changes if change.kind != "creation")
    numbers = [
        row
        for row, page in enumerate(pages)
        if changes[page] >= ENOUGH_CHANGES and page not in fragments.incomplete
    ]
    parts = [(np.empty(0, np.int32), np.empty(0, np.uint32), np.empty(0), np.empty(0))]
    for row in numbers:
        death = pages[row].death
        spells = fragments.spells(pages[row], death.time if death else np.inf)
        parts.append((np.full(spells.fragment.size, row, np.int32), *spells))
    page, fragment, birth, death_time = map(np.concatenate, zip(*parts, strict=True))
    return pa.table(
        {
            "page_id": page,
            "fragment": fragment,
            "birth": pa.array(birth, mask=np.isinf(birth)),
            "death": pa.array(death_time, mask=np.isinf(death_time)),
        }
    )


def _signals(
    history: History,
    changes: list[Change],
    directory: Mapping[Page, int],
    groups: Mapping[tuple[str, str], int],
) -> list[tuple[Any, ...]]:
    """Return rows of the table of signals, one for each directory that a commit touched."""
    in_site = Counter(change.time for change in changes)
    in_directory = Counter(
        (change.time, directory[change.page])
        for change in changes
        if change.kind in ("content", "whitespace")
    )
    rows = []
    for time, authored, touched, other_paths, _ in history.announcements:
        keys = {group_of(path, groups) for path in other_paths} & groups.keys()
        for group in sorted({groups[key] for key in keys} | {directory[page] for page in touched}):
            rows.append((group, time, authored, in_directory[time, group], in_site[time]))
    return rows


def path_hash(path: str) -> int:
    """Return a platform-independent 64-bit hash of a path."""
    digest = blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def directory_groups(paths: Iterable[str]) -> dict[tuple[str, str], int]:
    """Return numbers of groups of paths: directories, split by first letters if they are large.

    A group is a directory and a common prefix of file names. The prefix is extended letter by
    letter until no group has more than ``DIRECTORY_PAGES`` names, or the names end.
    """
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        names[str(PurePosixPath(path).parent), ""].append(PurePosixPath(path).name)
    groups = []
    while names:
        (directory, prefix), members = names.popitem()
        length = len(prefix) + 1
        if len(members) <= DIRECTORY_PAGES or all(len(name) < length for name in members):
            groups.append((directory, prefix))
            continue
        for name in members:
            names[directory, name[:length]].append(name)
    return {group: index for index, group in enumerate(sorted(groups))}


def group_of(path: str, groups: Mapping[tuple[str, str], int]) -> tuple[str, str]:
    """Return the group of a path, (directory, prefix), with the longest prefix that exists."""
    directory, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
    for length in range(len(name), 0, -1):
        if (directory, name[:length]) in groups:
            return directory, name[:length]
    return directory, ""


def check_target(folder: Path, force: bool) -> None:
    """Raise ValueError unless a trace may be written to ``folder``.

    An existing folder needs ``force``, and must be empty or a trace.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"out must be a folder, got the file {folder}")
    if not force:
        raise ValueError(f"out must not exist, got {folder}; use --force to replace it")
    if any(folder.iterdir()) and not (folder / "meta.json").is_file():
        raise ValueError(f"out must be a trace to be replaced by --force, got {folder}")


def write_trace(folder: Path, contents: Tables, meta: Mapping[str, Any]) -> None:
    """Write the tables and ``meta.json`` of a trace to a folder, which is replaced atomically.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        unfinished = Path(scratch) / "new"
        unfinished.mkdir()
        for name, table in contents.items():
            parquet.write_table(table, unfinished / f"{name}.parquet", compression="zstd")
        text = json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False)
        (unfinished / "meta.json").write_text(text + "\n", "utf-8")
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        unfinished.rename(folder)
