"""The window of the render mode ``human``, and recorded videos, which need the extra ``video``."""

import copy
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

from tests.environments import NCIS, SMALL, bare, batch


@pytest.fixture
def pygame():
    return pytest.importorskip("pygame")


def window_of(pygame):
    """The pixels of the window, (H, W, 3)."""
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


def test_human_mode_shows_every_reset_and_step(pygame):
    env = gym.make(NCIS, render_mode="human", **SMALL[NCIS])
    env.unwrapped.metadata = {**env.metadata, "render_fps": 1000}
    same = bare(render_mode="rgb_array")
    env.reset(seed=0)
    same.reset(seed=0)
    for action in range(4):
        np.testing.assert_array_equal(window_of(pygame), same.render())
        env.step(action)
        same.step(action)
    assert env.render() is None
    assert env.unwrapped.render_mode == "human"
    env.close()
    env.close()
    assert not pygame.display.get_init()


def test_a_copy_of_an_environment_with_a_window_has_its_own(pygame):
    env = bare(render_mode="human")
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    twin.step(1)
    twin.close()
    env.close()


def test_frames_are_shown_at_the_rate_of_the_metadata(pygame, monkeypatch):
    env = bare(render_mode="human")
    env.reset(seed=0)
    rates = []
    clock = type("Clock", (), {"tick": lambda self, rate: rates.append(rate)})()
    monkeypatch.setattr(env._window, "_clock", clock)
    env.step(0)
    env.close()
    assert rates == [env.metadata["render_fps"]] == [10]


def test_a_missing_pygame_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = bare(render_mode="human")
    with pytest.raises(DependencyNotInstalled, match=r"pygame.*crawl-envs\[video\]"):
        env.reset(seed=0)


def test_vectors_have_no_window():
    with pytest.raises(ValueError, match="one of ansi, rgb_array, or None, got 'human'"):
        batch(2, render_mode="human")


@pytest.mark.filterwarnings("ignore")  # of the libraries that encode it
def test_episodes_are_recorded(tmp_path):
    pytest.importorskip("moviepy")
    env = gym.make(NCIS, render_mode="rgb_array", **SMALL[NCIS])
    env = gym.wrappers.RecordVideo(env, str(tmp_path), disable_logger=True)
    env.reset(seed=0)
    truncated = False
    while not truncated:
        truncated = env.step(0)[3]
    env.close()
    (file,) = tmp_path.iterdir()
    assert file.suffix == ".mp4"
    assert file.stat().st_size > 1000


@pytest.mark.filterwarnings("ignore")
def test_lanes_are_recorded(tmp_path):
    pytest.importorskip("moviepy")
    if not hasattr(gym.wrappers.vector, "RecordVideo"):
        pytest.skip("this version of Gymnasium records no vector environments")
    env = batch(3, render_mode="rgb_array")
    env = gym.wrappers.vector.RecordVideo(
        env, str(tmp_path), step_trigger=lambda step: step == 0, video_length=3
    )
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.zeros(3, np.int64))
    env.close()
    assert any(tmp_path.iterdir())
