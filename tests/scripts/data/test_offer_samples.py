"""Days and samples of examples: the paper's split, and draws that follow their weights."""

from __future__ import annotations

import numpy as np
import pytest

from agents.predictors.examples import examples
from scripts.data.offer_samples import (
    ClickWeightedSample,
    UniformSample,
    split_days,
    weighted_draw,
)
from tests.agents.predictors.made_market import made_market


@pytest.fixture(scope="module")
def log():
    return made_market()


def test_days_are_split_as_in_the_paper():
    split = split_days(253)
    assert split == (range(153), range(153, 162), range(162, 253))
    assert split_days(3) == (range(1), range(1, 2), range(2, 3))
    for num_days in range(3, 400, 7):
        train, validation, test = split_days(num_days)
        assert [*train, *validation, *test] == list(range(num_days))
        assert min(len(train), len(validation), len(test)) >= 1
    with pytest.raises(ValueError, match="num_days must be an integer >= 3, got 2"):
        split_days(2)


def test_samples_repeat_themselves_day_by_day(log):
    one = examples(log, [31, 32], sample=ClickWeightedSample(80), seed=3)
    two = examples(log, [32], sample=ClickWeightedSample(80), seed=3)
    np.testing.assert_array_equal(one.page[one.day == 32], two.page)
    other = examples(log, [32], sample=ClickWeightedSample(80), seed=4)
    assert not np.array_equal(two.page, other.page)
    for table in (one, two):
        for day in set(table.day):
            pages = table.page[table.day == day]
            assert (np.diff(pages) > 0).all()


def test_weighting_by_clicks_makes_clicks_frequent(log):
    uniform = examples(log, range(31, 51))
    weighted = examples(log, range(31, 51), sample=ClickWeightedSample(60, share=1.0))
    for task, times in (("click", 2.0), ("impression", 1.5)):
        assert weighted.labels(task).mean() > times * uniform.labels(task).mean()
    assert (weighted.columns.history[:, 5] > 0.0).all()
    half = examples(log, range(31, 51), sample=ClickWeightedSample(60, share=0.5))
    assert (half.columns.history[:, 5] == 0.0).any()


def test_a_draw_follows_the_weights():
    """Two of four pages, one after the other: the chances of the six pairs by hand."""
    weights = np.array([4.0, 2.0, 1.0, 0.0, 1.0])
    rng, draws = np.random.default_rng(0), 40_000
    counts = np.zeros((5, 5))
    for _ in range(draws):
        a, b = np.sort(weighted_draw(weights, 2, rng))
        counts[a, b] += 1
    for a in range(5):
        for b in range(a + 1, 5):
            total, product = weights.sum(), weights[a] * weights[b]
            chance = product / total * (1 / (total - weights[a]) + 1 / (total - weights[b]))
            error = np.sqrt(draws * chance * (1 - chance))
            assert abs(counts[a, b] - draws * chance) <= 5.0 * error
    assert sorted(weighted_draw(weights, 10, rng)) == [0, 1, 2, 4]
    assert len(weighted_draw(weights, 0, rng)) == 0


def test_bad_samples_are_named():
    with pytest.raises(ValueError, match="per_day must be an integer >= 1, got 0"):
        UniformSample(0)
    with pytest.raises(ValueError, match=r"share must lie in \[0, 1\], got 1.5"):
        ClickWeightedSample(5, share=1.5)
    with pytest.raises(ValueError, match=r"share must be finite and >= 0, got -0\.1"):
        ClickWeightedSample(5, share=-0.1)
