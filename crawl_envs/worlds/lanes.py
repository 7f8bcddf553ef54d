"""A batch of lanes: their seeds, instances and episodes, whatever world is played in them.

This is the environment without Gymnasium's conventions; the vector environment and the single one
are two ways to show it. :class:`crawl_envs.worlds.pages.lanes.Lanes` fills in the world of pages and events.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray

from crawl_envs.sim.streams import Roots, generator, roots
from crawl_envs.spaces.actions import ActionForm, Actions
from crawl_envs.spaces.observations import ObservationArray
from crawl_envs.types import (
    BoolArray,
    CrawlLog,
    FloatArray,
    Instance,
    IntArray,
    Ledger,
    Problem,
    Reveal,
    Tracker,
)
from crawl_envs.types.arguments import flag, quantity, whole

MOST = 8
"""Buffers that are kept; who holds more copies gets fresh arrays."""


def _references_unheld() -> int:
    """Count the references of a buffer that only a list holds, as Python counts in a loop."""
    for buffer in [np.empty(1)]:
        return sys.getrefcount(buffer)
    raise AssertionError("the list is not empty")


UNHELD = _references_unheld()


class Buffers:
    """Makes copies of arrays of one shape and dtype in buffers that nobody holds."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[Any]] = []

    def copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of a C-contiguous array; it is the caller's for as long as it is held."""
        for buffer in self._buffers:
            if sys.getrefcount(buffer) == UNHELD:
                np.copyto(buffer, array)
                return buffer
        fresh = array.copy()
        if len(self._buffers) < MOST:
            self._buffers.append(fresh)
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        """Leave the buffers out: others hold them."""
        return {}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self._buffers = []


NEVER = np.iinfo(np.int64).max

Reported: TypeAlias = tuple[tuple[str, int], ...]
"""What the info of a step tells beside the reward: names, and rows of the outcomes."""


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


