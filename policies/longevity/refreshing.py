"""Policies that refresh pages by the utility of a refresh, with a threshold or with a budget.

Olston and Pandey (2008), section 2.2: refresh exactly the pages whose utility has reached the
threshold T; the cost follows from T. With a budget instead, the pages with the largest utility are
refreshed, as many as the budget allows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import real
from crawl_envs.types.copies import Sketches
from policies.base.binding import LearningPolicy
from policies.estimators.divergence.profiles import Footprint

ROUNDING = 1e-9
"""Relative tolerance of the times and utilities at which a page is due."""


class Urgency(NamedTuple):
    """The urgency of pages.

    Attributes:
        utility: importance times utility of a refresh now, (m,), >= 0.
        overdue: share of the longest wait that has passed, (m,), >= 0: at 1 a page is due whatever
            its utility, and comes before all others; None if there is no longest wait.
    """

    utility: FloatArray
    overdue: FloatArray | None = None


class RefreshPolicy(LearningPolicy):
    """Refreshes pages by their utility.

    In the form ``refresh`` all existing pages are refreshed whose utility has reached
    ``threshold``, or whose longest wait is over. In ``page`` and ``scores`` as many pages are
    refreshed as the budget allows: first those whose longest wait is over, the most overdue first,
    then those with the largest utility. Ties go to the page with the longest time since its crawl,
    then to the lowest index.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        threshold: T > 0, importance times divergence times time; required in the form ``refresh``,
            ignored in the others.

    Raises:
        ValueError: ``env`` is not a crawl environment; the threshold is missing, or not > 0.
    """

    needs_threshold = True
    """Whether the form ``refresh`` requires a threshold."""

    learns = False

    def __init__(self, env: Any, *, threshold: float | None = None) -> None:
        super().__init__(env)
        if threshold is None and self.action_form == "refresh" and self.needs_threshold:
            raise ValueError(
                f"threshold must be a number > 0 for {self.name} in the form refresh, got None"
            )
        self.threshold = None if threshold is None else real("threshold", threshold, above=0.0)

    @abstractmethod
    def _urgency(self, tracker: Tracker) -> Urgency:
        """Return the urgency of each page now."""

    def _learn(self, log: CrawlLog, tracker: Tracker) -> None:
        """Take in the crawls of a step."""

    def footprint(self, lane: int = 0) -> Footprint:
        """Return the bytes of state per page in a lane; 0 for a policy without memory.

        Raises:
            ValueError: ``predict`` was not called for this lane yet.
        """
        self._known(lane)
        return Footprint(0.0, 0.0)

    def _update(self, log: CrawlLog, tracker: Tracker) -> None:
        if not self.first_log:
            self._learn(log, tracker)

    def _choose(self, tracker: Tracker) -> NDArray[Any]:
        urgency = self._urgency(tracker)
        if self.action_form == "refresh":
            return np.flatnonzero(self._due(urgency) & tracker.alive)
        return most_urgent(urgency, tracker.elapsed, tracker.alive, self._count)

    def _due(self, urgency: Urgency) -> BoolArray:
        due = np.zeros(urgency.utility.size, np.bool_)
        if self.threshold is not None:
            due |= urgency.utility >= self.threshold * (1.0 - ROUNDING)
        if urgency.overdue is not None:
            due |= urgency.overdue >= 1.0 - ROUNDING
        return due


class FragmentCore(Protocol):
    """The part of an environment of pages with fragments that policies with sketches read."""

    def first_sketch(self, lane: int = 0) -> Sketches:
        """Return the sketches of all pages at time 0."""


def fragment_core(name: str, core: Any) -> FragmentCore:
    """Return the environment; raise ValueError if its pages have no fragments."""
    if not hasattr(core, "first_sketch"):
        raise ValueError(
            f"env must be an environment of pages with fragments for {name}, got "
            f"{type(core).__name__}"
        )
    return core  # type: ignore[no-any-return]  # has what is read of it


def most_urgent(urgency: Urgency, elapsed: FloatArray, alive: BoolArray, count: int) -> IntArray:
    """Return the ``count`` most urgent existing pages, best first; page 0 if there are none."""
    utility = np.where(alive, urgency.utility, -np.inf)
    if urgency.overdue is not None:
        late = alive & (urgency.overdue >= 1.0 - ROUNDING)
        if late.any():
            chosen = _top(np.where(late, urgency.overdue, -np.inf), elapsed, count)
            utility[late] = -np.inf
            if chosen.size < count:
                rest = _top(utility, elapsed, count - chosen.size)
                chosen = np.concatenate((chosen, rest))
            return chosen
    chosen = _top(utility, elapsed, count)
    return chosen if chosen.size else np.zeros(1, np.int64)


def _top(rank: FloatArray, elapsed: FloatArray, count: int) -> IntArray:
    """Return the ``count`` pages of the highest ranks, best first, without those of rank -inf."""
    count = min(count, rank.size)
    if count == 1:
        best = rank.max()
        tied = np.flatnonzero(rank == best)
        best_page = tied[np.argmax(elapsed[tied])]
        return np.array([best_page] if best > -np.inf else [], np.int64)
    cutoff = np.partition(rank, -count)[-count]
    reached = np.flatnonzero((rank >= cutoff) & (rank > -np.inf))
    order = np.lexsort((-elapsed[reached], -rank[reached]))
    return reached[order[:count]].astype(np.int64)


def longest_wait(*bounds: FloatArray | float) -> Any:
    """Return the least of several longest waits, which may be infinite."""
    least: Any = np.inf
    for bound in bounds:
        least = np.minimum(least, bound)
    return least
