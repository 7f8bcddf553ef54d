from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs.instances import traces
from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH, SIGNAL
from tests.crawl_envs.instances.recorded import META, tiny_tables, tiny_trace, write

MENTION = SIGNAL + 2
"""Of the second of two sources."""
RANK = {BIRTH: 0, CHANGE: 1, SIGNAL: 2, MENTION: 3, DEATH: 4}

Event = tuple[float, int, int]


def events(window: traces.TraceWindow) -> list[Event]:
    """(time, kind, page) of every event, in the tape's order."""
    kind, page = window.code % CODE_STRIDE, window.code // CODE_STRIDE
    return list(zip(window.time.tolist(), kind.tolist(), page.tolist(), strict=True))


def naive_events(trace: traces.Trace, start: float, end: float, signals: str) -> list[Event]:
    """The window's events page by page, one rule after another."""
    result: list[Event] = []
    for page in range(trace.num_pages):
        changes = zip(trace.change_page, trace.change_time, strict=True)
        born, died = trace.created[page], trace.deleted[page]
        moments = [(t, CHANGE) for p, t in changes if p == page]
        if signals in ("directory", "both"):
            for directory, t in zip(trace.signal_directory, trace.signal_time, strict=True):
                if directory == trace.directory[page] and born < t < died:
                    moments.append((t, SIGNAL))
        if signals in ("mentions", "both"):
            for p, t in zip(trace.mention_page, trace.mention_time, strict=True):
                if p == page and born < t < died:
                    moments.append((t, MENTION if signals == "both" else SIGNAL))
        moments += [(born, BIRTH), (died, DEATH)]
        result += [(float(t - start), kind, page) for t, kind in moments if start < t <= end]
    return in_page_order(result)


def in_page_order(result: list[Event]) -> list[Event]:
    return sorted(result, key=lambda event: (event[0], RANK[event[1]], event[2]))


