"""What is believed of all pages at a decision, for whoever wants to know."""

from __future__ import annotations

import numpy as np

from crawl_envs.kernels import compiled
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.staleness.kernels import read_page
from policies.staleness.layout import places

EVIDENCE, STRIKES, RATE = range(3)


@compiled()
def read_pages(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    now: float,
    elapsed: FloatArray,
    alive: BoolArray,
) -> FloatArray:
    """Return evidence, strikes and rates of changes of all pages, (3, m); 0 where they are not.

    :func:`policies.staleness.kernels.read_page` says what they are.
    """
    at = places(shared)
    heard, found = np.empty(at.channels), np.zeros((3, elapsed.shape[0]))
    for number in range(elapsed.shape[0]):
        if alive[number]:
            page, own = pages[number], groups[group[number]]
            x, strikes, rate = read_page(page, own, shared, at, now, elapsed[number], heard)
            found[EVIDENCE, number] = x
            found[STRIKES, number] = strikes
            found[RATE, number] = rate
    return found
