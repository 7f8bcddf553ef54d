"""Actions that rounding moves past the ends of their space."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RescaleAction

from tests.environments import HARMONIC, LONGEVITY, NCIS, OFFERS, SMALL, assert_same, bare, batch

CASES = [
    *((NCIS, form) for form in ("scores", "shares")),
    *((OFFERS, form) for form in ("scores", "shares")),
    (HARMONIC, "shares"),
    (LONGEVITY, "scores"),
]


@pytest.mark.filterwarnings("ignore:.*precision lowered")
@pytest.mark.parametrize(("name", "form"), CASES)
def test_every_action_of_a_rescaled_space_is_played(name, form):
    for low, high in ((0.2, 0.7), (-1 / 3, 1 / 7), (0.9, 1.0), (0.0, 255.0), (2.0, 2.6)):
        env = RescaleAction(gym.make(name, **{**SMALL[name], "action": form}), low, high)
        env.reset(seed=0)
        for action in (env.action_space.low, env.action_space.high):
            env.step(action)


@pytest.mark.parametrize(("name", "form"), CASES)
@pytest.mark.parametrize("build", [bare, lambda name, **more: batch(1, name, **more)])
def test_rounding_is_moved_to_the_end_and_no_more(name, form, build):
    env, exact = (build(name, action=form, resample=False) for _ in range(2))
    for one in (env, exact):
        one.reset(seed=0)
    low = env.action_space.low.astype(np.float64)
    assert_same(env.step(low - 4e-7)[:3], exact.step(low)[:3])
    with pytest.raises(ValueError, match=rf"action must be {form} in \[-1, 1\]"):
        env.step(low - 3e-6)
