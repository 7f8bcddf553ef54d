"""Logs as crawlers, servers and archives write them: intervals, what is left out, and notes."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import re
import zipfile
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.logs.crawl_log import OUTCOMES, Dropped
from policies.live.logs.reading import read_crawl_log
from tests.naive import log_outcomes as naive
from tests.policies.live.logs.test_reading import read  # noqa: F401

HEADER = " CDX N b a m s k r M S V g\n"
REST = "- 100 0 x.warc.gz\n"
NOTHING = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def cdx(*rows, key="k"):
    """Return lines of an index from (stamp, URL, status, digest[, target of a redirect])."""
    lines = []
    for stamp, url, status, digest, *target in rows:
        lines.append(f"{key} {stamp} {url} text/html {status} {digest} {(*target, '-')[0]} {REST}")
    return HEADER + "".join(lines)


def records(*captures):
    """Return an index of a page by "[record type] status digest", a day apart, and of another."""
    lines = [f"{HEADER}o 20251231 http://o/ text/html 200 A - {REST}"]
    for day, capture in enumerate(captures, 1):
        *kind, status, digest = capture.split()
        mime = f"warc/{kind[0]}" if kind else "text/html"
        lines.append(f"k 2026010{day} http://a/ {mime} {status} {digest} - {REST}")
    return "".join(lines)


def server(*rows, names=("urlkey", "timestamp", "original", "statuscode", "digest"), end=()):
    """Return the answer of a CDX server in JSON."""
    return ",\n".join(map(json.dumps, [names, *rows, *end])).join("[]")


KEPT = "2026-01-01T00:00Z,A\nu,2026-01-02T00:00Z,B\n"
KINDS = [
    # name of the file, text, elapsed days of intervals, whether they changed
    ("a.csv", "url,time,hash\nu,2026-01-01,A\nu,2026-01-02T12:00Z,B\n", [1.0], [1]),
    (
        "a.csv",
        "url,time,last_modified\nu,2026-01-01,2025-12-01\nu,2026-01-02,2026-01-02T18:00Z\n"
        "u,2026-01-03,2026-01-02T19:00Z\nu,2026-01-04,2026-01-03T06:00Z\n",
        [1.0, 1.0, 1.0],
        [1, 1, 1],
    ),
    (
        "a.cdx",
        cdx((2026, "u", 200, "A"), (202602, "u", 200, "A"), (20260203, "u", 200, "B")),
        [31.0, 2.0],
        [0, 1],
    ),
    ("a", "k 202601010000 http://a/ text/html 200 A\nk 2026010206 http://a/ - - B\n", [1.25], [1]),
    (
        "a.cdxj",
        'k 20260101000000000 {"url": "u", "digest": "A"}\n'
        'k 20260101060000 {"url": "u", "digest": "A"}\n'
        'k 202601020600 {"url": "u", "digest": "B"}\n',
        [0.25, 1.0],
        [0, 1],
    ),
    ("a.csv", "urlkey,timestamp,original,digest\nk,20260101,u,A\nk,202601020000,u,B\n", [1.0], [1]),
    ("a.csv", "timestamp,original,digest\n20260101,u,A\n202601020000,u,B\n", [1.0], [1]),
    (
        "a.json",
        server(
            ["k", "20260101000000", "http://a/", "200", "A"],
            ["k", "20260102000000", "http://a/", "-", "B"],
            end=[[], ["com%2Ca)/+2026"]],
        ),
        [1.0],
        [1],
    ),
    (
        "a.json",
        json.dumps(
            [
                {"url": "u", "time": "2026-01-01", "hash": "A"},
                {"url": "u", "time": "2026-01-04", "hash": "A"},
            ]
        ),
        [3.0],
        [0],
    ),
    (
        "a.csv",
        "URL;Fetched At;HTTP-Status;ETag\nu;2026-01-01;200;W/x\nu;2026-01-03;304;\n",
        [2.0],
        [0],
    ),
    ("a.tsv", "Url\tTIME\tChanged\nu\t2026-01-01\t0\nu\t2026-01-03\t1\n", [2.0], [1]),
    (
        "a.csv",
        'url,time,etag\nu,2026-01-01,"x"\nu,2026-01-03,W/"x"\nu,2026-01-04,x\n',
        [2.0, 1.0],
        [0, 0],
    ),
    (
        "a.csv",
        "url,time,hash,status\nu,2026-01-01,A,200\nu,2026-01-02,P,206\nu,2026-01-03,A,200\n",
        [2.0],
        [0],
    ),
    # Last-Modified
    (
        "a.csv",
        "url,time,last_modified,status\nu,2026-01-02T00:00Z,2026-01-02T00:00:30Z,200\n"
        "u,2026-01-03T00:00Z,,304\nu,2026-01-04T00:00Z,2026-01-02T00:00:30Z,200\n"
        "u,2026-01-05T00:00Z,2026-01-05T00:00:50Z,200\n",
        [1.0, 1.0, 1.0],
        [0, 0, 1],
    ),
    # Content in the second of its redirect, and a missing page in that of its redirect
    (
        "a.cdx",
        "".join(
            f"k 2026010{day}000000 http://a/ text/html 301 R\n"
            f"k 2026010{day}000000 https://a/ text/html {status} {digest}\n"
            for day, status, digest in ((1, 200, "A"), (3, 200, "B"), (4, 404, "C"))
        ),
        [2.0],
        [1],
    ),
    # Names of other tools; the status is that of numbers; truth values
    (
        "a.csv",
        "Address,Crawl Timestamp,Hash,Status,Status Code\nu,0,A,OK,200\nu,1,B,No,404\n"
        "u,2,A,OK,200\n",
        [2.0],
        [0],
    ),
    (
        "a.csv",
        "uri,crawled_at,date,hash,status,http_status\nu,0,9,A,200,OK\nu,2,9,B,500,Bad\nu,3,9,A,200,OK\n",
        [3.0],
        [0],
    ),
    (
        "a.csv",
        "loc,ts,changed\nu,0,\nu,1,f\nu,3,T\nu,4,N\nu,5,Yes\n",
        [1.0, 2.0, 1.0, 1.0],
        [0, 1, 0, 1],
    ),
    (
        "a.csv",
        "link,date,is_changed\nu,0,new\nu,1,same\nu,3,Changed\nu,4,unchanged\n",
        [1.0, 2.0, 1.0],
        [0, 1, 0],
    ),
    # Revisits of content, by the server and by digest, of another page, of a redirect, of content
    # without bytes; and records that are no responses
    (
        "a.cdx",
        records("200 A", "revisit - A", f"revisit - {NOTHING}", "200 B", "revisit - -"),
        [1.0] * 4,
        [0, 0, 1, 0],
    ),
    ("a.cdx", records("200 B", "revisit - A", "revisit 304 -", "200 A"), [1.0] * 3, [1, 0, 0]),
    (
        "a.cdx",
        records("200 A", "301 R", "revisit - R", f"revisit - {NOTHING}", "503 E", "200 A"),
        [5.0],
        [0],
    ),
    (
        "a.cdx",
        records(f"200 {NOTHING}", f"revisit - {NOTHING}", "200 A", f"revisit 200 {NOTHING}"),
        [1.0] * 3,
        [0, 1, 0],
    ),
    ("a.cdx", records("200 A", "request - R", "200 A", "metadata - M"), [2.0], [0]),
    (
        "a.json",
        server(
            *(
                ["k", f"2026010{day}", "u", "-", "warc/revisit" if day > 1 else "-", digest]
                for day, digest in ((1, "A"), (2, NOTHING), (4, "A"))
            ),
            names=("urlkey", "timestamp", "original", "statuscode", "mimetype", "digest"),
        ),
        [1.0, 2.0],
        [0, 0],
    ),
    # A part of the content
    (
        "a.log",
        "".join(
            f"2026-01-0{day}T00:00:00Z 200 9 http://{page}/ - - - - - {digest} - {notes}\n"
            for day in (1, 2, 3)
            for page, digest, notes in (("a", "A", "3t"), ("b", f"B{day}", f"{day}t,lenTrunc"))
        ),
        [1.0, 1.0],
        [0, 0],
    ),
    (
        "a.csv",
        "url,time,content_digest,content_truncated\nu,0,A,\nu,1,B,length\nu,3,A,false\n",
        [3.0],
        [0],
    ),
    ("a.csv", "url,time,etag,truncated\nu,0,A,time\nu,1,B,time\n", [1.0], [1]),
    (
        "a.csv",
        "url,time,etag\nu,0,A-gzip\nu,1,W/A;br\nu,2,A--gzip\nu,3,gzip\n",
        [1.0] * 3,
        [0, 0, 1],
    ),
    ("a.csv", "url,time,etag\nu,0,5a-1;;;\nu,1,5a-1;gz\nu,2,5a-1;br\n", [1.0] * 2, [0, 0]),
    # Headers of an index
    ("a.cdx", "|CDX|a|b|a|k|c\nu|2026|v|A|B\nu|20260102|v|A|C\n", [1.0], [0]),
    ("a", "CDX\tb\ta\tc\n2026\tv\tB\n20260102\tv\tC\n", [1.0], [1]),
    # Spellings of one page
    (
        "a.cdx",
        cdx(
            (20260101, "http://a.example/", 200, "A"),
            (20260102, "https://www.a.example/", 200, "B"),
        ),
        [1.0],
        [1],
    ),
    # Bad rows
    ("a.csv", f"url,time,hash\nu\nu,{KEPT}", [1.0], [1]),
    ("a.csv", f"url,time,hash\nu,{KEPT}u,0001-01-01T00:00Z,A\n", [1.0], [1]),
    ("a.csv", f"url,time,hash\nu,{KEPT}u,9999-12-31T23:59-12:00,A\n", [1.0], [1]),
    (
        "a.jsonl",
        '{"url": "u", "time": "2026-01-01", "hash": "A"}\n{"url": "u", "n": '
        + "9" * 5000
        + '}\n{"url": "u", "time": "2026-01-03", "hash": "A"}\n',
        [2.0],
        [0],
    ),
    (
        "a.jsonl",
        '{"url": "u", "time": "2026-01-01", "hash": "A"}\n{"url"\n'
        '{"url": "u", "time": "2026-01-03", "hash": "A"}\n',
        [2.0],
        [0],
    ),
    # Names of a status and a hash in camel case; texts of databases for nothing
    (
        "a.jsonl",
        '{"url": "u", "time": 0, "statusCode": 200, "contentHash": "A", "lastModified": 0}\n'
        '{"url": "u", "time": 1, "statusCode": 503, "contentHash": "B", "lastModified": 1}\n'
        '{"url": "u", "time": 2, "statusCode": 200, "contentHash": NaN, "lastModified": 2}\n'
        '{"url": "u", "time": 3, "statusCode": 200, "contentHash": "A", "lastModified": 3}\n',
        [3.0],
        [0],
    ),
    (
        "a.jsonl",
        '{"url": "u", "time": 0, "hash": "\\udcfc"}\n{"url": "\\udcfc", "time": 1, "hash": "A"}\n'
        '{"url": "u", "time": 2, "hash": "\\udcfc"}\n{"url": "u", "time": 3}\n',
        [2.0],
        [0],
    ),
    ("a.csv", "url,time,hash\nu,0,A\nu,1,NULL\nu,2,\\N\nu,3,None\nu,4,A\n", [4.0], [0]),
    ("a.csv", "url,time,changed,hash\nu,0,,A\nu,1,,B\nu,2,,B\n", [1.0, 1.0], [1, 0]),
    ("a.cdx", cdx((20260101, "u", 200, "A"), (20260103, "u", 200, "A")) + "k 2026\n", [2.0], [0]),
]


@pytest.mark.parametrize(("name", "text", "elapsed", "changed"), KINDS)
def test_intervals(read, name, text, elapsed, changed):  # noqa: F811
    names = {"time": "Fetched At", "status": "HTTP-Status"} if "Fetched" in text else None
    found = read(text, name, columns=names).intervals()
    np.testing.assert_allclose(found.elapsed, elapsed)
    assert found.changed.tolist() == [bool(x) for x in changed]


NESTED = (
    '{"url": ["u"], "time": 0, "sum": null}\n'
    '{"url": ["u"], "time": 1, "sum": {"page": {"md5": "A", "text": 1}}, "etag": "x"}\n'
    '{"url": ["u"], "time": 2, "sum": {"page": {"md5": "A", "text": 2}}, "etag": "y"}\n'
)
NAMED = [
    # name of the file, text, columns, elapsed days of intervals, whether they changed
    ("a.jsonl", NESTED, {"hash": "sum.page.md5"}, [1.0], [0]),
    ("a.json", f"[{','.join(NESTED.split(chr(10))[1:3])}]", {"hash": "sum.page.text"}, [1.0], [1]),
    ("a.csv", "url,time,hash,hash.1,time.read\nu,0,A,x,9\nu,2,A,y,1\n", {}, [2.0], [0]),
    ("a.csv", "url,timestamp,etag,time.read\nu,0,A,8\nu,2,A,1\n", {}, [2.0], [0]),
    ("a.csv", "url,time,etag,changed\nu,0,A,x\nu,2,A,y\n", {"changed": ""}, [2.0], [0]),
    ("a.csv", "url,time,etag,status,\nu,0,A,ok,\nu,2,B,ok,\n", {"status": ""}, [2.0], [1]),
]


@pytest.mark.parametrize(("name", "text", "columns", "elapsed", "changed"), NAMED)
def test_columns_by_name(read, name, text, columns, elapsed, changed):  # noqa: F811
    found = read(text, name, columns=columns).intervals()
    np.testing.assert_allclose(found.elapsed, elapsed)
    assert found.changed.tolist() == [bool(x) for x in changed]


def test_fields_of_structures_of_parquet_have_dotted_names(tmp_path):
    table = {"url": ["u", "u"], "time": [1.0, 4.0], "hash": [{"a": {"b": "x"}, "c": 1}] * 2}
    pq.write_table(pa.table(table), path := tmp_path / "a.parquet")
    assert read_crawl_log(path, columns={"hash": "hash.a.b"}).intervals().elapsed.tolist() == [3.0]
    with pytest.raises(ValueError, match=r"'hash' may be any of \['hash.a.b', 'hash.c'\], exp"):
        read_crawl_log(path)


def test_columns_of_events_are_named_apart(read, tmp_path):  # noqa: F811
    events, text = tmp_path / "events.csv", "url,time,hash\nu,0,A\nu,2,B\n"
    events.write_text("loc,published,updated,source\nu,0.5,1,x\nu,0.25,1,y\n")
    with pytest.raises(ValueError, match=r"'published', 'updated'., expected one; give --event"):
        read(text, events=events)
    log = read(text, events=events, event_columns={"time": "published", "source": ""})
    assert (log.signal_time.tolist(), log.sources) == ([0.25, 0.5], ("events",))
    with pytest.raises(ValueError, match=r"event_columns .--event-column. needs events"):
        read(text, event_columns={"time": "x"})


@pytest.mark.parametrize(
    ("url", "event", "said"),
    [
        (
            "https://a.example/x",
            "https://a.example/x?utm_source=rss",
            "a page is 'https://a.example/x'$",
        ),
        (
            "https://a.example/x",
            "http://a.example/x",
            r"; one by --merge scheme \(in Python: merge_schemes\)",
        ),
        ("https://a.example/x", "http://www.a.example/x", "; one by --merge scheme --merge www"),
        ("https://a.example/x", "https://b.example/y", "a page is 'https://a.example/u'$"),
    ],
)
def test_signals_of_no_page_are_shown_beside_one(read, tmp_path, url, event, said):  # noqa: F811
    events = tmp_path / "events.csv"
    events.write_text(
        f"url,time\nhttps://c.example/,1\n{event},1\n{event},2\nhttps://a.example/u,1\n"
    )
    text = f"url,time,hash\nhttps://a.example/u,0,A\n{url},0,A\n{url},3,B\n"
    log = read(text, events=events)
    assert (log.signal_page.size, log.dropped.signals) == (1, 3)
    [note] = [note for note in log.notes if "are of no page" in note]
    shown = "https://c.example/" if "b.example" in event else event
    assert f"2 URLs of signals are of no page of the log, such as {shown!r}; a page is" in note
    assert re.search(said, note), note


def test_a_hash_by_another_name_before_a_digest_is_noted(read):  # noqa: F811
    text = "url,time,{},digest\nu,0,A,X\nu,1,A,Y\n"
    note, names = "changes are those of column 'content_hash', not of ['digest']", {"hash": "h"}
    assert note in read(text.format("content_hash"), "a.csv").notes
    assert "changes are" not in str(read(text.format("hash"), "a.csv").notes)
    assert "changes are" not in str(read(text.format("h"), "a.csv", columns=names).notes)


MANY = "".join(f"u,{2 * day},A\n" for day in range(300))
REFUSED = [
    ("a.csv", f"url,time,hash\nu,{KEPT}u,soon,A\nu,x,A\n", "line 4.*2 of 4 rows cannot be"),
    ("a.json", '{"url": "u", "fetchTime": 1, "retryIntervalSeconds": 2}\n', "the next fetch"),
    ("dump", "http://a/\tVersion: 7\nStatus: 2 (db_fetched)\nFetch time: x\n", "Nutch's crawldb"),
    (
        "a.csv",
        f"url,time,hash\n{MANY}u,x,A\nu,y,A\nu,z,A\nu,w,A\n",
        "line 302, column 'time': got 'x', expected an ISO 8601 time.*4 of 304 rows cannot be read",
    ),
    ("a.csv", "url,time,hash\n,1,A\n", "line 2, column 'url': got nothing.*1 of 1 rows"),
    (
        "a.csv",
        "url,timestamp,Fetch-Time,hash\nu,1,2,A\n",
        "column 'time' may be any of .'timestamp', 'Fetch-Time'., expected one; give --column time",
    ),
    ("a.json", '[{"hits": 1, "took": 2}]', r"'url' .url. is missing, got \['hits', 'took'\]"),
    ("a.csv", "url,time,md5\nu,1,A\n", r"got \['url', 'time', 'md5'\]; give --column hash=N"),
    ("a.csv", "site,when,hash\nu,1,A\n", r"'url' .* missing.*; give --column url=NAME .in Py"),
    (
        "a.csv",
        "url,time,hash,status\nu,1,A,OK\nu,2,A,OK\n",
        r"got 'OK', expected an HTTP.*give --column status=NAME, or --column status= for none .in",
    ),
    ("a.csv", "url,time,hash,hash\nu,1,A,B\n", "'hash' may be any of.*or --column hash= for none"),
    (
        "a.jsonl",
        NESTED.replace("sum", "hash"),
        "may be any of .'hash.page.md5', 'hash.page.text'.",
    ),
    ("a.jsonl", '{"url": "u", "time": {"$date": 1}, "hash": 1}', "any of .'time..date'., expected"),
    ("a.json", "{}", r"column 'url' .url. is missing, got \[\]; give"),
    ("a.json", '[["urlkey", "timestamp"', "expected a whole JSON array, but"),
    ("a.csv", "url,time,hash\nu,1e300,A\n", "column 'time': got '1e300', expected"),
    ("a.csv", "url,time,hash,status\nu,1,A,301\nu,2,A,302\n", "no crawl observed anything, 2 red"),
]


@pytest.mark.parametrize(("name", "text", "message"), REFUSED)
def test_refused(read, name, text, message):  # noqa: F811
    with pytest.raises(ValueError, match=message):
        read(text, name)


SAID = [
    (f"url,time,hash\nu,{KEPT}u,soon,A\n", ["1 of 3 rows cannot be read.*line 4, column 'time'"]),
    ("url,time,hash\nu,46023.5,A\n", ["column 'time': bare numbers, read as days: 1, as of a sp"]),
    (
        "url,time,hash\nu,1.76723E+12,A\nu,1767225600000,A\n",
        ["read as milliseconds: 2", "a power of ten, perhaps rounded by a spreadsheet: 1"],
    ),
    ("url,time,hash\nu,2026-01-01,A\n", ["a date alone, taken at noon .UTC.: 1"]),
    (
        "url,time,hash,code,size,\nu,1e8,A,503,9,\n",
        [
            "columns that are not read: 'code', 'size'$",
            "'size' may be costs; --cost size answers in bytes",
            "read as seconds",
        ],
    ),
    (
        "url,time,hash\nhttp://a/,1e8,A\nhttp://A,2e8,A\n",
        [
            "bare numbers, read as seconds: 2",
            "spellings.*'http://a/' and 'http://A': 1 with 2 URLs",
        ],
    ),
    (
        "url,time,hash\nu,2026-01-01T00:00Z,sha1:A\nu,2026-01-02T00:00Z,A\n",
        ["texts in column 'hash' that.*: 1"],
    ),
    (
        f"url,time,digest,status\nu,2026-01-01T00:00Z,{NOTHING},200\n",
        ["rows without an error.*: 1"],
    ),
    (
        "url,time,last_modified\nu,2026-01-01T00:00Z,\nu,2026-01-02T00:00Z,0\nu,2026-01-03T00:00Z,2026-01-09T00:00Z\n",
        [
            "Last-Modified cannot be read.*: 1",
            "Last-Modified is later.*: 1",
            "which nothing tells.*: 2",
        ],
    ),
    (
        "url,time,hash,status\nu,2026-01-01T00:00Z,A,200\nu,2026-01-02T00:00Z,A,500\nu,2026-01-03T00:00Z,A,301\n"
        "v,2026-01-02T00:00Z,A,404\nu,2026-01-01T00:00Z,A,200\n",
        ["fetches that failed.*: 2", "redirects.*: 1", "rows that repeat.*: 1", "never found: 1"],
    ),
    (
        "url,time,hash\n"
        + "".join(
            f"{url},2026-01-0{day}T00:00Z,{'X' if day > 2 else url}\n"
            for url in "abcd"
            for day in (1, 2, 3)
        ),
        ["4 pages now have the same content, digest 'X'"],
    ),
    (
        "url,time,hash\n"
        + "".join(f"{url},2026-01-0{day}T00:00Z,X\n" for url in "abcd" for day in (1, 2)),
        [],
    ),
]


@pytest.mark.parametrize(("text", "notes"), SAID)
def test_notes(read, text, notes):  # noqa: F811
    said = read(text).notes
    assert len(said) == len(notes), said
    for one, pattern in zip(said, notes, strict=True):
        assert re.search(pattern, one), one


def test_a_unit_that_is_given_is_no_guess(read):  # noqa: F811
    assert read("url,time,hash\nu,46023.5,A\n", time_unit="days").notes == ()


IN_LATIN = [
    ("a.csv", "url,time,hash,title\n", "{url},2026-01-0{day},A,\u00fc\n"),
    ("a.jsonl", "", '{{"url": "{url}", "time": "2026-01-0{day}", "hash": "A"}}\n'),
    ("a.cdxj", "", 'k 2026010{day} {{"url": "{url}", "digest": "A"}}\n'),
    ("a.log", "", "2026-01-0{day}T00:00:00Z 200 9 {url} - - - - - A -\n"),
]


@pytest.mark.parametrize(("name", "header", "row"), IN_LATIN)
@pytest.mark.parametrize("many", [2, 30_000])
def test_a_url_that_is_not_in_utf8_is_a_bad_row(tmp_path, name, header, row, many):
    rows = [row.format(url="u", day=1 + k % 2) for k in range(many)]
    text = header + "".join([*rows, row.format(url="v\u00fc", day=3)])
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    log = read_crawl_log(tmp_path / name)
    assert log.intervals().elapsed.tolist() == [1.0]
    line = many + (2 if header else 1)
    [note] = [note for note in log.notes if "cannot be read" in note]
    assert f"line {line}, column 'url': got 'v\ufffd', expected a URL in UTF-8" in note


def zipped(*names):
    """Return a zip with files of these names."""
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), "x")
    return file.getvalue()


compressed = partial(gzip.compress, mtime=0)  # the names of tests have the bytes
OTHER_FILES = [
    (b"SQLite format 3\0\x10", "sqlite3 FILE -header -csv"),
    (zipped("[Content_Types].xml", "xl/workbook.xml"), "a spreadsheet: save its sheet as CSV"),
    (zipped("archive/a.warc.gz", "indexes/index.cdx.gz"), "a WACZ file: unpack it, and read its i"),
    (zipped("log.csv"), "an archive or compressed file"),
    (compressed(b"a.csv".ljust(257, b"\0") + b"ustar"), "tar"),
    (compressed(b"WARC/1.1\r\nWARC-Type: warcinfo\r\n"), "cdxj-indexer FILE"),
    ("url,time,hash\nu,1,A\n".encode("utf-16"), "iconv -f UTF-16"),
    (b"\x80\x04\x95pickle", "no text, expected text in UTF-8, also gzip"),
    (b"https://a.example/1\nhttps://a.example/2\n", "a list of URLs without a header: write url"),
    (b"Recno:: 0\nURL:: http://a/\n", "nutch readseg: docs/recipes.md"),
    (b'{"_source": {"url": "u", "nextFetchDate": "2026"}}\n', "row for each page.*--column time=N"),
    (b'{"took": 1, "hits": {"total": 1, "hits": [{"_source": {}}]}}', "an answer of a search ind"),
    (b'{\n "url": "u"\n}\n', "a JSON object over several lines"),
    (b'{"a": [\n  {"url": "u"}]}\n', "a JSON object over several lines"),
    (b'::1 - bob [1/Jan/2026:10:00:00 +0000] "GET /,;? HTTP/1.1" 200 5\n', "an access log"),
    (b'a.example:80 ::1 - - [01/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1"\n', "an access log"),
    (b"#Version: 1.0\n#Fields: date time\n", "an access log"),
    (b'<?xml version="1.0"?>\n<urlset xmlns="x">', "a sitemap or feed: write a CSV of its loc"),
    (b"<!doctype html><p>a,b,c", "HTML or XML"),
    (b"http://a/,2026-01-01,A\n", "the first line has values, .* such as url,time,hash: add a li"),
    (b"1767225600\tA\n", "the first line has values"),
]


@pytest.mark.parametrize(("content", "message"), OTHER_FILES)
@pytest.mark.parametrize("name", ["a", "a.csv"])
def test_other_files_are_refused_with_a_way_out(tmp_path, content, message, name):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_crawl_log(tmp_path / name)


ANY_NAME = [
    (compressed(b"url,time,hash\n") + compressed(b"u,1,A\nu,2,B\n"), "a.csv"),
    (bz2.compress(b"url,time,hash\nu,1,A\nu,2,B\n"), "a"),
    (b"url,time,hash\nu,1,A\nu,2,B\n", "a.jsonl.gz"),
    (b"url|time|hash\nu|1|A;,\nu|2|B\n", "a"),
    (b'{"url": "u", "time": 1, "hash": "A"}\n{"url": "u", "time": 2, "hash": "B"}\n', "a.csv"),
    (b'[\n{"url": "u", "time": 1, "hash": "A"},\n{"url": "u", "time": 2, "hash": 1}\n]', "a.csv"),
    (b'k 2026 {"url": "u", "digest": "A"}\nk 20260102 {"url": "u", "digest": "B"}\n', "a.cdx"),
    (b"a,b)/ 20260101 u text/html 200 A\na,b)/ 20260102 u text/html 200 B\n", "a.cdxj"),
]


@pytest.mark.parametrize(("content", "name"), ANY_NAME)
def test_the_content_tells_the_format_before_the_name(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    log = read_crawl_log(tmp_path / name)
    assert (log.intervals().elapsed.tolist(), log.of_archive) == ([1.0], b"2026" in content)
    other = "cdx" if content[:1] in (b"{", b"[", b"k") else "jsonl"
    with pytest.raises(ValueError, match=r"line 1|column|expected"):
        read_crawl_log(tmp_path / name, format=other)


def test_folders_are_refused_and_states_of_pages_are_read_by_their_time(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("url,nextFetchDate,seen,hash\nu,9,1,A\nu,9,4,B\n")
    assert read_crawl_log(path, columns={"time": "seen"}).intervals().elapsed.tolist() == [3.0]
    with pytest.raises(ValueError, match="a folder, expected its files"):
        read_crawl_log(tmp_path)


def test_fields_of_an_index_are_no_columns_to_note(read):  # noqa: F811
    line = 'k 20260101 {"url": "u", "digest": "A", "mime": "-"}\n'
    assert read(line, "a.cdxj").notes == ()


def test_resume_keys_are_said(read):  # noqa: F811
    rows = [["k", "20260101000000", "u", "200", "A"]]
    assert "resume key" in read(server(*rows, end=[[], ["k2"]]), "a.json").notes[0]
    text = cdx((20260101, "u", 200, "A"), (20260103, "u", 200, "A"))
    assert "resume key" in read(f"{text}\nk%2B2026\n", "a.cdx").notes[0]
    assert read(text, "a.cdx").notes == ()


def test_several_files_are_one_log(tmp_path):
    (tmp_path / "a.csv").write_text("url,time,hash,status\nu,2,B,200\nv,2,X,200\n")
    (tmp_path / "b.csv").write_text("URL;TIME;HASH;STATUS\nu;1;A;200\nu;3;;bad\nu;2;B;200\n")
    paths = [tmp_path / "a.csv", str(tmp_path / "b.csv")]
    log = read_crawl_log(paths)
    assert list(log.urls) == ["u", "v"]
    assert log.intervals().changed.tolist() == [True]
    assert log.dropped == Dropped(duplicates=1, unreadable=1)
    with pytest.raises(ValueError, match=r"b.csv, line 3, column 'STATUS': got 'bad', expected an"):
        read_crawl_log(paths, max_bad=0.0)
    (tmp_path / "b.csv").write_text("url,time,hash,Status_Code,Status\nu,3,C,404,No\n")
    log = read_crawl_log(paths)
    assert log.urls[log.page[log.gone]].tolist() == ["u"]
    (tmp_path / "c.csv").write_text("url,time,etag\nu,2,B\n")
    with pytest.raises(
        ValueError, match=r"c.csv: expected columns as in .*a.csv, but 'etag' is on"
    ):
        read_crawl_log([*paths, tmp_path / "c.csv"])
    table = {"url": ["u"], "time": [1.0], "hash": ["A"], "status": [200]}
    pq.write_table(pa.table(table), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"a.csv: expected columns of the same types in all files"):
        read_crawl_log([*paths, tmp_path / "d.parquet"])
    with pytest.raises(ValueError, match="path must be a file or some files"):
        read_crawl_log([])


def test_redirects_and_their_targets(read):  # noqa: F811
    log = read(
        cdx(
            (20260101, "http://a/", 200, "A"),
            (20260102, "http://a/", 301, NOTHING, "http://b/"),
            (20260103, "http://a/", 302, NOTHING, "http://c/"),
            (20260104, "http://a/", 301, NOTHING),
        ),
        "a.cdx",
    )
    assert (list(log.redirect), log.redirected.tolist()) == (["http://c/"], [True])
    assert log.dropped == Dropped(redirected=3)
    assert log.intervals().page.size == 0
    log = read("url,time,hash,status,Location\nu,1,A,200,\nu,2,B,302,v\nu,3,B,200,\nw,1,A,200,\n")
    assert (list(log.redirect), log.redirected.tolist()) == (["v", ""], [False, False])


def test_names_and_events_of_pages_with_several_urls(read, tmp_path):  # noqa: F811
    events = tmp_path / "events.csv"
    events.write_text("url,time\nhttp://www.a.example,20260101\nhttps://b.example/%41,20260101\n")
    rows = [
        (20260101, "http://a.example/", 200, "A"),
        (20260103, "https://a.example:443/", 200, "B"),
    ]
    log = read(cdx(*rows), "a.cdx", events=events)
    assert list(log.urls) == ["https://a.example:443/"]
    assert (log.signal_page.tolist(), log.dropped.signals) == ([0], 1)
    events.write_text("url,time\nHTTP://a.example,20260101\nhttp://a.example/#b,20260101\n")
    log = read(cdx(*rows), "a.cdx", events=events)
    assert (log.signal_page.tolist(), log.dropped.duplicates) == ([0], 1)
    events.write_text("url,time\nhttp://www.a.example,20260101\nhttps://b.example/%41,20260101\n")
    text = "url,time,hash\nhttp://www.b.example/A,2026-01-01,x\nhttps://b.example/A,2026-01-03,y\n"
    for arguments, pages, signals in (
        ({}, 2, 1),
        ({"merge_schemes": True}, 2, 1),
        ({"merge_schemes": True, "merge_www": True}, 1, 1),
    ):
        log = read(text, events=events, **arguments)
        assert (log.num_pages, log.signal_page.size) == (pages, signals)


def test_a_signal_with_a_date_is_in_the_interval_that_changed(read, tmp_path):  # noqa: F811
    events = tmp_path / "events.csv"
    events.write_text("url,time\nu,2026-01-02\nu,2026-01-03\nu,2026-01-05T06:00Z\n")
    text = "url,time,changed\n" + "".join(
        f"u,2026-01-0{day}T20:00Z,{changed}\n" for day, changed in ((1, 0), (2, 0), (3, 1), (4, 0))
    )
    log = read(text, events=events)
    assert log.intervals().signals.tolist() == [[0, 2, 0]]
    start = np.datetime64("2026-01-01T20:00", "s")
    assert log.origin == "2026-01-01T20:00:00Z"
    days = [
        (np.datetime64(f"2026-01-0{day}", "s") - start) / np.timedelta64(1, "D") for day in (2, 3)
    ]
    np.testing.assert_allclose(log.signal_day, [*days, np.nan])
    assert log.signal_span.tolist() == [1.0, 1.0, 0.0]
    assert ((log.signal_time >= log.signal_day) & (log.signal_time < log.signal_day + 1))[:2].all()
    assert "a date alone, at an unknown time of this day: 2" in log.notes[-1]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["changed", "digest", "last_modified"]))
def test_outcomes_equal_their_twin(tmp_path_factory, seed, kind):
    rng = np.random.default_rng(seed)
    values = {"changed": 2, "digest": 3, "last_modified": 12}[kind]
    rows, tolerance = [], int(rng.integers(3))
    for time in range(1, int(rng.integers(2, 14))):
        status = rng.choice([None, 200, 200, 200, 304, 301, 404, 500], p=[0.3, *[0.1] * 7])
        value = (
            None if rng.random() < 0.2 else int(rng.integers(values)) + (kind == "last_modified")
        )
        rows.append((int(rng.integers(2)), time, status, value))
    expected = naive.outcomes(rows, kind, tolerance)
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    text = [",".join("" if x is None else str(x) for x in row) for row in rows]
    path.write_text(f"url,time,status,{kind}\n" + "\n".join(text))
    if not {"first"} & set(expected):
        with pytest.raises(ValueError, match="no crawl observed anything"):
            read_crawl_log(path, clock_tolerance=tolerance * 86400)
        return
    log = read_crawl_log(path, clock_tolerance=tolerance * 86400)
    assert [OUTCOMES[k] for k in log.history.outcome] == expected
    order = np.argsort(log.history.time, kind="stable")
    of_rows = [int(log.urls[p]) if p >= 0 else -1 for p in log.history.page[order]]
    observed = {row[0] for row, x in zip(rows, expected, strict=True) if x == "first"}
    assert of_rows == [row[0] if row[0] in observed else -1 for row in rows]
    assert log.changed.sum() == expected.count("changed")


def test_failures_with_one_digest_are_no_shared_content(read):  # noqa: F811
    text = "url,time,hash,status\n" + "".join(
        f"{url},{day},{'E' if day == 3 else url + str(day)},{500 if day == 3 else 200}\n"
        for url in "abcd"
        for day in (1, 2, 3)
    )
    assert not any("same content" in note for note in read(text).notes)
    assert any("same content" in note for note in read(text.replace("500", "200")).notes)
