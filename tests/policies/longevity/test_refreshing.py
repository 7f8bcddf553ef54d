"""Common behaviour of refresh policies: due pages, their order, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from policies import bind
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.offline import (
    UniformRefresh,
)
from policies.longevity.refreshing import Urgency, most_urgent
from tests.policies.longevity.fragment_play import crawls, fragments

LEARNERS = pytest.mark.parametrize("policy", [CurveFitting, DivergenceBounds, ChoGarciaMolina])


def made(policy, env):
    given = {"interval": 4.0} if policy is UniformRefresh else {"threshold": 0.2}
    return bind(policy(**given), env)


def naive_order(urgency, elapsed, alive):
    def rank(page):
        late = urgency.overdue is not None and urgency.overdue[page] >= 1.0
        first = (0, -urgency.overdue[page]) if late else (1, -urgency.utility[page])
        return (*first, -elapsed[page], page)

    return sorted(np.flatnonzero(alive).tolist(), key=rank)


@pytest.mark.parametrize("late", [False, True])
def test_most_urgent_first(late):
    rng = np.random.default_rng(int(late))
    for _ in range(200):
        m = int(rng.integers(1, 12))
        overdue = rng.choice([0.0, 0.5, 1.0, 1.5, 2.0], m) if late else None
        urgency = Urgency(rng.choice([0.0, 1.0, 2.5], m), overdue)
        elapsed = rng.choice([1.0, 2.0, 3.0], m)
        alive = rng.random(m) < 0.8
        expected = naive_order(urgency, elapsed, alive)
        for count in (1, 3, 12):
            result = most_urgent(urgency, elapsed, alive, count).tolist()
            assert result == (expected[:count] or [0])


@LEARNERS
def test_learners_use_importance_alone(policy):
    revealed, hidden = fragments(horizon=10.0), fragments(horizon=10.0, reveal="importance")
    assert crawls(revealed, made(policy, revealed)) == crawls(hidden, made(policy, hidden))


@LEARNERS
def test_small_sketches_of_the_environment_serve(policy):
    env = fragments(m=20, horizon=15.0, sketch_size=4)
    whole = fragments(m=20, horizon=15.0)
    few, all_of_them = (crawls(world, made(policy, world)) for world in (env, whole))
    assert len(few) > 5
    if policy is ChoGarciaMolina:
        assert few == all_of_them
    else:
        assert made(policy, env).policy.sketch_size is None
