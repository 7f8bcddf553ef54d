"""Instances whose events follow a law of their own, where the formulas' assumptions do not hold."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from crawl_envs.sim.tape import Tape, event_rates
from crawl_envs.types import Instance


class CustomEvents(Instance):
    """An instance that draws its own events: not Poisson, not independent, or not as told.

    Its change rate, recall and false-signal rate are what a tracker is told where parameters are
    revealed, and here they are beliefs: what the documentation of each law says of them.
    """

    @abstractmethod
    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the events of an episode, a pure function of the arguments and the instance.

        Args:
            rng: a stream of the lane's own, which no action influences.
            horizon: the tape covers (0, horizon], > 0.

        Returns:
            Changes, signals and requests of all pages, which exist throughout.
        """

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return about how many events are drawn for an episode.

        Args:
            horizon: the end of the episode, > 0.
            requests: whether requests are drawn.
        """
        return float(event_rates(self, requests).sum()) * horizon
