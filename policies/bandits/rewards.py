"""Rewards of steps for bandits whose arms are policies.

The reward of Han et al. (2020), eq. 2, is :func:`literal_reward`, the click-weighted share of
crawls that found a change,

    x = sum over crawled i of mu_i 1(i had changed) / sum over crawled i of mu_i.

The text calls it the increase of click-weighted freshness. It is a success rate instead: the
denominator depends on the arm. It is largest for crawls of few pages, or pages without clicks, that
have almost certainly changed. Among strategies with one budget, the strategy that crawls pages with
constantly changing prices gets the largest reward and may be the worst of all for freshness.

The reward ``gain`` is :func:`gained_share`, the gain in freshness at the moment of the crawls, over
a bound that does not depend on the arm and scales typical rewards from near 0 into [0, 1].

Where crawls have costs and a decision lasts as long as its crawl, importance is per unit of cost.

Both ignore the later effects of a crawl. Arms share the state of the copies, so the reward of an
arm depends on earlier arms, and regret bounds of bandits, which compare with one arm on the same
rewards, do not carry over to freshness.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from crawl_envs.types import CrawlLog, FloatArray, Tracker
from crawl_envs.types.arguments import one_of, share
from policies.base.policy import RATE_FORMS, Form
from policies.offers.rates import LaneRates, RateSource, rate_source

Reward = Literal["gain", "literal"]
OFFER_GAIN_BOUND = 0.02
"""Gain of a step of offers, as a share of all clicks, with reward 1; larger gains are clipped.

The mean gain of a step of KAB5 is about .006 if a tenth of the offers is crawled a day, and .002 if
a hundredth is. The bound is the same for all budgets and arms, and was not tuned.
"""
ROUNDING = 1e-9
"""Relative rounding error of a number of crawls."""


class StepReward:
    """The rewards of the steps of a lane, in order.

    The default bound is :func:`sure_bound` for :func:`max_crawls` crawls, which depends on the
    weights and the budget, never on the arm; for offers it is at most OFFER_GAIN_BOUND. Bandits
    distinguish arms by rewards of the order of 1. If importance is concentrated, the sure bound is
    far above the actual gains, and a bandit learns almost nothing in a thousand steps: on 2,000
    offers of ``CrawlOffers-v1`` with a tenth crawled a day, it is about .5 and the mean gain .005.

    Args:
        reward: ``gain`` or ``literal``, :func:`literal_reward`.
        gain_bound: for ``gain``, a tighter bound than the sure bound, in (0, 1]; larger gains have
            reward 1.
        weights: a source whose clicks are the weights, called once per day of offer features; None
            for the revealed importance.

    Attributes:
        weights: weights of the pages in the present step, (m,).
        bound: gain of the present step with reward 1.
    """

    def __init__(
        self,
        reward: Reward,
        gain_bound: float | None = None,
        weights: RateSource | None = None,
    ) -> None:
        one_of("reward", reward, Reward)
        if gain_bound is not None:
            if reward != "gain":
                raise ValueError(f"gain_bound must be None for {reward!r}, got {gain_bound!r}")
            share("gain_bound", gain_bound, above=True)
        self.reward, self.gain_bound = reward, gain_bound
        self.source = None if weights is None else rate_source("weights", weights)
        self.episode: int | None = None
        self.weights, self.bound = np.zeros(0), 1.0

    def begin(self, tracker: Tracker, form: Form) -> None:
        """Set the weights of the next reward: the weights on the day on which the step starts."""
        if self.episode != tracker.episode:
            self.episode, self.weights = tracker.episode, np.zeros(0)
            self._rates = None if self.source is None else LaneRates(self.source)
        elif self._rates is None:
            return
        importance = tracker.problem.importance
        weights = importance if self._rates is None else self._rates.read(tracker).click
        if form.action == "page" and tracker.problem.cost is not None:
            weights = weights / tracker.problem.cost
        if weights is not self.weights:
            self.weights, self.bound = weights, self._bound(weights, tracker, form)

    def reward_of(self, log: CrawlLog) -> float:
        """Return the reward, in [0, 1], of the step whose crawls are in this log."""
        if self.reward == "literal":
            return literal_reward(log, self.weights)
        return min(gained_share(log, self.weights) / self.bound, 1.0)

    def _bound(self, weights: FloatArray, tracker: Tracker, form: Form) -> float:
        if self.gain_bound is not None:
            return self.gain_bound
        sure = sure_bound(weights, max_crawls(form, tracker))
        return sure if tracker.offers is None else min(sure, OFFER_GAIN_BOUND)


def max_crawls(form: Form, tracker: Tracker) -> int:
    """Return the largest number of pages that a decision can crawl, in 1 .. m.

    In ``rates``, an offer is crawled at most once per step, and all offers at most as often as the
    budget of a step allows, rounded up. Other pages are crawled at random times, whose number has
    no bound: all pages count once.
    """
    problem = tracker.problem
    budget = float(form.batch)
    if form.action in RATE_FORMS and tracker.offers is not None:
        largest = max(problem.bandwidth, *(step for _, step in problem.bandwidth_steps), 0.0)
        budget = largest * (form.epoch or 1.0)
    elif form.action in (*RATE_FORMS, "refresh"):
        return problem.num_pages
    crawls = math.ceil(budget * (1.0 - ROUNDING))
    if problem.cost is not None and form.action != "page":
        crawls = int((np.cumsum(np.sort(problem.cost)) <= budget + problem.cost.max()).sum())
    return min(max(crawls, 1), problem.num_pages)


def literal_reward(log: CrawlLog, weights: FloatArray) -> float:
    """Return the share of crawled weight in crawls that found a change, Han et al. (2020), eq. 2.

    It is in [0, 1], and 0 if no page of positive weight was crawled. Weights are >= 0, (m,).
    """
    crawled = weights[log.page]
    spent = float(crawled.sum())
    return min(float(crawled[log.changed].sum()) / spent, 1.0) if spent > 0.0 else 0.0


def gained_share(log: CrawlLog, weights: FloatArray) -> float:
    """Return the weight of the crawls that found a change, as a share of the weight of all pages.

    It is >= 0, and at most 1 if no page is crawled twice; 0 if all weights are 0. Weights are >= 0,
    (m,).
    """
    total = float(weights.sum())
    return float(weights[log.page[log.changed]].sum()) / total if total > 0.0 else 0.0


def sure_bound(weights: FloatArray, crawls: int) -> float:
    """Return the largest share of all weight that ``crawls`` pages can have, a bound on gains.

    It is in (0, 1], and 1 if all weights are 0. Weights are >= 0, (m,), and crawls >= 1.
    """
    total = float(weights.sum())
    if crawls >= weights.size or total <= 0.0:
        return 1.0
    return float(np.partition(weights, -crawls)[-crawls:].sum()) / total
