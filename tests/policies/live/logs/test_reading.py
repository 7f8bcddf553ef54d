"""Crawl logs in each format, what is dropped, and errors that name the line."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.logs import formats
from policies.live.logs.crawl_log import Dropped
from policies.live.logs.formats import FORMATS
from policies.live.logs.reading import read_crawl_log


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a file and reads it as a log."""

    def written(text, name="log.csv", **arguments):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_crawl_log(path, **arguments)

    return written


def crawls(log):
    """Return (url, time, changed, gone) of each crawl."""
    columns = zip(log.page, log.time, log.changed, log.gone, strict=True)
    return [(log.urls[p], float(t), bool(c), bool(g)) for p, t, c, g in columns]


def signals(log):
    """Return (url, time, source) of each signal."""
    columns = zip(log.signal_page, log.signal_time, log.signal_source, strict=True)
    return [(log.urls[p], float(t), log.sources[s]) for p, t, s in columns]


A_THEN_B = [("a", 0.0, False, False), ("b", 0.5, False, False), ("a", 1.0, True, False)]


def test_csv_with_a_byte_order_mark_and_carriage_returns(read):
    log = read(
        b"\xef\xbb\xbfurl,time,changed,title\r\na,2026-01-01T00:00Z,,x\r\n\r\n"
        b'b,2026-01-01T12:00Z,0,"two\r\nlines"\r\na,2026-01-02T01:00+01:00,true,\r\n'
    )
    assert crawls(log) == A_THEN_B
    assert log.origin == "2026-01-01T00:00:00Z"
    assert log.dropped == Dropped()
    assert log.sources == ()


def test_compressed_json_lines(read):
    rows = [
        {"url": "a", "time": 1767225600, "digest": "x", "links": [1]},
        {"url": "b", "time": 1767268800, "digest": 1},
        {"time": 1767312000.0, "url": "a", "digest": "y"},
    ]
    text = "\n\n".join(json.dumps(row) for row in rows)
    log = read(gzip.compress(text.encode()), "log.jl.gz")
    assert crawls(log) == A_THEN_B
    assert log.origin == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.timestamp("ns", "Europe/Berlin")])
def test_parquet(tmp_path, kind):
    time = pa.array([0, 43_200_000, 86_400_000]).cast(pa.timestamp("ms")).cast(pa.timestamp("ns"))
    table = {
        "url": pa.array(["a", "b", "a"]).dictionary_encode(),
        "time": time.cast(kind),
        "changed": [None, None, True],
    }
    pq.write_table(pa.table(table), tmp_path / "log")
    log = read_crawl_log(tmp_path / "log")
    assert crawls(log) == A_THEN_B
    assert log.origin == "1970-01-01T00:00:00Z"


HERITRIX = """\
2011-06-23T12:00:00.000Z     1         60 dns:a P http://a/ text/dns #1 2+10 sha1:D - -
2011-06-23T12:00:00.500Z   200       1299 http://a/ LREP http://c/?x text/html #014 2+225 sha1:X - -
2011-06-23T12:00:01.000Z   304          0 http://a/ L - unknown #014 2+225 - - Nr:1,two words
2011-06-23T12:00:01.500Z    -2          - http://a/ L - no-type #014 - - - -
2011-06-23T12:00:02.000Z   200       1300 http://a/ L - text/html #014 2+225 sha1:Y - duplicate
2011-06-23T12:00:03.000Z   404        130 http://a/ L - text/html #014 2+225 sha1:Z - -
"""


def test_crawl_log_of_heritrix(read):
    log = read(HERITRIX, "crawl.log")
    assert list(log.urls) == ["http://a/"]
    np.testing.assert_allclose(log.time * 86400, [0.0, 0.5, 1.5, 2.5], atol=1e-9)
    assert list(log.changed) == [False, False, True, False]
    assert list(log.gone) == [False, False, False, True]
    assert log.dropped == Dropped(failed=2, absent=1)
    assert log.origin == "2011-06-23T12:00:00.500000Z"
    assert log.intervals().changed.tolist() == [False, True]


CDX = """\
com,ex)/ 20260101000000 http://ex.com/ text/html 200 AAA - - 1656 151 e.warc.gz
com,ex)/b 20260101120000 http://ex.com/b text/html - BBB - - 856 171 e.warc.gz
com,ex)/ 20260102000000 http://ex.com/ warc/revisit - CCC - - 856 171 e.warc.gz
"""
OF_ARCHIVES = [
    ("http://ex.com/", 0.0, False, False),
    ("http://ex.com/b", 0.5, False, False),
    ("http://ex.com/", 1.0, True, False),
]


