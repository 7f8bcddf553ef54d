"""Lanes of pages with fragments: their contents, and the divergence of copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from crawl_envs.sim.clock import clock_rows, slot_time
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.state import CRAWLS, DIVERGENCE, FRESHNESS
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.workload import check_events
from crawl_envs.spaces.actions import ActionForm, Actions
from crawl_envs.spaces.observations import write_copies
from crawl_envs.types import (
    BoolArray,
    CrawlLog,
    FloatArray,
    FragmentLedger,
    Instance,
    IntArray,
    Reveal,
    Tracker,
)
from crawl_envs.types.arguments import whole
from crawl_envs.types.contents import Contents
from crawl_envs.types.copies import Sketches, TrueDivergence
from crawl_envs.types.regions import MOST_FRAGMENTS
from crawl_envs.worlds.fragments.regions import FragmentLaw
from crawl_envs.worlds.fragments.world import FragmentWorld
from crawl_envs.worlds.lanes import InstanceGenerator
from crawl_envs.worlds.pages.lanes import Lanes


class FragmentLanes(Lanes):
    """N lanes of m pages with fragments; see also :class:`crawl_envs.worlds.pages.lanes.Lanes`.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of :class:`crawl_envs.worlds.fragments.regions.FragmentLaw`; with
            ``contents``, of any instances.
        form: action form, without probes.
        horizon: length of an episode, in days, > 0.
        base_versions: number of base versions that a copy is compared with, h >= 0.
        sketch_size: number of smallest hashes in a sketch of a copy, >= 1; None for all.
        reveal: known part of the instance, ``parameters`` or ``importance``.
        resample: draw a new instance at every reset, not only at seeded ones.
        tape: a recorded tape for all lanes.
        contents: the recorded contents that belong to the tape.

    Raises:
        ValueError: an argument outside its range.
    """

    in_rollouts = False

    def __init__(
        self,
        num_lanes: int,
        generator: InstanceGenerator,
        form: ActionForm,
        *,
        horizon: float,
        base_versions: int = 2,
        sketch_size: int | None = None,
        reveal: Reveal = "parameters",
        resample: bool = False,
        tape: Tape | None = None,
        contents: Contents | None = None,
    ) -> None:
        self.base_versions = whole("base_versions", base_versions, 0)
        if sketch_size is not None:
            whole("sketch_size", sketch_size, 1, MOST_FRAGMENTS)
        super().__init__(
            num_lanes,
            generator,
            form,
            horizon=horizon,
            reveal=reveal,
            resample=resample,
            tape=tape,
            requests=False,
        )
        self.reported = (
            ("crawls", CRAWLS),
            ("divergence", DIVERGENCE),
            ("holistic_freshness", FRESHNESS),
        )
        self._first_column = len(self.features) - len(self._further_features())
        self._fragments = FragmentWorld(
            num_lanes,
            self.num_pages,
            base_versions=base_versions,
            sketch_size=sketch_size,
            contents=contents,
            tape=tape,
        )

    def _further_features(self) -> tuple[str, ...]:
        by_base = [
            f"{name}_{slot}" for name in ("divergence", "age") for slot in range(self.base_versions)
        ]
        return ("size", *by_base)

    # Episodes

    def _check(self, instance: Instance) -> None:
        super()._check(instance)
        drawn = isinstance(instance, FragmentLaw)
        if self.tape is None and not drawn:
            raise ValueError(
                "instance must have fragments, as those of crawl_envs.instances.longevity do, got "
                f"{type(instance).__name__}"
            )
        if self.tape is not None and drawn:
            raise ValueError(
                "instance must not draw fragments where recorded ones are played, got "
                f"{type(instance).__name__}"
            )
        if isinstance(instance, FragmentLaw):
            check_events(instance, self._end_of(instance), requests=False)

    def _end_of(self, instance: Instance) -> float:
        """Return the end of the slot after the last decision, or the horizon if that is later."""
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        last = self._last_slot_of(instance) + self.form.batch
        return max(slot_time(clock, last), self.horizon)

    def _set_instance(self, lane: int, instance: Instance) -> None:
        super()._set_instance(lane, instance)
        self._fragments.set_importance(lane, instance.importance)

    def _draw_tape(self, lane: int, instance: CustomEvents, rng: np.random.Generator) -> Tape:
        """Draw the events and contents of an episode, up to the end of its last slot."""
        if self.tape is not None or not isinstance(instance, FragmentLaw):
            return super()._draw_tape(lane, instance, rng)
        tape, contents = instance.draw(rng, self._end_of(instance))
        self._fragments.set_contents(lane, contents)
        return tape

    def _restart_worlds(self, chosen: BoolArray) -> None:
        super()._restart_worlds(chosen)
        self._fragments.restart(chosen, self._now())
        self._show(np.zeros((self.num_lanes, 1), np.int64), np.zeros(self.num_lanes, np.int64))

    def _now(self) -> FloatArray:
        now: FloatArray = self._world.state.lanes["time"].copy()
        return now

    # Steps

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Take decoded actions and play to the next decision, in lanes not ended.

        As :meth:`crawl_envs.worlds.pages.lanes.Lanes.play`, with two more rows of outcomes.
        """
        pages, counts = actions
        outcomes = super().play(actions)
        self._fragments.step(pages, counts, self.ended, self._now())
        self._show(pages, counts)
        return (*outcomes, *self._fragments.state.outcomes)

    def _show(self, pages: IntArray, counts: IntArray) -> None:
        """Update the columns of copies, after crawls as in :meth:`play`."""
        shown, world = self._world.state.shown, self._fragments.state
        known = world.copies, world.divergence, world.age
        write_copies(shown, self._first_column, *known, self.horizon, world.accounts, pages, counts)

    # Observations

    def tracker(self, lane: int) -> Tracker:
        """Return the current knowledge of the tracker of a lane, as new arrays."""
        return super().tracker(lane)._replace(copies=self._fragments.copies(lane))

    def last_log(self, lane: int) -> CrawlLog:
        """Return the crawls and signals of the last step, or reset, of a lane."""
        log = super().last_log(lane)
        world = self._fragments.state
        return log._replace(
            divergence=world.divergence[lane][:, log.page].T.copy(),
            age=world.age[lane][:, log.page].T.copy(),
            sketch=self._fragments.sketches(lane, log.page, log.time),
        )

    def first_sketch(self, lane: int) -> Sketches:
        """Return the sketches of the copies at the start of a lane's episode, all m."""
        self.instance(whole("lane", lane, 0, self.num_lanes - 1))
        return self._fragments.sketches(lane, np.arange(self.num_pages), np.zeros(self.num_pages))

    # Truth

    def contents(self, lane: int) -> Contents:
        """Return the contents of the pages of a lane over the whole episode.

        Raises:
            gymnasium.error.ResetNeeded: there is no episode yet.
        """
        self.instance(whole("lane", lane, 0, self.num_lanes - 1))
        return self._fragments.contents(lane)

    def true_divergence(self, lane: int) -> TrueDivergence:
        """Return the divergence of a lane's copies from the live pages, as new arrays."""
        self.instance(whole("lane", lane, 0, self.num_lanes - 1))
        return self._fragments.true_divergence(lane)

    def ledger(self, lane: int) -> FragmentLedger:
        """Return the totals of a lane since the start of its episode."""
        account = self._fragments.state.accounts[lane]
        counted = asdict(super().ledger(lane))
        return FragmentLedger(**counted, divergence_time=float(account["divergence_time"]))

    # State

    def _kind(self) -> dict[str, Any]:
        own = {
            "base_versions": self.base_versions,
            "sketch_size": self._fragments.sketch_size,
        }
        return {**super()._kind(), **own}

    def _get_world(self) -> Any:
        return {"events": super()._get_world(), "fragments": self._fragments.get_state()}

    def _set_world(self, state: Any) -> None:
        if not isinstance(state, Mapping) or {"events", "fragments"} - state.keys():
            raise ValueError("state must be of lanes of pages with fragments")
        self._fragments.check_state(state["fragments"])
        super()._set_world(state["events"])
        self._fragments.set_state(state["fragments"])
