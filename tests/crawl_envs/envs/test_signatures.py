"""Signatures of the environments' classes, and what other libraries read of them."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pickle
import re
from functools import partial
from typing import get_args

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box
from gymnasium.spaces.utils import flatten_space
from gymnasium.vector.utils import batch_space, create_empty_array
from gymnasium.wrappers import TimeAwareObservation

import crawl_envs
from crawl_envs.envs.vector import FamilyVectorEnv
from tests.environments import (
    EVERY_ID,
    EVERY_ID_AND_FORM,
    NCIS,
    SMALL,
    arguments,
    assert_same,
    bare,
    batch,
)

EXTRAS = ("num_envs", "autoreset_mode", "copy", "render_mode", "max_episode_steps")


def classes(name):
    """The single and the vector class of an id."""
    module, single = crawl_envs.FAMILIES[name].split(":")
    imported = importlib.import_module(module)
    return getattr(imported, single), getattr(imported, single + "Vector")


def documented(single):
    """The keywords of the section Arguments, with their defaults."""
    section = re.search(r"## Arguments\n(.*?)\n## ", inspect.getdoc(single), re.DOTALL).group(1)
    keywords = {}
    for keyword, words in re.findall(r"``(\w+)``\s+\((\(\)|[^)]*)\)", section):
        try:
            keywords[keyword] = ast.literal_eval(words)
        except (ValueError, SyntaxError):  # an explanation of a value
            continue
    return keywords


# Signatures


@EVERY_ID
def test_a_constructor_lists_its_keywords(name):
    single, vector = classes(name)
    mine, ours = inspect.signature(single).parameters, inspect.signature(vector).parameters
    assert len(mine) > 10
    assert {keyword.kind for keyword in mine.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert all(keyword.annotation not in ("Any", keyword.empty) for keyword in mine.values())
    assert tuple(ours)[: len(EXTRAS)] == EXTRAS
    assert {**ours, **mine} == ours
    assert set(ours) - set(mine) == set(EXTRAS) - {"render_mode"}
    module = importlib.import_module(single.__module__)
    written = eval(mine["action"].annotation, vars(module))
    assert mine["action"].default in get_args(written)
    for extra in EXTRAS:
        assert f"    {extra}: " in FamilyVectorEnv.__doc__


@EVERY_ID
def test_every_keyword_is_documented_with_its_default(name):
    single, _ = classes(name)
    keywords = inspect.signature(single).parameters
    said = documented(single)
    assert set(said) == set(keywords)
    for keyword, default in said.items():
        assert keywords[keyword].default in (default, None), keyword


def test_a_subclass_with_a_constructor_of_its_own_shows_that():
    _, vector = classes(NCIS)

    class Own(vector):
        def __init__(self, lanes):
            super().__init__(lanes, num_pages=3)

    assert list(inspect.signature(Own).parameters) == ["lanes"]
    assert Own(2).num_envs == 2


@EVERY_ID
def test_an_argument_that_does_not_exist_is_a_type_error(name):
    single, vector = classes(name)
    for make in (single, vector, partial(gym.make, name), partial(gym.make_vec, name, num_envs=2)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
            make(frameskip=4)


# Classes


@EVERY_ID
def test_gymnasiums_classes_are_direct_bases(name):
    single, vector = classes(name)
    assert gym.Env in single.__bases__
    assert gym.vector.VectorEnv in vector.__bases__
    assert single.__name__ + "Vector" == vector.__name__ == vector.__qualname__
    assert vector.__module__ == single.__module__
    assert single.__name__ in vector.__doc__


@EVERY_ID
def test_classes_and_environments_are_pickled_and_copied(name):
    assert pickle.loads(pickle.dumps(classes(name))) == classes(name)
    for env in (gym.make(name, **arguments(name)), batch(2, name)):
        observation, _ = env.reset(seed=3)
        for twin in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
            assert twin.spec == env.spec
            assert_same(twin.reset(seed=3)[0], observation)


# Lengths of episodes


@EVERY_ID_AND_FORM
def test_the_specification_has_the_number_of_steps(name, form):
    env = gym.make(name, **arguments(name, form))
    env.reset(seed=0)
    steps, truncated = 0, False
    while not truncated:
        _, _, _, truncated, _ = env.step(env.action_space.sample())
        steps += 1
    assert env.spec.max_episode_steps == steps
    assert batch(2, name, **arguments(name, form)).spec.max_episode_steps == steps


@pytest.mark.parametrize("more", [{}, {"epoch": 0.5}, {"action": "page"}])
def test_epochs_are_counted_too(more):
    env = bare("CrawlHarmonic-v0", **more)
    assert env.spec.max_episode_steps == {"": 2, "epoch": 4, "action": 12}["".join(more)]


@EVERY_ID
def test_time_can_be_observed(name):
    env = TimeAwareObservation(
        gym.make(name, **arguments(name)), normalize_time=True, flatten=False
    )
    observation, _ = env.reset(seed=0)
    assert observation["time"] == 0.0
    truncated = False
    while not truncated:
        observation, _, _, truncated, _ = env.step(env.action_space.sample())
    assert observation["time"] == 1.0


@EVERY_ID
def test_environments_are_made_again_from_their_specification(name):
    env = gym.make(name, **arguments(name))
    written = EnvSpec.from_json(env.spec.to_json())
    again = gym.make(written)
    assert again.spec == env.spec
    assert_same(again.reset(seed=5), env.reset(seed=5))
    lanes = gym.make_vec(env.spec, num_envs=2)
    assert lanes.spec.max_episode_steps == env.spec.max_episode_steps
    assert gym.make_vec(lanes.spec).num_envs == 2
    assert gym.spec(name).max_episode_steps is None


def test_another_number_of_steps_is_refused_by_vectors_and_is_a_limit_of_single_ones():
    env = gym.make(NCIS, max_episode_steps=3, **SMALL[NCIS])
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]
    assert env.spec.max_episode_steps == 3
    with pytest.raises(ValueError, match=r"max_episode_steps must be None or 12, .*, got 3"):
        gym.make_vec(NCIS, max_episode_steps=3, **SMALL[NCIS])


def test_a_length_that_is_not_known_is_none():
    assert gym.make(NCIS, bandwidth=5.0, horizon=0.125).spec.max_episode_steps is None


# Observation spaces


@EVERY_ID
def test_observation_spaces_print_in_a_line(name):
    for env in (gym.make(name, **arguments(name)), batch(64, name)):
        space = env.observation_space
        assert str(space).count("\n") == 0
        assert len(str(space)) < 300
        assert str(space.shape) in str(space)
        assert str(pickle.loads(pickle.dumps(space))) == str(copy.deepcopy(space)) == str(space)


def test_the_bounds_of_a_page_are_printed():
    shown = "Box([0 0 -1 0 0 0 0], [2 1000 1 1e+06 1e+06 1 1e+06], {}, float32)"
    assert str(bare().observation_space) == shown.format("(6, 7)")
    assert str(batch(3).observation_space) == shown.format("(3, 6, 7)")


def test_a_short_print_changes_nothing_else():
    space = bare().observation_space
    plain = Box(space.low, space.high, dtype=np.float32)
    assert type(space) is Box
    assert space == plain
    assert batch(2).observation_space == batch_space(plain, 2) == batch_space(space, 2)
    assert flatten_space(space) == flatten_space(plain)
    assert create_empty_array(space, 2).shape == (2, 6, 7)
    changed = Box(space.low, space.high + 1.0, dtype=np.float32)
    assert space != changed


# Rendering


@EVERY_ID
def test_vectors_render_a_text_per_lane(name):
    lanes = batch(2, name, render_mode="ansi")
    lanes.reset(seed=4)
    texts = lanes.render()
    assert isinstance(texts, tuple)
    for lane, words in enumerate(texts):
        one = bare(name, render_mode="ansi")
        one.reset(seed=4 + lane)
        assert words == one.render()


def test_vectors_render_a_picture_per_lane():
    lanes = batch(2, render_mode="rgb_array")
    singles = [bare(render_mode="rgb_array") for _ in range(2)]
    lanes.reset(seed=4)
    for lane, one in enumerate(singles):
        one.reset(seed=4 + lane)
    for page in range(3):
        pictures = lanes.render()
        assert [picture.shape for picture in pictures] == [(600, 800, 3)] * 2
        for picture, one in zip(pictures, singles, strict=True):
            assert np.array_equal(picture, one.render())
            one.step(page)
        lanes.step(np.full(2, page))
    assert not np.array_equal(*pictures)


def test_vectors_without_a_render_mode_warn():
    lanes = batch(2)
    lanes.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert lanes.render() is None


def test_metadata_say_how_vectors_are_rendered():
    metadata = batch(2, render_mode="rgb_array").metadata
    assert metadata["render_fps"] == 10
    assert metadata["render_modes"] == ["ansi", "rgb_array"]