class Episodes(ABC):
    """N lanes of m pages that step together and share nothing but their size.

    Subclasses hold the worlds: they set ``features`` and ``reported``, and may set ``mortal`` and
    ``epoch``.

    Args:
        num_lanes: number of lanes, N.
        generator: draws the instance of a lane at every seeded reset.
        form: how actions say what is crawled.
        horizon: length of an episode, in the instance's unit of time, > 0.
        reveal: what the tracker is told, ``parameters`` or ``importance``.
        resample: draw a new instance at every reset, not only at seeded ones.

    Attributes:
        features: names of the columns of an observation.
        reported: what the info of a step tells beside the reward.
        mortal: whether pages are born and die.
        epoch: length of an epoch, where a decision is for one, else NaN.
        episodes: number of each lane's episode, which no reset repeats, (N,) int64; 0 before the
            first.
        ended: which lanes stand at the end of their episode, (N,) bool.
        any_ended: whether one does.

    Raises:
        ValueError: an argument outside its range.
    """

    features: tuple[str, ...]
    reported: Reported
    mortal: bool = False
    epoch: float = math.nan

    _OWN: tuple[str, ...] = ("_roots", "_instances", "_pinned", "_last_slot", "episodes", "ended")
    _PLAIN = ("_steps_left", "any_ended")

    def __init__(
        self,
        num_lanes: int,
        generator: InstanceGenerator,
        form: ActionForm,
        *,
        horizon: float,
        reveal: Reveal = "parameters",
        resample: bool = False,
    ) -> None:
        whole("num_envs", num_lanes, 1)
        quantity("horizon", horizon, above=0.0)
        self.num_lanes, self.num_pages = num_lanes, generator.num_pages
        self.form, self.horizon, self.reveal = form, float(horizon), reveal
        self.resample = flag("resample", resample)
        self._generator = generator
        self._buffers = Buffers()
        self._roots: list[Roots | None] = [None] * num_lanes
        self._instances: list[Instance | None] = [None] * num_lanes
        self._pinned = np.zeros(num_lanes, np.bool_)
        self._last_slot = np.zeros(num_lanes, np.int64)
        self.episodes = np.zeros(num_lanes, np.int64)
        self.ended = np.zeros(num_lanes, np.bool_)
        self.any_ended = False
        self._steps_left = 0

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
        lanes = map(int, np.flatnonzero(chosen)) if self.resample else ()
        for plan in [self._plan(lane, None, None) for lane in lanes]:
            self._prepare(plan)
        if not self.resample:
            self._go_on(chosen)
        self._restart(chosen)

    def _plan(self, lane: int, seed: int | None, instance: Instance | None) -> Plan:
        """Decide on a lane's next episode, and check it; nothing changes."""
        known, pinned, episode = self._roots[lane], bool(self._pinned[lane]), 0
        if seed is None and known is not None:
            episode = self._episode(lane) + 1
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
        """Raise ValueError where an instance does not fit the lanes."""
        if instance.num_pages != self.num_pages:
            raise ValueError(f"instance must have {self.num_pages} pages, got {instance.num_pages}")

    def _prepare(self, plan: Plan) -> None:
        """Set a lane's streams and instance for the restart that follows."""
        lane = plan.lane
        self._roots[lane], self._pinned[lane] = plan.roots, plan.pinned
        self._set_streams(lane, plan.roots, plan.episode)
        if plan.instance is not None:
            self._set_instance(lane, plan.instance)
            self._instances[lane] = plan.instance
            self._last_slot[lane] = self._last_slot_of(plan.instance)

    def _restart(self, chosen: BoolArray) -> None:
        self._restart_worlds(chosen)
        self.episodes[chosen] += 1
        self.ended[chosen] = False
        self.any_ended = bool(self.ended.any())
        self._rest_ended()
        self._count_steps_left()

    def _count_steps_left(self) -> None:
        """Count the steps until the next episode ends, among the lanes that have not ended.

        There are none while a lane has had no episode at all.
        """
        if not self.episodes.all():
            self._steps_left = 0
            return
        self._steps_left = int(np.where(self.ended, NEVER, self._decisions_left()).min())

    def newly_ended(self) -> BoolArray | None:
        """Count a step; return the lanes that it brought to the horizon, None where none."""
        self._steps_left -= 1
        if self._steps_left > 0:
            return None
        ended: BoolArray = (self._decisions_left() < 1) & ~self.ended
        self.ended |= ended
        self.any_ended = True
        self._rest_ended()
        self._count_steps_left()
        return ended

    def steps_per_episode(self) -> int | None:
        """Return the number of steps of an episode at the bandwidth of the generator.

        None where the generator has no bandwidth, or where no step fits and a reset will say so.
        """
        bandwidth = getattr(self._generator, "bandwidth", None)
        if bandwidth is None:
            return None
        steps = getattr(self._generator, "bandwidth_steps", ())
        try:
            return self._steps_of(Instance([1.0], 0.0, bandwidth=bandwidth, bandwidth_steps=steps))
        except ValueError:
            return None

    def _steps_of(self, instance: Instance) -> int:
        """Return the number of steps of an episode; ValueError as :meth:`_last_slot_of`."""
        return self._last_slot_of(instance) + 1

    # What a world must have

    @abstractmethod
    def _last_slot_of(self, instance: Instance) -> int:
        """Return the slot of the last decision of an episode of the instance.

        Raises:
            ValueError: too many slots to count, or not one decision fits.
        """

    @abstractmethod
    def _decisions_left(self) -> IntArray:
        """Return how many decisions are left in each lane, with the one that it stands at, (N,).

        Below 1 past the last. It is asked for when lanes begin, and when the first of them ends.
        """

    @abstractmethod
    def _episode(self, lane: int) -> int:
        """Return the number of a lane's episode since its seed, from 0."""

    @abstractmethod
    def _go_on(self, chosen: BoolArray) -> None:
        """Add one to the numbers of the chosen lanes' episodes; the restart follows."""

    @abstractmethod
    def _set_streams(self, lane: int, lane_roots: Roots, episode: int) -> None:
        """Set what random numbers a lane's next episode takes; the restart follows."""

    @abstractmethod
    def _set_instance(self, lane: int, instance: Instance) -> None:
        """Give a lane its instance, which fits; the restart follows."""

    @abstractmethod
    def _restart_worlds(self, chosen: BoolArray) -> None:
        """Play the chosen lanes from their start to their first decision."""

    @abstractmethod
    def _rest_ended(self) -> None:
        """Let the lanes that have ``ended``, and no others, sit out the steps that follow."""

    @abstractmethod
    def _get_world(self) -> Any:
        """Return a copy of the state of the worlds."""

    @abstractmethod
    def _set_world(self, state: Any) -> None:
        """Take on a copy of the state that :meth:`_get_world` returned.

        Raises:
            ValueError: it is of worlds of another size; nothing has happened then.
        """

    @abstractmethod
    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Crawl decoded actions and play on to the next decision, in lanes not ended.

        Returns the rows of outcomes of the step, NUM_OUTCOMES of (N,), which the next call
        overwrites; zero where ended.

        Raises:
            ValueError: an action that cannot be taken; nothing has happened then.
            gymnasium.error.ResetNeeded: a lane has had no episode yet.
        """

    # What is seen

    @abstractmethod
    def observations(self, copy: bool = True) -> ObservationArray:
        """Return all observations, (N, m, F); without ``copy`` the next step overwrites them."""

    @abstractmethod
    def observation(self, lane: int) -> ObservationArray:
        """Return the observation of a lane, (m, F), a fresh array."""

    @abstractmethod
    def action_masks(self) -> BoolArray:
        """Return which pages exist and so may be crawled, (N, m) bool, a fresh array."""

    @abstractmethod
    def tracker(self, lane: int) -> Tracker:
        """Return what the tracker of a lane knows now, as fresh arrays."""

    @abstractmethod
    def last_log(self, lane: int) -> CrawlLog:
        """Return what the last step, or reset, taught the tracker of a lane."""

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

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Say what change rates the tracker believes; see :meth:`crawl_envs.worlds.pages.rate_lanes.EpochLanes`.

        Raises:
            ValueError: actions are no rates, not one finite number >= 0 per page, no such lane.
        """
        raise ValueError(f"declare is for actions 'rates', got actions {self.form.name!r}")

    def problem(self, lane: int) -> Problem:
        """Return what the tracker of a lane was told of its instance."""
        return self.instance(lane).problem(self.reveal)

    @abstractmethod
    def fresh(self, lane: int) -> BoolArray:
        """Return which held copies are current, (m,) bool."""

    @abstractmethod
    def ledger(self, lane: int) -> Ledger:
        """Return what happened in a lane since its episode began."""

    def rng(self, lane: int) -> np.random.Generator:
        """Return a fresh generator for the random choices of a lane's current episode."""
        lane_roots = self._roots[lane]
        if lane_roots is None:
            raise ResetNeeded("call reset first: there is no seed yet")
        return generator(lane_roots.rng, self._episode(lane))

    @abstractmethod
    def num_slots(self, lane: int) -> int:
        """Return the number of slots of a lane's episode: of crawls, or of epochs."""

    @abstractmethod
    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls."""

    # What decides what happens next

    def get_state(self) -> dict[str, Any]:
        """Return a copy of everything that decides what happens next."""
        own = {name: getattr(self, name).copy() for name in self._OWN}
        plain = {name: getattr(self, name) for name in self._PLAIN}
        return {**own, **plain, "kind": self._kind(), "world": self._get_world()}

    def _kind(self) -> dict[str, Any]:
        """Return what lanes that share states must have in common, by name."""
        return {
            "action": self.form.name,
            "batch": self.form.batch,
            "probe": self.form.probing,
            "horizon": self.horizon,
            "reveal": self.reveal,
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
        self._set_world(state["world"])
        for name in self._OWN:
            setattr(self, name, state[name].copy())
        for name in self._PLAIN:
            setattr(self, name, state[name])
        self.episodes = episodes
