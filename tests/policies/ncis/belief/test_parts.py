"""Pieces of the belief about staleness against integration, scipy and other code."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from policies.ncis.belief import hazards, layout, pooling
from policies.ncis.belief import policy as belief
from policies.ncis.priors import Beliefs
from tests.policies.ncis.belief.logs import GROUP, PAGES, Learner, instance


def exact_moments(shape, rate, exposure, fresh):
    """Mean and variance of theta after a change, by integration.

    Given theta, no change has the probability exp(-theta exposure) times that of the other hazards.
    """
    own = (rate / (rate + exposure)) ** shape
    others = math.exp(fresh) / own
    density = stats.gamma(shape, scale=1.0 / rate)

    def integral(power):
        def integrand(theta):
            change = 1.0 - others * math.exp(-theta * exposure)
            return theta**power * change * density.pdf(theta)

        cuts = [0.0, *density.ppf([0.01, 0.5, 0.99]), density.isf(1e-15)]
        spans = itertools.pairwise(cuts)
        return sum(integrate.quad(integrand, *span, epsabs=1e-14, limit=200)[0] for span in spans)

    total, mean = integral(0), integral(1)
    return mean / total, integral(2) / total - (mean / total) ** 2


@pytest.mark.parametrize("others", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("exposure", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("shape", "rate"), [(0.6, 2.0), (1.0, 1.0), (4.0, 0.5), (25.0, 30.0)])
def test_moments_after_a_change_are_those_of_integration(shape, rate, exposure, others):
    own_group = np.array([0.4 * shape, 9.0, 0.3 * rate, 9.0])
    page = np.array([0.6 * shape, 9.0, 0.7 * rate, 9.0])
    fresh = -shape * math.log1p(exposure / rate) - others
    hazards.match_moments(page, own_group, 2, 0, exposure, fresh)
    mean, variance = exact_moments(shape, rate, exposure, fresh)
    result = own_group[0] + page[0], own_group[2] + page[2]
    if page[0] > 0.0:
        assert result[0] / result[1] == pytest.approx(mean, rel=1e-7)
    else:
        assert mean * result[1] <= own_group[0] * (1.0 + 1e-9)
    if page[2] > 0.0 and page[0] > 0.0:
        assert result[0] / result[1] ** 2 == pytest.approx(variance, rel=1e-5)
    if page[2] == 0.0:  # the belief would be wider than the one that all share
        assert mean / variance <= own_group[2] * (1.0 + 1e-6)
    np.testing.assert_array_equal(page[[1, 3]], 9.0)


def test_a_change_beside_certain_changes_tells_nothing():
    page, own_group = np.array([1.0, 2.0]), np.array([2.0, 3.0])
    hazards.match_moments(page, own_group, 1, 0, 0.5, -60.0)
    np.testing.assert_allclose(page, [1.0, 2.0], rtol=1e-9)


def test_special_functions():
    x = np.geomspace(0.01, 1e4, 400)
    digamma = [pooling.digamma(value) for value in x]
    trigamma = [pooling.trigamma(value) for value in x]
    np.testing.assert_allclose(digamma, special.digamma(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(trigamma, special.polygamma(1, x), rtol=1e-10)


def test_shape_is_that_of_the_gap():
    for shape in np.geomspace(*pooling.SHAPES, 60)[1:-1]:
        gap = math.log(shape) - special.digamma(shape)
        assert pooling.shape_of(gap) == pytest.approx(shape, rel=1e-8)
    assert pooling.shape_of(100.0) == pooling.SHAPES[0]
    assert pooling.shape_of(0.0) == pooling.shape_of(-1.0) == pooling.SHAPES[1]


@pytest.mark.parametrize(
    ("shape", "least", "most"),
    [(0.3, 2.8, 2.9), (1.0, 1.12, 1.14), (4.0, 1.0, 1.01), (30.0, 1, 1.0003)],
)
def test_below_mean_lies_above_what_it_stands_for(shape, least, most):
    exact = math.exp(special.digamma(shape)) / shape
    assert least <= hazards.below_mean(shape) / exact <= most


def test_below_mean_rises_to_1():
    result = [hazards.below_mean(shape) for shape in np.geomspace(0.3, 1e4, 50)]
    assert np.all(np.diff(result) > 0.0)
    assert result[0] < 0.3
    assert result[-1] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("grouped", [False, True])
def test_pool_is_that_of_learning_beliefs(grouped):
    """The imagined pages of a single group are those of the whole set: they change nothing."""
    rng = np.random.default_rng(2)
    learner = Learner(instance(1, grouped).problem("importance"))
    at, memory = learner.at, learner.memory
    kinds = at.kinds
    group = GROUP if grouped else np.zeros(PAGES, np.int64)
    other = Beliefs(group, kinds // 2, 1.0)
    columns = slice(0, kinds)
    groups = group.max() + 1
    other.shape[:], other.rate[:] = (
        rng.uniform(0.5, 3.0, other.shape.shape),
        rng.uniform(0.5, 3.0, other.rate.shape),
    )
    other.counts[:] = rng.gamma(1.0, 2.0, other.counts.shape)
    other.exposures[:] = rng.gamma(1.0, 2.0, other.exposures.shape)
    other._smallest[:] = pooling.SMALLEST
    seen = np.ones(PAGES, bool)
    seen[[1, 5]] = False
    other.counts[~seen], other.exposures[~seen] = 0.0, 0.0
    memory.groups[:, :kinds] = other.shape[:, columns]
    memory.groups[:, kinds : 2 * kinds] = other.rate[:, columns]
    memory.pages[:, :kinds] = other.counts[:, columns]
    memory.pages[:, kinds : 2 * kinds] = other.exposures[:, columns]
    pooling.pool(memory.pages, memory.groups, memory.group, at)
    other.pool(seen)
    assert memory.groups.shape[0] == groups
    np.testing.assert_allclose(memory.groups[:, :kinds], other.shape[:, columns], rtol=1e-8)
    np.testing.assert_allclose(
        memory.groups[:, kinds : 2 * kinds], other.rate[:, columns], rtol=1e-8
    )
    shape = memory.groups[group, :kinds] + memory.pages[:, :kinds]
    rate = memory.groups[group, kinds : 2 * kinds] + memory.pages[:, kinds : 2 * kinds]
    scale = memory.pages[:, at.scale : at.scale + kinds]
    believed = memory.pages[:, at.believed : at.believed + kinds]
    np.testing.assert_allclose(believed, shape / rate * scale, rtol=1e-12)


def test_a_kind_that_nobody_has_seen_keeps_its_distribution():
    learner = Learner(instance(1).problem("importance"))
    before = learner.memory.groups.copy()
    pooling.pool(learner.memory.pages, learner.memory.groups, learner.memory.group, learner.at)
    np.testing.assert_array_equal(learner.memory.groups, before)


def test_numbers_that_are_kept():
    """Of pages and groups, as the policy's words say; the last column ends where the row does."""
    widths = {
        (sources, grouped): (at.page_width, at.group_width)
        for sources in (1, 2)
        for grouped in (False, True)
        for at in [layout.places_of.py_func(sources, grouped)]
    }
    assert widths == {
        (1, False): (18, 268),
        (1, True): (32, 274),
        (2, False): (28, 402),
        (2, True): (56, 414),
    }
    at = belief.places_of(instance(2).problem())
    assert at.sums + 2 * layout.RING == at.group_width
    assert at.change_chance + 2 == at.page_width
    for number in ("18", "56", "268", "414"):
        assert number in belief.BeliefNCIS.__doc__
