"""The Python interface of a batch of worlds: allocation, instances, tapes, logs and states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.array_tables import lengths_of, resized, table_of
from crawl_envs.sim.clock import budget_until, clock_rows
from crawl_envs.sim.state import (
    FIELDS,
    GROWING,
    KINDS,
    SPELL,
    UNPAID,
    State,
    new_state,
)
from crawl_envs.sim.tape import (
    BLOCK,
    KIND_MASK,
    REQUEST,
    Tape,
    column_bits,
    event_rates,
    fill_alias,
    pending_capacity,
)
from crawl_envs.types import DELAY_KINDS, CrawlLog, FloatArray, Instance, IntArray, Ledger
from crawl_envs.types.arguments import whole
from crawl_envs.types.contents import Contents

MAX_COLUMNS = 2**31 - 1
"""Most columns of an alias table, numbered in 32 bits: wider entries take longer to draw from."""

LOG_CAPACITY = 16
"""Initial capacity of the log of signals of a slot; it grows as needed."""

EPISODE_AXES, SLACK = ("events", "details", "updates", "spells"), 1.25
"""Axes as long as the longest episode, and their length as a multiple of the needed one."""


class Layout(NamedTuple):
    """The optional parts of a world, in addition to its numbers of lanes and pages."""

    num_sources: int = 1
    num_features: int = 0  # columns of an observation; 0 without observations
    crawls_per_slot: int = 1  # the most at a decision; their log grows as needed
    at_random: bool = False  # crawls at random instants, at rates
    increments: FloatArray | None = None  # of the penalty of undetected changes; None counts none
    base_versions: int | None = None  # of each page of fragments; None without fragments
    priced: bool = False  # pages are offers with prices
    costs: bool = False  # crawls have costs
    block: int = BLOCK  # events drawn at once; the events do not depend on it
    tape: Tape | None = None  # recorded, for all lanes; None draws one per lane
    mortal: bool = False  # without ``tape``: pages are born and die by the tapes of single lanes
    contents: Contents | None = None  # with ``tape``, the recorded contents of all lanes


def _allocate(num_lanes: int, num_pages: int, layout: Layout) -> State:
    """Allocate the arrays of ``num_lanes`` worlds: zeros, and the recorded tape if there is one."""
    tape, sources = layout.tape, layout.num_sources
    increments = np.zeros(0) if layout.increments is None else layout.increments
    fragments = layout.base_versions is not None
    events = layout.block if tape is None else tape.time.size
    diverging = increments.size > 0 or fragments or layout.priced
    drawn = tape is None and not (fragments or layout.priced)
    state = new_state(
        {
            "N": num_lanes,
            "m": num_pages,
            "clock_rows": 1,
            "tapes": num_lanes if tape is None else 1,
            "events": events,
            "details": events * (fragments or layout.priced),
            "columns": (num_pages << column_bits(sources)) * drawn,
            "logged": LOG_CAPACITY,
            "crawled": layout.crawls_per_slot,
            "F": layout.num_features,
            "C": sources if sources > 1 else 0,
            "I": increments.size,
            "D": num_pages * diverging,
            "Q": num_pages * layout.at_random,
            "V": num_pages * layout.priced,
            "P": num_pages * layout.costs,
            "G": num_pages * fragments,
            "h": layout.base_versions or 0,
            "contents": num_lanes if layout.contents is None else 1,
            "starts": (num_pages + 1) * fragments,
        }
    )
    state.increments[:] = increments
    state.alive_at_start[:] = True
    if tape is not None:
        state.alive_at_start[:] = tape.alive
        state.tape["time"], state.tape["code"] = tape.time, tape.code
        state.detail[:] = tape.detail if fragments else 0
    return state


class World:
    """``num_lanes`` independent worlds of ``num_pages`` pages, in one set of arrays.

    Args:
        num_lanes: number of worlds, N.
        num_pages: number of pages of each, m.
        horizon: length of the episodes.
        batch: slots per decision.
        epoch: length of a slot in units of time; None for slots of one crawl each. With an epoch
            the first decision is at time 0, else at the end of the first batch of slots.
        requests: whether requests are simulated.
        bucket: size of the token bucket of crawls at random instants.
        payment: how crawls with costs are paid, of :mod:`crawl_envs.sim.state`.
        **layout: fields of :class:`Layout`.
    """

    def __init__(
        self,
        num_lanes: int,
        num_pages: int,
        *,
        horizon: float = np.inf,
        batch: int = 1,
        epoch: float | None = None,
        requests: bool = True,
        bucket: float = np.inf,
        payment: int = UNPAID,
        **layout: Any,
    ) -> None:
        plan = Layout(**layout)
        num_sources, tape = plan.num_sources, plan.tape
        whole("num_pages", num_pages, 1, MAX_COLUMNS >> column_bits(num_sources))
        self.num_lanes, self.num_pages, self.num_sources = num_lanes, num_pages, num_sources
        self.batch, self.epoch, self.horizon = batch, epoch, horizon
        self.requests = requests
        if tape is not None:
            self._check_size(tape)
        self._adopt(_allocate(num_lanes, num_pages, plan))
        lanes = self.state.lanes
        lanes["column_bits"] = column_bits(num_sources)
        lanes["max_elapsed"], lanes["batch"] = horizon, batch
        lanes["first_slot"] = batch if epoch is None else 0
        lanes["bucket"], lanes["payment"] = bucket, payment
        self.state.cost[:] = 1.0
        lanes["recorded"] = tape is not None
        lanes["mortal"] = plan.mortal or tape is not None
        lanes["length"] = 0 if tape is None else tape.time.size
        lanes["by_day"] = plan.priced
        if plan.contents is not None:
            self.set_contents(0, plan.contents)
            self.state.copies["first"] = plan.contents.sizes(0.0)

    def clock_of(self, instance: Instance) -> FloatArray:
        """Return the clock of an instance's slots, (steps, 3), see :mod:`crawl_envs.sim.clock`."""
        if self.epoch is not None:
            return clock_rows(1.0 / self.epoch)
        return clock_rows(instance.bandwidth, instance.bandwidth_steps)

    def set_instance(self, lane: int, instance: Instance) -> None:
        """Write an instance of the world's number of pages to a lane, before the lane restarts."""
        rows = self.clock_of(instance)
        self.lengthen(clock_rows=rows.shape[0], pending=pending_capacity(instance))
        state, record = self.state, self.state.lanes[lane]
        state.clock[lane] = np.inf
        state.clock[lane, : rows.shape[0]] = rows
        state.pages[lane]["importance"] = instance.importance
        if state.cost.size > 0:
            record["budget"] = budget_until(rows, self.horizon)
            state.cost[lane] = 1.0 if instance.cost is None else instance.cost
        if state.alias.shape[1] == 0:
            return
        record["recorded"], state.alive_at_start[lane] = False, True
        rates = event_rates(instance, self.requests).ravel()
        total = rates.sum()
        record["mean_gap"] = 1.0 / total if total > 0.0 else np.inf
        fill_alias(rates, state.alias[lane])
        record["delay_kind"] = DELAY_KINDS.index(instance.delay.kind)
        record["delay_mean"] = instance.delay.mean
        record["delay_quantum"] = instance.delay.quantum

    def set_tape(self, lane: int, tape: Tape) -> None:
        """Set a recorded tape of a single lane.

        It takes effect at the lane's next restart, and until the lane's next instance. Requests are
        dropped if none are simulated.

        Raises:
            ValueError: the numbers of pages or sources differ, or pages are born or die where they
                do not.
        """
        self._check_size(tape)
        if tape.mortal and not self.state.lanes[lane]["mortal"]:
            raise ValueError("tape must be without births and deaths")
        time, code = tape.time, tape.code
        if not self.requests:
            event_mask = code & KIND_MASK != REQUEST
            time, code = time[event_mask], code[event_mask]
        count = time.size
        self.lengthen(events=count)
        self.state.tape[lane, :count]["time"], self.state.tape[lane, :count]["code"] = time, code
        record, self.state.alive_at_start[lane] = self.state.lanes[lane], tape.alive
        record["cursor"], record["length"], record["recorded"] = 0, count, True

    def _check_size(self, tape: Tape) -> None:
        """Raise ValueError unless a tape has the numbers of pages and sources of the world."""
        size, expected = (tape.alive.size, tape.num_sources), (self.num_pages, self.num_sources)
        if size != expected:
            raise ValueError(
                f"tape must be of {expected[0]} pages and {expected[1]} sources of signals, got "
                f"{size[0]} and {size[1]}"
            )

    def set_contents(self, row: int, contents: Contents) -> None:
        """Set the fragments of row ``row``, a lane or the row of all, for the next restarts."""
        count = contents.birth.size
        self.lengthen(spells=count)
        self.state.spell_start[row] = contents.start
        spells = self.state.spells[row, :count]
        for name in SPELL.names or ():
            spells[name] = getattr(contents, name)

    def lengthen(self, **lengths: int) -> None:
        """Lengthen the named axes of the arrays to at least the given lengths; entries are kept."""
        current = self.lengths
        longer = {
            axis: int(SLACK * length) if axis in EPISODE_AXES else length
            for axis, length in lengths.items()
            if length > current[axis]
        }
        if longer:
            empty = {"clock": np.inf, "pending_place": -1}
            entries = {"pending_entry": np.arange(longer.get("pending", 0))}
            self._adopt(State(*resized(self.state, FIELDS, longer, empty | entries)))

    def grow_logs(self) -> None:
        """Double the logs of signals or crawls that are full in some lane; entries are kept."""
        lanes = self.state.lanes
        for axis, counts in (("logged", lanes["logged"]), ("crawled", lanes["slot_crawls"])):
            if np.any(counts == self.lengths[axis]):
                self.lengthen(**{axis: 2 * self.lengths[axis]})

    def ledger(self, record: Any) -> Ledger:
        """Return a lane's totals in its episode; ``record`` is its entry of ``state.lanes``."""
        names = (field.name for field in fields(Ledger) if field.name != "penalty_time")
        counts = {name: record[name].item() for name in names}
        counts["time"] -= record["origin"].item()
        if self.state.cost.size == 0:
            counts["spend"] = float(counts["crawls"])
        penalty = float(record["divergence_time"]) if self.state.increments.size else None
        return Ledger(**counts, penalty_time=penalty)

    def log(self, lane: int) -> CrawlLog:
        """Return the crawls and signals of a lane's last slot, as new arrays."""
        record = self.state.lanes[lane]
        crawls = self.state.crawl_log[lane, : record["slot_crawls"]]
        signals = self.state.signal_log[lane, : record["logged"]]
        received = crawls["signals"].copy()
        if self.num_sources > 1:
            received = self.state.crawl_signals[lane, :, : crawls.size].astype(np.int64)
        crawled = ("page", "time", "elapsed", "changed")
        arrived = ("page", "time", "source")
        columns: dict[str, Any] = {name: crawls[name].copy() for name in crawled}
        columns |= {f"signal_{name}": signals[name].copy() for name in arrived}
        if self.state.cost.size > 0:
            columns["cost"] = self.state.cost[lane, crawls["page"]]
        return CrawlLog(**columns, signals=received)

    def signals(self, lane: int) -> IntArray:
        """Return each page's number of signals since its last crawl, (m,) or (S, m), new array."""
        by_source = self.state.source_signals[lane]
        counts = by_source if self.num_sources > 1 else self.state.pages[lane]["signals"]
        fresh: IntArray = counts.astype(np.int64)
        return fresh

    def get_state(self) -> dict[str, np.ndarray]:
        """Return copies of all arrays of the world by name, for :meth:`set_state`."""
        return {name: array.copy() for name, array in self.state._asdict().items()}

    def set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore copies of the arrays returned by :meth:`get_state`.

        Raises:
            ValueError: a state of a world of another size; nothing is changed in this case.
        """
        if not isinstance(arrays, Mapping) or set(arrays) != set(State._fields):
            raise ValueError(f"state must be of get_state of a world, got {type(arrays).__name__}")
        state = State(**{name: np.array(arrays[name], order="C") for name in State._fields})
        for axis, length in lengths_of(state, FIELDS).items():
            expected = self.lengths[axis]
            if axis not in GROWING and length != expected:
                raise ValueError(
                    f"state must be of a world of {self.num_lanes} lanes and {self.num_pages} "
                    f"pages like this one, but axis {axis} has {length} entries, not {expected}"
                )
        self._adopt(state)

    def _adopt(self, state: State) -> None:
        """Set the arrays of the world.

        ``table`` is the argument of kernels. ``outcomes`` and ``observations`` are tuples of the
        rows of these arrays, because looking up a row takes longer than copying it. ``read_only``
        is a view of the observations.
        """
        self.state, self.lengths = state, lengths_of(state, FIELDS)
        self.table = table_of(state, self.lengths, KINDS)
        self.outcomes: tuple[FloatArray, ...] = tuple(state.outcomes)
        self.observations: tuple[NDArray[np.float32], ...] = tuple(state.observations)
        self.read_only = state.observations.view()
        self.read_only.setflags(write=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out addresses and views: a copy has its own arrays."""
        views = ("table", "outcomes", "observations", "read_only")
        return {name: value for name, value in self.__dict__.items() if name not in views}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self._adopt(self.state)
