"""The tables of shapes, against sums and the exact curves of regions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crawl_envs.types.contents import Regions
from policies.estimators.divergence import shapes as tables
from policies.values.divergence.regions import RegionCurves


def shape_number(phi, part, items):
    rows = tables.shapes()
    return int(np.argmin(np.abs(rows - (phi, part, items)).sum(axis=1)))


def brute_divergence(shape, share, amount, certain):
    """E[D] by sums over how many updates each region had."""
    phi, part, items = shape
    total = 0.0
    most = int(amount + 12.0 * np.sqrt(amount) + 30)
    for count in range(most):
        first, updates = np.arange(count + certain + 1), count + certain
        z = part * (first > 0) + (1.0 - part) * np.minimum(updates - first, items) / items
        chance = stats.poisson.pmf(count, amount) * stats.binom.pmf(first, updates, phi)
        total += (chance * 2.0 * share * z / (1.0 + share * z)).sum()
    return total


@pytest.mark.parametrize("certain", [0, 1, 3])
@pytest.mark.parametrize("shape", [(0.0, 0.0, 1.0), (0.0, 0.0, 4.0), (0.8, 0.5, 2.0)])
def test_mean_divergence_is_the_sum_over_updates(shape, certain):
    amounts = np.array([0.0, 0.3, 2.0, 7.0])
    made = tables.mean_divergence(np.array(shape), amounts, certain)
    for k in (0, 3, 11):
        share = tables.dynamic_shares()[k]
        expected = [brute_divergence(shape, share, amount, certain) for amount in amounts]
        np.testing.assert_allclose(made[k], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("phi", "part", "items"), [(0.0, 0.0, 1), (0.0, 0.0, 8), (0.8, 0.5, 4), (0.2, 0.2, 2)]
)
def test_utilities_are_those_of_regions(phi, part, items):
    """Where all fragments are dynamic, a D - missed is L U of eq. 4."""
    made = tables.shape_tables()
    number = shape_number(phi, part, items)
    size = 1000 * items
    churn = round(part * size)
    regions = Regions(
        [[1, items]], [[churn, (size - churn) // items]], [[3.0 * phi, 3.0 * (1.0 - phi)]]
    )
    places = np.arange(8, tables.NUM_AMOUNTS, 8)
    amount = made.amount[places]
    utility = amount * made.divergence[0, number, places, 0] - made.missed[0, number, places, 0]
    curves = RegionCurves(regions)
    exact = [3.0 * curves.utility(a / 3.0)[0] for a in amount]
    np.testing.assert_allclose(utility, exact, rtol=2e-5)


def test_missed_is_the_mean_of_a_sum():
    shape = (0.8, 0.5, 2.0)
    made = tables.shape_tables()
    number, k = shape_number(*shape), 2
    count = 60
    by_updates = [
        tables.mean_divergence(np.array(shape), np.zeros(1), updates)[k, 0]
        for updates in range(count)
    ]
    sums = np.concatenate(([0.0], np.cumsum(by_updates)))
    for place in (20, 48, 60):
        amount = made.amount[place]
        for certain in range(tables.MAX_CERTAIN + 1):
            law = stats.poisson.pmf(np.arange(count - certain), amount)
            expected = law @ sums[certain:count]
            np.testing.assert_allclose(made.missed[k, number, place, certain], expected, rtol=1e-6)


def test_lost_shares_have_a_distribution():
    made = np.exp(tables.shape_tables().log_lost.astype(np.float64))
    np.testing.assert_allclose(made.sum(axis=1), 1.0, atol=1e-5)


def test_lost_shares_are_where_the_states_are():
    """A page of churn alone has lost everything; one of two items half or all of it."""
    made = np.exp(tables.shape_tables().log_lost.astype(np.float64))
    churn, scroll = shape_number(0.0, 0.0, 1.0), shape_number(0.0, 0.0, 2.0)
    bins = np.arange(-tables.ABOVE, tables.BELOW + 1)
    for place in (0, 48, 96):
        assert bins[np.argmax(made[place, :, churn])] == 0
    rare, often = made[0, :, scroll], made[-1, :, scroll]
    half = tables.BINS_PER_STEP / tables.SHARE_STEP
    assert abs(bins[np.argmax(rare)] - half) <= 0.5
    assert bins[np.argmax(often)] == 0


def test_lost_share_has_the_simulated_distribution():
    rng = np.random.default_rng(5)
    shape = (16.0 / 17.0, 0.2, 4.0)
    place = 60
    amount = tables.shape_tables().amount[place]
    first = rng.poisson(shape[0] * amount, 200_000)
    second = rng.poisson((1.0 - shape[0]) * amount, 200_000)
    z = 0.2 * (first > 0) + 0.8 * np.minimum(second, 4) / 4
    law = tables.state_distribution(np.array(shape), np.array([amount]))[0]
    values = tables.lost(np.array(shape))
    for value in np.unique(values):
        simulated = np.mean(np.abs(z - value) < 1e-9)
        assert abs(simulated - law[np.abs(values - value) < 1e-9].sum()) < 0.005
