r"""Sums of the crawl values of Theorem 1, in forms without cancellation or overflow.

Write x_i = gamma (iota - i beta), r = alpha / gamma, q = nu / gamma, y = alpha iota (so that
exp(-y) is the probability that the page is fresh), and N for a Poisson variable of mean x_i. The
i-th summand is

    T_i = (exp(-y) / gamma) E[((1 + r)^N - (1 + r)^(i+1))^+],

the price of a call option. The side of the strike is chosen so that nothing cancels:

* out of the money, the tail exp(-x) sum_{k>=1} ((1 + r)^k - 1) x^(k+i+1) / (k+i+1)!;
* in the money, by put-call parity, the intrinsic value exp(z) - 1, z = y - i alpha beta
  - (i+1) ln(1 + r) >= 0, plus the put exp(-x) sum_{j<=i} (x^j / j!) (1 - (1 + r)^(j-i-1));
* deep in the money the put vanishes, and the sum over i of the remainder is geometric.

From y = SWITCH on, V equals its asymptotic form (``_asymptote`` in :mod:`policies.values.tables`)
to the last bit or two, for any number of summands. Relative errors are below 4e-15 (checked against
50 digits); rounding may lower a non-decreasing value by up to 3e-15.

Signals enter through y and x_i only, as multiples of alpha beta and gamma beta. The product alpha
beta is finite even where alpha = 0, and differences of large effective times never occur.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray

# Columns of the tables. GREEDY tables have the first two, GREEDY-CIS the first six, NCIS all.
TOP = 0  # mu / Delta, the limit of the value
ALPHA = 1  # alpha, the rate of changes that send no signal (GREEDY: Delta)
GAMMA = 2  # gamma, the rate of signals
RATIO = 3  # r = alpha / gamma
FIRST = 4  # mu / (alpha + gamma), the limit of the first summand
MIN_SIGNALS = 5  # GREEDY-CIS: the least number of signals at which the value is TOP
EVIDENCE = 5  # NCIS: alpha beta = ln(gamma / nu), added to y by a signal
SPACING = 6  # gamma beta, added to x by a signal
LOG_GROWTH = 7  # ln(1 + r)
DECAY = 8  # rho = q / (1 + r) = nu / (Delta + nu), ratio of the summands' limits
REST = 9  # mu / gamma
SWITCH = 10  # y from which on the asymptotic form is exact in float64
SLOPE, BEND, OFFSET = 11, 12, 13  # coefficients of the asymptotic form
TERMS = 14  # G-NCIS-APPROX-J: J

# Columns of the table of the harmonic value.
PER_TIME = 0  # mu where changes are not observed
PACE = 1  # Delta
PER_SIGNAL = 2  # mu / Delta where changes are observed

# Columns of the table of the cycle length.
LENGTH_GAMMA = 0  # gamma
LENGTH_BETA = 1  # beta
LENGTH_SPACING = 2  # gamma beta
LENGTH_SWITCH = 3  # iota from which on the asymptotic form is exact in float64

LARGEST = 2.0**1017
"""Upper limit of quotients, so that sums of a few of them stay finite."""

SATURATED = 45.0
"""From y = 45 on, the freshness exp(-y) is lost in the rounding of any value."""

NEGLIGIBLE = 1e-17
MANY = 16
"""Number of summands from which a closed form for the summands deep in the money is faster."""

SHORT = 64
"""Index above which a summand starts from the Poisson probability, computed by logarithms."""

LONG = 1_000_000
"""Index above which a summand adds under 4e-12 of the value to its intrinsic part."""

ENDLESS = 1e15
"""Number of summands deep in the money after which the remaining ones are negligible."""

# Chebyshev fits on [0, 1], relative error below 1e-16, of (1 - exp(-y) (1 + y)) / y^2 and of
# (exp(-x) - 1 + x) / x^2; constants first.
AGED = (
    0.5,
    -0.33333333333333326,
    0.12499999999999607,
    -0.03333333333324672,
    0.006944444443451722,
    -0.0011904761836979097,
    0.00017361108136500547,
    -2.2045767746752142e-05,
    2.479981533988262e-06,
    -2.5027397176239713e-07,
    2.2729850219305894e-08,
    -1.7810074886854266e-09,
    9.392224924947724e-11,
)
LATE = (
    0.5,
    -0.16666666666666666,
    0.04166666666666638,
    -0.008333333333326967,
    0.0013888888888159356,
    -0.00019841269791471836,
    2.480158511709835e-05,
    -2.75572549039598e-06,
    2.7556019650726536e-07,
    -2.5034005273658765e-08,
    2.070520175758861e-09,
    -1.4993860375753175e-10,
    7.468847267740602e-12,
)


class Page(NamedTuple):
    """Constants of one page: columns TOP to REST of its row in a value table, as plain numbers."""

    top: float
    alpha: float
    gamma: float
    ratio: float
    first: float
    evidence: float
    spacing: float
    log_growth: float
    decay: float
    rest: float


@inlined()
def page_row(table: FloatArray, row: int) -> Page:
    """Return the constants of one page, columns TOP to REST, from a row of a value table."""
    return Page(
        table[row, TOP],
        table[row, ALPHA],
        table[row, GAMMA],
        table[row, RATIO],
        table[row, FIRST],
        table[row, EVIDENCE],
        table[row, SPACING],
        table[row, LOG_GROWTH],
        table[row, DECAY],
        table[row, REST],
    )


@inlined()
def _polynomial(x: float, c: tuple[float, ...]) -> float:
    """Return a polynomial at x, given thirteen coefficients, constant first (Estrin's scheme)."""
    x2 = x * x
    x4 = x2 * x2
    low = (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2
    middle = (c[4] + c[5] * x) + (c[6] + c[7] * x) * x2
    high = (c[8] + c[9] * x) + (c[10] + c[11] * x) * x2
    return low + middle * x4 + (high + c[12] * x4) * (x4 * x4)


@compiled()
def third_remainder(b: float) -> float:
    """Return (exp(-b) - 1 + b - b^2 / 2) / b^2, about -b / 6 for small b."""
    if b > 1.0:
        return (math.expm1(-b) + b) / (b * b) - 0.5
    term = -b / 6.0
    total = term
    for k in range(4, 21):
        term *= -b / k
        total += term
    return total


@inlined()
def greedy_form(scale: float, y: float) -> float:
    """Return ``scale`` times R^1_exp(y) = 1 - exp(-y) (1 + y), without underflow."""
    if y < 1.0:
        return (scale * y) * (y * _polynomial(y, AGED))
    if y < SATURATED:
        return scale - math.exp(-y) * (scale * (1.0 + y))
    return scale


@inlined()
def lateness(x: float) -> float:
    """Return ``1 - (1 - exp(-x)) / x``, in [0, 1]: the mean time share after the first change."""
    if x < 1.0:
        return x * _polynomial(x, LATE)
    return 1.0 + math.expm1(-x) / x


@inlined()
def first_term(scale: float, y: float, x: float, ratio: float) -> float:
    """Return the first summand mu T_0 of Theorem 1, with y = r x the evidence and ``ratio`` = r.

    It is ``scale * (R^1_exp(y) + exp(-y) r (exp(-x) - 1 + x))``, where ``scale`` is its limit.
    """
    if y >= SATURATED:
        return scale
    if x < 1.0:
        late = x * _polynomial(x, LATE)
        if y < 1.0:
            return (scale * y) * (y * _polynomial(y, AGED) + math.exp(-y) * late)
        return scale * (1.0 - (1.0 + y - y * late) * math.exp(-y))
    gone = ratio * (1.0 - math.exp(-x))
    if y < 1.0:
        return (scale * y) * (y * _polynomial(y, AGED)) + scale * (math.exp(-y) * (y - gone))
    return scale * (1.0 - (1.0 + gone) * math.exp(-y))


@inlined()
def pmf(index: float, x: float) -> float:
    """Return the probability P(N = index) of a Poisson number N of mean x, for a large index."""
    return math.exp(index * math.log(x) - x - math.lgamma(index + 1.0))


@compiled()
def deep(index: float, x: float) -> bool:
    """Return whether a Poisson number N of mean x has a negligible probability P(N <= index)."""
    margin = x - index - 41.0
    return margin > 0.0 and margin * margin > 81.0 * (index + 1.0)


@inlined()
def _put(index: int, x: float, ratio: float) -> float:
    """Return exp(-x) sum_{j<=index} (x^j / j!) (1 - (1 + r)^(j-index-1)), a summand's put."""
    shrink = 1.0 / (1.0 + ratio)
    step = ratio * shrink
    deficit = step
    total = step
    if index <= SHORT:
        for j in range(index, 0, -1):
            deficit = deficit * shrink + step
            total = deficit + total * (x / j)
        return total * math.exp(-x)
    weight = pmf(index, x)
    total *= weight
    for j in range(index, 0, -1):
        weight *= j / x
        deficit = deficit * shrink + step
        total += deficit * weight
        if deficit * weight < NEGLIGIBLE * total:
            break
    return total


@inlined()
def _call(index: int, x: float, ratio: float, enough: float) -> float:
    """Return the call of a summand out of the money, i = ``index``.

    It is exp(-x) sum_{k >= 1} ((1 + r)^k - 1) x^(k + i + 1) / (k + i + 1)!. The sum ends where its
    terms fall below ``enough``.
    """
    j = index + 1.0
    if index <= SHORT:
        weight = math.exp(-x)
        for i in range(1, index + 2):
            weight *= x / i
    else:
        weight = pmf(j, x)
    grow = (1.0 + ratio) * x
    seed = ratio * x
    added = 0.0
    total = 0.0
    while True:
        j += 1.0
        share = 1.0 / j
        added = added * (grow * share) + weight * (seed * share)
        weight *= x * share
        total += added
        if added <= enough and grow < j:
            return total


@inlined()
def summand(
    index: int, x: float, ratio: float, z: float, limit: float, fresh: float, total: float
) -> float:
    """Return gamma T_i, summand i = ``index`` of Theorem 1 times gamma.

    ``limit`` is rho^i / (1 + r) and ``fresh`` is exp(-y). The absolute error is small relative to
    ``total``, the sum of the summands 0 to i - 1.
    """
    if z < 0.0 and (index > SHORT or z * fresh < -0.25 * total):
        if index > LONG:
            return 0.0
        return fresh * _call(index, x, ratio, NEGLIGIBLE * (total / fresh))
    intrinsic = limit - fresh if abs(z) > 0.7 else fresh * math.expm1(z)
    if index > LONG or deep(index, x):
        return intrinsic
    return intrinsic + fresh * _put(index, x, ratio)


@inlined()
def deep_count(x: float, spacing: float, count: float) -> int:
    """Return how many of about ``count`` first summands are so deep that their puts vanish."""
    margin = 42.0 + 9.0 * math.sqrt(count + 1.0)
    return int(min(ENDLESS, max(0.0, (x - margin) / (1.0 + spacing))))


@inlined()
def _deep_sum(page: Page, y: float, count: int) -> float:
    """Return mu (T_0 + ...), the sum of the first ``count`` summands, all deep in the money.

    It is (mu / gamma) sum_{i<M} (rho^i / (1 + r) - exp(-y)), with M = count and c = -ln rho. The
    form used is mu R^1_exp(M c) / Delta + M (mu / gamma) exp(-M c) (c gamma / Delta - exp(M c -
    y)), where nothing cancels.
    """
    c = page.evidence + page.log_growth
    total = count * c
    late = c * c * _polynomial(c, LATE) if c < 1.0 else c - 1.0 + math.exp(-c)
    excess = (late / (c - late) - page.ratio) / (1.0 + page.ratio)
    bracket = excess - math.expm1(total - y)
    return greedy_form(page.top, total) + page.rest * count * (math.exp(-total) * bracket)


@inlined()
def _later(
    page: Page, elapsed: float, signals: float, y: float, terms: float, start: int, before: float
) -> float:
    """Return gamma (T_start + ...), summands from ``start`` on; ``before`` sums earlier ones."""
    total = before
    later = 0.0
    fresh = math.exp(-y)
    expected = page.gamma * elapsed
    y_elapsed = page.alpha * elapsed
    limit = math.exp(-start * (page.evidence + page.log_growth) - page.log_growth)
    index = start
    while index < terms:
        remaining = signals - index
        x = expected + remaining * page.spacing
        if not x > 0.0:
            break
        z = y_elapsed + remaining * page.evidence - (index + 1) * page.log_growth
        added = summand(index, x, page.ratio, z, limit, fresh, total)
        later += added
        total = before + later
        if added <= NEGLIGIBLE * total:
            break
        limit *= page.decay
        index += 1
    return later


@compiled()
def summed(page: Page, elapsed: float, signals: float, y: float, terms: float) -> float:
    """Return the value mu (T_0 + T_1 + ...) of a page: summands with x_i > 0, at most ``terms``."""
    x = page.gamma * elapsed
    if signals > 0:
        x += page.spacing * signals
    if page.decay < NEGLIGIBLE or terms == 1.0:
        return first_term(page.first, y, x, page.ratio)
    if page.spacing == math.inf and signals > 0:
        return _deep_sum(page, y, int(min(signals, terms)))
    if x <= page.spacing or page.rest == 0.0:
        return first_term(page.first, y, x, page.ratio)
    start = 0
    if y > MANY * page.evidence and terms > MANY:
        start = deep_count(x, page.spacing, min(terms, y / page.evidence))
    if start > 0:
        start = int(min(float(start), terms))
        total = _deep_sum(page, y, start)
    else:
        start = 1
        total = first_term(page.first, y, x, page.ratio)
    if start < ENDLESS:
        before = total / page.rest
        total += page.rest * _later(page, elapsed, signals, y, terms, start, before)
    return total
