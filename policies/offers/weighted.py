"""Proportional strategies for offers, and the base class of strategies with rate sources."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, Problem, Tracker
from crawl_envs.types.arguments import page_arrays, quantity, real
from crawl_envs.types.compiling import compiled
from policies.base.allocated import complete_pages
from policies.base.bandwidths import epoch_bandwidths
from policies.base.binding import RATE_FORMS, ActingPolicy
from policies.base.registry import registered
from policies.base.signal_queue import response_share
from policies.offers.rates import (
    OfferRates,
    RateSource,
    cached_rates,
    default_source,
    fresh_source,
    rate_source,
)

ROUNDING = 1e-9
"""Relative tolerance of the time of a decision before its epoch's start."""


def proportional_rates(weights: ArrayLike, bandwidth: float, highest: float) -> FloatArray:
    """Return crawl rates in proportion to weights, clipped to ``highest``.

    The excess of clipped pages is shared among the others in proportion: rates are
    ``min(c weight, highest)`` with the c that spends the bandwidth. Pages of weight 0 have rate 0,
    even if bandwidth is left over; but if all weights are 0, all rates are equal.

    Args:
        weights: >= 0, (m,).
        bandwidth: crawls per unit of time, > 0.
        highest: largest rate of a page, crawls per unit of time, > 0.

    Returns:
        Rates in [0, highest], (m,), with the bandwidth as their sum if the weights allow it.

    Raises:
        ValueError: an argument is negative or not finite, ``weights`` has another shape.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    highest = real("highest", highest, above=0.0)
    (given,) = page_arrays(weights=weights)
    rates = np.empty(len(given))
    _fill(given, bandwidth, highest, rates)
    return rates


@compiled()
def _fill(weights: FloatArray, bandwidth: float, highest: float, rates: FloatArray) -> None:
    """Write the rates: each pass clips some more pages, until none is above ``highest``."""
    level, held, largest, rate = np.inf, 0, 0.0, 0.0  # weights >= level are clipped
    while True:
        largest, total = 0.0, 0.0
        for i in range(weights.size):
            if weights[i] < level and weights[i] > largest:
                largest = weights[i]
        if largest == 0.0:
            break
        for i in range(weights.size):
            total += weights[i] / largest if weights[i] < level else 0.0
        rate = max(bandwidth - held * highest, 0.0) / total  # of the largest
        if rate <= highest:
            break
        level, held = largest, 0
        for i in range(weights.size):
            if weights[i] / largest * rate >= highest and weights[i] < level:
                level = weights[i]
        for i in range(weights.size):
            held += weights[i] >= level
    if held == 0 and largest == 0.0:
        rates[:] = min(bandwidth / weights.size, highest)
        return
    for i in range(weights.size):
        free = weights[i] / largest * rate if largest > 0.0 else 0.0
        rates[i] = highest if weights[i] >= level else free


class SourcedPolicy(ActingPolicy):
    """Crawls at rates that follow from estimated clicks, impressions and price changes.

    It acts in the form ``rates``. For offers it calls the source once a day, and policies with the
    same source share the result (:func:`policies.offers.rates.cached_rates`); an offer is crawled
    at most once per step. Elsewhere it calls the source once per episode. For a page with complete
    observation the rate becomes an equivalent share of its signals, as for
    :class:`policies.base.allocated.AllocatedPolicy`. An epoch has its mean bandwidth.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        rates: source of the rates (:class:`policies.offers.rates.RateSource`); None for the
            history of offers, and elsewhere for revealed parameters.

    Raises:
        ValueError: ``env`` is not a crawl environment, or has another action form; ``rates`` is
            not a source; at a decision, the source returns invalid rates.
    """

    acts: ClassVar[tuple[str, ...]] = RATE_FORMS
    reads_log = False

    def __init__(self, env: Any, *, rates: RateSource | None = None) -> None:
        super().__init__(env)
        self.source = None if rates is None else rate_source("rates", rates)

    @abstractmethod
    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return the crawl rates, >= 0, (m,).

        Args:
            rates: clicks, impressions and changes.
            bandwidth: crawls per unit of time, > 0.
            highest: largest rate of a page, > 0.
        """

    def _start(self, tracker: Tracker) -> None:
        periods = epoch_bandwidths(tracker.problem, self._epoch)
        self.starts, self.bandwidths = zip(*periods, strict=True)
        self.day_source = fresh_source(self.source or default_source(tracker))
        self.rates = cached_rates(self.day_source, tracker)
        self.offer_features, self.bandwidth = tracker.offers, 0.0
        self.action: FloatArray | None = None

    def _renew(self, tracker: Tracker) -> None:
        """Read the rates for the current offer features."""
        if tracker.offers is not self.offer_features:
            rates = cached_rates(self.day_source, tracker)
            if rates is not self.rates:
                self.rates, self.action = rates, None
            self.offer_features = tracker.offers

    def _follow(self, lane: int) -> Tracker:
        tracker = super()._follow(lane)
        self.of_lane(lane)._renew(tracker)
        return tracker

    def _choose(self, tracker: Tracker) -> NDArray[Any]:
        """Return the action, planned again if rates or bandwidth have changed."""
        self._renew(tracker)
        due = tracker.time + ROUNDING * self._epoch
        bandwidth = self.bandwidths[int(np.searchsorted(self.starts, due, side="right")) - 1]
        if self.action is None or bandwidth != self.bandwidth:
            self.action = self._plan(self.rates, bandwidth, tracker)
            self.bandwidth = bandwidth
        return self.action

    def _plan(self, rates: OfferRates, bandwidth: float, tracker: Tracker) -> FloatArray:
        highest = bandwidth if tracker.offers is None else 1.0 / self._epoch
        crawl_rates = self.allocate(rates, bandwidth, highest)
        complete = complete_pages(tracker.problem)
        if not complete.any():
            return crawl_rates
        return np.where(complete, self._shares(tracker.problem, crawl_rates), crawl_rates)

    def _shares(self, problem: Problem, rates: FloatArray) -> FloatArray:
        """Return the shares of signals with as many crawls as the rates, (m,)."""
        if problem.change_rate is None:
            raise ValueError(
                f"{self.name} needs change_rate where pages have complete observation; make the "
                "environment with reveal='parameters'"
            )
        return response_share(rates, problem.change_rate)

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

    @abstractmethod
    def weights(self, rates: OfferRates) -> FloatArray:
        """Return the weights that the crawl rates are proportional to, >= 0, (m,)."""

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return crawl rates in proportion to the weights, (m,)."""
        return proportional_rates(self.weights(rates), bandwidth, highest)


@registered(paper="Offers", family="offers")
class ChangeWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to the probability that the price changes: Delta of Table 2.

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    def weights(self, rates: OfferRates) -> FloatArray:
        """Return the probabilities of a change within a day, (m,)."""
        return rates.change


@registered(paper="Offers", family="offers")
class ClickWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to clicks: mu of Table 2.

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    def weights(self, rates: OfferRates) -> FloatArray:
        """Return the clicks per day, (m,)."""
        return rates.click


@registered(paper="Offers", family="offers")
class ImpressionWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to impressions: v of Table 2.

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    def weights(self, rates: OfferRates) -> FloatArray:
        """Return the impressions per day, (m,)."""
        return rates.impression