@pytest.mark.parametrize("name", ["index.cdx", "index"])
@pytest.mark.parametrize("header", ["", " CDX N b a m s k r M S V g\n"])
def test_cdx(read, name, header):
    assert crawls(read(header + CDX, name)) == OF_ARCHIVES


def test_cdx_with_other_fields(read):
    text = "|CDX b|c|a|k\n20260101000000|z|u|x\n20260103000000|y|u|x\n"
    assert crawls(read(text, "i.cdx")) == [("u", 0.0, False, False), ("u", 2.0, False, False)]


@pytest.mark.parametrize("name", ["index.cdxj", "index"])
def test_cdxj(read, name):
    lines = []
    for line in CDX.splitlines():
        key, time, url, _, status, digest = line.split()[:6]
        record = {"url": url, "digest": digest, "filename": "x y"}
        record |= {} if status == "-" else {"status": status}
        lines.append(f"{key} {time} {json.dumps(record)}\n")
    assert crawls(read("!OpenWayback-CDXJ 1.0\n" + "".join(lines), name)) == OF_ARCHIVES


def test_etags_with_not_modified_first(read):
    log = read("url,time,etag,status\na,0,,304\na,1,x,200\na,2,,304\na,3,x,\na,4,y,304\na,5,,200\n")
    assert [row[2] for row in crawls(log)] == [False, True, False, False, False]
    assert log.dropped.failed == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log", "url,time,hash\na,0,x\nb,0.5,x\na,1,y\n"),
        ("log", "".join(f'{{"url":"{u}","time":{t},"hash":{t}}}\n' for u, t, _, _ in A_THEN_B)),
        ("log", CDX.replace("http://ex.com/b", "b").replace("http://ex.com/", "a")),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_text(read, name, text):
    assert crawls(read(b"\xef\xbb\xbf" + text.encode(), name)) == A_THEN_B


def test_lines_within_values_cross_blocks(read, monkeypatch):
    monkeypatch.setattr("policies.live.logs.formats.BLOCK", 4096)
    rows = [f'u{i},{i},"x{chr(10) * (i % 50)}"\n' for i in range(2000)]
    log = read("url,time,hash\n" + "".join(rows))
    assert [row[:2] for row in crawls(log)] == [(f"u{i}", float(i)) for i in range(2000)]


def test_counted_and_timed_signals(read, tmp_path):
    (tmp_path / "events.csv").write_text(
        "url,time,source\nb,4,ping\na,0,ping\na,2.5,ping\na,2.5,map\nz,1,map\na,2.5,map\na,9,map\n"
    )
    text = "url,time,changed,status,signals,signals:feed\n"
    text += "a,1,0,,7,\nb,1,0,,0,\na,3,0,500,2,1\na,4,1,200,1,0\n"
    log = read(text, events=tmp_path / "events.csv")
    assert log.sources == ("signals", "feed", "ping", "map")
    assert log.timed.tolist() == [False, False, True, True]
    assert signals(log) == [
        ("a", 0.0, "ping"),
        ("a", 1.5, "signals"),
        ("a", 2.0, "feed"),
        ("a", 2.5, "signals"),
        ("a", 2.5, "ping"),
        ("a", 2.5, "map"),
        ("a", 3.5, "signals"),
        ("b", 4.0, "ping"),
        ("a", 9.0, "map"),
    ]
    assert log.dropped == Dropped(failed=1, duplicates=1, signals=8)
    assert log.intervals().signals.tolist() == [[3], [1], [1], [1]]


def test_events_without_source_before_the_first_crawl(read, tmp_path):
    (tmp_path / "events.jsonl").write_text('{"url": "a", "time": "2025-12-31T00:00Z"}\n')
    log = read("url,time,changed\na,2026-01-01T00:00,0\n", events=tmp_path / "events.jsonl")
    assert log.time.tolist() == [1.0]
    assert signals(log) == [("a", 0.0, "events")]
    assert log.origin == "2025-12-31T00:00:00Z"


