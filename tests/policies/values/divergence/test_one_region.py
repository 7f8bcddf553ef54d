"""Pages of one changing region: against the exact curves of regions, and against many digits."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.types.contents import Regions
from policies.values.divergence import one_region
from policies.values.divergence.regions import RegionCurves

CASES = [(1, 30, 70), (3, 10, 40), (10, 4, 60), (40, 2, 0), (5, 1, 995)]


@pytest.mark.parametrize(("items", "size", "rest"), CASES)
@pytest.mark.parametrize("time", [1e-6, 0.01, 0.9, 1.1, 7.0, 60.0, 900.0])
def test_equals_the_curves_of_regions(items, size, rest, time):
    regions = Regions([[items, 1]], [[size, rest]], [[0.7, 0.0]])
    exact = RegionCurves(regions)
    share = items * size / (items * size + rest)
    divergence = one_region.region_divergence(items, share, 0.7 * time)
    assert divergence == pytest.approx(exact.divergence(time)[0], rel=1e-9, abs=1e-15)
    result = one_region.region_utility(items, share, 0.7, time)
    assert result == pytest.approx(exact.utility(time)[0], rel=1e-11)


@pytest.mark.parametrize(("items", "share", "updates"), [(1, 0.3, 0.2), (7, 0.9, 5.0), (20, 1, 30)])
def test_slopes_are_those_of_the_divergence(items, share, updates):
    steps, slopes = np.empty((2, items))
    one_region.step_sizes(items, share, steps, slopes)
    value, by_updates, by_share = one_region.divergence_and_slopes(steps, slopes, updates)
    step = 1e-5

    def divergence(share, updates):
        return one_region.region_divergence(items, share, updates)

    rise = divergence(share, updates + step) - divergence(share, updates - step)
    tilt = divergence(share + step, updates) - divergence(share - step, updates)
    assert value == divergence(share, updates)
    assert by_updates == pytest.approx(rise / (2 * step), rel=1e-6)
    assert by_share == pytest.approx(tilt / (2 * step), rel=1e-6)


@pytest.mark.parametrize("items", [1, 6])
def test_period_is_where_the_utility_reaches_the_threshold(items):
    top = one_region.region_utility(items, 0.5, 0.2, np.inf)
    for part in (1e-6, 0.3, 0.999):
        period = one_region.region_period(items, 0.5, 0.2, part * top)
        reached = one_region.region_utility(items, 0.5, 0.2, period)
        assert reached == pytest.approx(part * top, rel=1e-9)
    assert one_region.region_period(items, 0.5, 0.2, 1.001 * top) == np.inf
    assert one_region.region_period(items, 0.0, 0.2, 1e-9) == np.inf
    assert one_region.region_utility(items, 0.5, 0.0, 1e9) == 0.0
