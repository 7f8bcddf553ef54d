from __future__ import annotations

import math

import pytest

from scripts.study.equal_freshness import Saved, crawls_at, median_saved, saved

CRAWLS = (1.0, 2.0, 8.0)
CURVE = (0.5, 0.7, 0.8)


@pytest.mark.parametrize(
    ("freshness", "expected"),
    [
        (0.5, 1.0),
        (0.6, math.sqrt(2.0)),  # half of one doubling
        (0.7, 2.0),
        (0.75, 4.0),  # half of two doublings
        (0.8, 8.0),
        (0.49, 0.0),
        (0.81, math.inf),
    ],
)
def test_crawls_by_hand(freshness: float, expected: float) -> None:
    assert crawls_at(freshness, CRAWLS, CURVE) == pytest.approx(expected, rel=1e-12)


def test_where_freshness_falls_the_fewest_crawls_count() -> None:
    assert crawls_at(0.7, CRAWLS, (0.5, 0.7, 0.7)) == 2.0
    # by way of .7 at two crawls, which eight do not reach
    assert crawls_at(0.6, CRAWLS, (0.5, 0.7, 0.6)) == pytest.approx(math.sqrt(2.0))


def test_saved_crawls_and_bounds_of_those_outside_the_range() -> None:
    assert saved(0.6, 2.0, CRAWLS, CURVE) == pytest.approx([1 - math.sqrt(0.5)] * 2)
    assert saved(0.75, 2.0, CRAWLS, CURVE) == pytest.approx([-1.0, -1.0])
    assert saved(0.4, 2.0, CRAWLS, CURVE) == Saved(0.5, 1.0)
    assert saved(0.9, 2.0, CRAWLS, CURVE) == Saved(-math.inf, -3.0)


def test_a_median_is_known_where_the_middle_is() -> None:
    known, above, below = Saved(0.2, 0.2), Saved(0.5, 1.0), Saved(-math.inf, -3.0)
    assert median_saved([known, above, below]) == known
    assert median_saved([known, above, above]) == above
    assert median_saved([known, above]) == pytest.approx([0.35, 0.6])
    assert median_saved([below, known]) == pytest.approx([-math.inf, -1.4])


def test_rows_are_in_percent() -> None:
    rows = Saved(0.25, 1.0).rows("id", "m=2", "A", "saved")
    assert [(row.metric, row.value) for row in rows] == [
        ("saved, at least", 25.0),
        ("saved, at most", 100.0),
    ]
