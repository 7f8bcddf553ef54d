"""A contextual bandit that learns from the context of each page which crawls find a change."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import real
from crawl_envs.types.offer_features import OfferFeatures
from policies.base.allocated import complete_pages
from policies.base.bandwidths import epoch_bandwidths
from policies.base.binding import PAGE_FORMS, RATE_FORMS, ActingPolicy
from policies.base.registry import registered
from policies.offers.change_model import ChangeModel
from policies.offers.rates import RateSource, ShrunkClicks, cached_rates, fresh_source, rate_source

Aim: TypeAlias = Literal["gain", "freshness"]
ROUNDING = 1e-9
"""Relative tolerance of times and counts."""


@dataclass
class ContextState:
    """A lane's episode state: its model, the results of the last crawls, and the last decision."""

    episode: int
    model: ChangeModel
    source: RateSource | None
    rng: np.random.Generator
    changed: NDArray[np.int8]
    weights: FloatArray
    offer_features: OfferFeatures | None
    read_until: float
    decided: float = math.nan
    choice: NDArray[Any] = field(default_factory=lambda: np.zeros(1, np.int64))


@registered
class ContextualBandit(ActingPolicy[ContextState]):
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
        weights: a source whose clicks count as importance, called once for each day's offer
            features; None for :class:`policies.offers.rates.ShrunkClicks` for offers, and
            elsewhere, or if there are no clicks, for the revealed importance.

    Raises:
        ValueError: ``env`` is not a crawl environment; an argument is out of its range.
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
        if env is None:
            raise ValueError(f"{self.name} learns from crawls, so env must be an environment")
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
        """Return the estimated probability that a crawl of each page now finds a change, (m,).

        Raises:
            ValueError: ``predict`` was not called for this lane yet.
        """
        assert self.core is not None
        if lane not in self._lane_states:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._chances(self._lane_states[lane], self.core.tracker(lane))

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn from the log of a lane's last step, as the next ``predict`` would do."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        self._learn(self._lane_state(tracker, lane), log, tracker)

    def _begin(self, tracker: Tracker, lane: int) -> ContextState:
        assert self.core is not None
        source = None if self.source is None else fresh_source(self.source)
        if source is None and tracker.offers is not None:
            source = ShrunkClicks()
        return ContextState(
            tracker.episode,
            ChangeModel.at_start(tracker, self.learning_rate),
            source,
            self.core.rng(lane).spawn(1)[0],
            tracker.changed.copy(),
            self._weights(source, tracker),
            tracker.offers,
            tracker.time,
        )

    def _weights(self, source: RateSource | None, tracker: Tracker) -> FloatArray:
        if source is None:
            return tracker.problem.importance
        click = cached_rates(source, tracker).click
        return click if self.source is not None or click.any() else tracker.problem.importance

    def _learn(self, lane_state: ContextState, log: CrawlLog, tracker: Tracker) -> None:
        """Learn from the crawls of a step, once, with the context at the time of the crawls."""
        if lane_state.read_until == tracker.time:
            return
        lane_state.read_until = tracker.time
        real_ones = ~log.probe
        signals = np.atleast_2d(log.signals).sum(axis=0)
        lane_state.model.learn(
            log.page[real_ones],
            log.elapsed[real_ones],
            signals[real_ones],
            log.changed[real_ones],
            lane_state.changed,
        )
        lane_state.changed = tracker.changed.copy()
        if tracker.offers is not lane_state.offer_features:
            lane_state.offer_features = tracker.offers
            lane_state.model.renew(tracker)
            lane_state.weights = self._weights(lane_state.source, tracker)

    def _choose(self, lane_state: ContextState, tracker: Tracker, lane: int) -> NDArray[Any]:
        assert self.core is not None
        if lane_state.decided == tracker.time:
            return lane_state.choice
        self._learn(lane_state, self.core.last_log(lane), tracker)
        lane_state.decided = tracker.time
        values = self._chances(lane_state, tracker)
        if self.aim == "freshness":
            values = implied_value(values, tracker.elapsed)
        values = np.where(tracker.alive, lane_state.weights * values, -np.inf)
        if self.action_form == "rates":
            lane_state.choice = self._rates(values, lane_state, tracker)
        else:
            lane_state.choice = self._pages(values, self._count, lane_state.rng)
        return lane_state.choice

    def _chances(self, lane_state: ContextState, tracker: Tracker) -> FloatArray:
        signals = np.atleast_2d(tracker.signals).sum(axis=0)
        return lane_state.model.chances(tracker.elapsed, lane_state.changed, signals)

    def _pages(self, values: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
        """Return ``count`` existing pages, the best first and the random ones last."""
        alive = np.flatnonzero(values > -np.inf)
        count = min(count, alive.size)
        if count == 0:
            return np.zeros(1, np.int64)
        explored = min(int(rng.binomial(count, self.exploration)), alive.size)
        best = top_pages(values, count - explored)
        if explored == 0:
            return best
        others = np.setdiff1d(alive, best, assume_unique=True)
        return np.concatenate((best, rng.choice(others, explored, replace=False)))

    def _rates(self, values: FloatArray, lane_state: ContextState, tracker: Tracker) -> FloatArray:
        """Return the action of an epoch, (m,)."""
        assert self.core is not None
        epoch, problem = self.core.epoch, tracker.problem
        starts, bandwidths = zip(*epoch_bandwidths(problem, epoch), strict=True)
        due = tracker.time + ROUNDING * epoch
        bandwidth = bandwidths[int(np.searchsorted(starts, due, side="right")) - 1]
        budget = bandwidth * epoch
        pages = self._pages(values, math.ceil(budget * (1.0 - ROUNDING)), lane_state.rng)
        rates = np.zeros(problem.num_pages)
        rates[pages] = 1.0 / epoch
        if len(pages) > budget:  # the last one gets what is left
            rates[pages[-1]] = (budget - (len(pages) - 1)) / epoch
        return np.where(complete_pages(problem), np.minimum(rates, 1.0), rates)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError(f"{self.name} is always bound")


def implied_value(chances: FloatArray, elapsed: FloatArray) -> FloatArray:
    """Return the crawl value per importance of pages with these change probabilities, (m,).

    It is GREEDY's of Busa-Fekete et al. (section 5.1, :func:`policies.values.greedy`) at the
    change rate x / elapsed, x = -ln(1 - P), at which a page has changed by now with probability P:
    elapsed (P / x - (1 - P)). The value of a page with P near 1 is close to 0 right after a crawl
    and grows with elapsed time.

    Args:
        chances: P, in [0, 1], (m,).
        elapsed: time since the last crawl, >= 0, (m,).
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
