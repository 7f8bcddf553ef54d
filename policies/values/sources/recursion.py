"""Solves for the cycle length of a page with several sources, and keeps it at a few knots.

The cycle length psi(y), by level of evidence y, follows a delay equation
(:mod:`policies.values.sources`). It is solved upwards from the least jump, below which psi has an
exact form. The grid has the sums n . b at which psi bends, small cells after each of them, where
psi rises within alpha / Gamma, and wider ones elsewhere. A step is exact for delayed terms that are
cubic in a cell, however small alpha is. Cubics are bounded so that psi never decreases.

Of this solution a page keeps knots in x = exp(-y), in which the share u of the value is convex,
with du / dx = -psi. Each interval has the better of two forms. One is the cubic of both ends'
values and slopes; the other the two tangents, which are exact where u has one bend.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import inlined
from crawl_envs.types import FloatArray, IntArray
from policies.values.sources.kernels import cubic_share, first_length, first_share, tangent_share

END = 16.0
"""Level of the last cell: above it the probability of being fresh is below 2e-7."""

MIN_JUMP = 0.004
"""Least jump b: weaker sources become one source of this jump and a drift in time, with the same
rates of evidence and of changes."""

MIN_WIDTH, MAX_WIDTH = 0.005, 0.04
"""Width of a cell at y = 0, far from bends: a tenth of alpha / Gamma within these limits.

It grows with exp(y / 4)."""

MIN_STEEPNESS = 1e-9
"""Least alpha / Gamma; a smaller one has no effect on the value."""

MAX_BENDS = 400
"""Largest number of bends with small cells."""

MIN_RISE = 2e-6
"""Rise of psi below which a bend is skipped, as a share of a mean time between signals and of the
freshness."""

LEVEL_TOLERANCE = 1e-13
"""Relative difference of levels that are the same up to rounding."""

MAX_CELLS = 20_000
"""Largest number of cells."""

SAMPLES = 12
"""Nodes at which the error of an interval is measured."""

SHARE_TOLERANCE = 1e-9
"""Largest error of u in an interval that is not cut further."""


class Equation(NamedTuple):
    """The delay equation alpha psi' = 1 - total psi + sum_s rates_s psi(y - jumps_s) of a page.

    It is in units of 1 / Delta. ``rates`` and ``jumps`` have shape (sources,), with jumps from
    MIN_JUMP to END. ``total`` is Gamma, ``pace`` is 1 / (alpha + sum gamma_s b_s), the limit of
    psi' without certain signals. ``certain`` is the rate of certain signals, whose b is infinite.
    """

    alpha: float
    total: float
    rates: FloatArray
    jumps: FloatArray
    pace: float
    certain: float


LEVEL, FRESH, LENGTH, RISE, SHARE = 0, 1, 2, 3, 4
"""Columns of the nodes: y, exp(-y), psi, psi' and u."""

Term = tuple[float, float]
"""The sum 1 + sum_s rates_s psi(y - jumps_s) at a level y, and its slope by y."""


@inlined()
def equation_of(recall: FloatArray, noise: FloatArray) -> Equation:
    """Return a page's equation from recalls and false-signal rates over Delta by source, (S,)."""
    alpha, total, weak = max(0.0, 1.0 - recall.sum()), 0.0, 0.0
    drift, certain = alpha, 0.0
    rates, jumps = np.empty(recall.size + 1), np.empty(recall.size + 1)
    count = 0
    for s in range(recall.size):
        if not recall[s] > 0.0:
            continue
        rate = recall[s] + noise[s]
        jump = math.log1p(recall[s] / noise[s])
        certain += rate if jump == math.inf else 0.0
        drift += rate * jump if jump < math.inf else 0.0
        if jump < MIN_JUMP:
            alpha += rate * jump
            weak += rate * jump * jump * (0.5 - jump / 6.0)
            continue
        total += rate
        if jump < END:
            rates[count], jumps[count] = rate, jump
            count += 1
    if weak > 0.0:
        rates[count], jumps[count] = weak / (MIN_JUMP * MIN_JUMP * (0.5 - MIN_JUMP / 6.0)), MIN_JUMP
        alpha -= rates[count] * MIN_JUMP
        total += rates[count]
        count += 1
    alpha = max(alpha, MIN_STEEPNESS * total)
    return Equation(alpha, total, rates[:count], jumps[:count], 1.0 / drift, certain)


