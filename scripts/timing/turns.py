"""How to time several things against each other on a machine that does other work as well.

Everything runs on one pinned core, takes turns in short spells, and is compared within a turn;
medians over the turns are told, with quartiles. Spells are measured in processor time, so that
time in which the core was given to others does not count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import FloatArray

Task = Callable[[int], Any]
"""Does a thing the given number of times."""


class Spread(NamedTuple):
    """Median and quartiles."""

    median: float
    low: float
    high: float


def spread(values: FloatArray) -> Spread:
    """Return the median and the quartiles of some values."""
    low, median, high = np.percentile(values, [25, 50, 75])
    return Spread(float(median), float(low), float(high))


def pin() -> int | None:
    """Keep this process, and those that it starts, on one core; None where that cannot be done."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def take_turns(tasks: Mapping[str, Task], turns: int, spell: float) -> Iterator[dict[str, float]]:
    """Yield, per turn, the seconds that each task took per time it was done.

    Args:
        tasks: what to do, by name.
        turns: how often everything has its spell.
        spell: seconds that a spell is to last.
    """
    times = {name: _times_within(task, spell) for name, task in tasks.items()}
    for _ in range(turns):
        yield {name: _seconds(task, times[name]) / times[name] for name, task in tasks.items()}


def _seconds(task: Task, times: int) -> float:
    """Return the processor time that this thread takes to do a task some times."""
    start = time.thread_time()
    task(times)
    return time.thread_time() - start


def _times_within(task: Task, spell: float) -> int:
    """Return how often a task is done within a spell; on the way it is warmed up."""
    times = 1
    task(1)
    while (taken := _seconds(task, times)) < spell / 4.0 and times < 2**40:
        times *= 4 if taken < spell / 16.0 else 2
    return max(1, round(times * spell / max(taken, 1e-9)))
