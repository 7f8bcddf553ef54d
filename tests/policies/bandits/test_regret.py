"""Regret grows as the square root of time, but for the exploration that never ends."""

import math

import numpy as np
import pytest

from policies.bandits import (
    Exp3Bandit,
    Exp3IXBandit,
    Exp3PlusPlusBandit,
    bernoulli_regret,
    growth,
)

HORIZONS = (1_000, 10_000, 100_000, 1_000_000)
NUM_ARMS = 5
MEANS = np.array([0.5, 0.45, 0.4, 0.4, 0.4])
LEARNERS = {
    "exp3 falling": lambda horizon: Exp3Bandit(NUM_ARMS, gamma=None),
    "exp3 of the horizon": lambda horizon: Exp3Bandit(
        NUM_ARMS, gamma=math.sqrt(NUM_ARMS * math.log(NUM_ARMS) / ((math.e - 1) * horizon))
    ),
    "exp3-ix": lambda horizon: Exp3IXBandit(NUM_ARMS),
    "exp3++": lambda horizon: Exp3PlusPlusBandit(NUM_ARMS),
}


def hardest_regret(make):
    """Mean regret where the gap fits the horizon, so that nobody can tell the arms any sooner."""
    regrets = []
    for horizon in HORIZONS:
        means = np.full(NUM_ARMS, 0.5 - 2.0 * np.sqrt(NUM_ARMS / horizon))
        means[0] = 0.5
        runs = 4 if horizon == HORIZONS[-1] else 20
        regret = bernoulli_regret(lambda h=horizon: make(h), means, [horizon], runs=runs)
        regrets.append(regret.mean())
    return np.array(regrets)


@pytest.mark.parametrize("name", LEARNERS)
def test_regret_is_of_the_order_of_the_square_root(name):
    regret = hardest_regret(LEARNERS[name])
    assert 0.45 < growth(HORIZONS, regret) <= 0.55
    # The bound of Auer et al., Corollary 3.2; the others' are of its order.
    bound = 2.0 * np.sqrt((np.e - 1.0) * np.array(HORIZONS) * NUM_ARMS * np.log(NUM_ARMS))
    assert np.all(regret < bound)


LARGE_GAP = np.array([0.7, 0.5, 0.5, 0.5, 0.5])
"""Arms that are told apart after K / gap^2 = 125 rounds."""


@pytest.mark.parametrize(
    ("name", "means", "ends", "runs"),
    [
        ("exp3 falling", MEANS, HORIZONS, 4),
        ("exp3++", MEANS, HORIZONS, 4),
        ("exp3-ix", MEANS, HORIZONS[1:], 8),  # before K / gap^2 = 2,000 rounds nobody can know
        *((name, LARGE_GAP, HORIZONS, 4) for name in ("exp3 falling", "exp3-ix", "exp3++")),
    ],
)
def test_regret_on_fixed_arms_grows_no_faster(name, means, ends, runs):
    regret = bernoulli_regret(lambda: LEARNERS[name](0), means, ends, runs=runs).mean(axis=0)
    assert growth(ends, regret) <= 0.55


def test_the_gamma_of_the_paper_has_linear_regret():
    """It plays at random in a tenth of all rounds: that costs .1 times the mean gap, .07."""
    ends = [500_000, 1_000_000]
    regret = bernoulli_regret(lambda: Exp3Bandit(NUM_ARMS), MEANS, ends, runs=8).mean(axis=0)
    assert growth(ends, regret) > 0.9
    assert regret[1] - regret[0] == pytest.approx(0.1 * 0.07 * 500_000, rel=0.03)
    falling = bernoulli_regret(lambda: Exp3Bandit(NUM_ARMS, gamma=None), MEANS, ends, runs=8)
    assert falling.mean(axis=0)[1] < 0.2 * regret[1]


def test_regret_is_repeated_from_its_seed_and_read_along_one_run():
    def of(horizons, seed=3):
        return bernoulli_regret(lambda: Exp3Bandit(5), MEANS, horizons, runs=3, seed=seed)

    both = of([700, 80_000])
    assert np.array_equal(both, of([700, 80_000]))
    assert np.array_equal(both[:, 0], of([700])[:, 0])
    assert not np.array_equal(both, of([700, 80_000], seed=4))
    assert np.all(np.diff(both, axis=1) > 0.0)


def test_growth_of_known_curves():
    ends = np.array(HORIZONS)
    assert growth(HORIZONS, 3.0 * ends**0.5) == pytest.approx(0.5, abs=1e-12)
    assert growth(HORIZONS, 0.1 * ends) == pytest.approx(1.0, abs=1e-12)
