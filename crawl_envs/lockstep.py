"""One compiled call per step: every lane crawls, plays on to its next decision, and is observed.

The entry points take the arrays of a State one by one, because that is the fastest way into
compiled code, and put them together inside, where it costs nothing. They return DONE, LOG_FULL
when the log of signals must grow before :func:`resume_lanes`, or the number of a lane whose
action names no page, in which case nothing has happened.
"""

from __future__ import annotations

from typing import Any

from crawl_envs.kernels import compiled
from crawl_envs.observations import write_observation
from crawl_envs.sim.advance import advance, close_slot, crawl, open_slot, restart
from crawl_envs.sim.clock import slot_time
from crawl_envs.sim.state import State

DONE = -1
LOG_FULL = -2


@compiled()
def set_target(state: State, lane: int, batch: int) -> None:
    """Let a lane play up to its next decision, ``batch`` slots on."""
    record = state.lanes[lane]
    record.slot += batch
    record.target = slot_time(state.clock[lane], record.slot)
    record.busy = True


@compiled()
def play(state: State, rows: Any, outcomes: Any, mortal: bool, horizon: float) -> int:
    """Play every busy lane up to its target, observe it and account for its slot."""
    for lane in range(state.lanes.shape[0]):
        record = state.lanes[lane]
        if not record.busy:
            continue
        if not advance(state, lane, record.target):
            return LOG_FULL
        close_slot(state, lane, outcomes)
        write_observation(state, lane, rows[lane], mortal, horizon)
        record.busy = False
    return DONE


# fmt: off
@compiled()
def step_lanes(
    lanes: Any, clock: Any, stream: Any, last_crawl: Any, pages: Any, alive_at_start: Any,
    tape: Any, alias: Any, pending: Any, signal_log: Any, crawl_log: Any,
    crawls: Any, counts: Any, batch: int,
    rows: Any, outcomes: Any, mortal: bool, horizon: float,
) -> int:
    """Crawl the first ``counts[lane]`` of ``crawls[lane]`` in all lanes but idle ones, and play."""
    state = State(lanes, clock, stream, last_crawl, pages, alive_at_start,
                  tape, alias, pending, signal_log, crawl_log)
    for lane in range(lanes.shape[0]):
        for position in range(counts[lane]):
            if not 0 <= crawls[lane, position] < last_crawl.shape[1]:
                return lane
    for lane in range(lanes.shape[0]):
        if not lanes[lane].idle:
            open_slot(state, lane)
            for position in range(counts[lane]):
                crawl(state, lane, crawls[lane, position])
            set_target(state, lane, batch)
    return play(state, rows, outcomes, mortal, horizon)


@compiled()
def restart_lanes(
    lanes: Any, clock: Any, stream: Any, last_crawl: Any, pages: Any, alive_at_start: Any,
    tape: Any, alias: Any, pending: Any, signal_log: Any, crawl_log: Any,
    chosen: Any, batch: int,
    rows: Any, outcomes: Any, mortal: bool, horizon: float,
) -> int:
    """Start an episode in the lanes where ``chosen``, and play up to the first decision."""
    state = State(lanes, clock, stream, last_crawl, pages, alive_at_start,
                  tape, alias, pending, signal_log, crawl_log)
    for lane in range(lanes.shape[0]):
        if chosen[lane]:
            restart(state, lane)
            open_slot(state, lane)
            lanes[lane].reshaped = True
            set_target(state, lane, batch)
    return play(state, rows, outcomes, mortal, horizon)


@compiled()
def resume_lanes(
    lanes: Any, clock: Any, stream: Any, last_crawl: Any, pages: Any, alive_at_start: Any,
    tape: Any, alias: Any, pending: Any, signal_log: Any, crawl_log: Any,
    rows: Any, outcomes: Any, mortal: bool, horizon: float,
) -> int:
    """Go on after LOG_FULL."""
    state = State(lanes, clock, stream, last_crawl, pages, alive_at_start,
                  tape, alias, pending, signal_log, crawl_log)
    return play(state, rows, outcomes, mortal, horizon)
# fmt: on
