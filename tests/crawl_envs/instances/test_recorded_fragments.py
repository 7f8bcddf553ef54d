from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawl_envs.instances import traces
from crawl_envs.instances.traces.fragments import window_contents
from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH
from crawl_envs.types.contents import Contents
from tests.crawl_envs.instances.recorded import tiny_tables, write
from tests.crawl_envs.instances.test_traces import events

Spell = tuple[int, float, float]


def tiny_fragments() -> dict[str, Any]:
    """Page 0 loses fragment 7 for a while; page 1 dies, pages 3 and 4 are born; page 2 has none."""
    return {
        "page_id": pa.array([0, 0, 0, 0, 1, 3, 4], pa.int32()),
        "fragment": pa.array([7, 2**32 - 1, 7, 9, 7, 5, 6], pa.uint32()),
        "birth": pa.array([None, None, 3.0, 1.0, None, 2.0, 4.0], pa.float64()),
        "death": pa.array([1.0, None, None, 3.0, 6.0, None, None], pa.float64()),
    }


def with_fragments(folder: Path, **columns: Any) -> Path:
    """Write the tiny trace with fragments, some of whose columns are replaced."""
    tables = tiny_tables() | {"fragments": tiny_fragments() | columns}
    return write(folder, tables)


def versions(contents: Contents, time: float) -> list[set[int]]:
    """The keys that every page has at a time."""
    matches: list[set[int]] = []
    for page in range(contents.num_pages):
        rows = range(int(contents.start[page]), int(contents.start[page + 1]))
        there = [row for row in rows if contents.birth[row] < time <= contents.death[row]]
        matches.append({int(contents.key[row]) for row in there})
        assert len(matches[-1]) == len(there)
    return matches


def recorded_spells(folder: Path) -> dict[int, list[Spell]]:
    """By page, fragment, birth and death as they stand in the file."""
    spells: dict[int, list[Spell]] = {}
    for row in pq.read_table(folder / "fragments.parquet").to_pylist():
        birth = -math.inf if row["birth"] is None else row["birth"]
        death = math.inf if row["death"] is None else row["death"]
        spells.setdefault(row["page_id"], []).append((row["fragment"], birth, death))
    return spells


def naive_version(spells: list[Spell], start: float, time: float) -> set[int]:
    """Return the fragments of a page at ``start + time``; events at ``start`` are included."""
    if time == 0.0:
        return {fragment for fragment, birth, death in spells if birth <= start < death}
    return {fragment for fragment, birth, death in spells if birth - start < time <= death - start}


def test_a_trace_without_fragments_has_none(tmp_path: Path) -> None:
    trace = traces.load(write(tmp_path, tiny_tables()))
    assert trace.fragments is None
    with pytest.raises(ValueError, match="trace 'tiny' has no recorded fragments"):
        window_contents(trace, 0.0, 5.0)


@pytest.mark.parametrize("rows", [range(7), [6, 2, 4, 0, 5, 3, 1]])
def test_fragments_are_read_in_any_order(tmp_path: Path, rows: Sequence[int]) -> None:
    table = pa.table(tiny_fragments()).take(list(rows))
    columns = {name: table[name] for name in table.column_names}
    fragments = traces.load(with_fragments(tmp_path, **columns)).fragments
    assert fragments is not None
    assert fragments.page.tolist() == [0, 0, 0, 0, 1, 3, 4]
    assert fragments.fragment.tolist() == [7, 2**32 - 1, 9, 7, 7, 5, 6]
    assert fragments.birth.tolist() == [-math.inf, -math.inf, 1.0, 3.0, -math.inf, 2.0, 4.0]
    assert fragments.death.tolist() == [1.0, math.inf, 3.0, math.inf, 6.0, math.inf, math.inf]
    assert fragments.fragment.dtype == np.uint32
    some = fragments.of_pages(np.array([False, True, False, True, False]))
    assert some.page.tolist() == [0, 1]
    assert some.fragment.tolist() == [7, 5]
    assert some.birth.tolist() == [-math.inf, 2.0]
    assert some.death.tolist() == [6.0, math.inf]


