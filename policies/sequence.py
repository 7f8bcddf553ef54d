"""Policies whose crawls are known beforehand: a page for every slot of the episode."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled_forms import Compiled, CompiledSequence
from crawl_envs.types import BoolArray, IntArray, Problem, Tracker
from policies.binding import CrawlPolicy


@dataclass
class SequenceSeat:
    """One lane's episode: its sequence of pages, and how far it was followed."""

    episode: int
    pages: IntArray
    distinct: IntArray
    position: int
    time: float
    chosen: IntArray

    def advance(self, count: int, alive: BoolArray) -> IntArray:
        """The next ``count`` distinct alive pages; the first alive page if there are none left."""
        count = min(count, int(alive[self.distinct].sum()))
        chosen: list[int] = []
        while len(chosen) < count:
            page = int(self.pages[self.position])
            self.position = (self.position + 1) % self.pages.size
            if alive[page] and page not in chosen:
                chosen.append(page)
        return np.array(chosen or [int(np.argmax(alive))], dtype=np.int64)


class SequencePolicy(CrawlPolicy[SequenceSeat]):
    """Follows a sequence of pages that is made when an episode starts.

    Each decision takes the next entry (in the form ``scores``, the next ``batch`` different
    pages), and leaves out pages that do not exist; a sequence that ends starts over. Asked twice
    at one decision, it gives the same answer.

    Args:
        env: a crawl environment, single or vector, wrapped or not.

    Raises:
        ValueError: ``env`` is no crawl environment; when an episode starts, parameters that the
            policy needs are not revealed.
    """

    def __init__(self, env: Any) -> None:
        if env is None:
            raise ValueError(f"{self.name} follows a sequence, so env must be an environment")
        super().__init__(env)

    @abstractmethod
    def _sequence(self, problem: Problem, slots: int, coins: np.random.Generator) -> IntArray:
        """The page of every slot, shape (slots,)."""

    def compile(self, problem: Problem, slots: int, coins: np.random.Generator) -> CompiledSequence:
        """The page of every slot; random ones are drawn from ``coins``.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """
        self._require(problem)
        return CompiledSequence(self._sequence(problem, slots, coins))

    def _sit(self, compiled: Compiled, tracker: Tracker) -> SequenceSeat:
        assert isinstance(compiled, CompiledSequence)
        return SequenceSeat(
            episode=tracker.episode,
            pages=compiled.pages,
            distinct=np.unique(compiled.pages),
            position=0,
            time=math.nan,
            chosen=compiled.pages[:1],
        )

    def _choose(self, seat: SequenceSeat, tracker: Tracker, lane: int) -> IntArray:
        if seat.time != tracker.time:
            count = self.batch if self.action_form == "scores" else 1
            seat.chosen = seat.advance(count, tracker.alive)
            seat.time = tracker.time
        return seat.chosen

    def _read(self, rows: NDArray[Any], lane: int) -> IntArray:
        raise AssertionError("a sequence policy is always bound")
