"""Proportional strategies for offers, and the base class of policies with rate sources."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, Tracker
from policies.base.allocated import complete_pages
from policies.base.bandwidths import bandwidth_at
from policies.base.binding import RATE_FORMS, ActingPolicy
from policies.base.registry import registered
from policies.base.signal_queue import response_share
from policies.offers.rates import LaneRates, OfferRates, RateSource, default_source, rate_source


def proportional_rates(weights: FloatArray, bandwidth: float, highest: float) -> FloatArray:
    """Return crawl rates in proportion to weights >= 0, (m,), clipped to ``highest``.

    The excess of clipped pages is shared among the others in proportion: rates are
    ``min(c weight, highest)`` with the c that spends the bandwidth. Pages of weight 0 have rate 0,
    even if bandwidth is left over; but if all weights are 0, all rates are equal.
    """
    given = np.asarray(weights, np.float64)
    if not given.any():
        return np.full(len(given), min(bandwidth / len(given), highest))
    rates, free, left = np.zeros(len(given)), np.flatnonzero(given), bandwidth
    while free.size:
        shares = given[free] / given[free].max()
        rates[free] = np.minimum(shares * (max(left, 0.0) / shares.sum()), highest)
        clipped = rates[free] >= highest
        if not clipped.any():
            break
        left -= highest * np.count_nonzero(clipped)
        free = free[~clipped]
    return rates


class SourcedPolicy(ActingPolicy):
    """Crawls at rates that follow from estimated clicks, impressions and price changes.

    For offers it calls the source once a day, and crawls an offer at most once per step; elsewhere
    it calls the source once per episode. For a page with complete observation the rate becomes an
    equivalent share of its signals, as for :class:`policies.base.allocated.AllocatedPolicy`. An
    epoch has its mean bandwidth.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        rates: source of the rates (:class:`policies.offers.rates.RateSource`); None for the
            history of offers, and elsewhere for revealed parameters.

    Raises:
        ValueError: ``rates`` is not a source; at a decision, the source returns invalid rates.
    """

    acts: ClassVar[tuple[str, ...]] = RATE_FORMS
    reads_log = False

    def __init__(self, env: Any, *, rates: RateSource | None = None) -> None:
        super().__init__(env)
        self.source = None if rates is None else rate_source("rates", rates)

    @abstractmethod
    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return the crawl rates, in [0, highest], (m,), that spend a bandwidth > 0."""

    def _start(self, tracker: Tracker) -> None:
        self.lane_rates = LaneRates(self.source or default_source(tracker))
        self.planned: tuple[OfferRates, float] | None = None
        self.action = np.zeros(0)

    def _follow(self, lane: int) -> Tracker:
        tracker = super()._follow(lane)
        self.of_lane(lane).lane_rates.at(tracker)
        return tracker

    def _choose(self, tracker: Tracker) -> NDArray[Any]:
        """Return the action, planned again if rates or bandwidth have changed."""
        rates = self.lane_rates.at(tracker)
        bandwidth = bandwidth_at(tracker.problem, self._epoch, tracker.time)
        if self.planned is None or self.planned[0] is not rates or self.planned[1] != bandwidth:
            self.action = self._plan(rates, bandwidth, tracker)
            self.planned = rates, bandwidth
        return self.action

    def _plan(self, rates: OfferRates, bandwidth: float, tracker: Tracker) -> FloatArray:
        highest = bandwidth if tracker.offers is None else 1.0 / self._epoch
        crawl_rates = self.allocate(rates, bandwidth, highest)
        complete, change_rate = complete_pages(tracker.problem), tracker.problem.change_rate
        if not complete.any():
            return crawl_rates
        if change_rate is None:
            raise ValueError(
                f"{self.name} needs change_rate where pages have complete observation; make the "
                "environment with reveal='parameters'"
            )
        return np.where(complete, response_share(crawl_rates, change_rate), crawl_rates)

    @property
    def _epoch(self) -> float:
        assert self.core is not None
        return self.core.epoch


class WeightedPolicy(SourcedPolicy):
    """Crawls in proportion to one of the rates: a proportional strategy of Han et al. 2020.

    Rates are clipped to one crawl per step, and the excess goes to the other offers. Offers of rate
    0 are never crawled, unless all rates are 0 (:func:`proportional_rates`).

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    weight: ClassVar[str]
    """The field of :class:`.OfferRates` that the crawl rates are proportional to."""

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return crawl rates in proportion to the weights."""
        return proportional_rates(getattr(rates, self.weight), bandwidth, highest)


@registered(paper="Offers", family="offers")
class ChangeWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to the probability that the price changes: Delta of Table 2."""

    weight = "change"


@registered(paper="Offers", family="offers")
class ClickWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to clicks: mu of Table 2."""

    weight = "click"


@registered(paper="Offers", family="offers")
class ImpressionWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to impressions: v of Table 2."""

    weight = "impression"