def test_a_window_of_the_tiny_trace(tmp_path: Path) -> None:
    contents, pages = window_contents(traces.load(with_fragments(tmp_path)), 1.0, 6.0)
    assert pages.tolist() == [0, 1, 3, 4]
    assert contents.start.tolist() == [0, 3, 4, 5, 6]
    assert contents.key.tolist() == [9, 2**32 - 1, 7, 7, 5, 6]
    assert contents.birth.tolist() == [-math.inf, -math.inf, 2.0, -math.inf, 1.0, 3.0]
    assert contents.death.tolist() == [2.0, math.inf, math.inf, 5.0, math.inf, math.inf]
    assert contents.size.tolist() == [1] * 6
    assert contents.earlier.tolist() == [-1] * 6
    later, pages = window_contents(traces.load(with_fragments(tmp_path)), 6.0, 10.0)
    assert pages.tolist() == [0, 3, 4]
    assert versions(later, 1.0) == [{7, 2**32 - 1}, {5}, {6}]
    early, pages = window_contents(traces.load(with_fragments(tmp_path)), 0.0, 2.0)
    assert pages.tolist() == [0, 1, 3]
    assert early.birth.tolist() == [-math.inf, -math.inf, 1.0, -math.inf, 2.0]
    assert early.death.tolist() == [1.0, math.inf, math.inf, math.inf, math.inf]


def test_a_window_without_pages_is_refused(tmp_path: Path) -> None:
    none = {name: array[:0] for name, array in tiny_fragments().items()}
    trace = traces.load(with_fragments(tmp_path, **none))
    assert trace.fragments is not None
    assert trace.fragments.page.size == 0
    with pytest.raises(ValueError, match=r"no page with recorded fragments in \(1, 5\]"):
        window_contents(trace, 1.0, 5.0)
    with pytest.raises(ValueError, match="end must lie in"):
        window_contents(trace, 1.0, 11.0)


