"""A batch of lanes: their seeds, instances and episodes, for any kind of world.

This is the environment without Gymnasium's API, which the vector and single classes add.
:class:`crawl_envs.worlds.pages.lanes.Lanes` adds the world of pages and events.
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
"""Largest number of reused buffers; further copies are new arrays."""


def _references_unheld() -> int:
    """Return the reference count of a buffer held by a list only, as seen in a loop."""
    for buffer in [np.empty(1)]:
        return sys.getrefcount(buffer)
    raise AssertionError("the list is not empty")


UNHELD = _references_unheld()


class Buffers:
    """Reusable buffers for copies of arrays of one shape and dtype."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[Any]] = []

    def copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of a C-contiguous array; it is not reused while the caller refers to it."""
        for buffer in self._buffers:
            if sys.getrefcount(buffer) == UNHELD:
                np.copyto(buffer, array)
                return buffer
        fresh = array.copy()
        if len(self._buffers) < MOST:
            self._buffers.append(fresh)
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        """Leave the buffers out: they belong to callers."""
        return {}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self._buffers = []


NEVER = np.iinfo(np.int64).max

Reported: TypeAlias = tuple[tuple[str, int], ...]
"""Entries of the info of a step besides the reward: names, and rows of the outcomes."""


class InstanceGenerator(Protocol):
    """A generator of instances of ``num_pages`` pages.

    They have ``num_sources`` sources of signals, one if the generator has no such attribute.
    """

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance from a NumPy generator."""


class Plan(NamedTuple):
    """The start of a lane's next episode; ``instance`` None keeps the current one."""

    lane: int
    roots: Roots
    episode: int
    instance: Instance | None
    pinned: bool


