"""The days of a market, drawn one by one or read from a log."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types.offer_features import (
    HISTORY_DAYS,
    HISTORY_FEATURES,
    DailyArray,
    OfferFeatures,
)
from crawl_envs.worlds.offers.features import CHANGE_SUM, sums_of, write_features
from crawl_envs.worlds.offers.law import (
    RING,
    STEPS_PER_DAY,
    DayEvents,
    Market,
    PriceArray,
    SingleArray,
    copied,
    read_only,
)
from crawl_envs.worlds.offers.log import MarketLog
from crawl_envs.worlds.offers.market import (
    change_chances,
    day_of_week,
    draw_day,
    initial_state,
    view_means,
)

Changes: TypeAlias = tuple[NDArray[np.uint8], SingleArray]
"""Price changes per day before a day, (RING, m), with day d in row d % RING, and the times of the
last ones, in days, (m,)."""


class Days(Protocol):
    """The days of an episode, and what is known of them.

    Attributes:
        prices: true prices at the start of day 0, (m,).
        day: number of the latest day, -1 before the first.
    """

    prices: PriceArray
    day: int

    def next_day(self) -> DayEvents:
        """Return the events of the next day."""

    def changes(self) -> Changes:
        """Return all price changes before the latest day."""

    def write(self, columns: DailyArray, changes: Changes | None = None) -> None:
        """Write the history features of the latest day, (11, m), in their order.

        ``changes`` are the price changes that they count, None for all.
        """

    def truth(self) -> DayEvents:
        """Return the events of the latest day, with all expectations."""

    def copy(self) -> Days:
        """Return a copy."""


class MarketDays:
    """The days of an episode of a market, drawn after its history (:class:`Days`).

    Args:
        market: the market.
        root: root of the tape.
        episode: number of the episode since the seed.
    """

    def __init__(self, market: Market, root: int, episode: int) -> None:
        self.market, self.day = market, -1
        self._state = initial_state(market.law, root, episode)
        self.prices = self._state.price.copy()
        self._events: DayEvents | None = None

    def next_day(self) -> DayEvents:
        """Draw the next day."""
        self.day += 1
        self._events = draw_day(self.market.law, self._state, self.day, truth=False)
        return self._events

    def changes(self) -> Changes:
        """Return all price changes before the latest day."""
        return self._state.changes, self._state.last_change

    def write(self, columns: DailyArray, changes: Changes | None = None) -> None:
        """Write the history features of the latest day, (11, m), in their order."""
        state = self._state
        counted, latest = state.sums[CHANGE_SUM], state.last_change
        if changes is not None:
            counted, latest = sums_of(changes[0], self.day, (HISTORY_DAYS,))[0], changes[1]
        write_features(self.day, state.clicks, state.views, state.sums, counted, latest, columns)

    def truth(self) -> DayEvents:
        """Return the events of the latest day, with all expectations; read-only."""
        assert self._events is not None
        law, state = read_only(self.market.law), self._state
        views, chances = view_means(law, state, self.day), change_chances(law, state)
        events: DayEvents = read_only(self._events._replace(view_mean=views, change_chance=chances))
        return events

    def copy(self) -> MarketDays:
        """Return a copy."""
        fresh = MarketDays.__new__(MarketDays)
        fresh.__dict__.update(self.__dict__, _state=copied(self._state))
        return fresh


class LoggedDays:
    """The days of a log (:class:`Days`).

    Raises:
        ValueError: the log has no events.
    """

    def __init__(self, log: MarketLog) -> None:
        if len(log.events) != log.num_days:
            raise ValueError("log must be recorded with keep_events=True")
        self.log, self.day, self.prices = log, -1, log.prices

    def next_day(self) -> DayEvents:
        """Return the next day of the log; after the last one nothing happens."""
        self.day += 1
        return self.truth()

    def changes(self) -> Changes:
        """Return all price changes before the latest day."""
        rows = np.zeros((RING, self.log.num_pages), np.uint8)
        for day in range(self.day - RING + 1, self.day):
            rows[day % RING] = self.log.changes[day]
        return rows, self.log.last_change[self.day]

    def write(self, columns: DailyArray, changes: Changes | None = None) -> None:
        """Write the history features of the latest day, (11, m), in their order."""
        columns[:] = self.log.features(self.day, changes)[-len(columns) :]

    def truth(self) -> DayEvents:
        """Return the events of the latest day."""
        if self.day < self.log.num_days:
            return self.log.events[self.day]
        return nothing(self.log.events[-1])

    def copy(self) -> LoggedDays:
        """Return a copy."""
        fresh = LoggedDays(self.log)
        fresh.day = self.day
        return fresh


def nothing(before: DayEvents) -> DayEvents:
    """Return a day without events, with the expectations of another one."""
    none, steps = np.zeros(0, np.int32), np.zeros(STEPS_PER_DAY, np.int64)
    clicks = np.zeros(STEPS_PER_DAY + 1, np.int64)
    return before._replace(
        price_offer=none,
        new_price=none,
        price_start=steps,
        price_end=steps,
        click_offer=none,
        click_start=clicks,
    )


def features_of_day(days: Days, market: Market, changes: Changes | None = None) -> OfferFeatures:
    """Return the features of the latest day; ``changes`` are those counted, None for all."""
    columns = np.empty((len(HISTORY_FEATURES), market.num_pages), np.float32)
    days.write(columns, changes)
    columns.setflags(write=False)
    return OfferFeatures(market.metadata, days.day, day_of_week(market.law, days.day), *columns)
