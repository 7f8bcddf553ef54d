"""Rewards of a step for a bandit whose arms are strategies.

The reward of Han et al. (2020), eq. 2, is :func:`literal_reward`, the click-weighted share of
crawls that found a change,

    x = sum over crawled i of mu_i 1(i had changed) / sum over crawled i of mu_i.

The text calls it the increase of click-weighted freshness, which it is not: the denominator depends
on the arm. It is a success rate, and largest when few pages, or pages without clicks, are crawled
that have almost certainly changed. Among strategies with one budget, the one that crawls pages with
constantly changing prices gets the largest reward and may be the worst of all for freshness.

:func:`gain_reward` has a denominator that does not depend on the arm: the mu of all pages, times a
bound that scales typical rewards from near 0 into [0, 1]. It is the gain in freshness at the moment
of the crawls.

Neither includes the later effects of a crawl. Arms share the state of the copies, so the reward of
one depends on those played before, and regret bounds of bandits, which compare with one arm on the
same rewards, do not carry over to freshness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, Tracker
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.offer_features import OfferFeatures
from policies.base.binding import RATE_FORMS, CrawlCore
from policies.offers.rates import RateSource, cached_rates, fresh_source, rate_source

Reward = Literal["gain", "literal"]
OFFER_GAIN_BOUND = 0.02
"""Gain of a step of offers, as a share of all clicks, with reward 1; larger gains are clipped.

The mean gain of a step of KAB5 is about .006 if a tenth of the offers is crawled a day, and .002 if
a hundredth is. The bound is the same for all budgets and arms, and was not tuned.
"""
ROUNDING = 1e-9
"""Relative excess of a gain over its bound that counts as rounding, not as clipped."""


@dataclass
class RewardState:
    """A lane's episode state: current weights and bound, and the number of clipped rewards."""

    source: RateSource | None
    weights: FloatArray
    bound: float
    offer_features: OfferFeatures | None
    clipped: int = 0


