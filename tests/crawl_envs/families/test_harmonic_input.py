"""Errors of ``CrawlHarmonic-v0`` for bad input: every argument, actions, resets."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from tests.crawl_envs.test_bad_input import complains
from tests.environments import HARMONIC, assert_same, bare

RATED = {"num_pages": 8, "bandwidth": 6.0, "horizon": 12.0}

BAD_ARGUMENTS = {
    "a step at time 0": ({"bandwidth_steps": [(0.0, 2.0)]}, "bandwidth_steps", "0.0"),
    "a delay without a mean": ({"delay": {"kind": "constant"}}, "delay", "mean"),
    "no table": ({"objective": [0.0, 1.0, 3.0]}, "objective", "concave"),
    "one source of two": ({"instance": "sources", "num_sources": 1}, "num_sources", "1"),
    "epochs of slots": ({"action": "page", "epoch": 2.0}, "epoch", "2.0", "'page'"),
    "a bucket of slots": ({"action": "scores", "bucket": 3.0}, "bucket", "3.0", "'scores'"),
    "an error of slots": ({"action": "page", "overspend": "error"}, "overspend", "'error'"),
    "probes of rates": ({"probe": True}, "probe", "True", "'rates'"),
    "probes, yes": ({"probe": "yes"}, "probe", "'yes'"),
    "batches of rates": ({"batch": 3}, "batch", "3", "'rates'"),
    "a file that is none": ({"instance": "no-such-file.parquet"}, "no-such-file.parquet"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_arguments(case):
    given, *words = BAD_ARGUMENTS[case]
    complains(lambda: gym.make(HARMONIC, **given), *words)


def test_a_horizon_without_an_epoch():
    env = gym.make(HARMONIC, horizon=0.75)
    complains(lambda: env.reset(seed=0), "horizon", "0.75", "epoch", "1.0")
    endless = gym.make(HARMONIC, epoch=1e-12, horizon=1e6)
    complains(lambda: endless.reset(seed=0), "horizon", "epoch")
    slow = gym.make(HARMONIC, action="page", bandwidth=0.01)
    complains(lambda: slow.reset(seed=0), "horizon", "0.01")


BAD_ACTIONS = {
    "too few": np.full(7, 0.1),
    "a table": np.full((8, 1), 0.1),
    "below 0": np.array([0.1] * 7 + [-1e-9]),
    "not a number": np.array([0.1] * 7 + [np.nan]),
    "endless": np.array([0.1] * 7 + [np.inf]),
    "words": np.array(list("abcdefgh")),
    "truths": np.ones(8, bool),
    "a page": 3,
    "nothing": None,
    "ragged": [[0.1], [0.1, 0.2]],
    "complex": np.full(8, 0.1j),
}


@pytest.mark.parametrize("case", BAD_ACTIONS)
def test_an_action_outside_its_space_changes_nothing(case):
    envs = [bare(HARMONIC, **RATED) for _ in range(2)]
    good = np.full(8, 0.1)
    for env in envs:
        env.reset(seed=0)
        env.step(good)
    complains(lambda: envs[0].step(BAD_ACTIONS[case]), "action")
    for _ in range(3):
        assert_same(envs[0].step(good), envs[1].step(good))
    assert envs[0].ledger() == envs[1].ledger()


@pytest.mark.parametrize("overspend", ["scale", "error"])
def test_rates_beyond_all_bounds(overspend):
    """Where their sum is not finite, they cannot be scaled down, and something must be said."""
    env = bare(HARMONIC, overspend=overspend, instance="uniform", **RATED)
    env.reset(seed=0)
    complains(lambda: env.step(np.full(8, 1e308)), "action")


def test_resets():
    env = bare(HARMONIC, **RATED)
    other = Instance(np.ones(3), 1.0, bandwidth=1.0)
    complains(lambda: env.reset(options={"instance": other}), "instance", "8 pages", "3")
    two = Instance(np.ones(8), 1.0, np.full((2, 8), 0.5), bandwidth=1.0)
    complains(lambda: env.reset(options={"instance": two}), "1 sources", "2")
    many = Instance(np.ones(8), 1e9, bandwidth=1.0)
    complains(lambda: env.reset(options={"instance": many}), "change_rate", "1e+09")
    complains(lambda: env.step(np.zeros(8)), "reset")


def test_importance_may_be_as_large_as_it_likes():
    """It is a weight: no requests are played, so that no number of them is too large."""
    env = bare(HARMONIC, **RATED)
    env.reset(seed=0, options={"instance": Instance(np.full(8, 1e12), 1.0, bandwidth=6.0)})
    _, reward, *_ = env.step(np.full(8, 0.5))
    assert math.isfinite(reward)
