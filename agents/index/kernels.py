r"""Compiled functions for the staleness of a page and the value of its crawl.

The evidence of a change since the last crawl is x = sum_k a_k B_k(elapsed, signals), so that the
page has changed with probability D = 1 - exp(-x). A signal counts as in GREEDY-NCIS, by
-ln(1 - precision): the first B_k plus the fourth is the x of that formula, except for its bounds
(:mod:`agents.index.inputs`). The value of a crawl at level D, divided by the importance, is

    U(D) = sum_k c_k H_k(x) = E integral (D - D_t)^+ dt

over a cycle without a crawl: the price of a crawl at which crawling at level D is optimal. The B_k
rise, and the H_k rise and are convex in D, as U is. Their weights are positive, so the index does
not fall between crawls.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from crawl_envs.types import FloatArray

BEND_LEVELS, KNOT_LEVELS = (0.01, 0.03, 0.1, 0.3), (0.3, 0.5, 0.7, 0.85)
"""Levels of staleness at which the value functions H_k bend."""
NUM_BASES, NUM_LEVELS = 5, 2 + len(BEND_LEVELS) + len(KNOT_LEVELS)
"""Numbers of the functions B_k of staleness and H_k of the crawl value."""
IMPORTANCE, PACE, UNSIGNALLED, BASES = range(4)
"""Columns of a page in the table: importance times its unit of time; 1 over the unit; the share of
changes without a signal; weights a_k; weights c_k; the evidence of a signal of each source."""
LEVELS = BASES + NUM_BASES
EVIDENCES = LEVELS + NUM_LEVELS
SOON = 0.2
"""Age, in units of time, at which a hazard that begins high has fallen to a quarter."""


@inlined()
def bases_of(
    table: FloatArray, page: int, elapsed: float, signals: float
) -> tuple[float, float, float, float, float]:
    """Return the functions B_k of a page's age and ``signals``, the evidence of all its signals."""
    age = elapsed * table[page, PACE]
    early = age * age / (1.0 + age), age / (SOON + age)
    bounded_signals = signals / (1.0 + signals)
    return age * table[page, UNSIGNALLED], early[0], early[1], signals, bounded_signals


@inlined()
def levels_of(x: float, levels: FloatArray) -> None:
    """Write the convex functions H_k of staleness D = 1 - exp(-x), (NUM_LEVELS,); they are 0 at 0.

    The first is the value of pages without signals, over their mean time between changes. The slope
    of U is the mean time in which a page reaches D. With signals of all changes it rises at certain
    levels, as at KNOT_LEVELS; with signals of most changes it rises fast near 0, as at BEND_LEVELS.
    """
    stale = -math.expm1(-x)
    levels[0] = stale - x * math.exp(-x)
    levels[1] = stale
    for k in range(len(BEND_LEVELS)):
        levels[2 + k] = stale * stale / (stale + BEND_LEVELS[k])
    for k in range(len(KNOT_LEVELS)):
        levels[2 + len(BEND_LEVELS) + k] = max(stale - KNOT_LEVELS[k], 0.0)


@inlined()
def evidence(table: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the evidence x that a page has changed, the sum of its a_k times B_k."""
    bases = bases_of(table, page, elapsed, signals)
    x = 0.0
    for k in range(NUM_BASES):
        x += table[page, BASES + k] * bases[k]
    return x


@compiled(VALUE.signature)
def outcome_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return a page's crawl value, the sum of c_k times H_k, in units of importance times time."""
    levels = np.empty(NUM_LEVELS)
    value: float = 0.0
    levels_of(evidence(parameters, page, elapsed, signals), levels)
    for k in range(NUM_LEVELS):
        value += parameters[page, LEVELS + k] * levels[k]
    value *= parameters[page, IMPORTANCE]
    return value


@compiled(SIGNAL_WEIGHT.signature)
def signal_evidence(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return the evidence of one signal of a source; it does not depend on the signal's ``age``."""
    weight: float = parameters[page, EVIDENCES + source]
    return weight


@compiled()
def write_levels(x: FloatArray, out: FloatArray) -> None:
    """Write the functions H_k at evidence ``x``, (n,), to ``out``, (n, NUM_LEVELS)."""
    for number in range(x.size):
        levels_of(x[number], out[number])
