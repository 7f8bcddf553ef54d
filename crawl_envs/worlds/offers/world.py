"""One lane's tracker of offers: its clock, its random choices, and the records of its days."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.streams import rewind
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.worlds.offers.law import (
    STEPS_PER_DAY,
    DayEvents,
    PriceArray,
    SingleArray,
    copied,
    read_only,
)
from crawl_envs.worlds.offers.tracking import (
    CLICKS,
    CRAWLS,
    EXPECTED_CLICKS,
    FRESH_CLICKS,
    FRESH_OFFERS,
    HITS,
    OBSERVED_CHANGES,
    OfferTracking,
    begin_day,
    choose_at_random,
    new_tracking,
    play_day,
    play_step,
)

EPOCH = 1.0 / STEPS_PER_DAY
"""Length of a step, in days."""


class StepOutcome(NamedTuple):
    """The outcome of one step: counts, and shares in [0, 1] right after the crawls.

    ``freshness`` is the share of fresh offers weighted by the expected clicks of the day,
    ``offer_freshness`` the unweighted share.
    """

    clicks: int
    hits: int
    crawls: int
    observed_changes: int
    freshness: float
    offer_freshness: float


class OfferDay(NamedTuple):
    """The record of one day, with the two measures of Han et al. 2020, section 4.2.2.

    Attributes:
        clicks: number of clicks.
        hits: number of clicks with the true price.
        crawls: number of crawls.
        fresh: share of fresh offers at midnight, at the end of the day: eq. 3.
    """

    clicks: int
    hits: int
    crawls: int
    fresh: float

    @property
    def click_freshness(self) -> float:
        """Share of the clicks with the true price: eq. 4; NaN on a day without clicks."""
        return self.hits / self.clicks if self.clicks else math.nan


class OfferWorld:
    """The tracker of one lane's offers, stepped on given days of events.

    Args:
        prices: true prices at the start, all held, (m,).
        changes: price changes per day logged before, (RING, m).
        latest: time of the latest of them, in days, (m,).
        root: root of the random choices.
        episode: number of the episode since the seed.

    Attributes:
        tracking: held prices and outcomes of crawls.
        step: number of steps played.
        days: records of the finished days.
        chosen, elapsed, changed: crawls of the latest step: offers, times since their last crawl,
            and whether the price had changed.
    """

    _ARRAYS = ("rng", "chosen", "elapsed", "changed", "_before")

    def __init__(
        self,
        prices: PriceArray,
        changes: NDArray[np.uint8],
        latest: SingleArray,
        root: int,
        episode: int,
    ) -> None:
        self.tracking: OfferTracking = new_tracking(prices, changes, latest)
        self.rng = np.zeros(4, np.uint64)
        rewind(self.rng, np.uint64(root), np.uint64(episode))
        self.step = 0
        self.days: list[OfferDay] = []
        self.chosen: IntArray = np.empty(0, np.int64)
        self.elapsed: FloatArray = np.empty(0)
        self.changed: BoolArray = np.empty(0, np.bool_)
        self._events: DayEvents | None = None
        self._before = np.zeros(self.tracking.totals.size)

    @property
    def day(self) -> int:
        """Number of the current day."""
        return self.step // STEPS_PER_DAY

    @property
    def time(self) -> float:
        """Current time, in days."""
        return self.step / STEPS_PER_DAY

    @property
    def events(self) -> DayEvents:
        """Events of the current day, read-only."""
        assert self._events is not None
        events: DayEvents = read_only(self._events)
        return events

    def enter(self, events: DayEvents) -> None:
        """Start the current day."""
        self._events = events
        begin_day(self.tracking, self.day, self.events.click_mean)

    def choose(self, rates: FloatArray) -> IntArray:
        """Return a random choice of the offers of a step, at ``rates`` per day, (m,)."""
        return choose_at_random(self.rng, rates)

    def play(self, chosen: IntArray) -> StepOutcome:
        """Play a step; after the last one of a day call :meth:`enter`."""
        self.chosen = chosen
        self.elapsed, self.changed = np.empty(chosen.size), np.empty(chosen.size, np.bool_)
        totals = self.tracking.totals
        before = totals.copy()
        day, step = divmod(self.step, STEPS_PER_DAY)
        play_step(self.tracking, self.events, day, step, chosen, self.elapsed, self.changed)
        self.step += 1
        if self.step % STEPS_PER_DAY == 0:
            self._end_day()
        made = totals - before
        num_offers = self.tracking.held.size
        offers = totals[FRESH_OFFERS] / num_offers
        expected, right = totals[EXPECTED_CLICKS], totals[FRESH_CLICKS]
        share = min(max(right / expected, 0.0), 1.0) if expected > 0.0 else offers  # of a sum
        return StepOutcome(
            clicks=int(made[CLICKS]),
            hits=int(made[HITS]),
            crawls=int(made[CRAWLS]),
            observed_changes=int(made[OBSERVED_CHANGES]),
            freshness=float(share),
            offer_freshness=float(offers),
        )

    def play_at(self, rates: FloatArray) -> None:
        """Play a whole day at rates per day, (m,), like twelve steps; no crawls are kept."""
        play_day(self.tracking, self.events, self.day, rates, self.rng)
        self.step += STEPS_PER_DAY
        self._end_day()

    def _end_day(self) -> None:
        totals = self.tracking.totals
        made = totals - self._before
        self._before = totals.copy()
        self.days.append(
            OfferDay(
                clicks=int(made[CLICKS]),
                hits=int(made[HITS]),
                crawls=int(made[CRAWLS]),
                fresh=float(totals[FRESH_OFFERS] / self.tracking.held.size),
            )
        )

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the complete state."""
        arrays = {name: getattr(self, name).copy() for name in self._ARRAYS}
        return {
            "tracking": copied(self.tracking),
            "step": self.step,
            "days": list(self.days),
            **arrays,
        }

    @classmethod
    def of(cls, state: dict[str, Any], events: DayEvents) -> OfferWorld:
        """Return the tracker of a state of :meth:`get_state`, on a day of events."""
        world = cls.__new__(cls)
        world.tracking = copied(state["tracking"])
        world.step, world.days, world._events = state["step"], list(state["days"]), events
        for name in cls._ARRAYS:
            setattr(world, name, state[name].copy())
        return world
