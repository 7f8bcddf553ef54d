"""Pools of URLs in Parquet: what is read, subsamples, and files that do not fit."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawl_envs import instances
from crawl_envs.instances.urls.pool import url_pool


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
    pages = url_pool(written).instance()
    assert pages.bandwidth == pytest.approx(8.0)
    assert np.array_equal(pages.importance, np.arange(40.0))
    assert np.array_equal(pages.change_rate, columns["change_rate"].to_numpy())
    assert np.array_equal(pages.complete, columns["complete"].to_numpy(zero_copy_only=False))
    assert not pages.recall[~pages.complete].any()
    assert url_pool(str(written)).instance(3.0).bandwidth == 3.0


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.uint8(), pa.float32()])
def test_whole_numbers_are_numbers(columns, tmp_path, kind):
    path = tmp_path / "urls.parquet"
    whole = pa.array(np.arange(40), kind if kind != pa.float32() else pa.int64()).cast(kind)
    pq.write_table(pa.table({**columns, "importance": whole, "change_rate": whole}), path)
    pool = url_pool(path)
    for values in (pool.importance, pool.change_rate):
        assert values.dtype == np.float64
        assert np.array_equal(values, np.arange(40.0))
    assert pool.instance().num_pages == 40


def test_subsamples_are_rows_drawn_without_replacement(written):
    pool = url_pool(written)
    part = pool.subsample(15, seed=4)
    kept = part.importance.astype(int)
    assert np.all(np.diff(kept) > 0)
    assert np.array_equal(part.change_rate, pool.change_rate[kept])
    assert np.array_equal(part.complete, pool.complete[kept])
    assert np.array_equal(pool.subsample(15, seed=4).importance, part.importance)
    assert not np.array_equal(pool.subsample(15, seed=5).importance, part.importance)
    assert np.array_equal(pool.subsample(40).importance, pool.importance)


def test_every_page_is_as_likely(written):
    pool = url_pool(written)
    drawn = np.concatenate([pool.subsample(10, seed).importance for seed in range(800)])
    count = np.bincount(drawn.astype(int), minlength=40)
    assert np.abs(count - 200).max() < 5 * math.sqrt(150)


def test_a_path_is_the_name_of_an_instance(written):
    pages = instances.make(str(written), num_pages=20, seed=1)
    again = instances.make(str(written), num_pages=20, seed=1)
    other = instances.make(str(written), num_pages=20, seed=2)
    assert pages.num_pages == 20
    assert pages.bandwidth == pytest.approx(4.0)
    assert np.array_equal(pages.importance, again.importance)
    assert not np.array_equal(pages.importance, other.importance)
    assert instances.make(str(written), num_pages=20, bandwidth=7.0).bandwidth == 7.0


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
    with pytest.raises(ValueError, match=r"instance must be one of .* or a .parquet file"):
        instances.make("none")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("importance", None, r"'importance' is missing, expected .*, 'complete'\]"),
        ("complete", None, r"'complete' is missing, expected columns \['importance', 'ch"),
        ("importance", pa.array(["1"] * 40), "'importance' holds type string"),
        ("importance", pa.array([3, -2] * 20), "'importance' holds -2.0, expected values from 0"),
        ("importance", pa.array([3, None] * 20), "'importance' holds null in row 1"),
        ("recall", pa.array([0.5] * 40), "no signals but 'complete', got column 'recall'"),
        ("complete", pa.array([1] * 40), "'complete' holds type int64, expected True or False"),
        ("complete", pa.array([True, None] * 20), "'complete' holds null in row 1"),
        ("change_rate", pa.array([-1.0] * 40), "'change_rate' holds -1.0"),
        ("change_rate", pa.array([None, 1.0] * 20), "'change_rate' holds null in row 0"),
        ("change_rate", pa.array([math.nan] * 40), "'change_rate' holds nan"),
    ],
)
def test_columns_that_do_not_fit(columns, tmp_path, name, values, message):
    path = tmp_path / "urls.parquet"
    kept = {key: value for key, value in columns.items() if key != name}
    pq.write_table(pa.table(kept if values is None else {**kept, name: values}), path)
    with pytest.raises(ValueError, match=message) as raised:
        url_pool(path)
    assert str(path) in str(raised.value)


def test_no_rows_and_a_truncated_file(written, columns, tmp_path):
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table(columns).slice(0, 0), empty)
    with pytest.raises(ValueError, match="at least one page"):
        url_pool(empty)
    empty.write_bytes(written.read_bytes()[:-20])
    with pytest.raises(ValueError, match="expected a whole Parquet file"):
        url_pool(empty)
