"""The days of the markets of all lanes; arguments ``lanes`` are numbers of lanes, (k,)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crawl_envs.compiled.array_tables import Records
from crawl_envs.compiled.compiling import compiled
from crawl_envs.sim.state import state_at
from crawl_envs.sim.streams import rewind
from crawl_envs.sim.world import World
from crawl_envs.types import IntArray
from crawl_envs.types.offer_features import HISTORY_FEATURES, DailyArray
from crawl_envs.worlds.offers.demand import click_means
from crawl_envs.worlds.offers.features import write_features
from crawl_envs.worlds.offers.law import (
    WORDS,
    DayEvents,
    MarketLaw,
    MarketState,
    copied,
    market_at,
    new_state,
    read_only,
    start_state,
    table_of_market,
)
from crawl_envs.worlds.offers.market import (
    at_once,
    draw_days,
    draw_events,
    draw_histories,
    rates_of,
)
from crawl_envs.worlds.step import weigh_lane

COLUMNS = len(HISTORY_FEATURES)


@compiled()
def start_days(
    table: IntArray, tables: IntArray, lanes: IntArray, days: IntArray, first: int
) -> None:
    """Draw the prices and clicks of the next day of some lanes, and put them on the lanes' tapes.

    It also sets the weights of offers and, if there are observations, the history features, whose
    columns start at number ``first``.
    """
    state = state_at(table)
    for lane in lanes:
        market, day, record = market_at(tables[lane]), days[lane], state.lanes[lane]
        record.cursor = 0
        record.length = draw_events(market, day, state.tape[lane], state.detail[lane])
        weigh_lane(table, lane, click_means(market, day))
        if state.observations.shape[1] > 0:
            columns = state.observations[lane, first : first + COLUMNS]
            clicks, views = market.clicks, market.views
            write_features(day, clicks, views, market.sums, market.last_change, columns)


class MarketDays:
    """The days of the markets of N lanes, drawn after the history before each episode.

    Args:
        num_lanes: number of lanes, N.

    Attributes:
        day: number of the latest day of each lane, -1 before the first, (N,).
    """

    def __init__(self, num_lanes: int) -> None:
        self.day = np.full(num_lanes, -1)
        self._markets: list[tuple[MarketLaw, MarketState] | None] = [None] * num_lanes
        self._tables = np.zeros((num_lanes, WORDS), np.int64)

    def state(self, lane: int) -> MarketState:
        """Return the state of a lane's market; the lane must have started an episode."""
        market = self._markets[lane]
        assert market is not None
        return market[1]

    def start(self, lanes: IntArray, laws: Sequence[MarketLaw], records: Records) -> None:
        """Start an episode of the markets of some lanes: draw the days of their histories.

        ``records`` has the record of each lane, with its tape's root and its episode's number.
        """
        for lane, law, record in zip(lanes.tolist(), laws, records, strict=True):
            market = self._markets[lane]
            if market is None or market[0] is not law:
                self._set_market(lane, (law, new_state(law)))
            state = self.state(lane)
            start_state(law, state)
            rewind(state.stream, record["root"], record["episode"])
        self.day[lanes] = -1
        draw_histories(self._tables, lanes, laws[0].merchant.size)

    def _set_market(self, lane: int, market: tuple[MarketLaw, MarketState]) -> None:
        self._markets[lane], self._tables[lane] = market, table_of_market(*market)

    def next_day(self, world: World, lanes: IntArray, first: int) -> None:
        """Draw the next day of some lanes; history features go to columns from ``first`` on."""
        self.day[lanes] += 1
        for part in at_once(lanes, world.num_pages):
            size = draw_days(self._tables, part, self.day, 1)
            world.lengthen(events=size, details=size)
            start_days(world.table, self._tables, part, self.day, first)

    def write(self, lane: int, columns: DailyArray) -> None:
        """Write the history features of a lane's latest day into ``columns``, (11, m)."""
        market = self.state(lane)
        counts = (market.clicks, market.views, market.sums, market.last_change)
        write_features(self.day[lane], *counts, columns)

    def truth(self, world: World, lane: int) -> DayEvents:
        """Return the events of a lane's latest day and their expectations, read-only."""
        state, count = world.state, world.state.lanes[lane]["length"]
        block, detail = state.tape[lane, :count].copy(), state.detail[lane, :count].copy()
        rates = rates_of(self._tables[lane], self.day[lane])
        events: DayEvents = read_only(DayEvents(block, detail, *rates))
        return events

    def copy(self) -> MarketDays:
        """Return a copy of the days and the states of all markets."""
        fresh = MarketDays(self.day.size)
        fresh.day = self.day.copy()
        for lane, market in enumerate(self._markets):
            if market is not None:
                fresh._set_market(lane, (market[0], copied(market[1])))
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        """Leave out addresses: a copy has its own arrays."""
        return {"day": self.day, "_markets": self._markets}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__init__(attributes["day"].size)  # type: ignore[misc]
        self.day = attributes["day"]
        for lane, market in enumerate(attributes["_markets"]):
            if market is not None:
                self._set_market(lane, market)
