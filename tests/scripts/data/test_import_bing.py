"""The import of the Bing set, on drawn files of its format."""

from __future__ import annotations

import gzip
import json
import os
import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import optimize
from typer.testing import CliRunner

from crawl_envs import instances
from scripts.data.bing import files, importing
from scripts.data.bing.example import make_example
from scripts.data.bing.files import FORMATS, GIVEN_RATES, HISTORIES, HOSTS, IMPORTANCE, URLS
from scripts.data.bing.importing import IMAGINARY, import_set, summary
from scripts.data.import_bing import app
from tests.scripts.commands import done, refused, run

PAGES = 1500
BLOCK = 2**17


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bing")
    return folder, make_example(folder, PAGES, 1)


@pytest.fixture(scope="module")
def imported(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "urls.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", BLOCK)
        assert import_set(example[0], out, histories=True) == []
    return pq.read_table(out), out


@pytest.fixture
def copy(example, tmp_path):
    """A folder with the example's files, to spoil."""
    for path in example[0].glob("*.txt"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture
def small(tmp_path):
    """The five files of three URLs, in another order in each, by hand."""
    contents = {
        URLS: "http://a/\t7\t1\nhttp://b/?q=ü\t3\t2\nhttp://a/x y\t12\t1\n",
        HOSTS: "http://b\t2\t1\nhttp://a\t1\t0\n",
        IMPORTANCE: "3\t0\n12\t250\n7\t9000000000\n",
        HISTORIES: "12\t5.5\t[[1.10396990740741, 0], [1.47311342592593, 1]]\n"
        "3\t0\t[[5.78703703703704E-05,1]]\r\n"
        "7\t1.25\t[ [2, 0] , [0.0, 0], [3e0, 1] ] \n",
        GIVEN_RATES: "7\t0.125\n",
    }
    for name, text in contents.items():
        (tmp_path / f"{name}.txt").write_bytes(text.encode("utf-8"))
    return tmp_path


def column(table, name):
    return table[name].to_numpy()


def read_histories(folder):
    """Histories of a folder by URL id, read by json."""
    lines = (folder / f"{HISTORIES}.txt").read_text("utf-8").splitlines()
    parts = [line.split("\t") for line in lines]
    return {int(url): (float(first), json.loads(pairs)) for url, first, pairs in parts}


def maximum_likelihood(pairs):
    """Equation 10 with an imaginary interval of each kind, by bisection."""
    changed = [days for days, changed in pairs if changed] + [IMAGINARY]
    fresh = sum(days for days, changed in pairs if not changed) + IMAGINARY

    def excess(rate):
        return sum(days / np.expm1(rate * days) for days in changed) - fresh

    return optimize.brentq(excess, 1e-6, 100.0, xtol=1e-14, rtol=1e-14)


def test_a_few_lines_by_hand(small):
    assert import_set(small, small / "urls.parquet", histories=True) == []
    rows = pq.read_table(small / "urls.parquet").to_pylist()
    assert [row["url_id"] for row in rows] == [12, 3, 7]
    assert [row["host_id"] for row in rows] == [1, 2, 1]
    assert [row["constrained"] for row in rows] == [False, True, False]
    assert [row["importance"] for row in rows] == [250.0, 0.0, 9e9]
    assert [row["complete"] for row in rows] == [False, False, True]
    assert [row["num_crawls"] for row in rows] == [3, 2, 4]
    assert [row["first_crawl"] for row in rows] == [5.5, 0.0, 1.25]
    assert [row["changed"] for row in rows] == [[0, 1], [1], [0, 0, 1]]
    assert rows[2]["intervals"] == [2.0, 0.0, 3.0]
    assert rows[1]["intervals"] == [float(np.float32(5.78703703703704e-05))]
    assert rows[2]["change_rate"] == 0.125
    assert rows[2]["stderr"] is None
    for row, pairs in ((rows[0], [(1.10396990740741, 0), (1.47311342592593, 1)]),
                       (rows[1], [(5.78703703703704e-05, 1)])):  # fmt: skip
        assert row["change_rate"] == pytest.approx(maximum_likelihood(pairs), rel=1e-9)
        assert row["stderr"] > 0.0


def test_tables_join_by_id(example, imported):
    _, made = example
    table, _ = imported
    for name in ("url_id", "host_id", "constrained", "importance", "complete"):
        assert np.array_equal(column(table, name), made[name]), name
    given = made["complete"].to_numpy()
    assert np.array_equal(column(table, "change_rate")[given], made["change_rate"][given])
    assert np.array_equal(np.isnan(column(table, "stderr")), given)


def test_histories_are_what_json_reads(example, imported):
    table, _ = imported
    expected = read_histories(example[0])
    assert len(expected) == table.num_rows
    for row in table.to_pylist():
        first, pairs = expected[row["url_id"]]
        assert row["first_crawl"] == first
        assert row["num_crawls"] == len(pairs) + 1
        days, changed = zip(*pairs, strict=True)
        assert row["intervals"] == np.array(days, np.float32).tolist()
        assert row["changed"] == list(changed)


def test_rates_solve_the_smoothed_equation(example, imported):
    _, made = example
    table, _ = imported
    expected = read_histories(example[0])
    for row in np.flatnonzero(~made["complete"])[:200]:
        rate = maximum_likelihood(expected[int(made["url_id"][row])][1])
        assert column(table, "change_rate")[row] == pytest.approx(rate, rel=1e-8)


def test_rates_are_recovered_within_their_errors(example, imported):
    """Slow pages are left out, since only those that changed are in the set."""
    _, made = example
    table, _ = imported
    rate = made["change_rate"].to_numpy()
    kept = ~made["complete"].to_numpy() & (rate > 0.1) & (rate < 2.0)
    off = (column(table, "change_rate") - rate)[kept] / column(table, "stderr")[kept]
    assert kept.sum() > 500
    assert abs(off.mean()) < 0.15
    assert np.mean(off**2) == pytest.approx(1.0, abs=0.15)
    assert np.mean(np.abs(off) < 1.96) == pytest.approx(0.95, abs=0.02)


def test_the_summary_is_of_the_table():
    columns = {"importance": [3.0, 1.0], "change_rate": [0.2, 0.8], "complete": [False, True]}
    assert summary(pd.DataFrame(columns)) == (
        "50.0% with complete observation and 25.0% of the importance (paper: 4%, 26.4%); mean "
        "change rate 0.500 per day (1.124 by the paper's costs); weighted by importance, "
        "Delta / (Delta + 0.2) 0.575 (0.554), ln(1 + 5 Delta) 0.922 (1.118)"
    )


def test_the_table_is_a_pool_of_instances(imported):
    table, out = imported
    pool = instances.url_pool(out)
    assert np.array_equal(pool.importance, column(table, "importance"))
    pages = instances.make(str(out), num_pages=100, seed=2)
    assert pages.bandwidth == pytest.approx(20.0)
    assert pages.complete.any()


def test_gzipped_files_and_blocks_of_any_size_give_the_same(
    example, imported, tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "BLOCK", 10_000)
    for path in example[0].glob("*.txt"):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    import_set(tmp_path, tmp_path / "urls.parquet", histories=True)
    assert pq.read_table(tmp_path / "urls.parquet").equals(imported[0])
    assert [path.suffix for path in tmp_path.iterdir() if path.suffix != ".gz"] == [".parquet"]


def test_without_histories(example, imported, tmp_path):
    import_set(example[0], tmp_path / "urls.parquet")
    table = pq.read_table(tmp_path / "urls.parquet")
    assert "intervals" not in table.column_names
    assert table.equals(imported[0].select(table.column_names))


def test_an_interrupted_import_leaves_nothing(example, tmp_path, monkeypatch):
    fit, calls = importing.fit_change_rates, []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(*arguments, **options)

    monkeypatch.setattr(files, "BLOCK", BLOCK)
    monkeypatch.setattr(importing, "fit_change_rates", interrupted)
    result = run(app, str(example[0]), out=tmp_path / "urls.parquet")
    assert result.exit_code == 130
    assert "stopped; nothing was written" in result.output
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    done(run(app, str(example[0]), out=tmp_path / "urls.parquet"))


def history_lines(folder):
    return (folder / f"{HISTORIES}.txt").read_bytes().splitlines()


SPOILT = [  # a file, its text instead or None, and the message
    *((f"{name}.txt", None, f"expected {name}.txt or {name}.txt.gz, got none") for name in FORMATS),
    (f"{URLS}.txt.gz", "", f"expected {URLS}.txt or {URLS}.txt.gz, got both"),
    (f"{HOSTS}.txt", "", f"{URLS}.txt, line 1: expected an id of {HOSTS}.txt, got 1"),
    (f"{IMPORTANCE}.txt", "", f"{URLS}.txt, line 1: expected an id of {IMPORTANCE}.txt, got 7"),
    (
        f"{URLS}.txt",
        "http://a/\t7\t1\nhttp://a/x y\t12\t1\n",
        r"every URL id .* 1 are missing, the first of them 3",
    ),
]


@pytest.mark.parametrize(("name", "text", "message"), SPOILT)
def test_a_file_that_is_missing_or_spoilt(small, name, text, message):
    if text is None:
        (small / name).unlink()
    else:
        (small / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        import_set(small, small / "urls.parquet")


def test_no_folder(tmp_path):
    with pytest.raises(ValueError, match="folder must have the five files"):
        import_set(tmp_path / "none", tmp_path / "urls.parquet")


BAD_LINES = [
    (URLS, 2, "http://b/\t3", "URL, URL_ID and Host_ID"),
    (URLS, 2, "http://b/\t3\t2\t5", "URL, URL_ID and Host_ID"),
    (URLS, 2, "http://b/\tthree\t2", "URL, URL_ID and Host_ID"),
    (URLS, 2, "http://b/\t4\t2", f"an id of {IMPORTANCE}.txt, got 4"),
    (URLS, 2, "http://b/\t3\t9", f"an id of {HOSTS}.txt, got 9"),
    (URLS, 2, "http://b/\t7\t2", "every id once, but 7 comes again"),
    (HOSTS, 2, "http://a\t1\t2", "Host_URL, Host_ID and 0 or 1"),
    (HOSTS, 2, "http://a\t1", "Host_URL, Host_ID and 0 or 1"),
    (HOSTS, 2, "http://a\t2\t0", "every id once, but 2 comes again"),
    (IMPORTANCE, 2, "12\t2.5", "URL_ID, a tab and a whole importance score"),
    (IMPORTANCE, 2, "12\t-1", "URL_ID, a tab and a whole importance score"),
    (IMPORTANCE, 2, "12 250", "URL_ID, a tab and a whole importance score"),
    (IMPORTANCE, 2, "12\t250 x", "URL_ID, a tab and a whole importance score"),
    (IMPORTANCE, 2, "", "URL_ID, a tab and a whole importance score"),
    (IMPORTANCE, 2, "3\t250", "every id once, but 3 comes again"),
    (GIVEN_RATES, 1, "7\tnan", "URL_ID, a tab and a change rate"),
    (GIVEN_RATES, 1, "7\t1e999", "URL_ID, a tab and a change rate"),
    (GIVEN_RATES, 1, "8\t1", f"an id of {IMPORTANCE}.txt, got 8"),
    (HISTORIES, 2, "3\t0\t[[1, 2]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1, 10]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[0, 1]]", "days > 0 before every change, not so for URL id 3"),
    (HISTORIES, 2, "3\t0\t[[-1, 0]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1, 0]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1, 0]]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1, 0],]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1, 0][1, 0]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1., 0]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1e, 0]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1,", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t[[1, 0]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3.0\t0\t[[1, 0]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "-3\t0\t[[1, 0]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "4\t0\t[[1, 0]]", f"an id of {IMPORTANCE}.txt, got 4"),
    (HISTORIES, 2, "12\t0\t[[1, 0]]", "every id once, but 12 comes again"),
]


@pytest.mark.parametrize("block", [100, 2**20])
@pytest.mark.parametrize(("name", "line", "text", "expected"), BAD_LINES)
def test_bad_lines(small, monkeypatch, name, line, text, expected, block):
    monkeypatch.setattr(files, "BLOCK", block)
    path = small / f"{name}.txt"
    lines = path.read_text("utf-8").split("\n")
    lines[line - 1] = text
    path.write_text("\n".join(lines), "utf-8")
    message = re.escape(f"{path}, line {line}: expected ") + ".*" + re.escape(expected)
    with pytest.raises(ValueError, match=message):
        import_set(small, small / "urls.parquet")
    assert not (small / "urls.parquet").exists()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("cut", [1, 2, 3, 4])
@pytest.mark.parametrize("name", FORMATS)
def test_a_truncated_file(small, name, cut, packed):
    """The rest of the last line could often pass for a whole line."""
    path = small / f"{name}.txt"
    text = path.read_bytes()
    lines, left = text.count(b"\n"), text[:-cut]
    if packed:
        path.unlink()
        path = small / f"{name}.txt.gz"
    path.write_bytes(gzip.compress(left) if packed else left)
    shown = left.splitlines()[-1].decode("utf-8")
    expected = re.escape(f"{path}, line {lines}: expected ") + ".*, got " + re.escape(repr(shown))
    with pytest.raises(ValueError, match=expected):
        import_set(small, small / "urls.parquet")
    assert not (small / "urls.parquet").exists()


@pytest.mark.parametrize("cut", [1, 5, 30, 60])
def test_a_truncated_file_of_long_lines(copy, cut):
    path = copy / f"{HISTORIES}.txt"
    number = len(history_lines(copy))
    path.write_bytes(path.read_bytes()[: -1 - cut])
    with pytest.raises(ValueError, match=re.escape(f"{path}, line {number}: expected ")):
        import_set(copy, copy / "urls.parquet")


def test_a_truncated_gzip_file_and_one_that_is_none(copy):
    plain = copy / f"{HISTORIES}.txt"
    path = copy / f"{HISTORIES}.txt.gz"
    path.write_bytes(gzip.compress(plain.read_bytes(), 1)[:-2000])
    text = plain.read_bytes()
    plain.unlink()
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*a complete gzip file"):
        import_set(copy, copy / "urls.parquet")
    path.write_bytes(text)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*a complete gzip file"):
        import_set(copy, copy / "urls.parquet", force=True)


@pytest.mark.parametrize("history", ["", "3\t0\t[]\n"])
def test_urls_that_nothing_is_known_of(small, history):
    """URL 3 has no crawls; URL 7 has none either, but a given rate."""
    path = small / f"{HISTORIES}.txt"
    path.write_text(history + "12\t5.5\t[[1.1, 0], [1.4, 1]]\n")
    out = small / "urls.parquet"
    result = done(run(app, small, "--histories"))
    assert "1 URLs are left out: no history and no change rate, such as URL id 3" in result.stdout
    rows = pq.read_table(out).to_pylist()
    assert [row["url_id"] for row in rows] == [12, 7]
    assert rows[1]["change_rate"] == 0.125
    assert rows[1]["num_crawls"] == 0
    assert rows[1]["first_crawl"] is None
    assert rows[1]["intervals"] == []


NUMBERS = (
    "0", "1", "007", "0.1", "123.456", "1.10396990740741", "5.5143055555555556", "2.5e+3", "1e0",
    "99999999999999999999", "1E-05", "3.000000000000000000000000001", "0.5143055555555555600000",
    "123456789e15", "0.000000000000012345678901234567", "9007199254740993", "4.25E-27", "123e30",
    "17976931.3486231570e22", "0.00000000000000000123456",
)  # fmt: skip


def test_numbers_agree_with_python(small):
    rng = np.random.default_rng(0)
    numbers = [*NUMBERS, *map(repr, (10.0 ** rng.uniform(-4.0, 3.0, 5000)).tolist())]
    pairs = ", ".join(f"[{number}, 0]" for number in numbers)
    path = small / f"{HISTORIES}.txt"
    path.write_text(f"3\t0\t[{pairs}, [1, 1]]\n")
    [(line, columns)] = files.read(HISTORIES, path)
    offsets, intervals, changed = files.crawls(columns[2])
    assert (line, offsets.tolist()) == (1, [0, len(numbers) + 1])
    assert intervals.tolist() == [*map(float, numbers), 1.0]
    assert changed.tolist() == [*(0 for _ in numbers), 1]


def test_the_command(tmp_path):
    folder = tmp_path / "set"
    done(run(app, str(folder), "--make-example", "300", "--seed", "3"))
    assert sorted(os.listdir(folder)) == sorted(f"{name}.txt" for name in FORMATS)
    result = done(run(app, str(folder)))
    assert re.search(r"\d+ URLs, .*% with complete observation", result.output)
    again = CliRunner().invoke(app, [str(folder)])
    assert again.exit_code == 2
    assert "use --force to replace it" in again.output
    assert "Traceback" not in again.output
    done(run(app, str(folder), "--force"))
    assert CliRunner().invoke(app, [str(folder), "--make-example", "5"]).exit_code == 2


def test_the_command_names_what_is_wrong(small):
    (small / f"{IMPORTANCE}.txt").write_text("3 0\n")
    result = CliRunner().invoke(app, [str(small)])
    assert result.exit_code == 2
    refused(result, f"error: {small}/{IMPORTANCE}.txt, line 1: expected URL_ID")
    result = CliRunner().invoke(app, [str(small), "--out", str(small / "made" / "urls.parquet")])
    assert result.exit_code == 2
    assert not list(small.glob("made/*"))


def test_examples_are_the_same_on_one_seed(tmp_path):
    for name in "ab":
        make_example(tmp_path / name, 50, 7)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_an_example_leaves_out_what_never_changed(example):
    _, made = example
    assert 0.9 * PAGES < len(made) < PAGES
    assert all(
        any(changed for _, changed in pairs) for _, pairs in read_histories(example[0]).values()
    )
