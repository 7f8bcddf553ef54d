"""An instance that is told one thing and plays another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.instances.misspecified.occurrences import Occurrences, tape_of
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Instance
from crawl_envs.types.arguments import quantity
from crawl_envs.types.delay import Delay


class Law(Protocol):
    """How the changes and signals of an instance really come."""

    def occurrences(self, told: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and signals in (0, horizon] from the generator."""

    def delay(self, told: Instance) -> Delay:
        """Return how long signals really travel."""


class RevealedDelay:
    """The part of a law whose signals travel as the tracker is told."""

    def delay(self, told: Instance) -> Delay:
        """Return how long signals travel."""
        return told.delay


@dataclass(frozen=True, eq=False, init=False)
class Misspecified(CustomEvents):
    """An instance with a law of its own, which no tracker is told.

    What belongs to :class:`crawl_envs.types.Instance` are *beliefs*: what a tracker is told where
    parameters are revealed. The documentation of each law says which of them are true.

    Args:
        told: the beliefs, of a single source of signals.
        law: what is played.
        change_rate: what is told instead of that of ``told``; so too the next two.
        recall: (m,), or None.
        false_signal_rate: (m,), or None.
        group: hosts of the pages, (m,), or None.

    Raises:
        ValueError: as for :class:`crawl_envs.types.Instance`; several sources of signals.
    """

    law: Law

    def __init__(
        self,
        told: Instance,
        law: Law,
        *,
        change_rate: ArrayLike | None = None,
        recall: ArrayLike | None = None,
        false_signal_rate: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> None:
        if told.num_sources != 1:
            raise ValueError(f"told must have 1 source of signals, got {told.num_sources}")
        super().__init__(
            told.importance,
            told.change_rate if change_rate is None else change_rate,
            told.recall if recall is None else recall,
            told.false_signal_rate if false_signal_rate is None else false_signal_rate,
            bandwidth=told.bandwidth,
            bandwidth_steps=told.bandwidth_steps,
            delay=told.delay,
            group=group,
        )
        object.__setattr__(self, "law", law)

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return about how many events, and spells of pages of a unit of time, an episode has."""
        return super().expected_events(horizon) + self.num_pages * horizon

    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the events of an episode: changes and signals by the law, Poisson requests.

        Args:
            rng: what is drawn from.
            horizon: the tape covers (0, horizon], > 0.

        Raises:
            ValueError: the horizon is not > 0.
        """
        quantity("horizon", horizon, above=0.0)
        sent = self.law.occurrences(self, rng, horizon)
        return tape_of(rng, self, sent, self.law.delay(self), horizon)