GOOD = "url,time,changed\n"
BAD = [
    (GOOD, "log.csv", "is empty"),
    ("", "log", "is empty"),
    ("\n", "log.jsonl", "is empty"),
    ("words of a text", "log.txt", "first line 'words of a text', expected one of the formats"),
    ("url,time\na,1\n", "log.csv", "expected one of the columns ('changed', 'hash'"),
    ("where,time,changed\na,1,0\n", "log.csv", "column 'url' (url) is missing"),
    (
        "url,url,time,hash\na,b,1,0\n",
        "log.csv",
        "column 'url' may be any of ['url', 'url'], expected one",
    ),
    (GOOD + 'a,1,0\n\n"b\nc",2,0\na,3\n', "log.csv", ", line 6: got 2 values, expected 3"),
    (
        GOOD + 'a,1,0\n\n"b\nc",2,0\na,yesterday,0\n',
        "log.csv",
        ", line 6, column 'time': got 'yesterday', expected an ISO 8601 time",
    ),
    (GOOD + "a,,0\n", "log.csv", ", line 2, column 'time': got nothing, expected"),
    (GOOD + "a,1,0\na,2026-01-01,0\n", "log.csv", "line 3, column 'time': got '2026-01-01', exp"),
    (GOOD + ",1,0\n", "log.csv", "line 2, column 'url': got nothing, expected text"),
    (
        GOOD + "a,1,0\na,2,maybe\n",
        "log.csv",
        "line 3, column 'changed': got 'maybe', expected 0, 1",
    ),
    ("url,time,hash,status\na,1,x,OK\n", "log.csv", "line 2, column 'status': got 'OK', expected"),
    ("url,time,hash,signals:s\na,1,x,1.5\n", "log.csv", "column 'signals:s': got '1.5', expected"),
    ('{"url": "a"}\n\n{"url": }\n', "log.jsonl", ", line 3: got '{\"url\": }', expected a JSON"),
    (
        "url,time,last_modified\na,1,\na,2,2026-01-01\n",
        "log.csv",
        "line 3, column 'last_modified': got '2026-01-01', expected a number of days, as other",
    ),
    ("url,time,hash,signals\na,1,x,1e9\n", "log.csv", "got '1e9', expected a whole number"),
    (
        'url,time,hash\na,1,x\na,2,"y\na,3,y\na,4,z\n',
        "log.csv",
        ", line 3, column 'hash': got a value of several rows, expected one of a row: a quote may",
    ),
    ('{"time": 1, "hash": "x"}\n', "log.jsonl", "column 'url' (url) is missing, got ['time', "),
    ("k 20260101000000\n", "log.cdxj", ", line 1: got 'k 20260101000000', expected urlkey, time"),
    (" CDX N b a m s\nx\n", "log.cdx", ", line 1: got fields ['N', 'b', 'a', 'm', 's'], expected"),
    (" CDX N b a m s k\nx y\n", "log.cdx", ", line 2: got 'x y', expected more"),
    (HERITRIX + "2011-\n", "crawl.log", ", line 7: got '2011-', expected more"),
    (b"\x1f\x8b\x08broken", "log.csv.gz", "expected a whole text file, but"),
    (GOOD.encode() + b"\xff,1,0\n", "log.csv", "column 'url': got '\ufffd', expected a URL"),
    ("PAR1", "log", "expected a whole parquet file, but"),
]


@pytest.mark.parametrize(("text", "name", "message"), BAD)
def test_errors_name_file_line_column_value_and_expectation(read, tmp_path, text, name, message):
    with pytest.raises(
        ValueError, match=f"^{re.escape(str(tmp_path / name))}.*{re.escape(message)}"
    ):
        read(text, name, max_bad=0.0)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("when", [1.0, None], "row 2, column 'when': got nothing, exp"),
        ("when", pa.array([1, 2], pa.time32("s")), "row 1, .*'when': got .* expected an ISO 8601"),
        ("url", [["a"], ["b"]], "column 'url' has type list<.*, expected text"),
    ],
)
def test_errors_of_parquet_name_the_row_and_the_file_s_name_of_the_column(
    tmp_path, column, values, message
):
    table = {"url": ["a", "a"], "when": [1.0, 2.0], "hash": ["x", "y"], column: values}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=rf"log.parquet.*{message}"):
        read_crawl_log(tmp_path / "log.parquet", columns={"time": "when"}, max_bad=0.0)


def test_a_long_record(read):
    text = f'url,time,hash,body\na,0,x,"{"long" * 2_500_000}"\nb,0.5,x,\na,1,y,\n'
    assert crawls(read(text)) == A_THEN_B


def test_bad_rows_beside_a_long_record(read):
    text = f'url,time,hash,body\na,0,x,"{"long" * 50_000}"\na\nb,0.5,x,\na,soon,y,\na,1,y,\n'
    log = read(text, max_bad=0.5)
    assert crawls(log) == A_THEN_B
    assert re.search(r"2 of 5 .*, line 3: got 1 values.*, line 5, column 'time'", log.notes[-1])


def test_lines_of_bad_rows_are_found_in_one_pass(read, monkeypatch):
    passes, rows_of = [], formats._rows
    monkeypatch.setattr(formats, "_rows", lambda *a: passes.append(a) or rows_of(*a))
    rows = [f"u,{'x' if i % 10 == 9 else i},{i},{i},{i}\n" for i in range(1000)]
    log = read("url,time,hash,status,signals\nu\n" + "".join(rows), max_bad=0.5)
    assert log.dropped.unreadable == 101
    assert len(passes) == 1


