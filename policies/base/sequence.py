"""Policies whose crawls are known beforehand: a page for every slot, but for answered signals.

A policy may also answer a share of the signals of some pages: those in the queue of
:class:`policies.base.signal_queue.ResponseQueue` are crawled first, and the sequence goes on in the slots that
are left.
"""

from __future__ import annotations

import math
from abc import abstractmethod
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
    """One lane's episode: its sequence of pages, how far it was followed, and the open answers.

    ``distinct`` are the pages of the sequence, each once; ``responses`` is None where no signal is
    answered.
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
        """The seat of an episode that starts."""
        responses = None if compiled.answered is None else ResponseQueue(compiled.answered)
        return cls(episode, compiled.pages, np.unique(compiled.pages), responses)

    def advance(self, count: int, alive: BoolArray) -> IntArray:
        """The next ``count`` distinct alive pages; the first alive page if there are none left."""
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
        """The pages of a decision; asked again at the same one, the same."""
        if self.time != tracker.time:
            if self.responses is not None:
                self.responses.on_signal(core.last_log(lane).signal_page)
            self.chosen = self.advance(count, tracker.alive)
            self.time = tracker.time
        return self.chosen


class PlannedPolicy(CrawlPolicy[EpisodeState]):
    """A policy that decides at the start of an episode what it will do.

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
                f"{self.name} plans its crawls, so env must be an environment, or action_form say "
                "how it is simulated without one"
            )
        super().__init__(env, features=() if env is None else None, action_form=action_form)

    def _lanes(self, observation: Any) -> NDArray[Any]:
        if self.core is None:
            raise ValueError(f"{self.name} has no env: it can be simulated, but has no predictions")
        return super()._lanes(observation)

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError("predict refuses")


class SequencePolicy(PlannedPolicy[SequenceState]):
    """Follows a sequence of pages that is made when an episode starts.

    Each decision takes the next entry (in the form ``scores``, the next ``batch`` different
    pages), and leaves out pages that do not exist; a sequence that ends starts over. Asked twice
    at one decision, it gives the same answer.

    Arguments and errors as for :class:`PlannedPolicy`.
    """

    @abstractmethod
    def _sequence(self, problem: Problem, slots: int, rng: np.random.Generator) -> IntArray:
        """The page of every slot, shape (slots,)."""

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """The page of every slot; random ones are drawn from ``rng``.

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
