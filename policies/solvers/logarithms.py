"""Compiled: weighted sums of ln(1 + x), eight at a time where the processor can."""

from __future__ import annotations

import numpy as np

from crawl_envs.kernels import compiled
from crawl_envs.types import FloatArray, IntArray

BLOCK = 1024
"""Numbers that are worked on in turn: few enough for the buffers to stay close to the core."""

BUFFERS = 5
"""Rows of length BLOCK that :func:`weighted_log1p` works in."""

ROOT_HALF = int(np.float64(np.sqrt(0.5)).view(np.int64))
LN2 = float(np.log(2.0))


@compiled()
def weighted_log1p(weight: FloatArray, ratio: FloatArray, buffers: FloatArray) -> float:
    """``sum weight ln(1 + ratio)``, each logarithm within 4e-16 of its value (relative).

    Args:
        weight: shape (n,), finite.
        ratio: shape (n,), n <= BLOCK, in [0, 1.7e308].
        buffers: to work in, of shape (BUFFERS, BLOCK).
    """
    n = ratio.size
    whole, mantissa = buffers[0, :n], buffers[1, :n]
    exponent, shrink, logarithm = buffers[2, :n], buffers[3, :n], buffers[4, :n]
    for i in range(n):
        whole[i] = 1.0 + ratio[i]
    _split(whole.view(np.int64), mantissa.view(np.int64), shrink.view(np.int64), exponent)
    _logarithms(ratio, whole, mantissa, shrink, exponent, logarithm)
    return _dot(weight, logarithm)


@compiled()
def _split(bits: IntArray, mantissa: IntArray, shrink: IntArray, exponent: FloatArray) -> None:
    """Bits of floats >= 1 as those of a mantissa in [sqrt 1/2, sqrt 2), and a power of two.

    ``shrink`` is the inverse of that power, or more where it is below 2^-1022.
    """
    for i in range(bits.size):
        power = (bits[i] - ROOT_HALF) >> 52
        mantissa[i] = bits[i] - (power << 52)
        shrink[i] = (1023 - min(power, 1022)) << 52
        exponent[i] = power


@compiled(fastmath={"contract", "nsz"})
def _logarithms(
    ratio: FloatArray,
    whole: FloatArray,
    mantissa: FloatArray,
    shrink: FloatArray,
    exponent: FloatArray,
    logarithm: FloatArray,
) -> None:
    """Fill in ln(1 + ratio): 2 atanh f, with f = (mantissa - 1) / (mantissa + 1), by its series.

    What rounding took from ``whole`` = 1 + ratio is made good to first order. One division serves
    both that and f.
    """
    for i in range(ratio.size):
        m = mantissa[i]
        inverse = 1.0 / (m * (m + 1.0))
        lost = (ratio[i] - (whole[i] - 1.0)) * shrink[i] * (m + 1.0) * inverse
        f = (m - 1.0) * m * inverse
        g = f * f
        series = 2 / 19 + g * (2 / 21)
        series = 2 / 15 + g * (2 / 17 + g * series)
        series = 2 / 11 + g * (2 / 13 + g * series)
        series = 2 / 7 + g * (2 / 9 + g * series)
        series = 2 / 3 + g * (2 / 5 + g * series)
        logarithm[i] = exponent[i] * LN2 + (2.0 * f + (f * g * series + lost))


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _dot(left: FloatArray, right: FloatArray) -> float:
    total = 0.0
    for i in range(left.size):
        total += left[i] * right[i]
    return total
