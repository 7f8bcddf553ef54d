"""Tiers of values, against plain loops, and the lazy search, against the compiled policy."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import policies
from crawl_envs.evaluation import simulate
from policies import values
from scripts.experiments.ncis import tiers as ncis_tiers
from scripts.experiments.ncis.tiers import EXACT, LAZY, Tiers, TierSearch, episode_metrics

SIZE, HORIZON, SEED = 40, 8.0, 3


def environment() -> Any:
    """An environment after its reset."""
    env: Any = gymnasium.make(
        ncis_tiers.ID, instance="noisy", num_pages=SIZE, bandwidth=100.0, horizon=HORIZON
    )
    env.reset(seed=SEED)
    return env


@pytest.mark.parametrize("label", [EXACT, LAZY])
def test_exact_searches_crawl_as_the_policy_does(label: str) -> None:
    crawls: list[int] = []
    result = episode_metrics(
        SEED, label=label, num_pages=SIZE, horizon=HORIZON, on_crawl=crawls.append
    )
    policy = policies.make("GreedyNCIS")
    rollout = simulate(environment().unwrapped.instance, policy, HORIZON, SEED)
    assert crawls == rollout.crawls.tolist()
    assert result["freshness"] == pytest.approx(rollout.freshness)
    assert (result[ncis_tiers.COMPUTED] == SIZE) == (label == EXACT)


@pytest.mark.parametrize("at_signals", [False, True])
def test_tiers_against_a_loop_over_pages(at_signals: bool) -> None:
    env, every = environment(), 7
    core, instance = env.unwrapped, env.unwrapped.instance
    search = TierSearch(instance, Tiers(every, at_signals))
    known, usual, heard, computed, differed = [0.0] * SIZE, 0.0, [0] * SIZE, 0, 0
    for slot in range(300):
        tracker = core.tracker(0)
        current = values.greedy_ncis_observed(
            tracker.elapsed,
            tracker.signals,
            **{name: getattr(instance, name) for name in ncis_tiers.PARAMETERS},
        )
        for page in range(SIZE):
            upper = known[page] >= 0.5 * usual
            told = at_signals and tracker.signals[page] > heard[page]
            if page % every == slot % every or upper or told:
                known[page] = float(current[page])
                computed += 1
            heard[page] = int(tracker.signals[page])
        best = max(range(SIZE), key=lambda page: (known[page], -page))
        differed += best != int(np.argmax(current))
        usual = known[best] if slot == 0 else usual + 0.05 * (known[best] - usual)
        known[best], heard[best] = 0.0, 0
        assert search.choose(tracker) == best
        env.step(best)
    assert search.computed == computed < 300 * SIZE
    assert differed > 0


def test_tiers_of_one_slot_compute_all_values() -> None:
    env = environment()
    search = TierSearch(env.unwrapped.instance, Tiers(1, False))
    assert search.due(np.zeros(SIZE)).all()
