r"""Sums over the changed intervals, for the score of the change rate.

A changed interval a adds a / (exp(a Delta) - 1) to the score (Kolobov et al., eq. 10). With
x = a Delta this is f / Delta, f = x / (exp(x) - 1), and every derivative by Delta is a polynomial
in f and x: with g = f (f + x),

    Delta   (f / Delta)     =   f            Delta^2 (f / Delta)'    =  -g
    Delta^3 (f / Delta)''   =   g (2 f + x)  Delta^4 (f / Delta)'''  =  -g (6 g + x^2)
    Delta^5 (f / Delta)'''' =   g (2 f + x) (12 g + x^2)

so that four derivatives need one exponential. The exponential is inlined so that the loop has no
branch and can be vectorised.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled

LARGEST = 700.0
"""Exponents are cut here: exp(x) is finite, and f below 1e-300 is negligible."""


@compiled(fastmath={"contract", "nsz"})
def exp_minus_one(x: float) -> float:
    """Return exp(x) - 1 for 0 <= x <= 700, within 4e-16 of its value."""
    power = np.int32(x * 1.4426950408889634 + 0.5)
    r = x - power * 0.6931471803691238 - power * 1.9082149292705877e-10  # ln 2 in two parts
    tail = 1.0 / 6227020800.0  # 1 / 13!
    tail = tail * r + 1.0 / 479001600.0
    tail = tail * r + 1.0 / 39916800.0
    tail = tail * r + 1.0 / 3628800.0
    tail = tail * r + 1.0 / 362880.0
    tail = tail * r + 1.0 / 40320.0
    tail = tail * r + 1.0 / 5040.0
    tail = tail * r + 1.0 / 720.0
    tail = tail * r + 1.0 / 120.0
    tail = tail * r + 1.0 / 24.0
    tail = tail * r + 1.0 / 6.0
    tail = tail * r + 0.5
    part = tail * r * r + r  # exp(r) - 1
    scale: float = np.int64((np.int64(power) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return scale * part + (scale - 1.0)


@compiled(fastmath={"contract", "nsz", "reassoc"})
def score_sums(
    lengths: FloatArray, count: int, rate: float
) -> tuple[float, float, float, float, float]:
    """Return the sums of f, g, g (2 f + x), g (6 g + x^2) and g (2 f + x) (12 g + x^2).

    Args:
        lengths: changed intervals, > 0, (>= count,).
        count: number of intervals used.
        rate: Delta, > 0.
    """
    zeroth = first = second = third = fourth = 0.0
    for j in range(count):
        x = min(max(lengths[j] * rate, 1e-300), LARGEST)
        f = x / exp_minus_one(x)
        g = f * (f + x)
        bend = g * (2.0 * f + x)
        square = x * x
        zeroth += f
        first += g
        second += bend
        third += g * (6.0 * g + square)
        fourth += bend * (12.0 * g + square)
    return zeroth, first, second, third, fourth
