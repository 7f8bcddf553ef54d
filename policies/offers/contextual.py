"""A contextual bandit that learns from the context of each page which crawls find a change."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import real
from policies.base.allocated import complete_pages
from policies.base.bandwidths import epoch_bandwidths
from policies.base.binding import PAGE_FORMS, RATE_FORMS, LearningPolicy
from policies.base.registry import registered
from policies.offers.change_model import ChangeModel
from policies.offers.rates import LaneRates, RateSource, ShrunkClicks, rate_source

Aim: TypeAlias = Literal["gain", "freshness"]
ROUNDING = 1e-9
"""Relative tolerance of numbers of crawls."""


@registered()
class ContextualBandit(LearningPolicy):
    """Crawls the pages with the largest expected gain, and some random pages for exploration.

    The proposal of Han et al. (2020), section 6.2, for future work: instead of a choice among
    strategies, a model of the value of a crawl given the context of a page. The gain of a crawl is
    the page's importance if it finds a change, else 0. A :class:`.ChangeModel` learns the
    probability of a change from the crawled pages alone; every lane has its own, which is reset in
    every episode.

    This is myopic. A page that changes again right after its crawl has the largest gain and the
    least freshness: the largest gains do not give the largest freshness. With the aim ``freshness``
    pages are ranked by the crawl value that the probability implies (:func:`implied_value`), which
    is 0 for such pages.

    The form ``page`` crawls the best page, ``scores`` the ``batch`` best and ``refresh`` the best
    one; ``rates`` the best ones that the budget of an epoch allows, at the rate of one crawl per
    epoch, and one more at the remaining rate. For a page with complete observation that number, at
    most 1, is the probability of a crawl per signal.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        aim: ``gain`` or ``freshness``.
        exploration: the probability, in [0, 1], that a crawl of a decision goes to a random page
            among all others instead.
        learning_rate: learning rate of the model, > 0.
        weights: a source whose clicks count as importance; None for
            :class:`policies.offers.rates.ShrunkClicks` for offers, and elsewhere, or if there are
            no clicks, for the revealed importance.
    """

    acts: ClassVar[tuple[str, ...]] = (*PAGE_FORMS, *RATE_FORMS)

    def __init__(
        self,
        env: Any,
        *,
        aim: Aim = "gain",
        exploration: float = 0.05,
        learning_rate: float = 0.3,
        weights: RateSource | None = None,
    ) -> None:
        super().__init__(env)
        if aim not in get_args(Aim):
            raise ValueError(f"aim must be one of {get_args(Aim)}, got {aim!r}")
        self.aim = aim
        self.exploration = real("exploration", exploration, least=0.0)
        if self.exploration > 1.0:
            raise ValueError(f"exploration must lie in [0, 1], got {exploration!r}")
        self.learning_rate = real("learning_rate", learning_rate, above=0.0)
        self.source = None if weights is None else rate_source("weights", weights)

    def chances(self, lane: int = 0) -> FloatArray:
        """Return the estimated probability that a crawl of each page now finds a change, (m,)."""
        assert self.core is not None
        return self._known(lane)._chances(self.core.tracker(lane))

    def _start(self, tracker: Tracker) -> None:
        assert self.core is not None
        source = self.source or (None if tracker.offers is None else ShrunkClicks())
        self.lane_rates = None if source is None else LaneRates(source)
        self.model = ChangeModel.at_start(tracker, self.learning_rate)
        self.rng = self.core.rng(self.lane).spawn(1)[0]
        self.changed = tracker.changed.copy()

    def _weights(self, tracker: Tracker) -> FloatArray:
        """Return what counts as importance of the pages, (m,)."""
        if self.lane_rates is None:
            return tracker.problem.importance
        click = self.lane_rates.at(tracker).click
        return click if self.source is not None or click.any() else tracker.problem.importance

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Learn from the crawls of a step, with the context at the time of the crawls."""
        if self.first_log:
            return
        crawls, signals = ~log.probe, np.atleast_2d(log.signals).sum(axis=0)
        context = log.page[crawls], log.elapsed[crawls], signals[crawls]
        self.model.learn(*context, log.changed[crawls], self.changed)
        self.changed = tracker.changed.copy()
        self.model.renew(tracker)

    def _choose(self, tracker: Tracker) -> NDArray[Any]:
        values = self._chances(tracker)
        if self.aim == "freshness":
            values = implied_value(values, tracker.elapsed)
        values = np.where(tracker.alive, self._weights(tracker) * values, -np.inf)
        if self.action_form == "rates":
            return self._rates(values, tracker)
        return self._pages(values, self._count)

    def _chances(self, tracker: Tracker) -> FloatArray:
        signals = np.atleast_2d(tracker.signals).sum(axis=0)
        return self.model.chances(tracker.elapsed, self.changed, signals)

    def _pages(self, values: FloatArray, count: int) -> IntArray:
        """Return ``count`` existing pages, the best first and the random ones last."""
        alive = np.flatnonzero(values > -np.inf)
        count = min(count, alive.size)
        if count == 0:
            return np.zeros(1, np.int64)
        explored = min(int(self.rng.binomial(count, self.exploration)), alive.size)
        best = top_pages(values, count - explored)
        if explored == 0:
            return best
        others = np.setdiff1d(alive, best, assume_unique=True)
        return np.concatenate((best, self.rng.choice(others, explored, replace=False)))

    def _rates(self, values: FloatArray, tracker: Tracker) -> FloatArray:
        """Return the action of an epoch, (m,)."""
        assert self.core is not None
        epoch, problem = self.core.epoch, tracker.problem
        starts, bandwidths = zip(*epoch_bandwidths(problem, epoch), strict=True)
        due = tracker.time + ROUNDING * epoch
        bandwidth = bandwidths[int(np.searchsorted(starts, due, side="right")) - 1]
        budget = bandwidth * epoch
        pages = self._pages(values, math.ceil(budget * (1.0 - ROUNDING)))
        rates = np.zeros(problem.num_pages)
        rates[pages] = 1.0 / epoch
        if len(pages) > budget:  # the last one gets what is left
            rates[pages[-1]] = (budget - (len(pages) - 1)) / epoch
        return np.where(complete_pages(problem), np.minimum(rates, 1.0), rates)


def implied_value(chances: FloatArray, elapsed: FloatArray) -> FloatArray:
    """Return the crawl value per importance of pages with these change probabilities, (m,).

    It is GREEDY's of Busa-Fekete et al. (section 5.1, :func:`policies.values.greedy`) at the
    change rate x / elapsed, x = -ln(1 - P), at which a page has changed by now with probability P:
    elapsed (P / x - (1 - P)). The value of a page with P near 1 is close to 0 right after a crawl
    and grows with elapsed time.
    """
    kept = np.maximum(1.0 - chances, np.finfo(np.float64).tiny)
    exponent = np.maximum(-np.log(kept), np.finfo(np.float64).tiny)
    return np.asarray(elapsed * np.maximum(chances / exponent - kept, 0.0))


def top_pages(values: FloatArray, count: int) -> IntArray:
    """Return the ``count`` pages of the largest values, best first, ties by lowest index."""
    if count <= 0:
        return np.zeros(0, np.int64)
    cutoff = np.partition(values, -count)[-count]
    reached = np.flatnonzero(values >= cutoff)
    order = np.argsort(-values[reached], kind="stable")
    return reached[order[:count]].astype(np.int64)
