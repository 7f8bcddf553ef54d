"""A market's days as they were logged, whole: what predictors learn from, and tapes of events.

The log knows every price at every step, as hourly crawls of all offers would (Han et al. 2020,
section 4): it is for training and for comparisons on the same events, not for trackers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.streams import roots
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import whole
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferFeatures
from crawl_envs.worlds.offers.features import features_of
from crawl_envs.worlds.offers.law import (
    RING,
    STEPS_PER_DAY,
    DayEvents,
    Market,
    PriceArray,
    SingleArray,
)
from crawl_envs.worlds.offers.market import begun, day_of_week, draw_day
from crawl_envs.worlds.offers.tracking import OfferTracking
from crawl_envs.worlds.offers.world import OfferDay, OfferWorld

DailyRates: TypeAlias = Callable[[int, OfferWorld], FloatArray]
"""A strategy: crawls per day of each offer, (m,), for a day, given its number and what is held."""


class ArmChooser(Protocol):
    """What chooses among strategies step by step, and learns from what its choice found."""

    def choose(self) -> int:
        """Return the number of the strategy of the step that follows."""

    def learn(self, chosen: IntArray, found: BoolArray) -> None:
        """Take in which offers were crawled, (n,), and whether another price was found, (n,)."""


def begin(log: MarketLog, seed: int) -> OfferWorld:
    """Return what a tracker holds at the beginning of a log's day 0.

    Args:
        log: with its events kept.
        seed: decides the coins: that of ``reset`` gives those of the environment.

    Raises:
        ValueError: the log has no events, or a bad seed.
    """
    if len(log.events) != log.num_days:
        raise ValueError("log must be recorded with keep_events=True")
    root = roots(whole("seed", seed, 0)).rng
    return OfferWorld(log.prices, log.history_ring(), log.last_change[0], root, 0)


def play_rates(log: MarketLog, strategy: DailyRates, seed: int) -> list[OfferDay]:
    """Play a strategy for all the days of a log; returns the account of every day.

    Args:
        log: with its events kept.
        strategy: its rates must keep to the budget, none above STEPS_PER_DAY.
        seed: decides the coins.
    """
    world = begin(log, seed)
    for day in range(log.num_days):
        world.enter(log.events[day])
        world.play_at(strategy(day, world))
    return world.days


def play_arms(
    log: MarketLog,
    strategies: list[DailyRates],
    chooser: ArmChooser,
    seed: int,
) -> Iterator[OfferDay]:
    """Play strategies of which another may be chosen at every step; yields every day's account."""
    world = begin(log, seed)
    for day in range(log.num_days):
        world.enter(log.events[day])
        rates = [strategy(day, world) for strategy in strategies]
        for _ in range(STEPS_PER_DAY):
            world.play(world.choose(rates[chooser.choose()]))
            chooser.learn(world.chosen, world.found)
        yield world.days[-1]


class Labels(NamedTuple):
    """What comes true within a day, (m,) bool each: the labels of the predictors (section 3.3)."""

    price_changed: BoolArray
    clicked: BoolArray
    impressed: BoolArray


@dataclass(frozen=True)
class MarketLog:
    """A market's history and the days of one episode, in full.

    Attributes:
        market: whose log it is.
        num_days: days from day 0 on, D; HISTORY_DAYS days before them are known too.
        prices: true prices when day 0 begins, (m,).
        clicks, impressions, changes: counts per day, (HISTORY_DAYS + D, m); the last rows hold the
            history, so that day d lies in row d for negative d too.
        last_change: when the price last changed before each day from 0 on, (D, m) days.
        events: what happened on each day from 0 on; empty where events were not kept.
    """

    market: Market
    num_days: int
    prices: PriceArray
    clicks: NDArray[np.uint16]
    impressions: NDArray[np.uint16]
    changes: NDArray[np.uint8]
    last_change: SingleArray
    events: tuple[DayEvents, ...]

    @property
    def num_pages(self) -> int:
        """Number of offers, m."""
        return self.market.num_pages

    def book(self, day: int, tracking: OfferTracking | None = None) -> OfferFeatures:
        """Return the book of a day in [0, D), of what was logged before the day began.

        With ``tracking``, which stands on that day, price changes are those that its crawls found.
        """
        day = whole("day", day, 0, self.num_days - 1)
        changes, latest = self.changes, self.last_change[day]
        if tracking is not None:
            changes, latest = tracking.found, tracking.last_found
        counts = (self.clicks, self.impressions, changes)
        weekday = day_of_week(self.market.law, day)
        return features_of(self.market.metadata, day, weekday, counts, latest)

    def history_ring(self) -> NDArray[np.uint8]:
        """Return the price changes per day of the history, (RING, m); day d in row d % RING."""
        ring = np.zeros((RING, self.num_pages), np.uint8)
        for day in range(-HISTORY_DAYS, 0):
            ring[day % RING] = self.changes[day]
        return ring

    def labels(self, day: int) -> Labels:
        """Return what came true within a day in [0, D)."""
        day = whole("day", day, 0, self.num_days - 1)
        return Labels(self.changes[day] > 0, self.clicks[day] > 0, self.impressions[day] > 0)


def record(market: Market, num_days: int, seed: int = 0, *, keep_events: bool = False) -> MarketLog:
    """Log a market for ``num_days`` days, those of the first episode of ``CrawlOffers-v0``.

    ``record(market(m, seed=s), days, s)`` logs what happens there after ``reset(seed=s)``.

    Args:
        market: the market.
        num_days: from day 0 on, >= 1.
        seed: decides the events, an integer >= 0.
        keep_events: whether price changes and clicks are kept step by step.

    Raises:
        ValueError: an argument outside its range.
    """
    market.check_days(whole("num_days", num_days, 1))
    law, m = market.law, market.num_pages
    state = begun(law, roots(whole("seed", seed, 0)).tape, 0)
    prices, events = state.price.copy(), []
    rings: list[NDArray[Any]] = [state.clicks, state.views, state.changes]
    counts: list[NDArray[Any]] = []
    for kept in rings:
        counts.append(np.zeros((HISTORY_DAYS + num_days, m), kept.dtype))
        for day in range(-HISTORY_DAYS, 0):
            counts[-1][day] = kept[day % RING]
    last_change = np.empty((num_days, m), np.float32)
    for day in range(num_days):
        drawn = draw_day(law, state, day)
        if keep_events:
            events.append(drawn)
        last_change[day] = state.last_change
        for rows, ring in zip(counts, rings, strict=True):
            rows[day] = ring[day % RING]
    clicks, impressions, changes = counts
    return MarketLog(
        market=market,
        num_days=num_days,
        prices=prices,
        clicks=clicks,
        impressions=impressions,
        changes=changes,
        last_change=last_change,
        events=tuple(events),
    )
