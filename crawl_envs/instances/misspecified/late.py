"""``late``: signals have an unknown delay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.instance import HiddenLaw, Misspecified
from crawl_envs.instances.misspecified.occurrences import Occurrences, arrivals, signalled
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.types import Instance
from crawl_envs.types.delay import Delay

MEAN_RANGE = (0.05, 2.0)
"""Range of mean delays. At one crawl per page and unit of time the shortest has little effect; with
the longest most signals belong to changes that were crawled before. No fixed correction fits all
lanes: the delay has to be learned from signals and crawl results."""


@dataclass(frozen=True)
class Late(HiddenLaw):
    """Poisson changes and signals at the revealed rates, with a hidden exponential delay.

    Args:
        delay_mean: mean delay of signals, true and false, > 0.
    """

    delay_mean: float

    def occurrences(self, pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and sent signals in (0, horizon]."""
        changes = arrivals(rng, pages.change_rate, horizon)
        return signalled(rng, changes, pages.recall, pages.false_signal_rate, horizon)

    def delay(self, pages: Instance) -> Delay:
        """Return the true delay; the revealed delay is none."""
        return Delay("exponential", self.delay_mean)


def draw_late(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw pages, and a mean delay, log-uniform over MEAN_RANGE; revealed rates are true."""
    pages = draw_noisy(rng, num_pages, **more)
    least, most = map(math.log, MEAN_RANGE)
    return Misspecified(pages, Late(math.exp(rng.uniform(least, most))))
