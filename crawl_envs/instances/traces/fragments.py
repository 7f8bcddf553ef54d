"""Read recorded fragments of a trace, and cut them to the contents of pages in a window."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crawl_envs.instances.traces.tables import ColumnKind, Table, column_error, read_table
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
    folder: Path, created: FloatArray, deleted: FloatArray, days: float
) -> RecordedFragments | None:
    """Read and check the fragments of the trace in ``folder``; return None if it has none.

    Args:
        folder: folder of the trace.
        created: birth of each page, (m,).
        deleted: death of each page, inf if none, (m,).
        days: length of the record.

    Raises:
        ValueError: the file is not a valid table of fragments; the message names file, column,
            value and expectation.
    """
    path = folder / FILE
    if not path.exists():
        return None
    table = read_table(path, COLUMNS)
    page, fragment = table["page_id"], table["fragment"]
    table.check_rows("page_id", created.size, "pages")
    table.check_rows("fragment", HASHES, "hashes")
    table.check_range("birth", 0.0, days)
    table.check_range("death", 0.0, days)
    birth = np.nan_to_num(table["birth"], nan=-np.inf)
    death = np.nan_to_num(table["death"], nan=np.inf)

    def life(row: int) -> str:
        lived = f"{created[page[row]]} to {deleted[page[row]]}"
        return f"a time after 'birth' and in the life of page {page[row]}, {lived}"

    table.check("birth", np.maximum(birth, 0.0) < created[page], life)
    table.check("death", (death > deleted[page]) | (death <= birth), life)
    _check_apart(table, birth, death)
    order = np.lexsort((fragment, birth, page))
    hashes = fragment[order].astype(np.uint32)
    return RecordedFragments(page[order], hashes, birth[order], death[order])


def _check_apart(table: Table, birth: FloatArray, death: FloatArray) -> None:
    """Raise ValueError if two spells of one fragment on one page overlap in time."""
    page, fragment = table["page_id"], table["fragment"]
    order = np.lexsort((birth, fragment, page))
    before, after = order[:-1], order[1:]
    same = (page[before] == page[after]) & (fragment[before] == fragment[after])
    overlaps = np.flatnonzero(same & (birth[after] <= death[before]))
    if overlaps.size:
        row, previous = after[overlaps[0]], before[overlaps[0]]
        raise column_error(
            table.path,
            "birth",
            f"{birth[row]} in row {row}",
            f"a time after {death[previous]}, when fragment {fragment[row]} of page {page[row]} "
            f"left (row {previous})",
        )


def window_contents(
    trace: Trace, start: float, end: float, before: float = 0.0
) -> tuple[Contents, IntArray]:
    """Return the fragments of pages in the window (start, end], and the pages' rows in the trace.

    The pages are those with recorded fragments that exist at some time of the window. Keys of
    fragments are their hashes. The contents are those from ``start - before`` on. Times are days
    since then: birth is -inf at or before it, death inf after ``end``. Rows are ascending, (k,)
    int64.

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
    start -= before
    in_window = (spells.birth <= end) & (spells.death > start) & np.isin(spells.page, pages)
    birth, death = spells.birth[in_window], spells.death[in_window]
    contents = Contents.of_spells(
        pages.size,
        np.searchsorted(pages, spells.page[in_window]),
        np.where(birth <= start, -np.inf, birth - start),
        np.where(death > end, np.inf, death - start),
        key=spells.fragment[in_window],
    )
    return contents, pages
