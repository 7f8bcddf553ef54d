"""A batch of lanes: seeds, instances and episodes around the one compiled step.

This is the environment without Gymnasium's conventions; the vector environment and the single one
are two ways to show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from gymnasium.error import ResetNeeded

from crawl_envs.actions import ActionForm, Actions
from crawl_envs.arguments import flag, real, whole
from crawl_envs.buffers import Buffers
from crawl_envs.lockstep import DONE, LOG_FULL, restart_lanes, resume_lanes, step_lanes
from crawl_envs.observations import ObservationArray, feature_names, write_parameters
from crawl_envs.sim.clock import clock_rows, slots_until
from crawl_envs.sim.events import check_events
from crawl_envs.sim.penalties import Penalty, penalty_increments
from crawl_envs.sim.state import CRAWLS, HITS, REQUESTS
from crawl_envs.sim.streams import Roots, generator, roots
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.world import World
from crawl_envs.types import (
    BoolArray,
    CrawlLog,
    FloatArray,
    Instance,
    IntArray,
    Ledger,
    Reveal,
    Tracker,
)

LONGEST = float(np.finfo(np.float32).max)
"""Elapsed times are shown as float32."""

NEVER = np.iinfo(np.int64).max

Reported: TypeAlias = tuple[tuple[str, int], ...]
"""What the info of a step tells beside the reward: names, and rows of the outcomes."""

REPORTED: Reported = (("requests", REQUESTS), ("hits", HITS))
SPENT: Reported = (("crawls", CRAWLS),)


class InstanceGenerator(Protocol):
    """Draws instances of ``num_pages`` pages.

    They have ``num_sources`` sources of signals, one where the generator has no such attribute.
    """

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance from a NumPy generator."""


class Plan(NamedTuple):
    """How a lane's next episode is to begin; no instance means that it keeps its own."""

    lane: int
    roots: Roots
    episode: int
    instance: Instance | None
    pinned: bool


