"""Compiled values of pages with several sources of signals, and the evidence of a signal.

The state of a page is the time since its last crawl and the evidence of a change: the sum of
:func:`source_evidence`, b_s in nats, over all signals since then. Row ``page`` of a table of
:mod:`policies.values.sources.tables` has the columns TOP, ALPHA and those below, then K knots: all
x = exp(-y), all shares u of the value's limit, all cycle lengths. Levels y below the first knot
need only the summand n = 0, which has a closed form.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawl_envs.compiled.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from crawl_envs.types import FloatArray
from policies.values.series import ALPHA, SATURATED, TOP, first_term

START = 2  # the column where the knots start
DRIFT, TOTAL = 3, 4  # alpha (with the weakest sources) and Gamma, in units of Delta
PACE, CERTAIN = 5, 6  # slope of the cycle length above the knots; its limit is 1 / CERTAIN
EVIDENCES = 7  # b_s for each source

Ends = tuple[float, float, float, float, float, float]
"""An interval between two knots: x at both ends, the value's share u at both, -du / dx at both."""


@inlined()
def first_share(y: float, alpha: float, rate: float) -> float:
    """Return the value's share of its limit from the summand n = 0 only; signals have ``rate``."""
    return first_term(1.0 / (alpha + rate), y, rate * (y / alpha), alpha / rate)


@inlined()
def first_length(y: float, alpha: float, rate: float) -> float:
    """Return the cycle length from the summand n = 0 only, for signals at ``rate``."""
    if rate == 0.0:
        return y / alpha
    return -math.expm1(-rate * (y / alpha)) / rate


@inlined()
def cubic_share(x: float, ends: Ends) -> float:
    """Return the value's share u at x, by the cubic through values and slopes at both ends."""
    high, low, start, end, first, last = ends
    width = high - low
    t = (high - x) / width
    a, rise, b = width * first, end - start, width * last
    return start + t * (a + t * (3.0 * rise - 2.0 * a - b + t * (a + b - 2.0 * rise)))


@inlined()
def tangent_share(x: float, ends: Ends) -> float:
    """Return the value's share u at x, by the larger of the tangents at both ends."""
    high, low, start, end, first, last = ends
    return max(start + first * (high - x), end - last * (x - low))


@inlined()
def _interval(knots: Any, x: float) -> tuple[Ends, bool]:
    """Return the two knots around x > 0 (below the first knot), and whether u bends between them.

    ``knots`` has shape (3 K,): all x, all shares, all cycle lengths.
    """
    number = knots.size // 3
    low, high = 0, number - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] >= x:
            low = middle
        else:
            high = middle
    first, last = float(knots[2 * number + low]), abs(float(knots[2 * number + high]))
    start, end = float(knots[number + low]), float(knots[number + high])
    return (float(knots[low]), float(knots[high]), start, end, abs(first), last), first < 0.0


@inlined()
def _share(parameters: FloatArray, page: int, knots: Any, y: float) -> float:
    """Return the value's share of its limit, in [0, 1], at a level of evidence y > 0."""
    x = math.exp(-y)
    if x >= knots[0]:
        return first_share(y, parameters[page, DRIFT], parameters[page, TOTAL])
    ends, bent = _interval(knots, x)
    return tangent_share(x, ends) if bent else cubic_share(x, ends)


@compiled(SIGNAL_WEIGHT.signature)
def source_evidence(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return b_s = ln(gamma_s / nu_s), the evidence of one signal of ``source`` at any age."""
    evidence: float = parameters[page, EVIDENCES + source]
    return evidence


@compiled(VALUE.signature)
def greedy_ncis_sources_value(
    parameters: FloatArray, page: int, elapsed: float, signals: float
) -> float:
    """Return V_GREEDY_NCIS with several sources; ``signals`` is the total evidence of signals."""
    top: float = parameters[page, TOP]
    y = parameters[page, ALPHA] * elapsed + signals
    if y >= SATURATED:
        return top
    if not y > 0.0:
        return 0.0
    knots = parameters[page, int(parameters[page, START]) :].view(np.float32)
    return top * min(1.0, _share(parameters, page, knots, y))


@compiled(VALUE.signature)
def level_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the crawl value at a level of evidence ``elapsed``, from a row of ``level_table``."""
    top: float = parameters[page, TOP]
    if elapsed >= SATURATED:
        return top
    if not elapsed > 0.0:
        return 0.0
    knots = parameters[page, int(parameters[page, START]) :]
    return top * min(1.0, _share(parameters, page, knots, elapsed))


@inlined()
def _longer(length: float, gap: float, slope: FloatArray) -> float:
    """Return the cycle length at ``gap`` above the last finite knot, where it equals ``length``."""
    pace, certain = slope
    more = gap * pace
    if certain > 0.0:
        more = -(1.0 / certain - length) * math.expm1(-certain * more)
    return length + float(more)


@compiled(VALUE.signature)
def cycle_length_sources_value(
    parameters: FloatArray, page: int, elapsed: float, signals: float
) -> float:
    """Return psi, the mean time to the level of evidence ``elapsed``, in units of 1 / Delta."""
    if not elapsed > 0.0:
        return 0.0
    x = math.exp(-elapsed)
    knots = parameters[page, int(parameters[page, START]) :]
    if x >= knots[0]:
        return first_length(elapsed, parameters[page, DRIFT], parameters[page, TOTAL])
    (high, low, start, end, first, last), bent = _interval(knots, x)
    if low == 0.0:
        return _longer(first, elapsed + math.log(high), parameters[page, PACE : CERTAIN + 1])
    if bent:
        return first if start + first * (high - x) > end - last * (x - low) else last
    t, mean = (high - x) / (high - low), (end - start) / (high - low)
    linear, square = 6.0 * mean - 4.0 * first - 2.0 * last, 3.0 * (first + last) - 6.0 * mean
    return first + t * (linear + t * square)
