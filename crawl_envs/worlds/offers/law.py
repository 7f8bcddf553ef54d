"""The law of a market of shopping offers, and its state, which changes from day to day.

Prices are integers (cents); GONE marks a discontinued offer. Days are numbered from the start of an
episode, negative in the history before it. A day has STEPS_PER_DAY steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import extending as untyped_extending
from numpy.typing import NDArray

from crawl_envs.compiled.array_tables import (
    Records,
    StateType,
    axes_of,
    fields_of,
    lengths_of,
    read_table,
    table_of,
    zeros,
)
from crawl_envs.sim.law import check_expected
from crawl_envs.sim.streams import UintArray
from crawl_envs.types import Instance, IntArray
from crawl_envs.types.arguments import within_domain
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferMetadata

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]
PriceArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]
CountArray = NDArray[np.uint16]

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

    merchant: Annotated[PriceArray, np.int32, "m"]
    change_scale: Annotated[FloatArray, np.float64, "m"]
    view_scale: Annotated[FloatArray, np.float64, "m"]
    click_share: Annotated[FloatArray, np.float64, "m"]
    change_level: Annotated[SingleArray, np.float32, "m"]
    demand_level: Annotated[SingleArray, np.float32, "m"]
    price: Annotated[PriceArray, np.int32, "m"]
    week: Annotated[FloatArray, np.float64, "M 7"]
    hours: Annotated[FloatArray, np.float64, "M 12"]
    campaign_rate: Annotated[FloatArray, np.float64, "M"]
    campaign_share: Annotated[FloatArray, np.float64, "M"]
    click_hours: Annotated[FloatArray, np.float64, "1 12"]
    season: Annotated[FloatArray, np.float64, "365 3"]
    numbers: Annotated[FloatArray, np.float64, "10"]


class MarketNumbers(NamedTuple):
    """Parameters common to all offers.

    Attributes:
        change_spread: standard deviation of the logarithm of an offer's level of price changes.
        demand_spread: standard deviation of the logarithm of an offer's level of demand.
        change_jump: probability per day of a new level of price changes of an offer.
        demand_jump: probability per day of a new level of demand of an offer.
        obsolete_rate: probability per day that an offer is discontinued.
        drift_spread: standard deviation of the logarithm of a merchant's factor of price changes.
        drift_memory: correlation of this logarithm between successive days, in [0, 1).
        back: probability that a price change reverts to the previous price.
        first_day: first day of an episode in the year, from 0.
        first_weekday: weekday of this day, 0 for Monday.
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
"""Indices of the fields of MarketNumbers in the array ``MarketLaw.numbers``."""


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
        factor: merchants' factors of price changes on the latest day, (M,).
        campaign_end: last day of a merchant's promotion, (M,).
        campaign_discount: discount of the merchant's promotion in percent, (M,).
        campaign: 1 if a promotion starts on the latest day, 2 if it ends, else 0, (M,).
        moving: offers whose price may change on the latest day, the first ``sizes[0]``.
        clicked: offers that are clicked on the latest day, the first ``sizes[1]``.
        sizes: numbers of moving offers, of clicked offers and of clicks, (3,).
        starts: first places of the price changes of each step, and the end of all; the numbers of
            changes are upper bounds.
    """

    stream: Annotated[UintArray, np.uint64, "4"]
    price: Annotated[PriceArray, np.int32, "m"]
    base: Annotated[PriceArray, np.int32, "m"]
    before: Annotated[PriceArray, np.int32, "m"]
    discount: Annotated[ByteArray, np.uint8, "m"]
    change_level: Annotated[SingleArray, np.float32, "m"]
    demand_level: Annotated[SingleArray, np.float32, "m"]
    mask: Annotated[CountArray, np.uint16, "m"]
    promotion: Annotated[ByteArray, np.uint8, "m"]
    going: Annotated[ByteArray, np.uint8, "m"]
    last_change: Annotated[SingleArray, np.float32, "m"]
    clicks: Annotated[CountArray, np.uint16, "31 m"]
    views: Annotated[CountArray, np.uint16, "31 m"]
    changes: Annotated[ByteArray, np.uint8, "31 m"]
    sums: Annotated[PriceArray, np.int32, "7 m"]
    drift: Annotated[FloatArray, np.float64, "M"]
    factor: Annotated[FloatArray, np.float64, "M"]
    campaign_end: Annotated[PriceArray, np.int32, "M"]
    campaign_discount: Annotated[PriceArray, np.int32, "M"]
    campaign: Annotated[ByteArray, np.uint8, "M"]
    moving: Annotated[PriceArray, np.int32, "m"]
    clicked: Annotated[PriceArray, np.int32, "m"]
    sizes: Annotated[IntArray, np.int64, "3"]
    starts: Annotated[IntArray, np.int64, "13"]


LAW, STATE = fields_of(MarketLaw), fields_of(MarketState)
_DRAWN = {field.name for field in STATE}
PARTS = (
    *(
        field._replace(name=f"first_{field.name}") if field.name in _DRAWN else field
        for field in LAW
    ),
    *STATE,
)
"""The arrays of a market in compiled code: the start values of its levels and prices have the
prefix ``first_``."""
WORDS = len(axes_of(PARTS)) + len(PARTS)
"""Number of words of a market's table."""
MARKET = StateType("Market", PARTS)
extending: Any = untyped_extending


