"""Rewards of steps: by hand, as sums over pages, within bounds."""

from itertools import combinations

import numpy as np
import pytest

from policies.bandits.rewards import gained_share, literal_reward, sure_bound
from policies.base.live import empty_log


def log_of(pages, changed):
    return empty_log()._replace(
        page=np.array(pages, np.int64),
        changed=np.array(changed, np.bool_),
    )


def test_rewards_by_hand():
    weights = np.array([4.0, 1.0, 3.0, 2.0])
    log = log_of([0, 1, 3], [True, False, True])
    assert literal_reward(log, weights) == pytest.approx(6 / 7, rel=1e-15)
    assert gained_share(log, weights) == pytest.approx(0.6, rel=1e-15)
    nothing = log_of([], [])
    assert literal_reward(nothing, weights) == gained_share(nothing, weights) == 0.0
    assert literal_reward(log, np.zeros(4)) == gained_share(log, np.zeros(4)) == 0.0
    twice = log_of([2, 2, 1], [True, True, False])
    assert literal_reward(twice, weights) == pytest.approx(6 / 7, rel=1e-15)
    assert gained_share(twice, weights) == pytest.approx(0.6, rel=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_rewards_are_sums_over_pages(seed):
    """Eq. 2 with the crawls of the step for mu rho, and the same over all mu."""
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(size=12)
    stale, crawled = rng.random(12) < 0.4, rng.random(12) < 0.5
    pages = np.flatnonzero(crawled)
    log = log_of(pages, stale[pages])
    gained = sum(weights[i] * crawled[i] * stale[i] for i in range(12))
    spent = sum(weights[i] * crawled[i] for i in range(12))
    assert literal_reward(log, weights) == pytest.approx(gained / spent, rel=1e-12)
    assert gained_share(log, weights) == pytest.approx(gained / sum(weights), rel=1e-12)
    # It is what the crawls add to freshness.
    before, after = weights @ ~stale, weights @ ~(stale & ~crawled)
    assert gained_share(log, weights) == pytest.approx((after - before) / weights.sum(), rel=1e-9)


@pytest.mark.parametrize("crawls", range(1, 7))
def test_the_sure_bound_is_the_most_that_crawls_can_gain(crawls):
    weights = np.random.default_rng(crawls).lognormal(size=6)
    most = max(sum(weights[list(pages)]) for pages in combinations(range(6), crawls))
    assert sure_bound(weights, crawls) == pytest.approx(most / weights.sum(), rel=1e-12)
    assert sure_bound(np.zeros(6), crawls) == 1.0
