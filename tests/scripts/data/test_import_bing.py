"""The import of the Bing set, on drawn files of its format."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import optimize
from typer.testing import CliRunner

from crawl_envs import instances
from scripts.data.bing import files
from scripts.data.bing.example import make_example
from scripts.data.bing.files import FORMATS, GIVEN_RATES, HISTORIES, HOSTS, IMPORTANCE, URLS
from scripts.data.bing.importing import IMAGINARY, import_set
from scripts.data.import_bing import app
from tests.scripts.commands import done, run

PAGES = 1500
BLOCK = 2**17


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bing")
    return folder, make_example(folder, PAGES, 1)


@pytest.fixture(scope="module")
def imported(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "urls.parquet"
    summary = import_set(example[0], out, histories=True, block=BLOCK)
    return summary, pq.read_table(out), out


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
    summary = import_set(small, small / "urls.parquet", histories=True)
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
    assert summary.num_pages == 3
    assert summary.complete == pytest.approx(1 / 3)
    assert summary.complete_importance == pytest.approx(9e9 / (9e9 + 250))


def test_tables_join_by_id(example, imported):
    _, made = example
    _, table, _ = imported
    for name in ("url_id", "host_id", "constrained", "importance", "complete"):
        assert np.array_equal(column(table, name), made[name]), name
    given = made["complete"].to_numpy()
    assert np.array_equal(column(table, "change_rate")[given], made["change_rate"][given])
    assert np.array_equal(np.isnan(column(table, "stderr")), given)


def test_histories_are_what_json_reads(example, imported):
    _, table, _ = imported
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
    _, table, _ = imported
    expected = read_histories(example[0])
    for row in np.flatnonzero(~made["complete"])[:200]:
        rate = maximum_likelihood(expected[int(made["url_id"][row])][1])
        assert column(table, "change_rate")[row] == pytest.approx(rate, rel=1e-8)


def test_rates_are_recovered_within_their_errors(example, imported):
    """Slow pages are left out, since only those that changed are in the set."""
    _, made = example
    _, table, _ = imported
    rate = made["change_rate"].to_numpy()
    kept = ~made["complete"].to_numpy() & (rate > 0.1) & (rate < 2.0)
    off = (column(table, "change_rate") - rate)[kept] / column(table, "stderr")[kept]
    assert kept.sum() > 500
    assert abs(off.mean()) < 0.15
    assert np.mean(off**2) == pytest.approx(1.0, abs=0.15)
    assert np.mean(np.abs(off) < 1.96) == pytest.approx(0.95, abs=0.02)


def test_the_summary_is_of_the_table(imported):
    summary, table, _ = imported
    weight, rate, complete = (
        column(table, name) for name in ("importance", "change_rate", "complete")
    )
    assert summary.num_pages == table.num_rows
    assert summary.left_out == 0
    assert summary.complete == pytest.approx(complete.mean())
    assert summary.complete_importance == pytest.approx(np.average(complete, weights=weight))
    assert summary.mean_rate == pytest.approx(rate.mean())
    assert summary.weighted_odds == pytest.approx(np.average(rate / (rate + 0.2), weights=weight))
    assert summary.weighted_log == pytest.approx(np.average(np.log1p(5 * rate), weights=weight))


def test_the_table_is_a_pool_of_instances(imported):
    _, table, out = imported
    pool = instances.url_pool(out)
    assert np.array_equal(pool.importance, column(table, "importance"))
    pages = instances.make(str(out), num_pages=100, seed=2)
    assert pages.bandwidth == pytest.approx(20.0)
    assert pages.complete.any()


def test_gzipped_files_and_blocks_of_any_size_give_the_same(example, imported, tmp_path):
    for path in example[0].glob("*.txt"):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    import_set(tmp_path, tmp_path / "urls.parquet", histories=True, block=10_000)
    assert pq.read_table(tmp_path / "urls.parquet").equals(imported[1])
    assert [path.suffix for path in tmp_path.iterdir() if path.suffix != ".gz"] == [".parquet"]


def test_without_histories(example, imported, tmp_path):
    import_set(example[0], tmp_path / "urls.parquet", block=BLOCK)
    table = pq.read_table(tmp_path / "urls.parquet")
    assert "intervals" not in table.column_names
    assert table.equals(imported[1].select(table.column_names))


def interrupted_after(count):
    """A reader of files that is interrupted after some blocks of histories."""
    read = files.read

    def reading(name, *where, **options):
        for number, block in enumerate(read(name, *where, **options)):
            if name == HISTORIES and number == count:
                raise KeyboardInterrupt
            yield block

    return reading


@pytest.mark.parametrize("packed", [False, True])
def test_an_interrupted_import_goes_on(example, imported, tmp_path, monkeypatch, packed):
    folder, out = example[0], tmp_path / "urls.parquet"
    if packed:
        folder = tmp_path / "packed"
        folder.mkdir()
        for path in example[0].glob("*.txt"):
            (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    interrupt(folder, out, 5, monkeypatch, histories=True)
    assert not out.exists()
    parts = sorted(tmp_path.glob("urls.parquet.parts/part-*"))
    assert len(parts) == 5
    starts, read = [], files.read

    def recording(name, *where, start=0, **options):
        starts.append(start)
        return read(name, *where, start=start, **options)

    monkeypatch.setattr(files, "read", recording)
    done = sum(pq.read_metadata(part).num_rows for part in parts)
    import_set(folder, out, histories=True, block=BLOCK)
    assert starts == [0, 0, 0, 0, done]
    assert pq.read_table(out).equals(imported[1])
    assert not (tmp_path / "urls.parquet.parts").exists()


def test_a_killed_import_goes_on(example, imported, tmp_path):
    out = tmp_path / "urls.parquet"
    code = (
        "from pathlib import Path; from scripts.data.bing.importing import import_set;"
        f"import_set(Path({str(example[0])!r}), Path({str(out)!r}), histories=True, block=20000)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path.cwd())
    try:
        deadline = time.monotonic() + 60.0
        while process.poll() is None and time.monotonic() < deadline:
            if len(list(tmp_path.glob("*.parts/part-*"))) >= 10:
                break
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    import_set(example[0], out, histories=True, block=20000)
    assert pq.read_table(out).equals(imported[1])


def interrupt(folder, out, parts, monkeypatch, **options):
    """Import a set as far as some parts."""
    with monkeypatch.context() as patch:
        patch.setattr(files, "read", interrupted_after(parts))
        with pytest.raises(KeyboardInterrupt):
            import_set(folder, out, block=BLOCK, **options)


def test_parts_of_other_files_are_not_gone_on_from(copy, monkeypatch):
    out = copy / "urls.parquet"
    interrupt(copy, out, 2, monkeypatch)
    path = copy / f"{HISTORIES}.txt"
    os.utime(path, ns=(0, 0))
    with pytest.raises(ValueError, match=r"parts of an import of other files .* --force"):
        import_set(copy, out, block=BLOCK)
    import_set(copy, out, block=BLOCK, force=True)
    with pytest.raises(ValueError, match="exists; use --force"):
        import_set(copy, out, block=BLOCK)


def history_lines(folder):
    return (folder / f"{HISTORIES}.txt").read_bytes().splitlines()


SPOILT = [  # a file, its text in place of its own or None, and what is said
    *((f"{name}.txt", None, f"no file {name}.txt or {name}.txt.gz") for name in FORMATS),
    (f"{URLS}.tsv", "", f"expected one of {URLS}.txt and {URLS}.tsv"),
    *(
        (f"{name}.txt", "", f"{name}.txt: expected at least one line")
        for name in (HOSTS, IMPORTANCE)
    ),
    (
        f"{HISTORIES}.txt",
        "3\t0\t[[1, 1]]\n7\t" + 200 * "1",
        f"{HISTORIES}.txt: expected lines of at most 100 bytes",
    ),
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
        import_set(small, small / "urls.parquet", block=100)


def test_no_folder(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
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
    (IMPORTANCE, 2, "12\t2.5", "URL_ID and a whole importance score"),
    (IMPORTANCE, 2, "12\t-1", "URL_ID and a whole importance score"),
    (IMPORTANCE, 2, "12 250", "URL_ID and a whole importance score"),
    (IMPORTANCE, 2, "12\t250 x", "URL_ID and a whole importance score"),
    (IMPORTANCE, 2, "", "URL_ID and a whole importance score"),
    (IMPORTANCE, 2, "3\t250", "every id once, but 3 comes again"),
    (GIVEN_RATES, 1, "7\tnan", "URL_ID and a change rate"),
    (GIVEN_RATES, 1, "7\t1e999", "URL_ID and a change rate"),
    (GIVEN_RATES, 1, "8\t1", f"an id of {IMPORTANCE}.txt, got 8"),
    (HISTORIES, 2, "3\t0\t[[1, 2]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[1, 10]]", "URL_ID, offset of the first crawl"),
    (HISTORIES, 2, "3\t0\t[[0, 1]]", "with days > 0 where changed"),
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
def test_bad_lines(small, name, line, text, expected, block):
    path = small / f"{name}.txt"
    lines = path.read_text("utf-8").split("\n")
    lines[line - 1] = text
    path.write_text("\n".join(lines), "utf-8")
    message = re.escape(f"{path}, line {line}: expected ") + ".*" + re.escape(expected)
    with pytest.raises(ValueError, match=message):
        import_set(small, small / "urls.parquet", block=block)
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
        import_set(small, small / "urls.parquet", block=100)
    assert not (small / "urls.parquet").exists()


@pytest.mark.parametrize("cut", [1, 5, 30, 60])
def test_a_truncated_file_of_long_lines(copy, cut):
    path = copy / f"{HISTORIES}.txt"
    number = len(history_lines(copy))
    path.write_bytes(path.read_bytes()[: -1 - cut])
    with pytest.raises(ValueError, match=re.escape(f"{path}, line {number}: expected ")):
        import_set(copy, copy / "urls.parquet", block=BLOCK)


def test_a_truncated_gzip_file_and_one_that_is_none(copy):
    plain = copy / f"{HISTORIES}.txt"
    path = copy / f"{HISTORIES}.txt.gz"
    path.write_bytes(gzip.compress(plain.read_bytes(), 1)[:-2000])
    text = plain.read_bytes()
    plain.unlink()
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*a whole gzip file"):
        import_set(copy, copy / "urls.parquet", block=BLOCK)
    path.write_bytes(text)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*a whole gzip file"):
        import_set(copy, copy / "urls.parquet", block=BLOCK, force=True)


@pytest.mark.parametrize("history", ["", "3\t0\t[]\n"])
def test_urls_that_nothing_is_known_of(small, history):
    """URL 3 has no crawls; URL 7 has none either, but a given rate."""
    path = small / f"{HISTORIES}.txt"
    path.write_text(history + "12\t5.5\t[[1.1, 0], [1.4, 1]]\n")
    out = small / "urls.parquet"
    with pytest.raises(ValueError, match=r"1 have neither, URL id 3 for one; --allow-missing"):
        import_set(small, out, histories=True)
    summary = import_set(small, out, histories=True, allow_missing=True)
    assert summary.left_out == 1
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
    done(run(app, str(folder), "--make-example", "300", "--gzip", "--seed", "3"))
    assert sorted(os.listdir(folder)) == sorted(f"{name}.txt.gz" for name in FORMATS)
    result = done(run(app, str(folder)))
    assert re.search(r"\d+ URLs, .*% with complete observation", result.output)
    again = CliRunner().invoke(app, [str(folder)])
    assert again.exit_code == 2
    assert "exists; use --force" in again.output
    assert "Traceback" not in again.output
    done(run(app, str(folder), "--force"))
    assert CliRunner().invoke(app, [str(folder), "--make-example", "5", "--gzip"]).exit_code == 2


def test_the_command_is_interrupted(small, monkeypatch):
    monkeypatch.setattr(files, "read", interrupted_after(0))
    result = CliRunner().invoke(app, [str(small)])
    assert result.exit_code == 130
    assert "stopped; the same command goes on" in result.output
    monkeypatch.undo()
    done(run(app, str(small)))


def test_the_command_names_what_is_wrong(small):
    (small / f"{IMPORTANCE}.txt").write_text("3 0\n")
    result = CliRunner().invoke(app, [str(small)])
    assert result.exit_code == 2
    assert result.output.startswith(f"error: {small}/{IMPORTANCE}.txt, line 1: expected URL_ID")
    assert result.output.count("\n") == 1
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


@pytest.mark.parametrize("line", ["3\t0\n", "3\t0\tx\n"])
def test_a_bad_line_has_the_same_number_after_a_resume(copy, monkeypatch, line):
    with (copy / f"{HISTORIES}.txt").open("a") as file:
        file.write(line)
    number, parts = len(history_lines(copy)), copy / "urls.parquet.parts"
    for parts_before in (0, 4):
        if parts_before:
            interrupt(copy, copy / "urls.parquet", parts_before, monkeypatch)
            assert len(list(parts.iterdir())) == parts_before
        with pytest.raises(ValueError, match=f"{HISTORIES}.txt, line {number}: expected URL_ID"):
            import_set(copy, copy / "urls.parquet", block=BLOCK)
        assert not parts.exists()
