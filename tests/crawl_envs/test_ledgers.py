"""The totals of an episode are those of its steps."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import crawl_envs  # registers the ids


def test_accuracy_and_freshness_are_the_shares_over_all_steps() -> None:
    env = gymnasium.make("CrawlNCIS-v0", num_pages=20, bandwidth=20.0, instance="noisy")
    _, info = env.reset(seed=5)
    core = env.unwrapped
    ledger = core.ledger()  # type: ignore[attr-defined]
    weight = core.instance.importance.sum()  # type: ignore[attr-defined]
    hits, requests, fresh, time = ledger.hits, ledger.requests, ledger.fresh_time, ledger.time
    assert (info["hits"], info["requests"]) == (hits, requests)
    truncated, step = False, 0
    while not truncated:
        _, reward, _, truncated, info = env.step(step * 7 % 20)
        now = core.ledger().time  # type: ignore[attr-defined]
        hits, requests = hits + info["hits"], requests + info["requests"]
        fresh += reward * weight * (now - time)
        time, step = now, step + 1
    ledger = core.ledger()  # type: ignore[attr-defined]
    assert requests > 100
    assert ledger.accuracy == hits / requests
    assert ledger.freshness == pytest.approx(fresh / (weight * time), rel=1e-12)
    assert 0.3 < ledger.freshness < 0.95


def test_shares_of_nothing_are_undefined() -> None:
    nothing = crawl_envs.types.Ledger(0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0)
    shares = nothing.accuracy, nothing.freshness, nothing.cost, nothing.penalty
    assert np.isnan(shares).all()
