"""Base of the policies that learn change rates, and solve for crawl rates epoch by epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import quantity, within_domain
from policies import estimators
from policies.base.allocated import complete_pages
from policies.base.bandwidths import bandwidth_at
from policies.base.binding import RATE_FORMS, ActingPolicy
from policies.base.signal_queue import response_share
from policies.lambdacrawl.even_slots import EvenSlots
from policies.solvers import Allocation

ROUNDING = 1e-12
"""Relative rounding error of a time that still counts as the end of a step or epoch."""


@dataclass
class EpochState(ABC):
    """The state of a lane's episode: the learned change rates, the plan, and the present action.

    Attributes:
        episode: number of the episode.
        horizon: end of the episode, for constant bandwidth.
        learned: the learned change rates.
        complete: pages with signal responses, (m,).
        change_rate: the estimated change rates of the present plan, (m,).
        allocation: the present plan; None before the first.
        action: the present action; its meaning depends on the form.
        time: time of the last decision whose log was read; NaN before the first.
    """

    episode: int
    horizon: float
    learned: LearnedRates
    complete: BoolArray
    change_rate: FloatArray = field(init=False)
    allocation: Allocation | None = field(default=None, init=False)
    action: NDArray[Any] = field(init=False)
    time: float = field(default=math.nan, init=False)

    def __post_init__(self) -> None:
        self.change_rate = np.zeros(self.complete.size)

    @abstractmethod
    def over(self) -> bool:
        """Return whether the present plan has ended."""

    @abstractmethod
    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Set the plan: crawl rates, 0 on complete pages, and chances, 0 elsewhere; (m,) each."""

    @abstractmethod
    def decide(self, signal_page: IntArray, alive: BoolArray) -> None:
        """Set the action, after signals of pages, (n,), in order of time."""

    def adopt(self, allocation: Allocation) -> None:
        """Set the allocation that follows from ``change_rate``."""
        self.allocation = allocation
        self.follow(*played(allocation, self.complete, self.change_rate))


@dataclass
class RatesState(EpochState):
    """In the form ``rates``: every plan is the action of one epoch, (m,)."""

    def over(self) -> bool:
        """Return True: every decision is an epoch's first."""
        return True

    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Set the plan."""
        self.action = rates + chances

    def decide(self, signal_page: IntArray, alive: BoolArray) -> None:
        """Do nothing: the plan is the action."""


@dataclass
class SlotsState(EpochState):
    """In the form ``page``: a plan is for one ``epoch``, with evenly spaced crawls.

    The action is the page of a slot, (1,).
    """

    epoch: float
    slots: EvenSlots = field(init=False)
    until: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.slots = EvenSlots(self.complete.size)

    def over(self) -> bool:
        """Return whether the epoch of the present plan has ended, or there is no plan."""
        return self.time >= self.until

    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Set the plan, to the end of the epoch that contains the present time."""
        self.slots.plan(rates, chances)
        passed = math.floor(self.time / self.epoch * (1.0 + ROUNDING))
        self.until = (passed + 1) * self.epoch * (1.0 - ROUNDING)

    def decide(self, signal_page: IntArray, alive: BoolArray) -> None:
        """Set the page of the next slot."""
        self.slots.on_signal(signal_page)
        self.action = np.array([self.slots.take(alive)])


