"""Compiled values of pages with several sources of signals, and the evidence of a signal.

The state is the time since the last crawl and the evidence: the sum of :func:`source_evidence`,
b_s in nats, over all signals since then. :mod:`policies.values.sources.tables` fills row ``page``
of the tables with the cheapest exact form for the page.

A point n of a lattice, ``k = |n|`` signals in all, lies at level n . b and has the weight
(k! / prod n_s!) prod (gamma_s / Gamma)^n_s. With x = Gamma (y - n . b) / alpha and N for a Poisson
variable of mean x, it adds the weight times P(N > k) / Gamma to the cycle length, and the weight
times (exp(-y) / Gamma) E[((1 + r)^N - (1 + r)^(k + 1))^+], r = alpha / Gamma, to the share of the
value: the summand of one source (:mod:`policies.values.series`).
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from policies.values.kernels import greedy_ncis_value, reaches
from policies.values.series import ALPHA, SATURATED, TOP, first_term, greedy_form, summand

# Columns after those of the table of ``greedy_ncis_value``, which come first.
OWN = 14  # alpha, added to the level per unit of time
UNIT = 15  # pages of one source: its b; 0 where weak sources are treated as time
COUNT = 16  # points of the lattice; or minus the number of pieces; or 0 for one source
BODY = 17  # the column where the points or pieces start
DRIFT, TOTAL = 18, 19  # alpha (with weak sources) and Gamma, in units of Delta
FAR = 20  # the level from which on the asymptotic form holds
FAR_SLOPE, FAR_BEND, FAR_OFFSET = 21, 22, 23
EVIDENCES = 24  # b_s for each source

LEVEL, SIGNALS, WEIGHT, LIMIT = 0, 1, 2, 3
"""Columns of a point: n . b, k, its weight, and exp(-n . b) (1 + r)^(-k - 1)."""
WIDTH = 4

DEGREE = 12
"""Degree of the pieces; a piece has DEGREE + 1 coefficients of Chebyshev polynomials."""


@inlined()
def lattice_share(
    table: FloatArray, row: int, body: tuple[int, int], rates: tuple[float, float], y: float
) -> float:
    """Return the share of the value at level ``y``.

    ``body`` is the first column of the row's points and their number; ``rates`` are alpha and Gamma
    in units of Delta.
    """
    start, count = body
    alpha, rate = rates
    ratio = alpha / rate
    growth = math.log1p(ratio)
    fresh = math.exp(-y)
    first = rate * first_term(1.0 / (alpha + rate), y, rate * (y / alpha), ratio)
    total = first
    for point in range(1, count):
        at = start + WIDTH * point
        gap = y - table[row, at + LEVEL]
        if not gap > 0.0:
            break
        index = int(table[row, at + SIGNALS])
        weight = table[row, at + WEIGHT]
        z = gap - (index + 1) * growth
        limit = table[row, at + LIMIT]
        total += weight * summand(index, gap / ratio, ratio, z, limit, fresh, total / weight)
    return total / rate


@inlined()
def lattice_length(
    table: FloatArray, row: int, body: tuple[int, int], rates: tuple[float, float], y: float
) -> float:
    """Return the cycle length at level ``y``, in units of 1 / Delta; arguments as before."""
    start, count = body
    alpha, rate = rates
    total = 0.0
    for point in range(count):
        at = start + WIDTH * point
        gap = y - table[row, at + LEVEL]
        if not gap > 0.0:
            break
        total += table[row, at + WEIGHT] * reaches(
            int(table[row, at + SIGNALS]), rate * (gap / alpha)
        )
    return total / rate


@inlined()
def chebyshev(table: FloatArray, row: int, start: int, x: float) -> float:
    """Return the sum of DEGREE + 1 coefficients from column ``start`` times T_j(x).

    Here x is in [-1, 1].
    """
    later = 0.0
    last = 0.0
    for j in range(DEGREE, 0, -1):
        later, last = table[row, start + j] + 2.0 * x * later - last, later
    total: float = table[row, start] + x * later - last
    return total


@inlined()
def piecewise(table: FloatArray, row: int, start: int, count: int, y: float) -> float:
    """Evaluate the piece at level y of ``count``: ``count`` + 1 ends, then coefficients."""
    low = 0
    high = count - 1
    while low < high:
        middle = (low + high + 1) // 2
        if table[row, start + middle] <= y:
            low = middle
        else:
            high = middle - 1
    left = table[row, start + low]
    right = table[row, start + low + 1]
    x = min(1.0, (2.0 * y - left - right) / (right - left))
    return chebyshev(table, row, start + count + 1 + low * (DEGREE + 1), x)


@inlined()
def first_share(y: float, alpha: float, rate: float) -> float:
    """Return the share below the lowest jump, where signals at rate ``rate`` end the cycle."""
    if not y > 0.0:
        return 0.0
    return first_term(1.0 / (alpha + rate), y, rate * (y / alpha), alpha / rate)


@inlined()
def first_length(y: float, alpha: float, rate: float) -> float:
    """Return the cycle length below the lowest jump."""
    return -math.expm1(-rate * (y / alpha)) / rate if y > 0.0 else 0.0


@inlined()
def far_share(y: float, slope: float, bend: float, offset: float) -> float:
    """Return the asymptotic form ``slope R^1_exp(y) + bend (1 - exp(-y)) + offset``."""
    return greedy_form(slope, y) - bend * math.expm1(-y) + offset


@compiled(SIGNAL_WEIGHT.signature)
def source_evidence(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Return b_s = ln(gamma_s / nu_s), added to the level by a signal of ``source`` at any age."""
    evidence: float = parameters[page, EVIDENCES + source]
    return evidence


