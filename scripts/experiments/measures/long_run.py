"""Simulate long-run costs of policies, without the early time when all pages are fresh."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crawl_envs.evaluation import simulate
from crawl_envs.types import FloatArray, Instance, Ledger
from crawl_envs.types.compiled_policies import CompilablePolicy
from scripts.experiments.measures.costs import J_B, J_H
from scripts.experiments.measures.courses import NOTHING, decisions

CRAWL_RATE = "crawls_per_page"
"""Crawls per page and unit of time."""


def between(early: Ledger, late: Ledger, num_pages: int) -> dict[str, float]:
    """Return both costs and the crawls per page between two moments of an episode.

    J_h is the time average of importance times the harmonic penalty, J_b that of the importance of
    stale pages; both are sums over pages. The episode must count the harmonic penalty.
    """
    if early.penalty_time is None or late.penalty_time is None:
        raise ValueError("ledgers must count penalties, got penalty_time=None")
    time = late.time - early.time
    stale = (late.alive_time - late.fresh_time) - (early.alive_time - early.fresh_time)
    return {
        J_H: (late.penalty_time - early.penalty_time) / time,
        J_B: stale / time,
        CRAWL_RATE: (late.crawls - early.crawls) / time / num_pages,
    }


def compiled_course(
    instance: Instance, policy: CompilablePolicy, seed: int, times: Sequence[float]
) -> list[dict[str, float]]:
    """Return the costs of a policy with a compiled form, in each interval between ``times``.

    The first interval starts at 0; times are > 0 and increasing. Costs are differences of episodes.
    """
    ledgers = [NOTHING] + [
        simulate(instance, policy, time, seed, penalty="harmonic", requests=False).ledger
        for time in times
    ]
    return [between(*pair, instance.num_pages) for pair in pairwise(ledgers)]


def stepped_costs(env: Any, policy: Any, seed: int, times: np.ndarray) -> list[dict[str, float]]:
    """Run an episode step by step; return the costs in each interval between ``times``.

    Args:
        env: a single ``CrawlHarmonic-v0`` after a reset with ``seed`` and its instance; the
            episode must last until the last time.
        policy: a policy bound to it, which learns in ``predict``.
        seed: seed of the episode.
        times: ends of the intervals, increasing, (K,).

    Returns:
        K - 1 costs; each end is the first decision at or after it.
    """
    core = env.unwrapped
    observation, _ = env.reset(seed=seed, options={"instance": core.instance})
    ledgers: list[Ledger] = []
    for _ in decisions(env, policy, observation):
        now = core.ledger()
        due = np.count_nonzero(now.time >= times * (1.0 - 1e-12))
        ledgers += [now] * (due - len(ledgers))
        if len(ledgers) == len(times):
            break
    ledgers += [core.ledger()] * (len(times) - len(ledgers))
    return [between(*pair, core.instance.num_pages) for pair in pairwise(ledgers)]


class Counted:
    """A policy of a single environment that counts its crawls of each page after a start time.

    Attributes:
        counts: crawls of each page, (m,).
    """

    def __init__(self, env: Any, policy: Any, start: float) -> None:
        self.core, self.policy, self.start = env.unwrapped, policy, start
        self.counts = np.zeros(self.core.instance.num_pages)

    def predict(self, observation: Any, **options: Any) -> tuple[Any, Any]:
        """Return the policy's action of form ``page`` or ``refresh``, and count its crawls."""
        action, state = self.policy.predict(observation, **options)
        if self.core.ledger().time >= self.start:
            pages = action if self.core.action_form == "page" else np.flatnonzero(action)
            self.counts[pages] += 1.0
        return action, state


def proportionality(counts: FloatArray, change_rate: FloatArray) -> float:
    """Return the slope of ln(crawls) over ln(change rate): 0 is uniform, 1 is proportional.

    A page without crawls counts as half a crawl.
    """
    return float(np.polyfit(np.log(change_rate), np.log(np.maximum(counts, 0.5)), 1)[0])
