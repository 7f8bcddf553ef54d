"""A batch of worlds, seen from Python: allocate, seed, read out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.arguments import whole
from crawl_envs.sim.clock import clock_rows, slots_until
from crawl_envs.sim.events import column_bits, event_rates, fill_alias
from crawl_envs.sim.state import (
    ALIAS,
    CRAWL_ENTRY,
    EVENT,
    LANE,
    NUM_OUTCOMES,
    PAGE,
    SIGNAL_ENTRY,
    Records,
    State,
    address_table,
)
from crawl_envs.sim.tape import BLOCK, Tape, pending_capacity
from crawl_envs.types import DELAY_KINDS, CrawlLog, FloatArray, Instance, IntArray, Ledger

MOST_COLUMNS = 2**31 - 1
"""Columns of an alias table, which are numbered in 32 bits: wider ones take longer to draw from."""

LOG_CAPACITY = 16
"""Signals per slot that are provided for at first; the log grows as needed."""


def _allocate(
    num_lanes: int,
    num_pages: int,
    num_sources: int,
    num_features: int,
    crawls_per_slot: int,
    block: int,
    tape: Tape | None,
) -> State:
    """Allocate the arrays of ``num_lanes`` worlds, all zero but for the recorded tape."""
    events = np.zeros((num_lanes, block) if tape is None else (1, tape.time.size), EVENT)
    alive = np.ones(num_pages, np.bool_)
    columns = num_pages << column_bits(num_sources) if tape is None else 0
    counted_apart = num_sources if num_sources > 1 else 0
    if tape is not None:
        events["time"], events["code"], alive = tape.time, tape.code, tape.alive.copy()
    return State(
        lanes=np.zeros(num_lanes, LANE),
        clock=np.zeros((num_lanes, 1, 3)),
        stream=np.zeros((num_lanes, 4), np.uint64),
        last_crawl=np.zeros((num_lanes, num_pages)),
        pages=np.zeros((num_lanes, num_pages), PAGE),
        alive_at_start=alive,
        tape=events,
        alias=np.zeros((num_lanes, columns), ALIAS),
        pending=np.zeros((num_lanes, 0), EVENT),
        signal_log=np.zeros((num_lanes, LOG_CAPACITY), SIGNAL_ENTRY),
        crawl_log=np.zeros((num_lanes, crawls_per_slot), CRAWL_ENTRY),
        outcomes=np.zeros((NUM_OUTCOMES, num_lanes)),
        shown=np.zeros((num_lanes, num_features, num_pages), np.float32),
        source_signals=np.zeros((num_lanes, counted_apart, num_pages), np.int32),
        crawl_signals=np.zeros((num_lanes, counted_apart, crawls_per_slot), np.int32),
    )


def _widened(records: Records, width: int) -> Records:
    """Return a copy of (N, L) records with zeros up to the given width."""
    wide = np.zeros((records.shape[0], width), records.dtype)
    wide[:, : records.shape[1]] = records
    return wide


class World:
    """``num_lanes`` independent worlds of ``num_pages`` pages, in one set of arrays.

    Args:
        num_lanes: number of worlds, N.
        num_pages: pages of each, m.
        num_sources: sources of signals, S.
        num_features: columns of an observation, F; 0 where nothing is observed.
        horizon: end of the episodes.
        batch: slots per decision.
        crawls_per_slot: the most pages that are crawled at one decision.
        block: events drawn at once; it changes no event.
        tape: a recorded tape that every lane plays; None draws one per lane.
    """

    def __init__(
        self,
        num_lanes: int,
        num_pages: int,
        *,
        num_sources: int = 1,
        num_features: int = 0,
        horizon: float = np.inf,
        batch: int = 1,
        crawls_per_slot: int = 1,
        block: int = BLOCK,
        tape: Tape | None = None,
    ) -> None:
        whole("num_pages", num_pages, 1, MOST_COLUMNS >> column_bits(num_sources))
        if tape is not None and tape.alive.size != num_pages:
            raise ValueError(f"tape must be of {num_pages} pages, got {tape.alive.size}")
        if tape is not None and tape.num_sources != num_sources:
            raise ValueError(
                f"tape must be of {num_sources} sources of signals, got {tape.num_sources}"
            )
        self.num_lanes, self.num_pages, self.num_sources = num_lanes, num_pages, num_sources
        self._adopt(
            _allocate(num_lanes, num_pages, num_sources, num_features, crawls_per_slot, block, tape)
        )
        self.state.lanes["column_bits"] = column_bits(num_sources)
        self.state.lanes["horizon"], self.state.lanes["batch"] = horizon, batch
        self.state.lanes["recorded"] = self.state.lanes["mortal"] = tape is not None
        self.state.lanes["length"] = 0 if tape is None else tape.time.size

    def set_instance(self, lane: int, instance: Instance) -> None:
        """Give a lane its instance; it takes effect at the lane's next restart."""
        if instance.num_pages != self.num_pages:
            raise ValueError(f"instance must have {self.num_pages} pages, got {instance.num_pages}")
        if instance.num_sources != self.num_sources:
            raise ValueError(
                f"instance must have {self.num_sources} sources of signals, "
                f"got {instance.num_sources}"
            )
        self._make_room(instance)
        state, record = self.state, self.state.lanes[lane]
        rows = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        state.clock[lane] = np.inf
        state.clock[lane, : rows.shape[0]] = rows
        state.pages[lane]["importance"] = instance.importance
        if not record["recorded"]:
            rates = event_rates(instance).ravel()
            total = rates.sum()
            record["mean_gap"] = 1.0 / total if total > 0.0 else np.inf
            fill_alias(rates, state.alias[lane])
            record["delay_kind"] = DELAY_KINDS.index(instance.delay.kind)
            record["delay_mean"] = instance.delay.mean
            record["delay_quantum"] = instance.delay.quantum

    def _make_room(self, instance: Instance) -> None:
        """Widen the arrays whose width depends on the instance."""
        state = self.state
        steps = 1 + len(instance.bandwidth_steps)
        if steps > state.clock.shape[1]:
            clock = np.full((self.num_lanes, steps, 3), np.inf)
            clock[:, : state.clock.shape[1]] = state.clock
            state = state._replace(clock=clock)
        pending = pending_capacity(instance)
        if pending > state.pending.shape[1]:
            state = state._replace(pending=_widened(state.pending, pending))
        self._adopt(state)

    def grow_log(self) -> None:
        """Double the room for the signals of a slot; what is logged stays."""
        log = self.state.signal_log
        self._adopt(self.state._replace(signal_log=_widened(log, 2 * log.shape[1])))

    def num_slots(self, lane: int) -> int:
        """Return how many crawls the lane's budget allows up to its horizon."""
        rows = self.state.clock[lane]
        return slots_until(rows[np.isfinite(rows[:, 0])], self.state.lanes[lane]["horizon"])

    def ledger(self, lane: int) -> Ledger:
        """Return what happened in the lane since its restart."""
        record = self.state.lanes[lane]
        return Ledger(
            time=float(record["time"]),
            fresh_time=float(record["fresh_time"]),
            alive_time=float(record["alive_time"]),
            requests=int(record["requests"]),
            hits=int(record["hits"]),
            crawls=int(record["crawls"]),
            wasted=int(record["wasted"]),
            changes=int(record["changes"]),
            changes_found=int(record["changes_found"]),
            signals=int(record["signals"]),
        )

    def log(self, lane: int, crawl_time: float) -> CrawlLog:
        """Return the crawls made at ``crawl_time`` and the signals since, as fresh arrays."""
        record = self.state.lanes[lane]
        crawls = self.state.crawl_log[lane, : record["slot_crawls"]]
        signals = self.state.signal_log[lane, : record["logged"]]
        received = crawls["signals"].copy()
        if self.num_sources > 1:
            received = self.state.crawl_signals[lane, :, : crawls.size].astype(np.int64)
        return CrawlLog(
            page=crawls["page"].copy(),
            time=np.full(crawls.size, crawl_time),
            elapsed=crawls["elapsed"].copy(),
            signals=received,
            changed=crawls["changed"].copy(),
            signal_page=signals["page"].copy(),
            signal_time=signals["time"].copy(),
            signal_source=signals["source"].copy(),
        )

    def signals(self, lane: int) -> IntArray:
        """Return the signals of each page since its last crawl, (m,) or (S, m), a fresh array."""
        apart = self.state.source_signals[lane]
        counts = apart if self.num_sources > 1 else self.state.pages[lane]["signals"]
        fresh: IntArray = counts.astype(np.int64)
        return fresh

    def get_state(self) -> dict[str, np.ndarray]:
        """Return copies of all arrays by name."""
        return {name: array.copy() for name, array in self.state._asdict().items()}

    def set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take on a state that :meth:`get_state` returned, as copies.

        Raises:
            ValueError: it is of a world of another size; nothing has happened then.
        """
        for name, own in self.state._asdict().items():
            given = arrays.get(name)
            # Clocks, heaps and logs grow in their second dimension as worlds need.
            same = 1 if name in ("clock", "pending", "signal_log") else own.ndim
            if given is None or given.dtype != own.dtype or given.shape[:same] != own.shape[:same]:
                raise ValueError(
                    f"state must be of a world of {self.num_lanes} lanes and {self.num_pages} "
                    f"pages like this one, but {name} is {None if given is None else given.shape} "
                    f"instead of {own.shape}"
                )
        self._adopt(State(**{name: arrays[name].copy() for name in State._fields}))

    def _adopt(self, state: State) -> None:
        """Own a state.

        ``table`` is what kernels are given; ``outcomes`` and ``shown`` are the arrays of that name,
        row by row and lane by lane, because to look a row up takes longer than to copy it.
        """
        self.state, self.table = state, address_table(state)
        self.outcomes: tuple[FloatArray, ...] = tuple(state.outcomes)
        self.shown: tuple[NDArray[np.float32], ...] = tuple(state.shown)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what points into arrays: a copy has arrays of its own."""
        own = self.__dict__.items()
        return {name: value for name, value in own if name not in ("table", "outcomes", "shown")}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self._adopt(self.state)
