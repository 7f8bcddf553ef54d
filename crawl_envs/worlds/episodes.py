"""The episodes of a batch of lanes: their seeds, instances and lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from gymnasium.error import ResetNeeded

from crawl_envs.sim.clock import (
    SLACK,
    budget_until,
    clock_rows,
    crawls_between,
    slot_time,
    slots_until,
)
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.state import BY_WAITING
from crawl_envs.sim.streams import PageSets, Roots, generator, roots
from crawl_envs.sim.world import World
from crawl_envs.types import BoolArray, FloatArray, Instance, IntArray, Ledger
from crawl_envs.types.arguments import one_of, whole

NEVER = np.iinfo(np.int64).max
Start: TypeAlias = Literal["fresh", "crawled"]
"""How episodes start: with fresh copies, or after a round of crawls of all pages."""


class InstanceGenerator(Protocol):
    """A callable that draws instances of ``num_pages`` pages from a NumPy generator.

    Instances have ``num_sources`` sources of signals, one if the generator has no such attribute,
    and costs of crawls of at least ``least_cost``, none if that is None or no attribute.
    """

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance from a NumPy generator."""


class Plan(NamedTuple):
    """The seed's roots, number and instance of a lane's next episode; None keeps its instance."""

    lane: int
    roots: Roots
    episode: int
    instance: Instance | None
    pinned: bool


