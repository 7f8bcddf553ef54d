"""Tapes: streams of time-stamped events, independent of actions.

A generated tape is drawn in blocks from the lane's own stream: gap, code and, for a delayed signal,
delay, event by event. Blocks end with the buffer, not at decisions, so that bandwidth, slots and
actions never shift a draw. A recorded tape is in the buffer from the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.compiled.array_tables import Records
from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.compiled.heap import IndexedHeap, first_due, set_due
from crawl_envs.sim.state import State
from crawl_envs.sim.streams import (
    Stream,
    UintArray,
    loaded,
    next_uniform,
    next_word,
    store,
    stream_of,
    uniform_of,
)
from crawl_envs.types import MAX_SOURCES, BoolArray, FloatArray, Instance, IntArray
from crawl_envs.types.arguments import whole

REQUEST = 0
CHANGE = 1
SIGNAL = 2
CHANGE_SIGNAL = 3
BIRTH = 32
DEATH = 33
SPELL_END = 34
SPELL_START = 35
UPDATE = 36
PRICE = 37
DAY = 38
"""Kinds of events. SPELL_END and SPELL_START have the spell of fragments as ``detail``. UPDATE
replaces ``detail`` fragments by new ones, and changes the page. PRICE has the new price. DAY ends a
day of a market."""
KIND_BITS = 6
CODE_STRIDE = 1 << KIND_BITS
KIND_MASK = CODE_STRIDE - 1

DELAY_NONE, DELAY_CONSTANT, DELAY_EXPONENTIAL, DELAY_POISSON = range(4)


def column_bits(num_sources: int) -> int:
    """Return the number of bits that the kind of an event takes in the columns of an alias table.

    A column is ``page << column_bits | kind``, so that splitting it into both needs no division.
    """
    return (1 + 2 * num_sources).bit_length()


def event_rates(instance: Instance, requests: bool = True) -> FloatArray:
    """Return the rate of events of every page and kind, (m, 2 ** column_bits).

    Kinds from 2 + 2 S on do not exist for S sources, so their rates are 0. Without ``requests`` the
    rates of requests are 0 too.
    """
    rates = np.zeros((instance.num_pages, 1 << column_bits(instance.num_sources)))
    rates[:, REQUEST] = instance.importance * requests
    rates[:, CHANGE] = instance.unsignalled_rate
    end = SIGNAL + 2 * instance.num_sources
    rates[:, SIGNAL:end:2] = np.atleast_2d(instance.false_signal_rate).T
    rates[:, CHANGE_SIGNAL:end:2] = np.atleast_2d(instance.recall * instance.change_rate).T
    return rates


@compiled()
def fill_alias(rates: FloatArray, alias: Records) -> None:
    """Build Walker's alias table of ``rates`` by Vose's method; both have shape (n,).

    Column i means itself below ``alias[i].cut`` and column ``alias[i].other`` above it.
    """
    count = rates.shape[0]
    total = rates.sum()
    below = np.empty(count, np.int64)
    above = np.empty(count, np.int64)
    num_below = num_above = 0
    for column in range(count):
        alias[column].cut = rates[column] * count / total if total > 0.0 else 1.0
        alias[column].other = column
        if alias[column].cut < 1.0:
            below[num_below] = column
            num_below += 1
        else:
            above[num_above] = column
            num_above += 1
    while num_below > 0 and num_above > 0:
        num_below -= 1
        low, high = below[num_below], above[num_above - 1]
        alias[low].other = high
        alias[high].cut -= 1.0 - alias[low].cut
        if alias[high].cut < 1.0:
            num_above -= 1
            below[num_below] = high
            num_below += 1
    for position in range(num_above):
        alias[above[position]].cut = 1.0
    for position in range(num_below):
        alias[below[position]].cut = 1.0


@inlined(forceinline=True)
def draw_gap(stream: Stream, mean: float) -> tuple[float, Stream]:
    """Draw an exponential waiting time of a mean, perhaps inf; return it and the new stream."""
    uniform, stream = next_uniform(stream)
    return -math.log(uniform) * mean, stream


@inlined(forceinline=True)
def code_of(uniform: float, alias: Records, bits: int) -> int:
    """Return the code, page and kind, that a uniform number in (0, 1] chooses from an alias table.

    The columns of the table are pages times 2 ** ``bits`` kinds.
    """
    scaled = (1.0 - uniform) * alias.shape[0]
    column = int(scaled)
    entry = alias[column]
    # arithmetic instead of an unpredictable branch
    column += (scaled - column >= entry.cut) * (entry.other - column)
    return int((column >> bits << KIND_BITS) | (column & ((1 << bits) - 1)))


@inlined(forceinline=True)
def draw_code(stream: Stream, alias: Records, bits: int) -> tuple[int, Stream]:
    """Draw an event's code from an alias table by one word; return it and the new stream."""
    uniform, stream = next_uniform(stream)
    return code_of(uniform, alias, bits), stream


