from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawl_envs.evaluation import Row
from scripts.study.rows import (
    base,
    check_folder,
    commit,
    gathered,
    indexed,
    read_rows,
    write_csv,
    write_rows,
)

ROWS = [
    Row("CrawlNCIS-v0", "m=2", "GREEDY", 0, "accuracy", 0.1 + 0.2),
    Row("CrawlNCIS-v0", "m=2", "LDS", 1, "accuracy", 1.0 / 3.0),
]


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.parquet"
    write_rows(path, ROWS, {"title": "a job", "seconds": 1.5})
    assert read_rows(path) == (ROWS, {"title": "a job", "seconds": 1.5})
    write_rows(path, [], {})
    assert read_rows(path) == ([], {})
    assert [file.name for file in path.parent.iterdir()] == ["rows.parquet"]


def test_csv_keeps_every_digit(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_csv(path, Row._fields, ROWS)
    first, *lines = path.read_text("utf-8").splitlines()
    assert first == "id,setting,policy,seed,metric,value"
    assert [float(line.rpartition(",")[2]) for line in lines] == [row.value for row in ROWS]


def test_other_files_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"value": [1.0]}), path)
    with pytest.raises(ValueError, match="must have rows of this suite, got another"):
        read_rows(path)
    write_rows(path, ROWS, {})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="must be a complete Parquet file"):
        read_rows(path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot write to .*file/deep.*--out"):
        check_folder(tmp_path / "file" / "deep")


def test_indexed_metrics_come_back_as_arrays() -> None:
    values = {0: np.arange(12.0) / 7.0, 3: np.array([1.0, np.nan, 3.0])}
    rows = [
        Row("id", "m=2", "A", seed, metric, value)
        for seed, array in values.items()
        for metric, value in indexed("rate", array).items()
        if value == value
    ]
    others = [Row("id", "m=2", "A", 0, metric, 9.0) for metric in ("rate", "rates[1]", "x rate[0]")]
    arrays = gathered([*others, *reversed(rows)], "rate")
    assert arrays.keys() == {("m=2", "A", 0), ("m=2", "A", 3)}
    for seed, array in values.items():
        np.testing.assert_array_equal(arrays["m=2", "A", seed], array)
    assert (base("rate[10]"), base("rate")) == ("rate", "rate")


def test_what_runs_write_under_results_is_no_change_of_the_checkout(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e@x"]
        done = subprocess.run(
            ["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert commit(tmp_path) is None
    git("init")
    for name in ("code/a.py", "code/results/b.py", "results/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-m", "m")
    head = git("rev-parse", "HEAD")[:12]
    (tmp_path / "results" / "c.csv").write_text("2")
    (tmp_path / "new").write_text("2")
    assert commit(tmp_path / "code") == head
    (tmp_path / "code" / "results" / "b.py").write_text("2")
    assert commit(tmp_path / "code") == f"{head}-dirty"
    git("stash")
    assert commit(tmp_path) == head
    (tmp_path / "code" / "a.py").write_text("2")
    git("add", ".")
    assert commit(tmp_path) == f"{head}-dirty"
