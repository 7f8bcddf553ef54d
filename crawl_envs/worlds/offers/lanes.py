"""Lanes of shopping offers: markets simulated day by day, and their trackers."""

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
"""Further rows of the outcomes: both measures of freshness, right after the crawls."""
ROUNDING = 1e-9
"""Rounding tolerance of numbers of steps and crawls."""


class MarketGenerator(InstanceGenerator, Protocol):
    """A generator of markets, all of the same bandwidth."""

    @property
    def bandwidth(self) -> float:
        """Crawls per day."""


class OfferLanes(Episodes):
    """N lanes of m shopping offers, a decision every two hours.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of the market of a lane at every seeded reset.
        action: ``scores`` or ``rates``.
        horizon: length of an episode, in days, at least one step.
        reveal: known part of the market besides the features: ``parameters`` (the expected clicks
            and price changes per day), ``importance`` (the clicks only) or ``history`` (neither:
            importance is the mean number of clicks per day in the last 30 days).
        resample: draw a new market at every reset, not only at seeded ones.
        objective: weights of freshness: expected ``clicks``, or equal for all ``offers``.
        price_history: price changes counted by the features: all of the ``log``, or those detected
            when offers were ``crawled``.
        overspend: treatment of rates above the budget; see
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
        revealed = ("change_rate",) if reveal == "parameters" else ()
        self.features = (
            *("elapsed", "changed", "importance"),
            *revealed,
            *HISTORY_FEATURES,
            *METADATA_FEATURES,
        )
        self.reported = (
            *(("requests", REQUESTS), ("hits", HITS), ("crawls", CRAWLS)),
            *(("click_freshness", CLICK_FRESHNESS), ("offer_freshness", OFFER_FRESHNESS)),
        )
        self._numbers = np.zeros(num_lanes, np.int64)
        self._finished: list[tuple[OfferDay, ...]] = [()] * num_lanes
        self._offer_lanes: list[OfferLane | None] = [None] * num_lanes
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
        steps = [0 if one is None else one.world.step for one in self._offer_lanes]
        left: IntArray = self._last_slot - np.array(steps) + 1
        return left

    def _episode(self, lane: int) -> int:
        return int(self._numbers[lane])

    def _count_episodes(self, chosen: BoolArray) -> None:
        self._numbers[chosen] += 1

    def _set_streams(self, lane: int, lane_roots: Roots, episode: int) -> None:
        self._numbers[lane] = episode

    def _set_instance(self, lane: int, instance: Instance) -> None:
        """Do nothing: only the instance itself is kept."""

    def _restart_worlds(self, chosen: BoolArray) -> None:
        for lane in map(int, np.flatnonzero(chosen)):
            lane_roots, market = cast(Roots, self._roots[lane]), cast(Market, self.instance(lane))
            episode, before = self._episode(lane), self._offer_lanes[lane]
            self._finished[lane] = () if before is None else tuple(before.world.days)
            self._offer_lanes[lane] = OfferLane(market, lane_roots, episode, self.price_history)
            self._show_day(lane)

    def _idle_ended(self) -> None:
        """Do nothing: :meth:`play` skips the lanes that have ended."""

    # Steps

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Take decoded actions and play to the next decision, in lanes not ended.

        As :meth:`crawl_envs.worlds.lanes.Episodes.play`, with two more rows of outcomes.
        """
        if self._steps_left == 0:
            raise ResetNeeded("call reset before step")
        if self.form.name == "rates":
            actions = (self._allowed(actions[0]),)
        self._outcomes[:] = 0.0
        for lane in map(int, np.flatnonzero(~self.ended)):
            offers = self._offer_lane(lane)
            outcome = offers.play(self._chosen(lane, actions))
            by_clicks = self.objective == "clicks"
            reward = outcome.freshness if by_clicks else outcome.offer_freshness
            column = self._outcomes[:, lane]
            column[FRESHNESS], column[HITS] = reward, outcome.hits
            column[REQUESTS], column[CRAWLS] = outcome.clicks, outcome.crawls
            column[CLICK_FRESHNESS] = outcome.freshness
            column[OFFER_FRESHNESS] = outcome.offer_freshness
            (self._show_day if offers.starts_day else self._show_crawls)(lane)
        return tuple(self._outcomes)

    def _allowed(self, rates: FloatArray) -> FloatArray:
        """Return rates, (N, m), within the budget, none above one crawl per step."""
        rates = np.minimum(rates, 1.0 / EPOCH)
        if self.any_ended:
            rates[self.ended] = 0.0
        budgets = [self.instance(lane).bandwidth for lane in range(self.num_lanes)]
        nowhere = np.zeros(rates.shape, np.bool_)
        return within_budget(rates, nowhere, np.zeros(rates.shape), budgets, self.overspend)[0]

    def _chosen(self, lane: int, actions: Actions) -> IntArray:
        """Return the offers that a lane's action crawls, all distinct."""
        world = self._offer_lane(lane).world
        if self.form.name == "rates":
            return world.choose(actions[0][lane])
        per_step = self.instance(lane).bandwidth * EPOCH
        due = [math.floor(step * per_step + ROUNDING) for step in (world.step, world.step + 1)]
        chosen: IntArray = actions[0][lane, : due[1] - due[0]]
        return chosen

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Check and ignore declared change rates: no offer has complete observation."""
        if self.form.name != "rates":
            super().declare(change_rate, lane)
        per_page("change_rate", change_rate, self.num_pages)
        whole("lane", lane, 0, self.num_lanes - 1)

    # Observations

    def _show_day(self, lane: int) -> None:
        """Write all columns of the observation of a lane."""
        known = self.tracker(lane)
        features = cast(OfferFeatures, known.offers)
        columns = {
            "importance": known.problem.importance,
            "change_rate": known.problem.change_rate,
            **features._asdict(),
            **features.metadata._asdict(),
        }
        for row, name in enumerate(self.features[2:], 2):
            self._shown[lane, row] = np.minimum(columns[name], RATE_CAP)
        self._show_crawls(lane)

    def _show_crawls(self, lane: int) -> None:
        world = self._offer_lane(lane).world
        self._shown[lane, 0] = np.minimum(world.time - world.tracking.last_crawl, self.horizon)
        self._shown[lane, 1] = world.tracking.changed

    def observations(self, copy: bool = True) -> ObservationArray:
        """Return the observations, (N, m, F); without ``copy`` the next step overwrites them."""
        return (self._buffers.copy(self._shown) if copy else self._shown).transpose(0, 2, 1)

    def observation(self, lane: int) -> ObservationArray:
        """Return the observation of a lane, (m, F), a new array."""
        seen: ObservationArray = self._shown[lane].copy().T
        return seen

    def action_masks(self) -> BoolArray:
        """Return a new mask of all offers, which may all be crawled, (N, m) bool."""
        return np.ones((self.num_lanes, self.num_pages), np.bool_)

    def problem(self, lane: int) -> Problem:
        """Return the public part of the market of a lane."""
        if self.reveal != "history":
            return self.instance(lane).problem(self.reveal)
        clicks = self._offer_lane(lane).first_features.clicks_30.astype(np.float64)
        clicks.setflags(write=False)
        return replace(self.instance(lane).problem("importance"), importance=clicks)

    def tracker(self, lane: int) -> Tracker:
        """Return the current knowledge of the tracker of a lane; features are read-only."""
        return self._offer_lane(lane).tracker(self.problem(lane), int(self.episodes[lane]))

    def last_log(self, lane: int) -> CrawlLog:
        """Return the crawls of the last step, or reset, of a lane."""
        return self._offer_lane(lane).last_log()

    # Truth

    def _of(self, lane: int) -> int:
        return whole("lane", lane, 0, self.num_lanes - 1)

    def _offer_lane(self, lane: int) -> OfferLane:
        offers = self._offer_lanes[self._of(lane)]
        if offers is None:
            raise ResetNeeded("call reset first: there is no market yet")
        return offers

    def fresh(self, lane: int) -> BoolArray:
        """Return the mask of true held prices, (m,) bool."""
        tracking = self._offer_lane(lane).world.tracking
        same: BoolArray = tracking.true == tracking.held
        return same

    def held_prices(self, lane: int) -> IntArray:
        """Return the held prices of a lane in cents, (m,)."""
        return self._offer_lane(lane).world.tracking.held.astype(np.int64)

    def events(self, lane: int) -> DayEvents:
        """Return the true events of a lane's current day, and the rates behind them."""
        return self._offer_lane(lane).world.events

    def days(self, lane: int) -> tuple[OfferDay, ...]:
        """Return the records of the finished days of a lane's episode."""
        return tuple(self._offer_lane(lane).world.days)

    def finished_days(self, lane: int) -> tuple[OfferDay, ...]:
        """Return the records of the days of a lane's previous episode."""
        return self._finished[self._of(lane)]

    def ledger(self, lane: int) -> OfferLedger:
        """Return the totals of a lane since the start of its episode."""
        return self._offer_lane(lane).ledger(self.objective)

    def num_slots(self, lane: int) -> int:
        """Return the number of crawls of a lane's episode, or with ``rates`` of steps."""
        steps = int(self._last_slot[lane]) + 1
        if self.form.name == "rates":
            return steps
        return math.floor(steps * EPOCH * self.instance(lane).bandwidth + ROUNDING)

    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls."""
        return (int(self._last_slot[lane]) + 1) * EPOCH * self.instance(lane).bandwidth

    # State

    def _kind(self) -> dict[str, Any]:
        own = {
            "objective": self.objective,
            "price_history": self.price_history,
            "overspend": self.overspend,
        }
        return {**super()._kind(), **own}

    def _get_world(self) -> Any:
        states = [None if one is None else one.get_state() for one in self._offer_lanes]
        return {"lanes": states, "shown": self._shown.copy()}

    def _set_world(self, state: Any) -> None:
        fits = isinstance(state, Mapping) and {"lanes", "shown"} <= state.keys()
        if fits:
            sizes = [None if one is None else one["market"].num_pages for one in state["lanes"]]
            fits = len(sizes) == self.num_lanes and set(sizes) <= {None, self.num_pages}
        if not fits or np.shape(state["shown"]) != self._shown.shape:
            raise ValueError(
                f"state must be of {self.num_lanes} lanes of {self.num_pages} offers like these"
            )
        self._offer_lanes = [None if one is None else OfferLane.of(one) for one in state["lanes"]]
        self._shown = state["shown"].copy()


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return the value of an argument; ValueError if it is not allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}")
    return value
