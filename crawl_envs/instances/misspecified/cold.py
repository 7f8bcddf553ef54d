"""``cold``: change rates over three decades, for learning them from nothing."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import Instance

MEAN_RATE = 0.5
"""Of the change rates, as in the instances of the NCIS paper."""
SPREAD = math.log(1000.0) / (2.0 * 1.959963984540054)
"""Standard deviation of the logarithm: 95% of the rates lie within three decades, from 0.0033 to
3.3 around a median of 0.11."""


def cold(pages: Instance, rng: np.random.Generator) -> Instance:
    """Return the pages with change rates of a log-normal law, of mean MEAN_RATE and SPREAD.

    It is an ordinary instance: everything is Poisson, and what is told is true. It is meant to be
    told with ``reveal="importance"``. Which few pages change often matters most then, and a prior
    of one rate for all is wrong for nearly all of them.
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
