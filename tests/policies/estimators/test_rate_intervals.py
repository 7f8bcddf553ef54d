"""Intervals of change rates: against a search with SciPy, exact tails, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

from policies.estimators import change_rate_intervals, fit_change_rates
from policies.estimators.rate_intervals import TWO_SIDED


def likelihood(rate: float, intervals: list[float], changed: list[bool]) -> float:
    """Return the log-likelihood of a page, term by term."""
    terms = [
        np.log(1.0 - np.exp(-rate * tau)) if hit else -rate * tau
        for tau, hit in zip(intervals, changed, strict=True)
    ]
    return float(sum(terms))


@pytest.mark.parametrize(
    ("intervals", "changed"),
    [
        ([1.0, 30.0], [True, False]),
        ([0.5, 2.0, 2.0, 7.0, 1.0], [False, True, True, False, True]),
        ([1e-6, 3e-6, 2e-6], [True, False, False]),
    ],
)
def test_ends_are_where_the_likelihood_ratio_is_small(
    intervals: list[float], changed: list[bool]
) -> None:
    low, high = change_rate_intervals(intervals, changed, [0, len(intervals)])
    best = float(fit_change_rates(intervals, changed).change_rate[0])
    level = likelihood(best, intervals, changed) - chi2.ppf(0.95, 1) / 2.0

    def short(rate: float) -> float:
        return likelihood(rate, intervals, changed) - level

    assert low[0] == pytest.approx(brentq(short, 1e-9 * best, best, xtol=1e-300), rel=1e-9)
    assert high[0] == pytest.approx(brentq(short, best, 1e3 * best, xtol=1e-300), rel=1e-9)
    assert pytest.approx(-chi2.ppf(0.95, 1) / 2.0) == TWO_SIDED


def test_pages_at_an_extreme_have_one_end() -> None:
    """No change in 3.5 s; all of 2; all of 200, at lengths far apart; no interval."""
    second = 1.0 / 86400.0
    wide = list(np.geomspace(1e-3, 1e3, 200))
    intervals = [3.5 * second, 1.0, 31.0, *wide]
    changed = [False, True, True, *[True] * 200]
    low, high = change_rate_intervals(intervals, changed, [0, 1, 3, 203, 203])
    assert low[[0, 3]].tolist() == [0.0, 0.0]
    assert high[0] == pytest.approx(-np.log(0.05) / (3.5 * second))  # 74,000 a day
    assert high[1:].tolist() == [np.inf] * 3
    for page, own in ((1, [1.0, 31.0]), (2, wide)):
        chance = np.prod(-np.expm1(-low[page] * np.array(own)))
        assert chance == pytest.approx(0.05, rel=1e-8)


def test_intervals_contain_the_rate() -> None:
    rng = np.random.default_rng(5)
    rate, crawls = 0.4, 25
    intervals = rng.exponential(2.0, (2000, crawls)) + 0.01
    changed = rng.random(intervals.shape) < -np.expm1(-rate * intervals)
    offsets = np.arange(2001) * crawls
    low, high = change_rate_intervals(intervals.ravel(), changed.ravel(), offsets)
    assert np.mean((low <= rate) & (rate <= high)) == pytest.approx(0.95, abs=0.015)


def test_intervals_are_too_high_where_signals_prompt_crawls() -> None:
    """A crawl comes after 2 units, or at a signal: of .8 of the changes, or false."""
    rng = np.random.default_rng(6)
    signalled, silent, false = (rng.exponential(1.0 / rate, (2000, 20)) for rate in (0.8, 0.2, 0.3))
    intervals = np.minimum(2.0, np.minimum(signalled, false))
    changed = np.minimum(signalled, silent) <= intervals
    low, high = change_rate_intervals(intervals.ravel(), changed.ravel(), np.arange(2001) * 20)
    assert np.mean((low <= 1.0) & (high >= 1.0)) == pytest.approx(0.64, abs=0.04)
    assert np.mean(low > 1.0) > 20.0 * np.mean(high < 1.0)
