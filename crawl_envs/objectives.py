"""What is paid for a slot, and what is reported of an episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from crawl_envs.arguments import real
from crawl_envs.sim.state import CRAWLS, FRESHNESS, HITS
from crawl_envs.types import FloatArray, Ledger

Amount = TypeVar("Amount", float, FloatArray)

REWARDS = ("freshness", "requests")
OBJECTIVES = ("binary",)


class Objective:
    """Binary staleness: a held copy is fresh, or it is not.

    Args:
        reward: ``freshness`` pays the importance-weighted share of existing pages that is fresh,
            averaged over the slot, in [0, 1]; ``requests`` pays the requests served fresh.
        crawl_cost: price of a crawl, >= 0, taken off the reward.
        objective: ``binary``, the only one yet.

    Raises:
        ValueError: an unknown reward or objective, a negative cost.
    """

    def __init__(
        self, reward: str = "freshness", crawl_cost: float = 0.0, objective: str = "binary"
    ) -> None:
        if objective not in OBJECTIVES:
            raise ValueError(f"objective must be one of {OBJECTIVES}, got {objective!r}")
        if reward not in REWARDS:
            raise ValueError(f"reward must be one of {REWARDS}, got {reward!r}")
        self.reward = reward
        self.crawl_cost = real("crawl_cost", crawl_cost, least=0.0)
        self._row = FRESHNESS if reward == "freshness" else HITS

    def terms(self, outcomes: Sequence[Amount]) -> dict[str, Amount]:
        """Return the parts of the reward of a slot from its outcomes, of one lane or of all.

        They are not copied.
        """
        parts = {self.reward: outcomes[self._row]}
        if self.crawl_cost > 0.0:
            parts["crawl_cost"] = -self.crawl_cost * outcomes[CRAWLS]
        return parts

    def total(self, terms: dict[str, Amount]) -> Amount:
        """Return the reward, the sum of its parts; not copied where there is one part."""
        reward = terms[self.reward]
        return reward if self.crawl_cost == 0.0 else reward + terms["crawl_cost"]


def metrics(ledger: Ledger) -> dict[str, float]:
    """Return what is reported of an episode.

    ``accuracy``: share of requests served fresh (by PASTA its mean is the freshness);
    ``freshness``: importance-weighted share of page time that was fresh; ``found``: share of
    crawls that found a change; ``crawl_rate``: crawls per unit time; ``wasted``: crawls of pages
    that do not exist.
    """
    return {
        "accuracy": ledger.accuracy,
        "freshness": ledger.freshness,
        "found": ledger.changes_found / ledger.crawls if ledger.crawls else math.nan,
        "crawl_rate": ledger.crawls / ledger.time if ledger.time > 0.0 else math.nan,
        "wasted": float(ledger.wasted),
    }
