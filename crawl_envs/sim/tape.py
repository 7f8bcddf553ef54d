"""Tapes: streams of time-stamped events that no action influences.

A generated tape is drawn block by block from the lane's own stream: gap, code and, for a signal
that travels, delay, one event after the other. Blocks end where the buffer ends, not where a
decision is due, so that bandwidth, slots and actions never shift a draw. A recorded tape lies in
the buffer from the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.kernels import compiled
from crawl_envs.sim.events import (
    BIRTH,
    CHANGE,
    CODE_STRIDE,
    DEATH,
    DELAY_NONE,
    KIND_MASK,
    KINDS,
    REQUEST,
    SIGNAL,
    CodeArray,
    draw_code,
    draw_delay,
    draw_gap,
)
from crawl_envs.sim.state import Records, State, pop_pending, push_pending
from crawl_envs.sim.streams import UintArray, seed_stream
from crawl_envs.types import BoolArray, FloatArray, Instance

BLOCK = 256
"""Events of a generated tape that are drawn at once."""


@dataclass(frozen=True, eq=False)
class Tape:
    """A recorded tape.

    Attributes:
        time: time of each event, float64, not decreasing, >= 0.
        code: ``page * CODE_STRIDE + kind`` of each event, int32.
        alive: which pages exist at time 0, (m,) bool; the others are born by an event.

    Raises:
        ValueError: arrays disagree in shape, times decrease or are not finite, a code names no
            page or kind.
    """

    time: FloatArray
    code: CodeArray
    alive: BoolArray

    def __post_init__(self) -> None:
        if self.time.shape != self.code.shape or self.time.ndim != 1:
            raise ValueError(
                f"tape time and code must be 1-D of one length, got {self.time.shape} "
                f"and {self.code.shape}"
            )
        if not np.all(np.isfinite(self.time)) or np.any(self.time < 0.0):
            raise ValueError("tape time must be finite and >= 0")
        late = np.flatnonzero(np.diff(self.time) < 0.0)
        if late.size:
            raise ValueError(f"tape time must not decrease, but does at event {late[0] + 1}")
        pages, kinds = np.divmod(self.code, CODE_STRIDE)
        if np.any(pages < 0) or np.any(pages >= self.alive.size) or np.any(kinds >= KINDS):
            raise ValueError(f"tape code must name a page below {self.alive.size} and a kind")

    @property
    def mortal(self) -> bool:
        """Whether pages are born or die."""
        return not self.alive.all() or bool(np.any(self.code & KIND_MASK >= BIRTH))

    @classmethod
    def of_events(
        cls,
        num_pages: int,
        *,
        changes: tuple[ArrayLike, ArrayLike] = ((), ()),
        signals: tuple[ArrayLike, ArrayLike] = ((), ()),
        requests: tuple[ArrayLike, ArrayLike] = ((), ()),
        births: tuple[ArrayLike, ArrayLike] = ((), ()),
        deaths: tuple[ArrayLike, ArrayLike] = ((), ()),
        alive: ArrayLike = True,
    ) -> Tape:
        """Build a tape from lists of (times, pages), in any order.

        At equal times births come first, then changes, signals, requests and deaths.
        """
        lists = {
            "births": (BIRTH, births),
            "changes": (CHANGE, changes),
            "signals": (SIGNAL, signals),
            "requests": (REQUEST, requests),
            "deaths": (DEATH, deaths),
        }
        for name, (_, (time, page)) in lists.items():
            if np.shape(time) != np.shape(page):
                raise ValueError(
                    f"{name} must be times and as many pages, got {np.shape(time)} and "
                    f"{np.shape(page)}"
                )
        times = [np.asarray(time, np.float64) for _, (time, _) in lists.values()]
        codes = [
            np.asarray(page, np.int64) * CODE_STRIDE + kind for kind, (_, page) in lists.values()
        ]
        time, code = np.concatenate(times), np.concatenate(codes)
        order = np.argsort(time, kind="stable")
        mask = np.broadcast_to(np.asarray(alive, np.bool_), (num_pages,)).copy()
        return cls(time[order], code[order].astype(np.int32), mask)


def pending_capacity(instance: Instance) -> int:
    """Return a number of signals under way that is never reached.

    Signals under way are an M/G/infinity queue that starts empty: at any time their number is
    Poisson with a mean of at most rate times mean delay, and twelve standard deviations and 64
    more are beyond 1e-30. (A signal is sent when its event is the next to happen, not before.)
    """
    if instance.delay.kind == "none":
        return 0
    mean = float(instance.signal_rate.sum()) * instance.delay.mean
    return int(mean + 12.0 * math.sqrt(mean)) + 64


@compiled(forceinline=True)
def draw_next(record: Any, stream: UintArray, alias: Records) -> None:
    """Draw the lane's next source event: its time, then its code."""
    record.next_time += draw_gap(stream, record.mean_gap)
    record.next_code = draw_code(stream, alias)


@compiled()
def send_signal(record: Any, stream: UintArray, pending: Records) -> bool:
    """Put the signal of the next source event on its way; True where nothing else shows of it."""
    kind = record.next_code & KIND_MASK
    if kind < SIGNAL or math.isinf(record.next_time):
        return False
    delay = draw_delay(stream, record.delay_kind, record.delay_mean, record.delay_quantum)
    code = record.next_code - kind + SIGNAL
    push_pending(pending, record.pending, record.next_time + delay, code)
    record.pending += 1
    record.next_code -= SIGNAL
    return bool(kind == SIGNAL)


@compiled()
def draw_block_delayed(
    record: Any, block: Records, stream: UintArray, alias: Records, pending: Records
) -> None:
    """Fill a block where signals travel: source events and arrivals, in order of time."""
    position = 0
    while position < block.shape[0]:
        event = block[position]
        if record.pending > 0 and pending[0].time < record.next_time:
            event.time, event.code = pending[0].time, pending[0].code
            pop_pending(pending, record.pending)
            record.pending -= 1
            position += 1
        else:
            if not send_signal(record, stream, pending):
                event.time, event.code = record.next_time, record.next_code
                position += 1
            draw_next(record, stream, alias)


@compiled(forceinline=True)
def draw_block_prompt(record: Any, block: Records, stream: UintArray, alias: Records) -> None:
    """Fill a block where signals arrive at once."""
    for position in range(block.shape[0]):
        event = block[position]
        event.time, event.code = record.next_time, record.next_code
        draw_next(record, stream, alias)


@compiled()
def draw_block(state: State, lane: int) -> None:
    """Fill the lane's block with the next events of its tape."""
    record = state.lanes[lane]
    block, stream, alias = state.tape[lane], state.stream[lane], state.alias[lane]
    if record.delay_kind == DELAY_NONE:
        draw_block_prompt(record, block, stream, alias)
    else:
        draw_block_delayed(record, block, stream, alias, state.pending[lane])
    record.cursor = 0
    record.length = block.shape[0]


@compiled()
def rewind(state: State, lane: int) -> None:
    """Put the lane's tape at the start of its episode."""
    record = state.lanes[lane]
    record.cursor = 0
    if record.recorded:
        return
    record.length = 0
    record.pending = 0
    record.next_time = 0.0
    seed_stream(state.stream[lane], record.root, record.episode)
    draw_next(record, state.stream[lane], state.alias[lane])
