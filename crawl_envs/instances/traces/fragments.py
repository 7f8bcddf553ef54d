"""Read recorded fragments of a trace, and cut them to the contents of pages in a window."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crawl_envs.instances.traces.tables import (
    ColumnKind,
    Columns,
    check_range,
    check_rows,
    column_error,
    read_columns,
)
from crawl_envs.instances.traces.windows import RecordedFragments, Trace
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.contents import Contents

FILE = "fragments.parquet"
COLUMNS: dict[str, ColumnKind] = {
    "page_id": "whole",
    "fragment": "whole",
    "birth": "optional number",
    "death": "optional number",
}
HASHES = 1 << 32


def read_fragments(
    folder: Path, created: FloatArray, deleted: FloatArray, days: float, modulus: int | None
) -> RecordedFragments | None:
    """Read and check the fragments of the trace in ``folder``; return None if it has none.

    Args:
        folder: folder of the trace.
        created: birth of each page, (m,).
        deleted: death of each page, inf if none, (m,).
        days: length of the record.
        modulus: the ``fragment_modulus`` of ``meta.json``, None if missing.

    Raises:
        ValueError: the file is not a valid table of fragments; the message names file, column,
            value and expectation.
    """
    path = folder / FILE
    if not path.exists():
        return None
    if modulus is None:
        raise ValueError(
            f"{folder / 'meta.json'}: entry 'fragment_modulus' is missing, expected beside {FILE}"
        )
    columns, _ = read_columns(path, COLUMNS)
    page = columns["page_id"]
    check_rows(path, "page_id", page, created.size, "pages")
    check_rows(path, "fragment", columns["fragment"], HASHES, "hashes")
    _check_lives(path, columns, created[page], deleted[page], days)
    birth = np.where(np.isnan(columns["birth"]), -np.inf, columns["birth"])
    death = np.where(np.isnan(columns["death"]), np.inf, columns["death"])
    fragment = columns["fragment"]
    _check_apart(path, page, fragment, birth, death)
    order = np.lexsort((fragment, birth, page))
    hashes = fragment[order].astype(np.uint32)
    return RecordedFragments(page[order], hashes, birth[order], death[order], modulus)


def _check_lives(
    path: Path, columns: Columns, created: FloatArray, deleted: FloatArray, days: float
) -> None:
    """Raise ValueError unless every spell lies within the record and its page's life.

    ``created`` and ``deleted`` are per row.
    """
    birth, death = columns["birth"], columns["death"]
    first, stays = np.isnan(birth), np.isnan(death)
    check_range(path, "birth", birth[~first], 0.0, days)
    check_range(path, "death", death[~stays], 0.0, days)
    checks = (
        ("birth", first & (created > 0.0), "a time, not before the page's 'created'"),
        ("birth", birth < created, "a time not before the page's 'created'"),
        ("death", stays & (deleted <= days), "a time, not after the page's 'deleted'"),
        ("death", death > deleted, "a time not after the page's 'deleted'"),
        ("death", death <= birth, "a time after the fragment's 'birth'"),
    )
    for name, wrong, expected in checks:
        if wrong.any():
            row = int(np.argmax(wrong))
            held = "null" if np.isnan(columns[name][row]) else columns[name][row]
            life = f"page {columns['page_id'][row]} lived {created[row]} to {deleted[row]}"
            raise column_error(path, name, f"{held} in row {row}", f"{expected} ({life})")


def _check_apart(
    path: Path, page: IntArray, fragment: IntArray, birth: FloatArray, death: FloatArray
) -> None:
    """Raise ValueError if two spells of a fragment on a page overlap."""
    identity = page * HASHES + fragment
    order = np.lexsort((birth, identity))
    before, after = order[:-1], order[1:]
    wrong = (identity[before] == identity[after]) & (birth[after] <= death[before])
    if wrong.any():
        row, other = int(after[np.argmax(wrong)]), int(before[np.argmax(wrong)])
        raise column_error(
            path,
            "birth",
            f"{birth[row]} in row {row}",
            f"a time after {death[other]}, when fragment {fragment[row]} of page {page[row]} left "
            f"(row {other})",
        )


def window_contents(trace: Trace, start: float, end: float) -> tuple[Contents, IntArray]:
    """Return the contents of pages in the window (start, end], and their rows in the trace.

    The pages are those with recorded fragments that exist at some time of the window. Keys of
    fragments are their hashes.

    Args:
        trace: the record.
        start: start of the window, days since the record's start.
        end: end of the window.

    Returns:
        Contents of k pages, with times since ``start`` (birth -inf at or before ``start``, death
        inf after ``end``), and the ascending rows of the pages, (k,) int64.

    Raises:
        ValueError: the window is not within the record, the trace has no fragments, or no page
            with fragments exists in the window.
    """
    trace.check_window(start, end)
    spells = trace.fragments
    if spells is None:
        raise ValueError(f"trace {trace.name!r} has no recorded fragments, expected {FILE}")
    exists = (trace.created <= end) & (trace.deleted > start)
    pages = np.unique(spells.page)
    pages = pages[exists[pages]]
    if pages.size == 0:
        raise ValueError(
            f"trace {trace.name!r} has no page with recorded fragments in ({start:g}, {end:g}]"
        )
    seen = (spells.birth <= end) & (spells.death > start)
    birth, death = spells.birth[seen], spells.death[seen]
    contents = Contents.of_spells(
        pages.size,
        np.searchsorted(pages, spells.page[seen]),
        np.where(birth <= start, -np.inf, birth - start),
        np.where(death > end, np.inf, death - start),
        key=spells.fragment[seen],
    )
    return contents, pages
