"""Instances whose events differ from the revealed parameters, and parts of their tapes.

Draws use NumPy arrays, in the order of the code, and depend only on the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.tape import CHANGE, CHANGE_SIGNAL, CODE_STRIDE, REQUEST, SIGNAL, Tape
from crawl_envs.types import Delay, FloatArray, Instance, IntArray


class Occurrences(NamedTuple):
    """Changes and signals of pages, the latter at the times when they are sent, in any order.

    Attributes:
        time: times in (0, horizon], (n,).
        page: pages, (n,) int64.
        kind: ``CHANGE``, ``SIGNAL`` (a false signal) or ``CHANGE_SIGNAL`` of
            :mod:`crawl_envs.sim.tape`, (n,) int64.
    """

    time: FloatArray
    page: IntArray
    kind: IntArray


def merged(*parts: tuple[FloatArray, IntArray, IntArray | int]) -> Occurrences:
    """Join several (times, pages, kinds) to one Occurrences; a kind may be one number for all."""
    times, pages, kinds = zip(*parts, strict=True)
    repeated = [np.broadcast_to(kind, page.shape) for kind, page in zip(kinds, pages, strict=True)]
    return Occurrences(*(np.concatenate(column) for column in (times, pages, repeated)))


def in_pieces(
    rng: np.random.Generator, start: FloatArray, end: FloatArray, rate: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Draw a Poisson process on each of k intervals, at the interval's own constant rate.

    Return times in (start, end], unsorted within an interval, and the non-decreasing numbers of
    their intervals.
    """
    length = end - start
    count = rng.poisson(rate * length)
    piece = np.repeat(np.arange(count.size), count)
    return end[piece] - length[piece] * rng.random(piece.size), piece


def arrivals(
    rng: np.random.Generator, rate: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw a Poisson process on (0, horizon] for each entry of ``rate``; return times and rows."""
    count = rng.poisson(rate * horizon)
    row = np.repeat(np.arange(count.size), count)
    return horizon * (1.0 - rng.random(row.size)), row


def members(group: IntArray, wanted: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows whose ``group`` is in ``wanted``, each with the index of its group there.

    Indices ascend, and so do the rows of one index.
    """
    row = np.argsort(group, kind="stable")
    size = np.bincount(group)
    first = np.cumsum(size) - size
    count = size[wanted]
    index = np.repeat(np.arange(wanted.size), count)
    skipped = np.cumsum(count) - count - first[wanted]
    return index, row[np.arange(index.size) - skipped[index]]


def signalled(
    rng: np.random.Generator,
    changes: tuple[FloatArray, IntArray],
    pages: Instance,
    horizon: float,
) -> Occurrences:
    """Return changes, (times, pages), with signals by their pages' recall, and false signals."""
    time, page = changes
    kind = np.where(rng.random(page.size) < pages.recall[page], CHANGE_SIGNAL, CHANGE)
    return merged((time, page, kind), (*arrivals(rng, pages.false_signal_rate, horizon), SIGNAL))


def travel_times(rng: np.random.Generator, delay: Delay, count: int) -> FloatArray:
    """Draw the delays of ``count`` signals, (count,), from a :class:`crawl_envs.types.Delay`."""
    if delay.kind == "exponential":
        return delay.mean * rng.standard_exponential(count)
    if delay.kind == "poisson":
        return np.asarray(delay.quantum * rng.poisson(delay.mean / delay.quantum, count))
    return np.full(count, delay.mean)


def delivered(
    rng: np.random.Generator, sent: Occurrences, delay: Delay, horizon: float
) -> Occurrences:
    """Move each signal, true or false, to its arrival; drop those that arrive after the horizon."""
    if delay.kind == "none":
        return sent
    changes, signals = (np.flatnonzero(sent.kind & bit) for bit in (CHANGE, SIGNAL))
    arrival = sent.time[signals] + travel_times(rng, delay, signals.size)
    in_time = arrival <= horizon
    return merged(
        (sent.time[changes], sent.page[changes], CHANGE),
        (arrival[in_time], sent.page[signals[in_time]], SIGNAL),
    )


HiddenLaw: TypeAlias = Callable[[np.random.Generator, float], Occurrences]


@dataclass(frozen=True, eq=False, init=False)
class Misspecified(CustomEvents):
    """An instance whose events a hidden law draws, at odds with the revealed parameters.

    The attributes of :class:`crawl_envs.types.Instance` are the *revealed* parameters, which may be
    wrong. The documentation of each law states which of them are true.

    Args:
        pages: parameters of the pages, with a single source of signals; they are revealed, except
            those in ``revealed``.
        law: ``law(rng, horizon)`` draws all changes and sent signals in (0, horizon].
        true_delay: delay of signals, by default the revealed one.
        **revealed: revealed parameters that differ from those of ``pages``.

    Raises:
        ValueError: as for :class:`crawl_envs.types.Instance`; several sources of signals.
    """

    pages: Instance
    law: HiddenLaw
    true_delay: Delay

    def __init__(
        self, pages: Instance, law: HiddenLaw, *, true_delay: Delay | None = None, **revealed: Any
    ) -> None:
        if pages.num_sources != 1:
            raise ValueError(f"pages must have 1 source of signals, got {pages.num_sources}")
        parameters = {field.name: getattr(pages, field.name) for field in fields(Instance)}
        super().__init__(**parameters | revealed)
        object.__setattr__(self, "pages", pages)
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "true_delay", true_delay or self.delay)

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return about how many events an episode has, plus one spell per page and unit of time."""
        return super().expected_events(horizon) + self.num_pages * horizon

    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the events of an episode: changes and signals of the law, and Poisson requests.

        At equal times changes come before their signals.
        """
        received = delivered(rng, self.law(rng, horizon), self.true_delay, horizon)
        requests = arrivals(rng, self.importance, horizon)
        time, page, kind = merged(received, (*requests, REQUEST))
        order = np.argsort(time, kind="stable")
        code = (page * CODE_STRIDE + kind)[order]
        return Tape(time[order], code, np.ones(self.num_pages, np.bool_))
