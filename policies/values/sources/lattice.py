"""The lattice: Theorem 1 for several sources as a sum over the numbers of signals from each.

A point n, k = |n| signals in all, lies at level n . b and has the weight (k! / prod n_s!)
prod (gamma_s / Gamma)^n_s. With x = Gamma (y - n . b) / alpha and N for a Poisson variable of mean
x, it adds the weight times P(N > k) / Gamma to the cycle length, and the weight times
(exp(-y) / Gamma) E[((1 + r)^N - (1 + r)^(k + 1))^+], r = alpha / Gamma, to the share of the value:
the summand of one source, whose cancellation-free forms are in :mod:`policies.values.series`.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import inlined
from policies.values.kernels import reaches
from policies.values.series import first_term, summand

LEVEL, SIGNALS, WEIGHT, LIMIT = 0, 1, 2, 3
"""Columns of a point: n . b, k, its weight, and exp(-n . b) (1 + r)^(-k - 1)."""
WIDTH = 4

VISITS_PER_POINT = 8
"""Limit of the points visited by a search, per point of its capacity."""


@inlined()
def _point(jumps: FloatArray, shares: FloatArray, numbers: FloatArray) -> tuple[float, float]:
    """Return the level and the weight of the point ``numbers``."""
    level = 0.0
    total = 0.0
    weight = 1.0
    for s in range(jumps.size):
        level += numbers[s] * jumps[s]
        for i in range(int(numbers[s])):
            total += 1.0
            weight *= shares[s] * total / (i + 1.0)
    return level, weight


@inlined()
def lattice(
    jumps: FloatArray, shares: FloatArray, growth: float, limits: tuple[float, float, int]
) -> FloatArray:
    """Return the points by ascending level, shape (points, WIDTH); (0, WIDTH) if too many.

    ``shares`` are the gamma_s / Gamma of the sources with a finite jump, ``growth`` is ln(1 + r),
    and ``limits`` the highest level, the largest number of signals, and the largest number of
    points.
    """
    highest, most, capacity = limits
    points = np.empty((capacity, WIDTH))
    numbers = np.zeros(jumps.size)
    count = 0
    for _ in range(VISITS_PER_POINT * capacity):
        level, weight = _point(jumps, shares, numbers)
        inside = level <= highest and numbers.sum() <= most
        if inside:
            if count == capacity:
                return np.empty((0, WIDTH))
            total = numbers.sum()
            points[count, LEVEL] = level
            points[count, SIGNALS] = total
            points[count, WEIGHT] = weight
            points[count, LIMIT] = math.exp(-level - (total + 1.0) * growth)
            count += 1
            numbers[0] += 1.0
            continue
        s = 0
        while s < jumps.size and numbers[s] == 0.0:
            s += 1
        if s + 1 >= jumps.size:
            return points[np.argsort(points[:count, LEVEL], kind="mergesort")]
        numbers[s] = 0.0
        numbers[s + 1] += 1.0
    return np.empty((0, WIDTH))


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
