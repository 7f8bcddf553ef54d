"""Crawl intervals at a given harmonic price: the branch W_0 of Lambert's function.

A page of importance 1 and change rate 1 with a crawl every ``x`` units of time has the harmonic
crawl value ``x - (1 - e^-x)``. The interval of value ``c`` is therefore
``x = 1 + c + W_0(-e^(-1 - c))``, which loses all digits where ``c`` is small; as a function of
``s = sqrt(2 c)`` it is smooth, ``x = s + s^2/6 + s^3/36 + ...``.
"""

from __future__ import annotations

import math

from crawl_envs.types.compiling import inlined

SERIES = (
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
"""Coefficients of s, s^2, ... of x: from x' (x - s^2/2) = s."""


@inlined()
def harmonic_interval(cost: float) -> float:
    """Return ``x`` with ``x - (1 - e^-x) = cost``, for cost >= 0, within 2e-15 (relative).

    Uses the series near 0; elsewhere three of Halley's steps from a start within 15%.
    """
    s = math.sqrt(2.0 * cost)
    if s < 0.5:
        x = 0.0
        for k in range(len(SERIES) - 1, -1, -1):
            x = s * (SERIES[k] + x)
        return x
    x = 1.0 + cost if cost > 3.0 else s * (1.0 + s / 6.0)
    for _ in range(3):
        grown = -math.expm1(-x)  # the derivative
        off = x - grown - cost
        x -= 2.0 * off * grown / (2.0 * grown * grown - off * (1.0 - grown))
    return x
