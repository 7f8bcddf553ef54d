"""The division of crawls between refreshes and new pages, against optima found by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from scripts.experiments.longevity import coverage

RATES = np.array([0.02, 0.1, 0.3, 1.0])
"""Change rates of pages that are either fresh or stale."""


def of_interval(rate: float, interval: float) -> tuple[float, float]:
    """Refreshes per day and staleness of a page that is refreshed every interval."""
    return 1.0 / interval, 1.0 - (1.0 - np.exp(-rate * interval)) / (rate * interval)


def of_threshold(threshold: float) -> tuple[float, float]:
    """Mean refreshes and staleness of the pages at a threshold, found by bisection on eq. 4."""
    points = []
    for rate in RATES:

        def above(time: float, rate: float = rate) -> float:
            return (1.0 - np.exp(-rate * time)) / rate - time * np.exp(-rate * time) - threshold

        if threshold >= 1.0 / rate:
            points.append((0.0, 1.0))
        else:
            points.append(of_interval(rate, brentq(above, 1e-6, 1e5)))
    cost, stale = np.mean(points, axis=0)
    return float(cost), float(stale)


@pytest.mark.parametrize("worth", [0.08, 0.32, 1.28])
def test_the_best_threshold_is_the_value_of_a_new_page(worth: float) -> None:
    knobs = np.array(coverage.KNOBS)
    cost, stale = np.array([of_threshold(knob) for knob in knobs]).T
    result = coverage.weighed(knobs, cost, stale, worth, True)
    least = 0.0
    for rate in RATES:

        def loss(log_interval: float, rate: float = rate) -> float:
            refreshes, staleness = of_interval(rate, float(np.exp(log_interval)))
            return staleness + worth * refreshes

        found = minimize_scalar(loss, bounds=(-3.0, 12.0), method="bounded")
        least += min(float(found.fun), 1.0) / RATES.size
    assert result[coverage.METRIC] == pytest.approx(least, rel=1e-4)
    assert result[coverage.BEST] == result[coverage.METRIC]
    assert result[coverage.RATIO] == pytest.approx(1.0)
    assert 0.5 < result[coverage.RATE] < 2.0


def test_other_knobs_count_at_their_best_value() -> None:
    cost, stale = np.array([0.4, 0.2, 0.1]), np.array([0.02, 0.05, 0.09])
    result = coverage.weighed(np.array([1.0, 2.0, 3.0]), cost, stale, 0.32, False)
    best = pytest.approx(0.05 + 0.32 * 0.2)
    assert result == {coverage.METRIC: best, coverage.BEST: best}
