"""Compiled scalars for pages with several sources of signals: value and evidence per signal.

The state is the time since the last crawl and the evidence: the sum of :func:`source_evidence`,
b_s in nats, over all signals since then. :mod:`policies.values.sources.tables` fills row ``page``
of the tables with the cheapest exact form for the page: the formula of one source where at most one
distinct source is informative, a lattice, or pieces.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import SIGNAL_WEIGHT, VALUE, compiled
from policies.values.kernels import greedy_ncis_value
from policies.values.series import ALPHA, SATURATED, TOP
from policies.values.sources.lattice import lattice_length, lattice_share
from policies.values.sources.pieces import far_share, first_length, first_share, piecewise

# Columns after those of the table of ``greedy_ncis_value``, which come first.
OWN = 14  # alpha, added to the level per unit of time
UNIT = 15  # pages of one source: its b; 0 where weak sources are treated as time
COUNT = 16  # points of the lattice; or minus the number of pieces; or 0 for one source
BODY = 17  # the column where the points or pieces start
DRIFT, TOTAL = 18, 19  # alpha (with weak sources) and Gamma, in units of Delta
FAR = 20  # the level from which on the asymptotic form holds
FAR_SLOPE, FAR_BEND, FAR_OFFSET = 21, 22, 23
EVIDENCES = 24  # b_s for each source


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
