r"""Delays of signals: the share that has arrived by an age, and the time that is not yet signalled.

A delay D (:class:`crawl_envs.types.Delay`) runs from the change of a page to the arrival of
its signal. At age x the signal has arrived with probability G(x) = P(D <= x). If changes occur at a
constant rate from time 0 on, the signals still under way at time t are those of a time of

    H(t) = integral from 0 to t of P(D > x) dx = E[min(D, t)].

The compiled functions take a delay as the numbers of :func:`delay_numbers`. Their
relative error is at most 1e-12 (worst case: a Poisson delay of 500 quanta).
"""

from __future__ import annotations

import math

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import DELAY_KINDS, Delay
from policies.values.series import NEGLIGIBLE, pmf

CONSTANT, EXPONENTIAL, POISSON = (
    float(DELAY_KINDS.index(kind)) for kind in ("constant", "exponential", "poisson")
)

ENDLESS = 50.0
"""Longest delay considered, in means plus quanta; longer ones have probability below 1e-21."""


def delay_numbers(delay: Delay) -> tuple[float, float, float]:
    """Return a delay as the three numbers (kind, mean, quantum) that compiled functions take."""
    mean = delay.mean if delay.mean / delay.quantum > 0.0 else 0.0
    return float(DELAY_KINDS.index(delay.kind)), mean, delay.quantum


@inlined()
def poisson_split(index: float, mean: float) -> tuple[float, float, float]:
    """Return P(N < index), P(N = index) and P(N > index) for a Poisson number N of mean > 0."""
    mass = pmf(index, mean)
    term, side = mass, 0.0
    if index < mean:
        j = index
        while j > 0.0 and term > NEGLIGIBLE * side:
            term *= j / mean
            side += term
            j -= 1.0
        return side, mass, 1.0 - side - mass
    j = index + 1.0
    while term > NEGLIGIBLE * side:
        term *= mean / j
        side += term
        j += 1.0
    return 1.0 - side - mass, mass, side


@compiled()
def arrived(kind: float, mean: float, quantum: float, age: float) -> tuple[float, float]:
    """Return the probabilities P(D <= age) and P(D > age); the age may be infinite."""
    if mean == 0.0 or age > ENDLESS * (mean + quantum):
        return 1.0, 0.0
    if kind == EXPONENTIAL:
        return -math.expm1(-age / mean), math.exp(-age / mean)
    if kind == POISSON:
        below, mass, above = poisson_split(math.floor(age / quantum), mean / quantum)
        return below + mass, above
    return (1.0, 0.0) if age >= mean else (0.0, 1.0)


@compiled()
def under_way(kind: float, mean: float, quantum: float, elapsed: float) -> float:
    """Return H(elapsed) = E[min(D, elapsed)], the recent time whose signals are still under way."""
    if mean == 0.0 or elapsed > ENDLESS * (mean + quantum):
        return mean
    if kind == EXPONENTIAL:
        return -mean * math.expm1(-elapsed / mean)
    if kind == POISSON:
        below, _, above = poisson_split(math.floor(elapsed / quantum), mean / quantum)
        return elapsed * above + mean * below
    return min(elapsed, mean)