def test_alive_days(tmp_path: Path) -> None:
    trace = tiny_trace(tmp_path)
    assert trace.alive_days(1.0, 8.0).tolist() == [7.0, 5.0, 7.0, 6.0, 4.0]
    assert trace.alive_days(0.0, 1.0).tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 5), r"start must lie in \[0, 10\) days of trace 'tiny', got -1"),
        ((10, 11), "start must lie in"),
        ((float("nan"), 5), "start must lie in"),
        ((2, 2), r"end must lie in \(2, 10\] days of trace 'tiny', got 2"),
        ((2, 10.5), "end must lie in"),
        ((0, float("nan")), "end must lie in"),
        ((0, 5, "lastmod"), "signals must be one of.*got 'lastmod'"),
    ],
)
def test_a_window_lies_in_the_record(tmp_path: Path, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_trace(tmp_path).window(*arguments)


@st.composite
def recorded(draw: st.DrawFn) -> traces.Trace:
    """A trace of few pages whose events often coincide."""
    count = draw(st.integers(1, 6))
    moment = st.integers(0, 8).map(float)
    created = np.array([draw(st.integers(-3, 7)) for _ in range(count)], dtype=np.float64)
    lives = [draw(st.one_of(st.just(np.inf), st.integers(1, 8).map(float))) for _ in range(count)]
    deleted = created + np.array(lives)
    deleted[(deleted < 0) | (deleted > 8)] = np.inf
    page = st.integers(0, count - 1)
    changes = [
        (t, p)
        for t, p in sorted(draw(st.lists(st.tuples(moment, page), max_size=12)))
        if created[p] < t < deleted[p]
    ]
    directory = np.array([draw(st.integers(0, 2)) for _ in range(count)])
    place = st.integers(0, int(directory.max()))
    signals = sorted(draw(st.lists(st.tuples(moment, place), max_size=12)))
    mentions = sorted(draw(st.lists(st.tuples(moment, page), max_size=12)))
    columns = [
        np.array([row[column] for row in rows], dtype=kind)
        for rows in (changes, signals, mentions)
        for column, kind in ((1, np.int64), (0, np.float64))
    ]
    return traces.Trace("drawn", Path("nowhere"), 8.0, created, deleted, directory, *columns)


@settings(max_examples=200, deadline=None)
@given(recorded(), st.integers(0, 7), st.integers(1, 8), st.sampled_from(traces.SIGNALS))
def test_windows_agree_with_the_naive_twin(
    trace: traces.Trace, start: int, length: int, signals: traces.Signals
) -> None:
    end = min(start + length, 8)
    window = trace.window(float(start), float(end), signals)
    result = events(window)
    assert in_page_order(result) == naive_events(trace, start, end, signals)
    order = [(t, RANK[kind]) for t, kind, _ in result]
    assert order == sorted(order)
    assert np.array_equal(window.alive, (trace.created <= start) & (trace.deleted > start))


def test_load_reads_what_was_written(tmp_path: Path) -> None:
    trace = tiny_trace(tmp_path)
    assert (trace.name, trace.days) == ("tiny", 10.0)
    assert trace.folder == tmp_path
    assert trace.num_pages == 5
    assert trace.deleted.tolist() == [np.inf, 6.0, np.inf, np.inf, np.inf]
    assert trace.change_page.tolist() == [0, 0, 2]
    assert trace.change_time.tolist() == [1.0, 3.0, 5.0]
    tables = tiny_tables()
    tables["changes"]["kind"] = pa.array(tables["changes"]["kind"]).dictionary_encode()
    assert traces.load(write(tmp_path, tables)).change_page.tolist() == [0, 0, 2]


def test_a_trace_without_a_single_event_is_read(tmp_path: Path) -> None:
    tables = tiny_tables()
    for name, kinds in (
        ("changes", {"page_id": pa.int32(), "t": pa.float64(), "kind": pa.string()}),
        ("signals", {"dir_id": pa.int32(), "t": pa.float64()}),
        ("mentions", {"page_id": pa.int32(), "t": pa.float64()}),
    ):
        tables[name] = {column: pa.array([], kind) for column, kind in kinds.items()}
    tables["pages"]["deleted"] = pa.nulls(5, pa.float64())
    window = traces.load(write(tmp_path, tables)).window(5.0, 10.0)
    assert window.time.size == 0
    tables["pages"] = {name: pa.array(column)[:0] for name, column in tables["pages"].items()}
    with pytest.raises(ValueError, match="at least one page"):
        traces.load(write(tmp_path, tables))


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (META | {"site": ""}, "entry 'site' holds"),
        (META | {"window_days": 0}, "entry 'window_days' holds"),
        (META | {"window_days": True}, "entry 'window_days' holds"),
        ({"site": "tiny"}, "entry 'window_days' is missing"),
        ([], "entry 'site' is missing"),
        (5, "expected a JSON object"),
    ],
)
def test_bad_entries_of_meta_are_named(tmp_path: Path, meta: Any, message: str) -> None:
    folder = write(tmp_path, tiny_tables(), meta)
    with pytest.raises(ValueError, match=f"meta.json: {message}"):
        traces.load(folder)


def test_a_missing_or_garbled_meta_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, tiny_tables())
    (folder / "meta.json").write_text("{")
    with pytest.raises(ValueError, match=r"meta.json: expected a JSON object"):
        traces.load(folder)
    (folder / "meta.json").unlink()
    with pytest.raises(ValueError, match=r"meta.json: no such file"):
        traces.load(folder)


