r"""Crawl values under the given parameters, by hypotheses about the delay of signals.

If delays are exponential with mean d, a signal that arrives at age a after the last crawl has the
evidence -ln(1 - p (1 - exp(-a / d))) of a change since then, with p the precision. A time t after
the crawl, the signals of lambda Delta d (1 - exp(-t / d)) changes are still under way (as in
:mod:`policies.ncis.delayed`). The results of crawls weigh the hypotheses, one for each of MEANS,
against each other and against the belief, which has no delays.
"""

from __future__ import annotations

import math

from agents.generalist.belief.layout import (
    BEST,
    COUNTS,
    CYCLE,
    EVIDENCE,
    HYPOTHESES,
    LIKELY,
    PRECISION,
    SIGNALLED_RATE,
    TRUST,
)
from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import inlined

MEANS = (0.0, 0.1, 0.3, 0.8, 2.0)
"""Mean delays, in cycles T."""
LEAST_LIKELIHOOD = 1e-3
"""Lower bound of the likelihood of one crawl's result, so that no single crawl decides."""
TRUSTED = 4.0
"""Difference of log-likelihoods at which the trust is 1 / (1 + 1/e); at 0 it is 1/2."""


@inlined()
def add_to_hypotheses(row: FloatArray, first: int, age: float, cycle: float) -> None:
    """Add a signal, at an age since the last crawl, to every hypothesis."""
    for hypothesis in range(HYPOTHESES):
        share = row[first + PRECISION]
        if MEANS[hypothesis] > 0.0:
            share *= -math.expm1(-age / (MEANS[hypothesis] * cycle))
        row[first + EVIDENCE + hypothesis] -= math.log1p(-min(share, 1.0 - 1e-6))
        row[first + COUNTS + hypothesis] += share


@inlined()
def read_hypothesis(
    row: FloatArray, first: int, alpha: float, elapsed: float, cycle: float, hypothesis: int
) -> tuple[float, float]:
    """Return x and B of a page under a hypothesis; ``alpha`` is (1 - lambda) Delta as given."""
    pending = alpha * elapsed
    if MEANS[hypothesis] > 0.0:
        mean = MEANS[hypothesis] * cycle
        pending += row[first + SIGNALLED_RATE] * mean * -math.expm1(-elapsed / mean)
    return pending + row[first + EVIDENCE + hypothesis], pending + row[first + COUNTS + hypothesis]


@inlined()
def log_likelihood(x: float, changed: bool) -> float:
    """Return the log-likelihood of a crawl's result, at evidence x."""
    chance = -math.expm1(-x) if changed else math.exp(-x)
    return math.log(LEAST_LIKELIHOOD + (1.0 - LEAST_LIKELIHOOD) * chance)


@inlined()
def weigh_hypotheses(
    row: FloatArray,
    first: int,
    shared: FloatArray,
    alpha: float,
    elapsed: float,
    believed: float,
    changed: bool,
) -> None:
    """Weigh the hypotheses by a crawl's result; ``believed`` is the belief's x."""
    best = 0
    for hypothesis in range(HYPOTHESES):
        x, _ = read_hypothesis(row, first, alpha, elapsed, shared[CYCLE], hypothesis)
        shared[LIKELY + hypothesis] += log_likelihood(x, changed)
        if shared[LIKELY + hypothesis] > shared[LIKELY + best]:
            best = hypothesis
    shared[LIKELY + HYPOTHESES] += log_likelihood(believed, changed)
    shared[BEST] = best
    ahead = shared[LIKELY + best] - shared[LIKELY + HYPOTHESES]
    shared[TRUST] = 1.0 / (1.0 + math.exp(-ahead / TRUSTED))
