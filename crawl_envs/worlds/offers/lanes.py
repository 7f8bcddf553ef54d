"""Lanes of shopping offers: their markets day by day, and the features of the day."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from crawl_envs.sim.advance import UNFINISHED
from crawl_envs.sim.clock import slot_times
from crawl_envs.sim.rollouts.first_round import Round
from crawl_envs.sim.state import (
    CRAWLS,
    FRESHNESS,
    HITS,
    REQUESTS,
    SIMILARITY,
)
from crawl_envs.spaces.actions import (
    ActionForm,
    Actions,
    BandwidthShares,
    SampledRates,
    TopScores,
    action_form,
)
from crawl_envs.spaces.observations import RATE_CAP
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
from crawl_envs.types.arguments import one_of, whole
from crawl_envs.types.offer_features import (
    HISTORY_DAYS,
    HISTORY_FEATURES,
    METADATA_FEATURES,
    DailyArray,
    OfferFeatures,
    OfferMetadata,
)
from crawl_envs.worlds.budgets import RateBudget
from crawl_envs.worlds.episodes import InstanceGenerator, Plan
from crawl_envs.worlds.lanes import Lanes, Reported
from crawl_envs.worlds.offers.days import COLUMNS, MarketDays
from crawl_envs.worlds.offers.features import sums_of, write_changes
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, DayEvents, Market, copied
from crawl_envs.worlds.offers.market import day_of_week
from crawl_envs.worlds.offers.sampling import (
    no_changes,
    note_found_changes,
    sample_offers,
    start_day,
)
from crawl_envs.worlds.step import play_lanes, step_lanes

OfferObjective: TypeAlias = Literal["clicks", "offers"]
PriceHistory: TypeAlias = Literal["log", "crawled"]

EPOCH = 1.0 / STEPS_PER_DAY
"""Length of a step, in days."""
ROUNDING = 1e-9
"""Rounding tolerance of numbers of crawls."""


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


def offer_form(action: str, num_pages: int, bandwidth: float) -> ActionForm:
    """Return the action form ``name`` for offers at a bandwidth in crawls per day.

    ``page`` takes a decision at every crawl, all other forms every two hours.

    Raises:
        ValueError: an unknown form.
    """
    if action == "rates":
        return SampledRates(num_pages, float(STEPS_PER_DAY))
    if action == "shares":
        return BandwidthShares(num_pages)
    if action == "scores":
        per_step = math.ceil(bandwidth * EPOCH * (1.0 - ROUNDING))
        return TopScores(num_pages, max(min(per_step, num_pages), 1))
    return action_form(action, num_pages)


class OfferLanes(Lanes):
    """N lanes of m shopping offers; see also :class:`crawl_envs.worlds.lanes.Lanes`.

    The importance of an offer, the weight of its freshness, is its expected number of clicks on
    the day. Its divergence is 1 while the held price is not the true one.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of markets, all of one bandwidth.
        form: action form, of :func:`offer_form`.
        reveal: known part of the market besides the features: ``parameters`` (the expected clicks
            and price changes per day), ``importance`` (the clicks only) or ``history`` (neither:
            importance is the mean number of clicks per day in the last 30 days).
        objective: weights of freshness in ledgers: expected ``clicks``, or equal for all
            ``offers``.
        price_history: price changes counted by the features: all of the ``log``, or those detected
            when offers were ``crawled``.
        **arguments: of :class:`crawl_envs.worlds.lanes.Lanes`, in days.

    Raises:
        ValueError: an argument outside its range.
    """

    _ATTRIBUTES = (*Lanes._ATTRIBUTES, "_records", "_finished", "_totals", "_clicks", "_bandwidths")

    def __init__(
        self,
        num_lanes: int,
        generator: InstanceGenerator,
        form: ActionForm,
        *,
        reveal: Reveal = "history",
        objective: OfferObjective = "clicks",
        price_history: PriceHistory = "log",
        **arguments: Any,
    ) -> None:
        one_of("reveal", reveal, Reveal)
        self.objective = one_of("objective", objective, OfferObjective)
        self.price_history = one_of("price_history", price_history, PriceHistory)
        shape = (num_lanes, generator.num_pages * (price_history == "crawled"))
        self._detected = no_changes(*shape)
        self._days = MarketDays(num_lanes)
        self._records: list[tuple[OfferDay, ...]] = [()] * num_lanes
        self._finished: list[tuple[OfferDay, ...]] = [()] * num_lanes
        self._features: list[OfferFeatures | None] = [None] * num_lanes
        self._clicks = np.zeros((num_lanes, generator.num_pages * (reveal == "history")))
        self._sampled, self._counts = np.zeros((num_lanes, 0), np.int64), np.zeros(num_lanes, int)
        self._bandwidths, self._totals = np.ones(num_lanes), np.zeros((num_lanes, 3), np.int64)
        super().__init__(
            num_lanes,
            generator,
            form,
            reveal=reveal,
            epoch=None if form.name == "page" else EPOCH,
            priced=True,
            at_random=False,
            **arguments,
        )

    @property
    def reported(self) -> Reported:
        """Return the names of a step's info besides the reward, each with its row of outcomes."""
        counts = (("requests", REQUESTS), ("hits", HITS), ("crawls", CRAWLS))
        return (*counts, ("click_freshness", FRESHNESS), ("offer_freshness", SIMILARITY))

    def _columns(self, complete: bool) -> tuple[str, ...]:
        revealed = ("change_rate",) if self.reveal == "parameters" else ()
        columns = ("elapsed", "changed", "importance", *revealed)
        return (*columns, *HISTORY_FEATURES, *METADATA_FEATURES)

    # Episodes

    def _check_events(self, instance: Instance) -> None:
        if not isinstance(instance, Market):
            raise ValueError(f"instance must be a Market, got {type(instance).__name__}")
        instance.check_days(self.origin_of(instance) + self.horizon)
        max_bandwidth = self.form.batch / EPOCH
        if self.form.name == "scores" and instance.bandwidth > max_bandwidth * (1.0 + ROUNDING):
            raise ValueError(
                f"bandwidth must be at most {max_bandwidth:g} crawls per day, since scores choose "
                f"{self.form.batch} offers per step, got {instance.bandwidth:g}"
            )

    def _prepare(self, plan: Plan) -> None:
        super()._prepare(plan)
        if plan.instance is None:
            return
        self._bandwidths[plan.lane] = plan.instance.bandwidth
        if self.world.observations[plan.lane].size:
            self._show_market(plan.lane, cast(Market, plan.instance))
        if self.budget is not None:
            self.world.lengthen(crawled=int(plan.instance.bandwidth * EPOCH) + 2)

    def _restart(self, lane_mask: BoolArray, play: bool = True) -> None:
        lanes = np.flatnonzero(lane_mask)
        numbers: list[int] = lanes.tolist()
        laws = [self._market(lane).law for lane in numbers]
        self._days.start(lanes, laws, self.world.state.lanes[lanes])
        self._totals[lanes] = 0
        for lane in numbers:
            self._finished[lane], self._records[lane] = self._records[lane], ()
            prices = self.world.state.prices[lane]
            prices["true"] = prices["held"] = self._days.state(lane).price
        self._next_day(lanes)
        for lane in numbers if self.reveal == "history" else ():
            self._clicks[lane] = self.features_of(lane).clicks_30
            if self.world.observations[lane].size:
                row = self.features.index("importance")
                self.world.observations[lane][row] = np.minimum(self._clicks[lane], RATE_CAP)
        super()._restart(lane_mask, play)

    def _provide_events(self, lane: int) -> None:
        """Do nothing, because the lanes already have the events of their first day."""

    def supply(self) -> None:
        """Enlarge full logs, and start the next day of the lanes whose day is over."""
        super().supply()
        self.note_crawls()
        lanes = self.world.state.lanes
        over = np.flatnonzero((lanes["cursor"] == lanes["length"]) & (lanes["length"] > 0))
        if over.size:
            self._end_day(over[lanes["origin"][over] >= 0.0])
            self._next_day(over)

    def _end_day(self, lanes: IntArray) -> None:
        """Record the clicks, hits, crawls and freshness of the day that some lanes finished."""
        records = self.world.state.lanes[lanes]
        clicks = records["requests"] + records["slot_requests"]
        hits = records["hits"] + records["slot_hits"]
        totals = np.stack([clicks, hits, records["crawls"]], axis=1)
        counts, self._totals[lanes] = totals - self._totals[lanes], totals
        fresh = (self.num_pages - records["divergence_weight"]) / self.num_pages
        rows = (lanes.tolist(), *counts.T.tolist(), fresh.tolist())
        for lane, *day in zip(*rows, strict=True):
            self._records[lane] += (OfferDay(*day),)

    def _next_day(self, lanes: IntArray) -> None:
        """Start the next day of some lanes: draw its events, set the weights and the features."""
        first, weekday = map(self.features.index, (HISTORY_FEATURES[0], "day_of_week"))
        self._days.next_day(self.world, lanes, first)
        for lane in lanes.tolist():
            self._features[lane], day = None, int(self._days.day[lane])
            if self.price_history == "crawled":
                start_day(self._detected, lane, day, self._days.state(lane))
            if self.world.observations[lane].size:
                self._count_found(lane, self.world.observations[lane][first : first + COLUMNS])
                self.world.observations[lane][weekday] = day_of_week(self._market(lane).law, day)

    def _market(self, lane: int) -> Market:
        return cast(Market, self.instance(lane))

    def _checked_lane(self, lane: int) -> int:
        """Return a lane's number; raise ResetNeeded if the lane has had no market yet."""
        self.instance(lane)
        return lane

    def num_slots(self, lane: int) -> int:
        """Return the number of slots of a lane's episode, or for ``scores`` of its crawls."""
        if self.form.name == "scores":
            return math.floor(self.crawls_allowed(lane) + ROUNDING)
        return super().num_slots(lane)

    def first_round(self, lane: int) -> Round:
        """Return the crawls before a lane's episode: at the steps of two hours, except ``page``.

        At rates they are sampled at equal rates.
        """
        pages, times, ends = super().first_round(lane)
        if self.epoch is None:
            return Round(pages, times, ends)
        if self.budget is None:
            steps = np.ceil(times / EPOCH - ROUNDING) - 1.0
            return Round(pages, slot_times(self.world.state.clock[lane], steps), ends)
        bandwidth, rng = self._bandwidths[lane : lane + 1], self.world.state.rng[lane : lane + 1]
        rates = np.full((1, self.num_pages), bandwidth[0] / self.num_pages)
        counts, sample = np.zeros((ends.size, 1), np.int64), np.zeros(rates.shape, np.int64)
        sampled = [pages[:0]]
        for count in counts[:-1]:
            sample_offers(rates, bandwidth, False, rng, np.zeros(1, np.bool_), sample, count)
            sampled.append(sample[0, : count[0]].copy())
        return Round(np.concatenate(sampled), np.repeat(ends, counts[:, 0]), ends)

    # Steps

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Take decoded actions and play the lanes that have not ended to their next decision.

        See :meth:`crawl_envs.worlds.lanes.Lanes.play`.
        """
        if self.form.name == "scores":
            actions = (actions[0], self._due_crawls())
        return super().play(actions)

    def note_crawls(self) -> None:
        """Record the price changes that the step's crawls found, if the features count these."""
        if self.price_history == "crawled":
            note_found_changes(self.world.table, self._detected)

    def _due_crawls(self) -> IntArray:
        """Return how many offers each lane crawls in its next step of two hours, (N,)."""
        slots = self.world.state.lanes["slot"]
        rates = self._bandwidths * EPOCH
        ends = [np.floor((slots + end) * rates + ROUNDING) for end in (0, 1)]
        return (ends[1] - ends[0]).astype(np.int64)

    def _play_at_rates(self, budget: RateBudget, wanted: FloatArray) -> None:
        """Crawl offers sampled by rates ``wanted``, (N, m), which are cut to the budget."""
        if self._sampled.shape[1] != self.world.lengths["crawled"]:
            self._sampled = np.zeros((self.num_lanes, self.world.lengths["crawled"]), np.int64)
        if self.form.of_bandwidth:
            wanted = wanted * self._bandwidths[:, None]
        rng, sample = self.world.state.rng, (self._sampled, self._counts)
        before, strict = rng.copy(), budget.overspend == "error"
        lane, spent = sample_offers(wanted, self._bandwidths, strict, rng, self.ended, *sample)
        if lane >= 0:
            rng[:] = before
            if np.isnan(spent):
                raise ValueError(f"action must be rates, finite and >= 0, got {wanted[lane]!r}")
            raise ValueError(
                f"action must spend at most the bandwidth {self._bandwidths[lane]:g} crawls per "
                f"day, got {spent:g}"
            )
        status = step_lanes(self.world.table, *sample)
        if status == UNFINISHED:
            self._finish(status, play_lanes)

    # Observations

    def _show_market(self, lane: int, market: Market) -> None:
        """Write the metadata of a lane's market into its observation, where it stays constant."""
        for row, name in enumerate(self.features):
            if name in OfferMetadata._fields:
                values = np.minimum(getattr(market.metadata, name), RATE_CAP)
                self.world.observations[lane][row] = values

    def _count_found(self, lane: int, columns: DailyArray) -> None:
        """Write features of price changes by detected changes, if only these count."""
        if self.price_history == "crawled":
            day = int(self._days.day[lane])
            counts = sums_of(self._detected.counts[lane], day, (HISTORY_DAYS,))[0]
            write_changes(day, counts, self._detected.last[lane], columns)

    def features_of(self, lane: int) -> OfferFeatures:
        """Return the features of all offers of a lane on its current day."""
        features = self._features[self._checked_lane(lane)]
        if features is None:
            market, day = self._market(lane), int(self._days.day[lane])
            columns = np.empty((COLUMNS, self.num_pages), np.float32)
            self._days.write(lane, columns)
            self._count_found(lane, columns)
            columns.setflags(write=False)
            weekday = day_of_week(market.law, day)
            features = OfferFeatures(market.metadata, day, weekday, *columns)
            self._features[lane] = features
        return features

    def problem(self, lane: int) -> Problem:
        """Return what a policy may know of a lane's market, its public part."""
        if self.reveal != "history":
            return self.instance(lane).problem(self.reveal)
        self.instance(lane)
        clicks = self._clicks[lane].copy()
        clicks.setflags(write=False)
        return replace(self.instance(lane).problem("importance"), importance=clicks)

    def tracker(self, lane: int) -> Tracker:
        """Return what the tracker of a lane knows now; the features are read-only."""
        return super().tracker(lane)._replace(offers=self.features_of(lane))

    def last_log(self, lane: int) -> CrawlLog:
        """Return the crawls of a lane's last step or reset, with the prices they observed."""
        log = super().last_log(lane)
        observed = self.world.state.crawl_prices[lane, : log.page.size]
        return log._replace(price=observed.astype(np.int64))

    # Truth

    def held_prices(self, lane: int) -> IntArray:
        """Return the held prices of a lane in cents, (m,)."""
        prices = self.world.state.prices[self._checked_lane(lane)]
        return np.asarray(prices["held"], np.int64)

    def events(self, lane: int) -> DayEvents:
        """Return the true events of a lane's current day, and their expected numbers."""
        return self._days.truth(self.world, self._checked_lane(lane))

    def days(self, lane: int) -> tuple[OfferDay, ...]:
        """Return the records of the days that a lane's current episode has finished."""
        return self._records[self._checked_lane(lane)]

    def finished_days(self, lane: int) -> tuple[OfferDay, ...]:
        """Return the records of all days of the episode that a lane played before."""
        return self._finished[whole("lane", lane, 0, self.num_lanes - 1)]

    def ledger(self, lane: int, finished: bool = False) -> OfferLedger:
        """Return the totals of a lane's episode so far; if ``finished``, of its last ended one."""
        totals = asdict(super().ledger(lane, finished))
        days = self.finished_days if self._is_past(lane, finished) else self.days
        midnights = [day.fresh for day in days(lane)]
        if self.objective == "offers":
            wrong = float(self._totals_of(lane, finished)["divergence_time"])
            everything = self.num_pages * totals["time"]
            totals |= {"fresh_time": everything - wrong, "alive_time": everything}
        fresh = float(np.mean(midnights)) if midnights else math.nan
        return OfferLedger(**totals, offer_freshness=fresh)

    # State

    _SAVED = (*Lanes._SAVED, "offers")

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the complete state of all lanes, for :meth:`set_state`."""
        return {**super().get_state(), "offers": (self._days.copy(), copied(self._detected))}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state, as :meth:`crawl_envs.worlds.lanes.Lanes.set_state`."""
        super().set_state(state)
        days, detected = state["offers"]
        self._days, self._detected = days.copy(), copied(detected)
        self._features = [None] * self.num_lanes

    def _kind(self) -> dict[str, Any]:
        settings = {"objective": self.objective, "price_history": self.price_history}
        return {**super()._kind(), **settings}