BAD_COLUMNS: list[tuple[str, str, Any, str]] = [
    ("pages", "page_id", [0, 1, 3, 2, 4], "page_id.*3 in row 2.*own number"),
    ("pages", "page_id", [0.0, 1.0, 2.0, 3.0, 4.0], "page_id.*type double.*whole numbers"),
    ("pages", "dir_id", [0, 0, -1, 1, 0], "dir_id.*-1.*directories"),
    ("pages", "dir_id", [0, 0, None, 1, 0], "dir_id.*null in row 2"),
    ("pages", "created", [-3.0, np.nan, -1.0, 2.0, 4.0], "created.*nan.*finite"),
    ("pages", "created", [-3.0, None, -1.0, 2.0, 4.0], "created.*null in row 1"),
    ("pages", "created", [-3.0, -1.0, -1.0, 2.0, 11.0], "created.*11.0.*to 10"),
    ("pages", "deleted", [None, np.nan, None, None, None], "deleted.*nan.*finite"),
    ("pages", "deleted", [None, 6.0, None, 1.5, None], "deleted.*1.5 in row 3.*created.*2.0"),
    ("pages", "deleted", [None, 6.0, None, None, 12.0], "deleted.*12.0.*from 0 to 10"),
    ("changes", "page_id", [0, 3, 0, 4, 2, 5], "page_id.*5.*one of the 5 pages"),
    ("changes", "t", [1.0, 2.0, 3.0, 4.0, np.nan, 6.0], "'t' holds nan.*finite"),
    ("changes", "t", [1.0, 2.0, 1.5, 4.0, 5.0, 6.0], "'t' holds 1.5 in row 2.*before 2.0.*order"),
    ("changes", "t", [-1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "'t' holds -1.0.*from 0 to 10"),
    ("changes", "t", [1.0, 2.0, 3.0, 4.0, 5.0, 6.5], "'t' holds 6.5 in row 5.*deletion.*to 6.0"),
    ("changes", "t", [1.0, 2.5, 3.0, 4.0, 5.0, 6.0], "'t' holds 2.5 in row 1.*creation.*lived 2.0"),
    ("changes", "t", [1, 2, 3, 4, 5, 6], "'t' holds type int64.*floating-point"),
    ("changes", "page_id", [4, 3, 0, 4, 2, 1], "'t' holds 1.0 in row 0.*content.*lived 4.0 to inf"),
    ("changes", "kind", ["content"] * 5 + ["vanished"], "'kind' holds vanished.*one of"),
    ("changes", "kind", [1, 2, 3, 4, 5, 6], "'kind' holds type int64.*words"),
    ("signals", "dir_id", [0, 1, 0, 0, 1, 2], "dir_id.*2.*one of the 2 directories"),
    ("signals", "t", [1.0, 2.0, 3.0, 4.0, 5.0, 4.5], "'t' holds 4.5 in row 5.*order"),
    ("mentions", "page_id", [0, 3, 2, -1], "page_id.*-1.*one of the 5 pages"),
    ("mentions", "t", [1.0, 2.0, 5.0, 10.5], "'t' holds 10.5.*from 0 to 10"),
]


@pytest.mark.parametrize(("table", "column", "values", "message"), BAD_COLUMNS)
def test_a_bad_column_is_named(
    tmp_path: Path, table: str, column: str, values: Any, message: str
) -> None:
    tables = tiny_tables()
    tables[table][column] = values
    with pytest.raises(ValueError, match=f"{table}.parquet: column '") as raised:
        traces.load(write(tmp_path, tables))
    raised.match(message)
    del tables[table][column]
    with pytest.raises(ValueError, match=rf"{table}.parquet: column '{column}' is missing"):
        traces.load(write(tmp_path, tables))


@pytest.mark.parametrize("name", ["pages", "changes", "signals", "mentions"])
def test_missing_foreign_truncated_and_empty_files_are_named(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, tiny_tables())
    path = folder / f"{name}.parquet"
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"page_id,t\n0,1.0\n", b""):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}.parquet: expected a whole Parquet file"):
            traces.load(folder)
    path.unlink()
    with pytest.raises(ValueError, match=f"{name}.parquet: no such file"):
        traces.load(folder)


def test_find_takes_names_and_folders(tmp_path: Path) -> None:
    assert "garden-handbook" in traces.shipped()
    for name in traces.shipped():
        assert traces.load(traces.find(name)).name == name
    assert traces.find(str(tmp_path)) == tmp_path
    with pytest.raises(ValueError, match=r"folder or one of.*garden-handbook.*got 'nowhere'"):
        traces.find("nowhere")


def test_importing_traces_does_not_import_pyarrow() -> None:
    code = "import sys, crawl_envs.instances.traces; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
