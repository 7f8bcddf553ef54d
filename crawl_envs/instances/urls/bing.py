"""A synthetic Bing set (Kolobov et al. 2019), with signals as in section 6.7 of the NCIS paper.

The set has no measured signals, and Busa-Fekete et al. (2025) publish the histogram of theirs only
as a plot (figure 1). So signal quality is drawn from laws fitted to published values, or chosen;
each constant states which.

Importance, change rates and declarations of signals follow
:mod:`crawl_envs.instances.urls.law`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawl_envs.instances.urls.law import urls_of
from crawl_envs.types import BoolArray, FloatArray, Instance
from crawl_envs.types.arguments import bandwidth_function, whole
from crawl_envs.types.delay import Delay

PRECISION_EDGES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PRECISION_SHARES = (0.22, 0.20, 0.17, 0.14, 0.11, 0.07, 0.04, 0.035, 0.012, 0.003)
RECALL_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RECALL_SHARES = (0.13, 0.16, 0.19, 0.19, 0.16, 0.12, 0.03, 0.014, 0.005, 0.001)
TAIL = 0.05
"""Chosen histograms, uniform within bins: the upper 5% begin at precision 0.7 and recall 0.6, the
paper's limits of high quality, and few values exceed 0.8, as stated there."""


@dataclass(frozen=True)
class BingLike:
    """Generator of instances like the semi-synthetic set of section 6.7; time is in days.

    Precision and recall are independent draws from the upper tails of their histograms for
    declared pages, and from the lower 95% for others. The false-signal rate follows from the
    precision: nu = recall * Delta * (1 - precision) / precision. Importance has mean 1 per day
    (about 1134 in the set: every request is an event, and only proportions matter).

    Args:
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per day, > 0.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.
        delay: delay of signals.

    Raises:
        ValueError: fewer than one page, a bad bandwidth.
    """

    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    delay: Delay | None = None

    def __post_init__(self) -> None:
        whole("num_pages", self.num_pages, 1)
        bandwidth_function(self.bandwidth, self.bandwidth_steps)

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance."""
        fame, own, other = rng.standard_normal((3, self.num_pages))
        importance, change_rate, declared = urls_of(fame, own, other)
        precision = _quality(rng, declared, PRECISION_EDGES, PRECISION_SHARES)
        recall = _quality(rng, declared, RECALL_EDGES, RECALL_SHARES)
        return Instance(
            importance,
            change_rate,
            recall,
            recall * change_rate * (1.0 - precision) / precision,
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
            delay=self.delay,
        )


def _quality(
    rng: np.random.Generator,
    declared: BoolArray,
    edges: tuple[float, ...],
    shares: tuple[float, ...],
) -> FloatArray:
    """Draw from a histogram: from its upper TAIL where declared, from the rest elsewhere."""
    uniform = rng.random(declared.size)
    level = np.where(declared, 1.0 - TAIL * uniform, (1.0 - TAIL) * uniform)
    return np.interp(level, np.concatenate([[0.0], np.cumsum(shares)]), edges)
