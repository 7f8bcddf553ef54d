"""Rules of crawlers in use that keep pages in queues: by lag, as Software Heritage, and by tiers.

Source of the first: ``backend.py`` (``grab_next_visits``), ``journal_client.py`` and
``recurrent_visits.py`` of https://github.com/SoftwareHeritage/swh-scheduler, commit a1b97f03.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import check_domain, floats, quantity, whole
from policies.base.policy import Pages, Policy
from policies.base.registry import registered

STRIDES = np.array([1, 1, 2, 2, 2, *(4**n for n in range(1, 7))])
"""Steps in the queue, in days, by ``next_position_offset``, which starts at 4."""


def lowest(keys: FloatArray, mask: BoolArray, count: int) -> IntArray:
    """Return the ``count`` pages of ``mask`` with the least keys; ties go to the lowest index."""
    pages = np.flatnonzero(mask)
    if count == 1 and pages.size:
        return pages[[np.argmin(keys[pages])]]
    return pages[np.argsort(keys[pages], kind="stable")[:count]]


@registered(kind="crawler's rule")
class SoftwareHeritageLag(Policy):
    """Software Heritage's scheduler of recurrent visits, by lag.

    Two policies share the slots. ``already_visited_order_by_lag`` takes the page whose last update,
    here its newest signal, is longest after its last crawl. ``origins_without_last_update`` has a
    queue of the pages without a signal; a crawl moves its page back by 1 to 4,096 days, two steps
    less after a change, else one step more. Pages crawled within the cooldown are left out. If one
    policy has no page, the other takes the slot, or else ``oldest_scheduled_first``.

    Pages never visited do not exist here, and steps in the queue are not randomised by 10%. The
    rule ignores importance and costs of crawls.

    Args:
        lag_weight: weight of ``already_visited_order_by_lag``, an integer >= 0; 49 for origins of
            version control systems.
        queue_weight: weight of ``origins_without_last_update``; 2 for those.
        cooldown: ``absolute_cooldown``, >= 0; 12 hours where a day is the unit of time.
    """

    acts = ("page", "scores")
    learns = True
    uses_signals = True

    def __init__(
        self, *, lag_weight: int = 40, queue_weight: int = 20, cooldown: float = 0.5
    ) -> None:
        self.lag_weight = whole("lag_weight", lag_weight, 0)
        self.weight = lag_weight + whole("queue_weight", queue_weight, int(lag_weight == 0))
        self.cooldown = quantity("cooldown", cooldown, least=0.0)

    def start(self, pages: Pages) -> None:
        """Begin with all pages crawled, and no positions in the queue."""
        num_pages = (tracker := pages.tracker()).elapsed.size
        self.last_update = np.full(num_pages, -np.inf)
        self.position, self.offset = np.zeros(num_pages), np.full(num_pages, 4)
        self.front, self.crawls = 0.0, 0
        self.update(pages.last_log(), tracker)
        self.follow(tracker)

    def follow(self, tracker: Tracker) -> None:
        """Date signals of unknown times at the present."""
        older = self.last_update < tracker.time - tracker.elapsed
        self.last_update[older & np.atleast_2d(tracker.signals).any(axis=0)] = tracker.time

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Move crawled pages back in the queue, and note the times of signals."""
        for page, changed in zip(log.page.tolist(), log.changed.tolist(), strict=True):
            if self.last_update[page] == -np.inf:
                self.front = max(self.front, self.position[page])
            offset = self.offset[page] + (-2 if changed else 1)
            self.offset[page] = min(max(offset, 0), len(STRIDES) - 1)
            self.position[page] = (self.position[page] or self.front) + STRIDES[self.offset[page]]
        self.crawls += log.page.size
        np.maximum.at(self.last_update, log.signal_page, log.signal_time)

    def choose(self, tracker: Tracker) -> IntArray:
        """Return the pages that the policies take in turns, by their weights."""
        self.check_pages(tracker, self.position.size)
        count, elapsed, last_update = self.num_chosen(tracker), tracker.elapsed, self.last_update
        rested = tracker.alive & (elapsed >= self.cooldown)
        signalled = rested & np.atleast_2d(tracker.signals).any(axis=0)
        by_lag = lowest(-elapsed - last_update, signalled, count).tolist()
        queue = lowest(self.position, rested & (last_update == -np.inf), count).tolist()
        pages: list[int] = []
        for slot in range(self.crawls, self.crawls + count):
            credit = slot * self.lag_weight % self.weight + self.lag_weight
            source = (by_lag or queue) if credit >= self.weight else (queue or by_lag)
            pages += [source.pop(0)] if source else []
        rest = tracker.alive.copy()
        rest[pages] = False
        pages += lowest(-elapsed, rest, count - len(pages)).tolist()
        return np.array(pages or [0], np.int64)


