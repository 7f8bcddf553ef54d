"""The adaptive revisit policies of Apache Nutch and Apache StormCrawler.

Both have an interval per page, which grows after a crawl without a change and shrinks after a crawl
with a change. They ignore the budget and the importance of pages. At a steady state the probability
of a change per interval is the same for all pages, so they crawl in proportion to change rates
(with ``sync_delta`` approximately).

Sources: ``org.apache.nutch.crawl.AdaptiveFetchSchedule`` and ``AbstractFetchSchedule`` with the
values of ``conf/nutch-default.xml``; ``org.apache.stormcrawler.persistence.AdaptiveScheduler``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.compiled.heap import IndexedHeap, empty_heap, first_due, set_due
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import flag, quantity, real, share, whole
from policies.base.policy import Pages, Policy
from policies.base.registry import registered

SECONDS_PER_DAY = 86400.0
MINUTES_PER_DAY = 1440.0
SHORTENED = 0.9
"""Nutch reduces an interval above the largest allowed interval to this share of the largest."""


class Revisits(NamedTuple):
    """A crawler's records of its pages, (m,) each.

    Attributes:
        due: times at which pages are due, in the instance's unit.
        interval: revisit interval, in the crawler's unit.
        modified: time of the last crawl with a change, in the instance's unit.
    """

    due: FloatArray
    interval: FloatArray
    modified: FloatArray


class NutchRule(NamedTuple):
    """Constants of :class:`NutchAdaptive`; ``second`` is a second in the instance's unit."""

    inc_rate: float
    dec_rate: float
    min_interval: float
    max_interval: float
    sync_delta: bool
    sync_delta_rate: float
    fetch_interval_max: float
    second: float


class StormRule(NamedTuple):
    """Constants of :class:`StormCrawlerAdaptive`; ``minute`` is a minute in the instance's unit."""

    fetch_interval_min: float
    fetch_interval_max: float
    rate_incr: float
    rate_decr: float
    minute: float


@compiled()
def nutch_reschedule(
    rule: NutchRule, page: IntArray, time: FloatArray, changed: BoolArray, revisits: Revisits
) -> None:
    """Set the next due times of crawled pages, (n,) in order, by the rule of Apache Nutch."""
    due, interval, modified = revisits
    for crawl in range(page.size):
        number, now = page[crawl], time[crawl]
        length = interval[number]
        if changed[crawl]:
            length *= 1.0 - rule.dec_rate
            modified[number] = now
        else:
            length *= 1.0 + rule.inc_rate
        back = 0.0
        if rule.sync_delta:
            since = (now - modified[number]) / rule.second
            length = max(length, since)
            back = rule.sync_delta_rate * since
        length = min(max(length, rule.min_interval), rule.max_interval)
        delay = length - back
        if delay > rule.fetch_interval_max:
            delay = rule.fetch_interval_max
            if length > rule.fetch_interval_max:
                length = SHORTENED * rule.fetch_interval_max
        interval[number] = length
        due[number] = now + delay * rule.second


@compiled()
def storm_reschedule(
    rule: StormRule, page: IntArray, time: FloatArray, changed: BoolArray, revisits: Revisits
) -> None:
    """Set the next due times of crawled pages, (n,) in order, by StormCrawler's rule.

    Intervals are full minutes.
    """
    due, interval, modified = revisits
    for crawl in range(page.size):
        number, now = page[crawl], time[crawl]
        length = interval[number]
        if changed[crawl]:
            remainder = (1.0 - rule.rate_decr) * length
            length = math.floor(remainder + rule.rate_decr * rule.fetch_interval_min)
            modified[number] = now
        else:
            length = min(math.floor(length * (1.0 + rule.rate_incr)), rule.fetch_interval_max)
        interval[number] = length
        due[number] = now + length * rule.minute


@compiled()
def put_pages(heap: IndexedHeap, pages: IntArray, due: FloatArray) -> None:
    """Put pages, (n,), into the heap of pages, ordered by their due times, (m,)."""
    for page in pages:
        set_due(heap, page, due[page])


