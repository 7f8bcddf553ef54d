"""Instances whose events differ from the revealed parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.instances.misspecified.occurrences import Occurrences, tape_of
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Instance, IntArray
from crawl_envs.types.arguments import quantity
from crawl_envs.types.delay import Delay

PAGES_PER_HOST = 10
"""Approximate number of pages per host: large enough for a few crawls to be informative about the
rest, small enough for several hosts among 100 pages."""


def hosts_of(num_pages: int) -> IntArray:
    """Return the host of each page, (m,): contiguous blocks of about PAGES_PER_HOST pages."""
    count = max(1, round(num_pages / PAGES_PER_HOST))
    host: IntArray = np.arange(num_pages, dtype=np.int64) * count // num_pages
    return host


class HiddenLaw(ABC):
    """The true processes of changes and signals of an instance."""

    @abstractmethod
    def occurrences(self, pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and sent signals in (0, horizon]."""

    def delay(self, pages: Instance) -> Delay:
        """Return the true delay of signals, by default the revealed one."""
        return pages.delay


@dataclass(frozen=True, eq=False, init=False)
class Misspecified(CustomEvents):
    """An instance with a hidden law that generates its events.

    The attributes of :class:`crawl_envs.types.Instance` are the *revealed* parameters, which may
    be wrong. The documentation of each law states which of them are true.

    Args:
        revealed: revealed parameters, with a single source of signals.
        law: the true processes.
        change_rate: replaces that of ``revealed``, (m,), or None.
        recall: likewise.
        false_signal_rate: likewise.
        group: hosts of the pages, (m,), or None.

    Raises:
        ValueError: as for :class:`crawl_envs.types.Instance`; several sources of signals.
    """

    law: HiddenLaw

    def __init__(
        self,
        revealed: Instance,
        law: HiddenLaw,
        *,
        change_rate: ArrayLike | None = None,
        recall: ArrayLike | None = None,
        false_signal_rate: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> None:
        if revealed.num_sources != 1:
            raise ValueError(f"revealed must have 1 source of signals, got {revealed.num_sources}")
        super().__init__(
            revealed.importance,
            revealed.change_rate if change_rate is None else change_rate,
            revealed.recall if recall is None else recall,
            revealed.false_signal_rate if false_signal_rate is None else false_signal_rate,
            bandwidth=revealed.bandwidth,
            bandwidth_steps=revealed.bandwidth_steps,
            delay=revealed.delay,
            group=group,
        )
        object.__setattr__(self, "law", law)

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return the approximate number of events, plus one spell per page and unit of time."""
        return super().expected_events(horizon) + self.num_pages * horizon

    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the events of an episode: changes and signals of the law, and Poisson requests.

        Args:
            rng: random generator.
            horizon: end of the tape, > 0.

        Raises:
            ValueError: the horizon is not > 0.
        """
        quantity("horizon", horizon, above=0.0)
        sent = self.law.occurrences(self, rng, horizon)
        return tape_of(rng, self, sent, self.law.delay(self), horizon)
