"""Policies whose crawls are planned when an episode starts: a page for every slot.

A policy may also respond to a share of the signals of some pages: the pages in its
:class:`policies.base.signal_queue.ResponseQueue` are crawled first, and the sequence continues in
the remaining slots.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, IntArray, Problem, Tracker
from crawl_envs.types.compiled_policies import Compiled, CompiledSequence
from policies.base.binding import ActionForm, CrawlCore, CrawlPolicy, EpisodeState
from policies.base.signal_queue import ResponseQueue


@dataclass
class SequenceState:
    """The state of a lane's episode: its sequence of pages, position, and pending responses.

    ``distinct`` are the pages of the sequence, each once; ``responses`` is None without signal
    responses.
    """

    episode: int
    pages: IntArray
    distinct: IntArray
    responses: ResponseQueue | None
    position: int = 0
    time: float = math.nan
    chosen: IntArray = field(default_factory=lambda: np.zeros(1, np.int64))

    @classmethod
    def at_start(cls, episode: int, compiled: CompiledSequence) -> SequenceState:
        """Return the state of an episode that starts."""
        responses = None if compiled.answered is None else ResponseQueue(compiled.answered)
        return cls(episode, compiled.pages, np.unique(compiled.pages), responses)

    def advance(self, count: int, alive: BoolArray) -> IntArray:
        """Return the next ``count`` distinct alive pages; the first alive page if none is left."""
        chosen: list[int] = []
        if self.responses is not None:
            first = [self.responses.take() for _ in range(min(count, len(self.responses)))]
            chosen = [page for page in first if alive[page]]
        if len(chosen) < count:
            left = alive[self.distinct].sum() - np.isin(chosen, self.distinct).sum()
            count = min(count, len(chosen) + int(left))
        while len(chosen) < count:
            page = int(self.pages[self.position])
            self.position = (self.position + 1) % self.pages.size
            if alive[page] and page not in chosen:
                chosen.append(page)
        return np.array(chosen or [int(np.argmax(alive))], dtype=np.int64)

    def decide(self, core: CrawlCore, tracker: Tracker, lane: int, count: int) -> IntArray:
        """Return the pages of a decision; a second call at the same time returns the same."""
        if self.time != tracker.time:
            if self.responses is not None:
                self.responses.on_signal(core.last_log(lane).signal_page)
            self.chosen = self.advance(count, tracker.alive)
            self.time = tracker.time
        return self.chosen


class PlannedPolicy(CrawlPolicy[EpisodeState]):
    """A policy that plans its crawls at the start of an episode.

    Args:
        env: a crawl environment, single or vector, wrapped or not; None to be simulated only.
        action_form: without ``env``, the form of action in which it is simulated.

    Raises:
        ValueError: ``env`` is no crawl environment; neither or both arguments; when an episode
            starts, parameters that the policy needs are not revealed; at ``predict``, there is no
            ``env``.
    """

    def __init__(self, env: Any = None, *, action_form: ActionForm | None = None) -> None:
        if env is None and action_form is None:
            raise ValueError(
                f"{self.name} plans its crawls, so env must be an environment, or action_form the "
                "form in which it is simulated without one"
            )
        super().__init__(env, features=() if env is None else None, action_form=action_form)

    def _lanes(self, observation: Any) -> tuple[Sequence[Any], bool]:
        if self.core is None:
            raise ValueError(f"{self.name} has no env: it can be simulated, but cannot predict")
        return super()._lanes(observation)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError("predict raises before this")


class SequencePolicy(PlannedPolicy[SequenceState]):
    """Follows a sequence of pages that is made when an episode starts.

    Each decision takes the next entry (in the form ``scores``, the next ``batch`` different
    pages), and skips pages that do not exist; the sequence is cyclic. Two calls of ``predict`` at
    one decision return the same action.

    Arguments and errors as for :class:`PlannedPolicy`.
    """

    @abstractmethod
    def _sequence(self, problem: Problem, slots: int, rng: np.random.Generator) -> IntArray:
        """Return the page of every slot, (slots,)."""

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return the page of every slot; random ones are drawn from ``rng``.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """
        self._require(problem)
        return CompiledSequence(self._sequence(problem, slots, rng))

    def _start(self, compiled: Compiled, tracker: Tracker) -> SequenceState:
        assert isinstance(compiled, CompiledSequence)
        return SequenceState.at_start(tracker.episode, compiled)

    def _choose(self, lane_state: SequenceState, tracker: Tracker, lane: int) -> NDArray[Any]:
        assert self.core is not None
        return lane_state.decide(self.core, tracker, lane, self._count)
