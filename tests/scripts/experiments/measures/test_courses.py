from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import policies
from scripts.experiments.measures.courses import course, recent_share

ARGUMENTS = {
    "instance": "noisy",
    "num_pages": 7,
    "bandwidth": 4.0,
    "bandwidth_steps": [[3.0, 8.0], [6.0, 4.0]],
    "horizon": 9.0,
}


class Plain:
    """A policy without a compiled form."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def predict(self, *given: Any, **more: Any) -> Any:
        return self.policy.predict(*given, **more)


def naive(seed: int) -> list[tuple[float, float]]:
    """Requests and hits of each slot, by the infos of the steps; the first slot by the ledger."""
    env = gymnasium.make("CrawlNCIS-v0", **ARGUMENTS)
    observation, _ = env.reset(seed=seed)
    policy = policies.make("GreedyNCIS", env)
    first = env.unwrapped.ledger()  # type: ignore[attr-defined]
    slots, over = [(first.requests, first.hits)], False
    while not over:
        observation, _, _, over, info = env.step(policy.predict(observation)[0])
        slots.append((info["requests"], info["hits"]))
    return slots


@pytest.mark.parametrize("compiled", [True, False])
def test_a_course_sums_the_slots(compiled: bool) -> None:
    env = gymnasium.make("CrawlNCIS-v0", **ARGUMENTS)
    env.reset(seed=5)
    policy = policies.make("GreedyNCIS", env)
    result = course(env, policy if compiled else Plain(policy), 5, every=3)
    slots = naive(5)
    assert len(slots) == 48 + 1
    assert result.time.size == 17
    np.testing.assert_allclose(result.time[[4, 12, 16]], [3.0, 6.0, 9.0])
    for position, count in enumerate(range(0, 49, 3)):
        assert result.requests[position] == sum(requests for requests, _ in slots[:count])
        assert result.hits[position] == sum(hits for _, hits in slots[:count])
    share = recent_share(result.hits, result.requests, 2)
    assert np.isnan(share[:2]).all()
    hits, requests = (sum(slot[k] for slot in slots[9:15]) for k in (1, 0))
    assert share[5] == hits / requests


def test_recent_share_is_the_ratio_of_growths() -> None:
    part, whole = np.array([0.0, 1.0, 3.0, 6.0]), np.array([0.0, 4.0, 8.0, 9.0])
    np.testing.assert_array_equal(recent_share(part, whole, 2)[2:], [3.0 / 8.0, 1.0])
    assert np.isnan(recent_share(part, whole, 2)[:2]).all()