def _market_at(typing_context: Any, table: Any) -> Any:
    """Type the intrinsic that turns a table of addresses into a market's arrays in kernels."""
    return read_table(MARKET, table)


market_at: Any = extending.intrinsic(_market_at)
"""Return the arrays of PARTS of a table; they are valid as long as their owner keeps them alive."""


def table_of_market(law: MarketLaw, state: MarketState) -> IntArray:
    """Return the table of a market's arrays, the form in which compiled code receives them.

    Raises:
        ValueError: an array is not as specified.
    """
    arrays: tuple[NDArray[Any], ...] = (*law, *state)
    return table_of(arrays, lengths_of(arrays, PARTS))


def new_state(law: MarketLaw) -> MarketState:
    """Return a state of zeros for a market of a given law; :func:`start_state` fills it."""
    return MarketState(*zeros(STATE, lengths_of(law, LAW)))


def start_state(law: MarketLaw, state: MarketState) -> None:
    """Set a market's state to the start of its history; its random stream is not set."""
    for array in state:
        array[...] = 0
    for prices in (state.price, state.base, state.before):
        prices[:] = law.price
    state.change_level[:], state.demand_level[:] = law.change_level, law.demand_level
    state.last_change[:], state.campaign_end[:] = -np.inf, -(2**30)


def copied(state: Any) -> Any:
    """Return a NamedTuple like ``state`` with a copy of each of its arrays."""
    return type(state)(*(array.copy() for array in state))


def read_only(arrays: Any) -> Any:
    """Return a NamedTuple like ``arrays`` with a read-only view of each of its arrays."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return type(arrays)(*views)


class DayEvents(NamedTuple):
    """The events of one day of a market, and their expected numbers; read-only.

    Attributes:
        block: events in order of time, as records (time, code) of a tape: PRICE, REQUEST for a
            click, and at the end DAY.
        detail: new price of each PRICE event, else 0, int32.
        click_mean, view_mean: expected clicks and impressions, (m,) float32.
        change_chance: probability of a price change, (m,) float32.
    """

    block: Records
    detail: PriceArray
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
        ValueError: as for :class:`crawl_envs.types.Instance`, or an array of the law is not as
            specified.
    """

    metadata: OfferMetadata
    law: MarketLaw

    def __init__(self, metadata: OfferMetadata, law: MarketLaw, *, bandwidth: float) -> None:
        lengths_of(law, LAW)
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
