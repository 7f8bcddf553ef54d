"""Instances that draw what their pages say, beside what happens to them."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from crawl_envs.contents import Contents
from crawl_envs.sim.own_law import OwnLaw
from crawl_envs.sim.tape import Tape


class FragmentLaw(OwnLaw):
    """An instance whose pages have fragments."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, horizon: float) -> tuple[Tape, Contents]:
        """Draw an episode: a pure function of the arguments and the instance.

        Args:
            rng: a stream of the lane's own, which no action influences.
            horizon: the episode covers (0, horizon], > 0; what happens in it is the same for a
                later end.

        Returns:
            Changes and signals, and the contents that the changes make.
        """
