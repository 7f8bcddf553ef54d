"""The Bing-like set: published means by quadrature and in a drawn instance; the two classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crawl_envs.instances import bing_like
from crawl_envs.instances.bing_like import BingLike

PUBLISHED = {
    "mean": (1.124, lambda delta: delta),
    "weighted odds": (0.554, lambda delta: delta / (delta + 0.2)),
    "weighted log": (1.118, lambda delta: np.log1p(5.0 * delta)),
}


@pytest.fixture(scope="module")
def drawn():
    return BingLike(400_000, 5000.0)(np.random.default_rng(0))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_means_by_quadrature(name):
    """Importance weights exp(s z) shift the normal score of fame by s: no sampling is needed."""
    target, function = PUBLISHED[name]
    shift = 0.0
    if name != "mean":
        shift = bing_like.CORRELATION * bing_like.IMPORTANCE_SPREAD
    score = np.linspace(-9.0, 9.0, 100_001)
    weight = stats.norm.pdf(score)
    rate = bing_like.CHANGE_MEDIAN * np.exp(bing_like.CHANGE_SPREAD * (score + shift))
    value = function(np.clip(rate, *bing_like.CHANGE_RANGE))
    assert np.sum(weight * value) / weight.sum() == pytest.approx(target, rel=1e-3)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_means_in_a_drawn_instance(drawn, name):
    target, function = PUBLISHED[name]
    weight = np.ones(drawn.num_pages) if name == "mean" else drawn.importance
    assert np.average(function(drawn.change_rate), weights=weight) == pytest.approx(
        target, rel=0.01
    )


def high_quality(instance):
    return (instance.precision > 0.7 - 1e-9) & (instance.recall > 0.6 - 1e-9)


def test_declared_pages_are_few_and_important(drawn):
    declared = high_quality(drawn)
    share = drawn.importance[declared].sum() / drawn.importance.sum()
    assert declared.mean() == pytest.approx(bing_like.DECLARED, abs=0.001)
    assert share == pytest.approx(bing_like.DECLARED_IMPORTANCE, rel=0.02)


def test_undeclared_pages_have_signals_of_lower_quality(drawn):
    others = ~high_quality(drawn)
    assert drawn.precision[others].max() <= 0.7 + 1e-9
    assert drawn.recall[others].max() <= 0.6 + 1e-9
    assert drawn.signal_rate[others].min() > 0.0


@pytest.mark.parametrize("word", ["PRECISION", "RECALL"])
def test_histograms(word, drawn):
    edges = np.array(getattr(bing_like, f"{word}_EDGES"))
    shares = np.array(getattr(bing_like, f"{word}_SHARES"))
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert shares[-3 if word == "PRECISION" else -4 :].sum() == pytest.approx(bing_like.TAIL)
    declared = high_quality(drawn)
    values = getattr(drawn, word.lower())
    for mask, low, high in ((declared, 0.95, 1.0), (~declared, 0.0, 0.95)):
        expected = np.diff(np.clip(np.cumsum([0.0, *shares]), low, high)) / (high - low)
        found = np.histogram(values[mask], np.append(edges[0], edges[1:] + 1e-9))[0]
        kept = expected > 0.0
        assert found[~kept].sum() == 0
        assert stats.chisquare(found[kept], expected[kept] * mask.sum()).pvalue > 1e-4


@pytest.mark.parametrize(("pages", "bandwidth"), [(0, 1.0), (10, 0.0), (10, float("nan"))])
def test_bad_sizes(pages, bandwidth):
    with pytest.raises(ValueError, match="num_pages" if pages == 0 else "bandwidth"):
        BingLike(pages, bandwidth)
