"""Conversion of a history to the tables of a trace, and atomic writing."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from scripts.data.git.page_histories import Page
from scripts.data.git.recorded_history import Change, History

DIRECTORY_PAGES = 100
"""Number of pages above which a directory is split."""
ENOUGH_CHANGES = 3
"""Smallest number of changes of a page for its fragments to be written."""

Tables = dict[str, Any]


def tables(history: History) -> Tables:
    """Return the Arrow tables of a trace by name: pages, changes, signals, mentions, fragments."""
    import pyarrow as pa

    pages = _ordered(history)
    number = {page: index for index, page in enumerate(pages)}
    groups = directory_groups(page.path for page in pages)
    directory = [groups[group_of(page.path, groups)] for page in pages]
    changes = _with_deaths(history.changes, pages)
    changes.sort(key=lambda change: (change.time, number[change.page]))
    word = pa.dictionary(pa.int32(), pa.string())
    page_table = pa.table(
        {
            "page_id": pa.array(range(len(pages)), pa.int32()),
            "path_hash": pa.array([path_hash(page.first_path) for page in pages], pa.uint64()),
            "dir_id": pa.array(directory, pa.int32()),
            "created": pa.array([page.born for page in pages], pa.float64()),
            "deleted": pa.array([page.death and page.death.time for page in pages], pa.float64()),
            "n_fragments": pa.array([history.num_fragments[page] for page in pages], pa.int32()),
        }
    )
    change_table = pa.table(
        {
            "page_id": pa.array([number[change.page] for change in changes], pa.int32()),
            "t": pa.array([change.time for change in changes], pa.float64()),
            "t_author": pa.array([change.authored for change in changes], pa.float64()),
            "kind": pa.array([change.kind for change in changes], pa.string()).cast(word),
            "lines_added": pa.array([change.lines_added for change in changes], pa.int32()),
            "lines_removed": pa.array([change.lines_removed for change in changes], pa.int32()),
            "staleness": pa.array([change.staleness for change in changes], pa.float32()),
        }
    )
    mentions = [
        (number[page], said.time) for said in history.announcements for page in said.mentioned
    ]
    mentions.sort(key=lambda mention: (mention[1], mention[0]))
    mention_table = pa.table(
        {
            "page_id": pa.array([page for page, _ in mentions], pa.int32()),
            "t": pa.array([time for _, time in mentions], pa.float64()),
        }
    )
    where = dict(zip(pages, directory, strict=True))
    return {
        "pages": page_table,
        "changes": change_table,
        "signals": _signal_table(history, changes, where, groups),
        "mentions": mention_table,
        "fragments": _fragment_table(history, pages),
    }


def _fragment_table(history: History, pages: list[Page]) -> Any:
    """Return the fragments of pages with enough changes, sorted by page, birth and fragment."""
    import pyarrow as pa

    changes = Counter(
        change.page for change in history.changes if change.kind in ("content", "whitespace")
    )
    numbers = [row for row, page in enumerate(pages) if changes[page] >= ENOUGH_CHANGES]
    columns = {
        "page_id": [np.empty(0, np.int32)],
        "fragment": [np.empty(0, np.uint32)],
        "birth": [np.empty(0)],
        "death": [np.empty(0)],
    }
    for number in numbers:
        death = pages[number].death
        spells = history.fragments.spells(pages[number], death.time if death else np.inf)
        columns["page_id"].append(np.full(spells.fragment.size, number, np.int32))
        for name, part in zip(spells._fields, spells, strict=True):
            columns[name].append(part)
    arrays = {name: np.concatenate(parts) for name, parts in columns.items()}
    return pa.table(
        {
            name: pa.array(array, mask=np.isinf(array) if array.dtype == np.float64 else None)
            for name, array in arrays.items()
        }
    )


def _ordered(history: History) -> list[Page]:
    """Return the recorded pages: first those of the start by path, then the others by birth."""
    return sorted(
        history.num_fragments,
        key=lambda page: (max(page.born, 0.0), page.first_path, page.born),
    )


def _with_deaths(changes: list[Change], pages: list[Page]) -> list[Change]:
    """Return the changes and the deaths without a return."""
    deaths = [
        Change(page, *page.death[:2], "deletion", 0, page.death.lines_removed, 1.0)
        for page in pages
        if page.death is not None
    ]
    return changes + deaths


def _signal_table(
    history: History,
    changes: list[Change],
    where: Mapping[Page, int],
    groups: Mapping[tuple[str, str], int],
) -> Any:
    """Return one row per commit and directory in which it touched any file."""
    import pyarrow as pa

    in_site = Counter(change.time for change in changes)
    in_directory = Counter(
        (change.time, where[change.page])
        for change in changes
        if change.kind in ("content", "whitespace")
    )
    rows = []
    for said in history.announcements:
        others = (group_of(path, groups) for path in said.others)
        touched = {where[page] for page in said.touched}
        touched |= {groups[group] for group in others if group in groups}
        rows += [(directory, said.time, said.authored) for directory in sorted(touched)]
    return pa.table(
        {
            "dir_id": pa.array([row[0] for row in rows], pa.int32()),
            "t": pa.array([row[1] for row in rows], pa.float64()),
            "t_author": pa.array([row[2] for row in rows], pa.float64()),
            "n_dir": pa.array([in_directory[row[1], row[0]] for row in rows], pa.int32()),
            "n_site": pa.array([in_site[row[1]] for row in rows], pa.int32()),
        }
    )


def path_hash(path: str) -> int:
    """Return a platform-independent 64-bit hash of a path."""
    digest = blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def directory_groups(paths: Iterable[str]) -> dict[tuple[str, str], int]:
    """Number the directories; large ones are split by the first letters of file names.

    A group is a directory and a common prefix of file names, extended letter by letter until no
    group has more than ``DIRECTORY_PAGES`` names, or the names end.
    """
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        names[str(PurePosixPath(path).parent), ""].append(PurePosixPath(path).name)
    whole = []
    while names:
        (directory, prefix), members = names.popitem()
        length = len(prefix) + 1
        if len(members) <= DIRECTORY_PAGES or all(len(name) < length for name in members):
            whole.append((directory, prefix))
            continue
        for name in members:
            names[directory, name[:length]].append(name)
    return {group: index for index, group in enumerate(sorted(whole))}


def group_of(path: str, groups: Mapping[tuple[str, str], int]) -> tuple[str, str]:
    """Return the group of a path: that of the longest prefix, or else the empty prefix."""
    directory, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
    for length in range(len(name), 0, -1):
        if (directory, name[:length]) in groups:
            return directory, name[:length]
    return directory, ""


def check_target(folder: Path, force: bool) -> None:
    """Raise ValueError unless a trace may be written to ``folder``.

    An existing folder needs ``force``, and must be empty or a trace.
    """
    if not folder.parent.is_dir():
        raise ValueError(f"{folder}: its folder {folder.parent} does not exist")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder}: exists and is no folder")
    if not force:
        raise ValueError(f"{folder}: exists; use --force to replace it")
    if any(folder.iterdir()) and not (folder / "meta.json").is_file():
        raise ValueError(f"{folder}: exists and is no trace; --force does not replace it")


def write_trace(folder: Path, contents: Tables, meta: Mapping[str, Any]) -> None:
    """Write a trace atomically.

    Raises:
        OSError: the folder cannot be written.
    """
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        unfinished = Path(scratch) / "new"
        unfinished.mkdir()
        for name, table in contents.items():
            pq.write_table(table, unfinished / f"{name}.parquet", compression="zstd")
        text = json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False)
        (unfinished / "meta.json").write_text(text + "\n", "utf-8")
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        unfinished.rename(folder)
