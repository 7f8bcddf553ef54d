"""Crawl rates of offers from daily predictions: the strategies of Han et al. 2020, Table 2.

They are in proportion to clicks, impressions or changes, or optimal in discrete time.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, Tracker
from crawl_envs.types.arguments import one_of, within_domain
from policies import solvers
from policies.base.allocated import complete_pages, response_shares
from policies.base.bandwidths import bandwidth_at
from policies.base.policy import RATE_FORMS, Pages, Policy
from policies.base.registry import registered
from policies.offers.rates import LaneRates, OfferRates, RateSource, default_source, rate_source


def proportional_rates(
    weights: FloatArray, bandwidth: float, highest: float, cost: FloatArray | None = None
) -> FloatArray:
    """Return crawl rates in proportion to weights >= 0, (m,), clipped to ``highest``.

    The excess of clipped pages goes to the others in proportion: rates are
    ``min(c weight, highest)`` with the c that spends the bandwidth, by the ``cost`` of a crawl of
    each page, (m,), None for 1. Pages of weight 0 have rate 0, even if some bandwidth remains. If
    all weights are 0, all rates are equal.
    """
    array = np.asarray(weights, np.float64)
    costs = np.ones(len(array)) if cost is None else cost
    if not array.any():
        return np.full(len(array), min(bandwidth / costs.sum(), highest))
    rates, free, remaining = np.zeros(len(array)), np.flatnonzero(array), bandwidth
    while free.size:
        shares = array[free] / array[free].max()
        scale = max(remaining, 0.0) / (shares * costs[free]).sum()
        rates[free] = np.minimum(shares * scale, highest)
        clipped = rates[free] >= highest
        if not clipped.any():
            break
        remaining -= highest * costs[free[clipped]].sum()
        free = free[~clipped]
    return rates


class SourcedPolicy(Policy):
    """Crawls at rates that follow from estimated clicks, impressions and price changes.

    For offers it calls the source once a day, and crawls an offer at most once per step. For other
    pages it calls the source once per episode. For a page with complete observation the rate
    becomes an equivalent share of its signals, as for
    :class:`policies.base.allocated.AllocatedPolicy`. An epoch has its mean bandwidth.

    Args:
        rates: source of the rates (:class:`policies.offers.rates.RateSource`); None for the
            history of offers, or for revealed parameters of other pages.

    Raises:
        ValueError: ``rates`` is not a source; at a decision, the source returns invalid rates.
    """

    acts: ClassVar[tuple[str, ...]] = RATE_FORMS
    reads_log = False
    source: RateSource | None = None
    cost: FloatArray | None = None
    """Cost of a crawl of each page in the episode, (m,); None for 1."""

    def __init__(self, *, rates: RateSource | None = None) -> None:
        self.source = None if rates is None else rate_source("rates", rates)

    @abstractmethod
    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return the crawl rates, in [0, highest], (m,), that spend a bandwidth > 0."""

    def start(self, pages: Pages) -> None:
        """Begin an episode without rates from earlier days."""
        tracker = pages.tracker()
        self.lane_rates = LaneRates(self.source or default_source(tracker))
        self.cost = tracker.problem.cost
        self.planned: tuple[OfferRates, float] | None = None
        self.action = np.zeros(0)
        self.follow(tracker)

    def follow(self, tracker: Tracker) -> None:
        """Read the day's rates from the source, also where another policy acts."""
        self.lane_rates.read(tracker)

    def choose(self, tracker: Tracker) -> NDArray[Any]:
        """Return the crawl rates; they are computed again if source rates or bandwidth changed."""
        rates = self.lane_rates.read(tracker)
        bandwidth = bandwidth_at(tracker.problem, self._epoch, tracker.time)
        if self.planned is None or self.planned[0] is not rates or self.planned[1] != bandwidth:
            self.action = self._plan(rates, bandwidth, tracker)
            self.planned = rates, bandwidth
        return self.action

    def _plan(self, rates: OfferRates, bandwidth: float, tracker: Tracker) -> FloatArray:
        highest = bandwidth if self.cost is None else bandwidth / float(self.cost.min())
        if tracker.offers is not None:
            highest = 1.0 / self._epoch
        crawl_rates = self.allocate(rates, bandwidth, highest)
        shares = response_shares(self.name, tracker.problem, crawl_rates)
        return np.where(complete_pages(tracker.problem), shares, crawl_rates)

    @property
    def _epoch(self) -> float:
        return self.form.epoch or 1.0


