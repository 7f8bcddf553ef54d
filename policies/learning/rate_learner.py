"""What policies share that learn change rates, and solve for crawl rates epoch by epoch."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crawl_envs.arguments import real
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from policies.allocated import complete_pages
from policies.binding import ActingPolicy
from policies.learning.even_slots import EvenSlots
from policies.learning.learned_rates import LearnedRates
from policies.regimes import epoch_regimes
from policies.solvers import Allocation


@dataclass
class EpochSeat:
    """One lane's episode: what was learned, what follows from it, and until when it holds."""

    episode: int
    horizon: float
    learned: LearnedRates
    complete: BoolArray
    slots: EvenSlots
    believed: FloatArray
    allocation: Allocation | None = None
    until: float = -math.inf
    time: float = math.nan
    action: NDArray[Any] | None = None


class RateLearner(ActingPolicy[EpochSeat]):
    """Learns change rates from what crawls and signals say, and crawls at rates that follow.

    In the form ``rates`` it answers every decision with the rates of the coming epoch: crawl rates
    of pages without complete observation, crawl probabilities per signal of the others. In the form
    ``page`` it makes the rates into crawls without randomness
    (:class:`policies.learning.even_slots.EvenSlots`), and plans anew every ``epoch``.

    It reads importance, the bandwidth and which pages have complete observation, and learns the
    rest from ``last_log`` at every ``predict``, once per decision, whether or not ``observe`` was
    called. Change rates are not read where they are revealed. Every episode starts from nothing,
    and lanes learn by themselves.

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
        self.epoch = real("epoch", epoch, above=0.0)

    @abstractmethod
    def _student(self, problem: Problem, complete: BoolArray) -> LearnedRates:
        """What learns in an episode."""

    @abstractmethod
    def _allocate(
        self, seat: EpochSeat, importance: FloatArray, bandwidth: float, time: float
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
        self._act(self._seat(tracker, lane), log, tracker, lane)

    def _known(self, lane: int) -> EpochSeat:
        if lane not in self._seats:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._seats[lane]

    def _answers(self, complete: BoolArray) -> BoolArray:
        """Of which pages signals are answered: where possible, those of complete observation."""
        return complete

    def _begin(self, tracker: Tracker, lane: int) -> EpochSeat:
        problem = tracker.problem
        complete = self._answers(complete_pages(problem))
        return EpochSeat(
            episode=tracker.episode,
            horizon=self._horizon(problem, lane),
            learned=self._student(problem, complete),
            complete=complete,
            slots=EvenSlots(problem.num_pages),
            believed=np.zeros(problem.num_pages),
        )

    def _choose(self, seat: EpochSeat, tracker: Tracker, lane: int) -> NDArray[Any]:
        assert self.core is not None
        if seat.time != tracker.time:
            self._act(seat, self.core.last_log(lane), tracker, lane)
        assert seat.action is not None
        return seat.action

    def _act(self, seat: EpochSeat, log: CrawlLog, tracker: Tracker, lane: int) -> None:
        """Take in a log, once, plan if it is time to, and settle the action."""
        if seat.time == tracker.time:
            return
        seat.time = tracker.time
        seat.learned.take_in(log, tracker.time)
        if self.action_form == "rates":
            seat.action = self._plan(seat, tracker)
            assert self.core is not None
            self.core.declare(seat.believed, lane)
            return
        if tracker.time >= seat.until:
            self._plan(seat, tracker)
            passed = math.floor(tracker.time / self.epoch * (1.0 + 1e-12))
            seat.until = (passed + 1) * self.epoch * (1.0 - 1e-12)
        seat.slots.hear(log.signal_page)
        seat.action = np.array([seat.slots.take(tracker.alive)])

    def _plan(self, seat: EpochSeat, tracker: Tracker) -> FloatArray:
        """Estimate and allocate; returns the rates, or probabilities where signals count."""
        problem, time = tracker.problem, tracker.time
        seat.believed = seat.learned.estimate()
        importance = np.where(tracker.alive, problem.importance, 0.0)
        bandwidth = self._bandwidth(problem, time)
        if importance.any():
            seat.allocation = self._allocate(seat, importance, bandwidth, time)
        else:
            seat.allocation = even(problem.num_pages, bandwidth)
        rates, chances = played(seat.allocation, seat.complete, seat.believed)
        seat.slots.plan(rates, chances)
        return np.where(seat.complete, chances, rates)

    def _epoch(self) -> float:
        """Time between two plans."""
        assert self.core is not None
        return self.core.epoch if self.action_form == "rates" else self.epoch

    def _horizon(self, problem: Problem, lane: int) -> float:
        """End of the episode, as long as the bandwidth does not step."""
        assert self.core is not None
        length = self.core.epoch if self.action_form == "rates" else 1.0 / problem.bandwidth
        return self.core.num_slots(lane) * length

    def _bandwidth(self, problem: Problem, time: float) -> float:
        """Mean bandwidth of the epoch that begins at a time."""
        starts, bandwidths = zip(*epoch_regimes(problem, self._epoch()), strict=True)
        return float(bandwidths[np.searchsorted(starts, time * (1.0 + 1e-9), side="right") - 1])

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError(f"{self.name} is always bound")


def played(
    allocation: Allocation, complete: BoolArray, change_rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Crawl rates, 0 on complete pages, and crawl probabilities, 0 elsewhere; (m,) each.

    Where the solver knows of no signals, a complete page's rate becomes the probability that makes
    as many crawls, at most 1.
    """
    chances = allocation.probabilities
    if chances is None:
        chances = np.minimum(allocation.rates / np.maximum(change_rate, 1e-300), 1.0)
    return np.where(complete, 0.0, allocation.rates), np.where(complete, chances, 0.0)


def even(num_pages: int, bandwidth: float) -> Allocation:
    """Every page at the same rate; multiplier and objective are not known (NaN)."""
    rates = np.full(num_pages, bandwidth / num_pages)
    return Allocation(rates, None, math.nan, math.nan, 0, True)
