"""Strategies that crawl in proportion to something, and what strategies for offers share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import page_arrays, quantity, real
from crawl_envs.types.compiling import compiled
from crawl_envs.types.offer_features import OfferFeatures
from policies.base.allocated import complete_pages
from policies.base.bandwidths import epoch_bandwidths
from policies.base.binding import ActingPolicy
from policies.base.signal_queue import response_share
from policies.offers.rates import OfferRates, RateSource, answer, begun, rate_source, usual_source

ROUNDING = 1e-9
"""Share by which the time of a decision may fall short of its epoch's start through rounding."""


def proportional_rates(weights: ArrayLike, bandwidth: float, highest: float) -> FloatArray:
    """Crawl rates in proportion to weights, none of them above the highest.

    What that keeps from pages is shared among the others in proportion, again and again: rates are
    ``min(c weight, highest)`` with the c that spends the bandwidth. Pages of weight 0 get nothing,
    even if bandwidth is left over; but if all weights are 0, all rates are equal.

    Args:
        weights: >= 0, (m,).
        bandwidth: crawls per unit of time, > 0.
        highest: largest rate of a page, crawls per unit of time, > 0.

    Returns:
        Rates in [0, highest], (m,), that sum to the bandwidth where there is anyone to crawl.

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
    """Fill in the rates: each pass holds some more pages at the highest, until none is above."""
    level, held, largest, rate = np.inf, 0, 0.0, 0.0  # weights from the level on are held
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


@dataclass
class SourcedState:
    """One lane's episode: where its rates come from, and what was made of them last.

    Attributes:
        episode: its number.
        source: where the rates come from.
        starts: when the bandwidths begin to hold, from 0 on.
        bandwidths: crawls per unit of time, likewise.
        book: the book that the source was asked with last.
        rates: what it said.
        bandwidth: the bandwidth that the action spends.
        action: the action that follows, (m,); None where it is still to be planned.
    """

    episode: int
    source: RateSource
    starts: tuple[float, ...]
    bandwidths: tuple[float, ...]
    book: OfferFeatures | None
    rates: OfferRates
    bandwidth: float
    action: FloatArray | None


class SourcedPolicy(ActingPolicy[SourcedState]):
    """Crawls at rates that follow from clicks, impressions and price changes as they are believed.

    It acts in the form ``rates``. Where pages are offers it asks the source once for every book,
    that is once a day, and a policy that shares the source shares the answer
    (:func:`policies.offers.rates.answer`); an offer is crawled once per step at most. Elsewhere it
    asks once per episode. A page with complete observation takes the share of its signals that
    makes as many crawls, as for :class:`policies.base.allocated.AllocatedPolicy`. Where the bandwidth
    steps, each step has the mean of its own.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        rates: where the rates come from (:class:`policies.offers.rates.RateSource`); None for the
            history of offers, and elsewhere for what is revealed.

    Raises:
        ValueError: ``env`` is no crawl environment, or has another form of action; ``rates`` is
            no source; at a decision, what the source says is unfit (:func:`answer`).
    """

    acts: ClassVar[tuple[str, ...]] = ("rates",)

    def __init__(self, env: Any, *, rates: RateSource | None = None) -> None:
        if env is None:
            raise ValueError(f"{self.name} plans ahead, so env must be an environment")
        super().__init__(env)
        self.source = None if rates is None else rate_source("rates", rates)

    @abstractmethod
    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """The crawl rates that follow, >= 0, (m,).

        Args:
            rates: clicks, impressions and changes.
            bandwidth: crawls per unit of time, > 0.
            highest: largest rate of a page, > 0.
        """

    def _begin(self, tracker: Tracker, lane: int) -> SourcedState:
        assert self.core is not None
        starts, bandwidths = zip(*epoch_bandwidths(tracker.problem, self.core.epoch), strict=True)
        source = begun(self.source or usual_source(tracker))
        rates = answer(source, tracker)
        return SourcedState(
            tracker.episode, source, starts, bandwidths, tracker.offers, rates, 0.0, None
        )

    def _lane_state(self, tracker: Tracker, lane: int) -> SourcedState:
        """What is kept of a lane's episode, with the rates of the book as it is now."""
        lane_state = super()._lane_state(tracker, lane)
        if tracker.offers is not lane_state.book:
            rates = answer(lane_state.source, tracker)
            if rates is not lane_state.rates:
                lane_state.rates, lane_state.action = rates, None
            lane_state.book = tracker.offers
        return lane_state

    def _choose(self, lane_state: SourcedState, tracker: Tracker, lane: int) -> NDArray[Any]:
        """The action, planned anew where there is something new."""
        due = tracker.time + ROUNDING * self._epoch
        bandwidth = lane_state.bandwidths[
            int(np.searchsorted(lane_state.starts, due, side="right")) - 1
        ]
        if lane_state.action is None or bandwidth != lane_state.bandwidth:
            lane_state.action = self._plan(lane_state.rates, bandwidth, tracker)
            lane_state.bandwidth = bandwidth
        return lane_state.action

    def _plan(self, rates: OfferRates, bandwidth: float, tracker: Tracker) -> FloatArray:
        highest = bandwidth if tracker.offers is None else 1.0 / self._epoch
        found = self.allocate(rates, bandwidth, highest)
        complete = complete_pages(tracker.problem)
        if not complete.any():
            return found
        return np.where(complete, self._shares(tracker.problem, found), found)

    def _shares(self, problem: Problem, rates: FloatArray) -> FloatArray:
        """The shares of signals that make as many crawls as the rates, (m,)."""
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

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError(f"{self.name} is always bound")


class WeightedPolicy(SourcedPolicy):
    """Crawls in proportion to one of the rates: a proportional strategy of Han et al. 2020.

    Where that would be more than once per step for an offer, the others share the rest. Offers of
    rate 0 are never crawled, unless all are (:func:`proportional_rates`).

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    @abstractmethod
    def weights(self, rates: OfferRates) -> FloatArray:
        """What the crawl rates are in proportion to, >= 0, (m,)."""

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Crawl rates in proportion to the weights, (m,)."""
        return proportional_rates(self.weights(rates), bandwidth, highest)


class ChangeWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to the probability that the price changes: Delta of Table 2.

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    def weights(self, rates: OfferRates) -> FloatArray:
        """The probabilities of a change within a day, (m,)."""
        return rates.change


class ClickWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to clicks: mu of Table 2.

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    def weights(self, rates: OfferRates) -> FloatArray:
        """Clicks per day, (m,)."""
        return rates.click


class ImpressionWeightedCrawl(WeightedPolicy):
    """Crawls in proportion to impressions: v of Table 2.

    Arguments and errors as for :class:`SourcedPolicy`.
    """

    def weights(self, rates: OfferRates) -> FloatArray:
        """Impressions per day, (m,)."""
        return rates.impression
