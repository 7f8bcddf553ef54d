"""What the crawls of a step are worth to a bandit whose arms are strategies.

Han et al. (2020), eq. 2, pay the share of the crawled clicks that had changed,

    x = sum over crawled i of mu_i 1(i had changed) / sum over crawled i of mu_i,

which :func:`literal_reward` is. The text calls it the increase of click-weighted freshness, and it
is not: what it divides by depends on the arm. It is a rate of success, and best served by crawling
few pages, or worthless ones, that have surely changed. Among strategies that spend one budget, the
one that goes where prices change all the time earns the most of it and may be the worst of all for
freshness.

:func:`gain_reward` divides by the same number whatever the arm: the mu of all pages, times a bound
that brings typical rewards up from near 0 into [0, 1]. It is the gain in freshness at the moment
of the crawls.

Neither sees what a crawl leaves behind. Arms share the state of the copies, so that what one of
them earns depends on which were played before, and the bounds on regret of bandits, which compare
with one arm on the very same rewards, do not carry over to freshness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, Tracker
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.offer_features import OfferFeatures
from policies.base.binding import CrawlCore
from policies.offers.rates import RateSource, answer, begun, rate_source

Reward = Literal["gain", "literal"]
OFFER_GAIN_BOUND = 0.02
"""Share of all clicks that the gain of a step of offers pays with 1; what is more is clipped.

Steps of KAB5 gain some .006 on average where a tenth of the offers is crawled a day, and .002 where
a hundredth is. The bound is the same for all budgets and arms, and was not searched for.
"""
ROUNDING = 1e-9
"""By this share a gain may exceed its bound through rounding, and count as not clipped."""


@dataclass
class RewardState:
    """One lane's episode: the weights and the bound that hold now, and how often it was clipped."""

    source: RateSource | None
    weights: FloatArray
    bound: float
    book: OfferFeatures | None
    clipped: int = 0


class RewardRule:
    """Pays a step by :mod:`policies.bandits.rewards`.

    A bandit tells arms apart by rewards of the order of 1. Where importance is concentrated the
    sure bound is far above what crawls gain, and it learns next to nothing in a thousand steps:
    on 2,000 offers of ``CrawlOffers-v0`` with a tenth crawled a day, the bound is about .5 and the
    mean gain .005. A ``gain_bound`` that is exceeded now and then serves better; for offers it is
    OFFER_GAIN_BOUND unless said otherwise, or the sure bound where that is less.

    Elsewhere it is the sure bound, :func:`policies.bandits.rewards.sure_bound` of as many crawls as a
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

    def begin(self, tracker: Tracker) -> RewardState:
        """What to keep of an episode that starts, or is joined, at ``tracker``."""
        source = None if self.source is None else begun(self.source)
        weights = self._weights(source, tracker)
        return RewardState(source, weights, self._bound(weights, tracker), tracker.offers)

    def renew(self, lane_state: RewardState, tracker: Tracker) -> None:
        """Take the weights of a new day, before the step that is paid by them."""
        if lane_state.source is None or (
            tracker.offers is lane_state.book and tracker.offers is not None
        ):
            return
        lane_state.weights, lane_state.book = (
            self._weights(lane_state.source, tracker),
            tracker.offers,
        )
        lane_state.bound = self._bound(lane_state.weights, tracker)

    def pay(self, lane_state: RewardState, log: CrawlLog) -> float:
        """The reward of a step, in [0, 1]."""
        if self.reward == "literal":
            return literal_reward(log, lane_state.weights)
        gained = gained_share(log, lane_state.weights) / lane_state.bound
        lane_state.clipped += gained > 1.0 + ROUNDING
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


def literal_reward(log: CrawlLog, weights: FloatArray) -> float:
    """Han et al. (2020), eq. 2: the share of what was crawled that had changed, by weight.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).

    Returns:
        In [0, 1]; 0 where nothing of any weight was crawled.
    """
    return literal_reward_of(*_crawled(log, weights))


def literal_reward_of(crawled: FloatArray, changed: BoolArray) -> float:
    """:func:`literal_reward` of crawls, given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
    """
    spent = float(crawled.sum())
    return min(float(crawled[changed].sum()) / spent, 1.0) if spent > 0.0 else 0.0


def gained_share(log: CrawlLog, weights: FloatArray) -> float:
    """The weight of the crawls that found a change, as a share of that of all pages.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).

    Returns:
        >= 0, and at most 1 where no page is crawled twice; 0 where all weights are.
    """
    return gained_share_of(*_crawled(log, weights), float(weights.sum()))


def gained_share_of(crawled: FloatArray, changed: BoolArray, total: float) -> float:
    """:func:`gained_share` of crawls, given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
        total: the weight of all pages, >= 0.
    """
    return float(crawled[changed].sum()) / total if total > 0.0 else 0.0


def gain_reward(log: CrawlLog, weights: FloatArray, bound: float) -> float:
    """The gained share, divided by a bound that does not depend on the arm, and at most 1.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).
        bound: the share that is paid with 1, in (0, 1].

    Returns:
        In [0, 1].

    Raises:
        ValueError: a bound outside (0, 1].
    """
    return gain_reward_of(*_crawled(log, weights), float(weights.sum()), bound)


def gain_reward_of(crawled: FloatArray, changed: BoolArray, total: float, bound: float) -> float:
    """:func:`gain_reward` of crawls, given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
        total: the weight of all pages, >= 0.
        bound: the share that is paid with 1, in (0, 1].

    Raises:
        ValueError: a bound outside (0, 1].
    """
    if not 0.0 < bound <= 1.0:
        raise ValueError(f"bound must lie in (0, 1], got {bound!r}")
    return min(gained_share_of(crawled, changed, total) / bound, 1.0)


def sure_bound(weights: FloatArray, crawls: int) -> float:
    """The largest share of all weight that so many pages can hold: no gain exceeds it.

    Args:
        weights: of the pages, >= 0, (m,).
        crawls: the largest number of pages that a decision crawls, each once, >= 1.

    Returns:
        In (0, 1]; 1 where all weights are 0.

    Raises:
        ValueError: ``crawls`` is no whole number >= 1.
    """
    crawls = whole("crawls", crawls, 1)
    total = float(weights.sum())
    if crawls >= weights.size or total <= 0.0:
        return 1.0
    return float(np.partition(weights, -crawls)[-crawls:].sum()) / total


def _crawled(log: CrawlLog, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The weight of each crawl, and whether it found a change; probes weigh nothing."""
    return np.where(log.probe, 0.0, weights[log.page]), log.changed
