"""The times of crawls: slot j is the time at which the integral of the bandwidth reaches j.

With a constant bandwidth R, slot j is at time j / R. Where crawls have costs, j is 1 plus the cost
of all crawls so far. A clock is an array with a row per step of the bandwidth, in order of time:
start of the step, crawls before the start, bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray

SLACK = 1e-9
"""How much of a slot, by rounding, the last crawl may be late, and the cost of crawls too large."""

MAX_SLOTS = 2.0**53


def clock_rows(bandwidth: float, steps: Sequence[Sequence[float]] = ()) -> FloatArray:
    """Return the clock of a bandwidth from time 0 and its later steps, (1 + len(steps), 3)."""
    rows = [(0.0, 0.0, bandwidth)]
    for start, rate in steps:
        before, crawls, old_rate = rows[-1]
        rows.append((start, crawls + (start - before) * old_rate, rate))
    return np.array(rows, dtype=np.float64)


@compiled()
def slot_time(clock: FloatArray, slot: float) -> float:
    """Return the time at which the integral of the bandwidth reaches ``slot``, >= 0."""
    row = 0
    while row + 1 < clock.shape[0] and clock[row + 1, 1] <= slot:
        row += 1
    return float(clock[row, 0] + (slot - clock[row, 1]) / clock[row, 2])


@compiled()
def slot_times(clock: FloatArray, slots: FloatArray) -> FloatArray:
    """Return the times of ``slots`` by a clock, (n,) each."""
    times = np.empty(slots.size)
    for number in range(slots.size):
        times[number] = slot_time(clock, slots[number])
    return times


def crawls_between(clock: FloatArray, start: float, end: float) -> float:
    """Return the crawls that the bandwidth allows from ``start`` to ``end``, its integral."""
    begins = np.clip(clock[:, 0], start, end)
    return float(np.diff(begins, append=end) @ clock[:, 2])


def slots_until(clock: FloatArray, horizon: float) -> int:
    """Return the number of slots of a clock whose time lies in (0, horizon].

    Raises:
        ValueError: as for :func:`budget_until`.
    """
    return int(np.floor(budget_until(clock, horizon)))


def budget_until(clock: FloatArray, horizon: float) -> float:
    """Return the integral of the bandwidth up to the horizon, plus SLACK.

    Raises:
        ValueError: too many slots to count exactly.
    """
    row = int(np.searchsorted(clock[:, 0], horizon, side="right")) - 1
    start, crawls, rate = (float(value) for value in clock[row])
    slots = crawls + (horizon - start) * rate
    if not slots < MAX_SLOTS:
        raise ValueError(
            f"horizon must hold fewer than {MAX_SLOTS:g} crawls or epochs, got {slots:g} with "
            f"horizon {horizon!r} and bandwidth, or 1 / epoch, {rate!r}"
        )
    return slots + SLACK