def played(
    allocation: Allocation, complete: BoolArray, change_rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return crawl rates, 0 on complete pages, and crawl probabilities, 0 elsewhere; (m,) each.

    If the solver ignores signals, complete pages get the response shares of their rates.
    """
    chances = allocation.probabilities
    if chances is None:
        chances = response_share(allocation.rates, change_rate)
    return np.where(complete, 0.0, allocation.rates), np.where(complete, chances, 0.0)


class CrawlEstimator(Protocol):
    """An estimator of change rates from crawls, as in :mod:`policies.estimators`."""

    @property
    def estimate_(self) -> FloatArray:
        """Change rates, (m,)."""

    def update(
        self,
        page: IntArray,
        elapsed: FloatArray,
        changed: BoolArray,
        *,
        time: FloatArray,
        now: float,
    ) -> None:
        """Update on crawls in order of time."""


class LearnedRates:
    """Change rates from crawls, and from signals where observation is complete.

    U signals in the time S give the estimate (U + smoothing) / (S + smoothing): Algorithm 4 of
    Kolobov et al. (2019). The crawls of such pages, and probes, add no information.

    Args:
        complete: pages whose every change is signalled, (m,).
        crawled: estimator for the other pages.
        initial: estimate before any observation, > 0.
        window: length of the recent time in which signals count; None for all.
        smoothing: number of pseudo-signals.
        since: start of learning; earlier signals do not count.

    Attributes:
        closed: whether further logs are ignored.
    """

    def __init__(
        self,
        complete: BoolArray,
        crawled: CrawlEstimator,
        *,
        initial: float = 1.0,
        window: float | None = None,
        smoothing: float = 0.5,
        since: float = 0.0,
    ) -> None:
        self.complete, self.closed, self.since = complete, False, since
        self._crawled = crawled
        self._logs: list[CrawlLog] = []
        self._time = since
        self._signals = estimators.CompleteObservations(
            complete.size, smoothing=smoothing, window=window, initial=initial, start=since
        )

    def add(self, log: CrawlLog, time: float) -> None:
        """Add the crawls and signals of a log that ends at ``time``."""
        if not self.closed:
            self._logs.append(log)
            self._time = time

    def estimate(self) -> FloatArray:
        """Return the estimated change rates, (m,)."""
        if self._logs:
            self._read()
        return np.where(self.complete, self._signals.estimate_, self._crawled.estimate_)

    def _read(self) -> None:
        """Update the estimators on all new logs at once, which is much faster than one by one."""
        page, elapsed, changed, time, probe = (
            np.concatenate([getattr(log, name) for log in self._logs])
            for name in ("page", "elapsed", "changed", "time", "probe")
        )
        crawls = ~(self.complete[page] | probe)
        self._crawled.update(
            page[crawls], elapsed[crawls], changed[crawls], time=time[crawls], now=self._time
        )
        if self._time > self.since:
            signal = np.concatenate([log.signal_page for log in self._logs])
            times = np.concatenate([log.signal_time for log in self._logs])
            used = self.complete[signal] & (times >= self.since)
            self._signals.update(signal[used], time=self._time, signal_time=times[used])
        self._logs.clear()


class RateLearner(ActingPolicy[EpochState]):
    """Learns change rates from crawls and signals, and crawls at the optimal rates for them.

    In the form ``rates`` every decision is the rates of the coming epoch: crawl rates of pages
    without complete observation, crawl probabilities per signal of the others. In the form ``page``
    it turns the rates into crawls without randomness
    (:class:`policies.lambdacrawl.even_slots.EvenSlots`), with a new plan every ``epoch``.

    It reads importance, the bandwidth and ``complete`` from the problem, and learns from
    ``last_log`` at every ``predict``, once per decision, whether or not ``observe`` was called.
    Revealed change rates are not read. Every episode starts with no data, and lanes learn
    independently. A lane whose state is set (``set_state``) counts as in a new episode: the policy
    starts with no data but the step before that state.

    In the form ``rates`` every ``predict`` also declares the estimated change rates to the
    environment. The last declaration before a step determines its budget: with several learners on
    one environment, the last ``predict`` must be that of the learner whose action is played.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        epoch: in the form ``page``, units of time between two plans; in the form ``rates`` it is
            the environment's.

    Raises:
        ValueError: ``env`` is no crawl environment, or has another form of action; an argument out
            of its range.
    """

    acts: ClassVar[tuple[str, ...]] = ("page", *RATE_FORMS)

    def __init__(self, env: Any, *, epoch: float = 1.0) -> None:
        if env is None:
            raise ValueError(f"{self.name} learns from logs, so env must be an environment")
        super().__init__(env)
        self.epoch = quantity("epoch", epoch, above=0.0)
        if self.core is not None and self.action_form == "rates":
            self.epoch = self.core.epoch

    @abstractmethod
    def _start_learning(self, problem: Problem, complete: BoolArray, since: float) -> LearnedRates:
        """Return an episode's learner of change rates, for logs from ``since`` on."""

    @abstractmethod
    def _allocate(
        self, lane_state: EpochState, importance: FloatArray, bandwidth: float, time: float
    ) -> Allocation:
        """Return the allocation for a time and a bandwidth, given ``lane_state.change_rate``.

        Importance, (m,), is 0 for pages that do not exist, and not all zero.
        """

    def estimate(self, lane: int = 0) -> FloatArray:
        """Return the estimated change rates of a lane's present plan, (m,).

        Raises:
            ValueError: ``predict`` was not called for this lane yet.
        """
        return self._known(lane).change_rate.copy()

    def allocation(self, lane: int = 0) -> Allocation:
        """Return a lane's present plan; ``rates`` of complete pages are expected numbers.

        Raises:
            ValueError: ``predict`` was not called for this lane yet.
        """
        allocation = self._known(lane).allocation
        assert allocation is not None
        return allocation

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn from a lane's last log now, instead of at the next ``predict``."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        self._learn(self._lane_state(tracker, lane), log, tracker)

    def _known(self, lane: int) -> EpochState:
        if lane not in self._lane_states:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._lane_states[lane]

    def _responses(self, complete: BoolArray) -> BoolArray:
        """Return the pages with signal responses, given those with complete observation; (m,)."""
        return complete

    def _begin(self, tracker: Tracker, lane: int) -> EpochState:
        assert self.core is not None
        problem, of_rates = tracker.problem, self.action_form == "rates"
        step = self.epoch if of_rates else 1.0 / problem.bandwidth
        horizon = self.core.num_slots(lane) * step
        since = 0.0 if tracker.time <= step * (1.0 + ROUNDING) else tracker.time - step
        complete = self._responses(complete_pages(problem))
        learned = self._start_learning(problem, complete, since)
        if of_rates:
            return RatesState(tracker.episode, horizon, learned, complete)
        return SlotsState(tracker.episode, horizon, learned, complete, self.epoch)

    def _choose(self, lane_state: EpochState, tracker: Tracker, lane: int) -> NDArray[Any]:
        assert self.core is not None
        self._learn(lane_state, self.core.last_log(lane), tracker)
        if self.action_form == "rates":  # each time: other policies may have declared in between
            self.core.declare(lane_state.change_rate, lane)
        return lane_state.action

    def _learn(self, lane_state: EpochState, log: CrawlLog, tracker: Tracker) -> None:
        """Read a log, once per decision; plan if the last plan has ended, and set the action."""
        if lane_state.time == tracker.time:
            return
        lane_state.time = tracker.time
        lane_state.learned.add(log, tracker.time)
        if lane_state.over():
            lane_state.change_rate = within_domain(lane_state.learned.estimate())
            lane_state.adopt(self._plan(lane_state, tracker))
        lane_state.decide(log.signal_page, tracker.alive)

    def _plan(self, lane_state: EpochState, tracker: Tracker) -> Allocation:
        """Return the allocation that follows from ``lane_state.change_rate``."""
        problem, time = tracker.problem, tracker.time
        importance = np.where(tracker.alive, problem.importance, 0.0)
        bandwidth = bandwidth_at(problem, self.epoch, time)
        if not importance.any():
            return even(problem.num_pages, bandwidth)
        return self._allocate(lane_state, importance, bandwidth, time)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError(f"{self.name} is always bound")


def even(num_pages: int, bandwidth: float) -> Allocation:
    """Return an equal rate for every page; multiplier and objective are unknown (NaN)."""
    rates = np.full(num_pages, bandwidth / num_pages)
    return Allocation(rates, None, math.nan, math.nan, 0, True)
