"""Divergence given as a table, and averaged over versions of contents."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from crawl_envs.types.contents import Contents
from policies.values.divergence.tabulated import TabulatedCurves, mean_divergence
from tests.policies.values.divergence.naive_regions import jaccard_distance, utility_of

AGES = np.array([1.0, 1.5, 4.0, 6.0])
TABLE = np.array([[0.1, 0.3, 0.2, 0.5], [0.0, 0.0, 0.4, 0.4], [0.0, 0.0, 0.0, 0.0]])
RISING = np.array([[0.1, 0.3, 0.3, 0.5], [0.0, 0.0, 0.4, 0.4], [0.0, 0.0, 0.0, 0.0]])


def line(page, elapsed):
    """D* of a page by interpolation."""
    return float(np.interp(elapsed, [0.0, *AGES], [0.0, *RISING[page]]))


@pytest.mark.parametrize("elapsed", [0.0, 0.4, 1.0, 1.2, 3.0, 4.0, 5.9, 6.0, 9.0])
def test_measures_against_quadrature(elapsed):
    curves = TabulatedCurves(AGES, TABLE)
    assert curves.num_pages == 3
    for page in range(3):
        pieces = [0.0, *AGES[elapsed > AGES], elapsed]
        grid = np.unique(np.concatenate([np.linspace(a, b, 3) for a, b in pairwise(pieces)]))
        area = sum((b - a) * line(page, 0.5 * (a + b)) for a, b in pairwise(grid))
        assert curves.divergence(elapsed)[page] == pytest.approx(line(page, elapsed), abs=1e-15)
        assert curves.area(elapsed)[page] == pytest.approx(area, abs=1e-14)
        expected = utility_of(lambda t, page=page: line(page, t), elapsed) if area else None
        if expected is not None:
            assert curves.utility(elapsed)[page] == pytest.approx(expected, abs=1e-8)


def test_limits():
    curves = TabulatedCurves(AGES, TABLE)
    np.testing.assert_array_equal(curves.divergence(np.inf), [0.5, 0.4, 0.0])
    np.testing.assert_array_equal(curves.utility(np.inf), curves.ceiling)
    np.testing.assert_array_equal(curves.utility(6.0), curves.ceiling)
    np.testing.assert_array_equal(curves.area(np.inf), [np.inf, np.inf, 0.0])
    np.testing.assert_array_equal(curves.period(0.0), np.zeros(3))
    np.testing.assert_array_equal(curves.period(1e-9)[2:], [np.inf])


def test_period_is_the_least_time():
    curves = TabulatedCurves(AGES, TABLE)
    times = np.linspace(0.0, 7.0, 70_001)
    utilities = np.array([curves.utility(t) for t in times])
    for threshold in [1e-3, 0.05, 0.15, 0.3, 0.5, 0.9, 1.0, 1.2]:
        result = curves.period(threshold)
        for page in range(3):
            reached = np.flatnonzero(utilities[:, page] >= threshold)
            known = times[reached[0]] if reached.size else np.inf
            assert result[page] == pytest.approx(known, abs=1.01e-4)
    assert curves.period(curves.utility(1.5))[0] == 1.5  # the utility is flat from there on to 4
    assert curves.period(curves.ceiling)[:2].tolist() == [6.0, 4.0]
    assert curves.period(np.nextafter(curves.ceiling, 9.0)).tolist() == [np.inf] * 3


def random_contents(rng, pages=5):
    """Spells of a few fragments, some of which come back; and pages without any."""
    rows = []
    for page in range(pages - 1):
        for key in range(12):
            size, at = int(rng.integers(1, 5)), rng.choice([-np.inf, rng.uniform(0.0, 9.0)])
            for _ in range(rng.integers(1, 4)):
                end = max(at, 0.0) + rng.exponential(3.0) if rng.random() < 0.8 else np.inf
                rows.append((page, at, end, size, key))
                at = end + rng.exponential(2.0)
                if not np.isfinite(at):
                    break
    page, birth, death, size, key = zip(*rows, strict=True)
    return Contents.of_spells(pages, page, birth, death, size, key), rows


def version(rows, page, time):
    """Set of fragments of a page at a time."""
    return {
        (key, part)
        for owner, birth, death, size, key in rows
        if owner == page and birth < time <= death
        for part in range(size)
    }


@pytest.mark.parametrize("seed", range(5))
def test_mean_divergence_against_sets(seed):
    rng = np.random.default_rng(seed)
    contents, rows = random_contents(rng)
    times = np.arange(1.0, 9.0) * 1.25
    result = mean_divergence(contents, times)
    assert result.shape == (5, 7)
    for page in range(5):
        sets = [version(rows, page, time) for time in times]
        for gap in range(1, 8):
            pairs = [jaccard_distance(sets[k], sets[k + gap]) for k in range(8 - gap)]
            assert result[page, gap - 1] == pytest.approx(np.mean(pairs), abs=1e-14)


def test_curves_of_contents():
    contents, _ = random_contents(np.random.default_rng(9))
    curves = TabulatedCurves.of_contents(contents, 1.25, 10.0)
    np.testing.assert_allclose(curves.ages, 1.25 * np.arange(8))
    table = mean_divergence(contents, 1.25 * np.arange(1.0, 9.0))
    np.testing.assert_array_equal(curves.table[:, 1:], np.maximum.accumulate(table, axis=1))
    # births and deaths at the time of a version: born after it, died in it
    edge = Contents.of_spells(1, [0, 0], [-np.inf, 2.0], [2.0, np.inf])
    np.testing.assert_array_equal(mean_divergence(edge, np.array([1.0, 2.0, 3.0])), [[0.5, 1.0]])


def test_bad_input():
    contents, _ = random_contents(np.random.default_rng(9))
    for ages, table, message in [
        ([1.0, 1.0], [[0.1, 0.2]], "ages must be finite, rise"),
        ([0.0, 1.0], [[0.1, 0.2]], "ages must be finite, rise"),
        ([[1.0]], [[0.1]], "ages must have shape"),
        ([1.0, 2.0], [[0.1]], r"divergence must have shape \(m, 2\)"),
        ([1.0], [[-0.1]], "divergence must be finite and >= 0, got -0.1"),
        ([1.0], [[np.nan]], "divergence must be finite and >= 0, got nan"),
    ]:
        with pytest.raises(ValueError, match=message):
            TabulatedCurves(ages, table)
    with pytest.raises(ValueError, match="interval must be finite and > 0, got 0"):
        TabulatedCurves.of_contents(contents, 0.0, 3.0)
    with pytest.raises(ValueError, match=r"duration must be finite and >= 2, got 1\.5"):
        TabulatedCurves.of_contents(contents, 1.0, 1.5)
    with pytest.raises(ValueError, match="duration must be at most 4096 intervals"):
        TabulatedCurves.of_contents(contents, 1e-3, 30.0)
