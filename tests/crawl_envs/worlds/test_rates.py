"""Actions that are rates for an epoch: episodes, what is logged, lanes, states and copies."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from tests.environments import EVERY_ID, HARMONIC, assert_same, bare, batch
from tests.worlds import rated_of

RATED = {"action": "rates", "horizon": 6.0, "bandwidth": 4.0}


def rated(**more):
    return bare(HARMONIC, **{**RATED, **more})


def rated_batch(num_envs, **more):
    return batch(num_envs, HARMONIC, **{**RATED, **more})


@EVERY_ID
@pytest.mark.parametrize("bandwidth", [None, 3.0])
def test_shares_are_rates_in_units_of_the_bandwidth(name, bandwidth):
    """Of the current bandwidth, also that of a pinned instance; probabilities have no unit."""
    shares, rates = bare(name, action="shares"), bare(name, action="rates")
    shares.reset(seed=0)
    options = None
    if bandwidth is not None:
        options = {"instance": copy.copy(shares.instance)}
        object.__setattr__(options["instance"], "bandwidth", bandwidth)
    assert_same(shares.reset(seed=0, options=options), rates.reset(seed=0, options=options))
    instance, low = shares.instance, shares.action_space.low
    with pytest.raises(ValueError, match="shares in"):
        shares.step(low - 0.5)
    for action in (low, shares.action_space.sample()):
        share = (action.astype(float) + 1.0) / 2.0
        wanted = np.where(instance.complete, share, share * instance.bandwidth)
        assert_same(shares.step(action), rates.step(wanted))


def actions_of(env, count, seed=0):
    """Rates that ask for more and for less than the budget, some of them 0."""
    rng = np.random.default_rng(seed)
    shape = env.action_space.shape
    return [np.maximum(rng.normal(0.4, 0.6, shape), 0.0) for _ in range(count)]


# Episodes


@pytest.mark.parametrize(
    ("horizon", "epoch", "epochs"),
    [(6.0, 1.0, 6), (6.0, 2.0, 3), (6.0, 0.1, 60), (1.0, 1.0, 1), (2.5, 1.0, 2), (6.0, 0.7, 8)],
)
def test_epochs_end_on_their_grid(horizon, epoch, epochs):
    """As many as fit into the horizon, which may miss the last by rounding."""
    env = rated(horizon=horizon, epoch=epoch)
    env.reset(seed=0)
    assert env.num_slots() == epochs
    assert env.epoch == epoch
    for number in range(1, epochs + 1):
        *_, terminated, truncated, _ = env.step(np.full(6, 0.5))
        assert env.tracker().time == pytest.approx(number * epoch, rel=1e-12)
        assert env.ledger().time == env.tracker().time
        assert not terminated
        assert truncated == (number == epochs)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(np.full(6, 0.5))


def test_a_state_of_grown_logs_moves_to_a_new_environment():
    env, other = (
        rated_of(Instance([1.0, 1.0], 1.0, 0.5, 90.0, bandwidth=1e4), highest=1e4, penalty="binary")
        for _ in range(2)
    )
    env.reset(seed=0)
    env.step(np.array([900.0, 100.0]))
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    assert other.ledger().crawls > 900
    action = np.array([0.0, 2000.0])
    assert_same(env.step(action), other.step(action))
    assert_same(env.last_log()._asdict(), other.last_log()._asdict())