STATUS = "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch\nu,2,x,y,z,0\n"


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (GOOD, {"format": "xml"}, "format must be one of .*, got 'xml'"),
        (GOOD, {"columns": {"uri": "url"}}, "columns must have keys .*, got 'uri'"),
        (
            GOOD,
            {"columns": {"url": "loc"}},
            r"column 'loc' \(url\) is missing, got \['url', 'time'",
        ),
        ("url,time,Time,TIME,hash\nu,1,2,3,A\nu\n", {"columns": {"time": "when"}}, "'when'"),
        (
            STATUS,
            {"columns": {"time": "Fetch Time", "hash": "Status name"}},
            "that of the next fetch; expected a row",
        ),
        (GOOD, {"time_unit": "hours"}, "time_unit must be one of"),
        (GOOD, {"max_bad": 2}, "max_bad must lie in .0, 1., got 2"),
        (GOOD, {"clock_tolerance": -1}, "clock_tolerance must be"),
    ],
)
def test_bad_arguments(read, text, arguments, message):
    with pytest.raises(ValueError, match=message):
        read(text, **arguments)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none.csv: no such file"):
        read_crawl_log(tmp_path / "none.csv")


def test_bad_events(read, tmp_path):
    events = tmp_path / "events.csv"
    log = "url,time,hash,signals:ping\na,1,x,0\n"
    events.write_text("url,time,source\na,1,map\na,2026-01-01,map\n")
    with pytest.raises(ValueError, match=r"events.csv, line 3, column 'time': got '2026-01-01'"):
        read(log, events=events, max_bad=0.0)
    events.write_text("url,time,source\na,2026-01-01,map\n")
    with pytest.raises(ValueError, match=r"line 2, .* expected a number of days, as other times"):
        read(log, events=events)
    events.write_text("url,time,source\na,1,ping\n")
    with pytest.raises(ValueError, match=r"source 'ping' is also a column of .*log.csv"):
        read(log, events=events)


LETTERS = st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="\ufffd")
TEXTS = st.text(LETTERS, min_size=1, max_size=4)
ROWS = st.lists(
    st.tuples(TEXTS.map("u{}".format), st.integers(0, 10**9), st.booleans(), st.integers(0, 3)),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row[:2],
)


LINES = {
    "heritrix": "{iso}Z  {status}  10 {url} L - text/html #1 2+225 {digest} - -\n",
    "cdx": "{url} {stamp} {url} text/html {status} {digest} - - 1 2 e.warc.gz\n",
    "cdxj": '{url} {stamp} {{"url": {json}, "status": "{status}", "digest": "{digest}"}}\n',
}


def write(path, rows, format):
    """Write rows of url, seconds, whether it changed and number of signals."""
    records, version = [], {}
    for url, seconds, changed, number in rows:
        iso = str(np.datetime64("2026-01-01T00:00:00", "s") + seconds)
        record = {"url": url, "time": iso, "changed": changed, "signals": number}
        if format in LINES:
            version[url] = version.get(url, 0) + changed
            stamp = "".join(filter(str.isdigit, iso))
            digest = {"status": 200, "digest": f"sha1:{version[url]}"}
            record |= digest | {"iso": iso, "stamp": stamp, "json": json.dumps(url)}
        records.append(record)
    if format in ("csv", "parquet"):
        table = pa.Table.from_pylist(records)
        (pq.write_table if format == "parquet" else pa.csv.write_csv)(table, path)
        return
    line = LINES.get(format)
    lines = [line.format(**record) if line else json.dumps(record) + "\n" for record in records]
    path.write_text("".join(lines))


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_what_was_written_is_read(tmp_path_factory, rows):
    first, last, expected, signalled = min(row[1] for row in rows), {}, [], []
    for url, seconds, changed, number in sorted(rows, key=lambda row: row[1]):
        expected.append((url, (seconds - first) / 86400, changed and url in last, False))
        for rank in range(number if url in last else 0):
            at = last[url] + (rank + 0.5) / number * (seconds - last[url])
            signalled.append((url, (at - first) / 86400, "signals"))
        last[url] = seconds
    for format in FORMATS:
        path = tmp_path_factory.mktemp("logs") / f"log.{format}"
        write(path, sorted(rows, key=lambda row: row[1] if format in LINES else row), format)
        log = read_crawl_log(path, format=format)
        assert sorted(crawls(log)) == sorted(expected)
        assert (np.diff(log.time) >= 0).all()
        if format not in LINES:
            assert [row[::2] for row in sorted(signals(log))] == [
                row[::2] for row in sorted(signalled)
            ]
            times = [row[1] for row in sorted(signalled)]
            np.testing.assert_allclose([row[1] for row in sorted(signals(log))], times)