class RewardRule:
    """Computes rewards of steps (:mod:`policies.bandits.rewards`).

    Bandits distinguish arms by rewards of the order of 1. If importance is concentrated, the sure
    bound is far above the actual gains, and a bandit learns next to nothing in a thousand steps:
    on 2,000 offers of ``CrawlOffers-v1`` with a tenth crawled a day, the bound is about .5 and the
    mean gain .005. A ``gain_bound`` that is exceeded now and then works better; the default for
    offers is OFFER_GAIN_BOUND, or the sure bound if that is less.

    Elsewhere the default is :func:`sure_bound` for the largest number of crawls of a
    decision: 1 in the form ``page``, ``batch`` in ``scores``, and all pages in ``refresh``. In
    ``rates``, offers are crawled at most once each per step and not more often than the budget of a
    step allows, rounded up; other pages are crawled at random times, whose number has no bound, so
    the weight of all pages, once, is used. The bound depends on the weights and the budget, never
    on the arm, and changes only with the weights.

    Args:
        core: the environment.
        reward: ``gain`` or ``literal``.
        gain_bound: a tighter bound than the sure one, a share in (0, 1]: larger gains have reward 1
            and count as clipped.
        weights: a source whose clicks are the weights, called once for each day's offer features;
            None for the revealed importance.

    Raises:
        ValueError: ``reward`` is unknown; ``gain_bound`` lies outside (0, 1], or is given for the
            literal reward, which has none; ``weights`` is not a source.
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
        """Return the state of an episode that starts, or is entered, at ``tracker``."""
        source = None if self.source is None else fresh_source(self.source)
        weights = self._weights(source, tracker)
        return RewardState(source, weights, self._bound(weights, tracker), tracker.offers)

    def renew(self, lane_state: RewardState, tracker: Tracker) -> None:
        """Update the weights on a new day, before the step whose reward uses them."""
        if lane_state.source is None or (
            tracker.offers is lane_state.offer_features and tracker.offers is not None
        ):
            return
        lane_state.weights = self._weights(lane_state.source, tracker)
        lane_state.offer_features = tracker.offers
        lane_state.bound = self._bound(lane_state.weights, tracker)

    def step_reward(self, lane_state: RewardState, log: CrawlLog) -> float:
        """Return the reward of a step, in [0, 1]."""
        if self.reward == "literal":
            return literal_reward(log, lane_state.weights)
        gained = gained_share(log, lane_state.weights) / lane_state.bound
        lane_state.clipped += gained > 1.0 + ROUNDING
        return min(gained, 1.0)

    def _weights(self, source: RateSource | None, tracker: Tracker) -> FloatArray:
        return tracker.problem.importance if source is None else cached_rates(source, tracker).click

    def _bound(self, weights: FloatArray, tracker: Tracker) -> float:
        if self.gain_bound is not None:
            return self.gain_bound
        sure = sure_bound(weights, max_crawls(self.core, tracker))
        return sure if tracker.offers is None else min(sure, OFFER_GAIN_BOUND)


def max_crawls(core: CrawlCore, tracker: Tracker) -> int:
    """Return the largest number of pages that a decision can crawl, in 1 .. m."""
    problem = tracker.problem
    if core.action_form in RATE_FORMS and tracker.offers is not None:
        most = max(problem.bandwidth, *(step for _, step in problem.bandwidth_steps), 0.0)
        return min(max(math.ceil(most * core.epoch * (1.0 - ROUNDING)), 1), problem.num_pages)
    if core.action_form in (*RATE_FORMS, "refresh"):
        return problem.num_pages
    return min(core.batch, problem.num_pages)


def literal_reward(log: CrawlLog, weights: FloatArray) -> float:
    """Return the weighted share of crawls that found a change, Han et al. (2020), eq. 2.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).

    Returns:
        In [0, 1]; 0 if no page of positive weight was crawled.
    """
    return literal_reward_of(*_crawled(log, weights))


def literal_reward_of(crawled: FloatArray, changed: BoolArray) -> float:
    """Return :func:`literal_reward` of crawls given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
    """
    spent = float(crawled.sum())
    return min(float(crawled[changed].sum()) / spent, 1.0) if spent > 0.0 else 0.0


def gained_share(log: CrawlLog, weights: FloatArray) -> float:
    """Return the weight of the crawls that found a change, as a share of that of all pages.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).

    Returns:
        >= 0, and at most 1 if no page is crawled twice; 0 if all weights are 0.
    """
    return gained_share_of(*_crawled(log, weights), float(weights.sum()))


def gained_share_of(crawled: FloatArray, changed: BoolArray, total: float) -> float:
    """Return :func:`gained_share` of crawls given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
        total: the weight of all pages, >= 0.
    """
    return float(crawled[changed].sum()) / total if total > 0.0 else 0.0


def gain_reward(log: CrawlLog, weights: FloatArray, bound: float) -> float:
    """Return the gained share, divided by a bound that does not depend on the arm, and at most 1.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).
        bound: the gained share with reward 1, in (0, 1].

    Returns:
        In [0, 1].

    Raises:
        ValueError: ``bound`` lies outside (0, 1].
    """
    return gain_reward_of(*_crawled(log, weights), float(weights.sum()), bound)


def gain_reward_of(crawled: FloatArray, changed: BoolArray, total: float, bound: float) -> float:
    """Return :func:`gain_reward` of crawls given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
        total: the weight of all pages, >= 0.
        bound: the gained share with reward 1, in (0, 1].

    Raises:
        ValueError: ``bound`` lies outside (0, 1].
    """
    if not 0.0 < bound <= 1.0:
        raise ValueError(f"bound must lie in (0, 1], got {bound!r}")
    return min(gained_share_of(crawled, changed, total) / bound, 1.0)


def sure_bound(weights: FloatArray, crawls: int) -> float:
    """Return the largest share of all weight in so many pages, an upper bound on gains.

    Args:
        weights: of the pages, >= 0, (m,).
        crawls: the largest number of pages that a decision crawls, each once, >= 1.

    Returns:
        In (0, 1]; 1 if all weights are 0.

    Raises:
        ValueError: ``crawls`` is not a whole number >= 1.
    """
    crawls = whole("crawls", crawls, 1)
    total = float(weights.sum())
    if crawls >= weights.size or total <= 0.0:
        return 1.0
    return float(np.partition(weights, -crawls)[-crawls:].sum()) / total


def _crawled(log: CrawlLog, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the weight of each crawl, 0 for probes, and whether it found a change."""
    return np.where(log.probe, 0.0, weights[log.page]), log.changed
