"""What tapes of stressed worlds are made of: arrivals, signals, how they travel, requests.

Everything is drawn with NumPy, array by array in the order of the code, and no draw depends on
anything but the instance, the generator and the horizon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.sim.tape import CHANGE, CHANGE_SIGNAL, CODE_STRIDE, REQUEST, SIGNAL, Tape
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.types.delay import Delay


class Occurrences(NamedTuple):
    """Changes and signals as they happen and are sent, in any order.

    Attributes:
        time: in (0, horizon], (n,).
        page: (n,) int64.
        kind: ``CHANGE``, ``SIGNAL`` (a false one) or ``CHANGE_SIGNAL`` of
            :mod:`crawl_envs.sim.tape`, (n,) int64.
    """

    time: FloatArray
    page: IntArray
    kind: IntArray


def in_pieces(
    rng: np.random.Generator, start: FloatArray, end: FloatArray, rate: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Draw Poisson processes that each have one rate over one interval.

    Args:
        rng: what is drawn from.
        start: of each interval, (k,), >= 0.
        end: of each interval, (k,), >= start.
        rate: of arrivals within it, (k,), >= 0.

    Returns:
        Times, each in (start, end], unsorted within an interval, and the intervals that they
        belong to, which do not decrease.
    """
    length = end - start
    count = rng.poisson(rate * length)
    piece = np.repeat(np.arange(count.size), count)
    return end[piece] - length[piece] * rng.random(piece.size), piece


def blocks(first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return the numbers first[i], ..., first[i] + count[i] - 1 of every i, and before them the i.

    Both results are (count.sum(),), by i.
    """
    row = np.repeat(np.arange(count.size), count)
    return row, np.arange(row.size) - np.repeat(np.cumsum(count) - count - first, count)


def arrivals(
    rng: np.random.Generator, rate: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw a Poisson process per row of ``rate`` on (0, horizon]: times, and their rows."""
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
    """Send signals of given changes, each with the recall of its page, and Poisson false signals.

    Args:
        rng: what is drawn from.
        changes: times and pages, (n,) each.
        recall: (m,), in [0, 1].
        false_signal_rate: (m,), >= 0.
        horizon: false signals lie in (0, horizon].
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
    """Draw how long signals travel, (count,), as :class:`crawl_envs.types.delay.Delay` says."""
    if delay.kind == "exponential":
        return delay.mean * rng.standard_exponential(count)
    if delay.kind == "poisson":
        return np.asarray(delay.quantum * rng.poisson(delay.mean / delay.quantum, count))
    return np.full(count, delay.mean)


def _delivered(
    rng: np.random.Generator, sent: Occurrences, delay: Delay, horizon: float
) -> Occurrences:
    """Part signals from their changes, and let those that arrive by the horizon arrive."""
    changes, signals = (np.flatnonzero(sent.kind & bit) for bit in (CHANGE, SIGNAL))
    arrival = sent.time[signals] + travel_times(rng, delay, signals.size)
    kept = arrival <= horizon
    return Occurrences(
        np.concatenate([sent.time[changes], arrival[kept]]),
        np.concatenate([sent.page[changes], sent.page[signals[kept]]]),
        np.repeat([CHANGE, SIGNAL], [changes.size, int(kept.sum())]),
    )


def tape_of(
    rng: np.random.Generator, told: Instance, sent: Occurrences, delay: Delay, horizon: float
) -> Tape:
    """Make a tape of what happens to the pages, with Poisson requests at the rates of importance.

    Every signal, true or false, draws how long it travels; one that would arrive after the horizon
    is not on the tape. At equal times changes come before the signals that they sent.
    """
    met = sent if delay.kind == "none" else _delivered(rng, sent, delay, horizon)
    request_time, request_page = arrivals(rng, told.importance, horizon)
    time = np.concatenate([met.time, request_time])
    code = np.concatenate([met.page * CODE_STRIDE + met.kind, request_page * CODE_STRIDE + REQUEST])
    order = np.argsort(time, kind="stable")
    return Tape(time[order], code[order], np.ones(told.num_pages, np.bool_))
