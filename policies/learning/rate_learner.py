"""What policies share that learn change rates, and solve for crawl rates epoch by epoch."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crawl_envs.arguments import quantity
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from policies.allocated import complete_pages
from policies.binding import ActingPolicy
from policies.learning.epoch_seats import ROUNDING, EpochSeat, RatesSeat, SlotsSeat
from policies.learning.learned_rates import LearnedRates
from policies.regimes import epoch_regimes
from policies.solvers import Allocation


class RateLearner(ActingPolicy[EpochSeat]):
    """Learns change rates from what crawls and signals say, and crawls at rates that follow.

    In the form ``rates`` it answers every decision with the rates of the coming epoch: crawl rates
    of pages without complete observation, crawl probabilities per signal of the others. In the form
    ``page`` it makes the rates into crawls without randomness
    (:class:`policies.learning.even_slots.EvenSlots`), and plans anew every ``epoch``.

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
        self._learn(self._seat(tracker, lane), log, tracker)

    def _known(self, lane: int) -> EpochSeat:
        if lane not in self._seats:
            raise ValueError(f"lane must be one that predict was called for, got {lane!r}")
        return self._seats[lane]

    def _answers(self, complete: BoolArray) -> BoolArray:
        """Of which pages signals are answered: where possible, those of complete observation."""
        return complete

    def _begin(self, tracker: Tracker, lane: int) -> EpochSeat:
        assert self.core is not None
        problem, of_rates = tracker.problem, self.action_form == "rates"
        step = self.epoch if of_rates else 1.0 / problem.bandwidth
        horizon = self.core.num_slots(lane) * step
        since = 0.0 if tracker.time <= step * (1.0 + ROUNDING) else tracker.time - step
        complete = self._answers(complete_pages(problem))
        student = self._student(problem, complete, since)
        if of_rates:
            return RatesSeat(tracker.episode, horizon, student, complete)
        return SlotsSeat(tracker.episode, horizon, student, complete, self.epoch)

    def _choose(self, seat: EpochSeat, tracker: Tracker, lane: int) -> NDArray[Any]:
        assert self.core is not None
        self._learn(seat, self.core.last_log(lane), tracker)
        if self.action_form == "rates":  # anew each time: others may have declared in between
            self.core.declare(seat.believed, lane)
        return seat.action

    def _learn(self, seat: EpochSeat, log: CrawlLog, tracker: Tracker) -> None:
        """Take in a log, once per decision; plan if it is time to, and settle the action."""
        if seat.time == tracker.time:
            return
        seat.time = tracker.time
        seat.learned.take_in(log, tracker.time)
        if seat.over():
            seat.believed = seat.learned.estimate()
            seat.adopt(self._plan(seat, tracker))
        seat.decide(log.signal_page, tracker.alive)

    def _plan(self, seat: EpochSeat, tracker: Tracker) -> Allocation:
        """The allocation that follows from ``seat.believed``."""
        problem, time = tracker.problem, tracker.time
        importance = np.where(tracker.alive, problem.importance, 0.0)
        bandwidth = self._bandwidth(problem, time)
        if not importance.any():
            return even(problem.num_pages, bandwidth)
        return self._allocate(seat, importance, bandwidth, time)

    def _bandwidth(self, problem: Problem, time: float) -> float:
        """Mean bandwidth of the epoch that begins at a time."""
        starts, bandwidths = zip(*epoch_regimes(problem, self.epoch), strict=True)
        return float(bandwidths[np.searchsorted(starts, time * (1.0 + 1e-9), side="right") - 1])

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError(f"{self.name} is always bound")


def even(num_pages: int, bandwidth: float) -> Allocation:
    """Every page at the same rate; multiplier and objective are not known (NaN)."""
    rates = np.full(num_pages, bandwidth / num_pages)
    return Allocation(rates, None, math.nan, math.nan, 0, True)
