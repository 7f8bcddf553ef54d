"""One lane of shopping offers: its market, what its tracker holds, and the book of the day."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np

from crawl_envs.sim.streams import Roots
from crawl_envs.types import CrawlLog, IntArray, OfferLedger, Problem, Tracker
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.worlds.offers.features import features_of
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, Market, copied
from crawl_envs.worlds.offers.market import begun, day_of_week, draw_day
from crawl_envs.worlds.offers.tracking import (
    CHANGES,
    CLICK_TIME,
    CLICKS,
    CRAWLS,
    EXPECTED_TIME,
    FOUND,
    HITS,
    OFFER_TIME,
)
from crawl_envs.worlds.offers.world import OfferWorld, StepOutcome

OfferObjective: TypeAlias = Literal["clicks", "offers"]
PriceHistory: TypeAlias = Literal["log", "crawled"]


class OfferLane:
    """A market that goes on day by day, and a tracker of it.

    Args:
        market: its law.
        lane_roots: of the random streams.
        episode: number of the episode since the seed.
        price_history: whose price changes books count: of the ``log`` of all prices, or those that
            were found when offers were ``crawled``.

    Attributes:
        market: see above.
        world: what is held.
        book: that of the present day; ``first_book`` is that of day 0.
    """

    def __init__(
        self, market: Market, lane_roots: Roots, episode: int, price_history: PriceHistory
    ) -> None:
        self.market, self.price_history = market, price_history
        self._state = begun(market.law, lane_roots.tape, episode)
        prices = self._state.price.copy()
        events = draw_day(market.law, self._state, 0)
        self.world = OfferWorld(
            prices, self._state.changes, self._state.last_change, lane_roots.rng, episode
        )
        self.world.enter(events)
        self.book = self.first_book = self._new_book()

    def play(self, chosen: IntArray) -> StepOutcome:
        """Play a step in which the chosen offers are crawled, and enter the day that it ends at."""
        outcome = self.world.play(chosen)
        if self.starts_day:
            self.world.enter(draw_day(self.market.law, self._state, self.world.day))
            self.book = self._new_book()
        return outcome

    @property
    def starts_day(self) -> bool:
        """Whether now is the beginning of a day."""
        return self.world.step % STEPS_PER_DAY == 0

    def _new_book(self) -> OfferFeatures:
        state, tracking, day = self._state, self.world.tracking, self.world.day
        logged = self.price_history == "log"
        changes = state.changes if logged else tracking.found
        latest = state.last_change if logged else tracking.last_found
        counts = (state.clicks, state.views, changes)
        market = self.market
        return features_of(market.metadata, day, day_of_week(market.law, day), counts, latest)

    def tracker(self, problem: Problem, episode: int) -> Tracker:
        """Return what is known now, as fresh arrays; the book is read-only."""
        tracking, now = self.world.tracking, self.world.time
        m = tracking.held.size
        return Tracker(
            problem=problem,
            episode=episode,
            time=now,
            elapsed=now - tracking.last_crawl,
            signals=np.zeros(m, np.int64),
            changed=tracking.changed.copy(),
            alive=np.ones(m, np.bool_),
            probed=np.full(m, -1, np.int8),
            offers=self.book,
        )

    def last_log(self) -> CrawlLog:
        """Return what the last step, or reset, taught."""
        world = self.world
        made = world.chosen.size
        return CrawlLog(
            page=world.chosen.copy(),
            time=np.full(made, max(world.step - 1, 0) / STEPS_PER_DAY),
            elapsed=world.elapsed.copy(),
            signals=np.zeros(made, np.int64),
            changed=world.found.copy(),
            signal_page=np.empty(0, np.int64),
            signal_time=np.empty(0),
            signal_source=np.empty(0, np.int64),
            probe=np.zeros(made, np.bool_),
            price=world.tracking.held[world.chosen].astype(np.int64),
        )

    def ledger(self, objective: OfferObjective) -> OfferLedger:
        """Return what happened since the episode began; ``objective`` weighs what is fresh."""
        world = self.world
        totals, by_clicks = world.tracking.totals, objective == "clicks"
        midnights = [day.fresh for day in world.days]
        everything = totals[EXPECTED_TIME] if by_clicks else world.time * world.tracking.held.size
        return OfferLedger(
            time=world.time,
            fresh_time=float(totals[CLICK_TIME if by_clicks else OFFER_TIME]),
            alive_time=float(everything),
            requests=int(totals[CLICKS]),
            hits=int(totals[HITS]),
            crawls=int(totals[CRAWLS]),
            wasted=0,
            changes=int(totals[CHANGES]),
            changes_found=int(totals[FOUND]),
            signals=0,
            offer_freshness=float(np.mean(midnights)) if midnights else math.nan,
        )

    def get_state(self) -> dict[str, Any]:
        """Return a copy of everything that decides what happens next."""
        return {
            "market": self.market,
            "price_history": self.price_history,
            "state": copied(self._state),
            "world": self.world.get_state(),
            "events": self.world.events,
            "books": (self.first_book, self.book),
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> OfferLane:
        """Return the room of a state that :meth:`get_state` returned."""
        room = cls.__new__(cls)
        room.market, room.price_history = state["market"], state["price_history"]
        room._state = copied(state["state"])
        room.world = OfferWorld.of(state["world"], state["events"])
        room.first_book, room.book = state["books"]
        return room
