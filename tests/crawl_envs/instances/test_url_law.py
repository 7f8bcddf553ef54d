"""The law of the Bing set: published means by quadrature and in a large sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from crawl_envs.instances.urls import law as url_law
from crawl_envs.instances.urls.lambdacrawl import draw_urls

PUBLISHED = {
    "mean": (1.124, lambda delta: delta),
    "weighted odds": (0.554, lambda delta: delta / (delta + 0.2)),
    "weighted log": (1.118, lambda delta: np.log1p(5.0 * delta)),
}


@pytest.fixture(scope="module")
def drawn():
    return draw_urls(np.random.default_rng(0), 1_000_000)


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


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_means_in_a_sample(drawn, name):
    target, function = PUBLISHED[name]
    weight = None if name == "mean" else drawn.importance
    mean = np.average(function(drawn.change_rate), weights=weight)
    assert mean == pytest.approx(target, rel=0.01)


@pytest.mark.parametrize(("weighted", "target"), [(False, 0.04), (True, 0.264)])
def test_declared_shares_by_quadrature(weighted, target):
    """Given fame z, a page is declared with a normal probability; weights are exp(s z)."""
    spread = np.sqrt(1.0 - url_law.DECLARED_LOADING**2)
    shift = url_law.IMPORTANCE_SPREAD if weighted else 0.0

    def share(score):
        gap = (url_law.DECLARED_QUANTILE - url_law.DECLARED_LOADING * score) / spread
        return stats.norm.pdf(score - shift) * stats.norm.sf(gap)

    assert integrate.quad(share, -10.0, 12.0, epsabs=1e-12)[0] == pytest.approx(target, rel=1e-3)


def test_declared_shares_in_a_sample(drawn):
    assert drawn.declared.mean() == pytest.approx(url_law.DECLARED, rel=0.01)
    carried = drawn.importance[drawn.declared].sum() / drawn.importance.sum()
    assert carried == pytest.approx(url_law.DECLARED_IMPORTANCE, rel=0.01)


def test_importance_has_mean_one(drawn):
    assert drawn.importance.mean() == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("spread", [0.75, 1.0, 1.2, 2.5])
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


@pytest.mark.parametrize(("spread", "carried"), [(0.75, None), (1.2, 0.264), (2.5, 0.264)])
def test_declared_shares_with_another_spread(spread, carried):
    fame, own, other = np.random.default_rng(2).standard_normal((3, 400_000))
    plain = url_law.urls_of(fame, own, other, spread=spread)
    assert plain.declared.mean() == pytest.approx(0.04, rel=0.03)
    weighted = url_law.urls_of(fame + spread, own, other, spread=spread).declared.mean()
    if carried is None:  # at its end: the most important 4% are declared
        carried = stats.norm.sf(url_law.DECLARED_QUANTILE - spread)
        assert carried < 0.264
    assert weighted == pytest.approx(carried, rel=0.02)


def test_the_chosen_spread_is_the_one_where_none_is_given():
    scores = np.random.default_rng(3).standard_normal((3, 1000))
    given = url_law.urls_of(*scores, spread=url_law.IMPORTANCE_SPREAD)
    for one, other in zip(url_law.urls_of(*scores), given, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("spread", [0.0, 0.27, -1.0, float("nan"), float("inf")])
def test_a_spread_that_is_too_small(spread):
    with pytest.raises(ValueError, match=r"spread must be finite and >= 0\.273, got"):
        url_law.urls_of(np.zeros(1), np.zeros(1), np.zeros(1), spread=spread)
