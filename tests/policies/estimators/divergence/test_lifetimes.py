"""Lifetimes of fragments: the paper's formulas, and simulated regions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from crawl_envs.types.contents import Regions
from policies.estimators.divergence.lifetimes import churn_lifetime, page_lifetimes, scroll_lifetime

TIMES = np.array([0.0, 1e-6, 0.3, 1.0, 8.0, 100.0, np.inf])


def test_formulas_as_printed():
    for elapsed in [0.3, 4.0, 25.0]:
        x = 0.25 * elapsed
        assert churn_lifetime(elapsed, 0.25) == pytest.approx(1 - math.exp(-x), rel=1e-14)
        kept = sum(x**i * math.exp(-x) / math.factorial(i) for i in range(10))
        assert scroll_lifetime(elapsed, 10, 0.25) == pytest.approx(1 - kept, abs=1e-15)


def test_against_scipy():
    for items in (1, 4, 10):
        known = gamma(items, scale=1 / 0.25).cdf(TIMES)
        np.testing.assert_allclose(scroll_lifetime(TIMES, items, 0.25), known, rtol=1e-13)
    np.testing.assert_allclose(churn_lifetime(TIMES, 3.0), scroll_lifetime(TIMES, 1, 3.0))
    np.testing.assert_array_equal(churn_lifetime(TIMES, 0.0), np.zeros(TIMES.size))


@pytest.mark.parametrize("items", [1, 2, 10])
def test_against_simulated_updates(items):
    rng = np.random.default_rng(items)
    updates = np.cumsum(rng.exponential(1 / 0.25, 5000 * items + items))
    lives = (updates[items:] - updates[:-items])[::items]  # such as do not overlap
    assert kstest(lives, lambda t: scroll_lifetime(t, items, 0.25)).pvalue > 1e-3
    assert kstest(lives, lambda t: scroll_lifetime(t, items + 1, 0.25)).pvalue < 1e-6


def simulated_lives(items, size, rate, rng, horizon):
    """Birth, death and fragments of all items of a page with births in (0, horizon)."""
    rows = []
    for k, c, pace in zip(items, size, rate, strict=True):
        if pace == 0.0:
            rows += [(-np.inf, np.inf, c)] * k
            continue
        updates = np.cumsum(rng.exponential(1 / pace, int(3 * pace * horizon) + 10 * k + 100))
        rows += [(b, d, c) for b, d in zip(updates, updates[k:], strict=False) if b < horizon]
    return np.array(rows)


def test_mixtures_against_simulation():
    items, size, rate = [1, 6, 2], [3, 2, 5], [2.0, 0.8, 0.0]
    regions = Regions([items], [size], [rate])
    birth, death, count = simulated_lives(items, size, rate, np.random.default_rng(4), 20_000.0).T
    times = np.array([0.2, 0.6, 2.0, 7.0])
    known = {among: page_lifetimes(regions, times, among) for among in ("born", "present")}
    moments = np.arange(100.0, 20_000.0, 40.0)
    for at, time in enumerate(times):
        lived = death - birth <= time
        born = np.isfinite(birth)
        share = np.average(lived[born], weights=count[born])
        assert share == pytest.approx(known["born"][0, at], abs=0.01)
        there = (birth[:, None] < moments) & (moments <= death[:, None])
        weight = count[:, None] * there
        result = (weight * lived[:, None]).sum() / weight.sum()
        assert result == pytest.approx(known["present"][0, at], abs=0.01)
    assert np.all(known["born"] - known["present"] > 0.03)


def test_pages_apart():
    regions = Regions([[1, 1], [10, 1]], [[4, 6], [2, 9]], [[0.0, 0.0], [0.25, 0.0]])
    result = page_lifetimes(regions, TIMES)
    assert result.shape == (2, TIMES.size)
    assert np.isnan(result[0]).all()
    np.testing.assert_array_equal(result[1], scroll_lifetime(TIMES, 10, 0.25))
    np.testing.assert_array_equal(page_lifetimes(regions, 8.0), result[:, 4])
    np.testing.assert_array_equal(page_lifetimes(regions, TIMES, "present")[0], np.zeros(7))


def test_bad_input():
    regions = Regions([[1]], [[1]], [[1.0]])
    for call, message in [
        (lambda: churn_lifetime(-1.0, 1.0), "elapsed must be >= 0, got -1"),
        (lambda: churn_lifetime(1.0, -2.0), "rate must be >= 0, got -2"),
        (lambda: churn_lifetime(1.0, np.inf), "rate must be finite, got inf"),
        (lambda: churn_lifetime([1.0, 2.0], [1.0, 2.0, 3.0]), "must broadcast"),
        (lambda: scroll_lifetime(1.0, 0, 1.0), "items must be whole numbers >= 1, got 0"),
        (lambda: scroll_lifetime(1.0, 1.5, 1.0), "items must be whole numbers >= 1, got 1.5"),
        (lambda: page_lifetimes(regions, [[1.0]]), r"elapsed must have shape \(A,\)"),
        (lambda: page_lifetimes(regions, 1.0, "dead"), "among must be 'born' or 'present'"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
