"""What is paid for a step, and what is reported of an episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from crawl_envs.sim.penalties import Penalty, penalty_increments
from crawl_envs.sim.state import CRAWLS, FRAGMENTS, FRESHNESS, HITS, PENALTY
from crawl_envs.types import FloatArray, FragmentLedger, Ledger, OfferLedger
from crawl_envs.types.arguments import quantity

Amount = TypeVar("Amount", float, FloatArray)

ROWS = {"freshness": FRESHNESS, "requests": HITS, "penalty": PENALTY, "fragments": FRAGMENTS}
REWARDS = tuple(ROWS)


class Objective:
    """What a step is paid: what of it is fresh, or minus what is stale costs.

    Args:
        reward: ``freshness`` pays the importance-weighted share of existing pages that is fresh,
            averaged over the step, in [0, 1]; ``requests`` pays the requests served fresh;
            ``penalty`` takes off the importance-weighted mean penalty of the changes that no crawl
            has found, averaged over the step, which the lanes must count; ``fragments`` pays 1
            minus the importance-weighted mean divergence of copies over the step, in [0, 1], where
            pages have fragments.
        crawl_cost: price of a crawl, >= 0, taken off the reward.

    Raises:
        ValueError: an unknown reward, a negative cost.
    """

    def __init__(self, reward: str = "freshness", crawl_cost: float = 0.0) -> None:
        if reward not in REWARDS:
            raise ValueError(f"reward must be one of {REWARDS}, got {reward!r}")
        self.reward = reward
        self.crawl_cost = quantity("crawl_cost", crawl_cost, least=0.0)
        self._row, self._negative = ROWS[reward], reward == "penalty"

    def terms(self, outcomes: Sequence[Amount]) -> dict[str, Amount]:
        """Return the parts of the reward of a step from its outcomes, of one lane or of all.

        They are not copied.
        """
        paid = outcomes[self._row]
        parts = {self.reward: -paid if self._negative else paid}
        if self.crawl_cost > 0.0:
            parts["crawl_cost"] = -self.crawl_cost * outcomes[CRAWLS]
        return parts

    def total(self, terms: dict[str, Amount]) -> Amount:
        """Return the reward, the sum of its parts; not copied where there is one part."""
        reward = terms[self.reward]
        return reward if self.crawl_cost == 0.0 else reward + terms["crawl_cost"]


def penalty_and_reward(objective: Penalty, reward: str | None) -> tuple[Penalty | None, str]:
    """Return the penalty that lanes are to count for an objective, and what is paid.

    Of binary staleness freshness says all, so no penalty is counted where freshness or requests
    are paid.

    Args:
        objective: ``binary``, ``harmonic``, or a table of penalties.
        reward: one of REWARDS; None pays freshness for ``binary``, else takes off penalties.

    Raises:
        ValueError: an unknown objective or reward, or a table that is none.
    """
    penalty_increments(objective)
    binary = isinstance(objective, str) and objective == "binary"
    if reward is None:
        reward = "freshness" if binary else "penalty"
    return (None if binary and reward != "penalty" else objective), reward


def metrics(ledger: Ledger) -> dict[str, float]:
    """Return what is reported of an episode.

    ``accuracy``: share of requests served fresh (by PASTA its mean is the freshness);
    ``freshness``: importance-weighted share of page time that was fresh; ``found``: share of
    crawls that found a change; ``crawl_rate``: crawls per unit time; ``wasted``: crawls of pages
    that do not exist; ``cost``: the sum over pages of importance times penalty, averaged over time,
    and ``penalty``, the same per unit of importance, where penalties are counted;
    ``offer_freshness``: of shopping offers, the share that is fresh at midnight; ``divergence``: of
    pages with fragments, the importance-weighted mean distance of held copies from live pages.
    """
    counted = (
        {} if ledger.penalty_time is None else {"cost": ledger.cost, "penalty": ledger.penalty}
    )
    if isinstance(ledger, OfferLedger):
        counted["offer_freshness"] = ledger.offer_freshness
    if isinstance(ledger, FragmentLedger):
        counted["divergence"] = ledger.divergence
    return {
        "accuracy": ledger.accuracy,
        "freshness": ledger.freshness,
        "found": ledger.changes_found / ledger.crawls if ledger.crawls else math.nan,
        "crawl_rate": ledger.crawls / ledger.time if ledger.time > 0.0 else math.nan,
        "wasted": float(ledger.wasted),
        **counted,
    }
