"""Parts of the tapes of misspecified instances: changes, signals, delays, requests.

Draws use NumPy arrays, in the order of the code, and depend only on the instance, the generator and
the horizon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.sim.tape import CHANGE, CHANGE_SIGNAL, CODE_STRIDE, REQUEST, SIGNAL, Tape
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.types.delay import Delay


class Occurrences(NamedTuple):
    """Changes, and signals at the times they are sent, in any order.

    Attributes:
        time: times in (0, horizon], (n,).
        page: pages, (n,) int64.
        kind: ``CHANGE``, ``SIGNAL`` (a false signal) or ``CHANGE_SIGNAL`` of
            :mod:`crawl_envs.sim.tape`, (n,) int64.
    """

    time: FloatArray
    page: IntArray
    kind: IntArray


def in_pieces(
    rng: np.random.Generator, start: FloatArray, end: FloatArray, rate: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Draw a Poisson process of constant rate on each interval.

    Args:
        rng: random generator.
        start: start of each interval, >= 0, (k,).
        end: end of each interval, >= start, (k,).
        rate: arrival rate, >= 0, (k,).

    Returns:
        Times in (start, end], unsorted within an interval, and the non-decreasing numbers of their
        intervals.
    """
    length = end - start
    count = rng.poisson(rate * length)
    piece = np.repeat(np.arange(count.size), count)
    return end[piece] - length[piece] * rng.random(piece.size), piece


def blocks(first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return i, and the numbers first[i], ..., first[i] + count[i] - 1, for every i.

    Both arrays have shape (count.sum(),) and are sorted by i.
    """
    row = np.repeat(np.arange(count.size), count)
    return row, np.arange(row.size) - np.repeat(np.cumsum(count) - count - first, count)


def arrivals(
    rng: np.random.Generator, rate: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw a Poisson process on (0, horizon] per entry of ``rate``; return times and rows."""
    count = rng.poisson(rate * horizon)
    row = np.repeat(np.arange(count.size), count)
    return horizon * (1.0 - rng.random(row.size)), row


def signalled(
    rng: np.random.Generator,
    changes: tuple[FloatArray, IntArray],
    recall: FloatArray,
    false_signal_rate: FloatArray,
    horizon: float,
) -> Occurrences:
    """Signal each change with the recall of its page, and add Poisson false signals.

    Args:
        rng: random generator.
        changes: times and pages, (n,) each.
        recall: in [0, 1], (m,).
        false_signal_rate: >= 0, (m,).
        horizon: end of the interval of false signals.
    """
    time, page = changes
    kind = np.where(rng.random(page.size) < recall[page], CHANGE_SIGNAL, CHANGE)
    false_time, false_page = arrivals(rng, false_signal_rate, horizon)
    return Occurrences(
        np.concatenate([time, false_time]),
        np.concatenate([page, false_page]),
        np.concatenate([kind, np.full(false_page.size, SIGNAL)]),
    )


def travel_times(rng: np.random.Generator, delay: Delay, count: int) -> FloatArray:
    """Draw signal delays, (count,); see :class:`crawl_envs.types.delay.Delay`."""
    if delay.kind == "exponential":
        return delay.mean * rng.standard_exponential(count)
    if delay.kind == "poisson":
        return np.asarray(delay.quantum * rng.poisson(delay.mean / delay.quantum, count))
    return np.full(count, delay.mean)


def _delivered(
    rng: np.random.Generator, sent: Occurrences, delay: Delay, horizon: float
) -> Occurrences:
    """Separate signals from changes, delay them, and drop those after the horizon."""
    changes, signals = (np.flatnonzero(sent.kind & bit) for bit in (CHANGE, SIGNAL))
    arrival = sent.time[signals] + travel_times(rng, delay, signals.size)
    kept = arrival <= horizon
    return Occurrences(
        np.concatenate([sent.time[changes], arrival[kept]]),
        np.concatenate([sent.page[changes], sent.page[signals[kept]]]),
        np.repeat([CHANGE, SIGNAL], [changes.size, int(kept.sum())]),
    )


def tape_of(
    rng: np.random.Generator, pages: Instance, sent: Occurrences, delay: Delay, horizon: float
) -> Tape:
    """Return the tape of the occurrences, and of Poisson requests at the rates of importance.

    Every signal, true or false, has a random delay; signals that arrive after the horizon are
    dropped. At equal times changes come before their signals.
    """
    sent = sent if delay.kind == "none" else _delivered(rng, sent, delay, horizon)
    request_time, page = arrivals(rng, pages.importance, horizon)
    time = np.concatenate([sent.time, request_time])
    code = np.concatenate([sent.page * CODE_STRIDE + sent.kind, page * CODE_STRIDE + REQUEST])
    order = np.argsort(time, kind="stable")
    return Tape(time[order], code[order], np.ones(pages.num_pages, np.bool_))
