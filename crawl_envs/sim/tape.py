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
from crawl_envs.sim.pending import pop_pending, push_pending
from crawl_envs.sim.state import Records, State
from crawl_envs.sim.streams import Stream, UintArray, loaded, store, stream_of
from crawl_envs.types import BoolArray, FloatArray, Instance

BLOCK = 64
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
def draw_source(stream: Stream, alias: Records, mean_gap: float, time: float) -> Any:
    """Draw the source event after one at ``time``: its time, its code, and the stream after it."""
    gap, stream = draw_gap(stream, mean_gap)
    code, stream = draw_code(stream, alias)
    return time + gap, code, stream


@compiled(forceinline=True)
def draw_block_prompt(record: Any, block: Records, words: UintArray, alias: Records) -> None:
    """Fill a block where signals arrive at once."""
    stream, time, code = loaded(words), record.next_time, record.next_code
    for position in range(block.shape[0]):
        event = block[position]
        event.time, event.code = time, code
        time, code, stream = draw_source(stream, alias, record.mean_gap, time)
    record.next_time, record.next_code = time, code
    store(stream, words)


@compiled()
def draw_block_delayed(
    record: Any, block: Records, words: UintArray, alias: Records, pending: Records
) -> None:
    """Fill a block where signals travel: source events and arrivals, in order of time.

    A signal is sent when its event is the next to happen; a false one shows only on arrival.
    """
    stream, time, code = loaded(words), record.next_time, record.next_code
    position = 0
    while position < block.shape[0]:
        event = block[position]
        if record.pending > 0 and pending[0].time < time:
            event.time, event.code = pending[0].time, pending[0].code
            pop_pending(pending, record.pending)
            record.pending -= 1
            position += 1
            continue
        kind = code & KIND_MASK
        if kind >= SIGNAL and not math.isinf(time):
            delay, stream = draw_delay(
                stream, record.delay_kind, record.delay_mean, record.delay_quantum
            )
            push_pending(pending, record.pending, time + delay, code - kind + SIGNAL)
            record.pending += 1
            code -= SIGNAL
        if kind != SIGNAL or math.isinf(time):
            event.time, event.code = time, code
            position += 1
        time, code, stream = draw_source(stream, alias, record.mean_gap, time)
    record.next_time, record.next_code = time, code
    store(stream, words)


@compiled()
def draw_block(state: State, lane: int) -> None:
    """Fill the lane's block with the next events of its tape."""
    record = state.lanes[lane]
    block, words, alias = state.tape[lane], state.stream[lane], state.alias[lane]
    if record.delay_kind == DELAY_NONE:
        draw_block_prompt(record, block, words, alias)
    else:
        draw_block_delayed(record, block, words, alias, state.pending[lane])
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
    stream = stream_of(record.root, record.episode)
    record.next_time, record.next_code, stream = draw_source(
        stream, state.alias[lane], record.mean_gap, 0.0
    )
    store(stream, state.stream[lane])
