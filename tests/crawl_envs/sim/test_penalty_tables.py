"""Penalties by name and by table: what they add up to, and tables that are none."""

from __future__ import annotations

import math
import re

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.sim.divergence import increment, penalty_increments
from crawl_envs.spaces.rewards import penalty_and_reward
from tests.crawl_envs.sim.test_world import assert_same_play
from tests.naive.divergence import penalty as penalty_of
from tests.worlds import single_of


@pytest.mark.parametrize("name", ["harmonic", "binary", "square root", "long", "short", "line"])
def test_increments_add_up_to_the_table(name):
    """Up to its end, and to what is said of more changes than that."""
    tables = {
        "square root": np.sqrt(np.arange(2001.0)),
        "long": np.cumsum([0.0, *(1.0 / np.arange(1, 5000))]),
        "short": [0.0, 2.5],
        "line": np.arange(40.0) / 3.0,
    }
    penalty = tables.get(name, name)
    increments = penalty_increments(penalty)
    function, total = penalty_of(penalty), 0.0
    for changes in range(6000):
        assert total == pytest.approx(function(changes), rel=1e-11, abs=1e-12)
        total += increment(increments, changes)


def test_a_long_table_is_the_twins():
    table = (np.sqrt(np.arange(1025.0)) * 1024.0).round() / 1024.0
    table = np.concatenate([[0.0], np.cumsum(np.sort(np.diff(table))[::-1])])
    instances = [Instance([1.0, 0.5], [200.0, 3.0], bandwidth=2.0)] * 2
    env = assert_same_play(instances, penalty=tuple(table.tolist()))
    assert env.ledger(0).cost > table[10]


BAD_TABLES = {
    "unknown name": ("quadratic", "one of binary, harmonic, or a table", "'quadratic'"),
    "not concave": ([0.0, 1.0, 3.0], "concave", "[0.0, 1.0, 3.0]"),
    "convex after all": ([0.0, 1.0, 1.5, 1.75, 2.1], "concave"),
    "not from 0": ([1.0, 2.0, 2.5], "rises from 0", "[1.0, 2.0, 2.5]"),
    "from below 0": ([-1.0, 0.0], "rises from 0"),
    "falling": ([0.0, 1.0, 0.5], "concave", "[0.0, 1.0, 0.5]"),
    "falling at once": ([0.0, -1.0], "rises from 0"),
    "flat": ([0.0, 0.0], "rises from 0"),
    "not a number": ([0.0, math.nan], "at least two numbers", "nan"),
    "endless": ([0.0, math.inf], "at least two numbers", "inf"),
    "one entry": ([0.0], "at least two numbers", "[0.0]"),
    "none": ([], "at least two numbers", "[]"),
    "a table of tables": ([[0.0, 1.0], [0.0, 1.0]], "at least two numbers"),
    "a number": (3.0, "at least two numbers", "3.0"),
    "words": (["a", "b"], "at least two numbers"),
    "ragged": ([[0.0], [1.0, 2.0]], "at least two numbers"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_tables_that_are_none(case):
    penalty, *words = BAD_TABLES[case]
    for call in (
        lambda: penalty_increments(penalty),
        lambda: gym.make("CrawlHarmonic-v0", objective=penalty),
        lambda: gym.make("CrawlNCIS-v0", objective=penalty),
        lambda: single_of(Instance([1.0], 1.0, bandwidth=1.0), penalty=penalty),
    ):
        with pytest.raises(ValueError, match="objective") as caught:
            call()
        for word in words:
            assert re.search(re.escape(word), str(caught.value)), str(caught.value)


def test_a_table_may_be_concave_up_to_rounding():
    third = 1.0 / 3.0
    penalty_increments([0.0, third, third + third, third + third + third, 4.0 * third])
    penalty_increments(np.cumsum([0.0, *np.full(1000, 0.1)]))


def test_a_table_is_copied():
    table = np.array([0.0, 1.0, 1.5])
    env = single_of(Instance([1.0], 5.0, bandwidth=1.0), penalty=table, horizon=9.0)
    table[1:] = 100.0
    env.reset(seed=0)
    env.step(0)
    assert 0.0 < env.ledger().cost <= 1.5


@pytest.mark.parametrize(
    ("objective", "reward", "expected"),
    [
        ("harmonic", None, ("harmonic", "penalty")),
        ("harmonic", "freshness", ("harmonic", "freshness")),
        ("binary", None, (None, "freshness")),
        ("binary", "requests", (None, "requests")),
        ("binary", "penalty", ("binary", "penalty")),
        ((0.0, 1.0), None, ((0.0, 1.0), "penalty")),
    ],
)
def test_counts_and_rewards(objective, reward, expected):
    assert penalty_and_reward(objective, reward) == expected
