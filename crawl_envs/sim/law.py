"""Instances with custom events, which violate the assumptions of the formulas."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from crawl_envs.sim.tape import Tape, event_rates
from crawl_envs.types import Instance


class CustomEvents(Instance):
    """An instance that draws its own events: not Poisson, not independent, or at other rates.

    Its change rate, recall and false-signal rate are the revealed parameters. Here they are
    beliefs, described in the documentation of each law.
    """

    @abstractmethod
    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the events of an episode, a pure function of the arguments and the instance.

        Args:
            rng: generator of the lane, independent of actions.
            horizon: the tape covers (0, horizon], > 0.

        Returns:
            Changes, signals and requests of all pages; no births and deaths.
        """

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return the approximate expected number of events of an episode.

        Args:
            horizon: the end of the episode, > 0.
            requests: whether requests are drawn.
        """
        return float(event_rates(self, requests).sum()) * horizon
