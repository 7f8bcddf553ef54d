"""Pools of URLs in Parquet: what is read, subsamples, and files that do not fit."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawl_envs import instances


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return {
        "url_id": pa.array(np.arange(40)),
        "importance": pa.array(np.arange(40, dtype=np.float64)),
        "change_rate": pa.array(rng.random(40)),
        "complete": pa.array(rng.random(40) < 0.3),
    }


@pytest.fixture
def written(columns, tmp_path):
    path = tmp_path / "urls.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=7)
    return path


def test_all_pages(written, columns):
    pages = instances.make(str(written), num_pages=40)
    assert pages.bandwidth == pytest.approx(8.0)
    assert np.array_equal(pages.importance, np.arange(40.0))
    assert np.array_equal(pages.change_rate, columns["change_rate"].to_numpy())
    assert np.array_equal(pages.complete, columns["complete"].to_numpy(zero_copy_only=False))
    assert not pages.recall[~pages.complete].any()


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.uint8(), pa.float32()])
def test_whole_numbers_are_numbers(columns, tmp_path, kind):
    path = tmp_path / "urls.parquet"
    whole = pa.array(np.arange(40)).cast(kind)
    pq.write_table(pa.table({**columns, "importance": whole, "change_rate": whole}), path)
    for values in instances.url_pool(path)[:2]:
        assert values.dtype == np.float64
        assert np.array_equal(values, np.arange(40.0))


def test_subsamples_are_rows_drawn_without_replacement(written, columns):
    one, again, other = (instances.make(str(written), num_pages=15, seed=s) for s in (4, 4, 5))
    kept = one.importance.astype(int)
    assert np.all(np.diff(kept) > 0)
    assert np.array_equal(one.change_rate, columns["change_rate"].to_numpy()[kept])
    assert np.array_equal(one.complete, columns["complete"].to_numpy(zero_copy_only=False)[kept])
    assert np.array_equal(one.importance, again.importance)
    assert not np.array_equal(one.importance, other.importance)
    assert one.bandwidth == pytest.approx(3.0)
    assert instances.make(str(written), num_pages=20, bandwidth=7.0).bandwidth == 7.0


def test_every_page_is_as_likely(written):
    draw = instances.generator_of(str(written), num_pages=10)
    drawn = [draw(np.random.default_rng(seed)).importance for seed in range(800)]
    count = np.bincount(np.concatenate(drawn).astype(int), minlength=40)
    assert np.abs(count - 200).max() < 5 * math.sqrt(150)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_pages": 41}, r"num_pages must be an integer in \[1, 40\], got 41"),
        ({"num_pages": 5, "num_sources": 2}, "num_sources must be None for instance .*, got 2"),
    ],
)
def test_bad_arguments(written, arguments, message):
    with pytest.raises(ValueError, match=message):
        instances.make(str(written), **arguments)


def test_a_missing_file_and_a_name_that_is_none(tmp_path):
    columns = r"\['importance', 'change_rate', 'complete'\]"
    with pytest.raises(ValueError, match=f"no such file, expected a Parquet file with {columns}"):
        instances.make(str(tmp_path / "none.parquet"))
    with pytest.raises(ValueError, match=r"instance 'none' is unknown; .*, or a .parquet file"):
        instances.make("none")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("importance", None, r"'importance' is missing, expected .*, 'complete'\]"),
        ("importance", pa.array(["1"] * 40), "'importance' holds type string"),
        ("importance", pa.array([3, -2] * 20), "'importance' holds -2.0 in row 1"),
        ("recall", pa.array([0.5] * 40), "no signals but 'complete', got column 'recall'"),
        ("complete", pa.array([1] * 40), "'complete' holds type int64, expected True or False"),
        ("complete", pa.array([True, None] * 20), "'complete' holds null in row 1"),
        ("change_rate", pa.array([math.nan] * 40), "'change_rate' holds nan"),
    ],
)
def test_columns_that_do_not_fit(columns, tmp_path, name, values, message):
    path = tmp_path / "urls.parquet"
    kept = {key: value for key, value in columns.items() if key != name}
    pq.write_table(pa.table(kept if values is None else {**kept, name: values}), path)
    with pytest.raises(ValueError, match=message) as raised:
        instances.url_pool(path)
    assert str(path) in str(raised.value)


def test_no_rows_and_a_truncated_file(written, columns, tmp_path):
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table(columns).slice(0, 0), empty)
    with pytest.raises(ValueError, match="at least one page"):
        instances.url_pool(empty)
    empty.write_bytes(written.read_bytes()[:-20])
    with pytest.raises(ValueError, match="expected a whole Parquet file"):
        instances.url_pool(empty)
