"""One lane of shopping offers: its market, its tracker, and the features of the day."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np

from crawl_envs.sim.streams import Roots
from crawl_envs.types import CrawlLog, IntArray, OfferLedger, Problem, Tracker
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.worlds.offers.features import features_of
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, Market, copied
from crawl_envs.worlds.offers.market import day_of_week, draw_day, initial_state
from crawl_envs.worlds.offers.tracking import (
    CHANGES,
    CLICK_TIME,
    CLICKS,
    CRAWLS,
    EXPECTED_TIME,
    HITS,
    OBSERVED_CHANGES,
    OFFER_TIME,
)
from crawl_envs.worlds.offers.world import OfferWorld, StepOutcome

OfferObjective: TypeAlias = Literal["clicks", "offers"]
PriceHistory: TypeAlias = Literal["log", "crawled"]


class OfferLane:
    """A market simulated day by day, and its tracker.

    Args:
        market: the market.
        lane_roots: roots of the random streams.
        episode: number of the episode since the seed.
        price_history: price changes counted by the features: all of the ``log``, or those detected
            when offers were ``crawled``.

    Attributes:
        market: see above.
        world: the tracker.
        features: features of the current day; ``first_features`` are those of day 0.
    """

    def __init__(
        self, market: Market, lane_roots: Roots, episode: int, price_history: PriceHistory
    ) -> None:
        self.market, self.price_history = market, price_history
        self._state = initial_state(market.law, lane_roots.tape, episode)
        prices = self._state.price.copy()
        events = draw_day(market.law, self._state, 0)
        self.world = OfferWorld(
            prices, self._state.changes, self._state.last_change, lane_roots.rng, episode
        )
        self.world.enter(events)
        self.features = self.first_features = self._new_features()

    def play(self, chosen: IntArray) -> StepOutcome:
        """Play a step with crawls of the chosen offers, and start the next day if it is over."""
        outcome = self.world.play(chosen)
        if self.starts_day:
            self.world.enter(draw_day(self.market.law, self._state, self.world.day))
            self.features = self._new_features()
        return outcome

    @property
    def starts_day(self) -> bool:
        """Whether a day starts now."""
        return self.world.step % STEPS_PER_DAY == 0

    def _new_features(self) -> OfferFeatures:
        state, tracking, day = self._state, self.world.tracking, self.world.day
        logged = self.price_history == "log"
        changes = state.changes if logged else tracking.observed_changes
        latest = state.last_change if logged else tracking.last_observed
        counts = (state.clicks, state.views, changes)
        market = self.market
        return features_of(market.metadata, day, day_of_week(market.law, day), counts, latest)

    def tracker(self, problem: Problem, episode: int) -> Tracker:
        """Return the current knowledge of the tracker, as new arrays; features are read-only."""
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
            offers=self.features,
        )

    def last_log(self) -> CrawlLog:
        """Return the crawls of the last step, or reset."""
        world = self.world
        made = world.chosen.size
        return CrawlLog(
            page=world.chosen.copy(),
            time=np.full(made, max(world.step - 1, 0) / STEPS_PER_DAY),
            elapsed=world.elapsed.copy(),
            signals=np.zeros(made, np.int64),
            changed=world.changed.copy(),
            signal_page=np.empty(0, np.int64),
            signal_time=np.empty(0),
            signal_source=np.empty(0, np.int64),
            probe=np.zeros(made, np.bool_),
            price=world.tracking.held[world.chosen].astype(np.int64),
        )

    def ledger(self, objective: OfferObjective) -> OfferLedger:
        """Return the totals of the episode, with freshness weighted by ``objective``."""
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
            changes_found=int(totals[OBSERVED_CHANGES]),
            signals=0,
            offer_freshness=float(np.mean(midnights)) if midnights else math.nan,
        )

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the complete state."""
        return {
            "market": self.market,
            "price_history": self.price_history,
            "state": copied(self._state),
            "world": self.world.get_state(),
            "events": self.world.events,
            "features": (self.first_features, self.features),
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> OfferLane:
        """Return the lane of a state of :meth:`get_state`."""
        lane = cls.__new__(cls)
        lane.market, lane.price_history = state["market"], state["price_history"]
        lane._state = copied(state["state"])
        lane.world = OfferWorld.of(state["world"], state["events"])
        lane.first_features, lane.features = state["features"]
        return lane
