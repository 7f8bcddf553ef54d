"""A contextual bandit: it learns which crawls find a change from the features of pages.

The model of that probability is logistic regression by Adagrad. The log odds of a change are

    w . (features of the crawl) + w . (features of the page) + sum of the weights of its kinds

The features of a crawl are MOMENT: 1, ln(.01 + elapsed / gap), whether the last crawl found a
change, whether it found none, and ln(1 + signals). The features of a page multiply the odds, as
does its change rate. Kinds are the page itself and, for offers, merchant, brand and so on, hashed
into a fixed number of weights, with collisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import one_of, real, share
from crawl_envs.types.offer_features import HISTORY_FEATURES, OfferFeatures
from policies.base.allocated import complete_pages
from policies.base.bandwidths import bandwidth_at
from policies.base.policy import PAGE_FORMS, RATE_FORMS, Pages, Policy
from policies.base.registry import registered
from policies.offers.rates import LaneRates, RateSource, ShrunkClicks, rate_source
from policies.values.ranking import largest_pages

MOMENT = ("one", "elapsed", "changed", "unchanged", "signals")
"""The features of a crawl."""
SOONEST = 0.01
"""Added to elapsed times, in gaps, before the logarithm."""
BUCKETS = 1 << 14
"""Number of weights of the hashed kinds of offers."""
_ODD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: Fibonacci hashing


@dataclass(eq=False)
class ChangeModel:
    """A model of the probability that a crawl finds a change: weights, and features of pages.

    Attributes:
        gap: the unit of elapsed time: the mean time between two crawls of a page, > 0.
        page_features: features of pages, (m, S).
        kinds: indices of the weights of pages' kinds, (m, C) int64.
        weights: weights of the MOMENT features, of the page features, and of the kinds, (W,).
        squares: sums of the squared gradients so far, (W,).
        rate: learning rate, > 0: the size of the first step of a weight.
        features: offer features of the day, from which ``page_features`` and ``kinds`` follow.
    """

    gap: float
    page_features: FloatArray
    kinds: IntArray
    weights: FloatArray
    squares: FloatArray
    rate: float
    features: OfferFeatures | None

    @classmethod
    def at_start(cls, tracker: Tracker, rate: float) -> ChangeModel:
        """Return the model before any crawl: odds of a change are proportional to elapsed time."""
        problem = tracker.problem
        gap = problem.num_pages / problem.per_cost().bandwidth
        page_features = describe_pages(tracker, gap)
        first = len(MOMENT) + page_features.shape[1]
        size = first + (BUCKETS if tracker.offers is not None else 0) + problem.num_pages
        weights = np.zeros(size)
        weights[MOMENT.index("elapsed")] = 1.0
        kinds = page_kinds(tracker, first)
        return cls(gap, page_features, kinds, weights, np.ones(size), rate, tracker.offers)

    def renew(self, tracker: Tracker) -> None:
        """Compute new features of the pages if a new day has begun."""
        if tracker.offers is not self.features:
            self.page_features, self.features = describe_pages(tracker, self.gap), tracker.offers
            self.kinds = page_kinds(tracker, len(MOMENT) + self.page_features.shape[1])

    def chances(
        self, elapsed: FloatArray, changed: NDArray[np.int8], signals: IntArray
    ) -> FloatArray:
        """Return the probability that a crawl now finds a change, in (0, 1), (m,).

        Arguments, (m,): the time since the last crawl, the result of that crawl (1 changed, 0
        unchanged, -1 no crawl), and the number of signals since then.
        """
        first = len(MOMENT)
        page_weights = self.weights[first : first + self.page_features.shape[1]]
        odds = self._moments(elapsed, changed, signals) @ self.weights[:first]
        odds += self.page_features @ page_weights + self.weights[self.kinds].sum(axis=1)
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))

    def learn(
        self,
        pages: IntArray,
        elapsed: FloatArray,
        signals: IntArray,
        outcome: NDArray[np.bool_],
        changed: NDArray[np.int8],
    ) -> None:
        """Update weights by the results of crawls, (n,) in order, and ``changed``, (m,)."""
        crawls = pages, self._moments(elapsed, changed[pages], signals), outcome, changed
        weights = self.weights, self.squares, self.rate
        learn_changes(*crawls, self.page_features, self.kinds, *weights)

    def _moments(
        self, elapsed: FloatArray, changed: NDArray[np.int8], signals: IntArray
    ) -> FloatArray:
        """Return the features of crawls that MOMENT names, (n, 5), one row per crawl."""
        waited = np.log(SOONEST + elapsed / self.gap)
        one = np.ones(len(elapsed))
        return np.stack((one, waited, changed == 1, changed == 0, np.log1p(signals)), axis=1)


@compiled()
def learn_changes(
    pages: IntArray,
    moments: FloatArray,
    outcome: NDArray[np.bool_],
    changed: NDArray[np.int8],
    features: FloatArray,
    kinds: IntArray,
    weights: FloatArray,
    squares: FloatArray,
    rate: float,
) -> None:
    """Update the weights by one step of Adagrad on the log loss of each crawl, in order.

    Each step uses the results of earlier crawls, which it also writes to ``changed``.
    """
    first = moments.shape[1]
    for k in range(pages.size):
        page, moment = pages[k], moments[k]
        moment[2], moment[3] = changed[page] == 1, changed[page] == 0
        odds = 0.0
        for j in range(first):
            odds += weights[j] * moment[j]
        for j in range(features.shape[1]):
            odds += weights[first + j] * features[page, j]
        for j in range(kinds.shape[1]):
            odds += weights[kinds[page, j]]
        error = 1.0 / (1.0 + np.exp(-odds)) - outcome[k]
        for j in range(first):
            step_down(weights, squares, j, error * moment[j], rate)
        for j in range(features.shape[1]):
            step_down(weights, squares, first + j, error * features[page, j], rate)
        for j in range(kinds.shape[1]):
            step_down(weights, squares, kinds[page, j], error, rate)
        changed[page] = outcome[k]


@inlined()
def step_down(
    weights: FloatArray, squares: FloatArray, place: int, slope: float, rate: float
) -> None:
    """Take one step of Adagrad for the weight at ``place``, whose gradient is ``slope``."""
    squares[place] += slope * slope
    weights[place] -= rate * slope / np.sqrt(squares[place])


def describe_pages(tracker: Tracker, gap: float) -> FloatArray:
    """Return the features of pages that do not depend on crawls, (m, S) float64, of the order of 1.

    They are the logarithms of importance relative to the mean and, if revealed, of change rate and
    false-signal rate per gap, and recall; for offers the logarithms of the history features.
    """
    problem, features = tracker.problem, tracker.offers
    columns = [np.log1p(problem.importance / (problem.importance.mean() or 1.0))]
    for rates in (problem.change_rate, problem.false_signal_rate):
        if rates is not None:
            columns.extend(np.log(SOONEST + gap * np.atleast_2d(rates)))
    if problem.recall is not None:
        columns.extend(np.atleast_2d(problem.recall))
    for name in HISTORY_FEATURES if features is not None else ():
        offset = SOONEST if name == "change_frequency" else 1.0
        columns.append(np.log(offset + np.asarray(getattr(features, name), np.float64)))
    return np.stack(columns, axis=1)


def page_kinds(tracker: Tracker, first: int) -> IntArray:
    """Return the positions, in the model, of the weights of each page's kinds, (m, C) int64.

    The weight of a page has the position ``first`` plus its index. The BUCKETS weights of the kinds
    of offers follow.
    """
    num_pages, features = tracker.problem.num_pages, tracker.offers
    columns = [first + np.arange(num_pages)]
    if features is not None:
        fields = (*features.metadata, np.full(num_pages, features.day_of_week))
        columns += [first + num_pages + hashed(*field) for field in enumerate(fields)]
    return np.stack(columns, axis=1)


def hashed(field: int, values: NDArray[np.integer]) -> IntArray:
    """Return the bucket of each value of a field, in [0, BUCKETS), by hashing both."""
    keys = (values.astype(np.uint64) << np.uint64(4)) | np.uint64(field)
    shift = np.uint64(64 - (BUCKETS.bit_length() - 1))
    return ((keys * np.uint64(_ODD)) >> shift).astype(np.int64)


Aim: TypeAlias = Literal["gain", "freshness"]
ROUNDING = 1e-9
"""Relative tolerance of numbers of crawls."""


@registered(kind="bandit", paper="Offers")
class ContextualBandit(Policy):
    """Crawls the pages with the largest expected gain, and some random pages for exploration.

    The proposal of Han et al. (2020), section 6.2, for future work: instead of a choice among
    strategies, a model of the value of a crawl in the context of a page. The gain of a crawl is the
    page's importance if it finds a change. A :class:`.ChangeModel` learns the probability of a
    change from the crawled pages; it starts without data in every episode.

    Where crawls have costs, pages are ranked by gain per unit of cost.

    The gain is myopic: a page that changes again right after its crawl has the largest gain and the
    least freshness. With the aim ``freshness`` pages are ranked by the crawl value that the
    probability implies (:func:`implied_value`), which is 0 for such pages.

    The forms ``page`` and ``refresh`` crawl the best page, ``scores`` the ``batch`` best pages.
    ``rates`` crawls the best pages that the budget of an epoch allows, at the rate of one crawl per
    epoch, and one more page at the remaining rate. For a page with complete observation that
    number, at most 1, is the probability of a crawl per signal.

    Args:
        aim: ``gain`` or ``freshness``.
        exploration: the probability, in [0, 1], that a crawl of a decision goes to a random other
            page instead.
        learning_rate: learning rate of the model, > 0.
        weights: a source whose clicks count as importance; None for
            :class:`policies.offers.rates.ShrunkClicks` for offers, and elsewhere, or if there are
            no clicks, for the revealed importance.
    """

    learns = True
    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, *RATE_FORMS)

    def __init__(
        self,
        *,
        aim: Aim = "gain",
        exploration: float = 0.05,
        learning_rate: float = 0.3,
        weights: RateSource | None = None,
    ) -> None:
        self.aim = one_of("aim", aim, Aim)
        self.exploration = share("exploration", exploration)
        self.learning_rate = real("learning_rate", learning_rate, above=0.0)
        self.source = None if weights is None else rate_source("weights", weights)

    def chances(self, tracker: Tracker) -> FloatArray:
        """Return the estimated probability that a crawl now finds a change, (m,)."""
        signals = np.atleast_2d(tracker.signals).sum(axis=0)
        return self.model.chances(tracker.elapsed, self.changed, signals)

    def start(self, pages: Pages) -> None:
        """Begin an episode with a model that has no data."""
        tracker = pages.tracker()
        source = self.source or (None if tracker.offers is None else ShrunkClicks())
        self.lane_rates = None if source is None else LaneRates(source)
        self.model = ChangeModel.at_start(tracker, self.learning_rate)
        self.rng = self.own_rng(pages)
        self.changed = tracker.changed.copy()

    def _weights(self, tracker: Tracker) -> FloatArray:
        """Return the importance of each page, (m,): clicks from a source, or the revealed one."""
        if self.lane_rates is None:
            return tracker.problem.importance
        click = self.lane_rates.read(tracker).click
        return click if self.source is not None or click.any() else tracker.problem.importance

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Update the model by the crawls of a step, with the context at the time of the crawls."""
        signals = np.atleast_2d(log.signals).sum(axis=0)
        self.model.learn(log.page, log.elapsed, signals, log.changed, self.changed)
        self.changed = tracker.changed.copy()
        self.model.renew(tracker)

    def choose(self, tracker: Tracker) -> NDArray[Any]:
        """Return the pages of largest gain and some random ones, or crawl rates of an epoch."""
        values = self.chances(tracker)
        if self.aim == "freshness":
            values = implied_value(values, tracker.elapsed)
        values = self._weights(tracker) * values
        if tracker.problem.cost is not None:
            values = values / tracker.problem.cost
        values = np.where(tracker.alive, values, -np.inf)
        if self.form.action == "rates":
            return self._rates(values, tracker)
        if self.form.action == "scores":
            return self._paid_pages(values, self.form.batch, tracker)
        return self._pages(values, 1)

    def _paid_pages(self, values: FloatArray, budget: float, tracker: Tracker) -> IntArray:
        """Return the pages that a budget pays, random ones last; with costs, then all others."""
        budget *= 1.0 - ROUNDING
        cost = tracker.problem.cost
        if cost is None:
            return self._pages(values, math.ceil(budget))
        ranked = largest_pages(values, tracker.alive, values.size)
        pages = self._pages(values, int((np.cumsum(cost[ranked]) < budget).sum()) + 1)
        return np.concatenate((pages, ranked[~np.isin(ranked, pages)]))

    def _pages(self, values: FloatArray, count: int) -> IntArray:
        """Return ``count`` existing pages to crawl: the best ones first, random ones last."""
        alive = np.flatnonzero(values > -np.inf)
        count = min(count, alive.size)
        if count == 0:
            return np.zeros(1, np.int64)
        explored = int(self.rng.binomial(count, self.exploration))
        best = largest_pages(values, values > -np.inf, count - explored)[: count - explored]
        if explored == 0:
            return best
        rest = np.setdiff1d(alive, best, assume_unique=True)
        return np.concatenate((best, self.rng.choice(rest, explored, replace=False)))

    def _rates(self, values: FloatArray, tracker: Tracker) -> FloatArray:
        """Return the crawl rates of an epoch, (m,), that crawl the best pages once."""
        epoch, problem = self.form.epoch or 1.0, tracker.problem
        budget = bandwidth_at(problem, epoch, tracker.time) * epoch
        pages = self._paid_pages(values, budget, tracker)
        cost = np.ones(len(pages)) if problem.cost is None else problem.cost[pages]
        paid = (budget - (np.cumsum(cost) - cost)) / cost
        rates = np.zeros(problem.num_pages)  # the last page gets the remaining rate
        rates[pages] = np.clip(paid, 0.0, 1.0) / epoch
        return np.where(complete_pages(problem), np.minimum(rates, 1.0), rates)


def implied_value(chances: FloatArray, elapsed: FloatArray) -> FloatArray:
    """Return the crawl value per importance of pages with these change probabilities, (m,).

    It is GREEDY's of Busa-Fekete et al. (section 5.1, :func:`policies.values.greedy`) at the
    change rate x / elapsed, x = -ln(1 - P), at which a page has changed by now with probability P:
    elapsed (P / x - (1 - P)). The value of a page with P near 1 is close to 0 right after a crawl
    and grows with elapsed time.
    """
    unchanged = np.maximum(1.0 - chances, np.finfo(np.float64).tiny)
    exponent = np.maximum(-np.log(unchanged), np.finfo(np.float64).tiny)
    return np.asarray(elapsed * np.maximum(chances / exponent - unchanged, 0.0))
