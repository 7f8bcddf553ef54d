"""What frameworks expect of ids: silent checkers, flat infos, and errors they can catch."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common import env_checker

import crawl_envs
from tests.environments import EVERY_ID, bare, batch


@pytest.mark.parametrize("name", list(crawl_envs.PRESETS))
def test_checkers_are_silent(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(name).unwrapped, skip_render_check=True)
        env_checker.check_env(gym.make(name).unwrapped)


@EVERY_ID
def test_infos_have_dtypes(name):
    """TorchRL reads the dtype of every entry of an info."""
    env = bare(name)
    for info in (env.reset(seed=0)[1], env.step(env.action_space.sample())[-1]):
        assert all(value.dtype != object for value in info.values())


@EVERY_ID
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_infos_are_flat_and_alike(name, mode):
    env, lanes = bare(name), batch(2, name, autoreset_mode=mode)
    for one in (env, lanes):
        _, first = one.reset(seed=0)
        _, _, _, over, last = one.step(one.action_space.sample())
        while not np.any(over):
            _, _, _, over, last = one.step(one.action_space.sample())
        ended = last.pop("final_info", last)
        finals = {"final_obs", "_final_obs", "_final_info"}
        for info in (last, ended):
            kinds = [
                {key: np.asarray(value).dtype for key, value in part.items() if key not in finals}
                for part in (first, info)
            ]
            assert kinds[0] == kinds[1]
        assert not any(isinstance(value, dict) for value in last.values())
