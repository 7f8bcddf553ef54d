"""Complete logs of a market: training data of predictors, and the truth for comparisons.

A log has every price at every step, as from hourly crawls of all offers (Han et al. 2020,
section 4). It is not for trackers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.streams import roots
from crawl_envs.types import BoolArray
from crawl_envs.types.arguments import whole
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferFeatures
from crawl_envs.worlds.offers.features import features_of
from crawl_envs.worlds.offers.law import RING, Market, SingleArray
from crawl_envs.worlds.offers.market import (
    day_of_week,
    draw_day,
    initial_state,
    note_last_changes,
)


class Labels(NamedTuple):
    """What predictors shall predict about each offer on a day (section 3.3), (m,) bool each."""

    price_changed: BoolArray
    clicked: BoolArray
    impressed: BoolArray


@dataclass(frozen=True, eq=False)
class MarketLog:
    """A complete log of a market: its history and the days of one episode.

    Attributes:
        market: the market.
        num_days: number of days from day 0 on, D; the log includes HISTORY_DAYS days before.
        clicks, impressions, changes: counts per day, (HISTORY_DAYS + D, m); the last rows are the
            history, so that day d is in row d also for negative d.
        last_change: time of the last price change before each of the days 0 .. D, in days,
            (D + 1, m).
    """

    market: Market
    num_days: int
    clicks: NDArray[np.uint16]
    impressions: NDArray[np.uint16]
    changes: NDArray[np.uint8]
    last_change: SingleArray

    @property
    def num_pages(self) -> int:
        """Number of offers, m."""
        return self.market.num_pages

    def features(self, day: int) -> OfferFeatures:
        """Return the features of day ``day`` in [0, D], from the log of the days before it."""
        day = whole("day", day, 0, self.num_days)
        counts = (self.clicks, self.impressions, self.changes)
        weekday = day_of_week(self.market.law, day)
        return features_of(self.market.metadata, day, weekday, counts, self.last_change[day])

    def labels(self, day: int) -> Labels:
        """Return what happens to each offer on day ``day`` in [0, D), as predictors' labels."""
        day = whole("day", day, 0, self.num_days - 1)
        return Labels(self.changes[day] > 0, self.clicks[day] > 0, self.impressions[day] > 0)


def record(market: Market, num_days: int, seed: int = 0) -> MarketLog:
    """Log a market for ``num_days`` days, those of the first episode of ``CrawlOffers-v1``.

    ``record(market(m, seed=s), days, s)`` logs the events of that episode after ``reset(seed=s)``.

    Args:
        market: the market.
        num_days: number of days from day 0 on, >= 1.
        seed: seed of the events, an integer >= 0.

    Raises:
        ValueError: an argument outside its range.
    """
    market.check_days(whole("num_days", num_days, 1))
    law, m = market.law, market.num_pages
    state = initial_state(law, roots(whole("seed", seed, 0)).tape, 0)
    rings: list[NDArray[Any]] = [state.clicks, state.views, state.changes]
    counts: list[NDArray[Any]] = []
    for ring in rings:
        counts.append(np.zeros((HISTORY_DAYS + num_days, m), ring.dtype))
        for day in range(-HISTORY_DAYS, 0):
            counts[-1][day] = ring[day % RING]
    last_change = np.empty((num_days + 1, m), np.float32)
    for day in range(num_days):
        draw_day(law, state, day)
        last_change[day] = state.last_change
        for rows, ring in zip(counts, rings, strict=True):
            rows[day] = ring[day % RING]
    moving = state.moving[: state.sizes[0]]
    note_last_changes(moving, state.mask, num_days, state.last_change)
    last_change[num_days] = state.last_change
    clicks, impressions, changes = counts
    return MarketLog(
        market=market,
        num_days=num_days,
        clicks=clicks,
        impressions=impressions,
        changes=changes,
        last_change=last_change,
    )
