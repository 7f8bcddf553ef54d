"""A clock, and a bandwidth whose unused part is saved for a while."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types.arguments import quantity, real, whole
from policies.scheduler.calls import CHANGES, QUERIES, locked

ROUNDING = 1e-6
"""Share of a fetch by which the allowance may be short: times are rounded."""
SAVED = ("time", "bandwidth", "burst", "empty", "taken", "clamped")
"""Attributes that are the state."""


class Fetch(NamedTuple):
    """The answer of :meth:`CrawlScheduler.next`.

    Attributes:
        id: the page to fetch now; None if there is none.
        ask_again: the earliest time at which the answer may be another; ``inf`` if that needs a
            new page or a report.
    """

    id: Any
    ask_again: float


class PacedScheduler:
    """Answers ``next`` and ``next_batch`` within a bandwidth; a subclass chooses the pages.

    Threads may share it: its calls wait for each other.

    Args:
        bandwidth: fetches per unit of time, > 0.
        start: time of the first call, at least.
        burst: time for which unused bandwidth is saved, >= 0.

    Attributes:
        time: the clock, the largest time of the calls.
        clamped: calls whose time was before the clock.
        empty: a time since which ``bandwidth`` has been allowed.
        taken: fetches since then.
        idle: time before which no page can be fetched, as far as is known.
        watchers: functions that see each call that changes it: its name, arguments and answer.
    """

    def __init__(self, bandwidth: float, start: float, burst: float) -> None:
        self.lock, self.watchers = threading.RLock(), list[Callable[[str, Any, Any], None]]()
        self.bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        self.time = self.empty = real("start", start)
        self.burst = quantity("burst", burst)
        self.taken = self.clamped = 0
        self.idle = -math.inf

    def __init_subclass__(cls) -> None:
        """Let the calls of a subclass wait for those of other threads."""
        for call in set(vars(cls)) & {*CHANGES, *QUERIES}:
            setattr(cls, call, locked(getattr(cls, call)))

    @locked
    def next(self, time: float) -> Fetch:
        """Return the page to fetch at a time, or the time at which to ask again."""
        known: Fetch | None = self.nothing_yet(time)
        if known is not None:
            return known
        pages = self._next(1)
        if len(pages):
            return Fetch(pages[0], self.time)
        self.idle = self._ask_again()
        return Fetch(None, self.idle)

    @locked
    def nothing_yet(self, time: float) -> Fetch | None:
        """Return the answer of :meth:`next` if it is known to be none and to change nothing."""
        self._advance(real("time", time))
        if self.time < self.idle:
            return Fetch(None, self.idle)
        return Fetch(None, self._ask_again()) if self.is_used_up else None

    @locked
    def next_batch(self, time: float, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch at a time, best first.

        Raises:
            ValueError: the count is below 1.
        """
        count = whole("count", count, 1)
        self._advance(real("time", time))
        return self._next(count)

    def _next(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch now."""
        most = max(self.most_saved, count)
        if self.allowance > most:
            self._allow(most)
        allowed = min(count, math.floor(self.allowance + self._rounding()), len(self))
        pages = self._take(max(allowed, 0))
        self.taken += pages.size
        return pages

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        raise NotImplementedError

    def _take(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch now, as if there were bandwidth."""
        raise NotImplementedError

    def _next_chance(self) -> float:
        """Return the earliest time at which there may be another page, as if likewise."""
        raise NotImplementedError

    def _change_pace(self, time: float, bandwidth: float | None, burst: float | None) -> None:
        """Advance the clock, and change the bandwidth from then on; what is saved is kept."""
        if bandwidth is not None:
            bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        burst = self.burst if burst is None else quantity("burst", burst)
        self._advance(real("time", time))
        self.burst, allowance = burst, self.allowance
        if bandwidth is not None:
            self.bandwidth = bandwidth
            self._allow(allowance)

    def _allow(self, fetches: float) -> None:
        """Allow a number of fetches now."""
        self.empty, self.taken = self.time - fetches / self.bandwidth, 0

    @property
    def allowance(self) -> float:
        """The fetches that may be made now: those since time ``empty`` but for ``taken`` ones."""
        return self.bandwidth * (self.time - self.empty) - self.taken

    @property
    def most_saved(self) -> float:
        """The most fetches that may be saved."""
        return 1.0 + self.burst * self.bandwidth

    @property
    def is_used_up(self) -> bool:
        """Whether no fetch may be made now."""
        return self.allowance < 1.0 - self._rounding()

    def _rounding(self) -> float:
        return ROUNDING + self.bandwidth * math.ulp(self.time)

    def _advance(self, time: float) -> None:
        """Move the clock to a time; an earlier one is counted."""
        self.clamped += time < self.time
        self.time = max(self.time, time)

    def _turn_back(self, time: float) -> float:
        """Take the clock back to a time, and return by how much; what is saved is kept."""
        if real("time", time) >= self.time:
            raise ValueError(f"time must be before the clock, {self.time:g}, got {time:g}")
        by = self.time - time
        self.time, self.empty = time, self.empty - by
        return by

    def _ask_again(self) -> float:
        """Return the earliest time of a fetch if nothing else happens."""
        if self.is_used_up:
            time = self.empty + (self.taken + 1) / self.bandwidth
        else:
            time = self._next_chance()
        return max(time, float(np.nextafter(self.time, math.inf)))
