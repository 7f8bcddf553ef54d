from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from crawl_envs.evaluation import Row, mean_and_half_width, summarize
from scripts.study.intervals import median_of
from scripts.study.means import entries, means, medians, paired, table
from scripts.study.rows import indexed


@pytest.fixture
def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    return [
        Row("id", setting, policy, seed, metric, rng.random())
        for setting in ("m=10", "m=2.5e1m")
        for policy in ("a", "b")
        for seed in range(7)
        for metric in ("accuracy", "freshness")
        if (policy, seed) != ("b", 3)
    ]


def test_means_and_differences_are_those_of_the_summaries(rows: list[Row]) -> None:
    values = table(rows, "accuracy")
    found = means(values).set_index(["setting", "policy"])
    apart = means(paired(values, values[values.policy == "a"])).set_index(["setting", "policy"])
    for item in summarize(rows, "accuracy", "a"):
        one, other = found.loc[item[:2]], apart.loc[item[:2]]
        assert one["mean"] == pytest.approx(item.mean, rel=1e-14)
        assert one["half"] == pytest.approx(item.half_width, rel=1e-12)
        assert one["count"] == item.seeds
        assert other["mean"] == pytest.approx(item.difference, abs=1e-15)
        assert other["half"] == pytest.approx(item.difference_half_width, abs=1e-15)


def test_ratios_are_paired_by_seed(rows: list[Row]) -> None:
    values = table(rows, "accuracy")
    base = {row[1:4:2]: row.value for row in rows if row.policy == "a" and row.metric == "accuracy"}
    over = paired(values, values[values.policy == "a"], ratio=True)
    for one, row in zip(over.itertuples(), values.itertuples(), strict=True):
        assert one.value == row.value / base[row.setting, row.seed]


def test_one_value_has_no_interval() -> None:
    [one] = means(table([Row("", "s", "p", 0, "x", 2.0)])).itertuples()
    assert one.mean == 2.0
    assert np.isnan([one.half, mean_and_half_width([2.0])[1]]).all()


def test_medians(rows: list[Row]) -> None:
    found = medians(table(rows, "freshness")).set_index(["setting", "policy"])
    own = [r.value for r in rows if r[1:3] == ("m=10", "b") and r.metric == "freshness"]
    assert tuple(found.loc["m=10", "b"]) == pytest.approx(tuple(median_of(own)))


def test_entries_of_an_indexed_metric() -> None:
    given = [Row("", "s", "p", 0, *item) for item in indexed("a", [0.5, 2.0]).items()]
    found = entries([*given, Row("", "s", "p", 0, "ab[0]", 9.0)], "a")
    pd.testing.assert_series_equal(found["index"], pd.Series([0, 1]), check_names=False)
    assert list(found.value) == [0.5, 2.0]
