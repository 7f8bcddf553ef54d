"""What training loops do with environments: curricula, buffers, ends of episodes, pinned pages."""

import copy
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeAwareObservation, TimeLimit

from crawl_envs import instances
from crawl_envs.families.ncis import CrawlNCIS
from tests.environments import (
    EVERY_ID,
    HARMONIC,
    LONGEVITY,
    NCIS,
    OFFERS,
    SMALL,
    arguments,
    assert_same,
    bare,
    batch,
)

# Curricula


@pytest.mark.parametrize(
    ("name", "argument"),
    [(OFFERS, "first_day"), (OFFERS, "bandwidth"), (HARMONIC, "epoch"), (LONGEVITY, "signals")],
)
def test_arguments_cannot_be_set(name, argument):
    single, core = gym.make(name, **arguments(name)), bare(name)
    lanes = [batch(2, name), batch(2, name, vectorization_mode="sync")]
    setters = [one.set_attr for one in lanes] + [single.set_wrapper_attr, core.__setattr__]
    for set_attribute in [*setters, lanes[0].unwrapped.__setattr__]:
        with pytest.raises(AttributeError, match=rf"'{argument}'.*gymnasium\.make_vec"):
            set_attribute(argument, 3)


def test_attributes_of_a_subclass_can_be_set():
    class Weighted(CrawlNCIS):
        def __init__(self, weight, horizon=2.0, **given):
            super().__init__(horizon=horizon, **given)
            self.weight, self.horizon = weight, horizon

    env = Weighted(2.0, num_pages=3)
    env.reset(seed=0)
    env.weight, env.horizon, env.note = 3.0, 4.0, "mine"
    env.set_wrapper_attr("weight", 5.0)
    assert (env.weight, env.horizon, env.note) == (5.0, 4.0, "mine")
    with pytest.raises(AttributeError, match="bandwidth"):
        env.bandwidth = 5.0


# Buffers


@pytest.mark.parametrize("form", ["table", "dict"])
def test_the_buffer_is_read_only(form):
    env, twin = (batch(2, HARMONIC, observation=form, copy=each) for each in (False, True))
    shown, _ = env.reset(seed=0)
    mine = shown["observation"] if form == "dict" else shown
    with pytest.raises(ValueError, match="read-only"):
        mine[:, :, -1] *= 0.5
    copied, _ = twin.reset(seed=0)
    (copied["observation"] if form == "dict" else copied)[...] = 7.0
    actions, again = np.ones((2, 6)), copy.deepcopy(env)
    expected = twin.step(actions)[0]
    assert_same(env.step(actions)[0], expected)
    assert_same(again.step(actions)[0], expected)


# Ends of episodes


@EVERY_ID
def test_the_ledger_of_the_finished_episode(name):
    env, lanes = bare(name), batch(2, name, autoreset_mode="SameStep").unwrapped
    env.reset(seed=1)
    lanes.reset(seed=[1, 1])
    with pytest.raises(gym.error.ResetNeeded, match="lane 1 has finished no episode; step on"):
        lanes.ledger(1, finished=True)
    over = False
    env.action_space.seed(0)
    while not over:
        action = env.action_space.sample()
        _, _, _, over, _ = env.step(action)
        *_, ended, _ = lanes.step(np.stack([action, action]))
        assert np.all(ended == over)
    totals = env.ledger()
    assert totals.time > 0.0
    assert env.ledger(finished=True) == totals
    assert lanes.ledger(1, finished=True) == totals
    assert lanes.call("ledger", finished=True)[1] == totals
    assert lanes.ledger(1) != totals
    env.reset()
    assert env.ledger(finished=True) == totals
    state = env.get_state()
    env.step(action)
    env.reset()
    assert env.ledger(finished=True) != totals
    env.set_state(state)
    assert env.ledger(finished=True) == totals


def test_lanes_of_unequal_length_have_finished_ledgers_once_all_have_ended():
    sites = {
        "split": "garden-handbook",
        "num_pages": 20,
        "days": 10.0,
        "days_per_crawl": (2.0, 8.0),
    }
    lanes = gym.make_vec("CrawlSites-v0", 2, **sites).unwrapped
    lanes.reset(seed=0)
    ended = np.zeros(2, np.bool_)
    while not ended.any():
        *_, ended, _ = lanes.step(np.zeros(2, np.int64))
    first, other = np.argsort(~ended)
    assert not ended[other]
    assert lanes.ledger(first, finished=True).time > 0.0
    with pytest.raises(gym.error.ResetNeeded, match=f"lane {other} .* ledgers of other lanes"):
        lanes.call("ledger", finished=True)
    while not ended[other]:
        *_, ended, _ = lanes.step(np.zeros(2, np.int64))
    assert all(ledger.time > 0.0 for ledger in lanes.call("ledger", finished=True))


@EVERY_ID
def test_names_in_infos_are_plain_words(name):
    """Formats of files take other signs for paths."""
    for env in (bare(name, crawl_cost=0.5), batch(2, name, crawl_cost=0.5)):
        assert all(key.isidentifier() for key in env.reset(seed=0)[1])


# Pinned pages


def test_a_reset_warns_of_an_instance_with_more_steps():
    given = {"num_pages": 4, "bandwidth": 2.0, "horizon": 6.0, "instance": "noisy"}
    env = TimeAwareObservation(gym.make(NCIS, observation="flat", **given))
    slow, fast = (
        instances.make("noisy", num_pages=4, bandwidth=rate, seed=3) for rate in (1.0, 5.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(seed=0, options={"instance": slow})
        direct = CrawlNCIS(**given)
        direct.reset(seed=0, options={"instance": fast})
    with pytest.warns(UserWarning, match=r"30 steps, env\.spec 12: .*bandwidth=5"):
        env.reset(seed=0, options={"instance": fast})
    limited = gym.make(TimeLimit(gym.make(NCIS, **SMALL[NCIS]), 7).spec)
    six = instances.make("noisy", num_pages=6, bandwidth=6.0, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limited.reset(options={"instance": six})