@inlined()
def bends(equation: Equation) -> FloatArray:
    """Return 0 and the levels n . b where the cycle length may rise steeply, in ascending order."""
    levels, weights = np.zeros(MAX_BENDS), np.zeros(MAX_BENDS)
    weights[0] = 1.0
    smoothing = min(1.0, MIN_WIDTH * equation.total / equation.alpha)
    count = 1
    k = 0
    while k < count:
        for s in range(equation.jumps.size):
            level = levels[k] + equation.jumps[s]
            weight = weights[k] * equation.rates[s] / equation.total * smoothing
            place = count
            while levels[place - 1] > level * (1.0 + LEVEL_TOLERANCE):
                place -= 1
            if levels[place - 1] >= level * (1.0 - LEVEL_TOLERANCE):
                weights[place - 1] += weight
                continue
            slight = weight * math.exp(-level) < MIN_RISE * equation.total
            if level >= END or (slight and k > 0):
                continue
            if place < MAX_BENDS:
                count = min(count + 1, MAX_BENDS)
                for j in range(count - 1, place, -1):
                    levels[j], weights[j] = levels[j - 1], weights[j - 1]
                levels[place], weights[place] = level, weight
        k += 1
    return levels[:count]


@inlined()
def _cubic(start: float, end: float, first: float, last: float) -> tuple[float, ...]:
    """Return c_1 .. c_3 of the cubic on [0, 1] by two values and slopes, bounded to increase."""
    rise = max(0.0, end - start)
    first, last = max(0.0, min(first, 3.0 * rise)), max(0.0, min(last, 3.0 * rise))
    return first, 3.0 * rise - 2.0 * first - last, first + last - 2.0 * rise


@inlined()
def _moments(z: float) -> tuple[float, ...]:
    """Return the four integrals of exp(-z (1 - t)) t^k over t in [0, 1], for k = 0, 1, 2, 3."""
    if z < 1.0:
        third = 1.0
        for j in range(14, 4, -1):
            third = 1.0 - z / j * third
        third *= 0.25
        second = (1.0 - z * third) / 3.0
        first = 0.5 * (1.0 - z * second)
        return 1.0 - z * first, first, second, third
    zeroth = -math.expm1(-z) / z
    first = (1.0 - zeroth) / z
    second = (1.0 - 2.0 * first) / z
    return zeroth, first, second, (1.0 - 3.0 * second) / z


@inlined()
def _delayed(
    equation: Equation, nodes: FloatArray, count: int, places: IntArray, y: float
) -> tuple[float, float]:
    """Return 1 + sum_s rates_s psi(y - jumps_s), the delayed terms at y, and its slope below y.

    ``nodes`` has the solution up to row ``count - 1``, and ``places`` a cell by source.
    """
    alpha, gamma = equation.alpha, equation.total
    total, slope = 1.0, 0.0
    for s in range(equation.jumps.size):
        rate, before = equation.rates[s], y - equation.jumps[s]
        if before <= LEVEL_TOLERANCE * y:
            continue
        if before <= nodes[0, LEVEL]:
            total += rate * first_length(before, alpha, gamma)
            slope += rate * math.exp(-gamma * (before / alpha)) / alpha
            continue
        k = places[s]
        while k + 2 < count and nodes[k + 1, LEVEL] <= before:
            k += 1
        places[s] = k
        width = nodes[k + 1, LEVEL] - nodes[k, LEVEL]
        t, start = (before - nodes[k, LEVEL]) / width, nodes[k, LENGTH]
        first, last = width * nodes[k, RISE], width * nodes[k + 1, RISE]
        a, b, c = _cubic(start, nodes[k + 1, LENGTH], first, last)
        total += rate * (start + t * (a + t * (b + t * c)))
        slope += rate * (a + t * (2.0 * b + 3.0 * t * c)) / width
    return total, slope


@inlined()
def _next_node(equation: Equation, y: float, bend: float, following: float) -> float:
    """Return the end of the cell that starts at y, given the last bend and the following one."""
    steep = equation.alpha / equation.total
    past = y - bend
    width = max(steep, past if past > 50.0 * steep else 0.5 * past)
    width = min(width, max(MIN_WIDTH, min(0.1 * steep, MAX_WIDTH)) * math.exp(0.25 * y))
    for jump in equation.jumps:
        width = min(width, jump)
    if y + width >= following:
        return following
    return min(y + width, 0.5 * (y + following))


@inlined()
def _step(equation: Equation, nodes: FloatArray, count: int, start: Term, end: Term) -> None:
    """Fill in row ``count`` of ``nodes`` by a step, given delayed terms at both ends of it."""
    (before, first), (after, last) = start, end
    alpha, total = equation.alpha, equation.total
    y, later = nodes[count - 1, LEVEL], nodes[count, LEVEL]
    width = later - y
    a, b, c = _cubic(before, after, width * first, width * last)
    m = _moments(total * width / alpha)
    psi = nodes[count - 1, LENGTH]
    length = psi - total * width / alpha * m[0] * psi
    length = max(psi, length + width / alpha * (before * m[0] + a * m[1] + b * m[2] + c * m[3]))
    rise = max(0.0, (after - total * length) / alpha)
    max_rise, fresh, less = 3.0 * (length - psi), nodes[count - 1, FRESH], math.exp(-later)
    area = 0.5 * width * (fresh * psi + less * length)
    area += width / 12.0 * fresh * (min(width * nodes[count - 1, RISE], max_rise) - width * psi)
    area -= width / 12.0 * less * (min(width * rise, max_rise) - width * length)
    nodes[count, FRESH], nodes[count, LENGTH], nodes[count, RISE] = less, length, rise
    nodes[count, SHARE] = nodes[count - 1, SHARE] + area


