"""Rewards of steps, and metrics of episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from crawl_envs.sim.divergence import Penalty, penalty_increments
from crawl_envs.sim.state import DIVERGENCE, FRESHNESS, HITS, SIMILARITY, SPEND
from crawl_envs.types import FloatArray, FragmentLedger, Ledger, OfferLedger
from crawl_envs.types.arguments import one_of, quantity

Amount = TypeVar("Amount", float, FloatArray)

ROWS = {"freshness": FRESHNESS, "requests": HITS, "penalty": DIVERGENCE, "fragments": SIMILARITY}
REWARDS = tuple(ROWS)
PAGE_REWARDS = ("freshness", "requests", "penalty")
"""Rewards of pages that are fresh or stale as a whole."""


class Objective:
    """Reward of a step, and its terms.

    Args:
        reward: ``freshness`` is the importance-weighted share of existing pages that is fresh,
            averaged over the step, in [0, 1], times the cost of its crawl if crawls have costs and
            the next decision waits for it; ``requests`` is the number of requests served fresh;
            ``penalty`` is minus the importance-weighted mean penalty of undetected changes,
            averaged likewise, which the lanes must count; ``fragments`` is 1 minus the
            importance-weighted mean divergence of copies over the step, in [0, 1], for pages with
            fragments.
        crawl_cost: price of a crawl of cost 1, >= 0, subtracted from the reward.
        row: row of the outcomes that the reward is; None for that of its name.

    Raises:
        ValueError: ``reward`` is unknown, or ``crawl_cost`` is negative.
    """

    def __init__(
        self, reward: str = "freshness", crawl_cost: float = 0.0, row: int | None = None
    ) -> None:
        one_of("reward", reward, REWARDS)
        self.reward = reward
        self.crawl_cost = quantity("crawl_cost", crawl_cost, least=0.0)
        self._name = f"reward_{reward}"
        self._row = ROWS[reward] if row is None else row
        self._negative = reward == "penalty"

    def terms(self, outcomes: Sequence[FloatArray], lane: int | None = None) -> dict[str, Any]:
        """Return the terms of the reward from the outcomes of a step, for one lane or all.

        Their names begin with ``reward_``. Arrays are not copied.
        """
        amount: Any = outcomes[self._row] if lane is None else outcomes[self._row][lane]
        parts = {self._name: -amount if self._negative else amount}
        if self.crawl_cost > 0.0:
            spend: Any = outcomes[SPEND] if lane is None else outcomes[SPEND][lane]
            parts["reward_crawl_cost"] = -self.crawl_cost * spend
        return parts

    def total(self, terms: dict[str, Amount]) -> Amount:
        """Return the reward, the sum of its terms; a single term is not copied."""
        reward = terms[self._name]
        return reward if self.crawl_cost == 0.0 else reward + terms["reward_crawl_cost"]


def penalty_and_reward(
    objective: Penalty, reward: str | None, *, recorded: bool = False
) -> tuple[Penalty | None, str]:
    """Return the penalty that lanes count for an objective, and the name of the reward.

    For binary staleness no penalty is counted unless it is the reward, since freshness measures
    the same. By default the reward is ``freshness`` for ``binary``, else ``penalty``. A
    ``recorded`` site has no requests, so these are its only rewards.

    Raises:
        ValueError: the objective or reward is unknown, or the table is invalid.
    """
    if recorded and reward not in (None, "freshness", "penalty"):
        expected = "freshness or penalty, since recorded sites have no requests"
        raise ValueError(f"reward must be {expected}, got {reward!r}")
    penalty_increments(objective)
    if reward not in (None, *PAGE_REWARDS):
        raise ValueError(f"reward must be None or one of {PAGE_REWARDS}, got {reward!r}")
    binary = isinstance(objective, str) and objective == "binary"
    if reward is None:
        reward = "freshness" if binary else "penalty"
    return (None if binary and reward != "penalty" else objective), reward


def metrics(ledger: Ledger) -> dict[str, float]:
    """Return the metrics of an episode by name, computed from its ledger.

    ``accuracy``: share of requests served fresh (by PASTA its mean is the freshness);
    ``freshness``: importance-weighted share of page time that was fresh; ``changed_share``: share
    of crawls that saw a change; ``crawl_rate``: crawls per unit time; ``wasted``: crawls of pages
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
        "changed_share": ledger.changes_found / ledger.crawls if ledger.crawls else math.nan,
        "crawl_rate": ledger.crawls / ledger.time if ledger.time > 0.0 else math.nan,
        "wasted": float(ledger.wasted),
        **counted,
    }
