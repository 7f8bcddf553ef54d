"""The LambdaCrawl set-up and the small mixed instance."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs import instances
from crawl_envs.instances.urls.lambdacrawl import LambdaCrawlSet, draw_urls
from crawl_envs.instances.urls.law import DECLARED, urls_of


@pytest.mark.parametrize("block", [1, 7, 999, 1000, 5000])
def test_pages_are_the_same_whatever_the_block(block):
    whole = draw_urls(np.random.default_rng(1), 1000)
    for all_at_once, in_blocks in zip(
        whole, draw_urls(np.random.default_rng(1), 1000, block), strict=True
    ):
        assert all_at_once.tobytes() == in_blocks.tobytes()


def test_pages_are_those_of_one_draw_after_the_other():
    rng = np.random.default_rng(4)
    pages = [urls_of(*rng.standard_normal((3, 1))) for _ in range(50)]
    drawn = draw_urls(np.random.default_rng(4), 50)
    for name in drawn._fields:
        expected = np.concatenate([getattr(page, name) for page in pages])
        np.testing.assert_allclose(getattr(drawn, name), expected, rtol=1e-14)


def test_a_smaller_set_begins_a_larger_one():
    small = instances.make("lambdacrawl", num_pages=100, seed=5)
    large = instances.make("lambdacrawl", num_pages=2000, seed=5)
    assert np.array_equal(small.importance, large.importance[:100])
    assert np.array_equal(small.recall, large.recall[:100])


def test_complete_pages_signal_every_change_and_nothing_else():
    pages = instances.make("lambdacrawl", num_pages=200_000, seed=2)
    assert set(np.unique(pages.recall)) == {0.0, 1.0}
    assert not pages.false_signal_rate.any()
    assert np.array_equal(pages.complete, pages.recall == 1.0)
    assert pages.complete.mean() == pytest.approx(DECLARED, rel=0.05)
    assert pages.change_rate.min() > 0.0


@pytest.mark.parametrize(
    ("name", "bandwidth"), [("lambdacrawl", 10.0), ("mixed", 10.0), ("uniform", 100.0)]
)
def test_bandwidth_where_none_is_given(name, bandwidth):
    assert instances.make(name, num_pages=50).bandwidth == bandwidth
    assert instances.make(name, num_pages=50, bandwidth=3.0).bandwidth == 3.0


def test_delay_and_steps_are_passed_on():
    pages = instances.make(
        "lambdacrawl",
        num_pages=5,
        bandwidth_steps=[(1.0, 4.0)],
        delay={"kind": "constant", "mean": 0.5},
    )
    assert pages.bandwidth_steps == ((1.0, 4.0),)
    assert pages.delay.mean == 0.5


@pytest.mark.parametrize("num_pages", [1, 2, 7, 100])
def test_half_of_the_mixed_pages_are_complete(num_pages):
    pages = instances.make("mixed", num_pages=num_pages, seed=num_pages)
    assert pages.complete.sum() == num_pages // 2
    assert not pages.recall[~pages.complete].any()


def test_mixed_shares_its_pages_with_the_others():
    pages, others = (instances.make(name, seed=3) for name in ("mixed", "uniform"))
    assert np.array_equal(pages.importance, others.importance)
    assert np.array_equal(pages.change_rate, others.change_rate)


def test_every_mixed_page_is_as_likely_to_be_complete():
    count = sum(instances.make("mixed", num_pages=4, seed=seed).complete for seed in range(600))
    assert np.abs(count - 300).max() < 5 * np.sqrt(150)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_pages": 0}, "num_pages must be an integer"),
        ({"bandwidth": -1.0}, "bandwidth must be finite and > 0"),
        ({"num_sources": 2}, "num_sources of instance 'lambdacrawl'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        instances.make("lambdacrawl", **arguments)


@pytest.mark.parametrize(("pages", "bandwidth"), [(0, 1.0), (10, 0.0), (10, float("nan"))])
def test_bad_sizes(pages, bandwidth):
    with pytest.raises(ValueError, match="num_pages" if pages == 0 else "bandwidth"):
        LambdaCrawlSet(pages, bandwidth)
