"""How the steps of an episode are paid: which reward, by which weights, within which bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from crawl_envs.arguments import real
from crawl_envs.offer_book import OfferBook
from crawl_envs.types import CrawlLog, FloatArray, Tracker
from policies.arm_rewards import gained_share, literal_reward, sure_bound
from policies.binding import CrawlCore
from policies.offer_rates import RateSource, answer, begun, rate_source

Reward = Literal["gain", "literal"]
OFFER_GAIN_BOUND = 0.02
"""Share of all clicks that the gain of a step of offers pays with 1; what is more is clipped.

Steps of KAB5 gain some .006 on average where a tenth of the offers is crawled a day, and .002 where
a hundredth is. The bound is the same for all budgets and arms, and was not searched for.
"""
ROUNDING = 1e-9
"""By this share a gain may exceed its bound through rounding, and count as not clipped."""


@dataclass
class RewardSeat:
    """One lane's episode: the weights and the bound that hold now, and how often it was clipped."""

    source: RateSource | None
    weights: FloatArray
    bound: float
    book: OfferBook | None
    clipped: int = 0


class RewardRule:
    """Pays a step by :mod:`policies.arm_rewards`.

    A bandit tells arms apart by rewards of the order of 1. Where importance is concentrated the
    sure bound is far above what crawls gain, and it learns next to nothing in a thousand steps:
    on 2,000 offers of ``CrawlOffers-v0`` with a tenth crawled a day, the bound is about .5 and the
    mean gain .005. A ``gain_bound`` that is exceeded now and then serves better; for offers it is
    OFFER_GAIN_BOUND unless said otherwise, or the sure bound where that is less.

    Elsewhere it is the sure bound, :func:`policies.arm_rewards.sure_bound` of as many crawls as a
    decision can make: 1 in the form ``page``, ``batch`` in ``scores``, and all pages in
    ``refresh``. In ``rates``, offers are crawled at most once each per step and not more often than
    the budget of a step allows, rounded up; other pages are crawled at random instants, which have
    no bound, so that the weight of all pages, once, has to do. The bound follows from the weights
    and the budget alone, never from the arm, and holds as long as the weights do.

    Args:
        core: the environment.
        reward: ``gain`` or ``literal``.
        gain_bound: instead of the sure bound a tighter one, a share in (0, 1]: what gains more is
            paid with 1, and counted as clipped.
        weights: a source whose clicks are the weights, asked anew with every book of offers; None
            for the importance that is revealed.

    Raises:
        ValueError: an unknown reward; a bound outside (0, 1], or for the literal reward, which has
            none; weights that are no source.
    """

    def __init__(
        self,
        core: CrawlCore,
        reward: Reward,
        gain_bound: float | None = None,
        weights: RateSource | None = None,
    ) -> None:
        if reward not in get_args(Reward):
            raise ValueError(f"reward must be one of {get_args(Reward)}, got {reward!r}")
        if gain_bound is not None:
            if reward != "gain":
                raise ValueError(f"gain_bound must be None for {reward!r}, got {gain_bound!r}")
            if real("gain_bound", gain_bound, above=0.0) > 1.0:
                raise ValueError(f"gain_bound must lie in (0, 1], got {gain_bound!r}")
        self.core, self.reward, self.gain_bound = core, reward, gain_bound
        self.source = None if weights is None else rate_source("weights", weights)

    def begin(self, tracker: Tracker) -> RewardSeat:
        """What to keep of an episode that starts, or is joined, at ``tracker``."""
        source = None if self.source is None else begun(self.source)
        weights = self._weights(source, tracker)
        return RewardSeat(source, weights, self._bound(weights, tracker), tracker.offers)

    def renew(self, seat: RewardSeat, tracker: Tracker) -> None:
        """Take the weights of a new day, before the step that is paid by them."""
        if seat.source is None or (tracker.offers is seat.book and tracker.offers is not None):
            return
        seat.weights, seat.book = self._weights(seat.source, tracker), tracker.offers
        seat.bound = self._bound(seat.weights, tracker)

    def pay(self, seat: RewardSeat, log: CrawlLog) -> float:
        """The reward of a step, in [0, 1]."""
        if self.reward == "literal":
            return literal_reward(log, seat.weights)
        gained = gained_share(log, seat.weights) / seat.bound
        seat.clipped += gained > 1.0 + ROUNDING
        return min(gained, 1.0)

    def _weights(self, source: RateSource | None, tracker: Tracker) -> FloatArray:
        return tracker.problem.importance if source is None else answer(source, tracker).click

    def _bound(self, weights: FloatArray, tracker: Tracker) -> float:
        if self.gain_bound is not None:
            return self.gain_bound
        sure = sure_bound(weights, crawls_of_a_decision(self.core, tracker))
        return sure if tracker.offers is None else min(sure, OFFER_GAIN_BOUND)


def crawls_of_a_decision(core: CrawlCore, tracker: Tracker) -> int:
    """The largest number of pages that a decision can crawl, in 1 .. m."""
    problem = tracker.problem
    if core.action_form == "rates" and tracker.offers is not None:
        most = max(problem.bandwidth, *(step for _, step in problem.bandwidth_steps), 0.0)
        return min(max(math.ceil(most * core.epoch * (1.0 - ROUNDING)), 1), problem.num_pages)
    if core.action_form in ("rates", "refresh"):
        return problem.num_pages
    return min(core.batch, problem.num_pages)
