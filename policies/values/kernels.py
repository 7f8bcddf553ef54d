"""Compiled functions that return the crawl value of one page; formulas are in policies.values.

Every public function is a kernel of type ``VALUE``: ``value(parameters, page, elapsed, signals)``.
Row ``page`` of ``parameters`` comes from the table builder of the same name in
:mod:`policies.values.tables`. Values never decrease in ``elapsed`` or ``signals``, are finite, and
lie in [0, mu / Delta], except the harmonic value, which has no bound. The columns of the tables and
the sums are in :mod:`policies.values.series`.
"""

from __future__ import annotations

import math

from crawl_envs.compiled.compiling import VALUE, compiled, inlined
from crawl_envs.types import FloatArray
from policies.values.series import (
    ALPHA,
    BEND,
    ENDLESS,
    EVIDENCE,
    FIRST,
    GAMMA,
    LENGTH_BETA,
    LENGTH_GAMMA,
    LENGTH_SPACING,
    LENGTH_SWITCH,
    LONG,
    MIN_SIGNALS,
    NEGLIGIBLE,
    OFFSET,
    PACE,
    PER_SIGNAL,
    PER_TIME,
    RATIO,
    SATURATED,
    SHORT,
    SLOPE,
    SWITCH,
    TERMS,
    TOP,
    deep,
    deep_count,
    first_term,
    greedy_form,
    lateness,
    page_row,
    pmf,
    summed,
)


@compiled(VALUE.signature)
def round_robin_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the time since the last crawl as the page's value: the oldest copy comes first."""
    return elapsed


@compiled(VALUE.signature)
def greedy_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return V_GREEDY of one page (section 5.1) from its elapsed time; signals are ignored."""
    return greedy_form(parameters[page, TOP], parameters[page, ALPHA] * elapsed)


@compiled(VALUE.signature)
def harmonic_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the harmonic value: from signals with complete observation, else from elapsed time."""
    per_signal: float = parameters[page, PER_SIGNAL]
    if per_signal > 0.0:
        return per_signal * signals
    per_time: float = parameters[page, PER_TIME]
    return per_time * elapsed * lateness(parameters[page, PACE] * elapsed)


@compiled(VALUE.signature)
def greedy_cis_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return V_GREEDY_CIS of one page (section 5.1), in the reading of the page's table."""
    top: float = parameters[page, TOP]
    if signals >= parameters[page, MIN_SIGNALS]:
        return top
    y = parameters[page, ALPHA] * elapsed
    x = parameters[page, GAMMA] * elapsed
    return min(top, first_term(parameters[page, FIRST], y, x, parameters[page, RATIO]))


@compiled(VALUE.signature)
def greedy_ncis_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return V_GREEDY_NCIS of one page from its elapsed time and number of signals (Theorem 1)."""
    top: float = parameters[page, TOP]
    y: float = parameters[page, ALPHA] * elapsed
    if signals > 0:
        y += parameters[page, EVIDENCE] * signals
    if y >= SATURATED:
        return top
    if y < parameters[page, SWITCH]:
        return min(top, summed(page_row(parameters, page), elapsed, signals, y, math.inf))
    slope: float = parameters[page, SLOPE]
    bend: float = parameters[page, BEND]
    if y >= 1.0:
        return min(top, top - math.exp(-y) * (slope * (1.0 + y) - bend * y))
    value = greedy_form(slope, y)
    if bend > 0.0:
        value += bend * (y * math.exp(-y)) + parameters[page, OFFSET]
    return min(top, value)


@compiled(VALUE.signature)
def greedy_ncis_approx_value(
    parameters: FloatArray, page: int, elapsed: float, signals: float
) -> float:
    """Return V_G_NCIS_APPROX_J of one page: the first J summands of Theorem 1 (appendix A.1)."""
    top: float = parameters[page, TOP]
    terms: float = parameters[page, TERMS]
    y: float = parameters[page, ALPHA] * elapsed
    if signals > 0:
        y += parameters[page, EVIDENCE] * signals
    if y < terms * parameters[page, EVIDENCE]:
        return greedy_ncis_value(parameters, page, elapsed, signals)
    return min(top, summed(page_row(parameters, page), elapsed, signals, y, terms))


@inlined()
def reaches(index: int, x: float) -> float:
    """Return R^i_exp(x) = P(N > index) for N Poisson of mean x (incomplete gamma P(i+1, x))."""
    if index == 0:
        return -math.expm1(-x)
    if deep(index, x):
        return 1.0
    if index > LONG:  # Edgeworth with continuity correction, error of order 1 / x
        u = (index + 0.5 - x) / math.sqrt(x)
        skew = (u * u - 1.0) / (6.0 * math.sqrt(x)) * math.exp(-0.5 * u * u)
        return 0.5 * math.erfc(u / math.sqrt(2.0)) + skew / math.sqrt(2.0 * math.pi)
    below = x > index + 1.0
    j = float(index) if below else index + 1.0
    if index <= SHORT:
        weight = math.exp(-x)
        for i in range(1, int(j) + 1):
            weight *= x / i
    else:
        weight = pmf(j, x)
    total = 0.0
    while weight > NEGLIGIBLE * total:
        total += weight
        weight *= j / x if below else x / (j + 1.0)
        j += -1.0 if below else 1.0
    return 1.0 - total if below else total


@compiled(VALUE.signature)
def cycle_length_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return psi, the mean time until a page reaches this effective elapsed time (Lemma 4)."""
    gamma: float = parameters[page, LENGTH_GAMMA]
    spacing: float = parameters[page, LENGTH_SPACING]
    beta: float = parameters[page, LENGTH_BETA]
    iota = elapsed + beta * signals if signals > 0 else elapsed
    if iota >= parameters[page, LENGTH_SWITCH] and spacing < math.inf:
        pace = 1.0 / (1.0 + spacing)
        return pace * (iota + 0.5 * pace * spacing * beta)
    expected = gamma * elapsed
    x = expected + spacing * signals if signals > 0 else expected
    index = 0
    if iota > SHORT * beta or signals > SHORT:
        index = int(signals) if spacing == math.inf else deep_count(x, spacing, iota / beta)
    total = float(index)
    while index < ENDLESS:
        remaining = signals - index
        x = expected + remaining * spacing if remaining != 0 else expected
        if not x > 0.0:
            break
        added = reaches(index, x)
        total += added
        if added <= NEGLIGIBLE * total:
            break
        index += 1
    return total / gamma
