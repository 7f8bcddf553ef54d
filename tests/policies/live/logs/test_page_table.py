"""Tables of pages: what is read, written and refused."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.logs.page_table import PageTable, read_page_table, write_page_table


@pytest.fixture
def read(tmp_path):
    def written(text, **arguments):
        (tmp_path / "pages.csv").write_text(text)
        return read_page_table(tmp_path / "pages.csv", **arguments)

    return written


def test_urls_alone(read):
    table = read("url,title\nhttps://Ex.com:80/a?b,x\nhttps://u@ex.org,y\nno address,z\n")
    assert list(table.urls) == ["https://Ex.com:80/a?b", "https://u@ex.org", "no address"]
    assert list(table.host) == ["ex.com", "ex.org", ""]
    assert table.importance.tolist() == [1.0, 1.0, 1.0]
    rest = (table.group, table.change_rate, table.recall, table.false_signal_rate, table.complete)
    assert rest == (None,) * 5
    assert table.sources == ()
    assert table.num_pages == 3


def test_a_host_that_is_not_told_is_that_of_the_url(read):
    table = read("url,host\nhttp://a.example/1,NULL\nhttp://b.example/,\nhttp://c.example/,d\n")
    assert table.host.tolist() == ["a.example", "b.example", "d"]


def test_a_compressed_file_of_one_column(tmp_path):
    (tmp_path / "pages.csv.gz").write_bytes(gzip.compress(b"url\na\n"))
    assert list(read_page_table(tmp_path / "pages.csv.gz").urls) == ["a"]


def test_precision_gives_the_rate_of_false_signals(read):
    text = "loc,change_rate,recall,precision,host,group,complete\n"
    table = read(text + "a,2,0.5,0.25,h,g,1\nb,0,0.5,0,h,g,false\n", columns={"url": "loc"})
    assert table.false_signal_rate.tolist() == [[3.0, 0.0]]
    assert table.recall.tolist() == [[0.5, 0.5]]
    assert table.sources == ("signals",)
    assert list(table.host) == ["h", "h"]
    assert list(table.group) == ["g", "g"]
    assert table.complete.tolist() == [True, False]


@pytest.mark.parametrize(
    ("last_crawl", "guess"),
    [("1767225600", "numbers, read as seconds: 1"), ("2026-01-01T00:00", "read as UTC: 1")],
)
def test_guesses_are_said(read, last_crawl, guess):
    (note,) = read(f"url,last_crawl\na,{last_crawl}\n").notes
    assert re.search(rf"pages.csv, column 'last_crawl': .*{guess}", note)
    assert read("url,last_crawl\na,2026-01-01T00:00Z\n").notes == ()


def test_columns_that_are_not_read_are_noted_but_for_those_of_estimates(read):
    text = "url,weight,change_rate,change_rate_own,recall_stderr:a,crawls\na,2,1,1,1,1\n"
    assert read(text).notes == ("columns that are not read: 'weight'",)


def test_sources_with_names(read):
    header = "url,recall:map,false_signal_rate:map,precision:map,recall:ping,false_signal_rate:ping"
    table = read(header + ",signals:ping,signals:map\na,0.5,2,0.1,0.25,3,,4\n")
    assert table.signals.tolist() == [[4], [0]]
    assert table.sources == ("map", "ping")
    assert table.recall.tolist() == [[0.5], [0.25]]
    assert table.false_signal_rate.tolist() == [[2.0], [3.0]]


BAD = [
    ("url\na\nb\na\n", "line 4, column 'url': got 'a', expected another URL: this one s"),
    ("url,importance\na,1\n,1\n", "line 3, column 'url': got nothing, expected text"),
    (
        "url,importance\na,-1\n",
        "line 2, column 'importance': got '-1', expected 0 or a number from",
    ),
    ("url,importance\na,\n", "line 2, column 'importance': got nothing, expected 0 or a number"),
    ("url,importance\na,inf\n", "line 2, column 'importance': got 'inf', expected a number"),
    ("url,change_rate\na,0\nb,1e-13\n", "line 3, column 'change_rate': got '1e-13', expected 0 or"),
    ("url,change_rate\na,0\nb,1e13\n", "line 3, column 'change_rate': got '1e13', expected 0 or a"),
    ("url,recall\na,1.5\n", "line 2, column 'recall': got '1.5', expected a number from 0 to 1"),
    ("url,recall:x,recall:y\na,0.5,0.6\n", "column 'recall:y': got '0.6', expected recall of all"),
    ("url,recall:x,precision:y\na,0.5,0.6\n", "column 'precision:y' needs the columns 'chang"),
    ("url,recall:x,false_signal_rate:y\na,0.5,0.6\n", "column 'recall:y' is missing"),
    (
        "url,change_rate,recall,precision\na,1,1,0\n",
        "column 'precision': got '0', expected a number",
    ),
    ("url,complete\na,\n", "line 2, column 'complete': got nothing, expected 0, 1, true or false"),
    ("url,gone\na,2\n", "line 2, column 'gone': got '2', expected 0, 1, true or false"),
    ("url,change_rate_low\na,-1\n", "column 'change_rate_low': got '-1', expected a number that"),
    ("url,recall,signals\na,1,2\nb,1,-1\n", "line 3, column 'signals': got '-1', expected a whole"),
    (
        "url,recall:x,signals:x\na,1,0.5\n",
        "line 2, column 'signals:x': got '0.5', expected a whole",
    ),
    ("url,recall:x,signals:y\na,1,1\n", "column 'recall:y' is missing, other sources have one"),
    ("url,recall:x,recall:y,signals:x\na,0,1,1\n", "column 'signals:y' is missing, other sources"),
    (
        "url,most_interval\na,-inf\n",
        "line 2, column 'most_interval': got '-inf', expected a number",
    ),
    ("url,change_rate_high\na,inf\n", "column 'change_rate_high': got 'inf', expected a number"),
    ("url\na\ufffd\n", "line 2, column 'url': got 'a\ufffd', expected a URL in UTF-8"),
    ("uri\na\n", "column 'url' (url) is missing, got ['uri']"),
    ("", "is empty"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_errors_name_line_column_value_and_expectation(read, text, message):
    with pytest.raises(ValueError, match=r"^.*pages\.csv.*" + re.escape(message)):
        read(text)


LETTERS = st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="\ufffd")
NAMES = st.text(LETTERS, min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(NAMES, min_size=1, max_size=6, unique=True), st.integers(0, 2**32), st.integers(0, 2)
)
def test_what_was_written_is_read(tmp_path_factory, urls, seed, sources):
    rng = np.random.default_rng(seed)
    count = len(urls)
    given = PageTable(
        urls=np.array(urls, np.object_),
        importance=rng.exponential(size=count) * (rng.random(count) < 0.8),
        host=np.array([f"h{i}" * (i % 2) for i in range(count)], np.object_),  # some have none
        group=None if seed % 2 else np.array(["g"] * count, np.object_),
        change_rate=10.0 ** rng.uniform(-12, 12, count),
        recall=rng.random((sources, count)) / sources if sources else None,
        false_signal_rate=rng.exponential(size=(sources, count)) if sources else None,
        signals=rng.integers(0, 9, (sources, count)) if sources and seed % 5 else None,
        complete=rng.random(count) < 0.5,
        sources=("signals", "x,y")[:sources],
        gone=None if seed % 3 else rng.random(count) < 0.5,
        evidence=np.array(["", "4 of 9 intervals, all short"][: 1 + seed % 2] * count, np.object_)[
            :count
        ],
        change_rate_low=rng.choice([0.0, 0.5, 1e-9], count),
        change_rate_high=rng.choice([np.inf, 2.0], count),
    )
    given.change_rate_low[0] = given.change_rate_high[0] = np.nan  # unknown
    for extension in ("csv", "parquet"):
        path = tmp_path_factory.mktemp("pages") / f"pages.{extension}"
        write_page_table(path, given, {"change_rate_stderr": np.full(count, np.nan)})
        read = read_page_table(path)
        assert read.sources == given.sources
        names = ("urls", "importance", "host", "group", "change_rate", "complete")
        for name in (*names, "gone", "evidence", "change_rate_low", "change_rate_high"):
            np.testing.assert_array_equal(getattr(read, name), getattr(given, name), strict=True)
        for name in ("recall", "false_signal_rate", "signals"):
            np.testing.assert_array_equal(getattr(read, name), getattr(given, name), strict=True)
        assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_writing_fails_whole(tmp_path, read):
    table = read("url\na\n")
    with pytest.raises(ValueError, match=r"path must end in .csv or .parquet, got '.*x.txt'"):
        write_page_table(tmp_path / "x.txt", table)
    write_page_table(tmp_path / "x.csv", table)
    before = (tmp_path / "x.csv").read_bytes()
    with pytest.raises(ValueError, match="length"):
        write_page_table(tmp_path / "x.csv", table, {"short": [1.0, 2.0]})
    assert (tmp_path / "x.csv").read_bytes() == before


def test_blank_cells_are_no_group_and_no_interval_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "pages.csv").write_text("url,group,most_interval\na,,\nb,news,inf\nc, ,2.5\n")
    table = read_page_table(tmp_path / "pages.csv")
    for suffix in (".csv", ".parquet"):
        write_page_table(tmp_path / f"again{suffix}", table)
        again = read_page_table(tmp_path / f"again{suffix}")
        assert again.group is not None
        assert again.most_interval is not None
        assert list(again.group) == ["", "news", ""]
        np.testing.assert_array_equal(again.most_interval, [np.nan, np.inf, 2.5])