@pytest.mark.parametrize("pages", [[0, 1, 3, 4], [4, 0], [2], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("signals", traces.SIGNALS)
def test_the_tape_of_some_pages(tmp_path: Path, pages: list[int], signals: traces.Signals) -> None:
    trace = traces.load(with_fragments(tmp_path))
    tape = trace.window(1.0, 8.0, signals).of_pages(np.array(pages))
    assert [(time, kind, pages[page]) for time, kind, page in events(tape)] == [
        event for event in events(trace.window(1.0, 8.0, signals)) if event[2] in pages
    ]
    assert tape.alive.tolist() == trace.window(1.0, 8.0).alive[pages].tolist()
    assert (tape.duration, tape.num_sources) == (7.0, 2 if signals == "both" else 1)


BAD_COLUMNS: list[tuple[str, list[Any], str]] = [
    ("page_id", [0, 0, 0, 0, 1, 3, 5], "'page_id' holds 5.*one of the 5 pages"),
    ("page_id", [0, 0, 0, 0, 1, 3, None], "'page_id' holds null in row 6"),
    ("fragment", [7, 2**32, 7, 9, 7, 5, 6], "'fragment' holds 4294967296.*hashes"),
    ("fragment", [7, -1, 7, 9, 7, 5, 6], "'fragment' holds -1.*hashes"),
    ("fragment", [7.0, 8.0, 7.0, 9.0, 7.0, 5.0, 6.0], "'fragment' holds type double"),
    ("fragment", [7, 8, 8, 9, 7, 5, 6], "'birth' holds 3.0 in row 2.*after inf, when fragment 8"),
    ("birth", [None, None, 0.5, 1.0, None, 2.0, 4.0], "'birth' holds 0.5 in row 2.*after 1.0, wh"),
    ("birth", [None, None, 1.0, 1.0, None, 2.0, 4.0], "'birth' holds 1.0 in row 2.*after 1.0, wh"),
    ("birth", [None, math.nan, 3.0, 1.0, None, 2.0, 4.0], "'birth' holds nan.*finite"),
    ("birth", [None, -1.0, 3.0, 1.0, None, 2.0, 4.0], "'birth' holds -1.0.*from 0 to 10"),
    ("birth", [None, 10.5, 3.0, 1.0, None, 2.0, 4.0], "'birth' holds 10.5.*from 0 to 10"),
    ("birth", [None, None, 3.0, 1.0, None, None, 4.0], "'birth' holds null in row 5.*page 3, 2.0"),
    ("birth", [None, None, 3.0, 1.0, None, 1.5, 4.0], "'birth' holds 1.5 in row 5.*page 3, 2.0"),
    ("death", [1.0, None, None, 1.0, 6.0, None, None], "'death' holds 1.0 in row 3.*after 'birth'"),
    ("death", [1.0, None, None, 3.0, 6.5, None, None], "'death' holds 6.5 in row 4.*to 6.0"),
    ("death", [1.0, None, None, 3.0, None, None, None], "'death' holds null in row 4.*to 6.0"),
    ("death", [1.0, None, None, 11.0, 6.0, None, None], "'death' holds 11.0.*from 0 to 10"),
    ("death", [-1.0, None, None, 3.0, 6.0, None, None], "'death' holds -1.0.*from 0 to 10"),
]


@pytest.mark.parametrize(("column", "values", "message"), BAD_COLUMNS)
def test_a_bad_column_is_named(
    tmp_path: Path, column: str, values: list[Any], message: str
) -> None:
    spoiled = pa.array(values, from_pandas=False)
    with pytest.raises(ValueError, match=f"fragments.parquet: column {message}"):
        traces.load(with_fragments(tmp_path, **{column: spoiled}))


def test_a_missing_column_and_a_truncated_file_are_named(tmp_path: Path) -> None:
    folder = with_fragments(tmp_path)
    path = folder / "fragments.parquet"
    pq.write_table(pq.read_table(path).drop_columns("birth"), path)
    with pytest.raises(ValueError, match=r"fragments.parquet: column 'birth' is missing"):
        traces.load(folder)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"fragments.parquet: expected a whole Parquet file"):
        traces.load(folder)


def check_window(trace: traces.Trace, start: float, end: float, dice: random.Random) -> None:
    """Compare a window with sets and events that are built row by row."""
    spells = recorded_spells(trace.folder)
    contents, pages = window_contents(trace, start, end)
    assert pages.tolist() == sorted(
        page for page in spells if trace.created[page] <= end and trace.deleted[page] > start
    )
    tape = trace.window(start, end, "none").of_pages(pages)
    exact = [float(time) for time in dice.sample(tape.time.tolist(), min(3, tape.time.size))]
    for time in (0.0, end - start, *exact, *(dice.uniform(0.0, end - start) for _ in range(4))):
        expected = [naive_version(spells[page], start, time) for page in pages.tolist()]
        assert versions(contents, time) == expected
    kind, page = tape.code % CODE_STRIDE, tape.code // CODE_STRIDE
    moments = set(zip(page.tolist(), tape.time.tolist(), strict=True))
    assert set(kind.tolist()) <= {BIRTH, CHANGE, DEATH}
    for times in (contents.birth, contents.death):
        inside = np.isfinite(times)
        moments_of = zip(contents.page[inside].tolist(), times[inside].tolist(), strict=True)
        assert set(moments_of) <= moments, "fragments come and go with changes of their page"


@pytest.mark.parametrize(("start", "end"), [(0.0, 200.0), (100.0, 200.0), (33.3, 151.7)])
def test_the_shipped_trace_agrees_with_sets_built_row_by_row(start: float, end: float) -> None:
    trace = traces.load(traces.find("garden-handbook"))
    assert trace.fragments is not None
    rows = pq.read_metadata(traces.find("garden-handbook") / "fragments.parquet").num_rows
    assert trace.fragments.page.size == rows
    check_window(trace, start, end, random.Random(4))
