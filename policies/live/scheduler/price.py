"""The price per unit of cost: the crawl value from which a page that a loop asks for is granted."""

from __future__ import annotations

import math

from policies.live.scheduler.pacing import Pace

LAG = 5.0
"""Most by which the price's logarithm may be below the logarithm of a granted crawl value."""


class Price:
    """A price that crawl values must reach, so that fetches use the bandwidth for the best pages.

    Let f be the share of the largest saving that is left now. A page is granted if its value is
    at least exp(p + 1 - 2 f), or if f is 1, since bandwidth is lost then. ``span`` is the time in
    which the largest saving builds up. While pages are asked for, p rises by 1 - 2 f per span, and
    at most by that between two questions. p is at least the logarithm of a granted value less LAG.
    So p settles where half of the saving is left; silence and closed hosts do not drive it away.

    Pages without a copy are granted by a credit: each grant of another page earns ``new_share``
    / (1 - ``new_share``). If no other page was asked for during ``span``, all are granted.

    Args:
        pace: the clock, and the fetches that may be made and saved.
        new_share: share of the grants for pages without a copy, in (0, 1].

    Attributes:
        log: p; None before the first page is asked for.
        time: when p was changed last.
        last_ask: when a page with a copy was asked for last, None for never.
        credit: number of pages without a copy that may be granted.
    """

    STATE = ("log", "time", "last_ask", "credit")

    def __init__(self, pace: Pace, new_share: float) -> None:
        self.log: float | None = None
        self.last_ask: float | None = None
        self.pace, self.time, self.credit = pace, pace.time, 0.0
        self.earned = 1.0 if new_share == 1.0 else new_share / (1.0 - new_share)

    @property
    def span(self) -> float:
        """The time in which an unused bandwidth fills the largest saving."""
        return self.pace.most_saved / self.pace.bandwidth

    @property
    def fill(self) -> float:
        """The share of the largest saving that is left beyond one fetch, in [0, 1]."""
        share = (self.pace.allowance - 1.0) / (self.pace.most_saved - 1.0)
        return min(max(share, 0.0), 1.0)

    @property
    def value(self) -> float:
        """The crawl value from which on a page is granted; 0 before the first question."""
        return 0.0 if self.log is None else math.exp(self.log + 1.0 - 2.0 * self.fill)

    def takes(self, value: float) -> bool:
        """Return whether a page with a copy is granted by its crawl value, and update the price."""
        now = self.last_ask = self.pace.time
        passed, self.time = min((now - self.time) / self.span, 1.0), now
        if not value > 0.0:
            return False
        fill, level = self.fill, math.log(value)
        missing = 1.0 - 2.0 * fill
        self.log = (level if self.log is None else self.log) + missing * passed
        if fill < 1.0 and level < self.log + missing:
            return False
        self.log = max(self.log, level - LAG)
        self.credit = min(self.credit + self.earned, max(self.earned, 1.0))
        return True

    def takes_new(self) -> bool:
        """Return whether a page without a copy is granted, and spend its credit."""
        now = self.pace.time
        if self.credit < 1.0 and self.last_ask is not None and now < self.last_ask + self.span:
            return False
        self.credit = max(self.credit - 1.0, 0.0)
        return True

    def turn_back(self, by: float) -> None:
        """Move the times of the last change and question back by a time."""
        self.time -= by
        self.last_ask = None if self.last_ask is None else self.last_ask - by

    def state(self) -> list[float | None]:
        """Return the values that change, for :meth:`restore`."""
        return [getattr(self, name) for name in self.STATE]

    def restore(self, state: list[float | None]) -> None:
        """Load the values that :meth:`state` returned."""
        for name, value in zip(self.STATE, state, strict=True):
            setattr(self, name, value)
