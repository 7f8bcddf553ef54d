"""A clock, and a bandwidth whose unused part is saved for a while."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from crawl_envs.types.arguments import quantity, real, whole
from policies.live.scheduler.calls import CHANGES, QUERIES, locked
from policies.live.scheduler.spending import Spending

ROUNDING = 1e-6
"""Cost of fetches by which the allowance may be too small, since times are rounded."""


class Fetch(NamedTuple):
    """The answer of :meth:`CrawlScheduler.next`.

    Attributes:
        id: the page to fetch now; None if there is none.
        ask_again: the earliest time at which the answer may change; ``inf`` if it can only
            change by a new page or a report.
    """

    id: Any
    ask_again: float


class Pace:
    """A clock, and the fetches that a bandwidth allows up to its time.

    A fetch is allowed while a cost of 1 is; its cost is then taken, if need be as a debt.

    Args:
        bandwidth: cost of fetches per unit of time, > 0; a fetch costs 1 where none is known.
        start: where the clock starts; the first call has this time or a later one.
        burst: time for which unused bandwidth is saved, >= 0.

    Attributes:
        time: the clock, the largest time of the calls.
        clamped: calls whose time was before the clock.
        empty: a past time at which the allowance was 0; it grows by ``bandwidth`` since then.
        taken: cost of the fetches since time ``empty``.
        spending: the spend of fetches and its cap; None without costs.
    """

    def __init__(self, bandwidth: float, start: float, burst: float) -> None:
        self.bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        self.time = self.empty = real("start", start)
        self.burst = quantity("burst", burst)
        self.taken: float = 0
        self.clamped = 0
        self.spending: Spending | None = None

    @property
    def allowance(self) -> float:
        """The cost of fetches that may be made now: that since ``empty`` less ``taken``."""
        return self.bandwidth * (self.time - self.empty) - self.taken

    @property
    def most_saved(self) -> float:
        """The largest cost of fetches that may be saved for later, with 1 for the next."""
        return 1.0 + self.burst * self.bandwidth

    @property
    def fetch_rate(self) -> float:
        """The fetches per unit of time that the bandwidth pays."""
        return self.bandwidth / self.mean_cost

    @property
    def mean_cost(self) -> float:
        """The mean cost of a fetch."""
        return 1.0 if self.spending is None else self.spending.mean

    @property
    def is_used_up(self) -> bool:
        """Whether no fetch may be made now, by the bandwidth."""
        return self.allowance < 1.0 - self._rounding()

    @property
    def is_capped(self) -> bool:
        """Whether no fetch may be made now, by the cap."""
        return self.spending is not None and self.spending.room(self.time, 1) == 0

    @property
    def balance(self) -> float:
        """The cost of fetches up to which a further one may be made now."""
        if self.spending is None:
            return math.inf
        return self.allowance + self._rounding() - 1.0

    def _rounding(self) -> float:
        return ROUNDING + self.bandwidth * math.ulp(self.time)

    def advance(self, time: float) -> None:
        """Move the clock forward to a time; count a time before the clock and ignore it."""
        time = real("time", time)
        self.clamped += time < self.time
        self.time = max(self.time, time)

    def turn_back(self, time: float) -> float:
        """Set the clock back to a time; return the difference, and keep the saved fetches."""
        if real("time", time) >= self.time:
            raise ValueError(f"time must be before the clock, {self.time:g}, got {time:g}")
        by = self.time - time
        self.time, self.empty = time, self.empty - by
        if self.spending is not None:
            self.spending.turn_back(time)
        return by

    def use_costs(self, spending: Spending) -> None:
        """Begin to count costs; with small ones the next fetch need not wait for a cost of 1."""
        self.spending = spending
        self.empty -= (1.0 - min(spending.mean, 1.0)) / self.bandwidth

    def change(
        self, time: float, bandwidth: float | None, burst: float | None, cap: float | None
    ) -> None:
        """Advance the clock, then change the bandwidth, burst and cap; keep the saved fetches."""
        limit = None if cap is None else (self.spending or Spending()).check_cap(cap)
        if bandwidth is not None:
            bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        burst = self.burst if burst is None else quantity("burst", burst)
        self.advance(time)
        self.burst, allowance = burst, self.allowance
        if self.spending is not None:
            self.spending.cap = self.spending.cap if limit is None else limit
        if bandwidth is not None:
            self.bandwidth = bandwidth
            self._allow(allowance)

    def limit(self, spend: float) -> None:
        """Cut the cost of fetches that may be made now to a number, if it is larger."""
        if self.allowance > spend:
            self._allow(spend)

    def _allow(self, spend: float) -> None:
        """Set the cost of fetches that may be made now."""
        self.empty, self.taken = self.time - spend / self.bandwidth, 0

    def allowed(self, count: int) -> int:
        """Return how many of ``count`` fetches may be made now; with costs, at most."""
        if self.spending is not None:
            self.limit(max(self.most_saved, 1.0 + (count - 1) * self.spending.mean))
            return 0 if self.is_used_up else self.spending.room(self.time, count)
        self.limit(max(self.most_saved, count))
        return max(min(count, math.floor(self.allowance + self._rounding())), 0)

    def ask_again(self, next_chance: Callable[[], float]) -> float:
        """Return the earliest time at which a fetch may be made if nothing else happens.

        ``next_chance`` returns the earliest time at which a page is available.
        """
        is_used_up = self.is_used_up
        time = self.empty + (self.taken + 1) / self.bandwidth if is_used_up else -math.inf
        if self.spending is not None and self.is_capped:
            time = max(time, self.spending.opens(self.time))
        elif not is_used_up:
            time = next_chance()
        return max(time, self.soon)

    @property
    def soon(self) -> float:
        """The next floating-point number after the clock's time."""
        return math.nextafter(self.time, math.inf)

    def state(self) -> dict[str, Any]:
        """Return all attributes by name, for :meth:`restore`."""
        spending = None if self.spending is None else dict(vars(self.spending))
        return vars(self) | {"spending": spending}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load the attributes that :meth:`state` returned."""
        vars(self).update({name: state[name] for name in vars(self) if name in state})
        if state.get("spending") is not None:
            self.spending = Spending(**state["spending"])


class PacedScheduler:
    """The base of schedulers: hands out pages within a bandwidth; subclasses choose the pages.

    Threads may share it: its calls wait for each other.

    Args:
        pace: the clock and the bandwidth.

    Attributes:
        idle: time before which it is known that no page can be fetched.
        watchers: functions that are called with the name, arguments and answer of each call that
            changes this scheduler.
    """

    def __init__(self, pace: Pace) -> None:
        self.lock, self.watchers = threading.RLock(), list[Callable[[str, Any, Any], None]]()
        self.pace = pace
        self.idle = -math.inf

    def __init_subclass__(cls) -> None:
        """Wrap the methods of a subclass so that they wait for calls of other threads."""
        for call in set(vars(cls)) & {*CHANGES, *QUERIES}:
            setattr(cls, call, locked(getattr(cls, call)))

    @property
    def time(self) -> float:
        """The clock, the largest time of the calls."""
        return self.pace.time

    @property
    def bandwidth(self) -> float:
        """Cost of fetches per unit of time."""
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
        """The cost of fetches that may be made now, cut to ``most_saved`` at the next choice."""
        return self.pace.allowance

    @property
    def most_saved(self) -> float:
        """The largest cost of fetches that may be saved."""
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
        """Return the answer of :meth:`next` if it is known that no page is due; None else."""
        self._advance(time)
        if self.pace.time < self.idle:
            return Fetch(None, self.idle)
        if self.pace.is_used_up or (self.pace.spending is not None and self.pace.is_capped):
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
        return self._take(min(self.pace.allowed(count), len(self)))

    def _not_before_clock(self, time: float | None) -> float:
        """Return a given time, or the clock's if the time is None or earlier."""
        return self.time if time is None else max(self.time, real("time", time))

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        raise NotImplementedError

    def _take(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch now, and take them of the pace."""
        raise NotImplementedError

    def _next_chance(self) -> float:
        """Return the earliest time at which a page may be available, whatever the bandwidth."""
        raise NotImplementedError
