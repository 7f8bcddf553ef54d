"""Bounds on divergence and utility, and what they do to refresh periods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from policies.estimators.divergence.profiles import ProfileArrays, bounds_of_page, step_bounds
from policies.longevity.bounds import reset_periods

FIGURE_7 = ([2.0, 5.0, 13.0], [0.2, 0.2, 0.3])
"""Of base time 10: (10, 0), (12, 0.2), (15, 0.2), (23, 0.3)."""


def held(*profiles):
    """The profiles of one page as kernels take them."""
    most = max((len(ages) for ages, _ in profiles), default=0)
    age, divergence = np.zeros((2, 1, len(profiles), most))
    for slot, (ages, values) in enumerate(profiles):
        age[0, slot, : len(ages)], divergence[0, slot, : len(ages)] = ages, values
    filled = np.array([[len(ages) for ages, _ in profiles]], np.int64)
    none = np.zeros_like(filled)
    return ProfileArrays(np.zeros(filled.shape), filled, age, divergence, none, none, none)


class UtilityBounds(NamedTuple):
    """A_min, A_max, U_min and U_max."""

    least_area: float
    most_area: float
    least: float
    most: float


def utility_bounds(profiles, elapsed):
    return UtilityBounds(*bounds_of_page(held(*profiles), 0, float(elapsed)))


def test_figure_7():
    """A_max = 2 * 0.2 + 3 * 0.2 + 8 * 0.3, A_min = 3 * 0.2 + 8 * 0.2, U = 13 * 0.3 - A."""
    bounds = utility_bounds([FIGURE_7], 13.0)
    assert bounds == pytest.approx((2.2, 3.4, 0.5, 1.7), rel=1e-12)


def test_every_monotonic_curve_through_the_observations_lies_between():
    rng = np.random.default_rng(2)
    for _ in range(30):
        ages = np.cumsum(rng.uniform(0.1, 3.0, 5))
        values = np.sort(rng.uniform(0, 1, 5))
        bounds = utility_bounds([(ages, values)], ages[-1])
        low, high = np.inf, -np.inf
        for share in (0.0, 1.0, *rng.uniform(0, 1, 20)):  # where between two the jump comes
            jumps = np.concatenate(([0.0], ages))[:-1]
            jumps = jumps + share * np.diff(ages, prepend=0.0)
            heights = np.diff(values, prepend=0.0)
            utility = float((jumps * heights).sum())  # U = int x dD(x)
            low, high = min(low, utility), max(high, utility)
            assert bounds.least - 1e-12 <= utility <= bounds.most + 1e-12
        assert (low, high) == pytest.approx((bounds.least, bounds.most), rel=1e-12)


def naive_bound(profiles, x, upper):
    profile_bounds = []
    for ages, values in profiles:
        if x > ages[-1]:
            continue
        k = int(np.searchsorted(ages, x))
        around = (values[k - 1] if k else 0.0, values[k])
        profile_bounds.append(max(around) if upper else min(around))
    if not profile_bounds:
        longest = max(profiles, key=lambda profile: profile[0][-1])
        return 1.0 if upper else longest[1][-1]
    return float(np.mean(profile_bounds))


def test_averages_over_profiles_equal_sums_over_a_fine_grid():
    rng = np.random.default_rng(3)
    for trial in range(20):
        profiles = []
        for _ in range(3):
            count = int(rng.integers(1, 6))
            ages = np.cumsum(rng.integers(1, 5, count)).astype(float)
            profiles.append((ages, rng.uniform(0, 1, count)))  # not monotonic
        elapsed = float(rng.integers(1, 16))
        middles = np.arange(0.005, elapsed, 0.01)
        low = np.array([naive_bound(profiles, x, False) for x in middles])
        high = np.array([naive_bound(profiles, x, True) for x in middles])
        bounds = utility_bounds(profiles, elapsed)
        assert bounds.least_area == pytest.approx(0.01 * low.sum(), abs=1e-9), trial
        assert bounds.most_area == pytest.approx(0.01 * high.sum(), abs=1e-9), trial
        last = step_bounds(held(*profiles), 0, elapsed)
        cut = 0.01 * np.minimum(high, last[0]).sum()
        assert bounds.least == pytest.approx(elapsed * last[0] - cut, abs=1e-9)
        assert bounds.most == pytest.approx(elapsed * last[1] - bounds.least_area, abs=1e-9)


def test_at_an_observation_both_bounds_are_that_observation():
    profiles = held(FIGURE_7, ([4.0, 13.0], [0.1, 0.5]))
    assert step_bounds(profiles, 0, 13.0) == pytest.approx((0.4, 0.4))
    assert step_bounds(profiles, 0, 4.0) == pytest.approx((0.15, 0.15))  # 0.2 and 0.2, then 0.1
    assert step_bounds(profiles, 0, 6.0) == pytest.approx((0.15, 0.4))
    assert step_bounds(profiles, 0, 14.0) == pytest.approx((0.3, 1.0))


def test_without_profiles_nothing_is_known():
    assert utility_bounds([], 2.0) == pytest.approx((0.0, 2.0, 0.0, 2.0))


@pytest.mark.parametrize(
    ("threshold", "risk", "reference", "period"),
    [
        (1.71, 100.0, 10.0, 26.0),  # U_max < T: twice 23 - 10
        (1.71, 10.0, 10.0, 17.1),  # but no longer than risk T
        (1.69, 100.0, 10.0, 8.0),  # neither: as it was
        (0.51, 100.0, 10.0, 8.0),
        (0.5, 100.0, 23.0, 4.0),  # U_min >= T: half, from now on
    ],
)
@pytest.mark.parametrize("importance", [1.0, 4.0])
def test_periods(threshold, risk, reference, period, importance):
    references, periods = np.array([10.0]), np.array([8.0])
    reset_periods(
        np.array([0]),
        np.array([23.0]),
        np.array([8.0]),
        held(FIGURE_7),
        threshold * importance,
        risk,
        np.array([importance]),
        references,
        periods,
        np.array([False]),
    )
    assert references.tolist() == [reference]
    assert periods == pytest.approx([period])


@pytest.mark.parametrize(("period", "after"), [(13.1, 13.1), (13.0, 26.0), (8.0, 26.0)])
def test_a_first_wait_that_was_cut_short_leaves_the_period(period, after):
    references, periods, cut_short = np.array([10.0]), np.array([period]), np.array([True])
    crawl = np.array([0]), np.array([23.0]), np.array([13.0])
    later = np.array([0]), np.array([24.0]), np.array([1.0])
    given = held(FIGURE_7), 20.0, 100.0, np.ones(1), references, periods, cut_short
    reset_periods(*crawl, *given)
    assert references.tolist() == [10.0]
    assert periods.tolist() == [after]
    assert not cut_short[0]
    reset_periods(*later, *given)
    assert periods.tolist() == [28.0]  # 14 days with nothing known of the last of them: U < T


def test_the_reference_time_of_a_page_born_later_is_its_birth():
    """Its first refresh is 5 after that; of the utility, in [0, 5], nothing is known."""
    references, periods = np.array([np.nan]), np.array([4.0])
    crawl = np.array([0]), np.array([23.0]), np.array([5.0])
    empty = held(([], []), FIGURE_7)._replace(base=np.full((1, 2), np.nan))
    never = np.array([False])
    reset_periods(*crawl, empty, 6.0, 100.0, np.ones(1), references, periods, never)
    assert references.tolist() == [18.0]
    assert periods.tolist() == [10.0]
