"""Lanes of pages and events: a batch of worlds with a compiled step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from crawl_envs.sim.advance import DONE, UNFINISHED
from crawl_envs.sim.clock import clock_rows, slots_until
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.penalties import Penalty, penalty_increments
from crawl_envs.sim.state import CRAWLS, HITS, REQUESTS
from crawl_envs.sim.streams import Roots, generator
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.workload import check_events
from crawl_envs.sim.world import World
from crawl_envs.spaces.actions import ActionForm, Actions
from crawl_envs.spaces.observations import ObservationArray, feature_names, write_parameters
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
from crawl_envs.worlds.lanes import Episodes, InstanceGenerator, Reported
from crawl_envs.worlds.pages.step import restart_lanes, resume_lanes, step_lanes

REPORTED: Reported = (("requests", REQUESTS), ("hits", HITS))
SPENT: Reported = (("crawls", CRAWLS),)


class Lanes(Episodes):
    """N lanes of m pages with changes, signals and requests as events.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of the instance of a lane at every seeded reset.
        form: action form.
        horizon: length of an episode, in the instance's unit of time, > 0.
        reveal: known part of the instance, ``parameters`` or ``importance``.
        resample: draw a new instance at every reset, not only at seeded ones.
        tape: a recorded tape for all lanes; None draws one per lane.
        penalty: penalty of undetected changes: ``harmonic``, ``binary`` or a table (see
            :func:`crawl_envs.sim.penalties.penalty_increments`); None counts no penalty.
        requests: whether requests are simulated; otherwise importance is a weight.
        show_complete: whether observations show complete observation of pages.

    Raises:
        ValueError: an argument outside its range.
    """

    in_rollouts: bool = True
    """Whether compiled rollouts give all results of steps."""

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
        super().__init__(
            num_lanes, generator, form, horizon=horizon, reveal=reveal, resample=resample
        )
        self.num_sources: int = getattr(generator, "num_sources", 1)
        self.tape, self.mortal = tape, tape is not None
        self.penalty, self.requests = penalty, requests
        self.reported = REPORTED if requests else SPENT
        self.features = (
            *feature_names(
                reveal, self.mortal, self.num_sources, probed=form.probing, complete=show_complete
            ),
            *self._further_features(),
        )
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

    def _world_arguments(self) -> dict[str, Any]:
        """Return further arguments of the world."""
        return {}

    def _further_features(self) -> tuple[str, ...]:
        """Return the names of the columns that a subclass appends, and writes."""
        return ()

    # Episodes

    def _check(self, instance: Instance) -> None:
        """Raise ValueError if the pages or sources do not match, or there are too many events."""
        super()._check(instance)
        if instance.num_sources != self.num_sources:
            raise ValueError(
                f"instance must have {self.num_sources} sources of signals like the environment, "
                f"got {instance.num_sources}"
            )
        check_events(instance, self.horizon, self.requests, self.tape)

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

    def _steps_of(self, instance: Instance) -> int:
        return self._last_slot_of(instance) // self.form.batch

    def _decisions_left(self) -> IntArray:
        left: IntArray = (self._last_slot - self._world.state.lanes["slot"]) // self.form.batch + 1
        return left

    def _episode(self, lane: int) -> int:
        return int(self._world.state.lanes[lane]["episode"])

    def _count_episodes(self, chosen: BoolArray) -> None:
        self._world.state.lanes["episode"][chosen] += np.uint64(1)

    def _set_streams(self, lane: int, lane_roots: Roots, episode: int) -> None:
        record = self._world.state.lanes[lane]
        record["root"], record["episode"] = lane_roots.tape, episode
        record["rng_root"] = lane_roots.rng

    def _set_instance(self, lane: int, instance: Instance) -> None:
        self._world.set_instance(lane, instance)
        write_parameters(self._world.shown[lane], instance, self.features)

    def _restart_worlds(self, chosen: BoolArray) -> None:
        for lane in map(int, np.flatnonzero(chosen)):
            instance, lane_roots = self._instances[lane], self._roots[lane]
            if isinstance(instance, CustomEvents) and lane_roots is not None:
                rng = generator(lane_roots.tape, self._episode(lane))
                self._world.set_tape(lane, self._draw_tape(lane, instance, rng))
        if restart_lanes(self._world.table, chosen) == UNFINISHED:
            self._resume()

    def _draw_tape(self, lane: int, instance: CustomEvents, rng: np.random.Generator) -> Tape:
        """Draw the events of a lane's next episode."""
        return instance.draw_tape(rng, self.horizon)

    def _idle_ended(self) -> None:
        self._world.state.lanes["idle"] = self.ended

    # Steps

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Take decoded actions and play to the next decision, in lanes not ended.

        Returns the rows of outcomes of the slot, NUM_OUTCOMES of (N,), which the next call
        overwrites; zero for ended lanes.

        Raises:
            ValueError: an invalid page; nothing is changed in this case.
            gymnasium.error.ResetNeeded: a lane has had no episode yet.
        """
        if self._steps_left == 0:
            raise ResetNeeded("call reset before step")
        pages, counts = actions
        status = step_lanes(self._world.table, pages, counts)
        if status == UNFINISHED:
            self._resume()
        elif status != DONE:
            raise ValueError(
                f"action must be a page in [0, {self.form.choices}), got {pages[status, 0]} "
                f"in lane {status}"
            )
        return self._world.outcomes

    def _resume(self, resume: Callable[[IntArray], int] = resume_lanes) -> None:
        """Continue, with larger logs if they are full, until all lanes are at their decision.

        After an interrupt the lanes need a reset.
        """
        steps_left, self._steps_left = self._steps_left, 0
        status = UNFINISHED
        while status == UNFINISHED:
            self._world.grow_logs()
            status = resume(self._world.table)
        self._steps_left = steps_left

    # Observations

    def observations(self, copy: bool = True) -> ObservationArray:
        """Return the observations, (N, m, F); without ``copy`` the next step overwrites them."""
        shown = self._world.state.shown
        return (self._buffers.copy(shown) if copy else shown).transpose(0, 2, 1)

    def observation(self, lane: int) -> ObservationArray:
        """Return the observation of a lane, (m, F), a new array."""
        return self._world.shown[lane].copy().T

    def action_masks(self) -> BoolArray:
        """Return a new mask of the existing pages, which may be crawled, (N, m) bool."""
        masks: BoolArray = self._world.state.pages["alive"].copy()
        return masks

    def tracker(self, lane: int) -> Tracker:
        """Return the current knowledge of the tracker of a lane, as new arrays."""
        state = self._world.state
        pages, now = state.pages[lane], float(state.lanes[lane]["time"])
        alive = pages["alive"].copy()
        return Tracker(
            problem=self.problem(lane),
            episode=int(self.episodes[lane]),
            time=now,
            elapsed=np.where(alive, now - state.last_crawl[lane], 0.0),
            signals=self._world.signals(lane),
            changed=pages["changed"].copy(),
            alive=alive,
            probed=pages["probed"].copy(),
        )

    def last_log(self, lane: int) -> CrawlLog:
        """Return the crawls and signals of the last step, or reset, of a lane."""
        return self._world.log(lane)

    # Truth

    def fresh(self, lane: int) -> BoolArray:
        """Return the mask of pages with a current copy, (m,) bool."""
        current: BoolArray = self._world.state.pages[lane]["changes"] == 0
        return current

    def ledger(self, lane: int) -> Ledger:
        """Return the totals of a lane since the start of its episode."""
        return self._world.ledger(lane)

    def num_slots(self, lane: int) -> int:
        """Return the number of crawls in the budget of a lane's episode."""
        return int(self._last_slot[lane])

    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls."""
        return float(self.num_slots(lane))

    # State

    def _kind(self) -> dict[str, Any]:
        objective = None if self.penalty is None else list(self.penalty)
        return {**super()._kind(), "objective": objective}

    def _get_world(self) -> dict[str, np.ndarray]:
        return self._world.get_state()

    def _set_world(self, state: Mapping[str, np.ndarray]) -> None:
        self._world.set_state(state)
