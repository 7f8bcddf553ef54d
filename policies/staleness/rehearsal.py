"""A recorded history, taken in as if every page had been crawled whenever anything was heard of it.

It is what a site's earlier days teach: how often pages change, what signals of each channel tell,
what share of its pages a broadcast changes. It goes through the functions that learn from crawls.
The time from the last that is heard of a page to the end teaches nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.compiled_forms import Memory
from crawl_envs.kernels import compiled
from crawl_envs.types import BoolArray, FloatArray, IntArray, Problem
from policies.staleness.kernels import forget, hear, learn, meet
from policies.staleness.layout import places

BIRTH, DEATH, CHANGE, SIGNAL = range(4)


class History(NamedTuple):
    """What happened to m pages in order of time; the rows of pages are those of the episodes.

    Attributes:
        time: of each event, in [0, duration], not decreasing, (n,).
        page: of each event, (n,) int64.
        kind: BIRTH, DEATH, CHANGE, or SIGNAL plus the number of its source, (n,) int64.
        alive: which pages existed at time 0, (m,) bool.
        duration: of the history, > 0.
    """

    time: FloatArray
    page: IntArray
    kind: IntArray
    alive: BoolArray
    duration: float

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless the history is one, of the pages and sources of a problem."""
        shapes = {array.shape for array in (self.time, self.page, self.kind)}
        if len(shapes) > 1 or self.time.ndim != 1:
            raise ValueError(
                f"history must have a time, page and kind for each event, got {shapes}"
            )
        sources = int(self.kind.max(initial=SIGNAL)) - SIGNAL
        if self.alive.shape != (problem.num_pages,) or sources >= problem.num_sources:
            raise ValueError(
                f"history must be of {problem.num_pages} pages and at most {problem.num_sources} "
                f"sources of signals, got {self.alive.size} and {sources + 1}"
            )
        if not 0.0 < self.duration < np.inf:
            raise ValueError(f"history duration must be > 0 and finite, got {self.duration!r}")
        times = np.concatenate([[0.0], self.time, [self.duration]])
        if not np.all(np.diff(times) >= 0.0):
            raise ValueError(
                f"history time must not decrease and lie in [0, {self.duration:g}], got {self.time}"
            )
        for name, values, most in (
            ("page", self.page, problem.num_pages),
            ("kind", self.kind, SIGNAL + problem.num_sources),
        ):
            if values.size and not 0 <= values.min() <= values.max() < most:
                raise ValueError(
                    f"history {name} must lie in [0, {most}), got {values.min()} to {values.max()}"
                )


def rehearse(memory: Memory, history: History) -> None:
    """Take in a history; then every page is fresh, and time begins at 0."""
    _rehearse(
        *memory, history.time, history.page, history.kind, history.alive.copy(), history.duration
    )


@compiled()
def _rehearse(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    time: FloatArray,
    page: IntArray,
    kind: IntArray,
    alive: BoolArray,
    duration: float,
) -> None:
    at = places(shared)
    last, changed = np.zeros(alive.shape), np.zeros(alive.shape, np.bool_)
    signalled = np.zeros(alive.shape, np.bool_)
    signals, start = np.zeros(at.sources), 0
    for number in range(alive.shape[0]):
        meet(pages, groups, events, shared, group, number, 0.0, alive[number])
    while start < time.shape[0]:
        end = start
        while end < time.shape[0] and time[end] == time[start]:
            end += 1
        now = time[start]
        told = kind[start:end] >= SIGNAL
        for k in range(start, end):
            if kind[k] == BIRTH:
                alive[page[k]], last[page[k]] = True, now
                meet(pages, groups, events, shared, group, page[k], now, True)
            changed[page[k]] |= kind[k] == CHANGE
            signalled[page[k]] |= kind[k] >= SIGNAL
        for k in range(start, end):
            number = page[k]
            if alive[number] and kind[k] >= CHANGE and last[number] < now:
                alone = changed[number] and not signalled[number]
                found = now, now - last[number], signals, alone
                learn(pages, groups, events, shared, group, number, *found)
                last[number] = now
        heard = page[start:end][told]
        sources = kind[start:end][told] - SIGNAL
        hear(pages, groups, events, shared, group, heard, np.full(heard.shape, now), sources)
        for k in range(start, end):
            number = page[k]
            if alive[number] and signalled[number]:
                learn(
                    pages, groups, events, shared, group, number, now, 0.0, signals, changed[number]
                )
            changed[number], signalled[number] = False, False
            if kind[k] == DEATH:
                alive[number] = False
                meet(pages, groups, events, shared, group, number, now, False)
        start = end
    for number in range(alive.shape[0]):
        forget(pages[number], groups[group[number]], at)
    groups[:, at.paced] -= duration
