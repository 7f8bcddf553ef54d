"""Policies that refresh pages by the utility of a refresh, with a threshold or with a budget.

Olston and Pandey (2008), section 2.2: refresh exactly the pages whose utility has reached the
threshold T; the cost follows from T. With a budget instead, the pages with the largest utility are
refreshed, as many as the budget allows.

Policies that learn start with waits that grow with every copy of a page: at first the period of a
page is at most l n, with n its refreshes so far (section 4.2). Here n counts the copies of the
page, so that it starts at 1. Pages that were all first copied at one time would always be refreshed
together; so their first waits may be shortened, as if the first copies had been made one after the
other before the start.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import quantity, real
from policies.base.policy import Policy
from policies.estimators.divergence.profiles import Footprint, at_first_copy

ROUNDING = 1e-9
"""Relative tolerance of the times and utilities at which a page is due."""


class Urgency(NamedTuple):
    """How urgent a refresh of each page is.

    Attributes:
        utility: importance times utility of a refresh now, (m,), >= 0.
        overdue: share of the longest wait that has passed, (m,), >= 0: at 1 a page is due with any
            utility, and comes before all others; None if there is no longest wait.
    """

    utility: FloatArray
    overdue: FloatArray | None = None


class RefreshPolicy(Policy):
    """Refreshes pages by their utility.

    The form ``refresh`` refreshes all existing pages whose utility has reached ``threshold``, or
    whose longest wait is over. ``page`` and ``scores`` refresh as many pages as the budget allows:
    first pages whose longest wait is over, the most overdue first, then pages with the largest
    utility. Ties go to the page with the longest time since its crawl, then to the lowest index.
    Where crawls have costs, utility and ``threshold`` are per unit of cost.

    Args:
        threshold: T > 0, importance times divergence times time; required in the form ``refresh``,
            ignored in other forms.
    """

    needs_threshold = True
    """Whether the form ``refresh`` requires a threshold."""

    reads_log = False
    threshold: float | None = None

    def __init__(self, *, threshold: float | None = None) -> None:
        self.threshold = None if threshold is None else real("threshold", threshold, above=0.0)

    def check(self) -> None:
        """Raise ValueError without a threshold in the form ``refresh``."""
        super().check()
        if self.threshold is None and self.form.action == "refresh" and self.needs_threshold:
            raise ValueError(
                f"threshold must be a number > 0 for {self.name} in the form refresh, got None"
            )

    @abstractmethod
    def _urgency(self, tracker: Tracker) -> Urgency:
        """Return how urgent a refresh of each page is now."""

    def footprint(self) -> Footprint:
        """Return the bytes of memory per page, once an episode has started."""
        return Footprint(0.0, 0.0)

    def choose(self, tracker: Tracker) -> NDArray[Any]:
        """Return the most urgent pages, or in the form ``refresh`` all that are due."""
        urgency = self._urgency(tracker._replace(problem=tracker.problem.per_cost()))
        if self.form.action == "refresh":
            return np.flatnonzero(self._due(urgency) & tracker.alive)
        return most_urgent(urgency, tracker.elapsed, tracker.alive, self.num_chosen(tracker))

    def _due(self, urgency: Urgency) -> BoolArray:
        due = np.zeros(urgency.utility.size, np.bool_)
        if self.threshold is not None:
            due |= urgency.utility >= self.threshold * (1.0 - ROUNDING)
        if urgency.overdue is not None:
            due |= urgency.overdue >= 1.0 - ROUNDING
        return due


def most_urgent(urgency: Urgency, elapsed: FloatArray, alive: BoolArray, count: int) -> IntArray:
    """Return the ``count`` existing pages to refresh next, best first; page 0 if none exists."""
    utility, pages = np.where(alive, urgency.utility, -np.inf), np.zeros(0, np.int64)
    if urgency.overdue is not None:
        late = alive & (urgency.overdue >= 1.0 - ROUNDING)
        if late.any():
            pages = _top(np.where(late, urgency.overdue, -np.inf), elapsed, count)
            utility[late] = -np.inf
    if pages.size < count:
        pages = np.concatenate((pages, _top(utility, elapsed, count - pages.size)))
    return pages if pages.size else np.zeros(1, np.int64)


def _top(rank: FloatArray, elapsed: FloatArray, count: int) -> IntArray:
    """Return the ``count`` pages of the highest ranks, best first, except pages of rank -inf."""
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
    """Return the least of several bounds on the wait of each page; bounds may be infinite."""
    wait: Any = np.inf
    for bound in bounds:
        wait = np.minimum(wait, bound)
    return wait


FIRST_SHARE = 0.5
"""With a budget, l as a share of the mean interval between refreshes of a page."""


def check_warm_up(
    learning: float | None, warm_up: float | None
) -> tuple[float | None, float | None]:
    """Return ``learning`` and ``warm_up`` as floats or None; ValueError unless > 0."""
    length = None if warm_up is None else quantity("warm_up", warm_up, above=0.0)
    return None if learning is None else quantity("learning", learning, above=0.0), length


def learning_period(
    learning: float | None, crawls: IntArray, problem: Problem, action_form: str
) -> FloatArray:
    """Return the longest waits while learning, l times the copies n of each page, (m,).

    An l of None is 1, or set from the budget if there is one.
    """
    if learning is None:
        mean_interval = problem.num_pages / problem.bandwidth
        learning = 1.0 if action_form == "refresh" else FIRST_SHARE * mean_interval
    return learning * crawls.astype(np.float64)


def first_turns(tracker: Tracker) -> FloatArray:
    """Return the share of its first wait after which each page is due, (m,).

    Page k of m, from 0, has (k + 1) / m, as in :class:`policies.longevity.offline.UniformRefresh`:
    equal waits end evenly spread over one wait. It is 1 for pages with a later copy.
    """
    num_pages = tracker.elapsed.size
    turns = np.arange(1, num_pages + 1) / num_pages
    return np.where(at_first_copy(tracker), turns, 1.0)
