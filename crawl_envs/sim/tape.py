"""Tapes: streams of time-stamped events that no action influences.

A generated tape is drawn block by block from the lane's own stream: gap, code and, for a signal
that travels, delay, one event after the other. Blocks end where the buffer ends, not where a
decision is due, so that bandwidth, slots and actions never shift a draw. A recorded tape lies in
the buffer from the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.arguments import whole
from crawl_envs.kernels import compiled
from crawl_envs.sim.events import (
    BIRTH,
    CHANGE,
    CODE_STRIDE,
    DEATH,
    DELAY_NONE,
    KIND_MASK,
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
from crawl_envs.types import MOST_SOURCES, BoolArray, FloatArray, Instance, IntArray

BLOCK = 64
"""Events of a generated tape that are drawn at once."""


@dataclass(frozen=True, eq=False)
class Tape:
    """A recorded tape.

    Attributes:
        time: time of each event, float64, not decreasing, >= 0.
        code: ``page * CODE_STRIDE + kind`` of each event, int64.
        alive: which pages exist at time 0, (m,) bool; the others are born by an event.
        num_sources: number of sources of signals, S.

    Raises:
        ValueError: arrays disagree in shape, times decrease or are not finite, a code names no
            page, kind or source.
    """

    time: FloatArray
    code: CodeArray
    alive: BoolArray
    num_sources: int = 1

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
        whole("tape num_sources", self.num_sources, 1, MOST_SOURCES)
        known = (kinds < SIGNAL + 2 * self.num_sources) | (kinds == BIRTH) | (kinds == DEATH)
        if np.any(pages < 0) or np.any(pages >= self.alive.size) or not known.all():
            raise ValueError(
                f"tape code must name a page below {self.alive.size} and a kind, with a source "
                f"below {self.num_sources}"
            )

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
        signals: tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike] = ((), ()),
        requests: tuple[ArrayLike, ArrayLike] = ((), ()),
        births: tuple[ArrayLike, ArrayLike] = ((), ()),
        deaths: tuple[ArrayLike, ArrayLike] = ((), ()),
        alive: ArrayLike = True,
        num_sources: int = 1,
    ) -> Tape:
        """Build a tape from lists of (times, pages), in any order.

        ``signals`` may be (times, pages, sources), with sources below ``num_sources``; without,
        they are of source 0. At equal times births come first, then changes, signals, requests
        and deaths.
        """
        source = np.asarray(signals[2] if len(signals) == 3 else np.zeros(np.shape(signals[1])))
        if np.any(source < 0) or np.any(source >= num_sources):
            raise ValueError(
                f"signals must have sources in [0, {num_sources}), got {source.min()} to "
                f"{source.max()}"
            )
        lists: dict[str, tuple[IntArray | int, Sequence[ArrayLike]]] = {
            "births": (BIRTH, births),
            "changes": (CHANGE, changes),
            "signals": (SIGNAL + 2 * source.astype(np.int64), signals[:2]),
            "requests": (REQUEST, requests),
            "deaths": (DEATH, deaths),
        }
        times, codes = [], []
        for name, (kind, (time, page)) in lists.items():
            if np.shape(time) != np.shape(page) or np.shape(kind) not in ((), np.shape(page)):
                raise ValueError(
                    f"{name} must be times and as many pages, or sources, got {np.shape(time)} and "
                    f"{np.shape(page)}"
                )
            times.append(np.asarray(time, np.float64))
            codes.append(np.asarray(page, np.int64) * CODE_STRIDE + kind)
        time, code = np.concatenate(times), np.concatenate(codes)
        order = np.argsort(time, kind="stable")
        mask = np.broadcast_to(np.asarray(alive, np.bool_), (num_pages,)).copy()
        return cls(time[order], code[order], mask, num_sources)


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
def draw_source(record: Any, stream: Stream, alias: Records, time: float) -> Any:
    """Draw the source event after one at ``time``: its time, its code, and the stream after it."""
    gap, stream = draw_gap(stream, record.mean_gap)
    code, stream = draw_code(stream, alias, record.column_bits)
    return time + gap, code, stream


@compiled(forceinline=True)
def draw_block_prompt(record: Any, block: Records, words: UintArray, alias: Records) -> None:
    """Fill a block where signals arrive at once."""
    stream, time, code = loaded(words), record.next_time, record.next_code
    for position in range(block.shape[0]):
        event = block[position]
        event.time, event.code = time, code
        time, code, stream = draw_source(record, stream, alias, time)
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
            change = kind & CHANGE
            push_pending(pending, record.pending, time + delay, code - change)
            record.pending += 1
            code += change - kind
        if kind < SIGNAL or kind & CHANGE or math.isinf(time):
            event.time, event.code = time, code
            position += 1
        time, code, stream = draw_source(record, stream, alias, time)
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
    record.next_time, record.next_code, stream = draw_source(record, stream, state.alias[lane], 0.0)
    store(stream, state.stream[lane])
