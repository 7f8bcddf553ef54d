"""Observations on a scale of logarithms."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box
from gymnasium.wrappers.vector import VectorizeTransformObservation

from crawl_envs import Instance
from crawl_envs.envs.wrappers import ScaledObservation
from tests.environments import EVERY_ID, HARMONIC, LONGEVITY, NCIS, arguments, assert_same, batch


@EVERY_ID
@pytest.mark.parametrize("form", ["table", "flat", "dict", "flat_dict"])
def test_scaled_observations_lie_in_their_space(name, form):
    env = ScaledObservation(gym.make(name, **arguments(name), observation=form))
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    over = False
    while not over:
        assert env.observation_space.contains(observation)
        table = observation["observation"] if "dict" in form else observation
        assert np.all(np.abs(table) <= 1.0)
        observation, _, _, over, _ = env.step(env.action_space.sample())


def test_values_are_on_a_scale_of_logarithms():
    pages = Instance([1e6, 1.0, 0.0], [0.5, 2e-6, 1e-6], bandwidth=3.0)
    env = ScaledObservation(gym.make(NCIS, num_pages=3, bandwidth=3.0, horizon=0.9))
    shown, _ = env.reset(seed=0, options={"instance": pages})
    raw = env.unwrapped.current_observation()
    expected = np.log([1e8 + 1, 101, 1]) / np.log(1e8 + 1)
    np.testing.assert_allclose(shown[:, 3], expected, rtol=1e-6)
    assert len(set(shown[:, 4])) == 3, "rates of 1e-6 and 2e-6 are distinct"
    for column in (0, 2, 5):  # elapsed up to .9, changed, recall
        np.testing.assert_array_equal(shown[:, column], raw[:, column])


def test_ages_without_a_copy_remain_negative():
    env = ScaledObservation(gym.make(LONGEVITY, **arguments(LONGEVITY)))
    shown, _ = env.reset(seed=0)
    column = env.unwrapped.features.index("age_1")
    horizon = env.unwrapped.observation_space.high[0, column]
    np.testing.assert_allclose(shown[1, column], -np.log(101) / np.log(100 * horizon + 1), 1e-6)


def test_lanes_and_specifications_have_the_same_scale():
    env = ScaledObservation(gym.make(HARMONIC, **arguments(HARMONIC)))
    lanes = VectorizeTransformObservation(
        batch(2, HARMONIC, **arguments(HARMONIC)), ScaledObservation
    )
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    shown, _ = env.reset(seed=1)
    assert_same(lanes.reset(seed=0)[0][1], shown)
    assert_same(again.reset(seed=1)[0], shown)


def test_other_spaces_are_refused():
    env = gym.Env()
    env.observation_space = Box(-np.inf, np.inf, (3,))
    with pytest.raises(ValueError, match="env must have observations of table or flat form"):
        ScaledObservation(env)
