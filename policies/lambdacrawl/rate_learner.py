"""Base of policies that learn change rates, and compute new crawl rates in every epoch."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import quantity, real, within_domain
from policies import estimators
from policies.base.allocated import complete_pages, even_rates
from policies.base.bandwidths import bandwidth_at
from policies.base.policy import RATE_FORMS, Pages, Policy
from policies.base.schedules import response_share
from policies.estimators.histories import MAX_CRAWLS, Histories
from policies.lambdacrawl.even_slots import EvenSlots
from policies.solvers import Allocation

ROUNDING = 1e-12
"""Relative rounding error of a time that still counts as the end of a step or epoch."""


class LearnedRates:
    """Change rates estimated from crawls, or from signals for pages with complete observation.

    Algorithm 4 of Kolobov et al. (2019). Before any crawl the estimates from crawls are
    ``initial``. From the first crawl of any page on, a page without crawls has the estimate of its
    imaginary intervals. The last MAX_CRAWLS crawls of a page are used. With complete observation,
    the estimate is :func:`policies.estimators.complete_observation_rates` of the signals; crawls of
    such pages add no information.

    Args:
        complete: pages whose every change is signalled, (m,).
        fit: method for the other pages: ``fit(crawls, start)`` returns change rates, (m,), with
            one changed and one unchanged imaginary interval per page, from a first guess, (m,).
        initial: estimate before any observation, > 0.
        window: length of the recent time in which crawls and signals count, the S(n) of
            Algorithm 4; None for all.
        smoothing: number of pseudo-signals in as much pseudo-time (line 13), > 0.
        since: start of learning; earlier signals do not count.

    Attributes:
        closed: whether further logs are ignored.
    """

    def __init__(
        self,
        complete: BoolArray,
        fit: Callable[[Histories, FloatArray], FloatArray],
        *,
        initial: float = 1.0,
        window: float | None = None,
        smoothing: float = 0.5,
        since: float = 0.0,
    ) -> None:
        self.complete, self.closed, self.since = complete, False, since
        self.window, self.smoothing = window, smoothing
        self._fit, self._time = fit, since
        self._logs: list[CrawlLog] = []
        timed = {} if window is None else {"time": np.float64}
        self._crawls = estimators.CrawlHistories(
            complete.size, MAX_CRAWLS, elapsed=np.float64, changed=np.bool_, **timed
        )
        self._signals: tuple[IntArray, FloatArray] = (np.zeros(0, np.int64), np.zeros(0))
        self._counts: IntArray = np.zeros(complete.size, np.int64)
        self._of_crawls: FloatArray = np.full(complete.size, initial)
        self._of_signals = self._of_crawls

    def add(self, log: CrawlLog, time: float) -> None:
        """Add the crawls and signals of a log that ends at ``time``."""
        if not self.closed:
            self._logs.append(log)
            self._time = time

    def estimate(self) -> FloatArray:
        """Return the estimated change rates, (m,)."""
        if self._logs:
            self._read_crawls()
            if self._time > self.since:
                self._read_signals()
            self._logs.clear()
        return np.where(self.complete, self._of_signals, self._of_crawls)

    def _new(self, *names: str) -> list[NDArray[Any]]:
        """Return columns of all new logs, joined; this is much faster than one read per log."""
        return [np.concatenate([getattr(log, name) for log in self._logs]) for name in names]

    def _read_crawls(self) -> None:
        page, *columns = self._new("page", "elapsed", "changed", "time")
        used = ~self.complete[page]
        elapsed, changed, time = (column[used] for column in columns)
        self._crawls.append(page[used], elapsed=elapsed, changed=changed, time=time)
        if self._crawls.count.any():
            since = None if self.window is None else self._time - self.window
            self._of_crawls = self._fit(self._crawls.intervals(since=since), self._of_crawls)

    def _read_signals(self) -> None:
        page, time = self._new("signal_page", "signal_time")
        used, counted = self.complete[page] & (time >= self.since), self._time - self.since
        page, time = page[used], time[used]
        if self.window is None:
            self._counts += np.bincount(page, minlength=self._counts.size)
        else:
            page, time = map(np.concatenate, zip(self._signals, (page, time), strict=True))
            recent = time > self._time - self.window
            self._signals = page[recent], time[recent]
            self._counts = np.bincount(page[recent], minlength=self._counts.size)
            counted = min(counted, self.window)
        self._of_signals = estimators.complete_observation_rates(
            self._counts, counted, extra_changes=self.smoothing, extra_time=self.smoothing
        )


class RateLearner(Policy):
    """Learns change rates from crawls and signals, and crawls at the optimal rates for them.

    In the form ``rates`` every decision has the rates of the next epoch: crawl rates of pages
    without complete observation, and crawl probabilities per signal of pages with it. In the form
    ``page`` it turns the rates into crawls without randomness
    (:class:`policies.lambdacrawl.even_slots.EvenSlots`), with a new plan every ``epoch``.

    It reads importance, costs, bandwidth and ``complete`` from the problem, not revealed change
    rates. Every episode starts with no data. Setting the state of a lane (``set_state``) starts a
    new episode: the policy then has the data of the step before that state only.

    In the form ``rates`` the estimated change rates are declared to the environment at every
    ``predict``. The last declaration before a step determines its budget: with several learners on
    one environment, the learner whose action is used must be the last to ``predict``.

    Args:
        epoch: in the form ``page``, units of time between two plans; in the form ``rates`` it is
            the environment's.
        initial: first estimate of all change rates, per unit of time, > 0.
        smoothing: length of one changed and one unchanged imaginary interval of every page
            (Algorithm 4, line 11), and number of pseudo-signals, > 0.
        window: length of the recent time that estimates use, > 0; None for all.

    Raises:
        ValueError: an argument out of its range.
    """

    acts: ClassVar[tuple[str, ...]] = ("page", *RATE_FORMS)
    learns = True

    def __init__(
        self,
        *,
        epoch: float = 1.0,
        initial: float = 1.0,
        smoothing: float = 0.5,
        window: float | None = None,
    ) -> None:
        self.epoch = quantity("epoch", epoch, above=0.0)
        self.initial = quantity("initial", initial, above=0.0)
        self.smoothing = real("smoothing", smoothing, above=0.0)
        self.window = None if window is None else quantity("window", window, above=0.0)

    @abstractmethod
    def _fit(self, crawls: Histories, start: FloatArray) -> FloatArray:
        """Return estimated change rates, (m,), from crawls and first guesses ``start``, (m,)."""

    @abstractmethod
    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        """Return the optimal allocation of a bandwidth at a time, for the estimated change rates.

        Importance, (m,), is 0 for pages that do not exist, and not all zero.
        """

    def estimate(self) -> FloatArray:
        """Return the estimated change rates of the present plan, (m,)."""
        return self.change_rate.copy()

    def allocation(self) -> Allocation:
        """Return the present plan; rates of pages with complete observation are expected ones."""
        assert self.plan is not None
        return self.plan

    def _responses(self, complete: BoolArray) -> BoolArray:
        """Return which pages are crawled on signals, given those with complete observation."""
        return complete

    def start(self, pages: Pages) -> None:
        """Begin an episode without data, and plan the first crawl rates."""
        tracker, of_rates = pages.tracker(), self.form.action == "rates"
        self.problem = problem = tracker.problem
        if of_rates and self.form.epoch is not None:
            self.epoch = self.form.epoch
        step = self.epoch if of_rates else 1.0 / problem.bandwidth
        slots = pages.num_slots(self.epoch if of_rates else None)
        self.horizon = slots * step  # for constant bandwidth
        since = 0.0 if tracker.time <= step * (1.0 + ROUNDING) else tracker.time - step
        self.complete = self._responses(complete_pages(problem))
        self.learned = LearnedRates(
            self.complete,
            self._fit,
            initial=self.initial,
            window=self.window,
            smoothing=self.smoothing,
            since=since,
        )
        self.change_rate: FloatArray = np.zeros(problem.num_pages)
        self.plan: Allocation | None = None
        self.slots = None if of_rates else EvenSlots(problem.num_pages, problem.cost)
        self.until = -math.inf
        self.update(pages.last_log(), tracker)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Read a log; make a new plan if the last one has ended, and set the next action."""
        self.learned.add(log, tracker.time)
        if self.slots is None or tracker.time >= self.until:
            self.change_rate = self.declared = within_domain(self.learned.estimate())
            self.plan = self._plan(tracker)
            chances = self.plan.probabilities
            if chances is None:  # the solver ignores signals
                chances = response_share(self.plan.rates, self.change_rate)
            rates = np.where(self.complete, 0.0, self.plan.rates)
            chances = np.where(self.complete, chances, 0.0)
            self.action: NDArray[Any] = rates + chances
            if self.slots is not None:
                self.slots.plan(rates, chances)
                passed = math.floor(tracker.time / self.epoch * (1.0 + ROUNDING))
                self.until = (passed + 1) * self.epoch * (1.0 - ROUNDING)
        if self.slots is not None:
            self.slots.responses.on_signal(log.signal_page)
            self.action = np.array([self.slots.take(tracker.alive)])

    def choose(self, tracker: Tracker) -> NDArray[Any]:
        """Return the crawl rates of the plan, or in the form ``page`` the page of the slot."""
        return self.action

    def _plan(self, tracker: Tracker) -> Allocation:
        """Return the allocation of the present bandwidth for the estimated change rates."""
        problem, time = tracker.problem, tracker.time
        importance = np.where(tracker.alive, problem.importance, 0.0)
        bandwidth = bandwidth_at(problem, self.epoch, time)
        if not importance.any():
            return even(problem, bandwidth)
        return self._allocate(importance, bandwidth, time)


def even(problem: Problem, bandwidth: float) -> Allocation:
    """Return an allocation of equal rates; its multiplier and objective are unknown (NaN)."""
    return Allocation(even_rates(problem, bandwidth), None, math.nan, math.nan, 0, True)
