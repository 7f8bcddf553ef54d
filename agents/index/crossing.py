r"""Samples of the value of a crawl, from signals and a model of staleness.

Crawls do not change a page's signals. So the log shows how the level D_t would have risen after any
crawl without the next one, and with it integral (d - D_t)^+ dt for any level d. The mean over paths
is U(d). The level must not depend on the path: it is the page's level at an earlier crawl.
"""

from __future__ import annotations

import math

import numpy as np

from agents.index.kernels import evidence
from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray, IntArray

STEPS = 8
"""Number of intervals of Simpson's rule between two signals; it is even."""
BISECTIONS = 40


@inlined()
def shortfall(
    table: FloatArray, page: int, begin: float, end: float, signals: float, level: float
) -> float:
    """Return the integral of ``level`` minus a page's staleness D_t over ages without new signals.

    The ages are ``begin`` to ``end``. As D may rise fast at first, the integration variable is the
    square root of the time since ``begin``.
    """
    total = 0.0
    for k in range(STEPS + 1):
        root = k / STEPS
        age = begin + (end - begin) * root * root
        stale = -math.expm1(-evidence(table, page, age, signals))
        weight = 1.0 if k in (0, STEPS) else 2.0 + 2.0 * (k % 2)
        total += weight * 2.0 * root * (level - stale)
    return total * (end - begin) / (3.0 * STEPS)


@compiled()
def crossing_integral(
    table: FloatArray,
    page: int,
    ages: FloatArray,
    evidences: FloatArray,
    level: float,
    window: float,
) -> float:
    """Return the integral over ages t up to ``window`` of how far staleness D_t is below ``level``.

    ``ages`` are the sorted ages at which signals arrive, ``evidences`` the evidence of each.
    """
    reached = -math.log1p(-level)
    begin, signals, total = 0.0, 0.0, 0.0
    for number in range(ages.size + 1):
        if number > 0:
            signals += evidences[number - 1]
        if evidence(table, page, begin, signals) >= reached:
            return total
        end = min(ages[number], window) if number < ages.size else window
        if evidence(table, page, end, signals) >= reached:
            low, high = begin, end
            for _ in range(BISECTIONS):
                middle = 0.5 * (low + high)
                if evidence(table, page, middle, signals) < reached:
                    low = middle
                else:
                    high = middle
            return total + shortfall(table, page, begin, low, signals, level)
        total += shortfall(table, page, begin, end, signals, level)
        if end >= window:
            return total
        begin = end
    return total


@compiled()
def crossing_integrals(
    table: FloatArray,
    page: IntArray,
    start: FloatArray,
    level: FloatArray,
    end: float,
    first: IntArray,
    times: FloatArray,
    evidences: FloatArray,
) -> FloatArray:
    """Return :func:`crossing_integral` of paths from crawls at ``start`` to ``end``, (n,).

    ``times`` (k,) of signals are sorted by page and time, with their ``evidences`` (k,); page i has
    the signals from ``first[i]`` to ``first[i + 1]``.
    """
    result = np.empty(page.size)
    for k in range(page.size):
        begin, finish = first[page[k]], first[page[k] + 1]
        begin += np.searchsorted(times[begin:finish], start[k], side="right")
        ages, weights = times[begin:finish] - start[k], evidences[begin:finish]
        result[k] = crossing_integral(table, page[k], ages, weights, level[k], end - start[k])
    return result
