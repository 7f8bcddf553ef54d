"""Examples: columns as Table 3 has them, labels of the day itself, and no look ahead."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from agents.predictors.examples import Columns, Scaling, columns_of, examples
from crawl_envs.instances.market import market
from crawl_envs.worlds.offers.log import record
from scripts.data.offer_samples import ClickWeightedSample, UniformSample
from tests.agents.predictors.made_market import made_market


@pytest.fixture(scope="module")
def log():
    return made_market()


def test_columns_are_counts_of_their_days(log):
    day, page = 40, 17
    table = columns_of(log.features(day))
    seen = log.changes[day - 30 : day, page]
    expected = [seen.sum(), 30 - np.flatnonzero(seen).max() if seen.any() else 31.0]
    for counts in (log.clicks, log.impressions):
        expected += [counts[day - days : day, page].sum() for days in (1, 7, 14, 30)]
    np.testing.assert_allclose(np.expm1(table.history[page]), expected, rtol=1e-5, atol=1e-5)
    own = [array[page] for array in log.metadata]
    np.testing.assert_array_equal(table.metadata[page], [*own, day % 7])
    assert table.history.dtype == np.float32
    assert table.metadata.dtype == np.int32


def test_a_table_holds_what_day_and_page_say(log):
    table = examples(log, [35, 50], sample=UniformSample(30), seed=4)
    assert len(table) == 60
    for row in (0, 29, 30, 59):
        day, page = int(table.day[row]), int(table.page[row])
        offers = columns_of(log.features(day))
        np.testing.assert_array_equal(table.columns.history[row], offers.history[page])
        np.testing.assert_array_equal(table.columns.metadata[row], offers.metadata[page])
        for task, counts in zip(
            ("price", "click", "impression"),
            (log.changes, log.clicks, log.impressions),
            strict=True,
        ):
            assert table.labels(task)[row] == (counts[day, page] > 0)
    np.testing.assert_array_equal(table.day, np.repeat([35, 50], 30))


@pytest.mark.parametrize("sample", [None, UniformSample(50), ClickWeightedSample(50)])
def test_the_future_cannot_change_a_feature(log, sample):
    """Events from day 45 on are shuffled: examples up to day 45 are the same."""
    days = range(30, 46)
    before = examples(log, days, sample=sample)
    after = examples(log.with_future_shuffled(45, seed=1), days, sample=sample)
    np.testing.assert_array_equal(before.page, after.page)
    np.testing.assert_array_equal(before.columns.history, after.columns.history)
    np.testing.assert_array_equal(before.columns.metadata, after.columns.metadata)
    same = before.day < 45
    for task in ("price", "click", "impression"):
        np.testing.assert_array_equal(before.labels(task)[same], after.labels(task)[same])
        assert (before.labels(task)[~same] != after.labels(task)[~same]).any() or sample
    later = examples(log.with_future_shuffled(45, seed=1), [46])
    assert (later.columns.history != examples(log, [46]).columns.history).any()


def test_the_future_of_a_recorded_market_cannot_change_a_feature():
    recorded = record(market(300, seed=1), 20, 1)
    rng, day = np.random.default_rng(0), 12

    def shuffled(counts):
        changed = counts.copy()
        changed[day : recorded.num_days] = rng.permuted(changed[day : recorded.num_days])
        return changed

    last_change = recorded.last_change.copy()
    last_change[day + 1 :] = -np.inf

    other = dataclasses.replace(
        recorded,
        clicks=shuffled(recorded.clicks),
        impressions=shuffled(recorded.impressions),
        changes=shuffled(recorded.changes),
        last_change=last_change,
    )
    before, after = (examples(one, range(day + 1)) for one in (recorded, other))
    np.testing.assert_array_equal(before.columns.history, after.columns.history)
    assert (before.happened != after.happened).any()
    assert (
        examples(recorded, [day + 1]).columns.history != examples(other, [day + 1]).columns.history
    ).any()


def test_scaling_is_of_the_table_it_learned_from():
    rng = np.random.default_rng(0)
    table = rng.normal(3.0, 2.0, (500, 4)).astype(np.float32)
    table[:, 2] = 7.0
    scaling = Scaling.learn(Columns(table, np.zeros((500, 0), np.int32)))

    def scaled_of(history):
        return scaling(Columns(history, np.zeros((len(history), 0), np.int32))).history

    scaled = scaled_of(table)
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0, 1], atol=1e-5)
    np.testing.assert_allclose(
        scaled_of(table[:3] + 2.0) - scaled[:3], [2.0 / scaling.spread] * 3, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"days": []}, "days must hold at least one day, got none"),
        ({"days": [60]}, r"days must be an integer in \[0, 59\], got 60"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
    ],
)
def test_bad_tables_are_named(log, change, message):
    with pytest.raises(ValueError, match=message):
        examples(log, **{"days": [40], **change})


def test_bad_tasks_are_named(log):
    with pytest.raises(ValueError, match="task must be one of price, click, impression"):
        examples(log, [40]).labels("sale")
