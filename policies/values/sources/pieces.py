"""Pieces: the value of a page of several sources as piecewise polynomials, made once per page.

The equations of :mod:`policies.values.sources` are solved piece by piece by collocation at the
Chebyshev points, which is stiffly stable even for rare unsignalled changes (alpha small). A piece
is accepted if its last coefficients are negligible; otherwise it is halved, or cut at the first
kink inside it. Every sum n . b is a kink, of higher derivatives for more signals. The march ends
when the solution has followed its asymptotic form over the length of the largest jump.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import inlined
from policies.values.sources.kernels import DEGREE, far_share, first_length, first_share, piecewise

KINK_SIGNALS = 4
"""Number of signals up to which kinks lead to a cut; those of more signals are smooth enough."""

NODES = -np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
"""The Chebyshev points of [-1, 1] in ascending order."""

WEIGHTS = (-1.0) ** np.arange(DEGREE + 1) * np.where(abs(NODES) < 1.0, 1.0, 0.5)
"""Their barycentric weights."""

TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(NODES, DEGREE))
"""The matrix from values at NODES to coefficients of Chebyshev polynomials."""

DERIVATIVES = np.stack(
    [
        chebyshev.chebvander(NODES, DEGREE - k) @ chebyshev.chebder(TO_COEFFICIENTS, k)
        for k in range(1, DEGREE + 1)
    ]
)
"""The matrices from values at NODES to the first DEGREE derivatives there."""

NEAR = 0.02
"""Jumps below this share of half a piece are expanded about their end to avoid cancellation."""


class Equation(NamedTuple):
    """alpha u' = f(y) - loss u + sum_s rates_s u(y - jumps_s), with time in units of 1 / Delta.

    f(y) = 1 - exp(-y) for the share of the value and 1 for the cycle length (``length``). ``rates``
    and ``jumps`` have shape (S,); ``total`` is Gamma; ``far`` has the asymptotic form.
    """

    length: bool
    alpha: float
    total: float
    loss: float
    rates: FloatArray
    jumps: FloatArray
    far: tuple[float, float, float]


@inlined()
def first_of(equation: Equation, y: float) -> float:
    """Return the solution below the lowest jump."""
    if equation.length:
        return first_length(y, equation.alpha, equation.total)
    return first_share(y, equation.alpha, equation.total)


@inlined()
def far_of(equation: Equation, y: float) -> float:
    """Return the asymptotic form of the solution."""
    slope, bend, offset = equation.far
    if equation.length:
        return slope * y + bend + offset
    return far_share(y, slope, bend, offset)


@inlined()
def _eliminate(matrix: FloatArray, right: FloatArray) -> None:
    """Solve ``matrix @ x = right`` in place by elimination with row pivots."""
    size = right.size
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(k, size):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            right[k], right[pivot] = right[pivot], right[k]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            for j in range(k + 1, size):
                matrix[i, j] -= factor * matrix[k, j]
            right[i] -= factor * right[k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            right[k] -= matrix[k, j] * right[j]
        right[k] /= matrix[k, k]


@inlined()
def _subtract_within(row: FloatArray, node: int, back: float, rate: float) -> None:
    """Add ``rate (u(x) - u(x - back))`` to a row over the values of u, x the node, in [-1, 1]."""
    if back < NEAR:
        factor = -rate
        for k in range(DEGREE):
            factor *= -back / (k + 1)
            for j in range(DEGREE + 1):
                row[j] += factor * DERIVATIVES[k, node, j]
        return
    row[node] += rate
    x = NODES[node] - back
    norm = 0.0
    for j in range(DEGREE + 1):
        if abs(x - NODES[j]) < 1e-15:
            row[j] -= rate
            return
        norm += WEIGHTS[j] / (x - NODES[j])
    for j in range(DEGREE + 1):
        row[j] -= rate * WEIGHTS[j] / (x - NODES[j]) / norm


@inlined()
def _collocate(
    equation: Equation, done: FloatArray, count: int, left: float, height: float, width: float
) -> FloatArray:
    """Return the values at the nodes of [left, left + width]; the first one is ``height``.

    ``done`` is one row with ``count`` pieces below ``left``, in the layout of :func:`_packed`.
    """
    matrix = np.zeros((DEGREE, DEGREE + 1))
    right = np.empty(DEGREE)
    lowest = equation.jumps.min()
    for i in range(1, DEGREE + 1):
        y = left + 0.5 * width * (1.0 + NODES[i])
        row = matrix[i - 1]
        for j in range(DEGREE + 1):
            row[j] = 2.0 * equation.alpha / width * DERIVATIVES[0, i, j]
        source = 1.0 if equation.length else -math.expm1(-y)
        own = equation.loss
        for s in range(equation.jumps.size):
            before = y - equation.jumps[s]
            if before > left:
                back = 2.0 * equation.jumps[s] / width
                _subtract_within(row, i, back, equation.rates[s])
                own -= equation.rates[s]
            elif before > lowest:
                source += equation.rates[s] * piecewise(done, 0, 0, count, before)
            elif before > 0.0:
                source += equation.rates[s] * first_of(equation, before)
        row[i] += own
        right[i - 1] = source - row[0] * height
    _eliminate(np.ascontiguousarray(matrix[:, 1:]), right)
    return np.append(np.array([height]), right)


@inlined()
def _packed(ends: FloatArray, coefficients: FloatArray, count: int) -> FloatArray:
    """Return one row: the ``count`` + 1 ends, then the coefficients piece by piece."""
    row = np.empty((1, count + 1 + count * (DEGREE + 1)))
    row[0, : count + 1] = ends[: count + 1]
    row[0, count + 1 :] = coefficients[:count].copy().ravel()
    return row


@inlined()
def _narrowed(kinks: FloatArray, left: float, width: float) -> float:
    """Return the width of the next attempt: up to the first kink inside, or half."""
    for kink in kinks:
        gap = kink - left
        if 1e-9 * left < gap < width * (1.0 - 1e-9):
            return float(gap)
    return 0.5 * width


@inlined()
def march(
    equation: Equation, kinks: FloatArray, tolerance: float, limit: int, horizon: float
) -> tuple[FloatArray, int, float]:
    """Solve up to the asymptotic regime, or up to ``horizon``.

    Returns the packed row, its number of pieces (0 if ``limit`` of them do not suffice), and the
    level from which on the asymptotic form is exact. ``kinks`` are in order of importance.
    """
    ends = np.empty(limit + 1)
    coefficients = np.empty((limit, DEGREE + 1))
    reach = equation.jumps.max()
    left = equation.jumps.min()
    ends[0] = left
    height = first_of(equation, left)
    width = left
    count = 0
    known = _packed(ends, coefficients, 0)
    off = left
    while left < horizon and left - off < reach:
        if count == limit:
            return known, 0, math.inf
        values = _collocate(equation, known, count, left, height, width)
        terms = TO_COEFFICIENTS @ values
        scale = np.abs(values).max()
        tail = (abs(terms[DEGREE]) + abs(terms[DEGREE - 1])) / scale
        if not tail <= tolerance and width > 1e-9 * left:
            width = _narrowed(kinks, left, width)
            continue
        coefficients[count] = terms
        count += 1
        right = left + width
        ends[count] = right
        for i in range(DEGREE + 1):
            y = left + 0.5 * width * (1.0 + NODES[i])
            if not abs(values[i] - far_of(equation, y)) <= tolerance * values[i]:
                off = right
        left = right
        height = values[DEGREE]
        if tail < 1e-3 * tolerance:
            width *= 2.0
        known = _packed(ends, coefficients, count)
    keep = count
    while keep > 1 and ends[keep - 1] >= off:
        keep -= 1
    return _packed(ends, coefficients, keep), keep, ends[keep] if left < horizon else horizon
