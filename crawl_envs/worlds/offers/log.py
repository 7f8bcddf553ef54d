"""Complete logs of a market: training data of predictors, and tapes of events.

A log has every price at every step, as from hourly crawls of all offers (Han et al. 2020,
section 4). It is for training and for comparisons on the same events, not for trackers.
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
from crawl_envs.worlds.offers.market import day_of_week, draw_day, initial_state
from crawl_envs.worlds.offers.tracking import OfferTracking
from crawl_envs.worlds.offers.world import OfferDay, OfferWorld

DailyRates: TypeAlias = Callable[[int, OfferWorld], FloatArray]
"""A strategy: crawls per day of each offer, (m,), as a function of the day and the tracker."""


class ArmChooser(Protocol):
    """A choice among strategies step by step, which learns from the outcomes of crawls."""

    def choose(self) -> int:
        """Return the number of the strategy of the next step."""

    def learn(self, chosen: IntArray, changed: BoolArray) -> None:
        """Learn from the crawled offers, (n,), and whether their price had changed, (n,)."""


def begin(log: MarketLog, seed: int) -> OfferWorld:
    """Return the tracker at the start of a log's day 0.

    Args:
        log: a log with events.
        seed: seed of the random choices; that of ``reset`` gives those of the environment.

    Raises:
        ValueError: the log has no events, or a bad seed.
    """
    if len(log.events) != log.num_days:
        raise ValueError("log must be recorded with keep_events=True")
    root = roots(whole("seed", seed, 0)).rng
    return OfferWorld(log.prices, log.history_ring(), log.last_change[0], root, 0)


def play_rates(log: MarketLog, strategy: DailyRates, seed: int) -> list[OfferDay]:
    """Play a strategy for all days of a log; return the record of every day.

    Args:
        log: a log with events.
        strategy: its rates must be within the budget, none above STEPS_PER_DAY.
        seed: seed of the random choices.
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
    """Play strategies, with a choice among them at every step; yield the record of every day."""
    world = begin(log, seed)
    for day in range(log.num_days):
        world.enter(log.events[day])
        rates = [strategy(day, world) for strategy in strategies]
        for _ in range(STEPS_PER_DAY):
            world.play(world.choose(rates[chooser.choose()]))
            chooser.learn(world.chosen, world.changed)
        yield world.days[-1]


class Labels(NamedTuple):
    """The labels of the predictors for a day (section 3.3), (m,) bool each."""

    price_changed: BoolArray
    clicked: BoolArray
    impressed: BoolArray


@dataclass(frozen=True)
class MarketLog:
    """A complete log of a market: its history and the days of one episode.

    Attributes:
        market: the market.
        num_days: number of days from day 0 on, D; the log includes HISTORY_DAYS days before.
        prices: true prices at the start of day 0, (m,).
        clicks, impressions, changes: counts per day, (HISTORY_DAYS + D, m); the last rows are the
            history, so that day d is in row d also for negative d.
        last_change: time of the last price change before each day from 0 on, in days, (D, m).
        events: events of each day from 0 on; empty if they were not kept.
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

    def features(self, day: int, tracking: OfferTracking | None = None) -> OfferFeatures:
        """Return the features of a day in [0, D), from the log before that day.

        With ``tracking``, at that day, the features count the price changes that its crawls found.
        """
        day = whole("day", day, 0, self.num_days - 1)
        changes, latest = self.changes, self.last_change[day]
        if tracking is not None:
            changes, latest = tracking.observed_changes, tracking.last_observed
        counts = (self.clicks, self.impressions, changes)
        weekday = day_of_week(self.market.law, day)
        return features_of(self.market.metadata, day, weekday, counts, latest)

    def history_ring(self) -> NDArray[np.uint8]:
        """Return the price changes per day of the history, (RING, m), day d in row d % RING."""
        ring = np.zeros((RING, self.num_pages), np.uint8)
        for day in range(-HISTORY_DAYS, 0):
            ring[day % RING] = self.changes[day]
        return ring

    def labels(self, day: int) -> Labels:
        """Return the labels of a day in [0, D)."""
        day = whole("day", day, 0, self.num_days - 1)
        return Labels(self.changes[day] > 0, self.clicks[day] > 0, self.impressions[day] > 0)


def record(market: Market, num_days: int, seed: int = 0, *, keep_events: bool = False) -> MarketLog:
    """Log a market for ``num_days`` days, those of the first episode of ``CrawlOffers-v0``.

    ``record(market(m, seed=s), days, s)`` logs the events of that episode after ``reset(seed=s)``.

    Args:
        market: the market.
        num_days: number of days from day 0 on, >= 1.
        seed: seed of the events, an integer >= 0.
        keep_events: whether to keep price changes and clicks step by step.

    Raises:
        ValueError: an argument outside its range.
    """
    market.check_days(whole("num_days", num_days, 1))
    law, m = market.law, market.num_pages
    state = initial_state(law, roots(whole("seed", seed, 0)).tape, 0)
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
