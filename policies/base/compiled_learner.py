"""Policies that learn in compiled code; steps and whole episodes call the same functions."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from crawl_envs.compiled.compiling import ready
from crawl_envs.compiled.promises import put_due_first
from crawl_envs.types import CrawlLog, FloatArray, IntArray, Problem, Tracker
from crawl_envs.types.compiled_policies import AGE_ROUNDING, CompiledLearner
from policies.base.live import is_complete
from policies.base.policy import CrawlPolicy, Pages
from policies.base.promising import PromisingPolicy
from policies.values.ranking import largest_pages


class CompiledLearnerPolicy(PromisingPolicy, CrawlPolicy):
    """Crawls the pages of the largest scores, and learns from every crawl and signal.

    Compiled rollouts (:func:`crawl_envs.evaluation.simulate`) make the same crawls as steps.

    A lane whose state is set (``set_state``) counts as in a new episode. There, and where its
    first decision is in mid-episode, the policy starts from its initial memory: it reads only the
    elapsed times of pages, and their signals since, as if these arrived at that moment. Everything
    learned before is dropped.
    """

    learns = True

    @abstractmethod
    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """Return the initial learner of ``problem``; ``slots`` and ``rng`` are not used.

        Its ``promises`` must be ``self.promises(problem)``. Raises ValueError where the problem
        lacks parameters that the policy needs.
        """

    def scores(self, tracker: Tracker) -> FloatArray:
        """Return the scores of the pages at the current decision, (m,); -inf if not alive."""
        scores = np.empty(tracker.elapsed.size)
        arguments = tracker.time, tracker.elapsed, tracker.alive, scores
        ready(self.learner.score)(self.learner.memory, *arguments)
        put_due_first(self.learner.promises, tracker.elapsed, scores)
        return np.where(tracker.alive, scores, -np.inf)

    def start(self, pages: Pages) -> None:
        """Begin with the initial memory, and learn from the episode's events so far."""
        tracker, log = pages.tracker(), pages.last_log()
        self.learner = self.compile(tracker.problem, 0, np.random.default_rng(0))
        self.since, self.existing = np.zeros(tracker.elapsed.size), np.ones_like(tracker.alive)
        if is_complete(log, tracker):
            self.update(log, tracker)
        else:
            self._join(tracker)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Update the memory by crawls, births, deaths and signals, in the order of rollouts."""
        memory, num_sources = self.learner.memory, tracker.problem.num_sources
        learn, on_birth_or_death, on_signal = map(
            ready, (self.learner.learn, self.learner.on_birth_or_death, self.learner.on_signal)
        )
        received = log.signals.reshape(num_sources, -1).T.astype(np.float64)
        for k in range(log.page.size):
            page, time = int(log.page[k]), float(log.time[k])
            outcome = float(log.elapsed[k]), np.ascontiguousarray(received[k]), bool(log.changed[k])
            learn(memory, page, time, *outcome)
            self.since[page] = time
        start = tracker.time - tracker.elapsed
        newer = tracker.alive & (start > self.since + AGE_ROUNDING * tracker.time)
        for page in np.flatnonzero(newer | (tracker.alive != self.existing)).tolist():
            on_birth_or_death(memory, page, float(start[page]), bool(tracker.alive[page]))
        self.since = np.where(tracker.alive, start, self.since)
        self.existing[:] = tracker.alive
        on_signal(memory, log.signal_page, log.signal_time, log.signal_source)

    def _join(self, tracker: Tracker) -> None:
        """Begin in mid-episode: earlier signals, whose times are unknown, count as arriving now."""
        self.since[:] = tracker.time - tracker.elapsed
        self.existing[:] = tracker.alive
        counts = np.atleast_2d(tracker.signals)
        source, page = np.nonzero(counts)
        repeats = counts[source, page]
        page, source = np.repeat(page, repeats), np.repeat(source, repeats)
        times = np.full(page.size, tracker.time)
        ready(self.learner.on_signal)(self.learner.memory, page, times, source)

    def choose(self, tracker: Tracker) -> IntArray:
        """Return the alive pages with the largest scores, best first."""
        return largest_pages(self.scores(tracker), tracker.alive, self.num_chosen(tracker))
