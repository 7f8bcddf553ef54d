"""A clock, and a bandwidth whose unused part is saved for a while."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from crawl_envs.types.arguments import quantity, real, whole
from policies.live.scheduler.calls import CHANGES, QUERIES, locked

ROUNDING = 1e-6
"""Share of a fetch by which the allowance may be short: times are rounded."""


class Fetch(NamedTuple):
    """The answer of :meth:`CrawlScheduler.next`.

    Attributes:
        id: the page to fetch now; None if there is none.
        ask_again: the earliest time at which the answer may be another; ``inf`` if that needs a
            new page or a report.
    """

    id: Any
    ask_again: float


class Pace:
    """A clock, and the fetches that a bandwidth allows up to its time.

    Args:
        bandwidth: fetches per unit of time, > 0.
        start: time of the first call, at least.
        burst: time for which unused bandwidth is saved, >= 0.

    Attributes:
        time: the clock, the largest time of the calls.
        clamped: calls whose time was before the clock.
        empty: a time since which ``bandwidth`` has been allowed.
        taken: fetches since then.
    """

    def __init__(self, bandwidth: float, start: float, burst: float) -> None:
        self.bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        self.time = self.empty = real("start", start)
        self.burst = quantity("burst", burst)
        self.taken = self.clamped = 0

    @property
    def allowance(self) -> float:
        """The fetches that may be made now: those since time ``empty`` without ``taken`` ones."""
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

    def advance(self, time: float) -> None:
        """Move the clock to a time; an earlier one is counted."""
        time = real("time", time)
        self.clamped += time < self.time
        self.time = max(self.time, time)

    def turn_back(self, time: float) -> float:
        """Take the clock back to a time, and return by how much; what is saved is kept."""
        if real("time", time) >= self.time:
            raise ValueError(f"time must be before the clock, {self.time:g}, got {time:g}")
        by = self.time - time
        self.time, self.empty = time, self.empty - by
        return by

    def change(self, time: float, bandwidth: float | None, burst: float | None) -> None:
        """Advance the clock, and change the bandwidth from then on; what is saved is kept."""
        if bandwidth is not None:
            bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        burst = self.burst if burst is None else quantity("burst", burst)
        self.advance(time)
        self.burst, allowance = burst, self.allowance
        if bandwidth is not None:
            self.bandwidth = bandwidth
            self._allow(allowance)

    def limit(self, fetches: float) -> None:
        """Allow at most a number of fetches now."""
        if self.allowance > fetches:
            self._allow(fetches)

    def _allow(self, fetches: float) -> None:
        """Allow a number of fetches now."""
        self.empty, self.taken = self.time - fetches / self.bandwidth, 0

    def allowed(self, count: int) -> int:
        """Return how many of ``count`` fetches may be made now."""
        self.limit(max(self.most_saved, count))
        return max(min(count, math.floor(self.allowance + self._rounding())), 0)

    def ask_again(self, next_chance: Callable[[], float]) -> float:
        """Return the earliest time of a fetch if nothing else happens.

        ``next_chance`` returns the earliest time at which there may be a page, with bandwidth.
        """
        is_used_up = self.is_used_up
        time = self.empty + (self.taken + 1) / self.bandwidth if is_used_up else next_chance()
        return max(time, self.soon)

    @property
    def soon(self) -> float:
        """The first time after the clock."""
        return math.nextafter(self.time, math.inf)

    def state(self) -> dict[str, Any]:
        """Return plain values for :meth:`restore`."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take a state of :meth:`state`."""
        vars(self).update({name: state[name] for name in vars(self)})


class PacedScheduler:
    """Answers ``next`` and ``next_batch`` within a bandwidth; a subclass chooses the pages.

    Threads may share it: its calls wait for each other.

    Args:
        pace: the clock and the bandwidth.

    Attributes:
        idle: time before which no page can be fetched, as far as is known.
        watchers: functions that see each call that changes it: its name, arguments and answer.
    """

    def __init__(self, pace: Pace) -> None:
        self.lock, self.watchers = threading.RLock(), list[Callable[[str, Any, Any], None]]()
        self.pace = pace
        self.idle = -math.inf

    def __init_subclass__(cls) -> None:
        """Let the calls of a subclass wait for those of other threads."""
        for call in set(vars(cls)) & {*CHANGES, *QUERIES}:
            setattr(cls, call, locked(getattr(cls, call)))

    @property
    def time(self) -> float:
        """The clock, the largest time of the calls."""
        return self.pace.time

    @property
    def bandwidth(self) -> float:
        """Fetches per unit of time."""
        return self.pace.bandwidth

    @property
    def burst(self) -> float:
        """Time for which unused bandwidth is saved."""
        return self.pace.burst

    @property
    def clamped(self) -> int:
        """The number of calls whose time was before the clock."""
        return self.pace.clamped

    @property
    def allowance(self) -> float:
        """The fetches that may be made now, limited by ``most_saved`` at the next choice."""
        return self.pace.allowance

    @property
    def most_saved(self) -> float:
        """The most fetches that may be saved."""
        return self.pace.most_saved

    @locked
    def next(self, time: float) -> Fetch:
        """Return the page to fetch at a time, or the time at which to ask again."""
        answer: Fetch | None = self.nothing_yet(time)
        if answer is not None:
            return answer
        pages = self._next(1)
        if len(pages):
            return Fetch(pages[0], self.pace.time)
        self.idle = self.pace.ask_again(self._next_chance)
        return Fetch(None, self.idle)

    @locked
    def nothing_yet(self, time: float) -> Fetch | None:
        """Return the answer of :meth:`next` if it is known to be none and to change nothing."""
        self._advance(time)
        if self.pace.time < self.idle:
            return Fetch(None, self.idle)
        if self.pace.is_used_up:
            return Fetch(None, self.pace.ask_again(self._next_chance))
        return None

    @locked
    def next_batch(self, time: float, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch at a time, best first.

        Raises:
            ValueError: the count is below 1.
        """
        count = whole("count", count, 1)
        self._advance(time)
        return self._next(count)

    def _advance(self, time: float) -> None:
        """Move the clock to a time."""
        self.pace.advance(time)

    def _next(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch now."""
        pages = self._take(min(self.pace.allowed(count), len(self)))
        self.pace.taken += pages.size
        return pages

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        raise NotImplementedError

    def _take(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch now, as if there were bandwidth."""
        raise NotImplementedError

    def _next_chance(self) -> float:
        """Return the earliest time at which there may be another page, with bandwidth."""
        raise NotImplementedError
