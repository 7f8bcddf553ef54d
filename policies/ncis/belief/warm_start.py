"""Warm start of a belief from a recorded history, as if pages were crawled at all their events.

A site's earlier days give change rates, the evidence of signals by channel, and the share of pages
that a broadcast changes. The functions that learn from crawls learn them. An unsignalled change has
a known time, so it counts as a change after an interval without any: with its likelihood,
alpha exp(-alpha tau), a Gamma belief about alpha stays a Gamma distribution. At the end of the
history, every page that exists is crawled once more.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray, Problem
from crawl_envs.types.arguments import quantity
from crawl_envs.types.compiled_policies import Memory
from policies.ncis.belief.activity import found_active
from policies.ncis.belief.kernels import forget, learn, on_birth_or_death, on_signal, renew_page
from policies.ncis.belief.layout import places

BIRTH, DEATH, CHANGE, SIGNAL = range(4)


class History(NamedTuple):
    """The events of m pages in order of time; pages are numbered as in the episodes.

    ``scripts.data.replays.past`` makes it from a part of a recorded trace. Lists
    may replace arrays: a policy uses the history that ``checked`` returns.

    Attributes:
        time: times of the events, in [0, duration], not decreasing, (n,).
        page: pages of the events, (n,) int64.
        kind: BIRTH, DEATH, CHANGE, or SIGNAL plus the number of its source, (n,) int64.
        alive: whether each page existed at time 0, (m,) bool.
        duration: length of the history, > 0.
    """

    time: FloatArray
    page: IntArray
    kind: IntArray
    alive: BoolArray
    duration: float

    def checked(self) -> History:
        """Return a checked copy with arrays of float64, int64 and bool.

        Raises:
            ValueError: an array of another type or length, or out of its range.
        """
        time = _array("time", self.time, "iuf", np.float64)
        page, kind = (
            _array("page", self.page, "iu", np.int64),
            _array("kind", self.kind, "iu", np.int64),
        )
        alive = _array("alive", self.alive, "b", np.bool_)
        lengths = time.size, page.size, kind.size
        if len(set(lengths)) > 1:
            raise ValueError(
                f"history must have a time, page and kind for each event, got {lengths}"
            )
        duration = quantity("history duration", self.duration, above=0.0)
        if not np.all(np.diff(np.concatenate([[0.0], time, [duration]])) >= 0.0):
            raise ValueError(
                f"history time must not decrease and lie in [0, {duration:g}], got {time}"
            )
        for name, values, limit in (("page", page, alive.size), ("kind", kind, math.inf)):
            if values.size and (values.min() < 0 or values.max() >= limit):
                bound = f"in [0, {limit})" if limit < math.inf else ">= 0"
                span = f"{values.min()} to {values.max()}"
                raise ValueError(f"history {name} must be {bound}, got {span}")
        return History(time, page, kind, alive, duration)

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless the history fits a problem's numbers of pages and sources."""
        sources = int(self.kind.max(initial=SIGNAL)) - SIGNAL
        if self.alive.shape != (problem.num_pages,) or sources >= problem.num_sources:
            raise ValueError(
                f"history must be of {problem.num_pages} pages and at most {problem.num_sources} "
                f"sources of signals, got {self.alive.size} and {sources + 1}"
            )


def _array(name: str, value: Any, kinds: str, dtype: type[Any]) -> NDArray[Any]:
    """Return ``value`` as an array of ``dtype``; ValueError unless it has one of ``kinds``."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"history {name} must be an array, got {value!r}") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in kinds):
        raise ValueError(
            f"history {name} must be an array of {np.dtype(dtype).name}, got dtype {array.dtype} "
            f"of shape {array.shape}"
        )
    return np.array(array, dtype)


@inlined()
def crawl_pages(
    memory: Memory,
    history: History,
    start: int,
    end: int,
    alive: BoolArray,
    last: FloatArray,
    changed: BoolArray,
    signalled: BoolArray,
) -> None:
    """Crawl the pages of events ``start`` to ``end - 1`` just before them, and update ``last``."""
    pages, groups, _, shared, group = memory
    columns, now = places(shared), history.time[start]
    signals = np.zeros(columns.sources)
    for k in range(start, end):
        number = history.page[k]
        if alive[number] and history.kind[k] >= CHANGE and last[number] < now:
            outcome = now, now - last[number], signals, False
            learn(memory, number, *outcome)
            last[number] = now
            if changed[number] and not signalled[number]:
                pages[number, 0] += 1.0
                found_active(pages[number], groups[group[number]], shared, columns)
                renew_page(pages[number], groups[group[number]], columns)


@compiled()
def replay_history(memory: Memory, history: History) -> None:
    """Update a belief by a history of events; afterwards every page is fresh, and time is 0."""
    pages, groups, _, shared, group = memory
    time, page, kind, first, duration = history
    columns, alive, last = places(shared), first.copy(), np.zeros(first.shape)
    changed, signalled = np.zeros(first.shape, np.bool_), np.zeros(first.shape, np.bool_)
    signals, start = np.zeros(columns.sources), 0
    for number in range(alive.shape[0]):
        on_birth_or_death(memory, number, 0.0, alive[number])
    while start < time.shape[0]:
        end = start
        while end < time.shape[0] and time[end] == time[start]:
            end += 1
        now = time[start]
        is_signal = kind[start:end] >= SIGNAL
        for k in range(start, end):
            if kind[k] == BIRTH:
                alive[page[k]], last[page[k]] = True, now
                on_birth_or_death(memory, page[k], now, True)
            changed[page[k]] |= kind[k] == CHANGE
            signalled[page[k]] |= kind[k] >= SIGNAL
        crawl_pages(memory, history, start, end, alive, last, changed, signalled)
        signal_page = page[start:end][is_signal]
        sources = kind[start:end][is_signal] - SIGNAL
        on_signal(memory, signal_page, np.full(signal_page.shape, now), sources)
        for k in range(start, end):
            number = page[k]
            if alive[number] and signalled[number]:
                learn(memory, number, now, 0.0, signals, changed[number])
            changed[number], signalled[number] = False, False
            if kind[k] == DEATH:
                alive[number] = False
                on_birth_or_death(memory, number, now, False)
        start = end
    for number in range(alive.shape[0]):
        if alive[number] and last[number] < duration:
            learn(memory, number, duration, duration - last[number], signals, False)
    for number in range(alive.shape[0]):
        forget(pages[number], groups[group[number]], columns)
    groups[:, columns.paced] -= duration
