"""The law of a market of shopping offers, and its state, which changes from day to day.

Prices are integers (cents); GONE marks a discontinued offer. Days are numbered from the start of an
episode, negative in the history before it. A day has STEPS_PER_DAY steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.streams import UintArray
from crawl_envs.sim.workload import check_expected
from crawl_envs.types import Instance
from crawl_envs.types.arguments import within_domain
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferMetadata
from crawl_envs.worlds.offers.features import NUM_SUMS

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]
PriceArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]
CountArray = NDArray[np.uint16]
BoolArray = NDArray[np.bool_]

STEPS_PER_DAY = 12
GONE = 0
RING = HISTORY_DAYS + 1
"""Number of days of counts kept: the history, and the current day."""


class MarketLaw(NamedTuple):
    """The law of a market of m offers of M merchants, constant in an episode.

    Attributes:
        merchant: merchant of each offer, (m,) int32.
        change_scale: price changes per day of an offer at level 1, on an average day, (m,).
        view_scale: impressions per day at level 1, on an average day, (m,).
        click_share: share of impressions that are clicked, in [0, 1], (m,).
        change_level, demand_level: levels at the start of the history, (m,).
        price: prices at the start of the history, (m,), GONE for an offer obsolete from the start.
        week: factors of price changes by merchant and weekday, Monday first, mean 1, (M, 7).
        hours: cumulative shares of a day's price changes by step, (M, STEPS_PER_DAY).
        campaign_rate: new promotions per day, (M,).
        campaign_share: share of a merchant's offers that take part, (M,).
        click_hours: cumulative shares of a day's clicks by step, (1, STEPS_PER_DAY).
        season: factors of price changes, promotions and demand by day of the year, (365, 3).
        numbers: see :class:`MarketNumbers`, as an array.
    """

    merchant: PriceArray
    change_scale: FloatArray
    view_scale: FloatArray
    click_share: FloatArray
    change_level: SingleArray
    demand_level: SingleArray
    price: PriceArray
    week: FloatArray
    hours: FloatArray
    campaign_rate: FloatArray
    campaign_share: FloatArray
    click_hours: FloatArray
    season: FloatArray
    numbers: FloatArray


class MarketNumbers(NamedTuple):
    """Parameters common to all offers.

    Attributes:
        change_spread: standard deviation of the logarithm of an offer's level of price changes.
        demand_spread: the same of its level of demand.
        change_jump: probability per day of a new level of price changes of an offer.
        demand_jump: the same of its level of demand.
        obsolete_rate: probability per day that an offer is discontinued.
        drift_spread: standard deviation of the logarithm of a merchant's factor of price changes.
        drift_memory: its correlation from one day to the next, in [0, 1).
        back: probability that a price change reverts to the previous price.
        first_day: first day of an episode in the year, from 0.
        first_weekday: its weekday, 0 for Monday.
    """

    change_spread: float
    demand_spread: float
    change_jump: float
    demand_jump: float
    obsolete_rate: float
    drift_spread: float
    drift_memory: float
    back: float
    first_day: float
    first_weekday: float


(
    CHANGE_SPREAD,
    DEMAND_SPREAD,
    CHANGE_JUMP,
    DEMAND_JUMP,
    OBSOLETE_RATE,
    DRIFT_SPREAD,
    DRIFT_MEMORY,
    BACK,
    FIRST_DAY,
    FIRST_WEEKDAY,
) = range(len(MarketNumbers._fields))
"""Their indices in the array ``MarketLaw.numbers``."""


class MarketState(NamedTuple):
    """The state of a market, which changes from day to day; kernels write it.

    Attributes:
        stream: state of the random stream, (4,).
        price: price at the end of the latest day, (m,).
        base, before: price without promotion, and that before its latest change, (m,).
        discount: discount of an offer in a promotion, in percent, 0 for none, (m,).
        change_level, demand_level: levels of price changes and demand, (m,).
        mask: the steps of the latest day at which the price changed, as bits, (m,).
        promotion, going: step at which a promotion starts or ends, or the offer is discontinued,
            plus 1; 0 for none, (m,).
        last_change: time of the latest price change before the latest day, in days, (m,).
        clicks, views, changes: counts per day, (RING, m), with day d in row d % RING.
        sums: sums of the counts of days before the latest one, (NUM_SUMS, m); see
            :mod:`crawl_envs.worlds.offers.features`.
        drift: logarithm of the merchants' factors, (M,).
        factor: their factors of price changes on the latest day, (M,).
        campaign_end: last day of a merchant's promotion, (M,).
        campaign_discount: its discount in percent, (M,).
        campaign: 1 if a promotion starts on the latest day, 2 if it ends, else 0, (M,).
    """

    stream: UintArray
    price: PriceArray
    base: PriceArray
    before: PriceArray
    discount: ByteArray
    change_level: SingleArray
    demand_level: SingleArray
    mask: CountArray
    promotion: ByteArray
    going: ByteArray
    last_change: SingleArray
    clicks: CountArray
    views: CountArray
    changes: ByteArray
    sums: PriceArray
    drift: FloatArray
    factor: FloatArray
    campaign_end: PriceArray
    campaign_discount: PriceArray
    campaign: ByteArray


def new_state(law: MarketLaw) -> MarketState:
    """Return the state at the start of the history of a market; its stream is not set."""
    m, merchants = law.merchant.size, law.week.shape[0]
    return MarketState(
        stream=np.zeros(4, np.uint64),
        price=law.price.copy(),
        base=law.price.copy(),
        before=law.price.copy(),
        discount=np.zeros(m, np.uint8),
        change_level=law.change_level.copy(),
        demand_level=law.demand_level.copy(),
        mask=np.zeros(m, np.uint16),
        promotion=np.zeros(m, np.uint8),
        going=np.zeros(m, np.uint8),
        last_change=np.full(m, -np.inf, np.float32),
        clicks=np.zeros((RING, m), np.uint16),
        views=np.zeros((RING, m), np.uint16),
        changes=np.zeros((RING, m), np.uint8),
        sums=np.zeros((NUM_SUMS, m), np.int32),
        drift=np.zeros(merchants),
        factor=np.zeros(merchants),
        campaign_end=np.full(merchants, -(2**30), np.int32),
        campaign_discount=np.zeros(merchants, np.int32),
        campaign=np.zeros(merchants, np.uint8),
    )


def copied(state: Any) -> Any:
    """Return a NamedTuple of arrays with a copy of each."""
    return type(state)(*(array.copy() for array in state))


def read_only(arrays: Any) -> Any:
    """Return a NamedTuple of arrays with a read-only view of each; itself if they are read-only.

    Kernels are compiled separately for read-only and for writeable arrays. Arrays that a kernel
    only reads are always passed read-only, since copied or unpickled environments lose the flag.
    """
    if not any(array.flags.writeable for array in arrays):
        return arrays
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return type(arrays)(*views)


class DayEvents(NamedTuple):
    """The events of one day, by step.

    Prices of ``price_offer`` (int32) change to ``new_price`` (int32): those of step s are at
    ``price_start[s] : price_end[s]``; entries from there to the next start are unused, and 0.
    Clicks are on ``click_offer`` (int32): those of step s are at
    ``click_start[s] : click_start[s + 1]``. The true expectations of the day are the expected
    clicks ``click_mean`` and impressions ``view_mean`` and the probability of a price change
    ``change_chance``, (m,) float32; the latter two are (0,) if only events were asked for.
    """

    price_offer: PriceArray
    new_price: PriceArray
    price_start: NDArray[np.int64]
    price_end: NDArray[np.int64]
    click_offer: PriceArray
    click_start: NDArray[np.int64]
    click_mean: SingleArray
    view_mean: SingleArray
    change_chance: SingleArray


@dataclass(frozen=True, eq=False, init=False)
class Market(Instance):
    """A market of m offers: an instance whose rates drift, with metadata and prices.

    ``importance`` are the expected clicks per day of each offer, ``change_rate`` its expected price
    changes per day, without promotions, on an average day of the week and the year. Both are those
    at the start of the history before an episode, and become outdated. There are no signals. Offers
    are sorted by merchant. All arrays are read-only.

    Args:
        metadata: metadata of the offers.
        law: law of the market.
        bandwidth: crawls per day.

    Raises:
        ValueError: as for :class:`crawl_envs.types.Instance`.
    """

    metadata: OfferMetadata
    law: MarketLaw

    def __init__(self, metadata: OfferMetadata, law: MarketLaw, *, bandwidth: float) -> None:
        views = law.view_scale * law.demand_level
        changes = law.change_scale * law.change_level
        alive = law.price != GONE
        clicks = within_domain(views * law.click_share)
        changes = within_domain(np.where(alive, changes, 0.0))
        super().__init__(clicks, changes, bandwidth=bandwidth)
        object.__setattr__(self, "metadata", read_only(metadata))
        object.__setattr__(self, "law", read_only(law))

    def check_days(self, days: float) -> None:
        """Raise ValueError if an episode of ``days`` days would have too many events.

        Events are impressions, including clicks, price changes, and every offer once a day, also in
        the history before the episode.
        """
        views = float((self.law.view_scale * self.law.demand_level).sum())
        daily = self.num_pages + views + float(self.change_rate.sum())
        check_expected(
            f"offers, their rates and the horizon {days:g}", daily * (HISTORY_DAYS + days)
        )