@compiled(VALUE.signature)
def greedy_ncis_sources_value(
    parameters: FloatArray, page: int, elapsed: float, signals: float
) -> float:
    """Return V_GREEDY_NCIS of several sources; ``signals`` is the total evidence of signals."""
    top: float = parameters[page, TOP]
    y = parameters[page, OWN] * elapsed + signals
    if y >= SATURATED:
        return top
    if not y > 0.0:
        return 0.0
    count = int(parameters[page, COUNT])
    if count == 0:
        unit = parameters[page, UNIT]
        if unit > 0.0:
            return greedy_ncis_value(parameters, page, elapsed, np.rint(signals / unit))
        return greedy_ncis_value(parameters, page, y / parameters[page, ALPHA], 0.0)
    rates = (parameters[page, DRIFT], parameters[page, TOTAL])
    body = int(parameters[page, BODY])
    if y >= parameters[page, FAR]:
        share = far_share(
            y,
            parameters[page, FAR_SLOPE],
            parameters[page, FAR_BEND],
            parameters[page, FAR_OFFSET],
        )
    elif count > 0:
        share = lattice_share(parameters, page, (body, count), rates, y)
    elif y < parameters[page, body]:
        share = first_share(y, *rates)
    else:
        share = piecewise(parameters, page, body, -count, y)
    return top * min(1.0, share)


@compiled(VALUE.signature)
def cycle_length_sources_value(
    parameters: FloatArray, page: int, elapsed: float, signals: float
) -> float:
    """Return the cycle length psi, in units of 1 / Delta, at the level ``elapsed``.

    The bodies of all pages are stored after the rows of all pages.
    """
    y = elapsed
    bodies = parameters.reshape((1, parameters.size))
    if not y > 0.0:
        return 0.0
    rates = (parameters[page, DRIFT], parameters[page, TOTAL])
    count = int(parameters[page, COUNT])
    body = int(parameters[page, BODY])
    if count > 0 and y <= parameters[page, FAR]:
        return lattice_length(bodies, 0, (body, count), rates, y)
    if y >= parameters[page, FAR]:
        slope: float = parameters[page, FAR_SLOPE]
        constant: float = parameters[page, FAR_BEND]
        return constant if slope == 0.0 else slope * y + constant
    if y < bodies[0, body]:
        return first_length(y, *rates)
    return piecewise(bodies, 0, body, -count, y)
