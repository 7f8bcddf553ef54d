"""What policies share that learn change rates, and solve for crawl rates epoch by epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.arguments import quantity
from policies import estimators
from policies.base.allocated import complete_pages
from policies.base.bandwidths import epoch_bandwidths
from policies.base.binding import ActingPolicy
from policies.base.signal_queue import response_share
from policies.lambdacrawl.even_slots import EvenSlots
from policies.solvers import Allocation

ROUNDING = 1e-12
"""By so much, relative to it, a time may miss the end of a step or epoch and count as there."""


@dataclass
class EpochState(ABC):
    """One lane's episode: what was learned, what follows from it, and the present action.

    Attributes:
        episode: its number.
        horizon: its end, as long as the bandwidth does not step.
        learned: what was learned of change rates.
        complete: pages whose signals are answered, (m,).
        believed: the change rates of the present plan, (m,).
        allocation: the present plan; None before the first.
        action: the present action; what it is depends on the form.
        time: of the latest decision that a log was taken in at; NaN before the first.
    """

    episode: int
    horizon: float
    learned: LearnedRates
    complete: BoolArray
    believed: FloatArray = field(init=False)
    allocation: Allocation | None = field(default=None, init=False)
    action: NDArray[Any] = field(init=False)
    time: float = field(default=math.nan, init=False)

    def __post_init__(self) -> None:
        self.believed = np.zeros(self.complete.size)

    @abstractmethod
    def over(self) -> bool:
        """Whether the present plan has ended."""

    @abstractmethod
    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Take on a plan: crawl rates, 0 on complete pages, and chances, 0 elsewhere; (m,) each."""

    @abstractmethod
    def decide(self, heard: IntArray, alive: BoolArray) -> None:
        """Settle the action, after signals of pages, (n,), in the order that they came."""

    def adopt(self, allocation: Allocation) -> None:
        """Take on the allocation that follows from ``believed``."""
        self.allocation = allocation
        self.follow(*played(allocation, self.complete, self.believed))


@dataclass
class RatesState(EpochState):
    """In the form ``rates``: every plan is the action of one epoch, (m,)."""

    def over(self) -> bool:
        """Always: every decision is an epoch's first."""
        return True

    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Take on a plan."""
        self.action = rates + chances

    def decide(self, heard: IntArray, alive: BoolArray) -> None:
        """Nothing is left to settle."""


@dataclass
class SlotsState(EpochState):
    """In the form ``page``: plans hold for an ``epoch`` each, whose slots go out evenly.

    The action is the page of a slot, (1,).
    """

    epoch: float
    slots: EvenSlots = field(init=False)
    until: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.slots = EvenSlots(self.complete.size)

    def over(self) -> bool:
        """Whether the epoch of the present plan has ended, or there is none."""
        return self.time >= self.until

    def follow(self, rates: FloatArray, chances: FloatArray) -> None:
        """Take on a plan, to the end of the epoch that holds the present time."""
        self.slots.plan(rates, chances)
        passed = math.floor(self.time / self.epoch * (1.0 + ROUNDING))
        self.until = (passed + 1) * self.epoch * (1.0 - ROUNDING)

    def decide(self, heard: IntArray, alive: BoolArray) -> None:
        """Give the next slot to a page."""
        self.slots.on_signal(heard)
        self.action = np.array([self.slots.take(alive)])


def played(
    allocation: Allocation, complete: BoolArray, change_rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Crawl rates, 0 on complete pages, and crawl probabilities, 0 elsewhere; (m,) each.

    Where the solver knows of no signals, complete pages answer as many as their rates call for.
    """
    chances = allocation.probabilities
    if chances is None:
        chances = response_share(allocation.rates, change_rate)
    return np.where(complete, 0.0, allocation.rates), np.where(complete, chances, 0.0)


class CrawlEstimator(Protocol):
    """Estimates change rates from what crawls find, as :class:`policies.estimators` has them."""

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
        """Take in crawls in order of time."""


