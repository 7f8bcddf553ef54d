"""Compare the times of several tasks on a machine with other load.

All tasks run on one pinned core in turns of short spells and are compared within a turn; results
are medians and quartiles over the turns. Spells are measured in processor time, which excludes
other processes. (pytest-benchmark and asv time one task after the other, under different loads, and
compare their medians; neither pairs tasks or checkouts within a turn.)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import FloatArray

Task = Callable[[int], Any]
"""A function that executes some work as many times as its argument says."""


class Spread(NamedTuple):
    """Median, lower quartile and upper quartile of values."""

    median: float
    low: float
    high: float


def spread(values: FloatArray) -> Spread:
    """Return the median and the quartiles of values."""
    low, median, high = np.percentile(values, [25, 50, 75])
    return Spread(float(median), float(low), float(high))


def pin() -> int | None:
    """Pin this process and its future children to a core and return it; None if unsupported."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def timed(tasks: Mapping[str, Task], turns: int, spell: float) -> dict[str, FloatArray]:
    """Time tasks in turn; return the seconds of one execution in each turn, (turns,), by task.

    Args:
        tasks: tasks by name.
        turns: number of turns.
        spell: length of a spell, in seconds.
    """
    times = {name: _times_within(task, spell) for name, task in tasks.items()}
    seconds = np.empty((turns, len(tasks)))
    for turn in seconds:
        turn[:] = [used(task, times[name]) / times[name] for name, task in tasks.items()]
    return dict(zip(tasks, seconds.T, strict=True))


def repeated(call: Callable[..., Any], *arguments: Any, **more: Any) -> Task:
    """Return a task that calls a function again and again with the same arguments."""

    def task(times: int) -> None:
        for _ in range(times):
            call(*arguments, **more)

    return task


def used(call: Callable[..., Any], *arguments: Any) -> float:
    """Call a function; return the processor time that this thread used, in seconds."""
    return taken(call, *arguments, clock=time.thread_time)


def taken(
    call: Callable[..., Any], *arguments: Any, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Call a function; return the seconds that it took by ``clock``, by default wall time."""
    start = clock()
    call(*arguments)
    return clock() - start


def _times_within(task: Task, spell: float) -> int:
    """Warm a task up; return how many repetitions of it fill a spell."""
    times = 1
    task(1)
    while (spent := used(task, times)) < spell / 4.0 and times < 2**40:
        times *= 4 if spent < spell / 16.0 else 2
    return max(1, round(times * spell / max(spent, 1e-9)))
