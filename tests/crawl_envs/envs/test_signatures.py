"""Signatures of the environments' classes, and what other libraries read of them."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import json
import pickle
import re
import warnings
from array import array
from collections import UserList, deque
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import get_args

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box
from gymnasium.spaces.utils import flatten_space
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, create_empty_array

import crawl_envs
from crawl_envs.envs.vector import FamilyVectorEnv
from tests.environments import (
    EVERY_ID,
    NCIS,
    SMALL,
    arguments,
    assert_same,
    bare,
    batch,
    play,
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
    assert list(mine) == list(inspect.signature(single.__init__).parameters)[1:]
    assert len(mine) > 10
    assert {keyword.kind for keyword in mine.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert all(keyword.annotation not in ("Any", keyword.empty) for keyword in mine.values())
    assert tuple(ours) == (*EXTRAS, "arguments")
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


@pytest.mark.parametrize("more", [{}, {"epoch": 0.5}, {"action": "page"}])
def test_epochs_are_counted_too(more):
    env = bare("CrawlHarmonic-v0", **more)
    assert env.spec.max_episode_steps == {"": 2, "epoch": 4, "action": 12}["".join(more)]


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


@pytest.fixture
def limited():
    entry = "crawl_envs.families.ncis:CrawlNCIS"
    given = {"entry_point": entry, "vector_entry_point": f"{entry}Vector"}
    gym.register("limited-test-v0", **given, kwargs=SMALL[NCIS], max_episode_steps=3)
    yield "limited-test-v0"
    del gym.registry["limited-test-v0"]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("form", ["page", "rates"])
def test_a_limit_of_steps_is_obeyed_by_single_and_vector_environments_alike(limited, mode, form):
    """The limit is of the id, or given; the lanes are those of SyncVectorEnv step by step."""
    given = {"action": form, **({"epoch": 0.25} if form == "rates" else {})}
    for name, more in ((limited, {}), (NCIS, {**SMALL[NCIS], "max_episode_steps": 3})):
        env = gym.make(name, **more, **given)
        assert env.spec.max_episode_steps == 3
        vector_kwargs = {"autoreset_mode": mode}
        theirs = gym.make_vec(
            name, 2, vectorization_mode="sync", vector_kwargs=vector_kwargs, **more, **given
        )
        ours = gym.make_vec(name, 2, autoreset_mode=mode, **more, **given)
        assert ours.spec.max_episode_steps == 3
        results = [[], []]
        for lanes, result in zip((ours, theirs), results, strict=True):
            lanes.reset(seed=3)
            action = np.zeros(lanes.action_space.shape, lanes.action_space.dtype)
            for _ in range(8):
                shown, rewards, _, truncated, info = lanes.step(action)
                result.append((shown, rewards, truncated, set(info) & {"final_obs"}))
        assert_same(*results)
        assert [bool(row[2][0]) for row in results[0]].count(True) == 2


def test_a_vector_refuses_a_limit_longer_than_the_horizon(limited):
    with pytest.raises(ValueError, match=r"at most 12, .* horizon .*, got 13"):
        batch(2, max_episode_steps=13)
    with pytest.raises(ValueError, match="must be an integer >= 1, got 0"):
        batch(2, max_episode_steps=0)
    with pytest.raises(ValueError, match=r"at most 2, .*, got 3"):
        gym.make_vec(limited, horizon=0.4)


@pytest.mark.parametrize(("limit", "steps"), [(2, 2), (5, 5), (12, 12), (-1, 12)])
def test_the_limit_of_a_vector_replaces_that_of_its_id(limited, limit, steps):
    lanes = gym.make_vec(limited, 2, max_episode_steps=limit)
    assert lanes.spec.max_episode_steps == steps
    lanes.reset(seed=0)
    truncated = [lanes.step(np.zeros(2, np.int64))[3].all() for _ in range(steps)]
    assert truncated == [False] * (steps - 1) + [True]


def test_a_specification_with_a_limit_longer_than_the_horizon_is_refused():
    env = bare()
    with pytest.raises(ValueError, match=r"at most 12, .*, got 13"):
        env.spec = replace(env.spec, max_episode_steps=13)
    env.spec = replace(env.spec, max_episode_steps=5)
    assert env.spec.max_episode_steps == 5


@pytest.mark.parametrize(("limit", "steps"), [(5, 5), (13, 12)])
def test_a_time_limit_acts_only_before_the_horizon(limit, steps):
    env = gym.make(NCIS, max_episode_steps=limit, **SMALL[NCIS])
    env.reset(seed=0)
    assert len(play(env, [0] * 13)) == steps


@pytest.mark.parametrize("build", [gym.make, gym.make_vec])
def test_arguments_of_numpy_go_through_json(build):
    steps = np.array([[1.0, 9.0], [2.0, 3.0]])
    given = {"num_pages": np.int64(4), "bandwidth": np.float32(4.0), "bandwidth_steps": steps}
    env = build(NCIS, resample=np.bool_(True), **given)
    plain = {"num_pages": 4, "bandwidth": 4.0, "bandwidth_steps": steps.tolist()}
    again = build(EnvSpec.from_json(env.spec.to_json()))
    assert_same(again.reset(seed=5), build(NCIS, **plain).reset(seed=5))
    for kind in (tuple, list, np.array):
        pairs = kind([kind([1.0, 9.0]), kind([2.0, 3.0])])
        env = build(NCIS, **{**plain, "bandwidth_steps": pairs})
        env.reset(seed=5)
        assert env.unwrapped.lanes.instance(0).bandwidth_steps == ((1.0, 9.0), (2.0, 3.0))
    table = build("CrawlHarmonic-v0", num_pages=4, objective=np.array([0.0, 1.0, 1.5]))
    assert table.spec.to_json()


class Listed(UserList):
    """A sequence that is no list, as those of libraries for settings."""


@pytest.mark.parametrize("build", [gym.make, gym.make_vec])
@pytest.mark.parametrize("table", [Listed, pd.Series, deque, partial(array, "d")])
def test_lists_and_numbers_of_other_libraries_go_through_json(build, table):
    delay = MappingProxyType({"kind": "constant", "mean": Fraction(1, 4), "unit": "time"})
    steps = Listed([Listed([0.5, 4.0])])
    given = {"objective": table([0.0, 1.0, 1.5]), "delay": delay, "bandwidth_steps": steps}
    env = build(NCIS, num_pages=4, bandwidth=Fraction(5, 2), **given)
    written = json.loads(env.spec.to_json())["kwargs"]
    assert written["objective"] == [0.0, 1.0, 1.5]
    assert written["delay"] == {"kind": "constant", "mean": 0.25, "unit": "time"}
    assert (written["bandwidth"], written["bandwidth_steps"]) == (2.5, [[0.5, 4.0]])
    again = build(EnvSpec.from_json(env.spec.to_json()))
    assert_same(again.reset(seed=5), env.reset(seed=5))


def test_autoreset_modes_go_through_json():
    env = gym.make_vec(NCIS, autoreset_mode=AutoresetMode.SAME_STEP)
    assert json.loads(env.spec.to_json())["kwargs"]["autoreset_mode"] == "SameStep"


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


def test_vectors_without_a_render_mode_warn():
    lanes = batch(2)
    lanes.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert lanes.render() is None


def test_metadata_say_how_vectors_are_rendered():
    metadata = batch(2, render_mode="rgb_array").metadata
    assert metadata["render_fps"] == 10
    assert metadata["render_modes"] == ["ansi", "rgb_array"]


# What frameworks expect: silent checkers and flat infos


@pytest.mark.parametrize("name", list(crawl_envs.PRESETS))
def test_checkers_are_silent(name):
    env_checker = pytest.importorskip("stable_baselines3.common.env_checker")
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
