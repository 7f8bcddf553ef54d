"""Policies that learn in compiled code; steps and whole episodes call the same functions."""

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
    """The state of a lane's episode: the learner, and the pages at its last decision.

    ``since`` is the start of each page's elapsed time, ``known`` whether it existed, (m,) each.
    """

    episode: int
    learner: CompiledLearner
    time: float
    since: FloatArray
    known: BoolArray

    def join(self, tracker: Tracker) -> None:
        """Begin in mid-episode: earlier signals, whose times are unknown, count as arriving now."""
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
        """Update on the log since the last decision, in the order of compiled rollouts."""
        memory, num_sources = self.learner.memory, tracker.problem.num_sources
        learn, on_birth_or_death, on_signal = map(
            ready, (self.learner.learn, self.learner.on_birth_or_death, self.learner.on_signal)
        )
        received = log.signals.reshape(num_sources, -1).T.astype(np.float64)
        for k in np.flatnonzero(~log.probe):
            page, time = int(log.page[k]), float(log.time[k])
            outcome = float(log.elapsed[k]), np.ascontiguousarray(received[k]), bool(log.changed[k])
            learn(*memory, page, time, *outcome)
            self.since[page] = time
        start = tracker.time - tracker.elapsed
        newer = tracker.alive & (start > self.since + AGE_ROUNDING * tracker.time)
        for page in np.flatnonzero(newer | (tracker.alive != self.known)).tolist():
            on_birth_or_death(*memory, page, float(start[page]), bool(tracker.alive[page]))
        self.since = np.where(tracker.alive, start, self.since)
        self.known[:] = tracker.alive
        on_signal(*memory, log.signal_page, log.signal_time, log.signal_source)
        self.time = tracker.time


def is_complete(log: CrawlLog, tracker: Tracker) -> bool:
    """Return whether a log contains all events so far, as the first of an episode does."""
    logged = np.zeros_like(np.atleast_2d(tracker.signals))
    np.add.at(logged, (log.signal_source, log.signal_page), 1)
    return log.page.size == 0 and bool(np.all(np.atleast_2d(tracker.signals) <= logged))


class CompiledLearnerPolicy(CrawlPolicy[MemoryState]):
    """Crawls the pages of the largest scores, and learns from every crawl and signal.

    It is bound to an environment, whose tracker and log it reads at every decision. Only the shape
    of the observation is read: a changed, delayed or masked observation changes nothing. Compiled
    rollouts (:func:`crawl_envs.evaluation.simulate`) make the same crawls as its steps.

    A lane whose state is set (``set_state``) counts as in a new episode. There, and where its
    first decision is in mid-episode, the policy starts from its initial memory: it reads only the
    elapsed times of pages, and their signals since, as if these arrived at that moment. Everything
    learned before is dropped.

    Args:
        env: a crawl environment, single or vector, wrapped or not.

    Raises:
        ValueError: as for the base class.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)

    @abstractmethod
    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """Return the initial learner of ``problem``; ``slots`` and ``rng`` are not used.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """

    def scores(self, lane: int = 0) -> FloatArray:
        """Return the scores of the pages at the current decision, (m,); -inf if not alive."""
        assert self.core is not None
        tracker = self.core.tracker(lane)
        return self._scores(self._up_to_date(tracker, lane), tracker)

    def observe(self, log: CrawlLog, lane: int = 0) -> None:
        """Learn from the last log now, instead of at the next ``predict``."""
        assert self.core is not None
        self._up_to_date(self.core.tracker(lane), lane)

    def _start(self, compiled: Compiled, tracker: Tracker) -> MemoryState:
        assert isinstance(compiled, CompiledLearner)
        num_pages = tracker.elapsed.size
        return MemoryState(
            tracker.episode, compiled, -np.inf, np.zeros(num_pages), np.ones(num_pages, np.bool_)
        )

    def _up_to_date(self, tracker: Tracker, lane: int) -> MemoryState:
        """Return the state of the lane's episode, updated to this decision."""
        assert self.core is not None
        lane_state = self._lane_state(tracker, lane)
        if lane_state.time != tracker.time:
            log = self.core.last_log(lane)
            if lane_state.time == -np.inf and not is_complete(log, tracker):
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
        arguments = tracker.time, tracker.elapsed, tracker.alive, scores
        ready(lane_state.learner.score)(*lane_state.learner.memory, *arguments)
        return np.where(tracker.alive, scores, -np.inf)

    def _choose(self, lane_state: MemoryState, tracker: Tracker, lane: int) -> IntArray:
        scores = self._scores(self._up_to_date(tracker, lane), tracker)
        return largest_pages(scores, tracker.alive, self._count)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise ValueError(f"{self.name} must be bound to an environment, whose log it reads")
