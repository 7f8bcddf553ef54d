"""Crawl intervals at a price per crawl, for binary and harmonic staleness, by Lambert's function.

A page with change rate 1 and a crawl every ``x`` units of time has the marginal value
``1 - (1 + x) e^-x`` (the value of GREEDY, Busa-Fekete et al., section 5.1). At price ``c`` the
interval is therefore ``x = -1 - W_-1(-(1 - c) / e)``. This form loses all digits where ``c`` is
small; as a function of ``s = sqrt(2 c)`` it is smooth, ``x = s + s^2/3 + 11 s^3/72 + ...``.

For the harmonic penalty the value is ``x - (1 - e^-x)``, and the interval
``x = 1 + c + W_0(-e^(-1 - c)) = s + s^2/6 + s^3/36 + ...``.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray

NEVER = math.sqrt(2.0)
"""From this ``s`` on (c >= 1) no interval reaches the price."""

BRANCH_SERIES = (
    1.0,
    1 / 3,
    11 / 72,
    43 / 540,
    769 / 17280,
    221 / 8505,
    680863 / 43545600,
    1963 / 204120,
    0.006014543252956118,
    0.0038112980348919993,
    0.0024408779911439826,
    0.0015769303446867841,
    0.0010262633205076071,
    0.0006720616311561362,
    0.0004424730618146209,
    0.00029267722472962746,
)
"""Coefficients of s, s^2, ... of the interval x at small s = sqrt(2 c), c the price of a crawl
(Corless et al. 1996, eq. 4.22): from (1 - s^2/2) x x' = s (1 + x)."""

PIECES, PIECES_END, DEGREE = 64, 1.25, 9


@compiled()
def interval(s: float) -> float:
    """Return the crawl interval x with ``1 - (1 + x) e^-x = s^2 / 2``, for 0 <= s < sqrt 2.

    Uses the series near the branch point; elsewhere the start of Barry et al. (1995, eq. 15) and
    one step of fourth order (Fritsch, Shafer and Crowley 1973). Relative error below 3e-15.
    """
    if s < 0.1:
        x = 0.0
        for k in range(len(BRANCH_SERIES) - 1, -1, -1):
            x = s * (BRANCH_SERIES[k] + x)
        return x
    cost = -math.log1p(-0.5 * s * s)  # x - log(1 + x) = cost
    root = math.sqrt(cost)
    falling = math.exp(-0.0201 * root)
    x = cost + 2.0 / 0.3361 * (
        1.0 - 1.0 / (1.0 + 0.3361 * math.sqrt(0.5) * root / (1.0 - 0.0042 * cost * falling))
    )
    z = x - cost - math.log1p(x)
    q = 2.0 * x * (x - 2.0 / 3.0 * z)
    return x - (1.0 + x) * z / x * (q - z) / (q - 2.0 * z)


@functools.cache
def pieces() -> FloatArray:
    """Return polynomials for :func:`interval` over s, on 64 pieces of s in [0, 1.25), (64, 10)."""
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    centres = (np.arange(PIECES) + 0.5) * (PIECES_END / PIECES)
    points = centres[:, None] + nodes * (0.5 * PIECES_END / PIECES)
    ratios = np.array([[interval(s) / s for s in row] for row in points])
    powers = np.vander(nodes, DEGREE + 1, increasing=True)
    return np.ascontiguousarray(np.linalg.solve(powers, ratios.T).T)


@inlined()
def fast_interval(s: float, table: FloatArray) -> float:
    """Return the crawl interval of ``s`` by polynomials from :func:`pieces`: error 2e-15, 5 ns."""
    if s >= PIECES_END:
        return interval(s)
    position = s * (PIECES / PIECES_END)
    piece = int(position)
    t = 2.0 * (position - piece) - 1.0
    ratio: float = table[piece, DEGREE]
    for k in range(DEGREE - 1, -1, -1):
        ratio = table[piece, k] + t * ratio
    return s * ratio


HARMONIC_SERIES = (
    1.0,
    1 / 6,
    1 / 36,
    1 / 270,
    1 / 4320,
    -1 / 17010,
    -139 / 5443200,
    -1 / 204120,
    -2.428276122977769e-07,
    1.85406221071516e-07,
    7.542464855411896e-08,
    1.47216272806884e-08,
    5.159887341078076e-10,
    -7.32986413160022e-10,
    -2.921357345635569e-10,
    -5.717312238897994e-11,
    -1.5008349408791911e-12,
    3.239317851416903e-12,
)
"""Coefficients of s, s^2, ... of the harmonic interval x at small s: from x' (x - s^2/2) = s."""


@inlined()
def harmonic_interval(cost: float) -> float:
    """Return the interval x with ``x - (1 - e^-x) = cost``, for cost >= 0, within 2e-15 (relative).

    Uses the series near 0; elsewhere three of Halley's steps from a start within 15%.
    """
    s = math.sqrt(2.0 * cost)
    if s < 0.5:
        x = 0.0
        for k in range(len(HARMONIC_SERIES) - 1, -1, -1):
            x = s * (HARMONIC_SERIES[k] + x)
        return x
    x = 1.0 + cost if cost > 3.0 else s * (1.0 + s / 6.0)
    for _ in range(3):
        grown = -math.expm1(-x)  # the derivative
        off = x - grown - cost
        x -= 2.0 * off * grown / (2.0 * grown * grown - off * (1.0 - grown))
    return x
