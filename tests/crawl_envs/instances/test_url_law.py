"""The law of the Bing set, the LambdaCrawl set-up, and the small mixed instance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from crawl_envs import instances
from crawl_envs.instances.urls import lambdacrawl as url_law
from crawl_envs.instances.urls.lambdacrawl import draw_urls

PUBLISHED = {
    "mean": (1.124, lambda delta: delta),
    "weighted odds": (0.554, lambda delta: delta / (delta + 0.2)),
    "weighted log": (1.118, lambda delta: np.log1p(5.0 * delta)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_means_by_quadrature(name):
    """Importance weights exp(s z) shift the normal score of fame by s: no sampling is needed."""
    target, function = PUBLISHED[name]
    shift = 0.0
    if name != "mean":
        shift = url_law.CORRELATION * url_law.IMPORTANCE_SPREAD
    score = np.linspace(-9.0, 9.0, 100_001)
    weight = stats.norm.pdf(score)
    rate = url_law.CHANGE_MEDIAN * np.exp(url_law.CHANGE_SPREAD * (score + shift))
    value = function(np.clip(rate, *url_law.CHANGE_RANGE))
    assert np.sum(weight * value) / weight.sum() == pytest.approx(target, rel=1e-3)


@pytest.mark.parametrize(("weighted", "target"), [(False, 0.04), (True, 0.264)])
def test_declared_shares_by_quadrature(weighted, target):
    """Given fame z, a page is declared with a normal probability; weights are exp(s z)."""
    spread = np.sqrt(1.0 - url_law.DECLARED_LOADING**2)
    shift = url_law.IMPORTANCE_SPREAD if weighted else 0.0

    def share(score):
        gap = (url_law.DECLARED_QUANTILE - url_law.DECLARED_LOADING * score) / spread
        return stats.norm.pdf(score - shift) * stats.norm.sf(gap)

    assert integrate.quad(share, -10.0, 12.0, epsabs=1e-12)[0] == pytest.approx(target, rel=1e-3)


@pytest.mark.parametrize("spread", [0.75, 1.0, 1.2, 1.5, 2.5])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_means_with_another_spread(spread, name):
    """The weighted means are those of a law whose logarithms are normal, importance included."""
    target, function = PUBLISHED[name]
    fame, own, other = np.random.default_rng(1).standard_normal((3, 400_000))
    if name != "mean":
        fame = fame + spread  # what importance weights do
    urls = url_law.urls_of(fame, own, other, spread=spread)
    assert function(urls.change_rate).mean() == pytest.approx(target, rel=0.01)
    assert np.std(np.log(urls.importance)) == pytest.approx(spread, rel=0.01)


@pytest.mark.parametrize(("spread", "carried"), [(0.75, None), (1.5, 0.264), (2.5, 0.264)])
def test_declared_shares_with_another_spread(spread, carried):
    fame, own, other = np.random.default_rng(2).standard_normal((3, 400_000))
    plain = url_law.urls_of(fame, own, other, spread=spread)
    assert plain.complete.mean() == pytest.approx(0.04, rel=0.03)
    weighted = url_law.urls_of(fame + spread, own, other, spread=spread).complete.mean()
    if carried is None:  # at its end: the most important 4% are declared
        carried = stats.norm.sf(url_law.DECLARED_QUANTILE - spread)
        assert carried < 0.264
    assert weighted == pytest.approx(carried, rel=0.02)


@pytest.mark.parametrize("spread", [0.0, 0.27, -1.0, float("nan"), float("inf")])
def test_a_spread_that_is_too_small(spread):
    with pytest.raises(ValueError, match=r"spread must be finite and >= 0\.273, got"):
        url_law.urls_of(np.zeros(1), np.zeros(1), np.zeros(1), spread=spread)


# The LambdaCrawl set-up


@pytest.mark.parametrize("block", [1, 7, 999, 1000, 5000])
def test_pages_are_the_same_whatever_the_block(block):
    whole, in_blocks = (draw_urls(np.random.default_rng(1), 1000, each) for each in (2000, block))
    for one, other in zip(whole, in_blocks, strict=True):
        assert one.tobytes() == other.tobytes()


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
    assert pages.complete.mean() == pytest.approx(url_law.DECLARED, rel=0.05)
    assert pages.change_rate.min() > 0.0


@pytest.mark.parametrize(
    ("name", "bandwidth"), [("lambdacrawl", 10.0), ("mixed", 10.0), ("uniform", 100.0)]
)
def test_bandwidth_where_none_is_given(name, bandwidth):
    assert instances.make(name, num_pages=50).bandwidth == bandwidth
    assert instances.make(name, num_pages=50, bandwidth=3.0).bandwidth == 3.0


@pytest.mark.parametrize("num_pages", [1, 2, 7, 100])
def test_half_of_the_mixed_pages_are_complete(num_pages):
    pages = instances.make("mixed", num_pages=num_pages, seed=num_pages)
    assert pages.complete.sum() == num_pages // 2
    assert not pages.recall[~pages.complete].any()


def test_mixed_shares_its_pages_with_the_others():
    pages, others = (instances.make(name, seed=3) for name in ("mixed", "uniform"))
    assert np.array_equal(pages.importance, others.importance)
    assert np.array_equal(pages.change_rate, others.change_rate)
