"""A synthetic Bing set (Kolobov et al. 2019), with signals as in section 6.7 of the NCIS paper.

The set has no measured signals, and Busa-Fekete et al. (2025) publish the histogram of theirs only
as a plot (figure 1). So signal quality is drawn from laws fitted to published values, or chosen;
each constant states which.

Importance, change rates and declarations of signals follow
:mod:`crawl_envs.instances.urls.lambdacrawl`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.instances.urls.lambdacrawl import urls_of
from crawl_envs.types import BoolArray, FloatArray, Instance

PRECISION_EDGES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PRECISION_SHARES = (0.22, 0.20, 0.17, 0.14, 0.11, 0.07, 0.04, 0.035, 0.012, 0.003)
RECALL_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RECALL_SHARES = (0.13, 0.16, 0.19, 0.19, 0.16, 0.12, 0.03, 0.014, 0.005, 0.001)
TAIL = 0.05
"""Chosen histograms, uniform within bins: the upper 5% begin at precision 0.7 and recall 0.6, the
paper's limits of high quality, and few values exceed 0.8, as stated there."""


def draw_bing_like(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance like the semi-synthetic set of section 6.7 of the NCIS paper; unit: day.

    Precision and recall are independent draws from the upper tails of their histograms for declared
    pages, and from the lower 95% for others. The false-signal rate follows from the precision: nu =
    recall * Delta * (1 - precision) / precision. Importance has mean 1 per day (about 1134 in the
    set: every request is an event, and only proportions matter). ``more`` are bandwidth,
    bandwidth_steps and delay of :class:`crawl_envs.Instance`.
    """
    fame, change, declaring = rng.standard_normal((3, num_pages))
    importance, change_rate, declared = urls_of(fame, change, declaring)
    precision = _quality(rng, declared, PRECISION_EDGES, PRECISION_SHARES)
    recall = _quality(rng, declared, RECALL_EDGES, RECALL_SHARES)
    false_signal_rate = recall * change_rate * (1.0 - precision) / precision
    return Instance(importance, change_rate, recall, false_signal_rate, **more)


def _quality(
    rng: np.random.Generator,
    declared: BoolArray,
    edges: tuple[float, ...],
    shares: tuple[float, ...],
) -> FloatArray:
    """Draw values from a histogram: from its upper TAIL for declared pages, else from the rest."""
    uniform = rng.random(declared.size)
    level = np.where(declared, 1.0 - TAIL * uniform, (1.0 - TAIL) * uniform)
    return np.interp(level, np.concatenate([[0.0], np.cumsum(shares)]), edges)
