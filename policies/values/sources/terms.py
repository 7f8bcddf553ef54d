r"""The crawl value of a page with several sources of signals, as a share of its limit mu / Delta.

Level y = alpha iota is the effective elapsed time in nats: exp(-y) is the probability that the
page is fresh, time adds alpha per unit, and a signal of source s adds b_s = ln(gamma_s / nu_s).
With time in units of 1 / Delta, the share u of the value and the cycle length psi solve

    alpha u' = 1 - exp(-y) - (alpha + Gamma) u + sum_s nu_s u(y - b_s),
    alpha psi' = 1 - Gamma psi + sum_s gamma_s psi(y - b_s),

both zero up to y = 0. Any solution of these equations evaluates Theorem 1 for several sources.
There are two methods:

* a lattice, the sum over all numbers n of signals per source with n . b < y. It is exact, but weak
  sources (b small) have very many terms;
* pieces, polynomials of degree DEGREE that solve the equation at the Chebyshev points of
  intervals, made once per page. Weak sources make the solution smooth.

Far from the last crawl an asymptotic form replaces both, as for one source.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.values.series import first_term, greedy_form

DEGREE = 12
"""Degree of the pieces; a piece has DEGREE + 1 coefficients of Chebyshev polynomials."""

NODES = -np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
"""The Chebyshev points of [-1, 1] in ascending order."""


def _coefficients() -> FloatArray:
    """Return the matrix from values at NODES to coefficients of Chebyshev polynomials."""
    order = np.arange(DEGREE + 1)
    return np.linalg.inv(np.cos(np.outer(np.arccos(NODES), order)))


def _derivatives() -> FloatArray:
    """Return the matrices from values at NODES to the first DEGREE derivatives there."""
    weight = (-1.0) ** np.arange(DEGREE + 1)
    weight[[0, -1]] *= 0.5
    gap = NODES[:, None] - NODES[None, :] + np.eye(DEGREE + 1)
    first = weight[None, :] / weight[:, None] / gap
    np.fill_diagonal(first, 0.0)
    np.fill_diagonal(first, -first.sum(axis=1))
    powers = [first]
    for _ in range(DEGREE - 1):
        powers.append(first @ powers[-1])
    return np.stack(powers)


TO_COEFFICIENTS = _coefficients()
DERIVATIVES = _derivatives()

NEAR = 0.02
"""Jumps below this share of half a piece are expanded about their end to avoid cancellation."""


@compiled()
def chebyshev(table: FloatArray, row: int, start: int, x: float) -> float:
    """Return the sum of DEGREE + 1 coefficients from column ``start`` times T_j(x), |x| <= 1."""
    later = 0.0
    last = 0.0
    for j in range(DEGREE, 0, -1):
        later, last = table[row, start + j] + 2.0 * x * later - last, later
    total: float = table[row, start] + x * later - last
    return total


@compiled()
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


@compiled()
def first_share(y: float, alpha: float, rate: float) -> float:
    """Return the share below the lowest jump, where signals at rate ``rate`` end the cycle."""
    if not y > 0.0:
        return 0.0
    return first_term(1.0 / (alpha + rate), y, rate * (y / alpha), alpha / rate)


@compiled()
def first_length(y: float, alpha: float, rate: float) -> float:
    """Return the cycle length below the lowest jump."""
    return -math.expm1(-rate * (y / alpha)) / rate if y > 0.0 else 0.0


@compiled()
def far_share(y: float, slope: float, bend: float, offset: float) -> float:
    """Return the asymptotic form ``slope R^1_exp(y) + bend (1 - exp(-y)) + offset``."""
    return greedy_form(slope, y) - bend * math.expm1(-y) + offset
