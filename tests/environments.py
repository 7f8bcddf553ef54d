"""Small environments of every family for tests, and ways to play and compare them."""

from __future__ import annotations

import traceback
from importlib.util import find_spec
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import crawl_envs

ROOT = Path(__file__).resolve().parents[1]
NCIS = "CrawlNCIS-v0"
HARMONIC = "CrawlHarmonic-v0"
OFFERS = "CrawlOffers-v1"
LONGEVITY = "CrawlLongevity-v0"
SMALL = {
    NCIS: {"num_pages": 6, "bandwidth": 6.0, "horizon": 2.0, "instance": "noisy"},
    HARMONIC: {"num_pages": 6, "bandwidth": 6.0, "horizon": 2.0},
    OFFERS: {"num_pages": 30, "bandwidth": 24.0, "horizon": 2.0},
    LONGEVITY: {"num_pages": 6, "bandwidth": 6.0, "horizon": 2.0, "signals": "noisy"},
    "CrawlTrace-v0": {"window": [100.0, 130.0]},
    "CrawlSites-v0": {"split": "garden-handbook", "num_pages": 20, "days": 10.0},
}
FORMS = {
    "page": {"action": "page"},
    "scores": {"action": "scores", "batch": 2},
    "refresh": {"action": "refresh"},
}
RATES = {"action": "rates"}
HIDDEN = {**RATES, "reveal": "importance", "bucket": 2.0}


def forms_of(name):
    """The forms of action that tests of every id try, with their arguments."""
    if name != OFFERS:
        hidden = {"hidden rates": HIDDEN} if name == HARMONIC else {}
        return {**FORMS, "rates": RATES, **hidden}
    return {"rates": RATES, **FORMS, "scores": {"action": "scores"}}


HAS_WINDOW = find_spec("pygame") is not None
"""Whether Gymnasium's checker can try all modes of rendering."""
EVERY_ID = pytest.mark.parametrize("name", list(crawl_envs.FAMILIES))
EVERY_ID_AND_FORM = pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name in crawl_envs.FAMILIES for form in forms_of(name)]
)
MODES = list(AutoresetMode)
EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=[mode.value for mode in MODES])
DELAYED = {"kind": "exponential", "mean": 0.5}
SLOW = {"kind": "exponential", "mean": 5.0}


def arguments(name, form=None):
    forms = forms_of(name)
    return {**SMALL.get(name, {}), **forms[form or next(iter(forms))]}


def bare(name=NCIS, **more):
    """The environment without Gymnasium's wrappers."""
    return gym.make(name, **{**SMALL.get(name, {}), **more}).unwrapped


def batch(num_envs, name=NCIS, **more):
    return gym.make_vec(name, num_envs=num_envs, **{**SMALL.get(name, {}), **more})


def actions_of(env, count, seed=0):
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


def play(env, actions):
    """Everything that steps return, up to the end of the episode."""
    steps = []
    for action in actions:
        steps.append(env.step(action))
        if np.any(steps[-1][3]):
            break
    return steps


def assert_same(one, other):
    """Equal values, bit for bit, in equal containers."""
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, yours in zip(one, other, strict=True):
            assert_same(mine, yours)
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert_same(one.tolist(), other.tolist())
    elif isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    else:
        assert type(one) is type(other)
        assert one == other


def assert_same_future(one, other, count=8, seed=3):
    """Two environments go on alike: steps, ledger, log, and the next episode."""
    actions = actions_of(one, count, seed)
    assert_same(play(one, actions), play(other, actions))
    assert one.ledger() == other.ledger()
    assert_same(one.last_log()._asdict(), other.last_log()._asdict())
    assert_same(one.rng().random(3), other.rng().random(3))
    assert_same(one.reset(), other.reset())
    assert_same(play(one, actions), play(other, actions))


def of_our_own(caught):
    """The error is raised in the suite, not in what it calls, and a line, up to an array in it."""
    place = Path(traceback.extract_tb(caught.value.__traceback__)[-1].filename)
    assert place.is_relative_to(ROOT), place
    assert ".venv" not in place.parts
    assert "\n" not in str(caught.value).partition("array(")[0]