class Episodes(ABC):
    """N independent lanes of m pages that step together.

    Subclasses implement the worlds. They set ``features`` and ``reported``, and may set ``mortal``
    and ``epoch``.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of the instance of a lane at every seeded reset.
        form: action form.
        horizon: length of an episode, in the instance's unit of time, > 0.
        reveal: known part of the instance, ``parameters`` or ``importance``.
        resample: draw a new instance at every reset, not only at seeded ones.

    Attributes:
        features: names of the columns of an observation.
        reported: entries of the info of a step besides the reward.
        mortal: whether pages are born and die.
        epoch: length of an epoch if actions are for epochs, else NaN.
        episodes: unique number of each lane's episode, (N,) int64; 0 before the first.
        ended: mask of the lanes at the end of their episode, (N,) bool.
        any_ended: whether there are any.

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
        """Start an episode in the chosen lanes, and play to its first decision.

        A seed restarts the lane's streams and draws its instance; without one the streams continue.
        A given instance stays until the next seed. ``fallback`` seeds lanes without a seed.

        Raises:
            ValueError: an instance that does not fit; nothing is changed in this case.
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
        """Start the next episode of the chosen lanes, which have had one."""
        lanes = map(int, np.flatnonzero(chosen)) if self.resample else ()
        for plan in [self._plan(lane, None, None) for lane in lanes]:
            self._prepare(plan)
        if not self.resample:
            self._count_episodes(chosen)
        self._restart(chosen)

    def _plan(self, lane: int, seed: int | None, instance: Instance | None) -> Plan:
        """Return the checked plan of a lane's next episode, without changing the lane."""
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
        """Raise ValueError unless an instance fits the lanes."""
        if instance.num_pages != self.num_pages:
            raise ValueError(f"instance must have {self.num_pages} pages, got {instance.num_pages}")

    def _prepare(self, plan: Plan) -> None:
        """Set a lane's streams and instance before its restart."""
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
        self._idle_ended()
        self._count_steps_left()

    def _count_steps_left(self) -> None:
        """Update the number of steps until the next end of an episode, of lanes not ended.

        It is 0 while a lane has had no episode.
        """
        if not self.episodes.all():
            self._steps_left = 0
            return
        self._steps_left = int(np.where(self.ended, NEVER, self._decisions_left()).min())

    def newly_ended(self) -> BoolArray | None:
        """Count a step; return the mask of lanes that it ended, None if there are none."""
        self._steps_left -= 1
        if self._steps_left > 0:
            return None
        ended: BoolArray = (self._decisions_left() < 1) & ~self.ended
        self.ended |= ended
        self.any_ended = True
        self._idle_ended()
        self._count_steps_left()
        return ended

    def steps_per_episode(self) -> int | None:
        """Return the number of steps of an episode at the bandwidth of the generator.

        None if the generator has no bandwidth, or if no step fits, which a reset will report.
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

    # Interface of worlds

    @abstractmethod
    def _last_slot_of(self, instance: Instance) -> int:
        """Return the slot of the last decision of an episode of the instance.

        Raises:
            ValueError: too many slots to count, or not one decision fits.
        """

    @abstractmethod
    def _decisions_left(self) -> IntArray:
        """Return the number of decisions left in each lane, including the current one, (N,).

        Below 1 past the last. Called when lanes start, and when the first of them ends.
        """

    @abstractmethod
    def _episode(self, lane: int) -> int:
        """Return the number of a lane's episode since its seed, from 0."""

    @abstractmethod
    def _count_episodes(self, chosen: BoolArray) -> None:
        """Increment the episode numbers of the chosen lanes, before their restart."""

    @abstractmethod
    def _set_streams(self, lane: int, lane_roots: Roots, episode: int) -> None:
        """Set the random streams of a lane's next episode, before its restart."""

    @abstractmethod
    def _set_instance(self, lane: int, instance: Instance) -> None:
        """Set the instance of a lane, which fits, before its restart."""

    @abstractmethod
    def _restart_worlds(self, chosen: BoolArray) -> None:
        """Play the chosen lanes from their start to their first decision."""

    @abstractmethod
    def _idle_ended(self) -> None:
        """Make exactly the lanes that have ``ended`` idle in the next steps."""

    @abstractmethod
    def _get_world(self) -> Any:
        """Return a copy of the state of the worlds."""

    @abstractmethod
    def _set_world(self, state: Any) -> None:
        """Restore a copy of a state returned by :meth:`_get_world`.

        Raises:
            ValueError: a state of worlds of another size; nothing is changed in this case.
        """

    @abstractmethod
    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Take decoded actions and play to the next decision, in lanes not ended.

        Returns the rows of outcomes of the step, NUM_OUTCOMES of (N,), which the next call
        overwrites; zero for ended lanes.

        Raises:
            ValueError: an invalid action; nothing is changed in this case.
            gymnasium.error.ResetNeeded: a lane has had no episode yet.
        """

    # Observations

    @abstractmethod
    def observations(self, copy: bool = True) -> ObservationArray:
        """Return the observations, (N, m, F); without ``copy`` the next step overwrites them."""

    @abstractmethod
    def observation(self, lane: int) -> ObservationArray:
        """Return the observation of a lane, (m, F), a new array."""

    @abstractmethod
    def action_masks(self) -> BoolArray:
        """Return a new mask of the existing pages, which may be crawled, (N, m) bool."""

    @abstractmethod
    def tracker(self, lane: int) -> Tracker:
        """Return the current knowledge of the tracker of a lane, as new arrays."""

    @abstractmethod
    def last_log(self, lane: int) -> CrawlLog:
        """Return the crawls and signals of the last step, or reset, of a lane."""

    # Truth

    def instance(self, lane: int) -> Instance:
        """Return the true instance of a lane.

        Raises:
            gymnasium.error.ResetNeeded: the lane has no instance yet.
        """
        instance = self._instances[lane]
        if instance is None:
            raise ResetNeeded("call reset first: there is no instance yet")
        return instance

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Declare estimated change rates, as in ``pages.rate_lanes.EpochLanes.declare``.

        Raises:
            ValueError: actions are not rates, not one finite number >= 0 per page, no such lane.
        """
        raise ValueError(f"declare is for actions 'rates', got actions {self.form.name!r}")

    def problem(self, lane: int) -> Problem:
        """Return the public part of the instance of a lane."""
        return self.instance(lane).problem(self.reveal)

    @abstractmethod
    def fresh(self, lane: int) -> BoolArray:
        """Return the mask of pages with a current copy, (m,) bool."""

    @abstractmethod
    def ledger(self, lane: int) -> Ledger:
        """Return the totals of a lane since the start of its episode."""

    def rng(self, lane: int) -> np.random.Generator:
        """Return a new generator for the random choices of a lane's current episode."""
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

    # State

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the complete state."""
        own = {name: getattr(self, name).copy() for name in self._OWN}
        plain = {name: getattr(self, name) for name in self._PLAIN}
        return {**own, **plain, "kind": self._kind(), "world": self._get_world()}

    def _kind(self) -> dict[str, Any]:
        """Return the settings that must agree between lanes to share states, by name."""
        return {
            "action": self.form.name,
            "batch": self.form.batch,
            "probe": self.form.probing,
            "horizon": self.horizon,
            "reveal": self.reveal,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state returned by :meth:`get_state` of lanes of the same kind.

        The episodes get new numbers, since the memory of policies belongs to another history.

        Raises:
            ValueError: a state of lanes of another kind; nothing is changed in this case.
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
