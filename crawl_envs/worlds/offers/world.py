"""One lane's tracker of offers: its clock, its coins, and the account of its days."""

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
    FOUND,
    FRESH_CLICKS,
    FRESH_OFFERS,
    HITS,
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
    """What came of one step: counts, and shares in [0, 1] right after the crawls.

    ``freshness`` is the share of offers that are fresh, weighted by the expected clicks of the day;
    ``offer_freshness`` is the plain share.
    """

    clicks: int
    hits: int
    crawls: int
    found: int
    freshness: float
    offer_freshness: float


class OfferDay(NamedTuple):
    """What came of one whole day: the two measures of Han et al. 2020, section 4.2.2.

    Attributes:
        clicks: of users.
        hits: those who saw the true price.
        crawls: made.
        fresh: share of the offers that were fresh at midnight, when the day was over: eq. 3.
    """

    clicks: int
    hits: int
    crawls: int
    fresh: float

    @property
    def click_freshness(self) -> float:
        """Share of the clicks that saw the true price: eq. 4; NaN on a day without clicks."""
        return self.hits / self.clicks if self.clicks else math.nan


class OfferWorld:
    """The held prices of one lane's offers, played step by step on given days of events.

    Args:
        prices: the true ones at the start, all of which are held, (m,).
        changes: price changes per day that were logged before, (RING, m).
        latest: when the latest of them was, in days, (m,).
        root: of the coins.
        episode: number of the episode since the seed.

    Attributes:
        tracking: what is held and was found.
        step: number of steps played.
        days: the account of the days that are over.
        chosen, elapsed, found: the crawls of the latest step: which offers, the time since their
            last crawl, and whether another price was found.
    """

    _ARRAYS = ("rng", "chosen", "elapsed", "found", "_before")

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
        self.found: BoolArray = np.empty(0, np.bool_)
        self._events: DayEvents | None = None
        self._before = np.zeros(self.tracking.totals.size)

    @property
    def day(self) -> int:
        """Number of the present day."""
        return self.step // STEPS_PER_DAY

    @property
    def time(self) -> float:
        """Now, in days."""
        return self.step / STEPS_PER_DAY

    @property
    def events(self) -> DayEvents:
        """What happens on the present day, read-only."""
        assert self._events is not None
        events: DayEvents = read_only(self._events)
        return events

    def enter(self, events: DayEvents) -> None:
        """Begin the present day."""
        self._events = events
        begin_day(self.tracking, self.day, self.events.click_mean)

    def choose(self, rates: FloatArray) -> IntArray:
        """Toss coins for a step: which offers to crawl at ``rates`` per day, (m,)."""
        return choose_at_random(self.rng, rates)

    def play(self, chosen: IntArray) -> StepOutcome:
        """Play a step; the day's last one ends it, and the next is to be entered then."""
        self.chosen = chosen
        self.elapsed, self.found = np.empty(chosen.size), np.empty(chosen.size, np.bool_)
        totals = self.tracking.totals
        before = totals.copy()
        day, step = divmod(self.step, STEPS_PER_DAY)
        play_step(self.tracking, self.events, day, step, chosen, self.elapsed, self.found)
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
            found=int(made[FOUND]),
            freshness=float(share),
            offer_freshness=float(offers),
        )

    def play_at(self, rates: FloatArray) -> None:
        """Play a whole day at rates per day, (m,), as twelve steps would; no crawls are kept."""
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
        """Return a copy of everything that decides what happens next."""
        arrays = {name: getattr(self, name).copy() for name in self._ARRAYS}
        return {
            "tracking": copied(self.tracking),
            "step": self.step,
            "days": list(self.days),
            **arrays,
        }

    @classmethod
    def of(cls, state: dict[str, Any], events: DayEvents) -> OfferWorld:
        """Return the world of a state that :meth:`get_state` returned, on a day of events."""
        world = cls.__new__(cls)
        world.tracking = copied(state["tracking"])
        world.step, world.days, world._events = state["step"], list(state["days"]), events
        for name in cls._ARRAYS:
            setattr(world, name, state[name].copy())
        return world
