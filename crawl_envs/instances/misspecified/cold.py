"""``cold``: change rates over three decades, to be learned without prior knowledge."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import Instance

MEAN_RATE = 0.5
"""Mean change rate, as in the instances of the NCIS paper."""
SPREAD = math.log(1000.0) / (2.0 * 1.959963984540054)
"""Standard deviation of the log change rate: 95% of the rates lie in [0.0033, 3.3], with median
0.11."""


def cold(pages: Instance, rng: np.random.Generator) -> Instance:
    """Return the pages with log-normal change rates of mean MEAN_RATE and log-spread SPREAD.

    All processes are Poisson, and revealed parameters are true. The instance is meant for
    ``reveal="importance"``: a few pages change often, and a common prior rate is wrong for nearly
    all pages.
    """
    median = MEAN_RATE * math.exp(-0.5 * SPREAD**2)
    return Instance(
        pages.importance,
        median * np.exp(SPREAD * rng.standard_normal(pages.num_pages)),
        pages.recall,
        pages.false_signal_rate,
        bandwidth=pages.bandwidth,
        bandwidth_steps=pages.bandwidth_steps,
        delay=pages.delay,
    )
