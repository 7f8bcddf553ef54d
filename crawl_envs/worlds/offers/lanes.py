"""Lanes of shopping offers: markets that go on day by day, and what their trackers hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast, get_args

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike

from crawl_envs.sim.state import CRAWLS, FRESHNESS, HITS, NUM_OUTCOMES, REQUESTS
from crawl_envs.sim.streams import Roots
from crawl_envs.spaces.actions import Actions, CrawlRates, TopScores
from crawl_envs.spaces.observations import RATE_CAP, ObservationArray
from crawl_envs.types import (
    BoolArray,
    CrawlLog,
    FloatArray,
    Instance,
    IntArray,
    OfferLedger,
    Problem,
    Reveal,
    Tracker,
)
from crawl_envs.types.arguments import per_page, whole
from crawl_envs.types.offer_features import HISTORY_FEATURES, METADATA_FEATURES, OfferFeatures
from crawl_envs.worlds.lanes import Episodes, InstanceGenerator
from crawl_envs.worlds.offers.lane import OfferLane, OfferObjective, PriceHistory
from crawl_envs.worlds.offers.law import DayEvents, Market
from crawl_envs.worlds.offers.world import EPOCH, OfferDay
from crawl_envs.worlds.pages.rate_lanes import Overspend, within_budget

CLICK_FRESHNESS, OFFER_FRESHNESS = NUM_OUTCOMES, NUM_OUTCOMES + 1
"""Rows of the outcomes beside those of other worlds: both measures, right after the crawls."""
ROUNDING = 1e-9
"""By so much a number of steps or crawls may miss a whole one through rounding."""


class MarketGenerator(InstanceGenerator, Protocol):
    """Draws markets, all of the same bandwidth."""

    @property
    def bandwidth(self) -> float:
        """Crawls per day."""


class OfferLanes(Episodes):
    """N lanes of m shopping offers, a decision every two hours.

    Args:
        num_lanes: number of lanes, N.
        generator: draws the market of a lane at every seeded reset.
        action: ``scores`` or ``rates``.
        horizon: length of an episode, in days, at least one step.
        reveal: what the tracker is told besides the book: ``parameters`` (the expected clicks and
            price changes per day), ``importance`` (the clicks alone) or ``history`` (neither:
            importance is the mean of the clicks of the last 30 days).
        resample: draw a new market at every reset, not only at seeded ones.
        objective: what freshness weighs offers by: expected ``clicks``, or all ``offers`` alike.
        price_history: whose price changes books count: of the ``log`` of all prices, or those that
            were found when offers were ``crawled``.
        overspend: what becomes of rates above the budget; see
            :func:`crawl_envs.worlds.pages.rate_lanes.within_budget`.

    Raises:
        ValueError: an argument outside its range.
    """

    epoch = EPOCH
    _OWN = (*Episodes._OWN, "_numbers", "_finished")

    def __init__(
        self,
        num_lanes: int,
        generator: MarketGenerator,
        *,
        action: str,
        horizon: float,
        reveal: Reveal = "history",
        resample: bool = False,
        objective: OfferObjective = "clicks",
        price_history: PriceHistory = "log",
        overspend: Overspend = "scale",
    ) -> None:
        _one_of("reveal", reveal, get_args(Reveal))
        _one_of("objective", objective, get_args(OfferObjective))
        _one_of("price_history", price_history, get_args(PriceHistory))
        _one_of("overspend", overspend, get_args(Overspend))
        num_pages = generator.num_pages
        per_step = math.ceil(generator.bandwidth * EPOCH * (1.0 - ROUNDING))
        form: TopScores | CrawlRates
        if _one_of("action", action, ("scores", "rates")) == "rates":
            form = CrawlRates(num_pages, 1.0 / EPOCH)
        else:
            form = TopScores(num_pages, max(min(per_step, num_pages), 1))
        super().__init__(
            num_lanes, generator, form, horizon=horizon, reveal=reveal, resample=resample
        )
        self.objective, self.price_history, self.overspend = objective, price_history, overspend
        told = ("change_rate",) if reveal == "parameters" else ()
        self.features = (
            *("elapsed", "changed", "importance"),
            *told,
            *HISTORY_FEATURES,
            *METADATA_FEATURES,
        )
        self.reported = (
            *(("requests", REQUESTS), ("hits", HITS), ("crawls", CRAWLS)),
            *(("click_freshness", CLICK_FRESHNESS), ("offer_freshness", OFFER_FRESHNESS)),
        )
        self._numbers = np.zeros(num_lanes, np.int64)
        self._finished: list[tuple[OfferDay, ...]] = [()] * num_lanes
        self._rooms: list[OfferLane | None] = [None] * num_lanes
        self._shown = np.zeros((num_lanes, len(self.features), num_pages), np.float32)
        self._outcomes = np.zeros((NUM_OUTCOMES + 2, num_lanes))

    # Episodes

    def _check(self, instance: Instance) -> None:
        super()._check(instance)
        if not isinstance(instance, Market):
            raise ValueError(f"instance must be a Market, got {type(instance).__name__}")
        instance.check_days(self.horizon)
        most = self.form.batch / EPOCH
        if self.form.name == "scores" and instance.bandwidth > most * (1.0 + ROUNDING):
            raise ValueError(
                f"bandwidth must be at most {most:g} crawls per day in an environment whose "
                f"scores choose {self.form.batch} offers per step, got {instance.bandwidth:g}"
            )

    def _last_slot_of(self, instance: Instance) -> int:
        steps = math.floor(self.horizon / EPOCH * (1.0 + ROUNDING))
        if steps < 1:
            raise ValueError(f"horizon must hold a step of 1/12 day, got {self.horizon!r}")
        return steps - 1

    def _decisions_left(self) -> IntArray:
        steps = [0 if room is None else room.world.step for room in self._rooms]
        left: IntArray = self._last_slot - np.array(steps) + 1
        return left

    def _episode(self, lane: int) -> int:
        return int(self._numbers[lane])

    def _go_on(self, chosen: BoolArray) -> None:
        self._numbers[chosen] += 1

    def _set_streams(self, lane: int, lane_roots: Roots, episode: int) -> None:
        self._numbers[lane] = episode

    def _set_instance(self, lane: int, instance: Instance) -> None:
        """Nothing is kept of it but itself."""

    def _restart_worlds(self, chosen: BoolArray) -> None:
        for lane in map(int, np.flatnonzero(chosen)):
            lane_roots, market = cast(Roots, self._roots[lane]), cast(Market, self.instance(lane))
            episode, before = self._episode(lane), self._rooms[lane]
            self._finished[lane] = () if before is None else tuple(before.world.days)
            self._rooms[lane] = OfferLane(market, lane_roots, episode, self.price_history)
            self._show_day(lane)

    def _rest_ended(self) -> None:
        """Lanes that have ended are passed by in :meth:`play`."""

    # Steps

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Crawl decoded actions and play on to the next decision, in lanes not ended.

        As :meth:`crawl_envs.worlds.lanes.Episodes.play`, with two more rows of outcomes.
        """
        if self._steps_left == 0:
            raise ResetNeeded("call reset before step")
        if self.form.name == "rates":
            actions = (self._allowed(actions[0]),)
        self._outcomes[:] = 0.0
        for lane in map(int, np.flatnonzero(~self.ended)):
            room = self._room(lane)
            outcome = room.play(self._chosen(lane, actions))
            by_clicks = self.objective == "clicks"
            paid = outcome.freshness if by_clicks else outcome.offer_freshness
            column = self._outcomes[:, lane]
            column[FRESHNESS], column[HITS] = paid, outcome.hits
            column[REQUESTS], column[CRAWLS] = outcome.clicks, outcome.crawls
            column[CLICK_FRESHNESS] = outcome.freshness
            column[OFFER_FRESHNESS] = outcome.offer_freshness
            (self._show_day if room.starts_day else self._show_crawls)(lane)
        return tuple(self._outcomes)

    def _allowed(self, rates: FloatArray) -> FloatArray:
        """Return rates, (N, m), that keep to the budget, none above one crawl per step."""
        rates = np.minimum(rates, 1.0 / EPOCH)
        if self.any_ended:
            rates[self.ended] = 0.0
        budgets = [self.instance(lane).bandwidth for lane in range(self.num_lanes)]
        nowhere = np.zeros(rates.shape, np.bool_)
        return within_budget(rates, nowhere, np.zeros(rates.shape), budgets, self.overspend)[0]

    def _chosen(self, lane: int, actions: Actions) -> IntArray:
        """Return the offers that a lane's action crawls, all distinct."""
        world = self._room(lane).world
        if self.form.name == "rates":
            return world.choose(actions[0][lane])
        per_step = self.instance(lane).bandwidth * EPOCH
        due = [math.floor(step * per_step + ROUNDING) for step in (world.step, world.step + 1)]
        chosen: IntArray = actions[0][lane, : due[1] - due[0]]
        return chosen

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Check what is declared, and pass it by: no offer has complete observation."""
        if self.form.name != "rates":
            super().declare(change_rate, lane)
        per_page("change_rate", change_rate, self.num_pages)
        whole("lane", lane, 0, self.num_lanes - 1)

    # What is seen

    def _show_day(self, lane: int) -> None:
        """Write all that is observed in a lane."""
        known = self.tracker(lane)
        book = cast(OfferFeatures, known.offers)
        columns = {
            "importance": known.problem.importance,
            "change_rate": known.problem.change_rate,
            **book._asdict(),
            **book.metadata._asdict(),
        }
        for row, name in enumerate(self.features[2:], 2):
            self._shown[lane, row] = np.minimum(columns[name], RATE_CAP)
        self._show_crawls(lane)

    def _show_crawls(self, lane: int) -> None:
        world = self._room(lane).world
        self._shown[lane, 0] = np.minimum(world.time - world.tracking.last_crawl, self.horizon)
        self._shown[lane, 1] = world.tracking.changed

    def observations(self, copy: bool = True) -> ObservationArray:
        """Return all observations, (N, m, F); without ``copy`` the next step overwrites them."""
        return (self._buffers.copy(self._shown) if copy else self._shown).transpose(0, 2, 1)

    def observation(self, lane: int) -> ObservationArray:
        """Return the observation of a lane, (m, F), a fresh array."""
        seen: ObservationArray = self._shown[lane].copy().T
        return seen

    def action_masks(self) -> BoolArray:
        """Return that all offers may be crawled, (N, m) bool."""
        return np.ones((self.num_lanes, self.num_pages), np.bool_)

    def problem(self, lane: int) -> Problem:
        """Return what the tracker of a lane was told."""
        if self.reveal != "history":
            return self.instance(lane).problem(self.reveal)
        clicks = self._room(lane).first_book.clicks_30.astype(np.float64)
        clicks.setflags(write=False)
        return replace(self.instance(lane).problem("importance"), importance=clicks)

    def tracker(self, lane: int) -> Tracker:
        """Return what the tracker of a lane knows now, as fresh arrays; books are read-only."""
        return self._room(lane).tracker(self.problem(lane), int(self.episodes[lane]))

    def last_log(self, lane: int) -> CrawlLog:
        """Return what the last step, or reset, taught the tracker of a lane."""
        return self._room(lane).last_log()

    # What is true

    def _of(self, lane: int) -> int:
        return whole("lane", lane, 0, self.num_lanes - 1)

    def _room(self, lane: int) -> OfferLane:
        room = self._rooms[self._of(lane)]
        if room is None:
            raise ResetNeeded("call reset first: there is no market yet")
        return room

    def fresh(self, lane: int) -> BoolArray:
        """Return which held prices are true, (m,) bool."""
        tracking = self._room(lane).world.tracking
        same: BoolArray = tracking.true == tracking.held
        return same

    def held_prices(self, lane: int) -> IntArray:
        """Return the prices that the tracker of a lane holds, (m,)."""
        return self._room(lane).world.tracking.held.astype(np.int64)

    def events(self, lane: int) -> DayEvents:
        """Return what happens on a lane's present day, and the rates behind it: the truth."""
        return self._room(lane).world.events

    def days(self, lane: int) -> tuple[OfferDay, ...]:
        """Return the account of the days of a lane's episode that are over."""
        return tuple(self._room(lane).world.days)

    def finished_days(self, lane: int) -> tuple[OfferDay, ...]:
        """Return the account of the days of a lane's episode before the present one."""
        return self._finished[self._of(lane)]

    def ledger(self, lane: int) -> OfferLedger:
        """Return what happened in a lane since its episode began."""
        return self._room(lane).ledger(self.objective)

    def num_slots(self, lane: int) -> int:
        """Return the crawls of a lane's episode, or in the form ``rates`` its steps."""
        steps = int(self._last_slot[lane]) + 1
        if self.form.name == "rates":
            return steps
        return math.floor(steps * EPOCH * self.instance(lane).bandwidth + ROUNDING)

    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls."""
        return (int(self._last_slot[lane]) + 1) * EPOCH * self.instance(lane).bandwidth

    # What decides what happens next

    def _kind(self) -> dict[str, Any]:
        own = {
            "objective": self.objective,
            "price_history": self.price_history,
            "overspend": self.overspend,
        }
        return {**super()._kind(), **own}

    def _get_world(self) -> Any:
        rooms = [None if room is None else room.get_state() for room in self._rooms]
        return {"rooms": rooms, "shown": self._shown.copy()}

    def _set_world(self, state: Any) -> None:
        fits = isinstance(state, Mapping) and {"rooms", "shown"} <= state.keys()
        if fits:
            sizes = [None if room is None else room["market"].num_pages for room in state["rooms"]]
            fits = len(sizes) == self.num_lanes and set(sizes) <= {None, self.num_pages}
        if not fits or np.shape(state["shown"]) != self._shown.shape:
            raise ValueError(
                f"state must be of {self.num_lanes} lanes of {self.num_pages} offers like these"
            )
        self._rooms = [None if room is None else OfferLane.of(room) for room in state["rooms"]]
        self._shown = state["shown"].copy()


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return the value of an argument that must be one of some."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}")
    return value
