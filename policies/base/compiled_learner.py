"""Policies that learn in compiled code: the same functions play steps and whole episodes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.compiled_policies import AGE_ROUNDING, Compiled, CompiledLearner
from crawl_envs.types.compiling import ready
from policies.base.binding import CrawlPolicy
from policies.base.index import largest_pages


@dataclass
class MemoryState:
    """One lane's episode: the learner, and what it knew of the pages at its last decision.

    ``since`` says when each page's elapsed time began, and ``known`` whether it existed, (m,) each.
    """

    episode: int
    learner: CompiledLearner
    time: float
    since: FloatArray
    known: BoolArray

    def join(self, tracker: Tracker) -> None:
        """Begin in mid-episode: earlier signals are heard now, since their times are not known."""
        self.since[:] = tracker.time - tracker.elapsed
        self.known[:] = tracker.alive
        counts = np.atleast_2d(tracker.signals)
        source, page = np.nonzero(counts)
        repeats = counts[source, page]
        page, source = np.repeat(page, repeats), np.repeat(source, repeats)
        ready(self.learner.on_signal)(
            *self.learner.memory, page, np.full(page.size, tracker.time), source
        )

    def follow(self, log: CrawlLog, tracker: Tracker) -> None:
        """Take in what was learned since the last decision, in the order of compiled rollouts."""
        memory, num_sources = self.learner.memory, tracker.problem.num_sources
        learn, on_birth_or_death, on_signal = map(
            ready, (self.learner.learn, self.learner.on_birth_or_death, self.learner.on_signal)
        )
        received = log.signals.reshape(num_sources, -1).T.astype(np.float64)
        for k in np.flatnonzero(~log.probe):
            page, time = int(log.page[k]), float(log.time[k])
            found = float(log.elapsed[k]), np.ascontiguousarray(received[k]), bool(log.changed[k])
            learn(*memory, page, time, *found)
            self.since[page] = time
        start = tracker.time - tracker.elapsed
        newer = tracker.alive & (start > self.since + AGE_ROUNDING * tracker.time)
        for page in np.flatnonzero(newer | (tracker.alive != self.known)).tolist():
            on_birth_or_death(*memory, page, float(start[page]), bool(tracker.alive[page]))
        self.since = np.where(tracker.alive, start, self.since)
        self.known[:] = tracker.alive
        on_signal(*memory, log.signal_page, log.signal_time, log.signal_source)
        self.time = tracker.time


def tells_all(log: CrawlLog, tracker: Tracker) -> bool:
    """Whether a log tells all that is known, as the first of an episode does."""
    told = np.zeros_like(np.atleast_2d(tracker.signals))
    np.add.at(told, (log.signal_source, log.signal_page), 1)
    return log.page.size == 0 and bool(np.all(np.atleast_2d(tracker.signals) <= told))


class CompiledLearnerPolicy(CrawlPolicy[MemoryState]):
    """Crawls the pages of the largest scores, and learns from every crawl and signal.

    It is bound to an environment, whose tracker and log it reads at every decision. What the
    observation holds is ignored, but for its shape: a changed, delayed or masked observation
    changes nothing. Compiled rollouts (:func:`crawl_envs.evaluation.simulate`) crawl as its steps
    do.

    A lane that takes on a state (``set_state``) counts as in a new episode. There, and where it
    first decides in mid-episode, the policy begins anew: of what was before it takes in only the
    ages of pages, and their signals since, as if those came at that moment. What it learned in
    another past is forgotten.

    Args:
        env: a crawl environment, single or vector, wrapped or not.

    Raises:
        ValueError: as for the base class.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)

    @abstractmethod
    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """The learner that knows no more than ``problem``; ``slots`` and ``rng`` do not matter.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """

    def scores(self, lane: int = 0) -> FloatArray:
        """The scores of the pages at the decision at hand, (m,); -inf where they do not exist."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        return self._scores(self._up_to_date(tracker, lane), tracker)

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn what the next ``predict`` would learn; it has nothing left to learn then."""
        assert self.core is not None
        self._up_to_date(self.core.tracker(lane), lane)

    def _start(self, compiled: Compiled, tracker: Tracker) -> MemoryState:
        assert isinstance(compiled, CompiledLearner)
        num_pages = tracker.elapsed.size
        return MemoryState(
            tracker.episode, compiled, -np.inf, np.zeros(num_pages), np.ones(num_pages, np.bool_)
        )

    def _up_to_date(self, tracker: Tracker, lane: int) -> MemoryState:
        """The lane's seat, after it has taken in what is new at this decision."""
        assert self.core is not None
        lane_state = self._lane_state(tracker, lane)
        if lane_state.time != tracker.time:
            log = self.core.last_log(lane)
            if lane_state.time == -np.inf and not tells_all(log, tracker):
                lane_state.join(tracker)
                lane_state.time = tracker.time
            else:
                lane_state.follow(log, tracker)
        return lane_state

    def _follow(self, lane: int) -> None:
        assert self.core is not None
        self._up_to_date(self.core.tracker(lane), lane)

    def _scores(self, lane_state: MemoryState, tracker: Tracker) -> FloatArray:
        scores = np.empty(tracker.elapsed.size)
        page_state = tracker.time, tracker.elapsed, tracker.alive, scores
        ready(lane_state.learner.score)(*lane_state.learner.memory, *page_state)
        return np.where(tracker.alive, scores, -np.inf)

    def _choose(self, lane_state: MemoryState, tracker: Tracker, lane: int) -> IntArray:
        scores = self._scores(self._up_to_date(tracker, lane), tracker)
        return largest_pages(scores, tracker.alive, self._count)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise ValueError(f"{self.name} must be bound to an environment, whose log it reads")