@registered(kind="crawler's rule")
class FixedTiers(Policy):
    """Tiers of pages with fixed ratios of revisit intervals, a rule of thumb of operators.

    Pages are ranked by importance times observed change rate: changes found per unit of time, with
    one more change in one more round of m / R. Tiers of equal size follow the ranks. Pages are
    ranked again once a round; new ones start in the last tier. Intervals are scaled to spend the
    bandwidth, if crawls cost 1. Each slot goes to the page that is due first; in the form
    ``refresh`` all due pages are crawled.

    Args:
        intervals: revisit interval of each tier, > 0, in any unit.
    """

    learns = True

    def __init__(self, *, intervals: Sequence[float] = (1.0, 4.0, 16.0)) -> None:
        self.intervals = floats("intervals", intervals)
        check_domain("intervals", self.intervals)
        if self.intervals.ndim != 1 or not self.intervals.size or self.intervals.min() <= 0.0:
            raise ValueError(f"intervals must be numbers > 0, one per tier, got {intervals!r}")

    def start(self, pages: Pages) -> None:
        """Begin with all pages crawled, and tiers of their importance."""
        tracker = pages.tracker()
        self.changes, self.observed = np.zeros((2, tracker.elapsed.size))
        self.next_ranking = tracker.time
        self.update(pages.last_log(), tracker)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Count the changes found, and rank the pages again after a round."""
        np.add.at(self.changes, log.page, log.changed)
        np.add.at(self.observed, log.page, log.elapsed)
        if tracker.time >= self.next_ranking:
            self._rank(tracker)

    def _rank(self, tracker: Tracker) -> None:
        """Set the revisit interval of every page, (m,)."""
        problem, alive = tracker.problem, tracker.alive
        steps = [rate for time, rate in problem.bandwidth_steps if time <= tracker.time]
        bandwidth, count = [problem.bandwidth, *steps][-1], int(alive.sum())
        if problem.cost is not None:
            bandwidth /= problem.cost.mean()
        cycle = problem.num_pages / bandwidth
        self.next_ranking = tracker.time + cycle
        rates = (self.changes + 1.0) / (self.observed + cycle)
        sizes = np.diff(np.arange(self.intervals.size + 1) * count // self.intervals.size)
        unit = (sizes / self.intervals).sum() / bandwidth
        self.interval = np.full(problem.num_pages, unit * self.intervals[-1])
        ranked = lowest(-problem.importance * rates, alive, count)
        self.interval[ranked] = unit * np.repeat(self.intervals, sizes)

    def choose(self, tracker: Tracker) -> IntArray:
        """Return the pages that are due first, or in the form ``refresh`` all that are due."""
        self.check_pages(tracker, self.changes.size)
        wait = self.interval - tracker.elapsed
        if self.form.action == "refresh":
            return np.flatnonzero(tracker.alive & (wait <= 0.0))
        pages = lowest(wait, tracker.alive, self.num_chosen(tracker))
        return pages if pages.size else np.zeros(1, np.int64)
