"""The times of crawls: slot j is the time at which the integral of the bandwidth reaches j.

With a constant bandwidth R that is j / R. Where crawls have costs, j is 1 plus the cost of all
crawls so far. A clock is an array of rows (start, crawls before,
bandwidth), one per step of the bandwidth, in order of time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray

SLACK = 1e-9
"""Rounding tolerance of the last crawl before the horizon, and of costs, as a share of a slot."""

MAX_SLOTS = 2.0**53


def clock_rows(bandwidth: float, steps: Sequence[Sequence[float]] = ()) -> FloatArray:
    """Return the clock of a bandwidth and its later steps, (1 + len(steps), 3)."""
    rows = [(0.0, 0.0, bandwidth)]
    for start, rate in steps:
        before, crawls, old_rate = rows[-1]
        rows.append((start, crawls + (start - before) * old_rate, rate))
    return np.array(rows, dtype=np.float64)


@compiled()
def slot_time(clock: FloatArray, slot: float) -> float:
    """Return the time at which the integral of the bandwidth reaches ``slot`` >= 0."""
    row = 0
    while row + 1 < clock.shape[0] and clock[row + 1, 1] <= slot:
        row += 1
    return float(clock[row, 0] + (slot - clock[row, 1]) / clock[row, 2])


@compiled()
def slot_times(clock: FloatArray, slots: FloatArray) -> FloatArray:
    """Return the times of slots, (n,)."""
    times = np.empty(slots.size)
    for number in range(slots.size):
        times[number] = slot_time(clock, slots[number])
    return times


def crawls_between(clock: FloatArray, start: float, end: float) -> float:
    """Return the integral of the bandwidth from ``start`` to ``end``."""
    begins = np.clip(clock[:, 0], start, end)
    return float(np.diff(begins, append=end) @ clock[:, 2])


def slots_until(clock: FloatArray, horizon: float) -> int:
    """Return the number of slots in (0, horizon]; errors as for :func:`budget_until`."""
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
