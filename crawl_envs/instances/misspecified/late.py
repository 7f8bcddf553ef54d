"""``late``: signals are delayed, and nobody says by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crawl_envs.instances.misspecified.instance import Misspecified
from crawl_envs.instances.misspecified.occurrences import Occurrences, arrivals, signalled
from crawl_envs.types import Instance
from crawl_envs.types.arguments import quantity
from crawl_envs.types.delay import Delay

MEAN_RANGE = (0.05, 2.0)
"""Of mean delays. With a crawl per page and unit of time, the shortest hardly matters, and after
the longest most signals tell of changes that were crawled already. So no one correction serves
all lanes: the delay has to be learned from how signals and crawls agree."""


@dataclass(frozen=True)
class Late:
    """Poisson changes and false signals as told; signals travel exponential times, told to nobody.

    Args:
        delay_mean: mean time that a signal, true or false, travels, > 0.

    Raises:
        ValueError: it is not > 0.
    """

    delay_mean: float

    def __post_init__(self) -> None:
        quantity("delay_mean", self.delay_mean, above=0.0)

    def occurrences(self, told: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and signals in (0, horizon], as they happen and are sent."""
        changes = arrivals(rng, told.change_rate, horizon)
        return signalled(rng, changes, told.recall, told.false_signal_rate, horizon)

    def delay(self, told: Instance) -> Delay:
        """Return how long signals really travel; ``told`` says that they do not."""
        return Delay("exponential", self.delay_mean)


def late(pages: Instance, rng: np.random.Generator) -> Misspecified:
    """Draw a mean delay, log-uniform over MEAN_RANGE; all else that is told is true.

    Raises:
        ValueError: the pages have a delay that is told.
    """
    if pages.delay.kind != "none":
        raise ValueError(f"delay must be None for 'late', whose delay is hidden, got {pages.delay}")
    least, most = map(math.log, MEAN_RANGE)
    return Misspecified(pages, Late(math.exp(rng.uniform(least, most))))