@compiled()
def first_pages(
    heap: IndexedHeap,
    due: FloatArray,
    count: int,
    until: float,
    alive: BoolArray,
    parked: BoolArray,
) -> IntArray:
    """Return the ``count`` existing pages that are due first, and not after ``until``.

    Pages that do not exist leave the heap and are marked as ``parked``.
    """
    pages, number = np.empty(min(count, heap.size[0]), np.int64), 0
    while number < pages.size and heap.size[0] > 0 and first_due(heap) <= until:
        page = heap.entries[0]
        set_due(heap, page, np.inf)
        pages[number] = page
        parked[page] = not alive[page]
        number += alive[page]
    put_pages(heap, pages[:number], due)
    return pages[:number]


class RevisitPolicy(Policy):
    """Crawls pages when they are due, by a rule that adapts intervals to the observed changes.

    In the form ``page`` each slot goes to the page that is due first, even before its due time, in
    ``scores`` to the first ``batch`` pages; ties go to the lowest index. In ``refresh`` all due
    pages are crawled, so that the rule determines the number of crawls. All pages count as crawled
    at the start of the episode, or at their birth, and are due one default interval later. Costs of
    crawls are ignored.

    Args:
        day: a day in the instance's unit of time, > 0.
    """

    learns = True

    def __init__(self, *, day: float = 1.0) -> None:
        self.day = quantity("day", day, above=0.0)

    first_interval: tuple[float, float]
    """The default interval in the crawler's unit, and that unit in the instance's unit."""

    kernel: Any
    """Compiled function that reschedules crawled pages, by the arguments of the rule."""
    rule: NutchRule | StormRule

    def start(self, pages: Pages) -> None:
        """Begin with all pages crawled at the start of the episode, or at their birth."""
        tracker = pages.tracker()
        num_pages = tracker.elapsed.size
        self.revisits = Revisits(*np.zeros((3, num_pages)))
        self.parked = np.ones(num_pages, np.bool_)  # the pages that are not in the heap
        self.heap = empty_heap(num_pages)
        self._add_born(tracker)
        self.update(pages.last_log(), tracker)

    def _add_born(self, tracker: Tracker) -> None:
        """Add newly born pages, due one default interval after their birth."""
        new = np.flatnonzero(self.parked & tracker.alive)
        length, unit = self.first_interval
        start = tracker.time - tracker.elapsed[new]
        self.revisits.interval[new] = length
        self.revisits.modified[new] = start
        self.revisits.due[new] = start + length * unit
        self.parked[new] = False
        put_pages(self.heap, new, self.revisits.due)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Set new due times of the crawled pages, and add pages that were born."""
        if log.page.size:
            self.kernel(self.rule, log.page, log.time, log.changed, self.revisits)
            put_pages(self.heap, log.page[~self.parked[log.page]], self.revisits.due)
        if self.parked.any():
            self._add_born(tracker)

    def choose(self, tracker: Tracker) -> IntArray:
        """Return the pages that are due first, or in the form ``refresh`` all that are due."""
        due, alive = self.revisits.due, tracker.alive
        if self.form.action == "refresh":
            return first_pages(self.heap, due, due.size, tracker.time, alive, self.parked)
        count = self.num_chosen(tracker)
        pages = first_pages(self.heap, due, count, math.inf, alive, self.parked)
        return pages if pages.size else np.zeros(1, np.int64)


@registered(kind="crawler's rule")
class NutchAdaptive(RevisitPolicy):
    """Apache Nutch's AdaptiveFetchSchedule.

    A crawl with a change multiplies the page's interval by ``1 - dec_rate``, any other crawl by
    ``1 + inc_rate``. With ``sync_delta``, an interval is at least the time since the last observed
    change, and the next crawl comes ``sync_delta_rate`` times that time earlier. Defaults are those
    of Nutch's default configuration; the fallbacks in its code differ (0.2 each).

    Due times are at most ``fetch_interval_max`` from now, as documented by Nutch. Two details of
    Nutch are left out: its generator treats such a page as due in every round, so that pages that
    never change are crawled without pause, and times are rounded to milliseconds.

    Args:
        inc_rate: ``db.fetch.schedule.adaptive.inc_rate``, >= 0.
        dec_rate: ``db.fetch.schedule.adaptive.dec_rate``, in [0, 1).
        min_interval: ``db.fetch.schedule.adaptive.min_interval``, seconds, > 0.
        max_interval: ``db.fetch.schedule.adaptive.max_interval``, seconds.
        sync_delta: ``db.fetch.schedule.adaptive.sync_delta``.
        sync_delta_rate: ``db.fetch.schedule.adaptive.sync_delta_rate``, in [0, 1).
        fetch_interval_default: ``db.fetch.interval.default``, seconds, > 0.
        fetch_interval_max: ``db.fetch.interval.max``, seconds, > 0.
        day: a day in the instance's unit of time, > 0.
    """

    def __init__(
        self,
        *,
        inc_rate: float = 0.4,
        dec_rate: float = 0.2,
        min_interval: float = 60.0,
        max_interval: float = 31_536_000.0,
        sync_delta: bool = True,
        sync_delta_rate: float = 0.3,
        fetch_interval_default: float = 2_592_000.0,
        fetch_interval_max: float = 7_776_000.0,
        day: float = 1.0,
    ) -> None:
        super().__init__(day=day)
        shortest = quantity("min_interval", min_interval, above=0.0)
        default = real("fetch_interval_default", fetch_interval_default, above=0.0)
        self.rule = NutchRule(
            inc_rate=real("inc_rate", inc_rate, least=0.0),
            dec_rate=share("dec_rate", dec_rate, below=True),
            min_interval=shortest,
            max_interval=quantity("max_interval", max_interval, least=shortest),
            sync_delta=flag("sync_delta", sync_delta),
            sync_delta_rate=share("sync_delta_rate", sync_delta_rate, below=True),
            fetch_interval_max=quantity("fetch_interval_max", fetch_interval_max, above=0.0),
            second=self.day / SECONDS_PER_DAY,
        )
        self.first_interval = default, self.rule.second

    kernel = staticmethod(nutch_reschedule)


@registered(kind="crawler's rule")
class StormCrawlerAdaptive(RevisitPolicy):
    """Apache StormCrawler's AdaptiveScheduler.

    A crawl with a change moves the page's interval towards the least one, to ``(1 - rate_decr)
    interval + rate_decr fetch_interval_min``; any other crawl multiplies it by ``1 + rate_incr``,
    up to the largest one. Intervals are full minutes, rounded down: one minute stays one minute.

    Args:
        fetch_interval_default: ``fetchInterval.default``, minutes, >= 1.
        fetch_interval_min: ``scheduler.adaptive.fetchInterval.min``, minutes, >= 1.
        fetch_interval_max: ``scheduler.adaptive.fetchInterval.max``, minutes.
        rate_incr: ``scheduler.adaptive.fetchInterval.rate.incr``, in (0, 1].
        rate_decr: ``scheduler.adaptive.fetchInterval.rate.decr``, in (0, 1].
        day: a day in the instance's unit of time, > 0.
    """

    def __init__(
        self,
        *,
        fetch_interval_default: int = 1440,
        fetch_interval_min: int = 60,
        fetch_interval_max: int = 20160,
        rate_incr: float = 0.5,
        rate_decr: float = 0.5,
        day: float = 1.0,
    ) -> None:
        super().__init__(day=day)
        shortest = whole("fetch_interval_min", fetch_interval_min, 1)
        default = whole("fetch_interval_default", fetch_interval_default, 1)
        self.rule = StormRule(
            fetch_interval_min=float(shortest),
            fetch_interval_max=float(whole("fetch_interval_max", fetch_interval_max, shortest)),
            rate_incr=share("rate_incr", rate_incr, above=True),
            rate_decr=share("rate_decr", rate_decr, above=True),
            minute=self.day / MINUTES_PER_DAY,
        )
        self.first_interval = float(default), self.rule.minute

    kernel = staticmethod(storm_reschedule)
