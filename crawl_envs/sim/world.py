"""The Python interface of a batch of worlds: allocation, instances, logs and states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.clock import clock_rows, slots_until
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
from crawl_envs.types import CrawlLog, FloatArray, Instance, IntArray, Ledger
from crawl_envs.types.arguments import whole
from crawl_envs.types.delay import DELAY_KINDS

MOST_COLUMNS = 2**31 - 1
"""Most columns of an alias table, numbered in 32 bits: wider entries take longer to draw from."""

LOG_CAPACITY = 16
"""Initial capacity of the log of signals of a slot; it grows as needed."""

GROWING = {"clock": 1, "tape": 1, "pending": 1, "signal_log": 1, "crawl_log": 1, "crawl_signals": 2}
"""Arrays that grow as needed, with the number of their leading axes of fixed length."""


class Layout(NamedTuple):
    """Parameters of the arrays of a world, besides its numbers of lanes and pages.

    Attributes:
        num_sources: number of sources of signals, S.
        num_features: number of columns of an observation, F; 0 without observations.
        crawls_per_slot: largest number of crawls per decision.
        at_random: crawls at random instants, at rates; their log grows as needed.
        increments: increments of the penalty; None counts none.
        block: number of events drawn at once; the events do not depend on it.
        tape: a recorded tape for all lanes; None draws one per lane.
    """

    num_sources: int = 1
    num_features: int = 0
    crawls_per_slot: int = 1
    at_random: bool = False
    increments: FloatArray | None = None
    block: int = BLOCK
    tape: Tape | None = None


def _allocate(num_lanes: int, num_pages: int, layout: Layout) -> State:
    """Allocate the arrays of ``num_lanes`` worlds, zero except for the recorded tape."""
    tape, sources, crawls = layout.tape, layout.num_sources, layout.crawls_per_slot
    events = np.zeros((num_lanes, layout.block) if tape is None else (1, tape.time.size), EVENT)
    alive = np.ones(num_pages, np.bool_)
    columns = num_pages << column_bits(sources) if tape is None else 0
    apart = sources if sources > 1 else 0
    increments = np.zeros(0) if layout.increments is None else layout.increments.copy()
    rated = num_pages if layout.at_random else 0
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
        crawl_log=np.zeros((num_lanes, crawls), CRAWL_ENTRY),
        outcomes=np.zeros((NUM_OUTCOMES, num_lanes)),
        shown=np.zeros((num_lanes, layout.num_features, num_pages), np.float32),
        source_signals=np.zeros((num_lanes, apart, num_pages), np.int32),
        crawl_signals=np.zeros((num_lanes, apart, crawls), np.int32),
        increments=increments,
        penalty=np.zeros((num_lanes, num_pages if increments.size else 0)),
        crawl_alias=np.zeros((num_lanes, rated), ALIAS),
        chances=np.zeros((num_lanes, rated)),
        rng=np.zeros((num_lanes, 4), np.uint64),
    )


def _widened(records: Records, width: int) -> Records:
    """Return a copy of (.., L) records with zeros up to the given width."""
    wide = np.zeros((*records.shape[:-1], width), records.dtype)
    wide[..., : records.shape[-1]] = records
    return wide


class World:
    """``num_lanes`` independent worlds of ``num_pages`` pages, in one set of arrays.

    Args:
        num_lanes: number of worlds, N.
        num_pages: number of pages of each, m.
        horizon: end of the episodes.
        batch: slots per decision.
        epoch: length of a slot in units of time; None for slots of one crawl each. With an epoch
            the first decision is at time 0, else at the end of the first batch of slots.
        requests: whether requests are simulated.
        probing: whether pages can be probed, and outcomes of probes are shown.
        bucket: size of the token bucket of crawls at random instants.
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
        probing: bool = False,
        bucket: float = np.inf,
        **layout: Any,
    ) -> None:
        plan = Layout(**layout)
        num_sources, tape = plan.num_sources, plan.tape
        whole("num_pages", num_pages, 1, MOST_COLUMNS >> column_bits(num_sources))
        if tape is not None and tape.alive.size != num_pages:
            raise ValueError(f"tape must be of {num_pages} pages, got {tape.alive.size}")
        if tape is not None and tape.num_sources != num_sources:
            raise ValueError(
                f"tape must be of {num_sources} sources of signals, got {tape.num_sources}"
            )
        self.num_lanes, self.num_pages, self.num_sources = num_lanes, num_pages, num_sources
        self.epoch, self.requests, self.one_tape = epoch, requests, tape is not None
        self._adopt(_allocate(num_lanes, num_pages, plan))
        lanes = self.state.lanes
        lanes["column_bits"] = column_bits(num_sources)
        lanes["horizon"], lanes["batch"] = horizon, batch
        lanes["first_slot"] = batch if epoch is None else 0
        lanes["probing"], lanes["bucket"] = probing, bucket
        lanes["recorded"] = lanes["mortal"] = tape is not None
        lanes["length"] = 0 if tape is None else tape.time.size

    def clock_of(self, instance: Instance) -> FloatArray:
        """Return the clock of the slots, (steps, 3)."""
        if self.epoch is not None:
            return clock_rows(1.0 / self.epoch)
        return clock_rows(instance.bandwidth, instance.bandwidth_steps)

    def set_instance(self, lane: int, instance: Instance) -> None:
        """Set the instance of a lane, from its next restart on."""
        if instance.num_pages != self.num_pages:
            raise ValueError(f"instance must have {self.num_pages} pages, got {instance.num_pages}")
        if instance.num_sources != self.num_sources:
            raise ValueError(
                f"instance must have {self.num_sources} sources of signals, "
                f"got {instance.num_sources}"
            )
        self._widen_arrays(instance)
        state, record = self.state, self.state.lanes[lane]
        rows = self.clock_of(instance)
        state.clock[lane] = np.inf
        state.clock[lane, : rows.shape[0]] = rows
        state.pages[lane]["importance"] = instance.importance
        if not self.one_tape:
            record["recorded"] = False
            rates = event_rates(instance, self.requests).ravel()
            total = rates.sum()
            record["mean_gap"] = 1.0 / total if total > 0.0 else np.inf
            fill_alias(rates, state.alias[lane])
            record["delay_kind"] = DELAY_KINDS.index(instance.delay.kind)
            record["delay_mean"] = instance.delay.mean
            record["delay_quantum"] = instance.delay.quantum

    def set_tape(self, lane: int, tape: Tape) -> None:
        """Set a recorded tape of a single lane, without births and deaths.

        It takes effect at the lane's next restart, and until the lane's next instance. Requests are
        dropped if none are simulated.

        Raises:
            ValueError: the numbers of pages or sources differ, or pages are born or die.
        """
        if tape.alive.size != self.num_pages or tape.num_sources != self.num_sources:
            raise ValueError(
                f"tape must be of {self.num_pages} pages and {self.num_sources} sources, got "
                f"{tape.alive.size} and {tape.num_sources}"
            )
        if tape.mortal:
            raise ValueError("tape of a single lane must have no births and deaths")
        played = self.requests | (tape.code & KIND_MASK != REQUEST)
        time, code = tape.time[played], tape.code[played]
        if time.size > self.state.tape.shape[1]:
            self._adopt(self.state._replace(tape=_widened(self.state.tape, time.size)))
        events, record = self.state.tape[lane], self.state.lanes[lane]
        events["time"][: time.size], events["code"][: time.size] = time, code
        record["recorded"], record["length"] = True, time.size

    def _widen_arrays(self, instance: Instance) -> None:
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

    def grow_logs(self) -> None:
        """Double the logs of a slot that are full in some lane, keeping their entries."""
        state, lanes = self.state, self.state.lanes
        capacity = state.signal_log.shape[1]
        if np.any(lanes["logged"] == capacity):
            state = state._replace(signal_log=_widened(state.signal_log, 2 * capacity))
        capacity = state.crawl_log.shape[1]
        if np.any(lanes["slot_crawls"] == capacity):
            log, apart = (
                _widened(rows, 2 * capacity) for rows in (state.crawl_log, state.crawl_signals)
            )
            state = state._replace(crawl_log=log, crawl_signals=apart)
        self._adopt(state)

    def num_slots(self, lane: int) -> int:
        """Return the number of crawls in the lane's budget up to its horizon."""
        rows = self.state.clock[lane]
        return slots_until(rows[np.isfinite(rows[:, 0])], self.state.lanes[lane]["horizon"])

    def ledger(self, lane: int) -> Ledger:
        """Return the totals of the lane since its restart."""
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
            penalty_time=float(record["penalty_time"]) if self.state.increments.size else None,
            probes=int(record["probes"]),
            denied=int(record["denied"]),
        )

    def log(self, lane: int) -> CrawlLog:
        """Return the crawls and signals of the last slot, as new arrays."""
        record = self.state.lanes[lane]
        crawls = self.state.crawl_log[lane, : record["slot_crawls"]]
        signals = self.state.signal_log[lane, : record["logged"]]
        received = crawls["signals"].copy()
        if self.num_sources > 1:
            received = self.state.crawl_signals[lane, :, : crawls.size].astype(np.int64)
        return CrawlLog(
            page=crawls["page"].copy(),
            time=crawls["time"].copy(),
            elapsed=crawls["elapsed"].copy(),
            signals=received,
            changed=crawls["changed"].copy(),
            signal_page=signals["page"].copy(),
            signal_time=signals["time"].copy(),
            signal_source=signals["source"].copy(),
            probe=crawls["probe"].copy(),
        )

    def signals(self, lane: int) -> IntArray:
        """Return the signals of each page since its last crawl, (m,) or (S, m), a new array."""
        apart = self.state.source_signals[lane]
        counts = apart if self.num_sources > 1 else self.state.pages[lane]["signals"]
        fresh: IntArray = counts.astype(np.int64)
        return fresh

    def get_state(self) -> dict[str, np.ndarray]:
        """Return copies of all arrays by name."""
        return {name: array.copy() for name, array in self.state._asdict().items()}

    def set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore copies of the arrays returned by :meth:`get_state`.

        Raises:
            ValueError: a state of a world of another size; nothing is changed in this case.
        """
        for name, own in self.state._asdict().items():
            given = arrays.get(name)
            same = GROWING.get(name, own.ndim)
            if given is None or given.dtype != own.dtype or given.shape[:same] != own.shape[:same]:
                raise ValueError(
                    f"state must be of a world of {self.num_lanes} lanes and {self.num_pages} "
                    f"pages like this one, but {name} is {None if given is None else given.shape} "
                    f"instead of {own.shape}"
                )
        self._adopt(State(**{name: arrays[name].copy() for name in State._fields}))

    def _adopt(self, state: State) -> None:
        """Set the arrays of the world.

        ``table`` is the argument of kernels. ``outcomes`` and ``shown`` are tuples of the rows of
        these arrays, because looking up a row takes longer than copying it.
        """
        self.state, self.table = state, address_table(state)
        self.outcomes: tuple[FloatArray, ...] = tuple(state.outcomes)
        self.shown: tuple[NDArray[np.float32], ...] = tuple(state.shown)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out addresses and views: a copy has its own arrays."""
        own = self.__dict__.items()
        return {name: value for name, value in own if name not in ("table", "outcomes", "shown")}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self._adopt(self.state)