class Episodes:
    """The episodes of N lanes; :class:`crawl_envs.worlds.lanes.Lanes` plays them.

    Args:
        world: the world that holds the arrays of the lanes.
        generator: generator of the instance of a lane at every seeded reset.
        horizon: length of an episode, > 0.
        resample: draw a new instance at every reset, not only at seeded ones.
        start: ``fresh``: episodes begin at time 0; ``crawled``: they begin after the pages of time
            0 were crawled once.

    Raises:
        ValueError: another start, or ``crawled`` with bandwidth steps.

    Attributes:
        episodes: unique number of each lane's episode, (N,) int64; 0 before the first.
        ended: mask of the lanes at the end of their episode, (N,) bool.
        any_ended: whether any lane is at the end of its episode.
        steps_left: steps until an episode ends next; 0 while a lane has had no episode.
        most_steps: steps after which an episode is truncated; None if only the horizon counts.
    """

    _ATTRIBUTES: tuple[str, ...] = (
        *("_roots", "_instances", "_pinned", "_last_slot"),
        *("episodes", "ended", "any_ended", "steps_left"),
    )
    start: Start = "fresh"

    pages: PageSets = "any"
    """Stream of the seeds of the lanes."""

    def __init__(
        self,
        world: World,
        generator: InstanceGenerator,
        horizon: float,
        resample: bool,
        start: Start = "fresh",
    ) -> None:
        self.world, self._generator = world, generator
        self.horizon, self.resample = horizon, resample
        if one_of("start", start, Start) != "fresh":
            self.start = start  # an attribute less by default, since 30 are read faster than 31
        self._check_steps(getattr(generator, "bandwidth_steps", ()))
        self.most_steps: int | None = None
        self.num_lanes, self.num_pages = world.num_lanes, world.num_pages
        self.num_sources = world.num_sources
        self._roots: list[Roots | None] = [None] * self.num_lanes
        self._instances: list[Instance | None] = [None] * self.num_lanes
        self._pinned = np.zeros(self.num_lanes, np.bool_)
        self._last_slot = np.zeros(self.num_lanes, np.int64)
        self.episodes = np.zeros(self.num_lanes, np.int64)
        self.ended, self.any_ended = np.zeros(self.num_lanes, np.bool_), False
        self.steps_left = 0

    # Lengths

    @property
    def epoch(self) -> float | None:
        """Length of an epoch; None for decisions at crawls."""
        return self.world.epoch

    def _check_steps(self, bandwidth_steps: Sequence[Sequence[float]]) -> None:
        """Raise ValueError for bandwidth steps where episodes start with a crawled collection."""
        if self.start == "crawled" and len(bandwidth_steps) > 0:
            raise ValueError(
                "bandwidth_steps must be () with start='crawled', whose episodes have one "
                f"bandwidth, got {bandwidth_steps!r}; use start='fresh'"
            )

    def alive_at_start(self, instance: Instance) -> BoolArray:
        """Return the mask of the pages of an instance that exist at time 0 of its world, (m,)."""
        if isinstance(instance, CustomEvents):
            return instance.alive_at_start
        return np.ones(instance.num_pages, np.bool_)

    def first_pages(self, instance: Instance) -> tuple[IntArray, FloatArray]:
        """Return the pages of time 0, and what the crawls up to each cost together, (n,)."""
        pages = np.flatnonzero(self.alive_at_start(instance))
        costs = np.ones(pages.size) if instance.cost is None else instance.cost[pages]
        return pages, costs.cumsum()

    def lead_of(self, instance: Instance) -> float:
        """Return the budget, in slots, of the crawls before an episode, or their epochs.

        Raises:
            ValueError: the recorded time before the episodes is too short for them.
        """
        if self.start == "fresh":
            return 0.0
        spend = float(self.first_pages(instance)[1].max(initial=0.0))
        before = getattr(instance, "before", getattr(self._generator, "before", None))
        if before is not None:
            if spend > before * instance.bandwidth + SLACK:
                minimum = spend / before if before > 0.0 else math.inf
                raise ValueError(
                    f"bandwidth must be at least {minimum:g} to crawl all pages in the "
                    f"{before:g} days before the window, got {instance.bandwidth:g}"
                )
            spend = max(before * instance.bandwidth, spend)
        if self.epoch is None:
            return spend
        return float(math.ceil(spend / instance.bandwidth / self.epoch - SLACK))

    def origin_of(self, instance: Instance) -> float:
        """Return the time at which an episode of an instance begins, in its world."""
        return slot_time(self.world.clock_of(instance), self.lead_of(instance))

    def _last_slot_of(self, instance: Instance) -> int:
        """Return the slot of an episode's last decision: a multiple of the batch, or an epoch.

        Raises:
            ValueError: too many slots to count, or not one decision fits.
        """
        slots, stride = slots_until(self.world.clock_of(instance), self.horizon), self.world.batch
        if slots < stride:
            what, setting = f"{stride} crawls", f"bandwidth {instance.bandwidth}"
            if self.epoch is not None:
                what, setting = "one epoch", f"epoch {self.epoch}"
            raise ValueError(
                f"horizon must hold at least {what}, got {slots} with horizon {self.horizon} and "
                f"{setting}"
            )
        return slots // stride * stride - (self.epoch is not None)

    @property
    def pays_by_waiting(self) -> bool:
        """Whether the number of decisions depends on the costs of crawls."""
        state = self.world.state
        return bool(state.cost.size > 0 and state.lanes["payment"][0] == BY_WAITING)

    def _decisions_left(self) -> IntArray:
        """Return the number of decisions left in each lane, including the current one, (N,).

        Where it depends on costs, return the least possible number; it is 0 only at the end.
        """
        if self.pays_by_waiting:
            return self._paid_decisions_left()
        slots = self._last_slot - self.world.state.lanes["slot"]
        decisions: IntArray = slots // self.world.batch + 1
        if self.most_steps is not None:
            steps = self._last_slot // self.world.batch + (self.epoch is not None)
            decisions -= np.maximum(steps - self.most_steps, 0)
        return decisions

    def _paid_decisions_left(self) -> IntArray:
        """Return the number of decisions left if all crawls are of the largest cost, (N,)."""
        state, lanes = self.world.state, self.world.state.lanes
        budget = lanes["budget"] - (lanes["first_slot"] + lanes["spend"])
        decisions: IntArray = np.floor(budget / state.cost.max(axis=1)).astype(np.int64) + 1
        if self.most_steps is not None:
            steps = lanes["slot"] - lanes["first_slot"]
            decisions = np.minimum(decisions, self.most_steps - steps)
        return decisions

    def steps_of(self, instance: Instance) -> int:
        """Return the number of steps of an episode; with costs the largest possible one.

        Raises:
            ValueError: as for :meth:`_last_slot_of`.
        """
        last = self._last_slot_of(instance)
        if not self.pays_by_waiting or instance.cost is None:
            return last // self.world.batch + (self.epoch is not None)
        budget = budget_until(self.world.clock_of(instance), self.horizon)
        return math.floor((budget - 1.0) / float(instance.cost.min())) + 1

    def steps_per_episode(self) -> int | None:
        """Return the number of steps of an episode at the bandwidth of the instance generator.

        With costs it is the largest possible number, if all crawls have the least cost. It is None
        if the generator has no bandwidth, or if no step fits; then a reset raises an error.
        """
        bandwidth = getattr(self._generator, "bandwidth", None)
        if bandwidth is None:
            return None
        steps = getattr(self._generator, "bandwidth_steps", ())
        cost = getattr(self._generator, "least_cost", None)
        instance = Instance([1.0], 0.0, bandwidth=bandwidth, bandwidth_steps=steps, cost=cost)
        try:
            steps = self.steps_of(instance)
        except ValueError:
            return None
        return steps if self.most_steps is None else min(steps, self.most_steps)

    def num_slots(self, lane: int) -> int:
        """Return the number of slots of a lane's episode: of crawls of cost 1, or of epochs."""
        return int(self._last_slot[lane]) + (self.epoch is not None)

    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls of cost 1; at rates it is a mean."""
        if self.epoch is None:
            return float(self.num_slots(lane))
        instance = self.instance(lane)
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        return crawls_between(clock, 0.0, (int(self._last_slot[lane]) + 1) / (1.0 / self.epoch))

    def budget_share(self, lane: int, ledger: Ledger) -> float:
        """Return the spend of a lane's ended episode as a share of its budget."""
        allowed, instance = self.crawls_allowed(lane), self.instance(lane)
        if ledger.time < self.horizon:  # a limit of its steps ended it, before this decision
            clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
            first_decision = self.world.batch if self.epoch is None else 0
            allowed = min(allowed, crawls_between(clock, 0.0, ledger.time) - first_decision)
        return ledger.spend / allowed

    # Seeds and instances

    def _plan(self, lane: int, seed: int | None, instance: Instance | None) -> Plan:
        """Return the plan of a lane's next episode, checked; the lane itself is unchanged."""
        lane_roots, pinned, episode = self._roots[lane], bool(self._pinned[lane]), 0
        if seed is None and lane_roots is not None:
            episode = int(self.world.state.lanes[lane]["episode"]) + 1
        else:
            lane_roots, pinned = roots(seed or 0, self.pages), False
        if instance is not None:
            pinned = True
        elif not pinned and (seed is not None or self.resample):
            instance = self._generator(generator(lane_roots.instance, episode))
        if instance is not None:
            self._check(instance)
        return Plan(lane, lane_roots, episode, instance, pinned)

    def _check(self, instance: Instance) -> None:
        """Raise ValueError unless an instance has the lanes' pages and sources, and a step fits."""
        size = (instance.num_pages, instance.num_sources)
        if size != (self.num_pages, self.num_sources):
            raise ValueError(
                f"instance must have {self.num_pages} pages and {self.num_sources} sources of "
                f"signals like the environment, got {size[0]} and {size[1]}"
            )
        before = getattr(instance, "before", None)
        if before is not None and (before > 0.0) != (self.start == "crawled"):
            raise ValueError(
                f"instance must be drawn with start={self.start!r} like the environment, got a "
                f"window with {before:g} days before the episode"
            )
        self._check_steps(instance.bandwidth_steps)
        self.lead_of(instance)
        self._last_slot_of(instance)

    def _prepare(self, plan: Plan) -> None:
        """Set a lane's random streams and instance as planned, before it restarts."""
        lane = plan.lane
        self._roots[lane], self._pinned[lane] = plan.roots, plan.pinned
        record = self.world.state.lanes[lane]
        record["root"], record["episode"] = plan.roots.tape, plan.episode
        record["rng_root"] = plan.roots.rng
        if plan.instance is not None:
            self.world.set_instance(lane, plan.instance)
            self._instances[lane] = plan.instance
            self._last_slot[lane] = self._last_slot_of(plan.instance)
            record["lead"] = self.lead_of(plan.instance)

    def instance(self, lane: int) -> Instance:
        """Return the true instance of a lane.

        Raises:
            gymnasium.error.ResetNeeded: the lane has no instance yet.
        """
        instance = self._instances[whole("lane", lane, 0, self.num_lanes - 1)]
        if instance is None:
            raise ResetNeeded("call reset first: there is no instance yet")
        return instance

    def rng(self, lane: int, root: str = "rng_root") -> np.random.Generator:
        """Return a new NumPy generator for random choices in a lane's current episode.

        ``root="root"`` gives the generator of the episode's events instead.
        """
        self.instance(lane)
        record = self.world.state.lanes[lane]
        return generator(int(record[root]), int(record["episode"]))

    # Ends

    def _start(self, lane_mask: BoolArray) -> None:
        """Number the new episodes of the lanes in ``lane_mask``, (N,); they have not ended."""
        self.episodes[lane_mask] += 1
        self.ended[lane_mask] = False
        self._count_steps_left()

    def _count_steps_left(self) -> None:
        """Mark ended lanes as idle, and count the steps until some lane's episode ends next.

        The count stays 0 as long as some lane has never had an episode.
        """
        self.any_ended = bool(self.ended.any())
        self.world.state.lanes["idle"] = self.ended
        decisions = self._decisions_left()
        if self.any_ended:
            decisions = np.where(self.ended, NEVER, decisions)
        self.steps_left = int(decisions.min()) if self.episodes.all() else 0

    def newly_ended(self) -> BoolArray | None:
        """Count a step; return the mask of lanes whose episodes it ended, or None without any."""
        self.steps_left -= 1
        if self.steps_left > 0:
            return None
        ended: BoolArray = (self._decisions_left() < 1) & ~self.ended
        self.ended |= ended
        self._count_steps_left()
        return ended if ended.any() else None