@inlined()
def draw_delay(stream: Stream, kind: int, mean: float, quantum: float) -> tuple[float, Stream]:
    """Draw the delay of a signal (Poisson by inversion); return it and the stream after it."""
    if kind == DELAY_EXPONENTIAL:
        return draw_gap(stream, mean)
    if kind == DELAY_POISSON:
        uniform, stream = next_uniform(stream)
        remaining = 1.0 - uniform
        count_mean = mean / quantum
        probability = math.exp(-count_mean)
        count = 0
        while remaining >= probability and probability > 0.0:
            remaining -= probability
            count += 1
            probability *= count_mean / count
        return count * quantum, stream
    return (mean if kind == DELAY_CONSTANT else 0.0), stream


BLOCK = 64
"""Number of events of a generated tape drawn at once."""


@dataclass(frozen=True, eq=False)
class Tape:
    """A recorded list of the events of an episode, in order of time.

    Attributes:
        time: time of each event, float64, not decreasing, >= 0.
        code: ``page * CODE_STRIDE + kind`` of each event, int64.
        alive: mask of the pages that exist at time 0, (m,) bool; others are born by an event.
        num_sources: number of sources of signals, S.
        detail: ``detail`` of each event, int32; (0,) if no event has one.

    Raises:
        ValueError: arrays disagree in shape, times decrease or are not finite, a code is not of a
            valid page, kind or source.
    """

    time: FloatArray
    code: IntArray
    alive: BoolArray
    num_sources: int = 1
    detail: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

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
        whole("tape num_sources", self.num_sources, 1, MAX_SOURCES)
        last = DAY if self.detail.shape == self.time.shape else DEATH
        valid = (kinds < SIGNAL + 2 * self.num_sources) | ((kinds >= BIRTH) & (kinds <= last))
        if np.any(pages < 0) or np.any(pages >= self.alive.size) or not valid.all():
            raise ValueError(
                f"tape code must name a page below {self.alive.size} and a kind, with a source "
                f"below {self.num_sources}"
            )

    @property
    def mortal(self) -> bool:
        """Whether a page is born or dies during the tape, or does not exist at time 0."""
        kinds = self.code & KIND_MASK
        return not self.alive.all() or bool(np.any((kinds == BIRTH) | (kinds == DEATH)))

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
        """Build a tape from lists of (times, pages) for each kind of event, in any order of time.

        ``signals`` may be (times, pages, sources); sources lie in [0, ``num_sources``) and are 0 by
        default. Events at equal times are ordered as births, changes, signals, requests, deaths.
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


def most_of(mean: float) -> int:
    """Return a bound that a Poisson number of this mean exceeds with probability below 1e-30."""
    return int(mean + 12.0 * math.sqrt(mean)) + 64


def pending_capacity(instance: Instance) -> int:
    """Return an upper bound on the number of an instance's signals that are sent and not arrived.

    These signals are an M/G/infinity queue that starts empty. Their number at any time is Poisson,
    with a mean of at most signal rate times mean delay. (A signal is sent when its event is next.)
    """
    if instance.delay.kind == "none":
        return 0
    return most_of(float(instance.signal_rate.sum()) * instance.delay.mean)


@inlined(forceinline=True)
def draw_source(record: Any, stream: Stream, alias: Records, time: float) -> Any:
    """Draw the next event after ``time``, before delays; return its time, code and the stream."""
    gap, stream = draw_gap(stream, record.mean_gap)
    code, stream = draw_code(stream, alias, record.column_bits)
    return time + gap, code, stream


@inlined()
def draw_block_prompt(record: Any, block: Records, words: UintArray, alias: Records) -> None:
    """Fill a block with the next events of a lane whose signals arrive without delay.

    There are three passes: random words, codes, times. So the processor fetches the alias table's
    entries, which are not in its cache, at the same time.
    """
    stream, bits, mean = loaded(words), record.column_bits, record.mean_gap
    for position in range(block.shape[0]):
        event = block[position]
        event.time, stream = next_uniform(stream)
        word, stream = next_word(stream)
        event.code = np.int64(word >> np.uint64(11))
    store(stream, words)
    for position in range(block.shape[0]):
        block[position].code = code_of(uniform_of(block[position].code), alias, bits)
    time, code = record.next_time, record.next_code
    for position in range(block.shape[0]):
        event = block[position]
        later, following = time - math.log(event.time) * mean, event.code
        event.time, event.code = time, code
        time, code = later, following
    record.next_time, record.next_code = time, code


@inlined(forceinline=True)
def signals_under_way(state: State, lane: int) -> IndexedHeap:
    """Return the heap of a lane's signals that are sent and not arrived, by time of arrival."""
    return IndexedHeap(
        state.pending_due[lane],
        state.pending_entry[lane],
        state.pending_place[lane],
        state.pending_size[lane],
    )


