"""Policies whose crawls are known beforehand: a page for every slot, but for answered signals.

A policy may also answer a share of the signals of some pages. Every signal adds that share to its
page's account; a page whose account reaches 1 joins a queue and is crawled in the next free slot,
first come, first served. Of its account, what is below 1 stays: of a page's first n signals
floor(share n) are answered, or fewer where the queue is so long that one crawl answers for several.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled_forms import ANSWER_DUE, Compiled, CompiledSequence
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Problem, Tracker
from policies.binding import ActionForm, CrawlCore, CrawlPolicy, Seat


@dataclass
class SequenceSeat:
    """One lane's episode: its sequence of pages, how far it was followed, and the open answers.

    ``share`` and ``account`` have shape (m,), or (0,) where no signal is answered; ``waiting`` are
    the pages whose account has reached 1, in the order in which they did.
    """

    episode: int
    pages: IntArray
    distinct: IntArray
    share: FloatArray
    account: FloatArray
    position: int = 0
    time: float = math.nan
    waiting: deque[int] = field(default_factory=deque)
    chosen: IntArray = field(default_factory=lambda: np.zeros(1, np.int64))

    @classmethod
    def at_start(cls, episode: int, compiled: CompiledSequence) -> SequenceSeat:
        """The seat of an episode that starts."""
        share = np.zeros(0) if compiled.answered is None else compiled.answered
        return cls(episode, compiled.pages, np.unique(compiled.pages), share, np.zeros(share.shape))

    def hear(self, log: CrawlLog) -> None:
        """Add the signals of the last step to the accounts."""
        account = self.account
        for page in log.signal_page.tolist():
            due = account[page] >= ANSWER_DUE
            account[page] += self.share[page]
            if not due and account[page] >= ANSWER_DUE:
                self.waiting.append(page)

    def advance(self, count: int, alive: BoolArray) -> IntArray:
        """The next ``count`` distinct alive pages; the first alive page if there are none left."""
        chosen: list[int] = []
        for _ in range(min(count, len(self.waiting))):
            page = self.waiting.popleft()
            while self.account[page] >= ANSWER_DUE:
                self.account[page] -= 1.0
            if alive[page]:
                chosen.append(page)
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
            if self.share.size:
                self.hear(core.last_log(lane))
            self.chosen = self.advance(count, tracker.alive)
            self.time = tracker.time
        return self.chosen


class PlannedPolicy(CrawlPolicy[Seat]):
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


class SequencePolicy(PlannedPolicy[SequenceSeat]):
    """Follows a sequence of pages that is made when an episode starts.

    Each decision takes the next entry (in the form ``scores``, the next ``batch`` different
    pages), and leaves out pages that do not exist; a sequence that ends starts over. Asked twice
    at one decision, it gives the same answer.

    Arguments and errors as for :class:`PlannedPolicy`.
    """

    @abstractmethod
    def _sequence(self, problem: Problem, slots: int, coins: np.random.Generator) -> IntArray:
        """The page of every slot, shape (slots,)."""

    def compile(self, problem: Problem, slots: int, coins: np.random.Generator) -> Compiled:
        """The page of every slot; random ones are drawn from ``coins``.

        Raises ValueError where the problem lacks parameters that the policy needs.
        """
        self._require(problem)
        return CompiledSequence(self._sequence(problem, slots, coins))

    def _sit(self, compiled: Compiled, tracker: Tracker) -> SequenceSeat:
        assert isinstance(compiled, CompiledSequence)
        return SequenceSeat.at_start(tracker.episode, compiled)

    def _choose(self, seat: SequenceSeat, tracker: Tracker, lane: int) -> NDArray[Any]:
        assert self.core is not None
        return seat.decide(self.core, tracker, lane, self._count)
