"""The Bing-like set: the law of its pages, the two classes and their signals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crawl_envs import instances
from crawl_envs.instances.urls import bing as bing_like
from crawl_envs.instances.urls import lambdacrawl as url_law

EARLIER = {
    "importance": [6.933596694336096, 0.007023472346582663, 0.6078350519785441],
    "change_rate": [0.04213315857241688, 3.6654582799361513, 0.09064522930957716],
    "recall": [0.5122879057933629, 0.167373058115991, 0.2771921990255728],
}


@pytest.fixture(scope="module")
def drawn():
    return instances.generator_of("bing-like", num_pages=400_000)(np.random.default_rng(0))


def test_pages_follow_the_law_of_the_set(drawn):
    scores = np.random.default_rng(0).standard_normal((3, 400_000))
    urls = url_law.urls_of(*scores)
    assert np.array_equal(drawn.importance, urls.importance)
    assert np.array_equal(drawn.change_rate, urls.change_rate)
    assert np.array_equal(high_quality(drawn), urls.complete)


def test_first_pages_are_what_they_were():
    """Drawn by an earlier version: published results stand on these pages."""
    pages = instances.generator_of("bing-like", num_pages=1000)(np.random.default_rng(3))
    assert pages.importance[:3].tolist() == pytest.approx(EARLIER["importance"], rel=1e-13)
    assert pages.change_rate[:3].tolist() == pytest.approx(EARLIER["change_rate"], rel=1e-13)
    assert pages.recall[:3].tolist() == pytest.approx(EARLIER["recall"], rel=1e-13)


def high_quality(instance):
    return (instance.precision > 0.7 - 1e-9) & (instance.recall > 0.6 - 1e-9)


def test_declared_pages_are_few_and_important(drawn):
    declared = high_quality(drawn)
    share = drawn.importance[declared].sum() / drawn.importance.sum()
    assert declared.mean() == pytest.approx(url_law.DECLARED, abs=0.001)
    assert share == pytest.approx(url_law.DECLARED_IMPORTANCE, rel=0.02)


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
        result = np.histogram(values[mask], np.append(edges[0], edges[1:] + 1e-9))[0]
        kept = expected > 0.0
        assert result[~kept].sum() == 0
        assert stats.chisquare(result[kept], expected[kept] * mask.sum()).pvalue > 1e-4