class Lanes:
    """N lanes of m pages that step together and share nothing but their size.

    Args:
        num_lanes: number of lanes, N.
        generator: draws the instance of a lane at every seeded reset.
        form: how actions say what is crawled.
        horizon: length of an episode, in the instance's unit of time, > 0.
        reveal: what the tracker is told, ``parameters`` or ``importance``.
        resample: draw a new instance at every reset, not only at seeded ones.
        tape: a recorded tape that all lanes play; None draws one per lane.
        penalty: what changes that no crawl has found cost: ``harmonic``, ``binary`` or a table (see
            :func:`crawl_envs.sim.penalties.penalty_increments`); None counts nothing.
        requests: whether requests are played; without, importance is a weight.
        show_complete: whether observations say which pages have complete observation.

    Raises:
        ValueError: an argument outside its range.
    """

    def __init__(
        self,
        num_lanes: int,
        generator: InstanceGenerator,
        form: ActionForm,
        *,
        horizon: float,
        reveal: Reveal = "parameters",
        resample: bool = False,
        tape: Tape | None = None,
        penalty: Penalty | None = None,
        requests: bool = True,
        show_complete: bool = False,
    ) -> None:
        whole("num_envs", num_lanes, 1)
        real("horizon", horizon, above=0.0)
        if horizon > LONGEST:
            raise ValueError(f"horizon must be at most {LONGEST:g}, got {horizon!r}")
        self.num_lanes, self.num_pages = num_lanes, generator.num_pages
        self.num_sources: int = getattr(generator, "num_sources", 1)
        self.form, self.horizon, self.reveal = form, float(horizon), reveal
        self.resample = flag("resample", resample)
        self.tape, self.mortal = tape, tape is not None
        self.penalty, self.requests = penalty, requests
        self.reported = REPORTED if requests else SPENT
        self.features = feature_names(
            reveal, self.mortal, self.num_sources, probed=form.probing, complete=show_complete
        )
        self._generator = generator
        self._world = World(
            num_lanes,
            self.num_pages,
            horizon=horizon,
            batch=form.batch,
            requests=requests,
            probing=form.probing,
            num_sources=self.num_sources,
            num_features=len(self.features),
            crawls_per_slot=form.most,
            increments=None if penalty is None else penalty_increments(penalty),
            tape=tape,
            **self._world_arguments(),
        )
        self._buffers = Buffers()
        self._roots: list[Roots | None] = [None] * num_lanes
        self._instances: list[Instance | None] = [None] * num_lanes
        self._pinned = np.zeros(num_lanes, np.bool_)
        self._last_slot = np.zeros(num_lanes, np.int64)
        self.episodes = np.zeros(num_lanes, np.int64)
        self.ended = np.zeros(num_lanes, np.bool_)
        self.any_ended = False
        self._steps_left = 0

    def _world_arguments(self) -> dict[str, Any]:
        """Return further arguments of the world that is played."""
        return {}

    epoch = math.nan
    """Length of an epoch, where a decision is for one."""

    _OWN: tuple[str, ...] = ("_roots", "_instances", "_pinned", "_last_slot", "episodes", "ended")
    _PLAIN = ("_steps_left", "any_ended")

    # Episodes

    def begin(
        self,
        chosen: BoolArray,
        seeds: Sequence[int | None],
        instances: Sequence[Instance | None],
        fallback: np.random.Generator,
    ) -> None:
        """Begin an episode in the chosen lanes, and stand at its first decision.

        A seed restarts the lane's streams and draws its instance; without one they go on. A given
        instance stays until the next seed. ``fallback`` seeds lanes that never had a seed.

        Raises:
            ValueError: an instance that does not fit; nothing has happened then.
        """
        plans = []
        for lane in map(int, np.flatnonzero(chosen)):
            seed = seeds[lane]
            if seed is None and self._roots[lane] is None:
                seed = int(fallback.integers(2**63))
            plans.append(self._plan(lane, seed, instances[lane]))
        for plan in plans:
            self._prepare(plan)
        self._restart(chosen)

    def begin_next(self, chosen: BoolArray) -> None:
        """Begin the next episode of the chosen lanes, which have had one."""
        for lane in map(int, np.flatnonzero(chosen)) if self.resample else ():
            self._prepare(self._plan(lane, None, None))
        if not self.resample:
            self._world.state.lanes["episode"][chosen] += np.uint64(1)
        self._restart(chosen)

    def _plan(self, lane: int, seed: int | None, instance: Instance | None) -> Plan:
        """Decide on a lane's next episode, and check it; nothing changes."""
        known, pinned, episode = self._roots[lane], bool(self._pinned[lane]), 0
        if seed is None and known is not None:
            episode = int(self._world.state.lanes[lane]["episode"]) + 1
        else:
            known, pinned = roots(seed or 0), False
        if instance is not None:
            pinned = True
        elif not pinned and (seed is not None or self.resample):
            instance = self._generator(generator(known.instance, episode))
        if instance is not None:
            self._check(instance)
            self._last_slot_of(instance)
        return Plan(lane, known, episode, instance, pinned)

    def _check(self, instance: Instance) -> None:
        """Raise ValueError where an instance has other pages or sources, or too many events."""
        if instance.num_pages != self.num_pages:
            raise ValueError(f"instance must have {self.num_pages} pages, got {instance.num_pages}")
        if instance.num_sources != self.num_sources:
            raise ValueError(
                f"instance must have {self.num_sources} sources of signals like the environment, "
                f"got {instance.num_sources}"
            )
        if self.tape is None:
            check_events(instance, self.horizon, self.requests)

    def _last_slot_of(self, instance: Instance) -> int:
        """Return the slot of the last decision of an episode, a multiple of the batch.

        Raises:
            ValueError: too many crawls to count, or not one decision fits.
        """
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        slots, batch = slots_until(clock, self.horizon), self.form.batch
        if slots < batch:
            raise ValueError(
                f"horizon must hold at least {batch} crawls, got {slots} with horizon "
                f"{self.horizon} and bandwidth {instance.bandwidth}"
            )
        return slots // batch * batch

    def _prepare(self, plan: Plan) -> None:
        """Set a lane's streams and instance for the restart that follows."""
        lane, record = plan.lane, self._world.state.lanes[plan.lane]
        self._roots[lane], self._pinned[lane] = plan.roots, plan.pinned
        record["root"], record["episode"] = plan.roots.tape, plan.episode
        record["coin_root"] = plan.roots.coins
        if plan.instance is not None:
            self._world.set_instance(lane, plan.instance)
            self._instances[lane] = plan.instance
            self._last_slot[lane] = self._last_slot_of(plan.instance)
            write_parameters(self._world.shown[lane], plan.instance, self.features)

    def _restart(self, chosen: BoolArray) -> None:
        if restart_lanes(self._world.table, chosen) == LOG_FULL:
            self._resume()
        self.episodes[chosen] += 1
        self.ended[chosen] = False
        self.any_ended = bool(self.ended.any())
        self._world.state.lanes["idle"] = self.ended
        self._count_steps_left()

    def _count_steps_left(self) -> None:
        """Count the steps until the next episode ends, among the lanes that have not ended.

        There are none while a lane has had no episode at all.
        """
        if not self.episodes.all():
            self._steps_left = 0
            return
        left = (self._last_slot - self._world.state.lanes["slot"]) // self.form.batch + 1
        self._steps_left = int(np.where(self.ended, NEVER, left).min())

    # Steps

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Crawl decoded actions and play on to the next decision, in lanes not ended.

        Returns the rows of outcomes of the slot, NUM_OUTCOMES of (N,), which the next call
        overwrites; zero where ended.

        Raises:
            ValueError: a page that does not exist; nothing has happened then.
            gymnasium.error.ResetNeeded: a lane has had no episode yet.
        """
        if self._steps_left == 0:
            raise ResetNeeded("call reset before step")
        pages, counts = actions
        status = step_lanes(self._world.table, pages, counts)
        if status == LOG_FULL:
            self._resume()
        elif status != DONE:
            raise ValueError(
                f"action must be a page in [0, {self.form.choices}), got {pages[status, 0]} "
                f"in lane {status}"
            )
        return self._world.outcomes

    def _resume(self, resume: Callable[[IntArray], int] = resume_lanes) -> None:
        """Go on with larger logs until all lanes stand at their decision."""
        self._world.grow_logs()
        while resume(self._world.table) == LOG_FULL:
            self._world.grow_logs()

    def newly_ended(self) -> BoolArray | None:
        """Count a step; return the lanes that it brought to the horizon, None where none."""
        self._steps_left -= 1
        if self._steps_left > 0:
            return None
        lanes = self._world.state.lanes
        ended: BoolArray = (lanes["slot"] > self._last_slot) & ~self.ended
        self.ended |= ended
        self.any_ended = True
        lanes["idle"] = self.ended
        self._count_steps_left()
        return ended

    # What is seen

    def observations(self, copy: bool = True) -> ObservationArray:
        """Return all observations, (N, m, F); without ``copy`` the next step overwrites them."""
        shown = self._world.state.shown
        return (self._buffers.copy(shown) if copy else shown).transpose(0, 2, 1)

    def observation(self, lane: int) -> ObservationArray:
        """Return the observation of a lane, (m, F), a fresh array."""
        return self._world.shown[lane].copy().T

    def action_masks(self) -> BoolArray:
        """Return which pages exist and so may be crawled, (N, m) bool, a fresh array."""
        masks: BoolArray = self._world.state.pages["alive"].copy()
        return masks

    def tracker(self, lane: int) -> Tracker:
        """Return what the tracker of a lane knows now, as fresh arrays."""
        state = self._world.state
        pages, now = state.pages[lane], float(state.lanes[lane]["time"])
        alive = pages["alive"].copy()
        return Tracker(
            problem=self.instance(lane).problem(self.reveal),
            episode=int(self.episodes[lane]),
            time=now,
            elapsed=np.where(alive, now - state.last_crawl[lane], 0.0),
            signals=self._world.signals(lane),
            changed=pages["changed"].copy(),
            alive=alive,
            probed=pages["probed"].copy(),
        )

    def last_log(self, lane: int) -> CrawlLog:
        """Return what the last step, or reset, taught the tracker of a lane."""
        return self._world.log(lane)

    # What is true

    def instance(self, lane: int) -> Instance:
        """Return the truth about a lane's pages.

        Raises:
            gymnasium.error.ResetNeeded: the lane has no instance yet.
        """
        instance = self._instances[lane]
        if instance is None:
            raise ResetNeeded("call reset first: there is no instance yet")
        return instance

    def fresh(self, lane: int) -> BoolArray:
        """Return which held copies are current, (m,) bool."""
        current: BoolArray = self._world.state.pages[lane]["changes"] == 0
        return current

    def ledger(self, lane: int) -> Ledger:
        """Return what happened in a lane since its episode began."""
        return self._world.ledger(lane)

    def coins(self, lane: int) -> np.random.Generator:
        """Return a fresh generator for the random choices of a lane's current episode."""
        lane_roots = self._roots[lane]
        if lane_roots is None:
            raise ResetNeeded("call reset first: there is no seed yet")
        return generator(lane_roots.coins, int(self._world.state.lanes[lane]["episode"]))

    def num_slots(self, lane: int) -> int:
        """Return the number of crawls that the budget of a lane's episode allows."""
        return int(self._last_slot[lane])

    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls."""
        return float(self.num_slots(lane))

    def get_state(self) -> dict[str, Any]:
        """Return a copy of everything that decides what happens next."""
        own = {name: getattr(self, name).copy() for name in self._OWN}
        plain = {name: getattr(self, name) for name in self._PLAIN}
        return {**own, **plain, "kind": self._kind(), "world": self._world.get_state()}

    def _kind(self) -> dict[str, Any]:
        """Return what lanes that share states must have in common, by name."""
        return {
            "action": self.form.name,
            "batch": self.form.batch,
            "probe": self.form.probing,
            "horizon": self.horizon,
            "reveal": self.reveal,
            "objective": None if self.penalty is None else list(self.penalty),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take on a state that :meth:`get_state` of lanes of the same kind returned.

        The numbers of episodes are new ones, since what a policy remembers is of another past.

        Raises:
            ValueError: the state is of lanes of another kind; nothing has happened then.
        """
        missing = {*self._OWN, *self._PLAIN, "kind", "world"} - set(state)
        if missing:
            raise ValueError(f"state must be of get_state, but lacks {sorted(missing)}")
        for name, value in self._kind().items():
            if state["kind"].get(name) != value:
                raise ValueError(
                    f"state must be of lanes like these, with {name} {value!r}, got "
                    f"{state['kind'].get(name)!r}"
                )
        episodes = np.maximum(self.episodes, state["episodes"]) + 1
        self._world.set_state(state["world"])
        for name in self._OWN:
            setattr(self, name, state[name].copy())
        for name in self._PLAIN:
            setattr(self, name, state[name])
        self.episodes = episodes