class WeightedPolicy(SourcedPolicy):
    """Crawls in proportion to a field of the rates: a proportional strategy of Han et al. 2020.

    Costs of crawls do not change the proportions. Rates are clipped to one crawl per step, and the
    excess goes to the other offers. Offers of rate 0 are never crawled, unless all rates are 0
    (:func:`proportional_rates`).
    """

    weight: ClassVar[str]
    """The field of :class:`.OfferRates` that the crawl rates are proportional to."""

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return crawl rates in proportion to clicks, impressions or changes, (m,)."""
        return proportional_rates(getattr(rates, self.weight), bandwidth, highest, self.cost)


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


Weight: TypeAlias = Literal["click", "impression"]
Granularity: TypeAlias = Literal["step", "day"]


@registered(paper="Offers", family="offers")
class DiscreteLambdaCrawl(SourcedPolicy):
    """LambdaCrawl of Han et al. 2020, Table 2: maximises freshness under constant rates.

    A price that changes within a day with probability Delta is assumed to change in a step of h
    days with probability ``1 - (1 - Delta)^h``. The crawl probabilities per step maximise
    importance-weighted freshness at the ends of steps (:func:`policies.solvers.binary_discrete`).
    ``granularity="day"`` follows the paper: the problem is solved for steps of a day, with at most
    one crawl of an offer per day, and the result is scaled to the rate of a step.

    Offers with no changes or no weight have rate 0, even if some bandwidth remains. If all offers
    are like that, all rates are equal.

    Args:
        rates: as for :class:`SourcedPolicy`.
        weight: the importance of freshness, ``click`` or ``impression``.
        granularity: ``step`` for the environment's steps, or ``day`` for units of time.
    """

    def __init__(
        self,
        *,
        rates: RateSource | None = None,
        weight: Weight = "click",
        granularity: Granularity = "step",
    ) -> None:
        super().__init__(rates=rates)
        self.weight: Weight = one_of("weight", weight, Weight)
        self.granularity = one_of("granularity", granularity, Granularity)

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return the crawl rates that maximise freshness at the ends of steps, (m,)."""
        importance: FloatArray = getattr(rates, self.weight)
        step = self._epoch if self.granularity == "step" else 1.0
        return discrete_rates(importance, rates.change, bandwidth, highest, step, self.cost)


def discrete_rates(
    importance: FloatArray,
    change: FloatArray,
    bandwidth: float,
    highest: float,
    step: float,
    cost: FloatArray | None = None,
) -> FloatArray:
    """Return the crawl rates that maximise freshness at the ends of steps.

    They are in [0, highest], (m,), and equal if no page with importance changes.

    Args:
        importance: of the pages, >= 0, (m,).
        change: probability of a change within a unit of time, in [0, 1], (m,).
        bandwidth: cost of crawls per unit of time, > 0.
        highest: largest rate of a page, > 0.
        step: length of a step, > 0; a page is crawled at most once per step.
        cost: cost of a crawl of each page, > 0, (m,); None for 1.
    """
    importance = within_domain(np.asarray(importance, np.float64))
    chance = change_within(np.asarray(change, np.float64), step)
    if not np.any((importance > 0.0) & (chance > 0.0)):
        return proportional_rates(np.zeros(len(importance)), bandwidth, highest, cost)
    ceiling = min(highest * step, 1.0)
    pages = importance, chance, bandwidth * step
    allocation = solvers.binary_discrete(*pages, ceiling=ceiling, cost=cost)
    return np.asarray(allocation.rates / step)


def change_within(chance: FloatArray, span: float) -> FloatArray:
    """Return the probability of a change within a span, ``1 - (1 - chance)^span``, (m,).

    ``chance`` is the probability within a unit of time, in [0, 1].
    """
    if span == 1.0:
        return chance
    with np.errstate(divide="ignore"):  # the logarithm of 0
        return np.asarray(-np.expm1(span * np.log1p(-chance)))
