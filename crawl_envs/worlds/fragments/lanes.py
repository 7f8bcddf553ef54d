"""Lanes of pages with fragments: their contents, and what is known of the held copies."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from crawl_envs.compiled.array_tables import Records
from crawl_envs.compiled.compiling import compiled
from crawl_envs.sim.clock import slot_time
from crawl_envs.sim.law import check_events
from crawl_envs.sim.state import DIVERGENCE, FRESHNESS, state_at
from crawl_envs.sim.tape import CODE_STRIDE, SPELL_END, SPELL_START, Tape
from crawl_envs.sim.versions import sketch_at, smallest_at
from crawl_envs.spaces.actions import ActionForm
from crawl_envs.spaces.observations import write_copy
from crawl_envs.types import CrawlLog, FloatArray, FragmentLedger, Instance, IntArray, Tracker
from crawl_envs.types.arguments import whole
from crawl_envs.types.contents import MAX_FRAGMENTS, Contents
from crawl_envs.types.copies import Copies, Sketches, TrueDivergence, divergence
from crawl_envs.worlds.episodes import InstanceGenerator, Plan
from crawl_envs.worlds.fragments.regions import RegionPages
from crawl_envs.worlds.lanes import Lanes, Reported


def with_contents(tape: Tape, contents: Contents) -> Tape:
    """Add to a tape the events at which the fragments of its pages appear and disappear.

    At equal times, ends of spells come first, then starts, then the events of the given tape in
    their order.
    """
    times, codes, details = [], [], []
    for kind, time in ((SPELL_END, contents.death), (SPELL_START, contents.birth)):
        spells = np.flatnonzero(np.isfinite(time) & (time >= 0.0))
        times.append(time[spells])
        codes.append(contents.page[spells] * CODE_STRIDE + kind)
        details.append(spells)
    time, code = np.concatenate((*times, tape.time)), np.concatenate((*codes, tape.code))
    detail = np.concatenate((*details, np.full(tape.time.size, -1))).astype(np.int32)
    order = np.argsort(time, kind="stable")
    return Tape(time[order], code[order], tape.alive, tape.num_sources, detail[order])


@compiled()
def estimate_divergences(table: IntArray, sketch_size: int) -> None:
    """Replace the exact divergences that the last crawls observed by estimates from sketches."""
    state = state_at(table)
    for lane in range(state.lanes.shape[0]):
        record, row = state.lanes[lane], min(lane, state.spells.shape[0] - 1)
        spells, start = state.spells[row], state.spell_start[row]
        for position in range(record.slot_crawls * (not record.idle)):
            entry = state.crawl_log[lane, position]
            crawl_bases, bases = state.crawl_bases[lane, position], state.bases[lane, entry.page]
            first, last = start[entry.page], start[entry.page + 1]
            newest = smallest_at(spells, first, last, entry.time, sketch_size)
            for slot in range(crawl_bases.shape[0]):
                base = crawl_bases[slot]
                if np.isnan(base.made):
                    break
                older = smallest_at(spells, first, last, base.made, sketch_size)
                base.divergence = divergence(older, newest, sketch_size)
                if bases[slot].made == base.made:
                    bases[slot].divergence = base.divergence
            if state.observations.shape[1] > 0:
                write_copy(state, lane, entry.page)


MAX_VERSIONS = 1000
"""Largest number of base versions of a page."""


class FragmentLanes(Lanes):
    """N lanes of m pages with fragments; see also :class:`crawl_envs.worlds.lanes.Lanes`.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of :class:`crawl_envs.worlds.fragments.regions.RegionPages`; with
            ``contents``, of any instances.
        form: action form.
        base_versions: number h of base versions that a copy is compared with, in [0, 1000].
        sketch_size: number of smallest hashes in a sketch of a copy, >= 1; None for all.
        tape: a recorded tape for all lanes.
        contents: the recorded contents that belong to the tape.
        **arguments: of :class:`crawl_envs.worlds.lanes.Lanes`, in days.

    Raises:
        ValueError: an argument outside its range.
    """

    def __init__(
        self,
        num_lanes: int,
        generator: InstanceGenerator,
        form: ActionForm,
        *,
        base_versions: int = 2,
        sketch_size: int | None = None,
        tape: Tape | None = None,
        contents: Contents | None = None,
        **arguments: Any,
    ) -> None:
        self.base_versions = whole("base_versions", base_versions, 0, MAX_VERSIONS)
        if sketch_size is not None:
            whole("sketch_size", sketch_size, 1, MAX_FRAGMENTS)
        self.sketch_size = sketch_size
        if tape is not None and contents is not None:
            tape = with_contents(tape, contents)
        super().__init__(
            num_lanes,
            generator,
            form,
            requests=False,
            tape=tape,
            contents=contents,
            base_versions=base_versions,
            **arguments,
        )

    @property
    def reported(self) -> Reported:
        """Return the names of a step's info besides the reward, each with its row of outcomes."""
        fragment_entries = (("divergence", DIVERGENCE), ("holistic_freshness", FRESHNESS))
        return (*super().reported, *fragment_entries)

    def _columns(self, complete: bool) -> tuple[str, ...]:
        by_base = [
            f"{name}_{slot}" for name in ("divergence", "age") for slot in range(self.base_versions)
        ]
        return (*super()._columns(complete), "size", *by_base)

    # Episodes

    def _check_events(self, instance: Instance) -> None:
        if (self.tape is None) != isinstance(instance, RegionPages):
            needed = "recorded ones" if self.tape is not None else "those of drawn pages"
            raise ValueError(
                f"instance must have fragments like the environment, {needed}, got "
                f"{type(instance).__name__}"
            )
        end = self.origin_of(instance) + self.horizon
        end = end if self.tape is not None else self._end_of(instance)
        check_events(instance, end, self.world.requests, self.tape)

    def _end_of(self, instance: Instance) -> float:
        """Return the end of the slot after an instance's last decision, the horizon at least."""
        last = self.lead_of(instance) + self._last_slot_of(instance) + self.form.batch
        end = self.origin_of(instance) + self.horizon
        return max(slot_time(self.world.clock_of(instance), last), end)

    def _prepare(self, plan: Plan) -> None:
        super()._prepare(plan)
        if isinstance(plan.instance, RegionPages):
            self.world.state.copies[plan.lane]["first"] = plan.instance.regions.fragments

    def _provide_events(self, lane: int) -> None:
        instance = self.instance(lane)
        if isinstance(instance, RegionPages):
            instance.draw_lane(self.world, lane, self.rng(lane, "root"), self._end_of(instance))
            self.world.state.spell_start[lane] = 0
            if self.sketch_size is not None:
                self._spells(lane)

    def note_crawls(self) -> None:
        """Note the last crawls, as :meth:`Lanes.note_crawls`; compare their sketches."""
        super().note_crawls()
        if self.sketch_size is not None:
            estimate_divergences(self.world.table, self.sketch_size)

    # Observations

    def tracker(self, lane: int) -> Tracker:
        """Return what the tracker of a lane knows now, in new arrays."""
        tracker = super().tracker(lane)
        bases = self.world.state.bases[lane].T
        copies = Copies(
            self.world.state.copies[lane]["held"].astype(np.int64),
            bases["divergence"].copy(),
            bases["age"].copy(),
        )
        return tracker._replace(copies=copies)

    def last_log(self, lane: int) -> CrawlLog:
        """Return the crawls and signals of the last step, or reset, of a lane."""
        log = super().last_log(lane)
        bases = self.world.state.crawl_bases[lane, : log.page.size]
        return log._replace(
            divergence=bases["divergence"].copy(),
            age=bases["age"].copy(),
            sketch=self._sketches(lane, log.page, log.time),
        )

    def first_sketch(self, lane: int) -> Sketches:
        """Return the sketches of all m pages of a lane at time 0."""
        self.instance(lane)
        return self._sketches(lane, np.arange(self.num_pages), np.zeros(self.num_pages))

    def _sketches(self, lane: int, pages: IntArray, times: FloatArray) -> Sketches:
        """Return a sketch of each page in ``pages`` at its time in ``times``, (n,) both."""
        spells, start = self._spells(lane)
        return Sketches.of_rows(
            [
                sketch_at(spells, start[page], start[page + 1], time, self.sketch_size)
                for page, time in zip(pages.tolist(), times.tolist(), strict=True)
            ]
        )

    def _spells(self, lane: int) -> tuple[Records, IntArray]:
        """Return the spells of a lane, and the row of the first spell of each page, (m + 1,).

        Spells of drawn pages are drawn at the first call, since playing does not need them.
        """
        instance, world = self.instance(lane), self.world
        if isinstance(instance, RegionPages) and world.state.spell_start[lane, -1] == 0:
            end = self._end_of(instance)
            world.set_contents(lane, instance.draw_contents(self.rng(lane, "root"), end))
        row = min(lane, world.state.spells.shape[0] - 1)
        return world.state.spells[row], world.state.spell_start[row]

    # Truth

    def contents(self, lane: int) -> Contents:
        """Return the contents of the pages of a lane over the whole episode.

        Raises:
            gymnasium.error.ResetNeeded: there is no episode yet.
        """
        self.instance(lane)
        spells, start = self._spells(lane)
        spells = spells[: start[-1]]
        return Contents(
            start.copy(),
            spells["birth"].copy(),
            spells["death"].copy(),
            spells["size"].astype(np.int64),
            spells["key"].copy(),
            spells["earlier"].astype(np.int64),
        )

    def true_divergence(self, lane: int) -> TrueDivergence:
        """Return how far each held copy of a lane differs from its live page, in new arrays."""
        self.instance(lane)
        state = self.world.state
        copies, divergence = state.copies[lane], state.divergence[lane].copy()
        first, now = copies["first_change"], state.lanes[lane]["time"]
        return TrueDivergence(
            divergence=divergence,
            area=copies["area"] + divergence * (now - copies["since"]),
            changed=~np.isnan(first),
            first_change=first - copies["made"],
        )

    def similarity(self, lane: int) -> FloatArray:
        """Return the Jaccard similarity of each held copy and its live page in a lane, (m,)."""
        similar: FloatArray = 1.0 - self.world.state.divergence[lane]
        return similar

    def ledger(self, lane: int, finished: bool = False) -> FragmentLedger:
        """Return the totals of a lane's episode so far; if ``finished``, of its last ended one."""
        divergence = float(self._totals_of(lane, finished)["divergence_time"])
        return FragmentLedger(**asdict(super().ledger(lane, finished)), divergence_time=divergence)

    # State

    def _kind(self) -> dict[str, Any]:
        settings = {"base_versions": self.base_versions, "sketch_size": self.sketch_size}
        return {**super()._kind(), **settings}