class LearnedRates:
    """Change rates from crawls, and from signals where observation is complete.

    Signals tell (U + smoothing) / (S + smoothing) for U signals in the time S: Algorithm 4 of
    Kolobov et al. (2019). The crawls of such pages, and probes, tell nothing more.

    Args:
        complete: pages whose every change is signalled, (m,).
        crawled: estimates the rates of the other pages.
        initial: first guess, before anything was observed, > 0.
        window: the last units of time that count for signals; None for all.
        smoothing: number of imaginary signals.
        since: when learning begins; signals before that do not count.

    Attributes:
        closed: True takes in nothing any more.
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
        self._heard = estimators.CompleteObservations(
            complete.size, smoothing=smoothing, window=window, initial=initial, start=since
        )

    def take_in(self, log: CrawlLog, time: float) -> None:
        """Take in the crawls and signals of a log that ends at a time."""
        if not self.closed:
            self._logs.append(log)
            self._time = time

    def estimate(self) -> FloatArray:
        """Change rates, (m,)."""
        if self._logs:
            self._read()
        return np.where(self.complete, self._heard.estimate_, self._crawled.estimate_)

    def _read(self) -> None:
        """Pass on what came since the last look, all at once, which is much faster."""
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
            heard = self.complete[signal] & (times >= self.since)
            self._heard.update(signal[heard], time=self._time, signal_time=times[heard])
        self._logs.clear()


class RateLearner(ActingPolicy[EpochState]):
    """Learns change rates from what crawls and signals say, and crawls at rates that follow.

    In the form ``rates`` it answers every decision with the rates of the coming epoch: crawl rates
    of pages without complete observation, crawl probabilities per signal of the others. In the form
    ``page`` it makes the rates into crawls without randomness
    (:class:`policies.lambdacrawl.even_slots.EvenSlots`), and plans anew every ``epoch``.

    It reads importance, the bandwidth and which pages have complete observation, and learns the
    rest from ``last_log`` at every ``predict``, once per decision, whether or not ``observe`` was
    called. Change rates are not read where they are revealed. Every episode starts from nothing,
    and lanes learn by themselves. A lane that takes on a state (``set_state``) counts as in a new
    episode: there the policy begins again from nothing, with the step before that state.

    In the form ``rates`` every ``predict`` also declares to the environment the change rates that
    it believes in. The last declaration before a step is what its budget goes by: of several
    learners on one environment, ask the one whose action is played last.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        epoch: in the form ``page``, units of time between two plans; in the form ``rates`` it is
            the environment's.

    Raises:
        ValueError: ``env`` is no crawl environment, or has another form of action; an argument out
            of its range.
    """

    acts: ClassVar[tuple[str, ...]] = ("page", "rates")

    def __init__(self, env: Any, *, epoch: float = 1.0) -> None:
        if env is None:
            raise ValueError(f"{self.name} plans ahead, so env must be an environment")
        super().__init__(env)
        self.epoch = quantity("epoch", epoch, above=0.0)
        if self.core is not None and self.action_form == "rates":
            self.epoch = self.core.epoch

    @abstractmethod
    def _student(self, problem: Problem, complete: BoolArray, since: float) -> LearnedRates:
        """What learns in an episode, from a time on."""

    @abstractmethod
    def _allocate(
        self, lane_state: EpochState, importance: FloatArray, bandwidth: float, time: float
    ) -> Allocation:
        """The allocation for a time and a bandwidth, given ``seat.believed``.

        Importance, (m,), is 0 for pages that do not exist, and not all zero.
        """

    def estimate(self, lane: int = 0) -> FloatArray:
        """The change rates that the present plan of a lane believes in, (m,).

        Raises:
            ValueError: nothing was decided in this lane yet.
        """
        return self._known(lane).believed.copy()

    def allocation(self, lane: int = 0) -> Allocation:
        """The present plan of a lane; of pages with complete observation, ``rates`` are expected.

        Raises:
            ValueError: nothing was decided in this lane yet.
        """
        found = self._known(lane).allocation
        assert found is not None
        return found

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn from what the last step taught in a lane, as the next ``predict`` would do."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        self._learn(self._lane_state(tracker, lane), log, tracker)

    def _known(self, lane: int) -> EpochState:
        if lane not in self._lane_states:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._lane_states[lane]

    def _responses(self, complete: BoolArray) -> BoolArray:
        """Of which pages signals are answered: where possible, those of complete observation."""
        return complete

    def _begin(self, tracker: Tracker, lane: int) -> EpochState:
        assert self.core is not None
        problem, of_rates = tracker.problem, self.action_form == "rates"
        step = self.epoch if of_rates else 1.0 / problem.bandwidth
        horizon = self.core.num_slots(lane) * step
        since = 0.0 if tracker.time <= step * (1.0 + ROUNDING) else tracker.time - step
        complete = self._responses(complete_pages(problem))
        student = self._student(problem, complete, since)
        if of_rates:
            return RatesState(tracker.episode, horizon, student, complete)
        return SlotsState(tracker.episode, horizon, student, complete, self.epoch)

    def _choose(self, lane_state: EpochState, tracker: Tracker, lane: int) -> NDArray[Any]:
        assert self.core is not None
        self._learn(lane_state, self.core.last_log(lane), tracker)
        if self.action_form == "rates":  # anew each time: others may have declared in between
            self.core.declare(lane_state.believed, lane)
        return lane_state.action

    def _learn(self, lane_state: EpochState, log: CrawlLog, tracker: Tracker) -> None:
        """Take in a log, once per decision; plan if it is time to, and settle the action."""
        if lane_state.time == tracker.time:
            return
        lane_state.time = tracker.time
        lane_state.learned.take_in(log, tracker.time)
        if lane_state.over():
            lane_state.believed = lane_state.learned.estimate()
            lane_state.adopt(self._plan(lane_state, tracker))
        lane_state.decide(log.signal_page, tracker.alive)

    def _plan(self, lane_state: EpochState, tracker: Tracker) -> Allocation:
        """The allocation that follows from ``seat.believed``."""
        problem, time = tracker.problem, tracker.time
        importance = np.where(tracker.alive, problem.importance, 0.0)
        bandwidth = self._bandwidth(problem, time)
        if not importance.any():
            return even(problem.num_pages, bandwidth)
        return self._allocate(lane_state, importance, bandwidth, time)

    def _bandwidth(self, problem: Problem, time: float) -> float:
        """Mean bandwidth of the epoch that begins at a time."""
        starts, bandwidths = zip(*epoch_bandwidths(problem, self.epoch), strict=True)
        return float(bandwidths[np.searchsorted(starts, time * (1.0 + 1e-9), side="right") - 1])

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError(f"{self.name} is always bound")


def even(num_pages: int, bandwidth: float) -> Allocation:
    """Every page at the same rate; multiplier and objective are not known (NaN)."""
    rates = np.full(num_pages, bandwidth / num_pages)
    return Allocation(rates, None, math.nan, math.nan, 0, True)