@inlined("pending_code")
def draw_block_delayed(state: State, lane: int) -> None:
    """Fill a lane's block with its next events, with delayed signals at their times of arrival.

    A signal is sent when its event is the next one. A false signal is an event only on arrival.

    Raises:
        RuntimeError: there are more signals under way than the heap can hold.
    """
    record, block, alias = state.lanes[lane], state.tape[lane], state.alias[lane]
    heap, codes = signals_under_way(state, lane), state.pending_code[lane]
    words, time, code = state.stream[lane], record.next_time, record.next_code
    stream = loaded(words)
    position = 0
    while position < block.shape[0]:
        event = block[position]
        if first_due(heap) < time:
            entry = heap.entries[0]
            event.time, event.code = heap.due[entry], codes[entry]
            set_due(heap, entry, math.inf)
            position += 1
            continue
        kind = code & KIND_MASK
        if kind >= SIGNAL and not math.isinf(time):
            delay, stream = draw_delay(
                stream, record.delay_kind, record.delay_mean, record.delay_quantum
            )
            change = kind & CHANGE
            if heap.size[0] == codes.shape[0]:
                raise RuntimeError("there are more signals under way than the heap can hold")
            entry = heap.entries[heap.size[0]]
            codes[entry] = code - change
            set_due(heap, entry, time + delay)
            code += change - kind
        if kind < SIGNAL or kind & CHANGE or math.isinf(time):
            event.time, event.code = time, code
            position += 1
        time, code, stream = draw_source(record, stream, alias, time)
    record.next_time, record.next_code = time, code
    store(stream, words)


@inlined("alias")
def draw_block(state: State, lane: int) -> None:
    """Fill a lane's block with the next events of its tape, and set its cursor to the start."""
    record, block = state.lanes[lane], state.tape[lane]
    if record.delay_kind == DELAY_NONE:
        draw_block_prompt(record, block, state.stream[lane], state.alias[lane])
    else:
        draw_block_delayed(state, lane)
    record.cursor = 0
    record.length = block.shape[0]


@inlined()
def rewind(state: State, lane: int) -> None:
    """Move a lane's cursor to the start of its episode; for a drawn tape, draw the first event."""
    record = state.lanes[lane]
    record.cursor = 0
    if not (record.recorded or record.by_day):
        draw_first(state, lane)


@inlined("alias")
def draw_first(state: State, lane: int) -> None:
    """Draw the first event of a lane's tape, which becomes the next; no signals are under way."""
    record = state.lanes[lane]
    record.length = 0
    state.pending_size[lane, 0] = 0
    for entry in range(state.pending_place.shape[1]):
        state.pending_entry[lane, entry] = entry
        state.pending_place[lane, entry] = -1
    stream = stream_of(record.root, record.episode)
    record.next_time, record.next_code, stream = draw_source(record, stream, state.alias[lane], 0.0)
    store(stream, state.stream[lane])
