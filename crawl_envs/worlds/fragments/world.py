"""The Python interface of the contents of a batch of lanes: allocation, contents and states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crawl_envs.sim.state import Records
from crawl_envs.sim.tape import BIRTH, CHANGE, DEATH, KIND_BITS, KIND_MASK, Tape
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.contents import Contents
from crawl_envs.types.copies import Copies, Sketches, TrueDivergence
from crawl_envs.worlds.fragments.advance import (
    ACCOUNT,
    BORN,
    COPY,
    END,
    FRAGMENT_EVENT,
    GONE,
    START,
    UPDATE,
    Fragments,
    restart_fragments,
    resume_fragments,
    step_fragments,
)
from crawl_envs.worlds.fragments.versions import SPELL, hashes_at

GROWING = ("spells", "events")
"""Arrays whose rows grow with the longest episode."""
SLACK = 1.25
"""Length of grown rows, relative to the length needed."""


def spell_records(contents: Contents) -> Records:
    """Return the spells of contents as records, (n,)."""
    spells = np.empty(contents.birth.size, SPELL)
    for name in ("birth", "death", "key", "size", "earlier"):
        spells[name] = getattr(contents, name)
    return spells


def event_records(contents: Contents, tape: Tape | None) -> Records:
    """Return the events of the fragments of pages, in order of time, (E,).

    Args:
        contents: spells of the pages.
        tape: additional changes, births and deaths of pages; None if every change starts or ends a
            spell, and pages always exist.
    """
    page, number = contents.page, np.arange(contents.birth.size)
    parts = []
    for kind, time in ((END, contents.death), (START, contents.birth)):
        within = np.flatnonzero(np.isfinite(time) & (time >= 0.0))
        parts.append((kind, time[within], page[within], number[within]))
    if tape is not None:
        kinds = tape.code & KIND_MASK
        changes = (kinds & CHANGE > 0) & (kinds < BIRTH)
        for kind, meant in ((UPDATE, changes), (BORN, kinds == BIRTH), (GONE, kinds == DEATH)):
            pages = tape.code[meant] >> KIND_BITS
            parts.append((kind, tape.time[meant], pages, np.full(pages.size, -1)))
    time = np.concatenate([part[1] for part in parts])
    order = np.argsort(time, kind="stable")  # at equal times by kind
    events = np.empty(time.size, FRAGMENT_EVENT)
    events["time"] = time[order]
    events["kind"] = np.repeat([part[0] for part in parts], [part[1].size for part in parts])[order]
    events["page"] = np.concatenate([part[2] for part in parts])[order]
    events["spell"] = np.concatenate([part[3] for part in parts])[order]
    return events


class FragmentWorld:
    """The contents of N lanes of m pages, and their held copies.

    Args:
        num_lanes: number of lanes, N.
        num_pages: number of pages of each, m.
        base_versions: number of base versions kept of each page, h >= 0.
        sketch_size: number of smallest hashes in a sketch; None for all.
        contents: recorded contents for all lanes; None if each lane has its own.
        tape: with ``contents``, the tape that they belong to.
    """

    def __init__(
        self,
        num_lanes: int,
        num_pages: int,
        *,
        base_versions: int,
        sketch_size: int | None = None,
        contents: Contents | None = None,
        tape: Tape | None = None,
    ) -> None:
        self.num_lanes, self.num_pages, self.sketch_size = num_lanes, num_pages, sketch_size
        rows = num_lanes if contents is None else 1
        shape = (num_lanes, base_versions, num_pages)
        alive = np.ones(num_pages, np.bool_) if tape is None else tape.alive.copy()
        self.state = Fragments(
            accounts=np.zeros(num_lanes, ACCOUNT),
            copies=np.zeros((num_lanes, num_pages), COPY),
            base=np.full(shape, np.nan),
            divergence=np.full(shape, np.nan),
            age=np.full(shape, np.nan),
            start=np.zeros((rows, num_pages + 1), np.int64),
            spells=np.zeros((rows, 0), SPELL),
            events=np.zeros((rows, 0), FRAGMENT_EVENT),
            alive_at_start=alive,
            sketch_size=np.array([sketch_size or 0], np.int64),
            outcomes=np.zeros((2, num_lanes)),
        )
        if contents is not None:
            events = event_records(contents, tape)
            self.state.start[0] = contents.start
            self.state = self.state._replace(
                spells=spell_records(contents)[None], events=events[None]
            )
            self.state.accounts["length"] = events.size

    def set_contents(self, lane: int, contents: Contents) -> None:
        """Set the contents of a single lane, from its next restart on; pages always exist."""
        self.state.start[lane] = contents.start
        spells, events = spell_records(contents), event_records(contents, None)
        self._room_for("spells", spells.size)[lane, : spells.size] = spells
        self._room_for("events", events.size)[lane, : events.size] = events
        self.state.accounts["length"][lane] = events.size

    def _room_for(self, name: str, width: int) -> Records:
        """Return the records of a name, (N, L), with rows of at least ``width``."""
        held: Records = getattr(self.state, name)
        if width <= held.shape[1]:
            return held
        wide = np.zeros((held.shape[0], int(width * SLACK)), held.dtype)
        wide[:, : held.shape[1]] = held
        self.state = self.state._replace(**{name: wide})
        return wide

    def set_importance(self, lane: int, importance: FloatArray) -> None:
        """Set the importance of the pages of a lane, (m,), from its next restart on."""
        self.state.copies["importance"][lane] = importance

    def restart(self, chosen: BoolArray, until: FloatArray) -> None:
        """Start episodes in the chosen lanes; play to their first decisions at ``until`` (N,)."""
        restart_fragments(self.state, chosen)
        nothing = np.zeros((self.num_lanes, 1), np.int64)
        counts = np.zeros(self.num_lanes, np.int64)
        self.step(nothing, counts, ~chosen, until)

    def step(self, pages: IntArray, counts: IntArray, idle: BoolArray, until: FloatArray) -> None:
        """Crawl pages, and play to the next decisions; outcomes of idle lanes are 0."""
        complete = step_fragments(self.state, pages, counts, idle, until)
        while not complete:
            complete = resume_fragments(self.state, idle, until)

    # Access

    def contents(self, lane: int) -> Contents:
        """Return the contents of the pages of a lane in its episode, as new arrays."""
        row = min(lane, self.state.start.shape[0] - 1)
        start = self.state.start[row].copy()
        spells = self.state.spells[row, : start[-1]]
        return Contents(
            start,
            spells["birth"].copy(),
            spells["death"].copy(),
            spells["size"].astype(np.int64),
            spells["key"].copy(),
            spells["earlier"].astype(np.int64),
        )

    def copies(self, lane: int) -> Copies:
        """Return the size, divergence and age of the copies of a lane, as new arrays."""
        state = self.state
        return Copies(
            state.copies[lane]["held"].copy(), state.divergence[lane].copy(), state.age[lane].copy()
        )

    def true_divergence(self, lane: int) -> TrueDivergence:
        """Return the true divergence of the held copies of a lane, as new arrays."""
        copies, now = self.state.copies[lane], self.state.accounts[lane]["time"]
        first = copies["first_change"]
        return TrueDivergence(
            divergence=copies["divergence"].copy(),
            area=copies["area"] + copies["divergence"] * (now - copies["since"]),
            changed=~np.isnan(first),
            first_change=first - copies["made"],
        )

    def sketches(self, lane: int, pages: IntArray, times: FloatArray) -> Sketches:
        """Return the sketches of the versions of pages, (n,), at times, (n,)."""
        row = min(lane, self.state.start.shape[0] - 1)
        bounds = self.state.start[row]
        parts = [
            hashes_at(
                self.state.spells, row, bounds[page], bounds[page + 1], time, self.sketch_size or 0
            )
            for page, time in zip(pages.tolist(), times.tolist(), strict=True)
        ]
        return Sketches.of_rows(parts)

    # State

    def get_state(self) -> dict[str, np.ndarray]:
        """Return copies of all arrays by name."""
        return {name: array.copy() for name, array in self.state._asdict().items()}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise ValueError unless a state is of :meth:`get_state` of a world of this size."""
        for name, own in self.state._asdict().items():
            given = state.get(name)
            shape = (own.shape[0],) if name in GROWING else own.shape
            same = given is not None and given.dtype == own.dtype and given.ndim == own.ndim
            if given is None or not same or given.shape[: len(shape)] != shape:
                raise ValueError(
                    f"state must be of {self.num_lanes} lanes of {self.num_pages} pages of "
                    f"fragments like these, but {name} is "
                    f"{None if given is None else given.shape} instead of {own.shape}"
                )
        self._check_rows(state)

    def _check_rows(self, state: Mapping[str, Any]) -> None:
        """Raise ValueError if the arrays of a state are inconsistent."""
        events, width = state["events"], state["spells"].shape[1]
        within = (
            np.all(state["start"] >= 0)
            and np.all(state["start"] <= width)
            and np.all(state["spells"]["earlier"] < width)
            and np.all((events["page"] >= 0) & (events["page"] < self.num_pages))
            and np.all(events["spell"] < max(width, 1))
            and np.all(state["accounts"]["length"] <= events.shape[1])
        )
        if not within:
            raise ValueError(
                "state must be of get_state, but its events name pages or spells that are not in it"
            )

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a copy of a checked state of :meth:`get_state`."""
        self.state = Fragments(**{name: state[name].copy() for name in Fragments._fields})
