"""Numbers of the belief about staleness."""

import numpy as np
import pytest

from policies.ncis.belief import kernels, layout
from policies.ncis.belief import policy as belief
from tests.policies.ncis.belief.logs import PAGES, Learner, instance


@pytest.mark.parametrize("grouped", [False, True])
def test_estimates_follow_the_pooled_distributions(grouped):
    rng = np.random.default_rng(2)
    learner = Learner(instance(1, grouped).problem("importance"))
    at, memory = learner.at, learner.memory
    kinds, before = at.kinds, memory.groups.copy()
    kernels.pool(memory.pages, memory.groups, memory.shared, memory.group)
    np.testing.assert_array_equal(memory.groups, before)  # no page has data
    memory.pages[:, : 2 * kinds] = rng.gamma(1.0, 2.0, (PAGES, 2 * kinds))
    kernels.pool(memory.pages, memory.groups, memory.shared, memory.group)
    assert np.all(memory.groups[:, : 2 * kinds] != before[:, : 2 * kinds])
    belief = memory.groups[memory.group, : 2 * kinds] + memory.pages[:, : 2 * kinds]
    scale = memory.pages[:, at.scale : at.scale + kinds]
    believed = memory.pages[:, at.believed : at.believed + kinds]
    mean = belief[:, :kinds] / belief[:, kinds:]
    np.testing.assert_allclose(believed, mean * scale, rtol=1e-12)


def test_numbers_that_are_kept():
    """Of pages and groups, as the policy's words say; the last column ends where the row does."""
    widths = {
        (sources, grouped): (at.page_width, at.group_width)
        for sources in (1, 2)
        for grouped in (False, True)
        for at in [layout.places_of.py_func(sources, grouped)]
    }
    assert widths == {
        (1, False): (21, 270),
        (1, True): (35, 276),
        (2, False): (31, 404),
        (2, True): (59, 416),
    }
    at = belief.places_of(instance(2).problem())
    assert at.sums + 2 * layout.RING == at.group_width
    assert at.change_chance + 2 == at.page_width
    for number in ("21", "59", "270", "416"):
        assert number in belief.BeliefNCIS.__doc__
