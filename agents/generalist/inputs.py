"""Inputs of the correction of a belief: those of a history of crawls, and the belief in logarithms.

Time is measured in cycles T = m / R, so that none has a unit.
"""

from __future__ import annotations

import math

from agents.generalist.belief.inputs import INPUTS as HISTORY
from agents.generalist.belief.kernels import Arrays, describe
from agents.generalist.belief.layout import CALIBRATION, CYCLE, KINDS
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import inlined
from policies.ncis.belief.layout import places

BELIEVED = (
    *("log_evidence", "log_expected_changes", "log_rate", "log_elapsed", "log_value"),
    *("log_unsignalled_rate", "log_signal_rate", "signalled_share", "log_signal_evidence"),
    *("log_trust_in_signals", "active", "log_exposure"),
)
"""x; B; the change rate; the time since the last crawl; the crawl value over the importance; alpha;
gamma; the share of changes that are signalled; the evidence of the signals since the last crawl;
that of one signal; the probability that the page still changes; how much is known of alpha."""
LAW = tuple(f"calibration_{kind}" for kind in range(KINDS))
"""How well the belief predicted the episode's crawls so far, ln((c + changes) / (c + expected)), by
kinds of signals and of intervals (:mod:`agents.generalist.belief.history`); the same for all."""
INPUTS = (*HISTORY, *BELIEVED, *LAW)
"""Inputs of staleness, in the order of rows."""
LEVEL = ("log_level", "level", "level_evidence")
"""Further inputs of the value of a crawl: ln x, 1 - exp(-x) and x at the level of the crawl."""
SMALLEST = 1e-3
"""Added to arguments of logarithms."""


@inlined()
def log_of(y: float) -> float:
    """Return the logarithm of a number >= 0, bounded below."""
    return math.log(SMALLEST + y)


@inlined()
def write_inputs(
    memory: Arrays,
    now: float,
    elapsed: FloatArray,
    chosen: IntArray,
    believed: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Write the inputs of ``chosen`` pages, (n,), into zeros ``out``, (>= K, n).

    ``believed`` (3, m) are x, B and rates of all pages, ``values`` (m,) their crawl values.
    """
    describe(memory, now, elapsed, chosen, believed, out)
    pages, shared = memory[0], memory[3]
    at, cycle, first = places(shared), shared[CYCLE], len(HISTORY)
    for k in range(chosen.shape[0]):
        number = chosen[k]
        row, x, rate = pages[number], believed[0, number], believed[2, number]
        alpha = row[at.believed]
        of_signals = max(x - alpha * elapsed[number], 0.0)
        out[first, k] = log_of(x)
        out[first + 1, k] = log_of(believed[1, number])
        out[first + 2, k] = log_of(rate * cycle)
        out[first + 3, k] = log_of(elapsed[number] / cycle)
        importance = row[at.importance]
        value = values[number] / importance if importance > 0.0 else 0.0
        out[first + 4, k] = log_of(value / cycle)
        out[first + 5, k] = log_of(alpha * cycle)
        out[first + 6, k] = log_of(row[at.signal_rate] * cycle)
        out[first + 7, k] = row[at.signalled_rate] / rate
        out[first + 8, k] = log_of(of_signals)
        out[first + 9, k] = log_of(row[at.believed + 1])
        out[first + 10, k] = row[at.active]
        out[first + 11, k] = math.log1p(row[at.kinds])
        for kind in range(KINDS):
            out[first + len(BELIEVED) + kind, k] = shared[CALIBRATION + kind]