@inlined()
def march(equation: Equation) -> FloatArray:
    """Solve the equation from the least jump to END, and return its nodes, shape (nodes, 5)."""
    alpha, total, jumps = equation.alpha, equation.total, equation.jumps
    corners = bends(equation)
    y = corners[1] if corners.size > 1 else END
    nodes = np.empty((MAX_CELLS, 5))
    nodes[0, LEVEL], nodes[0, FRESH] = y, math.exp(-y)
    nodes[0, LENGTH] = first_length(y, alpha, total)
    nodes[0, RISE] = math.exp(-total * (y / alpha)) / alpha
    nodes[0, SHARE] = first_share(y, alpha, total)
    start, places = (1.0, 0.0), np.zeros(jumps.size, np.int64)
    count, corner = 1, 1
    while True:
        for s in range(jumps.size):
            if abs(y - jumps[s]) <= LEVEL_TOLERANCE * y:
                start = (start[0], start[1] + equation.rates[s] / alpha)
        if y >= END or count == MAX_CELLS:
            return nodes[:count]
        following = corners[corner + 1] if corner + 1 < corners.size else END
        y = _next_node(equation, y, corners[corner], following)
        nodes[count, LEVEL] = y
        end = _delayed(equation, nodes, count, places, y)
        _step(equation, nodes, count, start, end)
        start = end
        corner += y == following
        count += 1


@inlined()
def _between(x: FloatArray, nodes: FloatArray, i: int, j: int) -> tuple[float, int, bool]:
    """Return the error of the interval of nodes i to j, where to cut it, and whether it bends.

    The cut is where psi reaches its mean: at the bend, if there is one.
    """
    if j - i < 2:
        return -1.0, i, False
    shares, lengths = nodes[:, SHARE], nodes[:, LENGTH]
    mean = (shares[j] - shares[i]) / (x[i] - x[j])
    cut = i + int(np.searchsorted(lengths[i : j + 1], mean))
    cut = min(max(cut, i + 1), j - 1)
    smooth, bent = 0.0, 0.0
    ends = x[i], x[j], shares[i], shares[j], lengths[i], lengths[j]
    for k in range(i, j, max(1, (j - i) // SAMPLES)):
        node = cut if k == i else k
        smooth = max(smooth, abs(cubic_share(x[node], ends) - shares[node]))
        bent = max(bent, abs(tangent_share(x[node], ends) - shares[node]))
    return min(smooth, bent), cut, bent < smooth


@inlined()
def fill_knots(
    recall: FloatArray, noise: FloatArray, out: FloatArray
) -> tuple[float, float, float, float]:
    """Fill in the knots of one page; return alpha, Gamma, pace and certain of its equation.

    ``out``, (3, K), has x, u and psi by descending x, the last one at x = 0. A negative psi marks
    the start of an interval of two tangents. ``recall`` and ``noise`` have shape (S,); ``noise`` is
    the rate of false signals over Delta.
    """
    equation = equation_of(recall, noise)
    nodes, number = march(equation), out.shape[1]
    x, end = nodes[:, FRESH].copy(), nodes.shape[0] - 1
    errors, cuts, bent = np.empty(number), np.empty(number, np.int64), np.zeros(number, np.bool_)
    first, last = np.zeros(number, np.int64), np.full(number, end)
    errors[0], cuts[0], bent[0] = _between(x, nodes, 0, end)
    count = 1
    while count < number - 2:
        k = int(np.argmax(errors[:count]))
        if errors[k] <= SHARE_TOLERANCE:
            break
        first[count], last[count], last[k] = cuts[k], last[k], cuts[k]
        for interval in (k, count):
            split = _between(x, nodes, first[interval], last[interval])
            errors[interval], cuts[interval], bent[interval] = split
        count += 1
    order = np.argsort(first[:count])
    for k in range(number):
        node = first[order[k]] if k < count else end
        sign = -1.0 if k < count and bent[order[k]] else 1.0
        out[:, k] = x[node], nodes[node, SHARE], sign * nodes[node, LENGTH]
    out[0, -1], out[1, -1] = 0.0, 1.0
    return equation.alpha, equation.total, equation.pace, equation.certain
